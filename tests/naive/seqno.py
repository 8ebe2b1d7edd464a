"""Sequence number texts with string formatting."""

from __future__ import annotations


def texts(prefix: bytes, start: int, count: int) -> list[bytes]:
    return [prefix + str(number).encode() for number in range(start, start + count)]
