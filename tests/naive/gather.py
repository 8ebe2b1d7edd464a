"""Rows of one or two sources, picked from lists."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def take(values: list[T], indices: list[int]) -> list[T]:
    return [values[index] for index in indices]


def take_two(a: list[T], b: list[T], selectors: list[int]) -> list[T]:
    return [a[s] if s >= 0 else b[-(s + 1)] for s in selectors]
