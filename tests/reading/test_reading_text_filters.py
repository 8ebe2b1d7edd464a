"""SQL text as a filter of reads, deletes and updates.

Modules: hudi_fast.reading.scan, hudi_fast.reading.dataset, hudi_fast.reading.incremental.query.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


def trips(*ids: int, ts: int = 1) -> pa.Table:
    cities = ["Oslo", "Rome", "Lima"]
    columns = {"id": list(ids), "city": [cities[one % 3] for one in ids], "ts": [ts] * len(ids)}
    return pa.table({**columns, "fare": [one * 1.5 for one in ids]})


@pytest.fixture
def table(tmp_path: Path) -> hf.HudiTable:
    hf.write(trips(*range(9)), tmp_path, OPTIONS)
    return hf.HudiTable.open(tmp_path)


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows.column("id").to_pylist())


@pytest.mark.slow
def test_reads_take_text(table: hf.HudiTable) -> None:
    text = "fare > 5 and city in ('Oslo', 'Rome') or id = 2"
    assert ids(table.to_arrow(["id"], text)) == [2, 4, 6, 7]
    assert ids(pa.Table.from_batches(table.to_batches(["id"], text))) == [2, 4, 6, 7]
    assert ids(table.scan(["id"], text).to_table()) == [2, 4, 6, 7]
    assert ids(table.scan(["id"]).filter("id > 3").to_table(filter="id < 6")) == [4, 5]


def test_text_may_name_meta_columns(table: hf.HudiTable) -> None:
    assert ids(table.to_arrow(["id"], "_hoodie_record_key = '3'")) == [3]


def test_text_skips_files_like_an_expression(table: hf.HudiTable) -> None:
    assert table.files("city = 'Oslo'").equals(table.files(pc.field("city") == "Oslo"))
    assert table.files("city = 'Oslo'").num_rows == 1
    assert table.explain("city like 'O%'").num_rows > 0


def test_incremental_query_takes_text(table: hf.HudiTable) -> None:
    begin = table.history()["instant"][0].as_py()
    table.write(trips(10, 11, 12, ts=2), options=OPTIONS)
    assert ids(table.incremental(begin, filter="id > 10")) == [11, 12]


def test_delete_and_update_take_text(table: hf.HudiTable) -> None:
    assert table.delete("city = 'Oslo' and fare < 5").deletes == 2
    assert table.update("id between 4 and 5", {"fare": 0.0}).updates == 2
    assert ids(table.to_arrow(filter="fare = 0")) == [4, 5]


@pytest.mark.parametrize("wrong", [1, ["id = 1"], b"id = 1"])
def test_anything_else_is_refused(table: hf.HudiTable, wrong: object) -> None:
    with pytest.raises(ConfigError, match="A filter is SQL text"):
        table.to_arrow(filter=wrong)


def test_wrong_text_is_refused_before_anything_is_written(table: hf.HudiTable) -> None:
    before = table.history().num_rows
    with pytest.raises(ConfigError, match="column 'town' does not exist"):
        table.delete("town = 'Oslo'")
    with pytest.raises(ConfigError, match="column 'town' does not exist"):
        table.update("town = 'Oslo'", {"fare": 1.0})
    assert table.history().num_rows == before
