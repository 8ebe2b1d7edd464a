"""Values of statistics: those that real tables hold against their data files, and every type there and back."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import decode_records
from hudi_fast.metadata_table.stat_values import (
    STAT_VALUE,
    ValueType,
    decimals_of_bytes,
    indexed_columns,
    is_indexable,
    minimal_bytes,
    unwrap_values,
    wrap_values,
)
from tests.metadata_table.stored_records import stored_records

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
KINDS = {
    pa.bool_(): (st.booleans(), "BooleanWrapper", 2),
    pa.int32(): (INTS, "IntWrapper", 3),
    pa.int64(): (LONGS, "LongWrapper", 4),
    pa.float32(): (st.floats(width=32, allow_nan=False), "FloatWrapper", 5),
    pa.float64(): (st.floats(allow_nan=False), "DoubleWrapper", 6),
    pa.string(): (st.text(max_size=5), "StringWrapper", 7),
    pa.binary(): (st.binary(max_size=5), "BytesWrapper", 8),
    pa.binary(3): (st.binary(min_size=3, max_size=3), "BytesWrapper", 9),
    pa.date32(): (INTS, "IntWrapper", 12),
    pa.time32("ms"): (st.integers(0, 86_399_999), "IntWrapper", 13),
    pa.time64("us"): (st.integers(0, 86_399_999_999), "LongWrapper", 14),
    pa.timestamp("ms", tz="UTC"): (LONGS, "LongWrapper", 15),
    pa.timestamp("us", tz="UTC"): (LONGS, "LongWrapper", 16),
    pa.timestamp("ms"): (LONGS, "LongWrapper", 18),
    pa.timestamp("us"): (LONGS, "LongWrapper", 19),
}


def arrow(values, kind):
    """Numbers stand for what they are stored as."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(values, kind)


def stored(member, values):
    rows = [None if each is None else {member: {"value": each}} for each in values]
    return pa.array(rows, STAT_VALUE)


def members(wrapped):
    """The one member and value of each row; None for null."""
    rows = wrapped.to_pylist()
    found = [None if row is None else [(k, v["value"]) for k, v in row.items() if v is not None] for row in rows]
    assert all(each is None or len(each) == 1 for each in found)
    return [each and each[0] for each in found]


@pytest.mark.slow("h015_cow_record_index")
@pytest.mark.parametrize(
    "name", ["mor_v6_alltypes", "mor_v8_alltypes", "mor_v9_alltypes", "h015_cow_record_index", "cow_v9_nometa"]
)
def test_statistics_of_real_tables_are_those_of_their_files(golden, name):
    table = golden(name).table
    files = {path.name: path for path in table.rglob("*.parquet")}
    kinds = set()
    for found in stored_records(table):
        if found.partition != "column_stats":
            continue
        rows = decode_records(PartitionKind.COLUMN_STATS, found.keys, found.values, found.schema, found.path)
        for at, row in enumerate(rows.to_pylist()):
            if row["file_name"] not in files or row["deleted"]:
                continue
            column = pq.read_table(files[row["file_name"]], columns=[row["column_name"]], partitioning=None).column(0)
            version = "V1" if row["value_type"] is None else "V2"
            low_high = pc.min_max(column.cast(pa.binary()) if column.type == pa.string() else column)
            assert (row["value_count"], row["null_count"]) == (len(column), column.null_count)
            kinds.add(column.type)
            for side in ("min", "max"):
                expected = pa.array([low_high[side].as_py()], low_high[side].type).cast(column.type)
                held = rows.column(side).chunk(0).slice(at, 1)
                assert unwrap_values(held, row["value_type"], row["value_type_info"], column.type).equals(expected)
                wrapped, value_type, info = wrap_values(expected, version)
                assert wrapped.to_pylist() == held.to_pylist()
                assert (value_type, info) == (row["value_type"], row["value_type_info"])
    assert len(kinds) >= (10 if "alltypes" in name else 4)


def has_unit(number: int, kind: pa.DataType) -> bool:
    """Whether a number of V1 can only be one of the column's unit, whatever the file's label says."""
    return abs(number) > 253_402_300_799_999 if kind.unit == "us" else kind.tz is not None


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, 253_402_300_800_000, -253_402_300_800_000])
def test_numbers_that_only_microseconds_can_be_come_back_from_version_1(number):
    values = pa.array([number], pa.int64()).cast(pa.timestamp("us"))
    wrapped, value_type, info = wrap_values(values, "V1")
    assert unwrap_values(wrapped, value_type, info, values.type).equals(values)


@given(data=st.data(), kind=st.sampled_from(list(KINDS)), version=st.sampled_from(["V1", "V2"]))
def test_values_of_every_type_come_back(data, kind, version):
    strategy, member, ordinal = KINDS[kind]
    plain = data.draw(st.lists(st.none() | strategy, max_size=6))
    values = arrow(plain, kind).slice(data.draw(st.integers(0, 2)))
    wrapped, value_type, info = wrap_values(values, version)
    wrapped.validate(full=True)
    assert wrapped.type == STAT_VALUE
    assert (value_type, info) == ((None, None) if version == "V1" else (ordinal, None))
    if version == "V1" and kind == pa.date32():
        member = "DateWrapper"
    assert {each and each[0] for each in members(wrapped)} <= {member, None}
    back = unwrap_values(wrapped, value_type, info, kind)
    back.validate(full=True)
    if version == "V1" and pa.types.is_timestamp(kind):
        plain_numbers = values.cast(pa.int64()).to_pylist()
        sure = [number is not None and has_unit(number, kind) for number in plain_numbers]
        values = pc.if_else(pa.array(sure, pa.bool_()), values, None)
    assert back.equals(values)
    assert unwrap_values(wrapped.slice(1), value_type, info, kind).equals(values.slice(1))


@st.composite
def decimal_columns(draw, version):
    scale = draw(st.integers(0, 15 if version == "V1" else 38))
    precision = draw(st.integers(max(scale, 1), 38 if version == "V2" else 15 + scale))
    limit = 10**precision - 1
    numbers = st.integers(-limit, limit) | st.integers(-min(limit, 300), min(limit, 300))
    unscaled = draw(st.lists(st.none() | numbers, max_size=6))
    return unscaled, decimals(unscaled, pa.decimal128(precision, scale))


def decimals(unscaled, kind):
    raw = [None if each is None else Decimal(f"{each}e-{kind.scale}") for each in unscaled]
    return pa.array(raw, kind)


@given(column=decimal_columns("V1"))
def test_decimals_of_v1_are_rescaled_and_come_back(column):
    _, values = column
    wrapped, value_type, info = wrap_values(values, "V1")
    assert (value_type, info) == (None, None)
    assert [each and each[1] for each in members(wrapped)] == values.to_pylist()
    assert unwrap_values(wrapped, None, None, values.type).equals(values)
    # what a compaction of 0.15 makes of it
    raw = [None if each is None else int(each.scaleb(15)) for each in values.to_pylist()]
    old = stored("BytesWrapper", [None if n is None else n.to_bytes(16, "big", signed=True) for n in raw])
    assert unwrap_values(old, None, None, values.type).equals(values)


@given(column=decimal_columns("V2"), skipped=st.integers(0, 2))
def test_decimals_of_v2_take_as_few_bytes_as_they_can(column, skipped):
    unscaled, values = column
    unscaled, values = unscaled[skipped:], values.slice(skipped)
    wrapped, value_type, info = wrap_values(values, "V2")
    assert (value_type, info) == (10, f"{values.type.precision},{values.type.scale}")
    sizes = [None if n is None else (n if n >= 0 else ~n).bit_length() // 8 + 1 for n in unscaled]
    expected = [
        None if n is None else ("BytesWrapper", n.to_bytes(size, "big", signed=True))
        for n, size in zip(unscaled, sizes, strict=True)
    ]
    assert members(wrapped) == expected
    wrapped.validate(full=True)
    assert unwrap_values(wrapped, value_type, info, values.type).equals(values)


def test_bytes_that_are_no_such_decimal_are_unknown():
    raw = [b"", b"\x00" * 17, None, b"\x63", b"\x64", b"\x9c", b"\x9d", b"\x7f" * 16, b"\x00\x63"]
    found = decimals_of_bytes(pa.array(raw, pa.binary()), 2, 1)
    found.validate(full=True)
    known = {3: Decimal("9.9"), 6: Decimal("-9.9"), 8: Decimal("9.9")}
    assert found.to_pylist() == [known.get(i) for i in range(len(raw))]
    assert minimal_bytes(pa.array([], pa.decimal128(5, 2))).to_pylist() == []


@pytest.mark.parametrize("moment", ["1969-07-20", "2024-02-29 12:00", "9999-12-31"])
def test_milliseconds_under_a_column_of_microseconds_are_unknown(moment):
    number = pa.scalar(moment).cast(pa.timestamp("ms")).value
    for zone in (None, "UTC"):
        found = unwrap_values(stored("LongWrapper", [number]), None, None, pa.timestamp("us", zone))
        assert found.to_pylist() == [None]
    found = unwrap_values(stored("LongWrapper", [number]), None, None, pa.timestamp("ms", "UTC"))
    assert found.view(pa.int64()).to_pylist() == [number]


@pytest.mark.parametrize("moment", ["1950-01-01", "2024-02-29 12:00", "9999-12-31"])
def test_microseconds_that_no_milliseconds_can_be_are_known_and_without_a_zone_fit_no_column_of_milliseconds(moment):
    number = pa.scalar(moment).cast(pa.timestamp("us")).value
    for zone in (None, "UTC"):
        found = unwrap_values(stored("LongWrapper", [number]), None, None, pa.timestamp("us", zone))
        assert found.view(pa.int64()).to_pylist() == [number]
    assert unwrap_values(stored("LongWrapper", [number]), None, None, pa.timestamp("ms")).to_pylist() == [None]


def test_bytes_that_hudi_stored_are_its_decimals():
    held = stored("BytesWrapper", [b"'\x11", b"\x01"])
    found = unwrap_values(held, 10, "18,4", pa.decimal128(18, 4))
    assert found.to_pylist() == [Decimal("1.0001"), Decimal("0.0001")]


@pytest.mark.parametrize(
    ("member", "value", "kind", "expected"),
    [
        ("DateWrapper", 3, pa.date32(), datetime.date(1970, 1, 4)),
        ("LocalDateWrapper", 3, pa.date32(), datetime.date(1970, 1, 4)),
        ("IntWrapper", 3, pa.date32(), datetime.date(1970, 1, 4)),
        ("TimestampMicrosWrapper", 5_000, pa.timestamp("ms", tz="UTC"), None),  # or milliseconds
        ("TimestampMicrosWrapper", 5_000, pa.timestamp("us"), 5_000),
        ("TimeMicrosWrapper", 5_000, pa.time64("us"), 5_000),
        ("TimeMicrosWrapper", 5_000, pa.time32("ms"), 5),
        ("DecimalWrapper", Decimal("1.25"), pa.decimal128(9, 2), Decimal("1.25")),
        ("DecimalWrapper", Decimal("1.255"), pa.decimal128(9, 2), None),
        ("StringWrapper", "ü", pa.binary(), "ü".encode()),
        ("BytesWrapper", b"\xff", pa.string(), None),
        ("BytesWrapper", b"abc", pa.binary(2), None),
        ("IntWrapper", 7, pa.int64(), 7),
        ("IntWrapper", 7, pa.float64(), 7.0),
        ("LongWrapper", 2**53 + 1, pa.float64(), float(2**53)),
        ("IntWrapper", 7, pa.string(), None),
        ("LongWrapper", 7, pa.int32(), None),
        ("FloatWrapper", 1.5, pa.float64(), None),
        ("DateWrapper", 3, pa.int32(), None),
        ("BooleanWrapper", True, pa.int32(), None),
    ],
)
def test_v1_is_read_by_the_columns_type(member, value, kind, expected):
    if pa.types.is_temporal(kind) and isinstance(expected, int):
        expected = arrow([expected], kind)[0].as_py()
    if member == "TimeMicrosWrapper":
        held = pa.array([{member: {"value": datetime.time(0, 0, 0, value)}}], STAT_VALUE)
    else:
        held = stored(member, [value])
    assert unwrap_values(held, None, None, kind).to_pylist() == [expected]


def test_v1_may_hold_several_wrappers_in_one_column():
    rows = [{"DateWrapper": {"value": 1}}, None, {"IntWrapper": {"value": 2}}, {"StringWrapper": {"value": "x"}}]
    found = unwrap_values(pa.array(rows, STAT_VALUE), None, None, pa.date32())
    assert found.to_pylist() == [datetime.date(1970, 1, 2), None, datetime.date(1970, 1, 3), None]


def test_values_below_a_null_are_unknown():
    hidden = pa.StructArray.from_arrays(
        [stored("IntWrapper", [1, 2]).field(i) for i in range(STAT_VALUE.num_fields)],
        fields=list(STAT_VALUE),
        mask=pa.array([False, True]),
    )
    assert unwrap_values(hidden, None, None, pa.int32()).to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("held", "value_type", "info", "kind", "expected"),
    [
        (stored("IntWrapper", [7]), ValueType.INT, None, pa.int64(), 7),
        (stored("IntWrapper", [7]), ValueType.INT, None, pa.string(), None),
        (stored("IntWrapper", [7]), ValueType.DATE, None, pa.int32(), None),
        (stored("FloatWrapper", [1.5]), ValueType.FLOAT, None, pa.float64(), None),
        (stored("StringWrapper", ["x"]), ValueType.UUID, None, pa.string(), "x"),
        (stored("BytesWrapper", [b"abc"]), ValueType.FIXED, None, pa.binary(3), b"abc"),
        (stored("BytesWrapper", [b"abc"]), ValueType.FIXED, None, pa.binary(), b"abc"),
        (stored("LongWrapper", [7]), ValueType.TIMESTAMP_MILLIS, None, pa.timestamp("us", tz="UTC"), 7_000),
        (stored("LongWrapper", [7]), ValueType.LOCAL_TIMESTAMP_MICROS, None, pa.timestamp("ms"), None),
        (stored("LongWrapper", [7]), ValueType.TIMESTAMP_NANOS, None, pa.timestamp("us"), None),
        (stored("LongWrapper", [7]), ValueType.TIME_MICROS, None, pa.time64("us"), 7),
        (stored("LongWrapper", [7]), ValueType.INT, None, pa.int64(), None),
        (stored("LongWrapper", [7]), 99, None, pa.int64(), None),
        (stored("LongWrapper", [7]), ValueType.NULL, None, pa.int64(), None),
        (stored("BytesWrapper", [b"\x07"]), ValueType.DECIMAL, "3,1", pa.decimal128(5, 2), Decimal("0.70")),
        (stored("BytesWrapper", [b"\x07"]), ValueType.DECIMAL, "3,1", pa.decimal128(5, 0), None),
        (stored("BytesWrapper", [b"\x07"]), ValueType.DECIMAL, "40,1", pa.decimal128(5, 2), None),
        (stored("BytesWrapper", [b"\x07"]), ValueType.DECIMAL, None, pa.decimal128(5, 2), None),
        (stored("LongWrapper", [7]), ValueType.DECIMAL, "3,1", pa.decimal128(5, 2), None),
    ],
)
def test_v2_is_read_by_the_type_beside_it(held, value_type, info, kind, expected):
    if pa.types.is_temporal(kind) and isinstance(expected, int):
        expected = arrow([expected], kind)[0].as_py()
    assert unwrap_values(held, value_type, info, kind).to_pylist() == [expected]


def test_one_value_that_does_not_fit_leaves_the_others():
    held = stored("LongWrapper", [1_000, 1_001, None, 2_000])
    found = unwrap_values(held, ValueType.TIME_MICROS, None, pa.time32("ms"))
    assert found.cast(pa.int32()).to_pylist() == [1, None, None, 2]


def test_bounds_in_microseconds_of_a_column_of_milliseconds_are_unknown():
    held = stored("LongWrapper", [1_000, None])
    found = unwrap_values(held, ValueType.TIMESTAMP_MICROS, None, pa.timestamp("ms", tz="UTC"))
    assert found.to_pylist() == [None, None]


# ---- which columns


def test_types_with_statistics():
    for kind in KINDS:
        assert is_indexable(pa.field("c", kind), "V1")
        assert is_indexable(pa.field("c", kind), "V2")
    for kind in (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.struct([("a", pa.int32())]), pa.null()):
        assert not is_indexable(pa.field("c", kind), "V1")
        assert not is_indexable(pa.field("c", kind), "V2")
        with pytest.raises(UnsupportedFeatureError, match="have no statistics of version V2"):
            wrap_values(pa.nulls(1, kind), "V2")
    fits = {
        (15, 0): True,
        (16, 0): False,
        (30, 15): True,
        (20, 5): True,
        (23, 1): False,
        (38, 10): False,
        (16, 16): False,
    }
    for (precision, scale), expected in fits.items():
        assert is_indexable(pa.field("c", pa.decimal128(precision, scale)), "V1") is expected
        assert is_indexable(pa.field("c", pa.decimal128(precision, scale)), "V2")
    with pytest.raises(UnsupportedFeatureError, match="version V1"):
        wrap_values(pa.nulls(1, pa.decimal128(38, 10)), "V1")


SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_operation", pa.string()),
        ("a", pa.int32()),
        ("l", pa.list_(pa.field("element", pa.struct([("x", pa.int64())])))),
        ("d", pa.decimal128(38, 10)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("b", pa.string()), ("c", pa.struct([("e", pa.date32())]))])),
        ("z", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
META = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]


def test_columns_are_indexed_in_hudis_order():
    assert indexed_columns(SCHEMA, "V2", True) == [*META, "a", "d", "z", "_hoodie_is_deleted"]
    assert indexed_columns(SCHEMA, "V1", False) == ["a", "z", "_hoodie_is_deleted"]
    assert indexed_columns(SCHEMA, "V2", True, max_columns=2) == [*META, "a", "d"]
    wanted = ("s.c.e", "z", "s", "nowhere", "l.list.element.x", "m.key_value.value", "z", "d", "_hoodie_commit_time")
    known = ["s.c.e", "z", "l.list.element.x", "m.key_value.value"]
    assert indexed_columns(SCHEMA, "V2", True, wanted) == [*META, *known, "d"]
    assert indexed_columns(SCHEMA, "V1", False, wanted, max_columns=1) == known
