"""Rows by group with lists."""

from __future__ import annotations


def group_rows(codes: list[int], groups: int) -> list[list[int]]:
    return [[row for row, code in enumerate(codes) if code == group] for group in range(groups)]
