"""Figures as people read them: sizes, durations, ratios. Machines get the figures themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hudi_fast.reading.inspecting.words import duration_text, size_text

__all__ = ["counted", "figures", "heading", "readable"]


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its figures as text, each by the name of its column; all else as it is.

    ``bytes`` and its like are sizes, ``*_ms`` and ``seconds`` durations, ``*_ratio`` a quotient; other whole numbers
    get separators, and columns the name that :func:`heading` gives.
    """
    return {heading(name): _readable(name, value) for name, value in row.items()}


def counted(count: int, what: str) -> str:
    """How many of something: ``1 file``, ``2 files``."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def heading(name: str) -> str:
    """The name of a column for people: without the unit that its values tell."""
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


def figures(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> list[str]:
    """Columns that hold numbers and nothing else but nulls."""
    listed = list(rows)
    return [
        name
        for name in columns
        if any(row[name] is not None for row in listed)
        and all(row[name] is None or (isinstance(row[name], int | float) and row[name] is not True) for row in listed)
    ]
