"""Hashes that select the bucket of a record key, for many keys at a time.

A key of several fields is ``f1:v1,f2:v2``: the values of the hashed fields are hashed, in the key's order. Any other
key is hashed as a whole. Values may contain commas and colons: a value ends at the last comma before the next colon.

::

    keys ─► values of the hashed fields ─┬─► Java's List.hashCode of the values     fixed buckets
                                         └─► the joined values ─► xxHash32          consistent hashing

Releases detect keys of several fields differently: see :data:`ANY_COLON`.

Source: ``BucketIdentifier``, ``ConsistentBucketIdentifier``, ``KeyGenUtils.extractRecordKeysByFields`` (Hudi 0.15.0
and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Offsets
from ._bytes import bytes_equal, copy_bytes, load_u64
from ._declared import helper
from ._kernel import kernel
from .java_hash import hash_text
from .xx_hash import xx_hash32

__all__ = ["ANY_COLON", "COMMA_AND_COLON", "joined_hashes", "list_hashes"]

COMMA_AND_COLON = 0
"""Keys with a comma and a colon have several fields (Hudi 1.x)."""

ANY_COLON = 1
"""Keys with a colon have several fields, split at every comma (Hudi 0.x); a part without a colon is a whole value."""

_NULL = np.frombuffer(b"__null__", np.uint8)
_EMPTY = np.frombuffer(b"__empty__", np.uint8)

_COMMA, _COLON = 0x2C, 0x3A
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)


@helper
def _find(data: Bytes, start: Int, end: Int, byte: Int) -> Any:
    """Position of the first ``byte`` in ``data[start:end]``; -1 if absent."""
    at = np.int64(start)
    pattern = np.uint64(byte) * _LOW_BITS
    while at + 8 <= end:
        word = load_u64(data, at) ^ pattern
        if (word - _LOW_BITS) & ~word & _HIGH_BITS:
            break
        at += 8
    while at < end:
        if data[at] == byte:
            return at
        at += 1
    return np.int64(-1)


@helper
def _last_comma(data: Bytes, start: Int, end: Int) -> Any:
    """Position of the last comma in ``data[start:end]``; -1 if absent."""
    at = np.int64(end) - 1
    while at >= start:
        if data[at] == _COMMA:
            return at
        at -= 1
    return np.int64(-1)


@helper
def _is_hashed(data: Bytes, start: Int, end: Int, name_offsets: Offsets, names: Bytes) -> bool:
    """Whether ``data[start:end]`` is one of the names."""
    for name in range(name_offsets.size - 1):
        first, last = np.int64(name_offsets[name]), np.int64(name_offsets[name + 1])
        if last - first == end - start and bytes_equal(data, start, names, first, end - start):
            return True
    return False


@helper
def _is_text(data: Bytes, start: Int, end: Int, text: Bytes) -> bool:
    return bool(end - start == text.size) and bool(bytes_equal(data, start, text, 0, text.size))


@helper
def _value_end(data: Bytes, colon: Int, end: Int) -> Any:
    """The end of the value after ``colon``: the last comma before the next colon, or the end of the key."""
    later = _find(data, colon + 1, end, _COLON)
    while later >= 0:
        comma = _last_comma(data, colon + 1, later)
        if comma >= 0:
            return comma
        later = _find(data, later + 1, end, _COLON)
    return np.int64(end)


@helper
def _has_fields(data: Bytes, start: Int, end: Int, rule: Int) -> bool:
    """Whether the key has several fields."""
    if _find(data, start, end, _COLON) < 0:
        return False
    return bool(rule == ANY_COLON) or bool(_find(data, start, end, _COMMA) >= 0)


@helper
def _fields_end(data: Bytes, start: Int, end: Int, rule: Int) -> Any:
    """The end of the last field: Java's ``split`` (:data:`ANY_COLON`) drops empty parts at the end."""
    last = np.int64(end)
    while rule == ANY_COLON and last > start and data[last - 1] == _COMMA:
        last -= 1
    return last


@helper
def _part(data: Bytes, at: Int, end: Int, rule: Int) -> Any:
    """The ``field:value`` that begins at ``at``: position of its colon (-1 if absent), and its end."""
    if rule == ANY_COLON:
        comma = _find(data, at, end, _COMMA)
        stop = np.int64(end) if comma < 0 else comma
        return _find(data, at, stop, _COLON), stop
    colon = _find(data, at, end, _COLON)
    return colon, np.int64(end) if colon < 0 else _value_end(data, colon, end)


@kernel("void(ri4, ru1, ri4, ru1, i8, wi4)")
def _list_hashes(offsets: Offsets, data: Bytes, name_offsets: Offsets, names: Bytes, rule: Int, out: Int32s) -> None:
    """``List.hashCode`` of the hashed values of each key."""
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        code = np.uint32(1)
        found = 0
        if _has_fields(data, at, end, rule):
            end = _fields_end(data, at, end, rule)
            while at < end:
                colon, stop = _part(data, at, end, rule)
                if colon < 0:
                    if rule == ANY_COLON:
                        code = np.uint32(code * np.uint32(31) + hash_text(data, at, stop))
                        found += 1
                elif _is_hashed(data, at, colon, name_offsets, names):
                    value = np.uint32(0)
                    if not _is_text(data, colon + 1, stop, _NULL) and not _is_text(data, colon + 1, stop, _EMPTY):
                        value = hash_text(data, colon + 1, stop)
                    code = np.uint32(code * np.uint32(31) + value)
                    found += 1
                at = stop + 1
            if not found and rule == COMMA_AND_COLON:
                code = np.uint32(np.uint32(31) + hash_text(data, np.int64(offsets[row]), end))
        else:
            code = np.uint32(np.uint32(31) + hash_text(data, at, end))
        out[row] = np.int32(code)


@kernel("void(ri4, ru1, ri4, ru1, i8, wi4, wu1)")
def _joined_values(
    offsets: Offsets, data: Bytes, name_offsets: Offsets, names: Bytes, rule: Int, out_offsets: Int32s, out: Bytes
) -> None:
    """The concatenated hashed values of each key. Null becomes ``null``, which is shorter than its placeholder."""
    filled = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        at = start
        found = 0
        if _has_fields(data, start, end, rule):
            end = _fields_end(data, start, end, rule)
            while at < end:
                colon, stop = _part(data, at, end, rule)
                if colon < 0:
                    if rule == ANY_COLON:
                        copy_bytes(out, filled, data, at, stop - at)
                        filled += stop - at
                        found += 1
                elif _is_hashed(data, at, colon, name_offsets, names):
                    if _is_text(data, colon + 1, stop, _NULL):
                        copy_bytes(out, filled, _NULL, 2, 4)
                        filled += 4
                    elif not _is_text(data, colon + 1, stop, _EMPTY):
                        copy_bytes(out, filled, data, colon + 1, stop - colon - 1)
                        filled += stop - colon - 1
                    found += 1
                at = stop + 1
            if not found and rule == COMMA_AND_COLON:
                copy_bytes(out, filled, data, start, end - start)
                filled += end - start
        else:
            copy_bytes(out, filled, data, start, end - start)
            filled += end - start
        out_offsets[row + 1] = filled


def list_hashes(offsets: Offsets, data: Bytes, fields: Sequence[str], rule: int = COMMA_AND_COLON) -> Int32s:
    """``List.hashCode`` of the values of the hashed ``fields``, int32[n].

    ``offsets`` int32[n + 1] and ``data`` are the record keys as UTF-8; ``rule`` is :data:`COMMA_AND_COLON` or
    :data:`ANY_COLON`.
    """
    out = np.empty(len(offsets) - 1, np.int32)
    _list_hashes(offsets, data, *_names(fields), rule, out)
    return out


def joined_hashes(offsets: Offsets, data: Bytes, fields: Sequence[str], rule: int = COMMA_AND_COLON) -> Int32s:
    """xxHash32 of the joined values of the hashed ``fields``, without its highest bit: int32[n], not negative.

    ``offsets``, ``data``, ``rule``: as in :func:`list_hashes`.
    """
    size = int(offsets[-1]) - int(offsets[0])
    joined_offsets, joined = np.empty(len(offsets), np.int32), np.empty(size, np.uint8)
    _joined_values(offsets, data, *_names(fields), rule, joined_offsets, joined)
    hashes = np.empty(len(offsets) - 1, np.uint32)
    xx_hash32(joined_offsets, joined, np.uint32(0), hashes)
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int32)


def _names(fields: Sequence[str]) -> tuple[Offsets, Bytes]:
    encoded = [name.encode() for name in fields]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64).astype(np.int32)
    return offsets, np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
