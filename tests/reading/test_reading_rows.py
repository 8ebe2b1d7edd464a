"""Counts and first rows: what they return, and what they do not read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.parquet.base_file import ParquetReader
from hudi_fast.reading.dataset import count_rows, first_rows
from hudi_fast.reading.scan import plan_scan
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import OPTIONS, plain_rows

MOR = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
FILTERS = (None, "part = 'p1' and ts > 1", pc.field("ts") < 0)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of base files that are read, one entry a file."""
    found: list[tuple[str, ...]] = []
    for name in ("read", "batches"):
        original = getattr(ParquetReader, name)

        def read(self, columns, *args, _original=original):
            found.append(tuple(columns))
            return _original(self, columns, *args)

        monkeypatch.setattr(ParquetReader, name, read)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("options", [OPTIONS, MOR], ids=["cow", "mor"])
def test_a_count_is_the_number_of_rows_that_a_read_returns(tmp_path, options) -> None:
    first = hf.write(plain_rows(range(40)), tmp_path / "t", options).instant
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(plain_rows(range(30, 50), ts=2))
    table.delete("id < 'k00005'")
    for as_of in (None, first):
        for query_type in ("snapshot", "read_optimized"):
            for filter_ in FILTERS:
                rows = table.to_arrow(filter=filter_, as_of=as_of, query_type=query_type)
                assert table.count(filter_, as_of, query_type) == rows.num_rows
                assert table.scan(filter=filter_, as_of=as_of, query_type=query_type).count_rows() == rows.num_rows


def test_footers_count_rows_without_decoding_columns(tmp_path, decoded) -> None:
    hf.write(plain_rows(range(40)), tmp_path / "t", MOR)
    table = hf.HudiTable.open(tmp_path / "t")
    decoded.clear()
    assert (table.count(), decoded) == (40, [])
    assert table.count("ts > 1") == 0
    assert set(decoded) <= {("ts",)}
    decoded.clear()
    table.upsert(plain_rows(range(4), ts=2), {"hoodie.compact.inline": False})
    decoded.clear()
    assert table.count() == 40
    assert all("text" not in columns for columns in decoded)
    assert table.count(query_type="read_optimized") == 40


def test_a_footer_is_the_whole_answer_of_a_count(tmp_path) -> None:
    hf.write(plain_rows(range(12)), tmp_path / "t", OPTIONS)
    state = load_state(hf.HudiTable.open(tmp_path / "t")._storage)
    plan = plan_scan(state, [])
    assert count_rows(plan) == sum(pq.read_metadata(path).num_rows for path in tmp_path.glob("t/*/*.parquet")) == 12


def test_the_first_rows_are_the_first_of_the_slices(tmp_path, decoded) -> None:
    hf.write(plain_rows(range(40)), tmp_path / "t", OPTIONS)
    table = hf.HudiTable.open(tmp_path / "t")
    decoded.clear()
    first = table.head(3, ["id", "ts"])
    assert (first.num_rows, first.column_names, len(decoded)) == (3, ["id", "ts"], 1)
    assert table.head(3, ["id", "ts"]) == first
    assert table.head().num_rows == 5
    assert table.head(100).num_rows == 40
    assert table.head(0).schema == table.to_arrow().schema
    assert table.head(2, ["id"], "part = 'p1'").num_rows == 2
    assert table.head(2, filter="ts > 5").num_rows == 0
    assert table.scan().head(3, ["id", "ts"]) == first


def test_the_first_rows_of_a_merged_slice_are_merged(tmp_path) -> None:
    hf.write(plain_rows(range(8)), tmp_path / "t", MOR)
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(plain_rows(range(8), ts=7))
    assert set(table.head(8, ["ts"])["ts"].to_pylist()) == {7}
    assert first_rows(plan_scan(load_state(table._storage), ["ts"]), 1).schema == pa.schema({"ts": pa.int64()})
