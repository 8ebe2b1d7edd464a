"""Text that Spark reads as dates and times, and the text that it prints; text of unsure meaning is unknown."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from hudi_fast.metadata_table.updates.spark_text import Unknown, print_pattern, read_dates, read_moments, read_pattern

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-2-9", date(2024, 2, 9)),
        (" 2024-02-29T23:00:00 ", date(2024, 2, 29)),
        ("2024-02-29 any text", date(2024, 2, 29)),
        ("2024", date(2024, 1, 1)),
        ("2024-7", date(2024, 7, 1)),
        ("2023-02-29", None),
        ("2024-02-29x", None),
        ("24-02-29", None),
        ("2024-007-01", None),
        ("", None),
        ("today", None),
    ],
)
def test_dates(text: str, expected: date | None) -> None:
    assert read_dates(pa.array([text, None])).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-09 1:2:3", datetime(2024, 2, 9, 0, 2, 3, tzinfo=UTC)),
        ("2024-07-09T01:02:03.1234567", datetime(2024, 7, 8, 23, 2, 3, 123456, tzinfo=UTC)),
        ("2024-02-09 01:02:03Z", datetime(2024, 2, 9, 1, 2, 3, tzinfo=UTC)),
        ("2024-02-09 01:02:03+5:30", datetime(2024, 2, 8, 19, 32, 3, tzinfo=UTC)),
        ("2024-02-09", datetime(2024, 2, 8, 23, tzinfo=UTC)),
        ("2024-02-30 01:02:03", None),
        ("2024-02-09 25:02:03", None),
        ("now", None),
    ],
)
def test_moments(text: str, expected: datetime | None) -> None:
    assert read_moments(pa.array([text, None]), BERLIN).to_pylist() == [expected, None]


@pytest.mark.parametrize("text", ["12:30:00", "2024-02-09 01:02:03 Europe/Berlin", "12024-01-01", "-2024-01-01 1:1:1"])
def test_moments_of_unsure_meaning(text: str) -> None:
    with pytest.raises(Unknown):
        read_moments(pa.array([text]), BERLIN)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("dd.MM.yyyy HH:mm", "09.02.2024 13:05", datetime(2024, 2, 9, 13, 5)),
        ("yyyyMMdd", "20240209", datetime(2024, 2, 9)),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-02-09T01:02:03.045", datetime(2024, 2, 9, 1, 2, 3, 45000)),
        ("HH:mm", "13:05", datetime(1970, 1, 1, 13, 5)),
        ("yyyyMMdd", "none", None),
    ],
)
def test_text_of_a_pattern(pattern: str, text: str, expected: Any) -> None:
    assert read_pattern(pa.array([text, None]), pattern).to_pylist() == [expected, None]


@pytest.mark.parametrize("text", ["2024-02-09", "20240230", "2024029"])
def test_text_that_does_not_fit_a_pattern_is_unknown(text: str) -> None:
    with pytest.raises(Unknown):
        read_pattern(pa.array([text]), "yyyyMMdd")


@pytest.mark.parametrize("pattern", ["yy", "MMM", "dd dd", "E", "yyyy[-MM]", "XXX"])
def test_patterns_that_are_not_read(pattern: str) -> None:
    with pytest.raises(ValueError, match="format"):
        read_pattern(pa.array([], pa.string()), pattern)


def test_local_times_printed() -> None:
    moments = pa.array([datetime(2024, 2, 9, 0, 5, 6, 70800), datetime(987, 12, 31, 23, 59, 59), None])
    expected = {
        "yyyy-MM-dd HH:mm:ss": ["2024-02-09 00:05:06", "0987-12-31 23:59:59", None],
        "yy/M/d h a": ["24/2/9 12 AM", "87/12/31 11 PM", None],
        "E EEEE, d MMM MMMM": ["Fri Friday, 9 Feb February", "Mon Monday, 31 Dec December", None],
        "SSS SSSSSS D": ["070 070800 40", "000 000000 365", None],
        "'at' HH''mm": ["at 00'05", "at 23'59", None],
    }
    for pattern, texts in expected.items():
        assert print_pattern(moments, pattern).to_pylist() == texts
