"""Numbers as readable text: sizes, durations, ratios. JSON output keeps the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hudi_fast.reading.inspecting.words import duration_text, size_text

__all__ = ["counted", "heading", "numeric_columns", "readable"]


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
