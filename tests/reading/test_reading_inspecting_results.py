"""Results in notebooks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.reading.inspecting.results import HtmlResult
from tests.support.small_tables import OPTIONS, plain_rows


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Result(HtmlResult):
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
    assert written.instant in written._repr_html_()
