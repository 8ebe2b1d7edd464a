"""Read integers of ORC streams, which are stored in runs.

::

    version 1   numbers with equal steps (control, step, first number), or up to 128 numbers of variable length
    version 2   two bits for the kind of a run, and up to 512 numbers:
                a repeated number | numbers of a fixed width | the same, with patches for larger ones | ascending ones

Signed numbers are stored in zigzag order: 0, -1, 1, -2, 2. Arithmetic wraps at 64 bits. A stream does not store the
number of its numbers.

Source: ORC specification v1, "Integer Run Length Encoding", versions 1 and 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._arrays import Bytes, Int, Int64s
from ._bytes import read_varint, unfold_sign
from ._declared import helper
from ._kernel import kernel

__all__ = ["RunBounds", "measure_runs", "read_runs"]

_MOST = 2**63 - 1
_CUT_OFF = -1


class RunBounds(NamedTuple):
    """Count and bounds of the numbers of a stream.

    Attributes:
        numbers: count of the numbers.
        least: the smallest number; 2^63 - 1 without numbers.
        largest: the largest number; -2^63 without numbers.
        total: sum of the numbers above 0, at most 2^63 - 1.
    """

    numbers: int
    least: int
    largest: int
    total: int


@helper
def _read_bits(data: Bytes, at: Int, width: Int) -> Any:
    """The ``width`` bits, 0 to 64, from bit ``at`` on; the first bit is the highest."""
    value = np.uint64(0)
    end = at + width
    while at < end:
        left = 8 - (at & 7)
        taken = left if left < end - at else end - at
        part = np.uint64(data[at >> 3]) >> np.uint64(left - taken)
        value = (value << np.uint64(taken)) | (part & ((np.uint64(1) << np.uint64(taken)) - np.uint64(1)))
        at += taken
    return np.int64(value)


@helper
def _width(code: Int) -> Any:
    """Bits of a number, from the code of five bits in a run's header."""
    if code < 24:
        return np.int64(code + 1)
    return np.int64(26 + 2 * (code - 24)) if code < 28 else np.int64(40 + 8 * (code - 28))


@helper
def _stored_width(bits: Int) -> Any:
    """The smallest width of stored numbers that holds ``bits`` bits, at most 64."""
    if bits <= 24:
        return np.int64(bits)
    if bits <= 32:
        return np.int64((bits + 1) & ~1)
    return np.int64((bits + 7) & ~7) if bits < 64 else np.int64(64)


@helper
def _keep(values: Int64s, bounds: Int64s, count: Int, value: Int) -> Any:
    """Add a number to ``count`` earlier numbers; return the new count."""
    if count < values.size:
        values[count] = value
    if value < bounds[0]:
        bounds[0] = value
    if value > bounds[1]:
        bounds[1] = value
    if value > 0:
        bounds[2] = bounds[2] + value if value <= np.int64(_MOST) - bounds[2] else np.int64(_MOST)
    return np.int64(count + 1)


@helper
def _first_version(data: Bytes, at: Int, is_signed: bool, values: Int64s, bounds: Int64s, count: Int) -> Any:
    """(position after the run at ``at``, numbers so far); the position is -1 if it is cut off."""
    head = np.int64(data[at])
    at += 1
    if head < 128:
        if at >= data.size:
            return np.int64(_CUT_OFF), count
        step = np.int64(data[at]) - (256 if data[at] >= 128 else 0)
        value, at = read_varint(data, at + 1, data.size)
        value = unfold_sign(value) if is_signed else value
        for _ in range(head + 3 if at >= 0 else 0):
            count = _keep(values, bounds, count, value)
            value += step
        return at, count
    for _ in range(256 - head):
        value, at = read_varint(data, at, data.size)
        if at < 0:
            return at, count
        count = _keep(values, bounds, count, unfold_sign(value) if is_signed else value)
    return np.int64(at), count


@helper
def _patched(data: Bytes, at: Int, size: Int, width: Int, values: Int64s, bounds: Int64s, count: Int) -> Any:
    """(position after a run with patches, numbers so far); ``at`` is after its length, ``size`` is its count.

    The position is -1 if the run is cut off.
    """
    if data.size - at < 2:
        return np.int64(_CUT_OFF), count
    base_size, patch_width = np.int64(data[at] >> 5) + 1, _width(np.int64(data[at]) & 31)
    gap_width, patches = np.int64(data[at + 1] >> 5) + 1, np.int64(data[at + 1]) & 31
    entry_width = _stored_width(patch_width + gap_width)
    at += 2
    start = at + base_size
    patches_at = start + (size * width + 7) // 8
    end = patches_at + (patches * entry_width + 7) // 8
    if end > data.size:
        return np.int64(_CUT_OFF), count
    base = _read_bits(data, 8 * at, 8 * base_size)
    sign = np.int64(np.uint64(1) << np.uint64(8 * base_size - 1))
    if base & sign:
        base = -(base & (sign - 1))
    gap_width = entry_width - patch_width
    used = np.int64(0)
    place = _read_bits(data, 8 * patches_at, gap_width) if patches > 0 else np.int64(-1)
    for i in range(size):
        value = _read_bits(data, 8 * start + i * width, width)
        while used < patches and place == i:
            patch = _read_bits(data, 8 * patches_at + used * entry_width + gap_width, patch_width)
            if width < 64:
                value |= np.int64(np.uint64(patch) << np.uint64(width))
            used += 1
            if used < patches:
                place += _read_bits(data, 8 * patches_at + used * entry_width, gap_width)
        count = _keep(values, bounds, count, base + value)
    return np.int64(end) if used == patches else np.int64(_CUT_OFF), count


@helper
def _second_version(data: Bytes, at: Int, is_signed: bool, values: Int64s, bounds: Int64s, count: Int) -> Any:
    """(position after the run at ``at``, numbers so far); the position is -1 if it is cut off."""
    head = np.int64(data[at])
    kind, code = head >> 6, (head >> 1) & 31
    if kind == 0:
        size = ((head >> 3) & 7) + 1
        if size > data.size - at - 1:
            return np.int64(_CUT_OFF), count
        value = _read_bits(data, 8 * (at + 1), 8 * size)
        value = unfold_sign(value) if is_signed else value
        for _ in range((head & 7) + 3):
            count = _keep(values, bounds, count, value)
        return np.int64(at + 1 + size), count
    if data.size - at < 2:
        return np.int64(_CUT_OFF), count
    size = (((head & 1) << 8) | np.int64(data[at + 1])) + 1
    at += 2
    width = _width(code)
    if kind == 2:
        return _patched(data, at, size, width, values, bounds, count)
    if kind == 1:
        end = at + (size * width + 7) // 8
        if end > data.size:
            return np.int64(_CUT_OFF), count
        for i in range(size):
            value = _read_bits(data, 8 * at + i * width, width)
            count = _keep(values, bounds, count, unfold_sign(value) if is_signed else value)
        return np.int64(end), count
    value, at = read_varint(data, at, data.size)
    if at < 0:
        return np.int64(_CUT_OFF), count
    value = unfold_sign(value) if is_signed else value
    step, at = read_varint(data, at, data.size)
    step = unfold_sign(step)
    width = width if code else np.int64(0)  # without bits, all steps equal the first step
    end = at + ((size - 2) * width + 7) // 8 if size > 2 else at
    if at < 0 or end > data.size:
        return np.int64(_CUT_OFF), count
    count = _keep(values, bounds, count, value)
    for i in range(size - 1):
        if i > 0 and width > 0:
            further = _read_bits(data, 8 * at + (i - 1) * width, width)
            value += further if step >= 0 else -further
        else:
            value += step
        count = _keep(values, bounds, count, value)
    return np.int64(end), count


@kernel("i8(ru1, b1, b1, wi8, wi8)")
def _read_runs(data: Bytes, is_first_version: bool, is_signed: bool, values: Int64s, bounds: Int64s) -> Int:
    """The count of numbers; -1 if a run is cut off. Numbers beyond the end of ``values`` are not stored."""
    bounds[0], bounds[1], bounds[2] = np.int64(_MOST), np.int64(-_MOST - 1), np.int64(0)
    count = np.int64(0)
    at = np.int64(0)
    while at < data.size:
        if is_first_version:
            at, count = _first_version(data, at, is_signed, values, bounds, count)
        else:
            at, count = _second_version(data, at, is_signed, values, bounds, count)
        if at < 0:
            return np.int64(_CUT_OFF)
    return count


def measure_runs(data: Bytes, version: int, is_signed: bool = False) -> RunBounds:
    """Count the numbers of a stream, and find their bounds.

    Args:
        data: uint8[], the uncompressed stream.
        version: version of the runs, 1 or 2.
        is_signed: whether the numbers are stored in zigzag order.

    Raises:
        ValueError: a run is cut off.
    """
    return _bounds(data, version, is_signed, np.empty(0, np.int64))


def read_runs(data: Bytes, count: int, version: int, is_signed: bool = False) -> Int64s:
    """The numbers of a stream, int64[count]; unsigned numbers keep their bits.

    Args:
        data: uint8[], the uncompressed stream.
        count: count of the numbers.
        version: version of the runs, 1 or 2.
        is_signed: whether the numbers are stored in zigzag order.

    Raises:
        ValueError: the stream has another count of numbers, or a run is cut off.
    """
    values = np.empty(count, np.int64)
    found = _bounds(data, version, is_signed, values).numbers
    if found != count:
        raise ValueError(f"a stream of {found} numbers, expected {count}")
    return values


def _bounds(data: Bytes, version: int, is_signed: bool, values: Int64s) -> RunBounds:
    bounds = np.empty(3, np.int64)
    count = int(_read_runs(data, version == 1, is_signed, values, bounds))
    if count < 0:
        raise ValueError("a run is cut off")
    return RunBounds(count, *bounds.tolist())
