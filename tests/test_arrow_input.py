"""Rows that users pass, as Arrow tables."""

from __future__ import annotations

import datetime
import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.arrow_input import row_stream, to_arrow_table
from hudi_fast.errors import InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from tests.servers.s3 import S3Server
from tests.support.small_tables import OPTIONS, listing, plain_rows

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})


@dataclass
class Row:
    id: str
    v: int


@pytest.mark.slow("scanner")
@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_pandas(),
        ROWS.to_pylist(),
        ROWS.to_pydict(),
        iter(ROWS.to_pylist()),
        [Row("a", 1), Row("b", 2)],
        iter([Row("a", 1), Row("b", 2)]),
        ROWS.to_batches(max_chunksize=1),
        [ROWS.slice(0, 1), ROWS.slice(1)],
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
        *(
            "table",
            "batch",
            "pandas",
            "dicts",
            "columns",
            "iterator of dicts",
            "dataclasses",
            "iterator of dataclasses",
        ),
        *("batches", "tables", "reader", "stream"),
        *("dataset", "scanner", "polars", "lazy", "duckdb", "structs"),
    ],
)
def test_every_kind_of_rows_is_the_same_table(data: object) -> None:
    assert to_arrow_table(data).to_pydict() == ROWS.to_pydict()


def test_pydantic_models_are_rows() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Trip", id=(str, ...), tags=(list[Row], []))
    rows = [model(id="a", tags=[Row("x", 1)]), model(id="b")]
    assert to_arrow_table(rows).to_pylist() == [{"id": "a", "tags": [{"id": "x", "v": 1}]}, {"id": "b", "tags": []}]


def test_a_table_is_not_copied() -> None:
    assert to_arrow_table(ROWS) is ROWS


def test_named_index_levels_become_columns_and_others_are_dropped() -> None:
    frame = ROWS.to_pandas()
    assert to_arrow_table(frame.set_index("id")).column_names == ["id", "v"]
    assert to_arrow_table(frame).column_names == ["id", "v"]
    named_like_a_column = frame.set_index(pd.Index([7, 8], name="v"))
    assert to_arrow_table(named_like_a_column)["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("data", [pl.col("id"), pa.array([1]), pl.Series([1]), Row, [1, 2], "rows", None])
def test_other_types_are_refused_by_name(data: object) -> None:
    with pytest.raises(InvalidDataError, match=f"got {type(data).__name__}"):
        to_arrow_table(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "An empty list has no columns"),
        ({}, "got no key at all"),
        ({"id": 1}, "cannot be converted"),
        ([{2: 1}], "got 2"),
    ],
)
def test_rows_without_columns_are_refused(data: object, said: str) -> None:
    with pytest.raises(InvalidDataError, match=said):
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
        (["a"], InvalidDataError, "yields pyarrow record batches or dicts, at least one; got str"),
        ([{"id": "a"}, 5], InvalidDataError, "row 1 is int"),
        ([ROWS, 5], InvalidDataError, "item 1 is int"),
        ([ROWS, ROWS.select(["id"])], SchemaMismatchError, "Batch 1 of the rows has other columns"),
    ],
)
def test_an_iterator_of_something_else_is_refused(items, error, message) -> None:
    with pytest.raises(error, match=message):
        to_arrow_table(iter(items))


# ---- polars columns whose values Arrow cannot hold

WITHOUT_VALUES = {
    "objects": pl.Series([uuid.UUID(int=1), uuid.UUID(int=2)], dtype=pl.Object),
    "wide integers": pl.Series([2**100, 1], dtype=pl.Int128),
    "wide integers in structs": pl.Series([{"n": 1}, {"n": 2}], dtype=pl.Struct({"n": pl.Int128})),
    "wide integers in lists of structs": pl.Series([[{"n": 1}], []], dtype=pl.List(pl.Struct({"n": pl.UInt128}))),
    "wide integers in arrays": pl.Series([[1], [2]], dtype=pl.Array(pl.Int128, 1)),
}


class Wrapper:
    """A frame of another library around one of polars, as narwhals has them."""

    def __init__(self, frame) -> None:
        self.frame = frame

    def to_native(self):
        return self.frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


FRAMES = {
    "frame": lambda frame: frame,
    "lazy frame": pl.DataFrame.lazy,
    "series": lambda frame: frame["u"],
    "wrapped frame": Wrapper,
    "wrapped lazy frame": lambda frame: Wrapper(frame.lazy()),
}


@pytest.mark.parametrize("column", WITHOUT_VALUES.values(), ids=WITHOUT_VALUES)
@pytest.mark.parametrize("door", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("convert", [to_arrow_table, lambda data: row_stream(data) or to_arrow_table(data)])
def test_polars_columns_that_arrow_cannot_hold_are_refused_by_name(convert, door, column) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "u": column})
    with pytest.raises(UnsupportedFeatureError, match=r"types that Arrow cannot hold: 'u' \((Object|U?Int128)\)"):
        convert(door(frame))


def test_every_call_that_takes_rows_refuses_polars_objects(tmp_path) -> None:
    hf.write(plain_rows(range(2)), tmp_path / "t", OPTIONS)
    table = hf.HudiTable.open(tmp_path / "t")
    before = listing(tmp_path)
    frame = pl.from_arrow(plain_rows(range(2))).with_columns(u=WITHOUT_VALUES["objects"])
    for call in (
        lambda: hf.write(frame, tmp_path / "t", OPTIONS),
        lambda: hf.write(frame.lazy(), tmp_path / "new", OPTIONS),
        lambda: hf.plan_write(frame, tmp_path / "t", OPTIONS),
        lambda: hf.merge(tmp_path / "t", frame),
        lambda: table.merge(frame.lazy()),
        lambda: table.upsert(frame.lazy()),
        lambda: table.delete(frame),
        lambda: table.overwrite(frame),
    ):
        with pytest.raises(UnsupportedFeatureError, match="'u'"):
            call()
    assert listing(tmp_path) == before


def test_polars_columns_that_arrow_holds_are_taken() -> None:
    nested = pl.Series([[{"n": 1}], None], dtype=pl.List(pl.Struct({"n": pl.Int64})))
    texts = pl.Series([str(value) for value in WITHOUT_VALUES["objects"]])  # the way out that the message names
    taken = to_arrow_table(pl.DataFrame({"v": nested, "u": texts}))
    assert taken["v"].to_pylist() == [[{"n": 1}], None]
    assert taken["u"].to_pylist() == [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]


# ---- lists of dicts


def _keys(rows: list[dict]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


@given(st.lists(st.dictionaries(st.sampled_from(["id", "b", "c", "d"]), st.integers(0, 9)), min_size=1, max_size=6))
def test_the_columns_of_dicts_are_their_keys_in_order_of_first_appearance(rows) -> None:
    rows = [*rows, {"last": 0}]
    table = to_arrow_table(rows)
    assert table.column_names == _keys(rows)
    assert table.to_pylist() == [{key: row.get(key) for key in _keys(rows)} for row in rows]


@given(st.lists(st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), min_size=1), min_size=1, max_size=5))
def test_dicts_in_dicts_and_lists_keep_all_keys(inner) -> None:
    whole = [{key: one.get(key) for key in _keys(inner)} for one in inner]
    rows = [{"id": number, "s": one, "l": [one]} for number, one in enumerate(inner)]
    table = to_arrow_table(rows)
    assert table["s"].to_pylist() == whole
    assert table["l"].to_pylist() == [[one] for one in whole]
    assert [field.name for field in table.schema.field("s").type] == _keys(inner)


def test_a_key_that_the_first_dict_lacks_is_written(tmp_path) -> None:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hf.write([{"id": 1}, {"id": 2, "fare": 5.0}], tmp_path / "t", options)
    filled = {"hoodie.write.set.null.for.missing.columns": "true"}
    hf.write([{"id": 1}, {"id": 2, "fare": 6.0}], tmp_path / "t", {**options, **filled})
    rows = hf.read(tmp_path / "t", columns=["id", "fare"]).to_pylist()
    assert rows == [{"id": 1, "fare": None}, {"id": 2, "fare": 6.0}]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([{"id": "a"}, None], "row 1 is NoneType"),
        ([{"id": "a"}, 5], "row 1 is int"),
        ([{1: "a"}], "texts; got 1"),
        ([{}, {}], "no key at all"),
    ],
)
def test_a_list_of_something_else_than_rows_is_refused(rows, found) -> None:
    with pytest.raises(InvalidDataError, match=found):
        to_arrow_table(rows)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "arrow", "feather", "orc"])
def test_files_of_rows_are_read_by_their_ending(tmp_path: Path, ending: str) -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    write = {
        "parquet": pq.write_table,
        "csv": pa_csv.write_csv,
        "json": lambda table, path: Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist())),
        "arrow": feather.write_feather,
        "feather": feather.write_feather,
        "orc": orc.write_table,
    }[ending]
    write(rows, str(tmp_path / f"rows.{ending}"))
    assert hf.read_rows(tmp_path / f"rows.{ending}").read_all().to_pylist() == rows.to_pylist()
    assert hf.write(hf.read_rows(tmp_path / f"rows.{ending}"), tmp_path / "t", key="id").inserts == 2
    (tmp_path / f"rows.{ending}").rename(tmp_path / "rows.data")
    assert hf.read_rows(tmp_path / "rows.data", format=ending).read_all().num_rows == 2


def test_a_file_of_rows_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match=r"none\.csv does not exist"):
        hf.read_rows(tmp_path / "none.csv")
    (tmp_path / "rows.txt").write_text("x")
    with pytest.raises(hf.ConfigError, match=r"expected a format= or an ending among parquet, csv.*found 'txt'"):
        hf.read_rows(tmp_path / "rows.txt")
    with pytest.raises(hf.InvalidDataError, match=r"rows\.txt cannot be read as parquet"):
        hf.read_rows(tmp_path / "rows.txt", format="parquet")


def test_files_of_rows_are_read_from_an_object_store(s3_server: S3Server) -> None:
    rows, path = pa.table({"id": [1, 2], "fare": [9.5, 3.0]}), s3_server.path("landing")
    storage = Storage(path, s3_server.options)
    for name in ("a.parquet", "b.parquet"):
        content = pa.BufferOutputStream()
        pq.write_table(rows, content)
        storage.write_bytes(name, content.getvalue().to_pybytes())
    one = hf.read_rows(f"{path}/a.parquet", storage_options=s3_server.options)
    assert one.read_all().equals(rows)
    assert hf.read_rows(path, "parquet", s3_server.options).read_all().num_rows == 4
    with pytest.raises(hf.ConfigError, match=r"landing/none\.csv does not exist"):
        hf.read_rows(f"{path}/none.csv", storage_options=s3_server.options)
