import json
import re
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_fast.cli.render import json_line, limited, show_rows, show_values

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "ü"]})
BATCHES = ROWS.to_batches(max_chunksize=2)


def test_json_is_strict_and_keeps_every_kind_of_value():
    value = {
        "day": date(2024, 1, 2),
        "at": datetime(2024, 1, 2, 3, 4, 5, 6000),
        "price": Decimal("1.20"),
        "raw": b"\x01\xff",
        "nan": float("nan"),
        "items": [1, None, {"k": True}],
        "map": [("a", 1)],
        "text": "ü\n",
    }
    line = json_line(value)
    assert "\n" not in line
    assert json.loads(line, parse_constant=pytest.fail) == {
        "day": "2024-01-02",
        "at": "2024-01-02T03:04:05.006000",
        "price": "1.20",
        "raw": "01ff",
        "nan": "nan",
        "items": [1, None, {"k": True}],
        "map": [["a", 1]],
        "text": "ü\n",
    }


@pytest.mark.parametrize(
    ("limit", "rows", "asked"), [(None, 3, 2), (0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 2), (9, 3, 2)]
)
def test_no_more_batches_are_asked_for_than_the_limit_needs(limit, rows, asked):
    seen = []

    def source():
        for batch in BATCHES:
            seen.append(batch)
            yield batch

    assert sum(batch.num_rows for batch in limited(source(), limit)) == rows
    assert len(seen) == asked


def test_tables_show_text_as_it_is_and_are_not_cut_in_a_pipe(capsys):
    long = "x" * 150
    show_rows("Rows", [{"a": "[red]", "b": long, "c": None}], ["a", "b", "c"], "more")
    show_values("Values", {"list": ["x"], "flag": True})
    out = capsys.readouterr().out
    assert "[red]" in out
    assert long in out
    assert "more" in out
    assert '["x"]' in out
    assert "true" in out


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_screen_and_wide_rows_are_printed_one_by_one(capsys, monkeypatch, width):
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": str(width), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    wide = {f"column_{number}": "some words of text" for number in range(20)}
    show_rows("Wide", [wide, wide], list(wide))
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, out.splitlines())) <= width
    assert out.count("some words of text") == 40
    narrow = {"id": "x" * 36, "words": "some words of text"}
    show_rows("Narrow", [narrow], list(narrow))
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, out.splitlines())) <= width
    assert "row 1" not in out
