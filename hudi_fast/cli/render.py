"""Output of the command line: tables, JSON lines, and numbers as readable text.

The input is Arrow tables, record batches and plain dictionaries; the module does not depend on Hudi tables.

Numbers as readable text: sizes, durations, ratios. JSON output keeps the numbers.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from hudi_fast.errors import ConfigError
from hudi_fast.reading.inspecting.words import duration_text, size_text

__all__ = [
    "counted",
    "format_of",
    "heading",
    "json_line",
    "limited",
    "numeric_columns",
    "readable",
    "show_rows",
    "show_values",
]

_PIPE_WIDTH = 240
_UNLIMITED_WIDTH = 100_000
_BROKEN_WORD = 24


def json_line(value: Any) -> str:
    """``value`` as JSON on one line: times in ISO form, bytes in hexadecimal, decimals as text."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def show_rows(
    title: str,
    rows: Iterable[Mapping[str, Any]],
    columns: list[str],
    more: str = "",
    right: Collection[str] = (),
    unbroken: Collection[str] = (),
) -> None:
    """Print rows as a table.

    Args:
        title: line above the table.
        rows: values by column name.
        columns: columns to print, in this order.
        more: line below the table; "" for none.
        right: right-aligned columns.
        unbroken: columns whose values are broken into lines only if they do not fit the width.
    """
    console = _console()
    texts = [{column: _cell(row[column]) for column in columns} for row in rows]
    console.print(Text(title, style="bold"))
    if columns and not _fits(texts, columns, console.width):
        _print_one_by_one(console, texts)
    elif columns:
        console.print(_as_table(console, texts, columns, right, unbroken))
    if more:
        console.print(Text(more, style="dim"))


def _as_table(
    console: Console,
    texts: list[dict[str, str]],
    columns: list[str],
    right: Collection[str],
    unbroken: Collection[str],
) -> Table:
    table = Table(header_style="bold cyan")
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        table.add_column(Text(column), overflow="fold", justify=justify, no_wrap=column in unbroken)
    for row in texts:
        table.add_row(*(Text(row[column]) for column in columns))
    if table.__rich_measure__(console, console.options.update(max_width=_UNLIMITED_WIDTH)).maximum > console.width:
        table.box, table.padding = SIMPLE_HEAD, (0, 1, 0, 0)  # a narrower frame breaks fewer values into lines
    return table


def _fits(texts: list[dict[str, str]], columns: list[str], width: int) -> bool:
    """Whether a table breaks values between words only; long ones, such as ids of files, may be broken once."""
    needed = sum(max(_longest_word(text) for text in (name, *(row[name] for row in texts))) for name in columns)
    return needed + len(columns) + 1 <= width


def _longest_word(text: str) -> int:
    return min(_BROKEN_WORD, max(map(len, text.split()), default=0))


def _print_one_by_one(console: Console, texts: list[dict[str, str]]) -> None:
    """Print wide rows below each other, a line for each value."""
    for number, row in enumerate(texts, 1):
        console.print(Text(f"row {number}", style="dim"))
        console.print(_pairs(row))


def _pairs(values: Mapping[str, str]) -> Table:
    """Names and values, one pair per line."""
    table = Table(show_header=False, box=None)
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(Text(name), Text(value))
    return table


def show_values(title: str, values: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line."""
    console = _console()
    console.print(Text(title, style="bold"))
    if values:
        console.print(_pairs({name: _cell(value) for name, value in values.items()}))


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first ``limit`` rows; None = all. Stops reading batches once there are enough rows."""
    left = limit
    if left == 0:
        return
    for batch in batches:
        if left is None:
            yield batch
        elif batch.num_rows:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if left == 0:
                return


def format_of(path: str, formats: Iterable[str]) -> str:
    """The format of a file, from the ending of its name.

    Raises:
        ConfigError: the ending is not one of ``formats``.
    """
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    if ending not in formats:
        raise ConfigError(
            f"{path}: expected a file name that ends with one of {', '.join('.' + name for name in formats)}."
        )
    return ending


class _Console(Console):
    """A console whose user may close its pipe."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "The pipe is closed.")


def _console() -> Console:
    console = _Console()
    # A pipe has no width, and rich's default of 80 characters would break most values into lines.
    return console if console.is_terminal else _Console(width=_PIPE_WIDTH)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _text_of_plain(_plain(value))


def _text_of_plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | timedelta) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its numbers as text and its columns renamed by :func:`heading`; other values are unchanged.

    ``bytes`` and ``*_bytes`` are sizes, ``*_ms`` and ``seconds`` durations, ``*_ratio`` quotients; other integers get
    thousands separators.
    """
    return {heading(name): _readable(name, value) for name, value in row.items()}


def counted(count: int, what: str) -> str:
    """A count with its noun: ``1 file``, ``2 files``."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def heading(name: str) -> str:
    """The printed name of a column: without ``_ms``, because its values show their unit."""
    return name.removesuffix("_ms")


def _readable(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return readable(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if "bytes" in name.split("_"):
        return size_text(int(value))
    if name.endswith("_ms"):
        return duration_text(value / 1000)
    if name == "seconds":
        return duration_text(value)
    if name.endswith("_ratio"):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else value


def numeric_columns(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> list[str]:
    """Columns that hold only numbers and nulls, and at least one number."""
    listed = list(rows)
    return [
        name
        for name in columns
        if any(row[name] is not None for row in listed)
        and all(row[name] is None or (isinstance(row[name], int | float) and row[name] is not True) for row in listed)
    ]
