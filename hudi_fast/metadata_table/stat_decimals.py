"""Decimals as two's complement numbers of minimal length, like ``BigInteger.toByteArray``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_fast.formats.varlen import string_array, varlen_buffers
from hudi_fast.kernels.avro_decode import COPY_SLACK, copy_values
from hudi_fast.kernels.avro_encode import find_wide_decimal, measure_decimals, write_decimals

__all__ = ["decimals_of_bytes", "minimal_bytes"]

_WIDTH = 16
_LOW_HALF = 2**64 - 1


def minimal_bytes(values: pa.Array) -> pa.Array:
    """The unscaled numbers of a decimal128 array as bytes, big endian: binary[n]."""
    count = len(values)
    valid = values.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    numbers = _numbers(values)
    sizes = np.zeros(count, np.int64)
    measure_decimals(numbers, valid, sizes)
    bounds = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    framed = np.empty(int(bounds[-1]), np.uint8)
    kept = np.flatnonzero(valid)
    halves = numbers.reshape(count, 2)[kept].reshape(-1)
    write_decimals(halves, -1, np.empty(0, np.uint8), -1, bounds[kept], bounds[kept + 1], framed)
    # A length of one byte precedes each number.
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(sizes - valid, out=offsets[1:])
    out = np.empty(int(offsets[-1]) + COPY_SLACK, np.uint8)
    copy_values(framed, bounds[:-1] + valid, offsets, out)
    nulls = count - len(kept)
    validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    return string_array(offsets, out, pa.binary(), validity, nulls)


def decimals_of_bytes(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Unscaled numbers as decimal128(precision, scale): n values; null for invalid bytes and too many digits.

    Args:
        values: binary[n], two's complement, big endian.
        precision: digits, at most 38.
        scale: digits after the decimal point.
    """
    count = len(values)
    offsets, data = varlen_buffers(values)
    ends, sizes = offsets[1:].astype(np.int64), np.diff(offsets).astype(np.int64)
    valid = (sizes > 0) & (sizes <= _WIDTH)
    if values.null_count:
        valid &= values.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.where(valid, sizes, 0)
    out = np.zeros((count, _WIDTH), np.uint8)
    some = np.flatnonzero(valid)
    out[some] = np.where(data[ends[some] - sizes[some]] >= 0x80, 0xFF, 0)[:, None]
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        out[rows, place] = data[ends[rows] - 1 - place]
    halves = out.reshape(-1).view(np.uint64)
    most = 10**precision - 1
    flags = valid.astype(np.uint8)
    first = 0
    while True:
        left = halves[2 * first :], flags[first:]
        found = int(find_wide_decimal(*left, _WIDTH, np.uint64(most >> 64), np.uint64(most & _LOW_HALF)))
        if found < 0:
            break
        flags[first + found] = 0
        first += found + 1
    nulls = count - int(flags.sum())
    validity = pa.py_buffer(np.packbits(flags, bitorder="little")) if nulls else None
    kind = pa.decimal128(precision, scale)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(halves)], nulls)


def _numbers(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(0, np.uint64)
    return np.frombuffer(buffer, np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
