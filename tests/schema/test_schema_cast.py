from __future__ import annotations

import math
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_fast.schema.cast import java_number_text, leaf_cast


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-12.5, "-12.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (-12345678.5, "-1.23456785E7"),
        (1e10, "1.0E10"),
        (1e16, "1.0E16"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (1e-5, "1.0E-5"),
        (1.5e-10, "1.5E-10"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (None, None),
    ],
)
def test_the_text_of_a_double_is_javas(value, text):
    assert java_number_text(pa.array([value], pa.float64())).to_pylist() == [text]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.1, "1.1"), (16777216.0, "1.6777216E7"), (3.4028235e38, "3.4028235E38"), (1e-4, "1.0E-4"), (1e-45, "1.4E-45")],
)
def test_the_text_of_a_float_has_the_digits_of_a_float(value, text):
    assert java_number_text(pa.array([value], pa.float32())).to_pylist() == [text]


@given(
    st.tuples(st.just(pa.float32()), st.lists(st.floats(width=32), max_size=8))
    | st.tuples(st.just(pa.float64()), st.lists(st.floats(), max_size=8))
)
@example((pa.float64(), [1e-3, 1e7, 9999999.999999998]))
def test_the_text_gives_the_number_back_in_javas_form(column):
    kind, values = column
    numbers = pa.array(values, kind)
    for number, text in zip(numbers.to_pylist(), java_number_text(numbers).to_pylist(), strict=True):
        if math.isnan(number):
            assert text == "NaN"
            continue
        assert kind.to_pandas_dtype()(text.replace("Infinity", "inf")) == number
        plain = number == 0 or 1e-3 <= abs(number) < 1e7
        form = r"-?\d+\.\d+" if plain else r"-?[1-9]\.\d+E-?\d+|-?Infinity"
        assert re.fullmatch(form, text)


def cast(values, source, target):
    return leaf_cast(source, target, "c")(pa.array(values, source)).to_pylist()


@pytest.mark.parametrize(
    ("source", "target", "given", "expected"),
    [
        (pa.int32(), pa.int64(), [1, None, -(2**31)], [1, None, -(2**31)]),
        (pa.int32(), pa.float32(), [2**24 + 1], [2.0**24]),
        (pa.int64(), pa.float64(), [2**53 + 1], [2.0**53]),
        (pa.int64(), pa.string(), [-7, None], ["-7", None]),
        (pa.int8(), pa.string(), [-7], ["-7"]),
        (pa.float32(), pa.float64(), [1.1, math.inf, -0.0, None], [1.1, math.inf, -0.0, None]),
        (pa.float16(), pa.float64(), [1.5], [1.5]),
        (pa.float64(), pa.string(), [1.0, 1e10, None], ["1.0", "1.0E10", None]),
        (pa.string(), pa.binary(), ["ä", None], ["ä".encode(), None]),
        (pa.large_string(), pa.binary(), ["ä"], ["ä".encode()]),
        (pa.binary(), pa.string(), ["ä".encode()], ["ä"]),
        (pa.decimal128(5, 2), pa.decimal128(9, 4), [Decimal("1.25")], [Decimal("1.2500")]),
        (pa.decimal256(5, 2), pa.decimal128(9, 4), [Decimal("1.25")], [Decimal("1.2500")]),
        (pa.uint32(), pa.int64(), [2**32 - 1], [2**32 - 1]),
    ],
)
def test_values_are_promoted_as_java_does_it(source, target, given, expected):
    assert cast(given, source, target) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_the_point_in_time_stays_between_units_and_zones(unit, zone):
    source, target = pa.timestamp(unit, tz=zone), pa.timestamp("us", tz="UTC")
    seconds = 1_700_000_000
    number = pa.array([seconds]).cast(pa.timestamp("s")).cast(pa.timestamp(unit)).cast(pa.int64())
    made = leaf_cast(source, target, "c")(number.cast(source))
    assert made.cast(pa.int64()).to_pylist() == [seconds * 1_000_000]


def test_a_long_becomes_the_timestamp_with_that_number():
    for target in (pa.timestamp("ms"), pa.timestamp("us", tz="UTC")):
        assert leaf_cast(pa.int64(), target, "c")(pa.array([5])).cast(pa.int64()).to_pylist() == [5]


@pytest.mark.parametrize(
    ("source", "target", "number"),
    [
        (pa.timestamp("ns"), pa.timestamp("us"), 1),
        (pa.timestamp("us"), pa.timestamp("ms", tz="UTC"), 1),
        (pa.timestamp("s"), pa.timestamp("us"), 2**60),
        (pa.time64("ns"), pa.time64("us"), 1),
        (pa.time64("us"), pa.time32("ms"), 1),
    ],
)
def test_a_time_that_would_lose_digits_is_refused(source, target, number):
    with pytest.raises(pa.ArrowInvalid):
        leaf_cast(source, target, "c")(pa.array([number]).cast(source))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.uint32(), pa.int32()),
        (pa.bool_(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.date32(), pa.string()),
        (pa.date32(), pa.timestamp("us")),
        (pa.decimal128(9, 4), pa.decimal128(9, 5)),
        (pa.string(), pa.int32()),
        (pa.timestamp("us"), pa.int64()),
    ],
)
def test_there_is_no_way_against_the_matrix(source, target):
    assert leaf_cast(source, target, "c") is None
