"""Timestamps under a wrong label: real Hudi reads the same rows, before and after writes of either side."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.interop.sides import META
from tests.peer.client import RealHudi
from tests.support.foreign import needs_foreign, unzip_foreign
from tests.support.mislabelled_tables import (
    LOCAL_MS,
    LOCAL_US,
    MILLIS,
    UTC_MS,
    UTC_US,
    asked,
    column_name,
    counts,
    labelled_rows,
    plain,
    retype,
    typed,
)
from tests.support.rows import assert_same_rows

LONG = pytest.mark.long
OPERATION, BLOCKS = "hoodie.datasource.write.operation", "hoodie.logfile.data.block.format"
AGREED = [(UTC_US, UTC_MS), (pa.int64(), LOCAL_MS), (pa.int64(), LOCAL_US), (UTC_MS, UTC_US), (LOCAL_MS, LOCAL_US)]
"""Types in a file and in the table that Hudi reads alike in base files and in all blocks of logs."""

TABLES = [
    pytest.param("COPY_ON_WRITE", 9, None, id="cow-9"),
    pytest.param("COPY_ON_WRITE", 6, None, id="cow-6", marks=LONG),
    pytest.param("MERGE_ON_READ", 9, "avro", id="mor-9-avro"),
    pytest.param("MERGE_ON_READ", 9, "parquet", id="mor-9-parquet"),
    pytest.param("MERGE_ON_READ", 6, "avro", id="mor-6-avro", marks=LONG),
]


def in_micros(rows: pa.Table) -> pa.Table:
    """Rows without meta columns, with timestamps as Hudi's Spark returns them."""
    names = sorted(name for name in rows.column_names if not name.startswith("_hoodie"))
    fields = [rows.schema.field(name) for name in names]
    kinds = [pa.timestamp("us", one.type.tz) if pa.types.is_timestamp(one.type) else one.type for one in fields]
    return rows.select(names).cast(pa.schema(list(zip(names, kinds, strict=True))))


def agree(hudi: RealHudi, path: Path, key: str = "id") -> pa.Table:
    """The rows, which both sides read alike."""
    ours = in_micros(hf.HudiTable.open(path).to_arrow())
    assert_same_rows(ours, in_micros(hudi.read(path)), key=[key])
    return ours.sort_by(key)


@pytest.mark.parametrize(("kind", "version", "blocks"), TABLES)
def test_both_sides_read_and_write_tables_with_old_labels(
    kind: str, version: int, blocks: str | None, hudi_12: RealHudi, tmp_path: Path
) -> None:
    path, options = tmp_path / "t", asked(kind, version)
    if blocks is not None:
        options[BLOCKS] = blocks
    hf.write(plain(labelled_rows(range(10), AGREED, 0, 1)), path, options | {OPERATION: "bulk_insert"})
    if blocks is not None:
        hf.write(plain(labelled_rows(range(2, 6), AGREED, 0, 2, MILLIS + 500_000)), path, options)
    retype(path, typed(plain(labelled_rows([0], AGREED, 1, 1))))
    found = agree(hudi_12, path)
    for pair in AGREED:
        number = found[column_name(*pair)][0].value
        assert number == counts(pair, MILLIS) * {"ms": 1000, "us": 1}[pair[1].unit]
    # hudi_fast writes on.
    hf.write(plain(labelled_rows([1, 6, 11], AGREED, 1, 3, MILLIS + 700_000)), path, options)
    hf.write(plain(labelled_rows([7], AGREED, 1, 4)), path, options | {OPERATION: "delete"})
    found = agree(hudi_12, path)
    assert found.num_rows == 10
    table = hf.HudiTable.open(path)
    if kind == "MERGE_ON_READ":
        table.services.compact()
        assert agree(hudi_12, path) == found
    table.services.cluster()
    assert agree(hudi_12, path) == found


@pytest.mark.parametrize("nested", ["_struct", "_list", "_map"])
def test_hudi_1_2_does_not_know_old_labels_inside_of_columns(nested: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    pair, path = (UTC_US, UTC_MS), tmp_path / "t"
    name = column_name(*pair) + nested
    stored, current = (labelled_rows(range(4), [pair], place, 1).select(["id", "part", "ts", name]) for place in (0, 1))
    hf.write(stored, path, asked("COPY_ON_WRITE", 9))
    retype(path, typed(current))
    assert_same_rows(hf.HudiTable.open(path).to_arrow(current.column_names), current, key=["id"])
    if nested == "_list":  # it looks for the list in an older layout, and finds none
        assert hudi_12.read(path).sort_by("id")[name].to_pylist() == stored[name].to_pylist()
        return
    # with the bundle as a package, its class loader may not call Spark's: IllegalAccessError in SchemaRepair
    assert hudi_12.read(path).sort_by("id")[name].to_pylist() == current.sort_by("id")[name].to_pylist()


@pytest.mark.filterwarnings("ignore:The metadata table of")  # one of the tables has lost it
@needs_foreign
@pytest.mark.parametrize(
    "name",
    [
        "whole_seconds_v6",
        "hudi-spark__trips_logical_types_json_cow_read_v8",
        "hudi-spark__trips_logical_types_json_mor_read_v9_parquet_log",
        pytest.param("hudi-spark__trips_logical_types_json_cow_read_v6", marks=LONG),
        pytest.param("hudi-spark__trips_logical_types_json_mor_read_v6", marks=LONG),
        pytest.param("hudi-spark__trips_logical_types_json_mor_read_v8", marks=LONG),
    ],
)
def test_tables_of_hudi_keep_their_values_when_hudi_fast_writes_to_them(
    name: str, hudi_12: RealHudi, tmp_path: Path
) -> None:
    path = unzip_foreign(name, tmp_path).table
    before = agree(hudi_12, path, "_row_key")
    table = hf.HudiTable.open(path)
    options: dict[str, Any] = {"hoodie.compact.inline": False}
    stored = table.to_arrow().sort_by("_row_key")
    rows = stored.drop_columns([each for each in stored.column_names if each in META])
    later = rows.set_column(
        rows.column_names.index("timestamp"), "timestamp", pa.array([10**15] * rows.num_rows, pa.int64())
    )
    table.upsert(later.slice(0, 2), options)
    table.delete(later.slice(2, 1).select(["_row_key", "partition_path", "timestamp"]), options)
    times = [each for each in before.column_names if each != "timestamp"]
    gone = before["_row_key"][2].as_py()
    kept = [at for at, key in enumerate(before["_row_key"].to_pylist()) if key != gone]
    assert agree(hudi_12, path, "_row_key").select(times) == before.take(kept).select(times)
    if table.table_type == "MERGE_ON_READ":
        table.services.compact()
    table.services.cluster()
    assert agree(hudi_12, path, "_row_key").select(times) == before.take(kept).select(times)
    shutil.rmtree(path)
