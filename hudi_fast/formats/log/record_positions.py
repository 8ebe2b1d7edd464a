"""The header RECORD_POSITIONS of a log block <-> row numbers in the base file.

::

    base64 of  uint64 number of buckets | per bucket, ascending: uint32 upper half of its numbers | 32-bit Roaring
    32-bit Roaring:  0x3b30 = flags: uint16 containers - 1 | 1 bit per container: has it runs
                     0x3a30         : uint32 containers
                     per container: uint16 key, uint16 numbers - 1
                     uint32 offset per container (no runs, or 4 containers and more)
                     per container: uint16 runs, then (first, further numbers) each
                                  | up to 4096 numbers as uint16
                                  | 65536 bits, for more                               all little endian

pyroaring writes the bitmap. This module reads it itself, container by container with numpy, because the text is
untrusted: every count is checked against the bytes before allocation, which pyroaring does not do. Source: spec
section 6.6; the Roaring format specification; LogReaderUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import base64
import binascii
import struct

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from hudi_fast.errors import CorruptTableError

__all__ = ["decode_positions", "encode_positions"]

_BUCKETS = struct.Struct("<Q")
_BUCKET = struct.Struct("<IHH")  # upper half, cookie, and the upper bytes of the cookie
_RUNS, _NO_RUNS = 0x303B, 0x303A
_OFFSETS_FROM = 4
_MAX_LISTED = 4096
_CONTAINER_SIZE = 1 << 16


def decode_positions(
    text: str, max_count: int = 2**31 - 1, path: str | None = None, offset: int | None = None
) -> npt.NDArray[np.int64]:
    """Positions in the base file, int64[n], ascending. The i-th position belongs to the i-th record of the block.

    Args:
        text: value of the header.
        max_count: maximum number of positions, for example the number of records in the block.
        path: the log file, for messages.
        offset: byte position of the block, for messages.

    Raises:
        CorruptTableError: the text is not base64, is not such a bitmap, or has more than ``max_count`` positions.
    """
    try:
        return _decode(base64.b64decode(text, validate=True), max_count)
    except (_BadBitmapError, binascii.Error, ValueError) as error:
        raise CorruptTableError(
            f"Expected the record positions of a log block (a base64 text of a Roaring bitmap), found that {error}.",
            path,
            offset,
        ) from error


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode positions in the base file as the header's value; int64[n], distinct, not negative, in any order.

    Raises:
        ValueError: a position is negative, or occurs twice (Hudi then omits the header).
    """
    if positions.size and int(positions.min()) < 0:
        raise ValueError(f"record positions must not be negative; found {int(positions.min())}")
    bitmap = BitMap64(positions.astype(np.uint64))
    if len(bitmap) != positions.size:
        raise ValueError(f"record positions must be distinct; found {positions.size - len(bitmap)} repeated")
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode()


class _BadBitmapError(Exception):
    """An invalid bitmap; converted to a CorruptTableError."""


def _decode(raw: bytes, max_count: int) -> npt.NDArray[np.int64]:
    found: list[npt.NDArray[np.int64]] = []
    buckets = _BUCKETS.unpack(_take(raw, 0, _BUCKETS.size))[0]
    at = _BUCKETS.size
    previous = -1
    for _ in range(buckets):  # raises at the end of the bytes
        upper = int.from_bytes(_take(raw, at, 4), "little")
        if upper <= previous or upper >= 1 << 31:
            raise _BadBitmapError(f"bucket {upper} follows bucket {previous}")
        previous = upper
        first = len(found)
        at = _read_bucket(raw, at, upper << 32, max_count, found)
        max_count -= sum(part.size for part in found[first:])
    if at != len(raw):
        raise _BadBitmapError(f"it has {len(raw)} bytes where its bitmap ends after {at}")
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _take(raw: bytes, at: int, length: int) -> bytes:
    part = raw[at : at + length]
    if len(part) != length:
        raise _BadBitmapError(f"it ends after {len(raw)} bytes where {at + length} are needed")
    return part


def _read_bucket(raw: bytes, start: int, base: int, max_count: int, found: list[npt.NDArray[np.int64]]) -> int:
    """Append the numbers of the bucket at ``start`` to ``found``; return the bucket's end."""
    _, cookie, high = _BUCKET.unpack(_take(raw, start, _BUCKET.size))
    at = start + _BUCKET.size
    if cookie == _RUNS:
        count = high + 1
        flags = np.frombuffer(_take(raw, at, (count + 7) // 8), np.uint8)
        has_runs = np.unpackbits(flags, bitorder="little")[:count]
        at += flags.size
    elif cookie == _NO_RUNS and high == 0:
        count = int.from_bytes(_take(raw, at, 4), "little")
        if count > _CONTAINER_SIZE:
            raise _BadBitmapError(f"a bitmap of {count} containers begins at byte {start}")
        has_runs = np.zeros(count, np.uint8)
        at += 4
    else:
        raise _BadBitmapError(f"no bitmap begins at byte {start + 4}")
    described = np.frombuffer(_take(raw, at, 4 * count), "<u2").astype(np.int64).reshape(count, 2)
    at += 4 * count
    keys, sizes = described[:, 0], described[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise _BadBitmapError("its containers are out of order")
    if int(sizes.sum()) > max_count:
        raise _BadBitmapError(f"it has {int(sizes.sum())} positions or more, where {max_count} are expected")
    if cookie == _NO_RUNS or count >= _OFFSETS_FROM:
        at += len(_take(raw, at, 4 * count))  # offsets are not needed: containers follow each other
    for key, size, runs in zip(keys.tolist(), sizes.tolist(), has_runs.tolist(), strict=True):
        values, at = _read_container(raw, at, size, bool(runs))
        found.append(values + (base + (key << 16)))
    return at


def _read_container(raw: bytes, at: int, size: int, has_runs: bool) -> tuple[npt.NDArray[np.int64], int]:
    """The ``size`` numbers below 65536 of the container at ``at``, and its end."""
    if has_runs:
        count = int.from_bytes(_take(raw, at, 2), "little")
        runs = np.frombuffer(_take(raw, at + 2, 4 * count), "<u2").astype(np.int64).reshape(count, 2)
        values = _expand_runs(runs[:, 0], runs[:, 1] + 1, size)
        at += 2 + 4 * count
    elif size <= _MAX_LISTED:
        values = np.frombuffer(_take(raw, at, 2 * size), "<u2").astype(np.int64)
        at += 2 * size
    else:
        bits = np.frombuffer(_take(raw, at, _CONTAINER_SIZE // 8), np.uint8)
        values = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        at += bits.size
    if values.size != size or (np.diff(values) <= 0).any() or (size and values[-1] >= _CONTAINER_SIZE):
        raise _BadBitmapError(f"the container that ends at byte {at} is malformed")
    return values, at


def _expand_runs(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """The numbers of runs; empty if their count is not ``size``."""
    if int(lengths.sum()) != size:
        return np.empty(0, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(size)
