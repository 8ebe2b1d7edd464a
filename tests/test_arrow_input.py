"""Rows that users pass, as Arrow tables."""

from __future__ import annotations

import datetime

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hudi_fast.arrow_input import row_stream, to_arrow_table
from hudi_fast.errors import InvalidDataError, SchemaMismatchError

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_pandas(),
        ROWS.to_pylist(),
        ROWS.to_reader(),
        pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
        ds.dataset(ROWS),
        ds.dataset(ROWS).scanner(),
        pl.from_arrow(ROWS),
        pl.from_arrow(ROWS).lazy(),
        duckdb.sql("select * from (values ('a', 1::bigint), ('b', 2::bigint)) as t(id, v)"),
        ROWS.to_struct_array().combine_chunks(),
    ],
    ids=[
        *("table", "batch", "pandas", "dicts", "reader", "stream"),
        *("dataset", "scanner", "polars", "lazy", "duckdb", "structs"),
    ],
)
def test_every_kind_of_rows_is_the_same_table(data: object) -> None:
    assert to_arrow_table(data).to_pydict() == ROWS.to_pydict()


def test_a_table_is_not_copied() -> None:
    assert to_arrow_table(ROWS) is ROWS


def test_named_index_levels_become_columns_and_others_are_dropped() -> None:
    frame = ROWS.to_pandas()
    assert to_arrow_table(frame.set_index("id")).column_names == ["id", "v"]
    assert to_arrow_table(frame).column_names == ["id", "v"]
    named_like_a_column = frame.set_index(pd.Index([7, 8], name="v"))
    assert to_arrow_table(named_like_a_column)["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("data", [pl.col("id"), pa.array([1]), pl.Series([1]), [], {"id": [1]}, [1, 2], "rows", None])
def test_other_types_are_refused_by_name(data: object) -> None:
    with pytest.raises(InvalidDataError, match=f"got {type(data).__name__}"):
        to_arrow_table(data)


@pytest.mark.parametrize(
    "data",
    [
        [{"v": 1}, {"v": "text"}],
        [{"v": 2**70}],
        pd.DataFrame({"v": [1, "text", datetime.date(2024, 1, 1)]}),
    ],
)
def test_a_column_of_mixed_types_is_refused(data: object) -> None:
    with pytest.raises(InvalidDataError, match="Give each column one type"):
        to_arrow_table(data)


@pytest.mark.parametrize(
    "data",
    [
        lambda: ROWS.to_reader(),
        lambda: ds.dataset(ROWS),
        lambda: ds.dataset(ROWS).scanner(),
        lambda: pl.from_arrow(ROWS).lazy(),
        lambda: duckdb.sql("select * from (values ('a', 1::bigint), ('b', 2)) as rows(id, v)"),
        lambda: iter(ROWS.to_batches(1)),
        lambda: iter([ROWS]),
    ],
    ids=["reader", "dataset", "scanner", "lazy frame", "duckdb", "batches", "tables"],
)
def test_a_stream_is_read_by_batches(data) -> None:
    stream = row_stream(data())
    assert stream is not None
    assert pa.Table.from_batches(stream.batches, stream.schema).to_pydict() == ROWS.to_pydict()
    assert to_arrow_table(data()).to_pydict() == ROWS.to_pydict()


@pytest.mark.parametrize("data", [ROWS, ROWS.to_batches()[0], ROWS.to_pandas(), pl.from_arrow(ROWS), ROWS.to_pylist()])
def test_rows_in_memory_are_no_stream(data) -> None:
    assert row_stream(data) is None


def test_views_get_buffers_of_their_own() -> None:
    views = ROWS.cast(pa.schema([("id", pa.string_view()), ("v", pa.int64())]))
    stream = row_stream(views.to_reader())
    assert stream is not None
    assert stream.schema.field("id").type == pa.large_string()
    assert next(stream.batches).column("id").to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([], InvalidDataError, "at least one; got nothing"),
        ([{"id": "a"}], InvalidDataError, "yields pyarrow record batches, at least one; got dict"),
        ([ROWS, 5], InvalidDataError, "item 1 is int"),
        ([ROWS, ROWS.select(["id"])], SchemaMismatchError, "Batch 1 of the rows has other columns"),
    ],
)
def test_an_iterator_of_something_else_is_refused(items, error, message) -> None:
    with pytest.raises(error, match=message):
        to_arrow_table(iter(items))
