"""Integer runs of ORC, versions 1 and 2, one run after the other, as the specification describes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hudi_fast.formats.varint import read_varint, varint, zigzag

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits of a value by the code in the header of a run."""

_ONE = np.uint64(1)

_SHORT, _DIRECT, _PATCHED, _DELTA = range(4)

Values = npt.NDArray[np.uint64]


def integers(content: bytes, version: int, is_signed: bool) -> list[int]:
    """All numbers of a stream; ``ValueError`` if it is cut off."""
    runs = _first_version if version == 1 else _second_version
    return [one for run in runs(content, is_signed) for one in run.view(np.int64).tolist()]


def first_version(runs: list[tuple[int, int, int] | list[int]], is_signed: bool) -> bytes:
    """A stream of version 1: runs of (count, first number, step), or numbers as they are."""
    stored = zigzag if is_signed else varint
    out = bytearray()
    for run in runs:
        if isinstance(run, list):
            out += bytes([256 - len(run)]) + b"".join(map(stored, run))
        else:
            count, first, step = run
            out += bytes([count - 3, step % 256]) + stored(first)
    return bytes(out)


def _first_version(content: bytes, is_signed: bool) -> Iterator[Values]:
    at = 0
    while at < len(content):
        head, at = content[at], at + 1
        if head < 128:
            step = int.from_bytes(_cut(content, at, 1), signed=True)
            value, at = read_varint(content, at + 1)
            first = _unfolded(value) if is_signed else value
            yield np.array([(first + step * number) % 2**64 for number in range(head + 3)], np.uint64)
            continue
        values = []
        for _ in range(256 - head):
            value, at = read_varint(content, at)
            values.append(_unfolded(value) if is_signed else value)
        yield np.array(values, np.uint64)


def _second_version(content: bytes, is_signed: bool) -> Iterator[Values]:
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
