"""File ids as UUIDs and numbers, by Python's own UUIDs."""

from __future__ import annotations

import re
import uuid

SHAPE = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?")


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def parse(text: str) -> tuple[int, int, int] | None:
    """High half, low half and number (-1 for none); None for other text."""
    found = SHAPE.fullmatch(text)
    if found is None:
        return None
    number = uuid.UUID(found[1]).int
    return signed(number >> 64), signed(number & (1 << 64) - 1), -1 if found[2] is None else int(found[2])


def text(high: int, low: int, index: int) -> str:
    mask = (1 << 64) - 1
    return str(uuid.UUID(int=(high & mask) << 64 | low & mask)) + ("" if index < 0 else f"-{index}")
