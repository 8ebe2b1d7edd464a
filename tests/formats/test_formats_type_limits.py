"""Types that a write accepts are types that a read accepts, up to the last level."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import hudi_fast as hf
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro, avro_to_arrow
from hudi_fast.formats.avro.types import parse_record, walk_program
from hudi_fast.formats.column_limits import MAX_PARTS, MAX_UNSTORED, check_type_limits
from hudi_fast.schema.normalize import normalize_input_schema, storable_type
from tests.support.examples import examples

DEEPEST = {"struct": 63, "list": 50, "map": 32}
"""Levels of a column: Arrow has 64 with the row, where a map is two; Parquet 100, where a list and a map are two."""

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hudi_fast.threads": "1",
}


def around(shape: str, kind: pa.DataType, value: Any) -> tuple[pa.DataType, Any]:
    """A type and a value in one more level."""
    if shape == "struct":
        return pa.struct([("a", kind)]), {"a": value}
    return (
        (pa.list_(pa.field("element", kind)), [value])
        if shape == "list"
        else (pa.map_(pa.string(), kind), [("k", value)])
    )


def nested(shapes: list[str]) -> tuple[pa.DataType, Any]:
    kind, value = pa.int32(), 1
    for shape in shapes:
        kind, value = around(shape, kind, value)
    return kind, value


def rows_of(shapes: list[str]) -> pa.Table:
    kind, value = nested(shapes)
    return pa.table({"id": ["a"], "c": pa.array([value], kind)})


@given(st.lists(st.sampled_from(list(DEEPEST)), min_size=25, max_size=70))
@settings(max_examples=examples(40))
def test_an_accepted_type_is_read_from_avro_parquet_and_arrow(shapes: list[str]) -> None:
    kind, value = nested(shapes)
    schema = pa.schema([pa.field("c", kind)])
    try:
        check_type_limits(schema)
    except UnsupportedFeatureError:
        return
    text = arrow_to_avro(schema, "r", "n")
    assert avro_to_arrow(text, "here") == schema
    parse_record(text, "here")
    sink = pa.BufferOutputStream()
    rows = pa.table({"c": pa.array([value], kind)})
    pq.write_table(rows, sink, store_schema=False)
    assert pq.read_table(pa.BufferReader(sink.getvalue())).to_pylist() == [{"c": value}]
    sent = pa.BufferOutputStream()
    with pa.ipc.new_stream(sent, rows.schema) as writer:
        writer.write_table(rows)
    assert pa.ipc.open_stream(sent.getvalue()).read_all().to_pylist() == [{"c": value}]


@pytest.mark.slow
@pytest.mark.parametrize("shape", DEEPEST)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_deepest_column_is_written_read_compacted_and_written_again(tmp_path, shape, table_type) -> None:
    rows = rows_of([shape] * (DEEPEST[shape] - 1))
    path = tmp_path / "t"
    for _ in range(2):
        hf.write(rows, path, {**OPTIONS, "hoodie.datasource.write.table.type": table_type})
    if table_type == "MERGE_ON_READ":
        hf.HudiTable.open(path).services.compact()
    assert hf.write(rows, path, OPTIONS).updates == 1
    assert hf.read(path, columns=["id", "c"]).to_pylist() == rows.to_pylist()


@pytest.mark.slow("400-map", "400-struct", "400-list")
@pytest.mark.parametrize("shape", DEEPEST)
@pytest.mark.parametrize("more", [1, 400])
def test_a_deeper_column_is_refused_by_name_before_anything_is_written(tmp_path, shape, more) -> None:
    kind, _ = nested([shape] * (DEEPEST[shape] - 1 + more))
    schema = pa.schema([("id", pa.string()), ("c", kind)])
    with pytest.raises(
        UnsupportedFeatureError, match="Column 'c' has more types inside each other than a read accepts"
    ):
        hf.write(schema.empty_table(), tmp_path / "t", OPTIONS)
    with pytest.raises(UnsupportedFeatureError, match="Column 'c'"):
        hf.HudiTable.create(tmp_path / "t", schema, OPTIONS)
    assert not (tmp_path / "t").exists()
    with pytest.raises(UnsupportedFeatureError, match="Column 'c'"):
        storable_type(kind, "c")


@pytest.mark.slow("s.c")
@pytest.mark.parametrize("name", ["c", "s.c"])
def test_a_column_that_is_too_deep_is_not_added(tmp_path, name) -> None:
    hf.write(pa.table({"id": ["a"], "s": pa.array([{"a": 1}])}), tmp_path / "t", OPTIONS)
    table = hf.HudiTable.open(tmp_path / "t")
    before = table.history()
    levels = DEEPEST["struct"] - name.count(".")
    with pytest.raises(UnsupportedFeatureError, match="more types inside each other"):
        table.alter(hf.AddColumn(name, nested(["struct"] * levels)[0]))
    assert table.history() == before
    table.alter(hf.AddColumn(name, nested(["struct"] * (levels - 1))[0]))
    assert hf.HudiTable.open(tmp_path / "t").count() == 1


def test_wide_values_of_a_fixed_size_are_refused() -> None:
    normalize_input_schema(pa.schema([("c", pa.binary(MAX_UNSTORED))]))
    wide = pa.schema([("c", pa.struct([("f", pa.binary(MAX_UNSTORED + 1))]))])
    with pytest.raises(UnsupportedFeatureError, match="Column 'c' has values of 65,537 bytes each"):
        normalize_input_schema(wide)
    with pytest.raises(UnsupportedFeatureError, match="Column 'c'"):
        arrow_to_avro(wide, "r", "n")


@pytest.mark.slow
def test_as_many_columns_as_are_written_are_read_and_skipped() -> None:
    limit = MAX_PARTS - 10
    schema = pa.schema([pa.field(f"c{number}", pa.int32()) for number in range(limit)])
    text = arrow_to_avro(schema, "r", "n")
    assert len(avro_to_arrow(text, "here")) == limit
    parsed = parse_record(text, "here")
    assert walk_program(tuple(field.type for field in parsed.fields), "others", "here").depth == 0
    with pytest.raises(UnsupportedFeatureError, match="The columns up to 'x9' have more than 100,000"):
        check_type_limits([*schema, *(pa.field(f"x{number}", pa.int32()) for number in range(20))])
