"""The display of results and rows: a block of text in a terminal, HTML in a notebook, where all is escaped.

Sizes and durations have suitable units.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.errors import ConfigError
from hudi_fast.reading.inspecting.words import duration_text, size_text

__all__ = ["Shown", "ShownResult", "ShownRows", "html_table", "show", "text_block", "text_table"]


_SHOWN = 10
_LONGEST = 48
_STARTS_OF_NUMBERS = "-0123456789"
_CELL = "padding: 2px 10px; text-align: {align}; white-space: nowrap;"


class Shown:
    """An object that terminals and notebooks display as a block, ``str`` and ``_repr_html_``."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]  # else IPython takes a class's own repr

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The block of text, for terminals of IPython."""
        printer.text(str(self))


class ShownResult(Shown):
    """A dataclass that is displayed as a table of its fields."""

    __slots__ = ()

    def __str__(self) -> str:
        """One line for each field; fields with rows of their own below."""
        pairs, tables = self._parts()
        return "\n".join([text_block(type(self).__name__, pairs), *(_rows_text(name, value) for name, value in tables)])

    def _repr_html_(self) -> str:
        """HTML for notebooks: one row for each field; fields with rows of their own below it."""
        pairs, tables = self._parts()
        below = "".join(_rows_html(name, value) for name, value in tables)
        return f"<div><b>{type(self).__name__}</b>{html_table(('', ''), pairs, '') if pairs else ''}{below}</div>"

    def _parts(self) -> tuple[list[tuple[str, str]], list[tuple[str, Any]]]:
        """The names and texts of fields, and the names and values of those with rows of their own."""
        values = [
            (one.name, getattr(self, one.name))
            for one in dataclasses.fields(self)  # type: ignore[arg-type]
            if one.repr
        ]
        plain = [(_spoken(name), _text(name, value)) for name, value in values if not _is_table(value)]
        return plain, [(_spoken(name), value) for name, value in values if _is_table(value)]


class ShownRows(Shown):
    """Rows that are displayed as a table.

    Where a table is wider than the terminal, columns without a value are left out; if that is not enough, each row is a
    block.

    Args:
        rows: an Arrow table: the rows to show.
        title: above them.
    """

    __slots__ = ("_rows", "_title")

    def __init__(self, rows: Any, title: str) -> None:
        self._rows, self._title = rows, title

    def __repr__(self) -> str:
        heads, texts = _cells_of(self._rows)
        filled = [at for at in range(len(heads)) if any(row[at] for row in texts)]
        fewer = [[row[at] for at in filled] for row in texts]
        names = [heads[at] for at in filled]
        for columns, rows in ((heads, texts), (names, fewer)):
            table = text_table(columns, rows, self._title)
            if max(map(len, table.splitlines())) <= shutil.get_terminal_size().columns:
                return table
        blocks = [text_block(f"row {number}", zip(names, row, strict=True)) for number, row in enumerate(fewer, 1)]
        return "\n".join([self._title, *blocks])

    def _repr_html_(self) -> str:
        heads, texts = _cells_of(self._rows)
        return f"<div>{html_table(heads, texts, self._title)}</div>"


def show(rows: Any, limit: int = 20) -> ShownRows:
    """Rows as a table for people: text in a terminal, HTML in a notebook.

    Args:
        rows: a :class:`~hudi_fast.HudiTable`, a scan, an Arrow table such as :meth:`HudiTable.history` and
            :meth:`HudiTable.explain` return, or other rows that a write takes.
        limit: number of rows to show.

    Raises:
        InvalidDataError: these are no rows.

    Example:
        >>> import hudi_fast as hf
        >>> hf.show({"id": [1, 2], "city": ["Oslo", "Rome"]})
        2 rows
          id  city
          ──  ────
           1  Oslo
           2  Rome
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise ConfigError(f"limit is a number of rows, 0 or more; got {limit!r}.")
    found = to_arrow_table(rows.head(limit + 1) if hasattr(rows, "head") else rows)
    is_cut = found.num_rows > limit
    title = f"the first {limit:,} rows" if is_cut else "1 row" if found.num_rows == 1 else f"{found.num_rows:,} rows"
    return ShownRows(found.slice(0, limit), title)


def text_block(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts below a title, a line each."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    return "\n".join([title, *(f"  {name.ljust(width)}  {text}".rstrip() for name, text in listed)])


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str) -> str:
    """A table of text below a title; columns of numbers are right-aligned, long values are cut."""
    listed = [[_cut(text) for text in row] for row in rows]
    right = _number_columns(heads, listed)
    widths = [max(len(head), *(len(row[at]) for row in listed), 0) for at, head in enumerate(heads)]

    def line(texts: Sequence[str]) -> str:
        cells = (
            text.rjust(width) if at_right else text.ljust(width)
            for text, width, at_right in zip(texts, widths, right, strict=True)
        )
        return "  " + "  ".join(cells).rstrip()

    return "\n".join([title, line(heads), line(["─" * width for width in widths]), *map(line, listed)])


def _number_columns(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ("",)) -> list[bool]:
    """Whether each column is right-aligned: its texts start like numbers. Columns that ``left`` names are not."""
    columns = [[row[at] for row in rows if row[at]] for at in range(len(heads))]
    return [
        head not in left and bool(texts) and all(text[0] in _STARTS_OF_NUMBERS for text in texts)
        for head, texts in zip(heads, columns, strict=True)
    ]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str, left: Sequence[str] = ("",)) -> str:
    """A table in plain HTML.

    Args:
        heads: column names; none are shown if all are empty.
        rows: texts, one for each column.
        title: above the table; may be empty.
        left: columns to left-align always. Others are right-aligned if all their values are numbers.
    """
    listed = list(rows)
    right = _number_columns(heads, listed, left)
    shown = f"<p style='margin: 8px 0 2px'><b>{escape(title)}</b></p>" if title else ""
    head = "".join(_cell("th", name, at) for name, at in zip(heads, right, strict=True)) if any(heads) else ""
    body = "".join(
        f"<tr>{''.join(_cell('td', value, at) for value, at in zip(row, right, strict=True))}</tr>" for row in listed
    )
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"{shown}<table>{top}<tbody>{body}</tbody></table>"


def _cell(tag: str, text: str, right: bool) -> str:
    style = _CELL.format(align="right" if right else "left")
    return f"<{tag} style='{style}'>{escape(text)}</{tag}>"


def _text(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name == "seconds" or name.endswith("_ms"):
            return duration_text(value / 1000 if name.endswith("_ms") else value)
        return size_text(int(value)) if name.split("_")[0] == "bytes" or name.endswith("_bytes") else f"{value:,}"
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, Mapping):
        value = [f"{key}: {_text('', one)}" for key, one in value.items()]
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else ""
        return ", ".join(str(one) for one in value[:_SHOWN]) + more
    return str(value)


def _is_table(value: Any) -> bool:
    """Whether a value has rows: it is an Arrow table, or dataclasses."""
    return hasattr(value, "to_pylist") or (
        isinstance(value, tuple) and bool(value) and all(dataclasses.is_dataclass(one) for one in value)
    )


def _rows_html(title: str, value: Any) -> str:
    """The first rows of an Arrow table or of dataclasses."""
    heads, rows = _cells_of(value[:_SHOWN])
    return html_table(heads, rows, _title(title, len(value)))


def _rows_text(title: str, value: Any) -> str:
    heads, rows = _cells_of(value[:_SHOWN])
    return text_table(heads, rows, _title(title, len(value)))


def _title(title: str, count: int) -> str:
    return f"{title} ({count:,})" + (f", the first {_SHOWN}" if count > _SHOWN else "")


def _cells_of(value: Any) -> tuple[list[str], list[list[str]]]:
    """The column names, and the texts of all rows of an Arrow table or of dataclasses."""
    if isinstance(value, tuple):
        heads = [one.name for one in dataclasses.fields(value[0])]
        return heads, [[_text(name, getattr(row, name)) for name in heads] for row in value]
    heads = list(value.column_names)
    return heads, [
        ["" if row[name] in (None, "") else _text(name, row[name]) for name in heads] for row in value.to_pylist()
    ]
