"""The HTML display of results in notebooks: their fields, with sizes and durations in suitable units; all escaped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hudi_fast.reading.inspecting.words import duration_text, size_text

__all__ = ["HtmlResult", "html_table"]

_SHOWN = 10
_CELL = "padding: 2px 10px; text-align: {align}; white-space: nowrap;"


class HtmlResult:
    """A dataclass that notebooks display as a table of its fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """HTML for notebooks: one row for each field; fields with rows of their own below it."""
        fields = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}  # type: ignore[arg-type]
        rows = [(name.replace("_", " "), _text(name, value)) for name, value in fields.items() if not _is_table(value)]
        below = [_rows_html(name.replace("_", " "), value) for name, value in fields.items() if _is_table(value)]
        return (
            f"<div><b>{type(self).__name__}</b>{html_table(('', ''), rows, '') if rows else ''}{''.join(below)}</div>"
        )


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str, left: Sequence[str] = ("",)) -> str:
    """A table in plain HTML.

    Args:
        heads: column names; none are shown if all are empty.
        rows: texts, one for each column.
        title: above the table; may be empty.
        left: columns to left-align always. Others are right-aligned if all their values start with a digit.
    """
    listed = list(rows)
    right = [
        head not in left and all(not row[at] or row[at][0].isdigit() for row in listed) for at, head in enumerate(heads)
    ]
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
        if name == "seconds":
            return duration_text(value)
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
    count = len(value)
    if isinstance(value, tuple):
        heads = [one.name for one in dataclasses.fields(value[0])]
        rows = [[_text(name, getattr(row, name)) for name in heads] for row in value[:_SHOWN]]
    else:
        heads = list(value.column_names)
        rows = [[_text(name, row[name]) for name in heads] for row in value.slice(0, _SHOWN).to_pylist()]
    return html_table(heads, rows, f"{title} ({count:,})" + (f", the first {_SHOWN}" if count > _SHOWN else ""))
