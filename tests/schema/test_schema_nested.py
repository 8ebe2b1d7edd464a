"""Conversion of lists, maps and structs: only visible values count, and errors name the row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.formats.column_limits import BadValueError
from hudi_fast.schema.conform import (
    Column,
    all_null,
    convert_encoded,
    convert_list,
    convert_map,
    convert_struct,
    fill_column,
)


def widened(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.int64())


LONG = Column("c.e", pa.int64(), False, 0, widened)
REQUIRED = Column("c.e", pa.int64(), True, 0, widened)
LONGS = pa.list_(pa.int64())
LISTS = pa.array([[1, 2], None, [], [3, None]], pa.list_(pa.int32()))


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_view(pa.int32())])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_lists_of_every_layout_keep_their_elements(kind: pa.DataType, start: int) -> None:
    values = pa.array(LISTS.to_pylist(), kind).slice(start)
    made = convert_list(values, LONG, LONGS)
    made.validate(full=True)
    assert made.type == LONGS
    assert made.to_pylist() == LISTS.to_pylist()[start:]


def test_a_null_element_is_an_error_with_the_row_of_its_list() -> None:
    with pytest.raises(BadValueError) as raised:
        convert_list(LISTS, REQUIRED, LONGS)
    assert (raised.value.path, raised.value.row) == ("c.e", 3)
    assert convert_list(LISTS.slice(0, 3), REQUIRED, LONGS).to_pylist() == [[1, 2], None, []]


def test_elements_below_a_null_list_cannot_fail() -> None:
    hidden = pa.ListArray.from_arrays([0, 1, 2], pa.array([None, 7], pa.int32()), mask=pa.array([True, False]))
    assert convert_list(hidden, REQUIRED, LONGS).to_pylist() == [None, [7]]


def test_maps_convert_keys_and_values() -> None:
    values = pa.array([[("a", 1)], None, [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int32()))
    target = pa.map_(pa.string(), pa.int64())
    key = Column("c.key", pa.string(), True, 0, None)
    for start in (0, 1, 2):
        made = convert_map(values.slice(start), key, LONG, target)
        made.validate(full=True)
        assert made.to_pylist() == values.to_pylist()[start:]
    with pytest.raises(BadValueError) as raised:
        convert_map(values, key, REQUIRED, target)
    assert raised.value.row == 2


def test_structs_take_fields_by_position_and_fill_new_ones_with_nulls() -> None:
    values = pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}], pa.struct({"a": pa.int32(), "b": pa.string()}))
    target = pa.struct({"b": pa.string(), "n": pa.date32(), "a": pa.int64()})
    columns = [
        Column("c.b", pa.string(), False, 1, None),
        Column("c.n", pa.date32(), False, -1, None),
        Column("c.a", pa.int64(), False, 0, widened),
    ]
    made = convert_struct(values, columns, target)
    made.validate(full=True)
    assert made.to_pylist() == [{"b": "x", "n": None, "a": 1}, None, {"b": "y", "n": None, "a": None}]
    assert convert_struct(values.slice(1, 0), columns, target).to_pylist() == []


def test_a_null_in_a_required_field_is_an_error_unless_its_struct_is_null() -> None:
    values = pa.array([None, {"a": 1}, {"a": None}], pa.struct({"a": pa.int32()}))
    target = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    column = Column("c.a", pa.int64(), True, 0, widened)
    assert convert_struct(values.slice(0, 2), [column], target).to_pylist() == [None, {"a": 1}]
    with pytest.raises(BadValueError) as raised:
        convert_struct(values, [column], target)
    assert (raised.value.path, raised.value.row) == ("c.a", 2)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1, 0, None], pa.array(["a", "b"], pa.string_view())),
        pc.run_end_encode(pa.array(["a", "b", "a", None])),
    ],
    ids=["dictionary", "dictionary of views", "runs"],
)
def test_encoded_arrays_are_decoded_and_converted(values: pa.Array) -> None:
    assert convert_encoded(values, None).to_pylist() == ["a", "b", "a", None]
    assert convert_encoded(values, pc.utf8_upper).to_pylist() == ["A", "B", "A", None]


def test_a_column_without_a_source_is_null() -> None:
    assert fill_column(Column("c", pa.int64(), False, -1, None), None, 2).to_pylist() == [None, None]
    assert all_null(pa.nulls(3), pa.string()) == pa.nulls(3, pa.string())


def test_a_value_that_does_not_fit_names_column_and_type() -> None:
    small = Column("c", pa.int8(), False, 0, lambda values: pc.cast(values, pa.int8()))
    with pytest.raises(BadValueError) as raised:
        fill_column(small, pa.array([1, 1000]), 2)
    assert raised.value.path == "c"
    assert "int8" in raised.value.reason
