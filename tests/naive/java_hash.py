"""Java's hash codes from Java's definitions."""

from __future__ import annotations


def to_int(value: int) -> int:
    """The low 32 bits as a signed int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def string_hash(text: str) -> int:
    encoded = text.encode("utf-16-be", "surrogatepass")
    units = [encoded[at] << 8 | encoded[at + 1] for at in range(0, len(encoded), 2)]
    return to_int(sum(unit * 31 ** (len(units) - 1 - at) for at, unit in enumerate(units)))


def list_hash(hashes: list[int]) -> int:
    result = 1
    for value in hashes:
        result = 31 * result + value
    return to_int(result)
