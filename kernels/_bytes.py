"""Byte-level helpers for kernels: unaligned words, numbers of variable length, short copies, comparison, hashing of
one key.

The machine operations require a little-endian CPU, as Arrow buffers in practice do. They check no bounds: callers stay
inside ``[offsets[i], offsets[i + 1])`` of well-formed Arrow buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int
from ._declared import helper, machine_op

__all__ = [
    "bytes_equal",
    "copy_bytes",
    "copy_text",
    "fold_multiply",
    "hash_bytes",
    "load_u16",
    "load_u32",
    "load_u64",
    "multiply_high",
    "prefetch",
    "read_varint",
    "store_u16",
    "store_u32",
    "store_u64",
    "unfold_sign",
]


# Odd 64-bit constants with about half of their bits set: fractional digits of the square roots of 2, 3 and 5.
_SALT_A = np.uint64(0x6A09E667F3BCC909)
_SALT_B = np.uint64(0xBB67AE8584CAA73B)
_SALT_C = np.uint64(0x3C6EF372FE94F82B)


@machine_op
def load_u16(data: Bytes, position: Int) -> Any:
    """The two bytes at ``position``, little endian, as uint16."""
    return np.uint16(int.from_bytes(data[position : position + 2].tobytes(), "little"))


@machine_op
def load_u32(data: Bytes, position: Int) -> Any:
    """The four bytes at ``position``, little endian, as uint32."""
    return np.uint32(int.from_bytes(data[position : position + 4].tobytes(), "little"))


@machine_op
def load_u64(data: Bytes, position: Int) -> Any:
    """The eight bytes at ``position``, little endian, as uint64."""
    return np.uint64(int.from_bytes(data[position : position + 8].tobytes(), "little"))


@machine_op
def store_u16(data: Bytes, position: Int, value: Any) -> None:
    """Write a uint16, little endian, at ``position``."""
    data[position : position + 2] = np.frombuffer(int(value).to_bytes(2, "little"), np.uint8)


@machine_op
def store_u32(data: Bytes, position: Int, value: Any) -> None:
    """Write a uint32, little endian, at ``position``."""
    data[position : position + 4] = np.frombuffer(int(value).to_bytes(4, "little"), np.uint8)


@machine_op
def store_u64(data: Bytes, position: Int, value: Any) -> None:
    """Write a uint64, little endian, at ``position``."""
    data[position : position + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


@machine_op
def fold_multiply(left: Any, right: Any) -> Any:
    """High half xor low half of the 128-bit product of two uint64."""
    product = int(left) * int(right)
    return np.uint64((product >> 64) ^ (product & 0xFFFFFFFFFFFFFFFF))


@machine_op
def multiply_high(left: Int, right: Int) -> Any:
    """High half of the 128-bit product of two non-negative int64, as int64."""
    return np.int64((int(left) * int(right)) >> 64)


@machine_op
def prefetch(array: npt.NDArray[Any], index: Int) -> None:
    """Prefetch the cache line of ``array[index]``; no effect in Python."""


@machine_op
def copy_bytes(target: Bytes, at: Int, source: Bytes, start: Int, length: Int) -> None:
    """``target[at : at + length] = source[start : start + length]``; the ranges do not overlap."""
    target[at : at + length] = source[start : start + length]


@helper
def copy_text(target: Bytes, at: Int, source: Bytes, start: Int, length: Int) -> None:
    """As :func:`copy_bytes`, for texts that are mostly shorter than 64 bytes: no call, but overlapping words."""
    if length >= 8:
        if length > 64:
            copy_bytes(target, at, source, start, length)
            return
        done = 0
        while done < length - 8:
            store_u64(target, at + done, load_u64(source, start + done))
            done += 8
        store_u64(target, at + length - 8, load_u64(source, start + length - 8))
        return
    if length >= 4:
        store_u32(target, at, load_u32(source, start))
        store_u32(target, at + length - 4, load_u32(source, start + length - 4))
        return
    for i in range(length):
        target[at + i] = source[start + i]


@helper
def read_varint(data: Bytes, at: Int, end: Int) -> Any:
    """Read a number of variable length: seven bits a byte, the lowest bits first.

    The highest bit is set in all bytes but the last. A number has at most ten bytes.

    Returns:
        The 64 bits as int64, and the position after them; the position is -1 if the number does not end before ``end``.
    """
    bits = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(64):
        byte = np.uint64(data[at])
        at += 1
        bits |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(bits), np.int64(at)
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@helper
def unfold_sign(bits: Int) -> Any:
    """The number at index ``bits``, unsigned, of the zigzag order 0, -1, 1, -2, 2 ..., as int64."""
    word = np.uint64(bits)
    return np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))


@helper
def bytes_equal(left: Bytes, left_start: Int, right: Bytes, right_start: Int, length: Int) -> bool:
    """Whether two byte ranges of the same length are equal."""
    if length >= 8:
        done = 0
        while done < length - 8:
            if load_u64(left, left_start + done) != load_u64(right, right_start + done):
                return False
            done += 8
        return bool(load_u64(left, left_start + length - 8) == load_u64(right, right_start + length - 8))
    for i in range(length):
        if left[left_start + i] != right[right_start + i]:
            return False
    return True


@helper
def hash_bytes(data: Bytes, start: Int, length: Int, seed: Any) -> Any:
    """A 64-bit hash of ``data[start : start + length]``: folded 128-bit products, 16 bytes a step.

    For tables in memory only; never stored, may change between releases. It does not resist chosen keys: callers
    compare the bytes after a match, so collisions cost time, not correctness.
    """
    state = np.uint64(seed) ^ (np.uint64(length) * _SALT_A)
    if length >= 8:
        done = 0
        while done + 16 < length:
            state = fold_multiply(
                load_u64(data, start + done) ^ _SALT_A, load_u64(data, start + done + 8) ^ state ^ _SALT_B
            )
            done += 16
        left = load_u64(data, start + (length - 16 if length >= 16 else 0))
        right = load_u64(data, start + length - 8)
    elif length >= 4:
        left = np.uint64(load_u32(data, start))
        right = np.uint64(load_u32(data, start + length - 4))
    else:
        left = np.uint64(0)
        for i in range(length):
            left = (left << np.uint64(8)) | np.uint64(data[start + i])
        right = left
    state = fold_multiply(left ^ _SALT_B ^ state, right ^ _SALT_C)
    return fold_multiply(state ^ _SALT_A, _SALT_C)
