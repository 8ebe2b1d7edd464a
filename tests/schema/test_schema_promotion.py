from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_fast.schema.cast import can_promote, is_projection, is_value_checked

PLAIN = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "time": pa.time64("us"),
    "decimal": pa.decimal128(10, 2),
    "fixed": pa.binary(4),
}
WIDER = {
    "int": {"long", "float", "double", "string"},
    "long": {"float", "double", "string", "timestamp"},
    "float": {"double", "string"},
    "double": {"string"},
    "string": {"bytes"},
    "bytes": {"string"},
}


@pytest.mark.slow("time-date")
@pytest.mark.parametrize("source", PLAIN)
@pytest.mark.parametrize("target", PLAIN)
def test_plain_types_are_promoted_as_in_hudi(source, target):
    assert can_promote(PLAIN[source], PLAIN[target]) is (source == target or target in WIDER.get(source, set()))


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ((10, 2), (12, 2), True),
        ((10, 2), (12, 4), True),
        ((10, 2), (10, 4), False),
        ((10, 2), (11, 4), False),
        ((10, 2), (9, 2), False),
        ((10, 2), (20, 1), False),
    ],
)
def test_a_decimal_needs_room_on_both_sides_of_the_point(source, target, fits):
    assert can_promote(pa.decimal128(*source), pa.decimal128(*target)) is fits


def struct(*fields):
    return pa.struct([pa.field(*each) for each in fields])


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), False),
        (pa.list_(pa.field("element", pa.int32(), False)), pa.list_(pa.int32()), True),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32(), False)), False),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), True),
        (pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float32()), False),
        (struct(("a", pa.int32())), struct(("b", pa.string()), ("a", pa.int64())), True),
        (struct(("a", pa.int32())), struct(("b", pa.string(), False), ("a", pa.int32())), False),
        (struct(("a", pa.int32()), ("b", pa.string())), struct(("a", pa.int32())), False),
        (struct(("a", pa.int32())), pa.list_(pa.int32()), False),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), False),
        (pa.int32(), pa.list_(pa.int32()), False),
    ],
)
def test_nested_types_are_promoted_by_their_parts(source, target, fits):
    assert can_promote(source, target) is fits


def test_timestamps_and_times_change_unit_only_with_a_check_of_each_value():
    assert is_value_checked(pa.timestamp("us", tz="UTC"), pa.timestamp("ms"))
    assert is_value_checked(pa.time64("us"), pa.time32("ms"))
    assert not can_promote(pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC"))
    assert not is_value_checked(pa.timestamp("us"), pa.int64())
    assert not is_value_checked(pa.timestamp("us"), pa.time64("us"))


@pytest.mark.parametrize(
    ("incoming", "fits"),
    [
        ([("id", pa.string()), ("n", pa.int32())], True),
        ([("n", pa.int64()), ("id", pa.string())], True),
        ([("id", pa.string())], True),
        ([("n", pa.int32())], False),
        ([("id", pa.string()), ("n", pa.float64())], False),
        ([("id", pa.string()), ("more", pa.int32())], False),
    ],
)
def test_a_projection_adds_nothing_and_lacks_only_nullable_columns(incoming, fits):
    table = pa.schema([pa.field("id", pa.string(), nullable=False), ("n", pa.int64())])
    schema = pa.schema([pa.field(name, kind, nullable=name != "id") for name, kind in incoming])
    assert is_projection(schema, table) is fits
