"""Tables of the results of :mod:`benchmarks.scale.growth`, as text or in docs/benchmarks.md.

A cell has the median and range of the seconds, the processor time and the peak memory, and how each grew from the size
before: ``0.31 s (0.30–0.33) × 2.6, CPU 0.5 s × 2.4, 310 MB × 1.1``. The head of its column says how the size grew.
``▲`` marks what grew more than 1.15 times as much as the size.

Usage::

    python -m benchmarks.scale.growth_tables RESULT.json [RESULT.json ...]     # writes docs/benchmarks.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.against_hudi.docs_table import NAMES, PAGE, between
from benchmarks.scale.growth_axes import AXES, STEPS

__all__ = ["as_markdown", "as_text", "grown"]

MARK = "▲"
TOLERANCE = 1.15

Result = dict[str, Any]


def as_text(results: Sequence[Result]) -> str:
    """A table for each axis, for a terminal."""
    lines: list[str] = []
    for axis in _axes(results):
        rows = [[cell.replace("<br>", ", ") for cell in row] for row in _table(axis, results)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines += ["", f"{AXES[axis].title}: {AXES[axis].about}"]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
    return "\n".join(lines[1:])


def as_markdown(results: Sequence[Result]) -> list[str]:
    """The lines of the section in docs/benchmarks.md."""
    lines: list[str] = []
    for axis in _axes(results):
        head, *rows = _table(axis, results)
        title = AXES[axis].title
        lines += ["", f"### {title[0].upper()}{title[1:]}", "", AXES[axis].about, ""]
        lines += [_line(head), "|" + "---|" * len(head), *map(_line, rows)]
    return [*lines, ""]


def grown(before: float, now: float, size_before: float, size: float) -> str:
    """How a figure grew, with a mark if it grew faster than the size did; empty if there is nothing to compare."""
    if not before or not size_before:
        return ""
    factor = now / before
    return f" {MARK if factor > TOLERANCE * size / size_before else ''}× {factor:.2g}"


def _axes(results: Sequence[Result]) -> list[str]:
    return [axis for axis in AXES if any(one["axis"] == axis for one in results)]


def _table(axis: str, results: Sequence[Result]) -> list[list[str]]:
    """A row for each step and side, a column for each size."""
    here = {(one["step"], one["side"], one["size"]): one for one in results if one["axis"] == axis}
    sizes = sorted({size for _, _, size in here})
    rows = [["step", "side", *(_head(size, before) for size, before in zip(sizes, [0, *sizes], strict=False))]]
    for step in AXES[axis].steps:
        for side in NAMES:
            if any((step, side, size) in here for size in sizes):
                cells, before = [], None
                for size in sizes:
                    one = here.get((step, side, size))
                    cells.append("-" if one is None else _cell(one, before))
                    before = one
                rows.append([STEPS[step].title, NAMES[side], *cells])
    return rows


def _head(size: int, before: int) -> str:
    name = f"{size / 1e6:g} M" if size >= 100_000 else f"{size:,}".replace(",", " ")
    return f"{name} (× {size / before:.2g})" if before else name


def _cell(one: Result, before: Result | None) -> str:
    def factor(name: str) -> str:
        return "" if before is None else grown(before[name], one[name], before["size"], one["size"])

    digits = 2 if one["seconds"] >= 0.1 else 3
    spread = f"({min(one['all_seconds']):.{digits}f}–{max(one['all_seconds']):.{digits}f})"
    memory = f"{one['peak_rss_mb']:,.0f}".replace(",", " ")
    figures = (
        f"{one['seconds']:.{digits}f} s {spread}{factor('seconds')}",
        f"CPU {one['cpu_seconds']:.2f} s{factor('cpu_seconds')}",
        f"{memory} MB{factor('peak_rss_mb')}",
    )
    return "<br>".join(figures)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Rewrite the tables of docs/benchmarks.md; of results for one step, side and size the last counts."""
    results = [one for path in sys.argv[1:] for one in json.loads(Path(path).read_text())]
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), "growth", as_markdown(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
