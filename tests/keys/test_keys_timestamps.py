"""Timestamp-based partition paths: expected texts printed by Apache Hudi 1.2.0, in a JVM in Asia/Tokyo."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.joda_pattern import compile_pattern, format_time, parse_time, parser_of
from hudi_fast.keys.timestamps import parse_fixed, timestamp_options, timestamp_paths
from hudi_fast.keys.zones import zone
from tests.naive import key_text as naive
from tests.support.examples import examples

EPOCH = datetime(1970, 1, 1)
MS = timedelta(milliseconds=1)
ALL = "yyyy-MM-dd HH:mm:ss.SSS Z"


def paths(values, default="Asia/Tokyo", consistent=False, **given_options):
    options = {key.replace("__", "."): value for key, value in given_options.items()}
    array = values if isinstance(values, pa.Array) else pa.array(values)
    codes, texts = timestamp_paths(timestamp_options(options, default), array, "t", consistent)
    assert codes.dtype == np.int32
    return [texts[code] for code in codes]


def date_string(text, pattern, output, timezone=None):
    zones = {} if timezone is None else {"timezone": timezone}
    options = {"timestamp__type": "DATE_STRING", "input__dateformat": pattern, "output__dateformat": output}
    return paths([text], **options, **zones)[0]


@pytest.mark.parametrize(
    ("pattern", "output", "text", "timezone", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "yyyy/MM/dd/HH", "2024-01-15T11:45:00.000Z", None, "2024/01/15/11"),
        ("yyyy-MM-dd'T'HH:mm:ssZ", "HH Z ZZ", "2024-01-15T11:45:00+05:30", None, "11 +0530 +05:30"),
        ("yyyy-MM-dd'T'HH:mm:ssZ", "HH Z ZZ", "2024-01-15T11:45:00-0330", "America/New_York", "10 -0500 -05:00"),
        ("yyyy-MM-dd HH:mmZ", "yyyy/MM/dd HHmm Z", "2024-03-10 02:30+05", "PST", "2024/03/09 1330 -0800"),
        ("yyyyMMdd", "yyyy-MM-dd", "20240115", None, "2024-01-15"),
        ("yyyyMMddHHmmss", "EEEE EEE MMMM MMM D w", "20240115153000", "EST", "Monday Mon January Jan 15 3"),
        ("yyyyMMddHHmmss", "xxxx e a h hh K k", "20240115153000", "EST", "2024 1 PM 3 03 3 15"),
        ("yyyyMMddHHmmss", "a h hh K k Z", "20240715003000", "EST", "AM 12 12 0 24 -0400"),
        ("M/d/yy h:mm a", "yyyy-MM-dd HH", "3/7/24 9:05 pm", "GMT+8:00", "2024-03-07 21"),
        ("M/d/yy h:mm a", "yyyy-MM-dd HH", "3/7/99 12:05 AM", "GMT", "1999-03-07 00"),
        ("M/d/yy", "yyyy-MM-dd HH", "3/7/1999", "GMT", "1999-03-07 00"),
        ("dd-MMM-yyyy", "yyyyMMdd", "07-mar-2024", "GMT", "20240307"),
        ("dd-MMM-yyyy", "yyyyMMdd", "07-March-2024", "GMT", "20240307"),
        ("MMdd", "yyyyMMdd", "0307", "GMT", "20000307"),
        ("HH:mm", "yyyyMMddHHmm", "03:07", "GMT", "197001010307"),
        ("yyyy-MM-dd", "yyyy/MM", "2024-1-5", "GMT", "2024/01"),
        ("yyyy-MM-dd", "yyyy/MM", "24-1-5", "GMT", "0024/01"),
        ("yyyy-MM-dd,yyyy-MM-dd HH:mm", "yyyy/MM/dd HHmm", "2024-01-05 10:11", "GMT", "2024/01/05 1011"),
        ("HH,dd'T'", "yyyy/MM/dd HHmm", "10", "GMT", "1970/01/01 1000"),
        ("yyyy-MM-dd HH:mm", "HHmm Z", "2024-11-03 01:30", "America/New_York", "0130 -0400"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "ss.SSSSSS S SS", "2024-11-03 01:30:02.123456", "GMT", "02.123000 1 12"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "ss.SSS", "2024-11-03 01:30:02.5", "GMT", "02.500"),
        ("EEE yyyy-MM-dd", "yyyy/MM/dd", "Sun 2024-11-03", "GMT", "2024/11/03"),
        ("yyyy-MM-dd'T'HH", "yyyy 'o''clock' ''yy", "2024-11-03t05", "GMT", "2024 o'clock '24"),
        ("kk", "yyyy/MM/dd HH", "24", "GMT", "1970/01/01 00"),
        ("KK a", "HH", "00 PM", "GMT", "12"),
        ("hh", "HH", "12", "GMT", "00"),
        ("y", "y YYYY yy", "2024", "GMT", "2024 2024 24"),
        ("yyyy-MM-dd HH:mm", "HHmm Z", "1880-03-10 02:30", "America/New_York", "0230 -0456"),
        ("yyyy-MM-dd HH:mm", "HHmm Z", "2024-07-10 02:30", "IST", "0230 +0530"),
        ("yyyy-MM-dd HH:mm", "HHmm Z", "2024-07-10 02:30", "MET", "0230 +0200"),
        ("yyyy-MM-dd HH:mm", "HHmm Z", "2024-07-10 02:30", "GMT-0330", "0230 -0330"),
    ],
)
def test_date_strings_become_what_hudi_makes_of_them(pattern, output, text, timezone, expected):
    assert date_string(text, pattern, output, timezone) == expected


def test_two_digit_years_lie_from_80_years_ago_to_19_ahead():
    this_year = datetime.now().year
    for year in (this_year - 80, this_year - 1, this_year + 19):
        assert date_string(f"{year % 100:02d}", "yy", "yyyy", "GMT") == str(year)
        assert date_string(f"{year % 100:02d}12", "yyMM", "yyyy/MM", "GMT") == f"{year}/12"


@pytest.mark.parametrize(
    ("pattern", "text", "timezone"),
    [
        ("MMdd", "11", "GMT"),
        ("yyyy-MM-dd", "2024-13-05", "GMT"),
        ("yyyy-MM-dd", "2023-02-29", "GMT"),
        ("yyyy-MM-dd", "0000-01-01", "GMT"),
        ("yyyy-MM-dd HH:mm", "2024-03-10 02:30", "America/New_York"),
        ("yyyy-MM-dd", "", "GMT"),
        ("yyyy-MM-dd", "2024-01-01 ", "GMT"),
        ("yyyy-MM-ddZ", "2024-01-01+24:00", "GMT"),
        ("hh a", "13 AM", "GMT"),
        ("kk", "25", "GMT"),
        ("EEE yyyy-MM-dd", "Monday 2024-11-03", "GMT"),
        ("yyyy", "12345", "GMT"),
    ],
)
def test_strings_that_are_no_time_are_refused_with_their_text(pattern, text, timezone):
    with pytest.raises(InvalidDataError) as caught:
        date_string(text, pattern, "yyyy/MM/dd", timezone)
    assert repr(text) in str(caught.value)
    assert "'t'" in str(caught.value)


@pytest.mark.parametrize(
    ("timezone", "expected"),
    [(None, "1970/01/01/00"), ("GMT", "1970/01/01/00"), ("America/St_Johns", "1969/12/31/20")],
)
def test_a_null_string_is_the_first_millisecond_of_1970(timezone, expected):
    values = pa.array([None], pa.string())
    zones = {} if timezone is None else {"timezone": timezone}
    options = {"timestamp__type": "MIXED", "input__dateformat": "yyyy-MM-dd HH", "output__dateformat": "yyyy/MM/dd/HH"}
    assert paths(values, **options, **zones) == [expected]


@pytest.mark.parametrize(
    ("kind", "value", "here", "new_york"),
    [
        ("UNIX_TIMESTAMP", 1705485600, "2024-01-17 19:00:00.000 +0900", "2024-01-17 05:00:00.000 -0500"),
        ("EPOCHMILLISECONDS", -1, "1970-01-01 08:59:59.999 +0900", "1969-12-31 18:59:59.999 -0500"),
        ("EPOCHMICROSECONDS", -1500, "1970-01-01 08:59:59.999 +0900", "1969-12-31 18:59:59.999 -0500"),
        ("EPOCHMICROSECONDS", 1705485600123456, "2024-01-17 19:00:00.123 +0900", "2024-01-17 05:00:00.123 -0500"),
        ("SCALAR", 19700, "2023-12-09 09:00:00.000 +0900", "2023-12-08 19:00:00.000 -0500"),
        ("EPOCHMILLISECONDS", None, "1970-01-01 09:00:00.001 +0900", "1969-12-31 19:00:00.001 -0500"),
        ("UNIX_TIMESTAMP", None, "1970-01-01 09:00:01.000 +0900", "1969-12-31 19:00:01.000 -0500"),
    ],
)
def test_numbers_are_times_in_the_configured_unit(kind, value, here, new_york):
    values = pa.array([value], pa.int64())
    options = {"timestamp__type": kind, "timestamp__scalar__time__unit": "days", "output__dateformat": ALL}
    assert paths(values, **options) == [here]
    assert paths(values, output__timezone="America/New_York", **options) == [new_york]


def test_other_columns_are_numbers_too():
    seconds = {"timestamp__type": "UNIX_TIMESTAMP", "output__dateformat": "yyyy/MM/dd HH:mm:ss.SSS"}
    expected = ["2024/01/17 19:00:00.000"]
    assert paths(pa.array([1705485600.99]), **seconds) == expected
    assert paths(pa.array([Decimal("1705485600.99")]), **seconds) == expected
    assert paths(pa.array([1705485600], pa.uint32()), **seconds) == expected
    days = {"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "DAYS", "output__dateformat": "yyyy/MM/dd"}
    assert paths(pa.array([date(2023, 12, 9), None]), **days) == ["2023/12/09", "1970/01/02"]
    micros = {"timestamp__type": "EPOCHMICROSECONDS", "output__dateformat": "yyyy/MM/dd HH"}
    moment = pa.array([datetime(2024, 1, 17, 10, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert paths(moment, **micros) == ["2024/01/17 19"]
    assert paths(moment.cast(pa.timestamp("ns", "UTC")), **micros) == ["2024/01/17 19"]


def test_with_consistent_timestamps_the_unit_is_the_columns_own():
    options = {"timestamp__type": "UNIX_TIMESTAMP", "output__dateformat": "yyyy/MM/dd HH"}
    moments = pa.array([datetime(2024, 1, 17, 10, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert paths(moments, consistent=True, **options) == ["2024/01/17 19", "1970/01/01 09"]
    with pytest.raises(InvalidDataError, match="years 2 to 9998"):
        paths(moments, **options)


def test_options_are_taken_under_full_and_old_names():
    for prefix in ("", "hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased."):
        options = {prefix + "timestamp.type": "EPOCHMILLISECONDS", prefix + "output.dateformat": "yyyy/MM/dd"}
        options[prefix + "timezone"] = "GMT"
        codes, texts = timestamp_paths(timestamp_options(options), pa.array([1704240000000]), "t")
        assert (codes.tolist(), texts) == ([0], ["2024/01/03"])


def test_the_common_zone_overrides_the_two_others():
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "HH", "output.timezone": "Asia/Tokyo"}
    assert timestamp_options({**options, "timezone": "GMT"}).output_zone is UTC
    # A blank one overrides them too, and leaves the zone unset.
    assert timestamp_options({**options, "timezone": " "}).output_zone is None


def test_input_patterns_may_be_separated_by_something_else():
    options = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": "MMM d, yyyy;yyyy-MM-dd",
        "input.dateformat.list.delimiter.regex": r"\s*;\s*",
        "output.dateformat": "yyyyMMdd",
        "timezone": "GMT",
    }
    codes, texts = timestamp_paths(timestamp_options(options), pa.array(["Jan 5, 2024", "2024-01-05"]), "t")
    assert [texts[code] for code in codes] == ["20240105", "20240105"]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, ConfigError, "timestamp.type"),
        ({"timestamp.type": "MONTHS"}, ConfigError, "MONTHS"),
        ({"timestamp.type": "SCALAR"}, ConfigError, "output.dateformat"),
        ({"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy"}, ConfigError, "input.dateformat"),
        ({"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "WEEKS"}, ConfigError, "WEEKS"),
        ({"timestamp.type": "SCALAR", "output.dateformat": "yyyy", "timezone": "Mars"}, ConfigError, "Mars"),
        ({"timestamp.type": "SCALAR", "output.dateformat": "GGyyyy"}, UnsupportedFeatureError, "'G'"),
        ({"timestamp.type": "SCALAR", "output.dateformat": "HH ZZZ"}, UnsupportedFeatureError, "ZZZ"),
        ({"hoodie.keygen.datetime.parser.class": "com.x.P"}, UnsupportedFeatureError, "com.x.P"),
        (
            {"timestamp.type": "DATE_STRING", "input.dateformat": "xxxx-ww", "output.dateformat": "yyyy"},
            UnsupportedFeatureError,
            "'x'",
        ),
        (
            {
                "timestamp.type": "DATE_STRING",
                "input.dateformat": "yyyy",
                "input.dateformat.list.delimiter.regex": "(",
                "output.dateformat": "yyyy",
            },
            ConfigError,
            "delimiter.regex",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(options, error, says):
    with pytest.raises(error) as caught:
        timestamp_options(options)
    assert says in str(caught.value)


def test_strings_and_numbers_do_not_stand_in_for_each_other():
    with pytest.raises(ConfigError, match="accepts numbers only"):
        paths(["2024"], timestamp__type="UNIX_TIMESTAMP", output__dateformat="yyyy")
    with pytest.raises(ConfigError, match="accepts strings only"):
        paths([2024], timestamp__type="DATE_STRING", input__dateformat="yyyy", output__dateformat="yyyy")
    with pytest.raises(UnsupportedFeatureError, match="bool"):
        paths([True], timestamp__type="UNIX_TIMESTAMP", output__dateformat="yyyy")


def test_times_that_no_calendar_holds_are_refused():
    # Microseconds taken for milliseconds.
    with pytest.raises(InvalidDataError, match="1705485600123456"):
        paths([1705485600123456], timestamp__type="EPOCHMILLISECONDS", output__dateformat="yyyy")


@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**15), 10**15),
    st.sampled_from([("NANOSECONDS", Fraction(1, 10**6)), ("SECONDS", Fraction(1000)), ("DAYS", Fraction(86400000))]),
)
def test_units_convert_as_javas_time_unit_does(number, unit):
    name, in_ms = unit
    options = timestamp_options(
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": name,
            "output.dateformat": "yyyy-MM-dd HH:mm:ss.SSS",
        },
        "UTC",
    )
    millis = naive.java_time_unit(number, in_ms)
    try:
        expected = EPOCH + millis * MS
    except OverflowError:
        expected = datetime.min
    if 2 < expected.year < 9998:
        codes, texts = timestamp_paths(options, pa.array([number]), "t")
        assert texts[codes[0]] == expected.isoformat(" ", "milliseconds")
    elif expected.year not in (2, 9998):
        with pytest.raises(InvalidDataError):
            timestamp_paths(options, pa.array([number]), "t")


@given(
    st.lists(st.integers(-2_000_000_000_000, 4_000_000_000_000), min_size=1, max_size=10),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    st.sampled_from(["yyyy/MM/dd", "yyyy/MM/dd/HH", "HHmm Z", "xxxx-ww", ALL]),
)
def test_columns_of_instants_print_as_each_instant_does(millis, name, pattern):
    where, output = zone(name), compile_pattern(pattern)
    expected = []
    for value in millis:
        shown = (EPOCH.replace(tzinfo=UTC) + value * MS).astimezone(where)
        expected.append(format_time(output, shown.replace(tzinfo=None), shown.utcoffset() // MS))
    options = {"timestamp__type": "EPOCHMILLISECONDS", "output__dateformat": pattern, "timezone": name}
    assert paths(millis, **options) == expected


FIXED = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyyMMdd",
    "dd/MM/yyyy",
    "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    "HH:mm",
    "MM-dd HH",
    "ss.SSSSSS",
]
VARYING = ["yyyy-M-d", "MMM dd yyyy", "yy-MM-dd", "hh:mm a", "yyyy'2'MM", "yyyyéMM"]


@given(
    st.sampled_from(FIXED),
    st.datetimes(datetime(3, 1, 1), datetime(9990, 1, 1)),
    st.sampled_from([0, 19_800_000, -12_600_000]),
)
def test_what_is_printed_parses_back_by_columns_and_one_by_one(pattern, local, offset):
    local = local.replace(microsecond=local.microsecond // 1000 * 1000)
    compiled = compile_pattern(pattern)
    text = format_time(compiled, local, offset)
    alone, away = parse_time(compiled, parser_of(compiled), text)
    parsed, millis, offsets = parse_fixed(compiled, pa.array([text, None, text + "?"]))
    assert parsed.tolist() == [True, False, False]
    assert EPOCH + int(millis[0]) * MS == alone
    assert (int(offsets[0]) if "Z" in pattern else None) == away
    assert format_time(compiled, alone, away or 0) == text


@settings(max_examples=examples(200))
@given(st.sampled_from(FIXED), st.text("0123456789-:/.TZ+ ", min_size=4, max_size=28), st.data())
def test_what_parses_by_columns_parses_the_same_one_by_one(pattern, noise, data):
    compiled = compile_pattern(pattern)
    good = format_time(compiled, datetime(2024, 2, 29, 23, 59, 58, 123000), 0)
    place = data.draw(st.integers(0, len(good) - 1))
    for text in (noise, good[:place] + noise[0] + good[place + 1 :], good[:place] + good[place + 1 :]):
        parsed, millis, offsets = parse_fixed(compiled, pa.array([text]))
        if parsed[0]:
            alone = parse_time(compiled, parser_of(compiled), text)
            assert alone is not None
            assert EPOCH + int(millis[0]) * MS == alone[0]
            assert int(offsets[0]) == (alone[1] or 0)


@pytest.mark.parametrize("pattern", VARYING)
def test_patterns_of_varying_width_are_not_parsed_by_columns(pattern):
    parsed, _, _ = parse_fixed(compile_pattern(pattern), pa.array([format_time(compile_pattern(pattern), EPOCH, 0)]))
    assert not parsed.any()


def test_strings_in_several_forms_mix_within_a_column():
    options = {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy-MM-dd'T'HH:mmZ,yyyy-MM-dd"}
    values = [
        "2024-01-15T23:45Z",
        "2024-01-15T23:45+0530",
        "2024-01-15T23:45-05:00",
        "2024-1-5T3:45z",
        "2024-03-01",
        None,
    ]
    assert paths(values, output__dateformat="yyyy/MM/dd HH Z", **options) == [
        "2024/01/15 23 +0000",
        "2024/01/15 23 +0530",
        "2024/01/15 23 -0500",
        "2024/01/05 03 +0000",
        "2024/03/01 00 +0900",
        "1970/01/01 00 +0000",
    ]
    shown = paths(values, output__dateformat="yyyy/MM/dd HH", output__timezone="GMT", **options)
    assert shown == [
        "2024/01/15 23",
        "2024/01/15 18",
        "2024/01/16 04",
        "2024/01/05 03",
        "2024/02/29 15",
        "1970/01/01 00",
    ]


def test_no_rows_make_no_paths():
    options = timestamp_options({"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy"})
    codes, texts = timestamp_paths(options, pa.array([], pa.int64()), "t")
    assert (len(codes), texts) == (0, [])


@pytest.mark.parametrize(("unit", "said"), [("us", "EPOCHMICROSECONDS"), ("ns", "EPOCHMICROSECONDS")])
def test_a_timestamp_in_another_unit_than_the_options_is_explained(unit: str, said: str) -> None:
    times = pa.array([datetime(2024, 1, 3)], pa.timestamp(unit, "UTC"))
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd", "timezone": "UTC"}
    with pytest.raises(InvalidDataError, match=rf"2024-01-03.*in microseconds as in Apache Hudi.*{said}"):
        timestamp_paths(timestamp_options(options), times, "at")
    fits = timestamp_options({**options, "timestamp.type": said})
    assert timestamp_paths(fits, times, "at")[1] == ["2024/01/03"]
    assert timestamp_paths(timestamp_options(options), times, "at", consistent_logical_timestamp=True)[1] == [
        "2024/01/03"
    ]
