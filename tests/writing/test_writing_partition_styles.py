"""A write spells times in partition paths as the table's partitions do, so that a stored key keeps its partition.

Modules: hudi_fast.writing.table_schema, hudi_fast.keys.key_generator.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.keys.key_generator import KeyConfig, partition_paths
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.table_schema import with_stored_styles
from tests.support.small_tables import options

AT = [datetime(2024, 1, 5, 18, 0, 0, 789000, UTC), datetime(2023, 3, 10, 12, 30, tzinfo=UTC), None]
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


def settings(more: dict[str, str] | None = None) -> dict[str, Any]:
    return {**options(partition="at,place"), **(more or {})}


def rows(text: str, kind: pa.DataType | None = None) -> pa.Table:
    columns = {"id": ["a", "b", "c"], "ts": [1, 1, 1], "text": [text] * 3, "place": ["x", "y", "z"]}
    return pa.table(columns).append_column("at", pa.array(AT, kind or pa.timestamp("us", "UTC")))


def as_sql_writes(keys: KeyConfig, state: TableState) -> KeyConfig:
    return replace(with_stored_styles(keys, state), sql_timestamps=True)


@pytest.mark.slow
@pytest.mark.parametrize("hive", ["true", "false"])
@pytest.mark.parametrize("encoded", ["true", "false"])
def test_an_upsert_stays_in_the_partitions_that_sql_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hive: str, encoded: str
) -> None:
    style = {
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.partitionpath.urlencode": encoded,
    }
    with monkeypatch.context() as patch:
        patch.setattr("hudi_fast.writing.draft.with_stored_styles", as_sql_writes)
        hf.write(rows("old"), tmp_path, settings(style))
    table = hf.HudiTable.open(tmp_path)
    names = ("at=", "place=") if hive == "true" else ("", "")
    times = ["2024-01-05 18%3A00%3A00", "2023-03-10 12%3A30%3A00", "__HIVE_DEFAULT_PARTITION__"]
    paths = {f"{names[0]}{time}/{names[1]}{place}" for time, place in zip(times, "xyz", strict=True)}
    assert set(table.partitions()["partition"].to_pylist()) == paths
    result = table.upsert(rows("new"), settings(style))
    assert (result.inserts, result.updates) == (0, 3)
    assert set(table.partitions()["partition"].to_pylist()) == paths
    assert table.to_arrow()["text"].to_pylist() == ["new"] * 3
    table.delete(rows("gone").slice(0, 2), settings(style))
    assert table.to_arrow()["id"].to_pylist() == ["c"]


@pytest.mark.slow("true")
@pytest.mark.parametrize("first", ["true", "false"])
def test_another_form_than_that_of_the_table_is_refused_before_anything_is_written(tmp_path: Path, first: str) -> None:
    made, other = settings({CONSISTENT: first}), settings({CONSISTENT: "false" if first == "true" else "true"})
    hf.write(rows("old"), tmp_path, made)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(hf.ConfigError, match=rf"into other partitions.*{CONSISTENT}={first}"):
        hf.write(rows("new"), tmp_path, other)
    assert sorted(tmp_path.rglob("*")) == files
    assert hf.write(rows("new"), tmp_path, made).updates == 3


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_a_number_of_milliseconds_may_be_text_where_a_table_has_made_text_of_it(kind: str) -> None:
    timebased = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd HH", "timezone": "UTC"}
    keys = KeyConfig("TIMESTAMP", ("id",), ("at",), timebased=timebased, numbers_as_text=True)
    times = pa.array([1749284360000, 1749204000000, -1, None], pa.int64()).cast(kind)
    paths = partition_paths(keys, pa.table({"at": times})).to_pylist()
    assert paths == ["2025-06-07 08", "2025-06-06 10", "1969-12-31 23", "1970-01-01 00"]
    with pytest.raises(hf.InvalidDataError, match="'at' holds 'noon' where"):
        partition_paths(keys, pa.table({"at": ["1749284360000", "noon"]}))
