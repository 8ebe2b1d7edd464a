"""Changes of rows, one row after the other."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def splice(a: list[T], b: list[T], rows: list[int], sources: list[int]) -> list[T]:
    changed = dict(zip(rows, sources, strict=True))
    found = []
    for row, value in enumerate(a):
        source = changed.get(row)
        if source is None:
            found.append(value)
        elif source >= 0:
            found.append(b[source])
    return found
