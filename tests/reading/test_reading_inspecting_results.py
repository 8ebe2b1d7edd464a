"""Results and rows in terminals and notebooks."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.reading.inspecting.results import ShownResult, show
from tests.support.small_tables import OPTIONS, plain_rows


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Result(ShownResult):
    instant: str = ""
    names: tuple[str, ...] = ()
    bytes_written: int = 0
    seconds: float = 0.0
    found: tuple[Row, ...] = ()
    table: pa.Table | None = None


def test_fields_are_shown_in_suitable_units_and_escaped() -> None:
    text = Result("<b>", tuple("abcdefghijkl"), 3 << 20, 0.25)._repr_html_()
    for part in (
        "<b>Result</b>",
        "&lt;b&gt;",
        "3.00 MiB",
        "250 ms",
        "a, b, c, d, e, f, g, h, i, j and 2 more",
        "bytes w",
    ):
        assert part in text
    assert ">none<" in Result()._repr_html_()


def test_rows_of_a_result_are_tables_below_its_fields() -> None:
    found = tuple(Row(f"n{number}", 2048) for number in range(12))
    text = Result(found=found, table=pa.table({"column": [1, 2]}))._repr_html_()
    assert "found (12), the first 10" in text
    assert "table (2)" in text
    assert ("n9" in text, "n10" in text) == (True, False)
    assert "2.00 KiB" in text


def test_results_of_writes_and_services_are_shown(tmp_path) -> None:
    written = hf.write(plain_rows(range(3)), tmp_path / "t", OPTIONS)
    table = hf.HudiTable.open(tmp_path / "t")
    shown = [written, table.services.clean(), table.services.archive(), table.services.savepoint(written.instant)]
    shown += [table.services.validate(), hf.check({"hoodie.metrics.on": "true"}), table.services.repair()]
    for one in shown:
        assert f"<b>{type(one).__name__}</b>" in one._repr_html_()
        assert str(one).splitlines()[0] == type(one).__name__
    assert written.instant in written._repr_html_()
    assert written.instant in str(written)


def test_a_result_is_a_block_of_text_in_a_terminal() -> None:
    found = (Row("n", 2048), Row("longer", 3))
    assert str(Result("i", ("a", "b"), 3 << 20, 0.25, found)).splitlines() == [
        "Result",
        "  instant        i",
        "  names          a, b",
        "  bytes written  3.00 MiB",
        "  seconds        250 ms",
        "  table          none",
        "found (2)",
        "  name       bytes",
        "  ──────  ────────",
        "  n       2.00 KiB",
        "  longer       3 B",
    ]


def test_a_terminal_of_ipython_shows_the_block() -> None:
    class Printer(io.StringIO):
        def text(self, text: str) -> None:
            self.write(text)

    printer = Printer()
    Result("i")._repr_pretty_(printer, False)
    assert printer.getvalue() == str(Result("i"))
    assert "_repr_pretty_" in vars(Result)  # IPython prefers it to the repr of the same class only


@pytest.mark.parametrize("given", ["table", "scan", "arrow", "dict", "reader"])
def test_rows_of_any_kind_are_shown(tmp_path: Path, given: str) -> None:
    hf.write(plain_rows(range(5)), tmp_path / "t", OPTIONS)
    table = hf.HudiTable(tmp_path / "t")
    rows: dict[str, Any] = {
        "table": table,
        "scan": table.scan(),
        "arrow": table.to_arrow(),
        "dict": plain_rows(range(5)).to_pydict(),
        "reader": table.to_batches(),
    }
    assert repr(show(rows[given], 3)).startswith("the first 3 rows")
    assert ">a0<" in show(rows["dict"])._repr_html_()


def test_steps_and_instants_fit_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hf.write(plain_rows(range(5)), tmp_path / "t", OPTIONS)
    table = hf.HudiTable(tmp_path / "t")
    for width in (240, 120, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        for rows in (table.explain("id = 'k00001'"), table.history()):
            text = repr(hf.show(rows))
            assert max(map(len, text.splitlines())) <= width
    assert "rolled_back" not in text


def test_long_and_broken_texts_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = repr(show({"id": [-1, 22], "text": ["a\nb", "x" * 99]})).splitlines()
    assert lines[3:] == ["  -1  a b", f"  22  {'x' * 47}…"]


@pytest.mark.parametrize(("rows", "limit"), [(3, 20), ({"id": [1]}, -1), ({"id": [1]}, "5")])
def test_what_cannot_be_shown_is_refused(rows: Any, limit: Any) -> None:
    with pytest.raises(hf.HudiError, match=r"Rows must be|limit is a number"):
        show(rows, limit)


def test_columns_of_numbers_are_right_aligned_in_text_and_html() -> None:
    rows = hf.show({"name": ["a", "b"], "delta": [-1, 20], "nothing": pa.nulls(2, pa.int64())})
    assert str(rows).splitlines()[3:] == ["  a        -1", "  b        20"]
    html = rows._repr_html_()
    assert [html.split(f">{text}<")[0].rsplit("text-align: ")[-1].split(";")[0] for text in ("a", "-1", "nothing")] == [
        "left",
        "right",
        "left",
    ]
