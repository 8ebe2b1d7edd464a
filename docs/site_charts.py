"""Charts of the measured times, made from the tables of the page on benchmarks when the site is built.

::

    <!-- speed:begin --> table <!-- speed:end -->      ─► bars, a table of the medians, and the whole table folded away
    <!-- bars: speed | work; work -->  on other pages  ─► bars of these rows

Bars are HTML: they take the colours of the theme, light or dark, and the width of the screen. Each work has a scale of
its own, and a thin line shows the range of its runs.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Bar", "Table", "bars", "tables_of", "with_charts"]

BENCHMARKS = Path(__file__).with_name("benchmarks.md")
MARKED = re.compile(r"<!-- (?P<name>(?:speed|others)[\w-]*):begin -->\n(?P<table>.*?)<!-- (?P=name):end -->", re.DOTALL)
WANTED = re.compile(r"<!-- bars: (?P<name>[\w-]+) \| (?P<works>[^>]*?) -->")
CELL = re.compile(
    r"(?P<median>[\d.]+) s \((?P<low>[\d.]+)–(?P<high>[\d.]+)(?:; first [\d.]+)?\), (?P<memory>[\d,]+) MB"
)
OURS = "hudi_fast"


@dataclass(frozen=True)
class Bar:
    """The seconds of one side for one work: the median, and the range of the runs."""

    side: str
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        header: names of the columns.
        rows: cells of each row.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def parsed(cls, markdown: str) -> Table:
        """The table of some lines of Markdown."""
        lines = [line for line in markdown.splitlines() if line.startswith("|")]
        cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
        return cls(cells[0], tuple(cells[2:]))

    def bars_of(self, row: tuple[str, ...]) -> list[Bar]:
        """The bars of a row, in the order of the columns."""
        found = []
        for side, cell in zip(self.header, row, strict=True):
            if times := CELL.fullmatch(cell):
                found.append(Bar(side, *(float(times[part]) for part in ("median", "low", "high"))))
        return found

    def medians(self) -> str:
        """The table in Markdown with the medians alone, without the column of the codec."""
        kept = [at for at, name in enumerate(self.header) if name != "codec"]
        lines = [[self.header[at] for at in kept], ["---"] * len(kept)]
        lines += [[CELL.sub(r"\g<median> s", row[at]) for at in kept] for row in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables_of(markdown: str) -> dict[str, Table]:
    """The tables of measured times on a page by name."""
    return {found["name"]: Table.parsed(found["table"]) for found in MARKED.finditer(markdown)}


def with_charts(markdown: str) -> str:
    """The Markdown of a page with its charts."""

    def page(found: re.Match[str]) -> str:
        table = Table.parsed(found["table"])
        whole = "\n".join(f"    {line}" for line in found["table"].strip().splitlines())
        folded = f'??? note "Ranges of the runs, and peak memory"\n\n{whole}'
        return f"{bars(table, [row[0] for row in table.rows])}\n\n{table.medians()}\n\n{folded}\n"

    def elsewhere(found: re.Match[str]) -> str:
        table = tables_of(BENCHMARKS.read_text(encoding="utf-8"))[found["name"]]
        return bars(table, [one.strip() for one in found["works"].split(";")])

    return WANTED.sub(elsewhere, MARKED.sub(page, markdown))


def bars(table: Table, works: list[str]) -> str:
    """Bars of some rows, as HTML.

    Raises:
        KeyError: the table has no such row.
    """
    rows = {row[0]: row for row in table.rows}
    groups = [_group(work, table.bars_of(rows[work])) for work in works]
    return '<div class="bars" role="list">\n' + "\n".join(groups) + "\n</div>"


def _group(work: str, measured: list[Bar]) -> str:
    longest = max(bar.high for bar in measured)
    lines = [f'<div class="bars-work" role="listitem"><p>{html.escape(work)}</p>']
    for bar in measured:
        kind = "bars-ours" if bar.side.startswith(OURS) else "bars-other"
        width, start, length = (100 * part / longest for part in (bar.median, bar.low, bar.high - bar.low))
        title = f"{bar.median:g} s, from {bar.low:g} to {bar.high:g} s"
        lines.append(
            f'<div class="bars-row" title="{title}"><span class="bars-side">{html.escape(bar.side)}</span>'
            f'<span class="bars-track"><span class="bars-bar {kind}" style="width:{width:.1f}%"></span>'
            f'<span class="bars-range" style="left:{start:.1f}%;width:{max(length, 0.4):.1f}%"></span></span>'
            f'<span class="bars-time">{bar.median:g} s</span></div>'
        )
    return "\n".join([*lines, "</div>"])
