"""Functions of expression indexes: as Spark documents them, on values where libraries like to differ."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.metadata_table.updates.produce_functions import (
    Unknown,
    apply_function,
    check_function,
    has_texts,
    result_texts,
)

TEXTS = pa.array(["  aBc ", "straße", "ǆ", "İ", "ΑΣ", "", None, "a€b𝄞c"], pa.string())
MOMENTS = pa.array([datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1969, 12, 31, 0, 30), None])
INSTANTS = MOMENTS.cast(pa.timestamp("us", "UTC"))
DATES = pa.array([date(2024, 2, 29), date(1, 1, 3), None])
CASES: list[tuple[str, pa.Array, dict[str, str], list[Any]]] = [
    ("identity", DATES, {}, DATES.to_pylist()),
    ("upper", TEXTS, {}, ["  ABC ", "STRASSE", "Ǆ", "İ", "ΑΣ", "", None, "A€B𝄞C"]),
    ("lower", TEXTS, {}, ["  abc ", "straße", "ǆ", "i̇", "ας", "", None, "a€b𝄞c"]),
    ("length", TEXTS, {}, [6, 6, 1, 1, 2, 0, None, 5]),
    ("length", pa.array([b"\xff\x00", None]), {}, [2, None]),
    ("trim", TEXTS.slice(0, 1), {}, ["aBc"]),
    ("ltrim", pa.array(["\t a", "xxa"]), {"trimString": "x"}, ["\t a", "a"]),
    ("rtrim", pa.array(["axy", "a  "]), {"trimString": "yx"}, ["a", "a  "]),
    ("substring", TEXTS.slice(7), {"pos": "2", "len": "3"}, ["€b𝄞"]),
    ("substring", pa.array(["abc", "a"]), {"pos": "0", "len": "2"}, ["ab", "a"]),
    ("substring", pa.array(["abc", "a"]), {"pos": "-2", "len": "2"}, ["bc", "a"]),
    ("substring", pa.array(["abc"]), {"pos": "-5", "len": "3"}, ["a"]),
    ("substring", pa.array(["abc"]), {"pos": "2", "len": "-1"}, [""]),
    ("year", DATES, {}, [2024, 1, None]),
    ("month", DATES, {}, [2, 1, None]),
    ("day", DATES, {}, [29, 3, None]),
    ("hour", MOMENTS, {}, [23, 0, None]),
    ("hour", INSTANTS, {}, [1, 2, None]),
    ("day", INSTANTS, {}, [1, 31, None]),
    ("to_date", INSTANTS, {}, [date(2024, 3, 1), date(1969, 12, 31), None]),
    ("to_date", MOMENTS, {}, [date(2024, 2, 29), date(1969, 12, 31), None]),
    ("to_timestamp", INSTANTS, {}, INSTANTS.to_pylist()),
    ("unix_timestamp", INSTANTS, {}, [1709251199, -84600, None]),
    ("date_add", DATES, {"days": "1"}, [date(2024, 3, 1), date(1, 1, 4), None]),
    ("date_sub", DATES, {"days": "60"}, [date(2023, 12, 31), None, None]),
    ("date_format", DATES, {"format": "dd'of'MM.yyyy"}, ["29of02.2024", "03of01.0001", None]),
    ("date_format", INSTANTS, {"format": "yyyy'T'HH:mm:ss"}, ["2024T01:59:59", "1969T02:30:00", None]),
    ("from_unixtime", pa.array([1709251199, -1, None]), {}, ["2024-03-01 01:59:59", "1970-01-01 01:59:59", None]),
    ("upper", pa.array([True, None]), {}, ["TRUE", None]),
    ("substring", pa.array([12345]), {"pos": "2", "len": "3"}, ["234"]),
    ("regexp_extract", TEXTS.slice(0, 1), {"pattern": "a(B)", "idx": "1"}, ["B"]),
    ("regexp_replace", TEXTS.slice(4, 3), {"pattern": "^", "replacement": "-"}, ["-ΑΣ", "-", None]),
    ("split", TEXTS.slice(5), {"pattern": "[€𝄞]"}, [[""], None, ["a", "b", "c"]]),
    ("year", pa.array(["2024-2-29", "x", None]), {}, [2024, None, None]),
    ("date_add", pa.array(["2024-02-29 12:00:00"]), {"days": "1"}, [date(2024, 3, 1)]),
    ("hour", pa.array(["2024-02-29 12:00:00+00:00"]), {}, [14]),
    ("to_timestamp", DATES.slice(0, 1), {}, [datetime(2024, 2, 28, 22, tzinfo=UTC)]),
    ("to_timestamp", pa.array(["29.02.2024"]), {"format": "dd.MM.yyyy"}, [datetime(2024, 2, 28, 22, tzinfo=UTC)]),
    ("unix_timestamp", pa.array(["1970-01-01 02:00:01", None]), {}, [1, None]),
    ("to_date", pa.array(["29.02.2024", "none"]), {"format": "dd.MM.yyyy"}, [date(2024, 2, 29), None]),
    ("from_unixtime", pa.array([0], pa.int32()), {"format": "yyyy-MM"}, ["1970-01"]),
]


@pytest.mark.parametrize(("name", "values", "options", "expected"), CASES)
def test_results(name: str, values: pa.Array, options: dict[str, str], expected: list[Any]) -> None:
    if name == "date_sub":  # nothing before the year 1 in Python
        values, expected = values.take(pa.array([0, 2])), [expected[0], None]
    found = apply_function(name, values, options, ZoneInfo("Europe/Athens"))
    assert found.type == check_function(name, values.type, options, "it")
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("regexp_replace", pa.string(), {"pattern": r"\p{L}", "replacement": "b"}),
        ("regexp_extract", pa.string(), {"pattern": "a", "idx": "1"}),
        ("split", pa.string(), {}),
        ("upper", pa.float64(), {}),
        ("upper", pa.string(), {"format": "x"}),
        ("year", pa.int32(), {}),
        ("to_date", pa.string(), {"format": "MMM yyyy"}),
        ("substring", pa.string(), {"pos": "1"}),
        ("substring", pa.string(), {"pos": "one", "len": "1"}),
        ("date_format", pa.date32(), {"format": "w"}),
        ("date_format", pa.date32(), {"format": "yyyyy"}),
        ("date_add", pa.date32(), {}),
    ],
)
def test_what_is_not_supported_is_named(name: str, kind: pa.DataType, options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"The index x uses the function '{name}'"):
        check_function(name, kind, options, "The index x")


@pytest.mark.parametrize("seconds", [2**60, -(2**60), 253_402_300_800])
def test_years_beyond_four_digits_are_not_known(seconds: int) -> None:
    with pytest.raises(Unknown):
        apply_function("from_unixtime", pa.array([seconds]), {})


@given(st.text(), st.integers(-6, 6), st.integers(-2, 6))
def test_substring_as_spark_counts(text: str, first: int, length: int) -> None:
    found = apply_function("substring", pa.array([text]), {"pos": str(first), "len": str(length)})
    start = first - 1 if first > 0 else (len(text) + first if first < 0 else 0)
    assert found.to_pylist() == [text[max(start, 0) : max(start + length, 0)] if length > 0 else ""]


@given(st.datetimes(datetime(2, 1, 3), datetime(9998, 1, 1)))
def test_moments_in_a_zone(moment: datetime) -> None:
    zone = ZoneInfo("America/New_York")
    instant = moment.replace(tzinfo=UTC)
    local = instant.astimezone(zone)
    values = pa.array([instant], pa.timestamp("us", "UTC"))
    assert apply_function("to_date", values, {}, zone).to_pylist() == [local.date()]
    assert apply_function("hour", values, {}, zone).to_pylist() == [local.hour]
    pattern = f"{local.year:04}-{local.month:02}-{local.day:02} {local.hour:02}:{local.minute:02}:{local.second:02}"
    assert apply_function("date_format", values, {"format": "yyyy-MM-dd HH:mm:ss"}, zone).to_pylist() == [pattern]


def test_results_as_java_prints_them() -> None:
    cases: list[tuple[pa.Array, list[str | None]]] = [
        (pa.array([True, None]), ["true", None]),
        (pa.array([1e10, -0.5]), ["1.0E10", "-0.5"]),
        (DATES, ["2024-02-29", "0001-01-03", None]),
        (INSTANTS, ["2024-03-01 01:59:59.999999", "1969-12-31 02:30:00.0", None]),
        (pa.array([["a", "b"], [], None]), ["WrappedArray(a, b)", "WrappedArray()", None]),
    ]
    for results, texts in cases:
        assert has_texts(results.type)
        assert result_texts(results, ZoneInfo("Europe/Athens")).to_pylist() == texts
    assert not any(has_texts(kind) for kind in (pa.binary(), pa.timestamp("us"), pa.struct([])))
