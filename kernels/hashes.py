"""Hashes of many strings at a time.

Hashes that select the bucket of a record key, for many keys at a time.

A key of several fields is ``f1:v1,f2:v2``: the values of the hashed fields are hashed, in the key's order. Any other
key is hashed as a whole. Values may contain commas and colons: a value ends at the last comma before the next colon.

::

    keys ─► values of the hashed fields ─┬─► Java's List.hashCode of the values     fixed buckets
                                         └─► the joined values ─► xxHash32          consistent hashing

Releases detect keys of several fields differently: see :data:`ANY_COLON`.

Source: ``BucketIdentifier``, ``ConsistentBucketIdentifier``, ``KeyGenUtils.extractRecordKeysByFields`` (Hudi 0.15.0
and 1.2.0).

Java's ``String.hashCode`` and ``List.hashCode`` for many strings at a time.

Hudi selects buckets, and file groups of the metadata table, by these hashes. Strings are UTF-8; Java hashes UTF-16 code
units, so a character above U+FFFF counts as two. Arithmetic wraps at 32 bits, as in Java.

xxHash32 and xxHash64 of many strings at a time.

Hudi's consistent bucket index hashes record keys with xxHash32; the metadata table's keys of columns and partitions
hold xxHash64. Both read little-endian words: four lanes while a whole stripe (16 or 32 bytes) is left, then single
words, then single bytes, and a final mix. Arithmetic wraps.

Source: the xxHash specification, version 0.1.1; results match ``net.jpountz.xxhash``, which Hudi 1.2.0 uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Int32s, Offsets, UInt64s
from ._bytes import bytes_equal, copy_bytes, load_u32, load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "ANY_COLON",
    "COMMA_AND_COLON",
    "hash_text",
    "joined_hashes",
    "list_hash_combine",
    "list_hashes",
    "string_hash_codes",
    "xx_hash32",
    "xx_hash64",
]

_NOT_ASCII = np.uint64(0x8080808080808080)
_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_EVEN_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_31, _31_TO_2, _31_TO_4 = np.uint64(31), np.uint64(31**2), np.uint64(31**4)
_31_TO_8 = np.uint32(31**8 & 0xFFFFFFFF)


@helper
def _continuation(data: Bytes, position: Int, end: Int) -> Any:
    """Payload of a UTF-8 continuation byte; 0 beyond the end, so malformed text is never read past its end."""
    return np.int64(data[position] & 0x3F) if position < end else np.int64(0)


@helper
def _hash_any(data: Bytes, start: Int, end: Int, code: Any) -> Any:
    """Continue ``code`` over text with multi-byte characters."""
    at = start
    h = np.uint32(code)
    while at < end:
        lead = np.int64(data[at])
        if lead < 0x80:
            point, size = lead, 1
        elif lead < 0xE0:
            point, size = (lead & 0x1F) << 6 | _continuation(data, at + 1, end), 2
        elif lead < 0xF0:
            point = (lead & 0x0F) << 12 | _continuation(data, at + 1, end) << 6 | _continuation(data, at + 2, end)
            size = 3
        else:
            point = (lead & 0x07) << 18 | _continuation(data, at + 1, end) << 12
            point |= _continuation(data, at + 2, end) << 6 | _continuation(data, at + 3, end)
            size = 4
        at += size
        if point > 0xFFFF:
            h = np.uint32(h * np.uint32(31) + np.uint32(0xD800 + ((point - 0x10000) >> 10)))
            point = 0xDC00 + ((point - 0x10000) & 0x3FF)
        h = np.uint32(h * np.uint32(31) + np.uint32(point))
    return h


@helper
def hash_text(data: Bytes, start: Int, end: Int) -> Any:
    """``String.hashCode`` of the UTF-8 text ``data[start:end]``, as uint32."""
    at = np.int64(start)
    h = np.uint32(0)
    # Eight ASCII characters a step, combined as pairs, then fours, to shorten the chain of dependent multiplications.
    while at + 8 <= end:
        word = load_u64(data, at)
        if word & _NOT_ASCII:
            break
        pairs = (word & _EVEN_BYTES) * _31 + (word >> np.uint64(8) & _EVEN_BYTES)
        fours = (pairs & _EVEN_PAIRS) * _31_TO_2 + (pairs >> np.uint64(16) & _EVEN_PAIRS)
        eight = (fours & _LOW_HALF) * _31_TO_4 + (fours >> np.uint64(32))
        h = np.uint32(h * _31_TO_8 + np.uint32(eight & _LOW_HALF))
        at += 8
    return _hash_any(data, at, end, h)


@kernel("void(ri4, ru1, wi4)")
def string_hash_codes(offsets: Offsets, data: Bytes, out: Int32s) -> None:
    """Fill ``out`` int32[n] with the ``String.hashCode`` of each string; 0 for an empty string, as in Java.

    ``offsets`` int32[n + 1] and ``data`` are the strings as UTF-8.
    """
    for row in range(offsets.size - 1):
        out[row] = np.int32(hash_text(data, np.int64(offsets[row]), np.int64(offsets[row + 1])))


@kernel("void(wi4, ri4)")
def list_hash_combine(codes: Int32s, elements: Int32s) -> None:
    """One step of ``List.hashCode`` per row: ``codes = 31 * codes + elements``.

    ``codes`` are all 1 before the first element; ``elements`` are hash codes, 0 for null.
    """
    for row in range(codes.size):
        codes[row] = np.int32(np.uint32(codes[row]) * np.uint32(31) + np.uint32(elements[row]))


UInt32s: TypeAlias = npt.NDArray[np.uint32]

_A32 = np.uint32(0x9E3779B1)
_B32 = np.uint32(0x85EBCA77)
_C32 = np.uint32(0xC2B2AE3D)
_D32 = np.uint32(0x27D4EB2F)
_E32 = np.uint32(0x165667B1)

_A64 = np.uint64(0x9E3779B185EBCA87)
_B64 = np.uint64(0xC2B2AE3D27D4EB4F)
_C64 = np.uint64(0x165667B19E3779F9)
_D64 = np.uint64(0x85EBCA77C2B2AE63)
_E64 = np.uint64(0x27D4EB2F165667C5)


@helper
def _rotate32(value: Any, bits: Int) -> Any:
    return np.uint32(np.uint32(value << np.uint32(bits)) | np.uint32(value >> np.uint32(32 - bits)))


@helper
def _rotate64(value: Any, bits: Int) -> Any:
    return np.uint64(value << np.uint64(bits)) | np.uint64(value >> np.uint64(64 - bits))


@helper
def _lane32(lane: Any, word: Any) -> Any:
    return np.uint32(_rotate32(np.uint32(lane + np.uint32(word * _B32)), 13) * _A32)


@helper
def _lane64(lane: Any, word: Any) -> Any:
    return np.uint64(_rotate64(np.uint64(lane + np.uint64(word * _B64)), 31) * _A64)


@helper
def _join64(code: Any, lane: Any) -> Any:
    return np.uint64(np.uint64(code ^ _lane64(np.uint64(0), lane)) * _A64 + _D64)


@helper
def _hash32(data: Bytes, start: Int, end: Int, seed: Any) -> Any:
    at = start
    if end - start >= 16:
        a = np.uint32(seed + np.uint32(_A32 + _B32))
        b = np.uint32(seed + _B32)
        c = np.uint32(seed)
        d = np.uint32(seed - _A32)
        while at + 16 <= end:
            a = _lane32(a, load_u32(data, at))
            b = _lane32(b, load_u32(data, at + 4))
            c = _lane32(c, load_u32(data, at + 8))
            d = _lane32(d, load_u32(data, at + 12))
            at += 16
        code = np.uint32(_rotate32(a, 1) + _rotate32(b, 7) + _rotate32(c, 12) + _rotate32(d, 18))
    else:
        code = np.uint32(seed + _E32)
    code = np.uint32(code + np.uint32(end - start))
    while at + 4 <= end:
        code = np.uint32(_rotate32(np.uint32(code + np.uint32(load_u32(data, at) * _C32)), 17) * _D32)
        at += 4
    while at < end:
        code = np.uint32(_rotate32(np.uint32(code + np.uint32(np.uint32(data[at]) * _E32)), 11) * _A32)
        at += 1
    code = np.uint32(np.uint32(code ^ (code >> np.uint32(15))) * _B32)
    code = np.uint32(np.uint32(code ^ (code >> np.uint32(13))) * _C32)
    return np.uint32(code ^ (code >> np.uint32(16)))


@helper
def _hash64(data: Bytes, start: Int, end: Int, seed: Any) -> Any:
    at = start
    if end - start >= 32:
        a = np.uint64(seed + np.uint64(_A64 + _B64))
        b = np.uint64(seed + _B64)
        c = np.uint64(seed)
        d = np.uint64(seed - _A64)
        while at + 32 <= end:
            a = _lane64(a, load_u64(data, at))
            b = _lane64(b, load_u64(data, at + 8))
            c = _lane64(c, load_u64(data, at + 16))
            d = _lane64(d, load_u64(data, at + 24))
            at += 32
        code = np.uint64(_rotate64(a, 1) + _rotate64(b, 7) + _rotate64(c, 12) + _rotate64(d, 18))
        code = _join64(_join64(_join64(_join64(code, a), b), c), d)
    else:
        code = np.uint64(seed + _E64)
    code = np.uint64(code + np.uint64(end - start))
    while at + 8 <= end:
        code = np.uint64(_rotate64(code ^ _lane64(np.uint64(0), load_u64(data, at)), 27) * _A64 + _D64)
        at += 8
    if at + 4 <= end:
        code = np.uint64(_rotate64(code ^ np.uint64(np.uint64(load_u32(data, at)) * _A64), 23) * _B64 + _C64)
        at += 4
    while at < end:
        code = np.uint64(_rotate64(code ^ np.uint64(np.uint64(data[at]) * _E64), 11) * _A64)
        at += 1
    code = np.uint64(np.uint64(code ^ (code >> np.uint64(33))) * _B64)
    code = np.uint64(np.uint64(code ^ (code >> np.uint64(29))) * _C64)
    return np.uint64(code ^ (code >> np.uint64(32)))


@kernel("void(ri4, ru1, u4, wu4)")
def xx_hash32(offsets: Offsets, data: Bytes, seed: Any, out: UInt32s) -> None:
    """Fill ``out`` uint32[n] with the xxHash32 of each string; ``seed`` is uint32.

    ``offsets`` int32[n + 1] and ``data`` are the strings.
    """
    for row in range(offsets.size - 1):
        out[row] = _hash32(data, np.int64(offsets[row]), np.int64(offsets[row + 1]), np.uint32(seed))


@kernel("void(ri4, ru1, u8, wu8)")
def xx_hash64(offsets: Offsets, data: Bytes, seed: Any, out: UInt64s) -> None:
    """Fill ``out`` uint64[n] with the xxHash64 of each string; ``seed`` is uint64.

    ``offsets`` int32[n + 1] and ``data`` are the strings.
    """
    for row in range(offsets.size - 1):
        out[row] = _hash64(data, np.int64(offsets[row]), np.int64(offsets[row + 1]), np.uint64(seed))


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
