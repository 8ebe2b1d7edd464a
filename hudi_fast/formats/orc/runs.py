"""Integer runs of version 2: numbers of ORC streams that Arrow does not give.

A stream is a sequence of runs. A run holds up to 512 numbers: one number several times, numbers of some bits each, the
same with larger ones patched in, or numbers that ascend or descend. Signed numbers are stored in zigzag order.

Source: ORC specification v1, "Integer Run Length Encoding, version 2".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hudi_fast.formats.varint import read_varint

__all__ = ["run_values", "signed_runs"]

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits of a value by the code in the header of a run."""

_ONE = np.uint64(1)

_SHORT, _DIRECT, _PATCHED, _DELTA = range(4)

Values = npt.NDArray[np.uint64]


def run_values(content: bytes, count: int) -> Values:
    """The values of a stream of unsigned numbers in runs of version 2.

    Raises:
        ValueError: the stream has another number of values, or is cut off.
    """
    parts, found = [], 0
    for run in _runs(content):
        parts.append(run)
        found += len(run)
        if found > count:
            break
    if found != count:
        raise ValueError(f"a stream of {found} numbers, expected {count}")
    return np.concatenate([np.empty(0, np.uint64), *parts])


def signed_runs(content: bytes) -> Iterator[npt.NDArray[np.int64]]:
    """The runs of a stream of signed numbers, int64[n] each.

    Raises:
        ValueError: the stream is cut off.
    """
    for run in _runs(content, is_signed=True):
        yield run.view(np.int64)


# ---- internals


def _runs(content: bytes, is_signed: bool = False) -> Iterator[Values]:
    at = 0
    while at < len(content):
        head = content[at]
        kind, code = head >> 6, head >> 1 & 31
        if kind == _SHORT:
            size = (head >> 3 & 7) + 1
            value = int.from_bytes(_cut(content, at + 1, size), "big")
            yield np.full((head & 7) + 3, _unfolded(value) if is_signed else value, np.uint64)
            at += 1 + size
            continue
        count = (head & 1) << 8 | _cut(content, at + 1, 1)[0]
        count, at = count + 1, at + 2
        if kind == _DIRECT:
            values, at = _packed(content, at, count, _WIDTHS[code])
            values = (values >> _ONE) ^ (np.uint64(0) - (values & _ONE)) if is_signed else values
        elif kind == _PATCHED:
            values, at = _patched(content, at, count, _WIDTHS[code])
        else:
            values, at = _ascending(content, at, count, _WIDTHS[code] if code else 0, is_signed)
        yield values


def _unfolded(value: int) -> int:
    """The number at a place of the zigzag order 0, -1, 1, -2, 2, ..., modulo 2 to the power of 64."""
    return (value >> 1 ^ -(value & 1)) % 2**64


def _packed(content: bytes, at: int, count: int, width: int) -> tuple[Values, int]:
    """Numbers of ``width`` bits each, and the position after them."""
    size = (count * width + 7) // 8
    bits = np.unpackbits(np.frombuffer(_cut(content, at, size), np.uint8))[: count * width].reshape(count, width)
    weights = np.uint64(1) << np.arange(width - 1, -1, -1, dtype=np.uint64)
    return (bits * weights).sum(axis=1, dtype=np.uint64), at + size


def _patched(content: bytes, at: int, count: int, width: int) -> tuple[Values, int]:
    """A base, differences from it, and more bits for those that do not fit."""
    third, fourth = _cut(content, at, 2)
    base_size, patch_width = (third >> 5) + 1, _WIDTHS[third & 31]
    gap_width, patches = (fourth >> 5) + 1, fourth & 31
    base = int.from_bytes(_cut(content, at + 2, base_size), "big")
    top = 1 << (8 * base_size - 1)
    base = -(base & (top - 1)) if base & top else base
    values, at = _packed(content, at + 2 + base_size, count, width)
    entry_width = next((one for one in _WIDTHS if one >= patch_width + gap_width), 64)
    entries, at = _packed(content, at, patches, entry_width)
    place = 0
    for entry in entries.tolist():
        place += entry >> patch_width
        patch = entry & ((1 << patch_width) - 1)
        if place >= count:
            raise ValueError(f"a patch of number {place} among {count}")
        values[place] |= np.uint64(patch << width & (1 << 64) - 1)
    return values + np.uint64(base % (1 << 64)), at


def _ascending(content: bytes, at: int, count: int, width: int, is_signed: bool) -> tuple[Values, int]:
    """A first number, a signed difference, and the sizes of those that follow; all the same without ``width``."""
    first, at = read_varint(content, at)
    first = _unfolded(first) if is_signed else first
    step, at = read_varint(content, at)
    step = step >> 1 ^ -(step & 1)
    if not width:
        steps = np.full(count - 1, step, np.int64)
    else:
        sizes, at = _packed(content, at, max(count - 2, 0), width)
        steps = np.concatenate([[step], sizes.view(np.int64) * (1 if step >= 0 else -1)])[: count - 1]
    return (np.concatenate([[0], np.cumsum(steps)]).astype(np.int64).view(np.uint64) + np.uint64(first)), at


def _cut(content: bytes, at: int, size: int) -> bytes:
    part = content[at : at + size]
    if len(part) < size:
        raise ValueError("a run is cut off")
    return part
