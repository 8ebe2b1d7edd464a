"""Figures as people read them: sizes, durations, ratios. Machines get the figures themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["duration_text", "figures", "heading", "readable", "size_text"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_MINUTE = 60
_HOUR = 3600
_DAY = 86_400


def size_text(count: int) -> str:
    """Bytes with three digits or more: ``512 B``, ``1.25 MiB``."""
    amount, unit = float(count), _UNITS[0]
    for larger in _UNITS[1:]:
        if abs(amount) < _STEP:
            break
        amount, unit = amount / _STEP, larger
    return f"{count} B" if unit == "B" else f"{amount:.{2 if abs(amount) < 10 else 1}f} {unit}"


def duration_text(seconds: float) -> str:
    """Seconds in the unit that suits: ``37 ms``, ``4.20 s``, ``3 min 5 s``, ``2 h 1 min``, ``4 d 3 h``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its figures as text, each by the name of its column; all else as it is.

    ``*bytes`` are sizes, ``*_ms`` and ``seconds`` durations, ``*_ratio`` a quotient; other whole numbers get
    separators. Columns get the name that :func:`heading` gives.
    """
    return {heading(name): _readable(name, value) for name, value in row.items()}


def heading(name: str) -> str:
    """The name of a column for people: without the unit that its values tell."""
    return name.removesuffix("_ms")


def _readable(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return readable(value)
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if name.endswith("bytes"):
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
