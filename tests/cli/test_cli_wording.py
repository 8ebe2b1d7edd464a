from datetime import UTC, datetime

import pytest

from hudi_fast.cli.render import counted, numeric_columns, readable
from hudi_fast.reading.inspecting.words import duration_text, size_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10 * 1024, "10.0 KiB"),
        (1 << 20, "1.00 MiB"),
        (1536 << 20, "1.50 GiB"),
        (1 << 40, "1.00 TiB"),
        (1 << 62, "4096.0 PiB"),
    ],
)
def test_sizes_have_the_unit_that_suits(count, text):
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0374, "37 ms"),
        (4.2, "4.20 s"),
        (59.99, "59.99 s"),
        (60, "1 min 0 s"),
        (185, "3 min 5 s"),
        (7260, "2 h 1 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_have_the_unit_that_suits(seconds, text):
    assert duration_text(seconds) == text


def test_figures_become_text_by_the_names_of_their_columns():
    row = {
        "bytes": 2048,
        "bytes_deleted": 10,
        "log_bytes": None,
        "duration_ms": 1500,
        "seconds": 0.5,
        "log_ratio": 0.12345,
        "rows": 12345,
        "alive": True,
        "names": ["a", "b"],
        "none": (),
        "made": datetime(2024, 1, 2, 3, 4, 5, 678, UTC),
        "text": "bytes",
    }
    assert readable(row) == {
        "bytes": "2.00 KiB",
        "bytes_deleted": "10 B",
        "log_bytes": None,
        "duration": "1.50 s",
        "seconds": "500 ms",
        "log_ratio": "0.123",
        "rows": "12,345",
        "alive": True,
        "names": "a, b",
        "none": "",
        "made": "2024-01-02 03:04:05",
        "text": "bytes",
    }


def test_columns_of_figures_are_known():
    rows = [{"a": 1, "b": None, "c": "1", "d": None, "e": True}, {"a": None, "b": 2.5, "c": 2, "d": None, "e": False}]
    assert numeric_columns(rows, ["a", "b", "c", "d", "e"]) == ["a", "b"]


def test_one_is_not_many():
    assert [counted(number, "file") for number in (0, 1, 1000)] == ["0 files", "1 file", "1,000 files"]
