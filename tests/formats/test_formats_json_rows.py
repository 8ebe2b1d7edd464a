from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.json_rows import JsonStyle, json_rows
from tests.naive import json_text as naive

ROW, AVRO = JsonStyle.ROW, JsonStyle.AVRO
POINT = pa.struct({"x": pa.int32(), "label": pa.string()})


def texts(columns: dict[str, pa.Array], style: JsonStyle) -> list[str]:
    return json_rows(pa.record_batch(columns), style).to_pylist()


def one(value: object, kind: pa.DataType, style: JsonStyle) -> str:
    """The text of a value that is a row's only one."""
    (text,) = texts({"v": pa.array([value], kind)}, style)
    return text.removeprefix('{"v":').removeprefix(" ").removesuffix("}")


def test_members_are_in_the_order_of_the_schema_and_nulls_are_left_out_of_rows_only():
    columns = {"z": pa.array([1, None]), "a": pa.array(["x", None]), "m": pa.array([None, True])}
    assert texts(columns, ROW) == ['{"z":1,"a":"x"}', '{"m":true}']
    assert texts(columns, AVRO) == ['{"z": 1, "a": "x", "m": null}', '{"z": null, "a": null, "m": true}']


def test_a_row_without_members_is_an_empty_object():
    assert texts({"a": pa.nulls(2, pa.int32())}, ROW) == ["{}", "{}"]
    assert json_rows(pa.array([{}, None], pa.struct([])), AVRO).to_pylist() == ["{}", None]


def test_a_null_struct_has_no_text():
    rows = pa.array([{"x": 1, "label": None}, None, {"x": None, "label": "é"}], POINT)
    assert json_rows(rows, ROW).to_pylist() == ['{"x":1}', None, '{"label":"é"}']
    assert json_rows(rows.slice(1), AVRO).to_pylist() == [None, '{"x": null, "label": "é"}']


@pytest.mark.parametrize(
    ("value", "kind", "row", "avro"),
    [
        (dt.date(1965, 5, 1), pa.date32(), "-1706", "-1706"),
        (dt.datetime(2024, 1, 1), pa.timestamp("us", "UTC"), "1704067200000000", "1704067200000000"),
        (dt.datetime(2024, 1, 1), pa.timestamp("ms"), "1704067200000000", "1704067200000"),
        (dt.time(0, 0, 1), pa.time32("ms"), "1000", "1000"),
        (dt.time(0, 0, 1), pa.time64("us"), "1000000", "1000000"),
        (2**63 - 1, pa.int64(), "9223372036854775807", "9223372036854775807"),
        (b"\x00\xff", pa.binary(), '"AP8="', '"\\u0000ÿ"'),
        (b"\x00\xff", pa.binary(2), '"AP8="', "[0, -1]"),
        ("ü€\x7f", pa.string(), '"ü€\x7f"', '"ü\\u20AC\\u007F"'),
        ("line\n\ttab\x00", pa.string(), '"line\\n\\ttab\\u0000"', '"line\\n\\ttab\\u0000"'),
        (5e-324, pa.float64(), "4.9E-324", "4.9E-324"),
        (1e-45, pa.float32(), "1.4E-45", "1.4E-45"),
        (3e38, pa.float32(), "3.0E38", "3.0E38"),
        (float("-inf"), pa.float64(), '"-Infinity"', '"-Infinity"'),
        ([[1, 2], [], None], pa.list_(pa.list_(pa.int64())), "[[1,2],[],null]", "[[1, 2], [], null]"),
        ([{"x": 1, "label": None}, None], pa.list_(POINT), '[{"x":1},null]', '[{"x": 1, "label": null}, null]'),
        ([("b", 1), ("a", None)], pa.map_(pa.string(), pa.int32()), '{"b":1}', '{"b": 1, "a": null}'),
        ([], pa.map_(pa.string(), pa.int32()), "{}", "{}"),
    ],
)
def test_values_are_spelled_as_hudi_spells_them(value, kind, row, avro):
    assert one(value, kind, ROW) == row
    assert one(value, kind, AVRO) == avro


def test_decimals_of_rows_are_numbers_and_of_records_their_stored_bytes():
    assert one(Decimal("-12.50"), pa.decimal128(5, 2), ROW) == "-12.50"
    with pytest.raises(UnsupportedFeatureError, match=r"decimal128\(5, 2\)"):
        one(Decimal("1.50"), pa.decimal128(5, 2), AVRO)


def test_dictionaries_and_slices_are_read_as_their_values():
    column = pa.array(["b", "a", None, "b"]).dictionary_encode()
    lists = pa.array([[1], [2, 3], None, []])
    batch = pa.record_batch({"d": column, "l": lists}).slice(1, 3)
    assert json_rows(batch, ROW).to_pylist() == ['{"d":"a","l":[2,3]}', "{}", '{"d":"b","l":[]}']


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.lists(st.floats(), min_size=1, max_size=20))
def test_every_number_is_the_shortest_that_means_the_same(singles, doubles):
    for values, kind in ((singles, "float"), (doubles, "double")):
        column = pa.array(np.array(values, np.float32 if kind == "float" else np.float64))
        expected = [f'{{"n":{naive.value(value, False, kind)}}}' for value in column.to_pylist()]
        assert texts({"n": column}, ROW) == expected


VALUES = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "t": st.none() | st.text(max_size=8),
        "b": st.none() | st.binary(max_size=6),
        "f": st.none() | st.booleans(),
        "s": st.none()
        | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "label": st.none() | st.text(max_size=3)}),
        "l": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
    }
)
KINDS = pa.schema(
    {"i": pa.int64(), "t": pa.string(), "b": pa.binary(), "f": pa.bool_(), "s": POINT, "l": pa.list_(pa.string())}
)


@given(st.lists(VALUES, max_size=12), st.integers(0, 3))
def test_rows_of_any_values_are_what_the_naive_twin_makes_of_them(rows, skipped):
    (batch,) = pa.Table.from_pylist(rows, KINDS).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], KINDS)
    ]
    batch = batch.slice(min(skipped, batch.num_rows))
    for style in JsonStyle:
        found = json_rows(batch, style).to_pylist()
        assert found == [naive.value(row, style is AVRO) for row in batch.to_pylist()]
        for text in found:
            json.loads(text)
