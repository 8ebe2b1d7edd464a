"""Text of values; expected texts are Java's, printed by Apache Hudi 1.2.0 where not computed by the slow twin."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.value_text import to_text
from hudi_fast.keys.zones import zone
from tests.naive import key_text as naive
from tests.support.examples import examples

JAVA_DOUBLES = {
    1e10: "1.0E10",
    1e-5: "1.0E-5",
    0.001: "0.001",
    1e7: "1.0E7",
    9999999.0: "9999999.0",
    -0.0: "-0.0",
    4.9e-324: "4.9E-324",
    2e-323: "2.0E-323",
    1.7976931348623157e308: "1.7976931348623157E308",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    0.002: "0.002",
    123456.789: "123456.789",
    9.999e-4: "9.999E-4",
    -1.5: "-1.5",
    100.0: "100.0",
    float("inf"): "Infinity",
    float("-inf"): "-Infinity",
}


def text(values, kind, **options):
    return to_text(pa.array(values, kind), "f", **options).to_pylist()


def test_doubles_read_like_javas():
    assert text(list(JAVA_DOUBLES), pa.float64()) == list(JAVA_DOUBLES.values())
    assert text([float("nan"), None, 0.0], pa.float64()) == ["NaN", None, "0.0"]


def test_floats_read_like_javas():
    values = [1e10, 1e-5, 0.001, 1e7, 9999999.0, 1e23, 123456.789, 1.4e-45, 0.1, 16777216.0, 3.4028235e38]
    expected = ["1.0E10", "1.0E-5", "0.001", "1.0E7", "9999999.0", "1.0E23", "123456.79", "1.4E-45", "0.1"]
    assert text(values, pa.float32()) == [*expected, "1.6777216E7", "3.4028235E38"]


@settings(max_examples=examples(300))
@given(st.lists(st.floats(), max_size=5))
def test_any_double_reads_like_the_slow_twin(values):
    assert text(values, pa.float64()) == [naive.java_float(value) for value in values]


@settings(max_examples=examples(200))
@given(st.lists(st.floats(width=32), max_size=5))
def test_any_float_reads_like_the_slow_twin(values):
    assert text(values, pa.float32()) == [naive.java_float(value, single=True) for value in values]


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18))
def test_decimals_read_like_javas_big_decimal(unscaled, scale):
    value = Decimal(unscaled).scaleb(-scale)
    assert text([value, None], pa.decimal128(38, scale)) == [naive.java_decimal(unscaled, scale), None]


def test_small_decimals_have_an_exponent():
    values = [Decimal("0.0000001"), Decimal(0), Decimal("67890.12345")]
    assert text(values, pa.decimal128(20, 7)) == ["1E-7", "0E-7", "67890.1234500"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8()])
def test_integers_read_as_decimal_numbers(kind):
    assert text([0, 7, None, 127], kind) == ["0", "7", None, "127"]


def test_booleans_and_dates():
    assert text([True, False, None], pa.bool_()) == ["true", "false", None]
    days = [date(1969, 12, 3), date(2024, 1, 2), None, date(1, 1, 1)]
    assert text(days, pa.date32()) == ["1969-12-03", "2024-01-02", None, "0001-01-01"]
    assert text([date(2024, 1, 2)], pa.date64()) == ["2024-01-02"]


def test_dates_without_a_four_digit_year_are_refused():
    with pytest.raises(InvalidDataError, match="'f' holds a date outside"):
        text([2_932_897], pa.date32())


def test_timestamps_are_the_stored_number():
    assert text([1483023240000000, -1500], pa.timestamp("us", "UTC")) == ["1483023240000000", "-1500"]
    assert text([1483023240000, None], pa.timestamp("ms")) == ["1483023240000", None]
    assert text([1483023240000000999, -1, None], pa.timestamp("ns")) == ["1483023240000000", "-1", None]
    assert text([1483023240], pa.timestamp("s", "UTC")) == ["1483023240000000"]


def test_consistent_logical_timestamps_are_date_and_time_in_the_zone():
    values = [1483023240000000, 1483023240120000, -1500, -1, 1483023240100999, None]
    tokyo = {"consistent_logical_timestamp": True, "where": zone("Asia/Tokyo")}
    assert text(values, pa.timestamp("us", "UTC"), **tokyo) == [
        "2016-12-29 23:54:00.0",
        "2016-12-29 23:54:00.12",
        "1970-01-01 08:59:59.999",
        "1970-01-01 09:00:00.0",
        "2016-12-29 23:54:00.1",
        None,
    ]
    # Without a zone it is a local timestamp, which the option leaves alone.
    assert text(values[:1], pa.timestamp("us"), **tokyo) == ["1483023240000000"]
    assert text([1483023240120], pa.timestamp("ms", "UTC"), **tokyo) == ["2016-12-29 23:54:00.12"]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_timestamps_without_a_settled_text_are_refused(unit, value):
    with pytest.raises(UnsupportedFeatureError, match="before 1582-10-15 or after 9998"):
        text([value], pa.timestamp(unit, "UTC"), consistent_logical_timestamp=True, where=zone("UTC"))


def test_times_of_day_are_the_stored_number():
    assert text([time(0, 0, 1, 500_000)], pa.time32("ms")) == ["1500"]
    assert text([time(0, 0, 1, 500_000)], pa.time64("us")) == ["1500000"]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=12)), max_size=8), st.integers(0, 3))
def test_binary_is_lower_case_hexadecimal_of_every_byte(values, start):
    array = pa.array(values, pa.binary())[start:]
    assert to_text(array).to_pylist() == [None if value is None else value.hex() for value in values[start:]]
    assert to_text(array.cast(pa.large_binary())).equals(to_text(array))


def test_a_string_column_comes_back_as_it_is():
    array = pa.array(["a", None, ""])
    assert to_text(array) is array
    for other in (pa.large_string(), pa.string_view()):
        assert to_text(array.cast(other)).equals(array)


def test_dictionaries_read_as_their_values():
    array = pa.array([3.0, None, 1e7, 3.0]).dictionary_encode()
    assert to_text(array).to_pylist() == ["3.0", None, "1.0E7", "3.0"]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()), pa.binary(3)]
)
def test_types_without_a_settled_text_are_refused_by_name(kind):
    with pytest.raises(UnsupportedFeatureError, match=r"'f' is of type"):
        to_text(pa.nulls(2, kind), "f")


def test_no_rows_give_no_text():
    for kind in (pa.float64(), pa.binary(), pa.timestamp("us", "UTC"), pa.date32(), pa.string(), pa.null()):
        result = to_text(pa.array([], kind), consistent_logical_timestamp=True)
        assert result.type == pa.string()
        assert len(result) == 0


@given(st.datetimes(datetime(1600, 1, 1), datetime(9990, 1, 1)), st.sampled_from(["America/New_York", "Asia/Kolkata"]))
def test_consistent_timestamps_follow_the_zones_rules(moment, name):
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    values = pa.array([moment], pa.timestamp("us", "UTC"))
    shown = datetime.fromisoformat(to_text(values, "f", True, zone(name)).to_pylist()[0])
    assert shown == moment.astimezone(zone(name)).replace(tzinfo=None)


@pytest.mark.slow
def test_key_text_of_many_floats_is_made_in_columns():
    values = pa.array(np.linspace(0.001, 9e6, 10_000))
    assert to_text(values).to_pylist() == [naive.java_float(value) for value in values.to_pylist()]
