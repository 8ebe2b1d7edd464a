"""Rows of a table in pandas, polars and duckdb: the same rows, and columns and filters that are pushed down.

Modules: hudi_fast.reading.frames, hudi_fast.table.reads.
"""

from __future__ import annotations

import builtins

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.reading import dataset
from tests.support.small_tables import OPTIONS, plain_rows


@pytest.fixture
def table(tmp_path) -> hf.HudiTable:
    hf.write(plain_rows(range(20)), tmp_path / "t", OPTIONS)
    return hf.HudiTable.open(tmp_path / "t")


@pytest.mark.slow
def test_all_libraries_get_the_same_rows(table: hf.HudiTable) -> None:
    first = table.history()["instant"][0].as_py()
    table.upsert(plain_rows(range(5), ts=2))
    for asked in ({}, {"columns": ["ts", "id"], "filter": "ts > 1"}, {"as_of": first, "query_type": "read_optimized"}):
        rows = table.to_arrow(**asked)
        expected = rows.sort_by("id").to_pylist()
        assert pa.Table.from_pandas(table.to_pandas(**asked)).sort_by("id").to_pylist() == expected
        assert table.to_polars(**asked).sort("id").to_dicts() == expected
        assert table.to_polars(**asked, lazy=True).sort("id").collect().to_dicts() == expected
        assert table.to_duckdb(**asked).order("id").fetchall() == [tuple(row.values()) for row in expected]
        assert table.to_batches(**asked).read_all().sort_by("id").to_pylist() == expected


def test_lazy_forms_read_the_columns_and_rows_that_a_query_needs(table: hf.HudiTable, monkeypatch) -> None:
    planned: list[list[str]] = []
    plan_scan = dataset.plan_scan

    def planning(state, columns, *args, **kwargs):
        planned.append(list(columns))
        return plan_scan(state, columns, *args, **kwargs)

    monkeypatch.setattr(dataset, "plan_scan", planning)
    lazy, relation = table.to_polars(lazy=True), table.to_duckdb()
    assert planned == []
    assert lazy.filter(pl.col("ts") > 0).select("id").collect().height == 20
    assert relation.filter("ts > 0").aggregate("count(id)").fetchall() == [(20,)]
    assert planned
    assert all(set(columns) <= {"id", "ts"} for columns in planned)


def test_pandas_gets_chunks_of_a_number_of_rows(table: hf.HudiTable) -> None:
    table.upsert(plain_rows(range(20, 50)))
    for size, heights in ((7, [7] * 7 + [1]), (25, [25, 25]), (100, [50])):
        chunks = list(table.to_pandas(["id"], chunksize=size))
        assert [len(chunk) for chunk in chunks] == heights
        assert sorted(key for chunk in chunks for key in chunk["id"]) == [f"k{at:05}" for at in range(50)]
    assert list(table.to_pandas(filter="id = 'nobody'", chunksize=5)) == []
    with pytest.raises(hf.ConfigError, match="chunksize takes a number of rows, 1 or more; got 0"):
        table.to_pandas(chunksize=0)


def test_a_relation_belongs_to_the_connection(table: hf.HudiTable) -> None:
    with duckdb.connect() as connection:
        connection.execute("create table names as select 'k00003' as id")
        found = table.to_duckdb(["id", "ts"], connection=connection).set_alias("t")
        assert found.join(connection.table("names"), "id").fetchall() == [("k00003", 1)]


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pandas", "pandas", lambda table: table.to_pandas()),
        ("polars", "polars", lambda table: table.to_polars()),
        ("duckdb", "sql", lambda table: table.to_duckdb()),
    ],
)
def test_a_library_that_is_not_installed_is_named(table: hf.HudiTable, monkeypatch, package, extra, call) -> None:
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    assert builtins.__import__  # the interpreter's own import refuses a module that is None
    with pytest.raises(hf.ConfigError, match=rf"requires the package {package}: pip install 'hudi-fast\[{extra}\]'"):
        call(table)
