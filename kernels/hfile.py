"""Entries of HFile blocks, and the search in sorted keys.

Entries of one data block of an HFile: keys and values copied into Arrow buffers, or written from them.

An entry, all big endian: int32 key length | int32 value length | key | value | one byte 0 (a version number that Hudi
does not use). The key: int16 length of its content | content | byte length of the column family | family and
qualifier (empty in Hudi's files) | int64 timestamp | byte type. Keys of builds between the releases 1.0 and 1.1 end
after the content. Source: HFile reference section 1.5; HFileDataBlock, Hudi 1.2.0.

Search in the sorted keys of HFiles: the blocks that can hold a key, and the entries of a block with the key.

All searches take many keys or key prefixes and return a range for each: of blocks (:func:`route_keys`) or of entries
(:func:`find_keys`, :func:`find_prefixes`). Keys compare by their unsigned bytes, eight at a time. For blocks that are
searched often, :func:`key_heads` extracts eight distinguishing bytes of each key, which stay in the CPU's cache.

Java compares strings by UTF-16 units. In UTF-8 that is byte order with one exception: the lead bytes 0xF0 to 0xF4
(supplementary characters) sort before 0xEE and 0xEF (U+E000 to U+FFFF). For files whose writer sorted by UTF-16 units,
route the keys that :func:`mark_rare_keys` marks a second time, with ``java`` set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bools, Bytes, Int, Int32s, Int64s, Offsets, UInt64s
from ._bytes import bytes_equal, copy_bytes, load_u64, prefetch
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "copy_entries",
    "find_keys",
    "find_prefixes",
    "first_unordered",
    "key_heads",
    "mark_rare_keys",
    "measure_entries",
    "route_keys",
    "write_entries",
]

_PUT = 4
_LENGTHS = 8
_BEFORE_CONTENT = 2  # bytes of a key before its content: content length
_AROUND_CONTENT = 12  # bytes of a key besides its content: content length, family length, timestamp, type


@helper
def _int32(data: Bytes, at: Int) -> Any:
    """The signed int32 at ``at``, big endian."""
    high = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16
    value = high | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@helper
def _int16(data: Bytes, at: Int) -> Any:
    """The two bytes at ``at``, big endian; values above 32767 are negative to Hudi."""
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@kernel("i8(ru1, wi8)")
def measure_entries(data: Bytes, sizes: Int64s) -> Int:
    """Check the entries of a block.

    Args:
        data: uint8[], the block's payload, not compressed.
        sizes: int64[2], filled with the bytes of all keys and the bytes of all values.

    Returns:
        The number of entries; or ``-1 - i`` if the entry at byte ``i`` is malformed.
    """
    at = np.int64(0)
    end = data.size
    rows = np.int64(0)
    sizes[0], sizes[1] = 0, 0
    while at < end:
        key_at = at + _LENGTHS
        if end - at < _LENGTHS + _BEFORE_CONTENT + 1:
            return np.int64(-1 - at)
        key_length, value_length = _int32(data, at), _int32(data, at + 4)
        content = _int16(data, key_at)
        if key_length < content + _BEFORE_CONTENT or content > 32767 or value_length < 0:
            return np.int64(-1 - at)
        if key_length + value_length + 1 > end - key_at:
            return np.int64(-1 - at)
        last = key_at + key_length + value_length
        if data[last] != 0:
            return np.int64(-1 - at)
        if key_length > content + _BEFORE_CONTENT:
            if key_length < content + _AROUND_CONTENT or data[key_at + key_length - 1] != _PUT:
                return np.int64(-1 - at)
            if np.int64(data[key_at + 2 + content]) > key_length - content - _AROUND_CONTENT:
                return np.int64(-1 - at)
        sizes[0] += content
        sizes[1] += value_length
        at = last + 1
        rows += 1
    return rows


@kernel("void(ru1, wi4, wu1, wi4, wu1)")
def copy_entries(data: Bytes, key_offsets: Offsets, keys: Bytes, value_offsets: Offsets, values: Bytes) -> None:
    """Copy the n entries of an uncompressed block ``data`` that :func:`measure_entries` has checked.

    Fills ``key_offsets`` and ``value_offsets`` int32[n + 1], and ``keys`` and ``values`` uint8[].
    """
    at = np.int64(0)
    key_offsets[0] = 0
    value_offsets[0] = 0
    for row in range(key_offsets.size - 1):
        key_at = at + _LENGTHS
        value_at = key_at + _int32(data, at)
        content, length = _int16(data, key_at), _int32(data, at + 4)
        copy_bytes(keys, np.int64(key_offsets[row]), data, key_at + 2, content)
        copy_bytes(values, np.int64(value_offsets[row]), data, value_at, length)
        key_offsets[row + 1] = np.int32(key_offsets[row] + content)
        value_offsets[row + 1] = np.int32(value_offsets[row] + length)
        at = value_at + length + 1


@helper
def _store_int32(out: Bytes, at: Int, value: Int) -> None:
    """Write a non-negative number as int32, big endian."""
    out[at] = np.uint8(value >> 24)
    out[at + 1] = np.uint8(value >> 16 & 0xFF)
    out[at + 2] = np.uint8(value >> 8 & 0xFF)
    out[at + 3] = np.uint8(value & 0xFF)


@kernel("i8(ri4, ru1, ri4, ru1, i8, wu1, wi8)")
def write_entries(
    key_offsets: Offsets,
    keys: Bytes,
    value_offsets: Offsets,
    values: Bytes,
    row: Int,
    out: Bytes,
    filled: Int64s,
) -> Int:
    """Write entries until one does not fit.

    Args:
        key_offsets: int32[n + 1], Arrow offsets of the keys' contents, none longer than 32767 bytes.
        keys: uint8[], bytes of the keys' contents.
        value_offsets: int32[n + 1], Arrow offsets of the values.
        values: uint8[], bytes of the values.
        row: the first entry to write.
        out: uint8[], filled with the payload of the block.
        filled: int64[1], number of bytes of ``out`` in use; incremented.

    Returns:
        The first row that did not fit, or n.
    """
    at = filled[0]
    rows = np.int64(key_offsets.size - 1)
    row = np.int64(row)
    while row < rows:
        key_start, value_start = np.int64(key_offsets[row]), np.int64(value_offsets[row])
        content = np.int64(key_offsets[row + 1]) - key_start
        length = np.int64(value_offsets[row + 1]) - value_start
        if content + length + _LENGTHS + _AROUND_CONTENT + 1 > out.size - at:
            break
        _store_int32(out, at, content + _AROUND_CONTENT)
        _store_int32(out, at + 4, length)
        out[at + 8] = np.uint8(content >> 8)
        out[at + 9] = np.uint8(content & 0xFF)
        at += _LENGTHS + 2
        copy_bytes(out, at, keys, key_start, content)
        at += content
        out[at] = np.uint8(0)  # no column family
        out[at + 1] = np.uint8(0x7F)  # the largest timestamp
        for i in range(at + 2, at + 9):
            out[i] = np.uint8(0xFF)
        out[at + 9] = np.uint8(_PUT)
        at += 10
        copy_bytes(out, at, values, value_start, length)
        at += length
        out[at] = np.uint8(0)
        at += 1
        row += 1
    filled[0] = at
    return row


_RARE = 0xEE
_BATCH = 64  # keys with overlapping cache misses
_FEW = 8  # keys with one head; up to this number, a linear scan beats a binary search


@helper
def _swapped(word: Any) -> Any:
    """The word with its bytes in reverse order."""
    word = ((word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)) | (
        (word & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)
    )
    word = ((word >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)) | (
        (word & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)
    )
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@helper
def _compare(left: Bytes, at: Int, length: Int, right: Bytes, start: Int, size: Int) -> Int:
    """-1, 0 or 1: compare ``left[at : at + length]`` to ``right[start : start + size]`` by unsigned bytes."""
    common = min(length, size)
    done = np.int64(0)
    while common - done >= 8:
        a, b = load_u64(left, at + done), load_u64(right, start + done)
        if a != b:
            return np.int64(-1) if _swapped(a) < _swapped(b) else np.int64(1)
        done += 8
    while done < common:
        x, y = left[at + done], right[start + done]
        if x != y:
            return np.int64(-1) if x < y else np.int64(1)
        done += 1
    if length == size:
        return np.int64(0)
    return np.int64(-1) if length < size else np.int64(1)


@helper
def _compare_java(left: Bytes, at: Int, length: Int, right: Bytes, start: Int, size: Int) -> Int:
    """:func:`_compare`, in the order of UTF-16 units."""
    for i in range(min(length, size)):
        x, y = np.int64(left[at + i]), np.int64(right[start + i])
        if x != y:
            if x >= 0xF0:
                x = np.int64(_RARE) - 1
            if y >= 0xF0:
                y = np.int64(_RARE) - 1
            if x == y:
                return np.int64(-1) if left[at + i] < right[start + i] else np.int64(1)
            return np.int64(-1) if x < y else np.int64(1)
    if length == size:
        return np.int64(0)
    return np.int64(-1) if length < size else np.int64(1)


@helper
def _count_up_to(
    key_offsets: Offsets, keys: Bytes, known: Int, data: Bytes, start: Int, size: Int, prefix: bool, java: bool
) -> Int:
    """Count the sorted keys that are not above a value; the first ``known`` keys are known not to be above it.

    With ``prefix``, keys that begin with the value count as equal to it.
    """
    low, high = np.int64(known), np.int64(key_offsets.size - 1)
    while low < high:
        middle = (low + high) >> 1
        at = np.int64(key_offsets[middle])
        length = np.int64(key_offsets[middle + 1]) - at
        if prefix and length > size:
            length = np.int64(size)
        if java:
            order = _compare_java(keys, at, length, data, start, size)
        else:
            order = _compare(keys, at, length, data, start, size)
        if order <= 0:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _compare_row(key_offsets: Offsets, keys: Bytes, row: Int, data: Bytes, start: Int, size: Int) -> Int:
    """-1, 0 or 1: compare one of the keys to a value."""
    at = np.int64(key_offsets[row])
    return _compare(keys, at, np.int64(key_offsets[row + 1]) - at, data, start, size)


@helper
def _count_below(key_offsets: Offsets, keys: Bytes, known: Int, data: Bytes, start: Int, size: Int) -> Int:
    """Count the sorted keys below a value; the first ``known`` keys are known to be below it."""
    low, high = np.int64(known), np.int64(key_offsets.size - 1)
    while low < high:
        middle = (low + high) >> 1
        if _compare_row(key_offsets, keys, middle, data, start, size) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel("void(ri4, ru1, b1, b1, b1, ri4, ru1, wi4, wi4)")
def route_keys(
    index_offsets: Offsets,
    index_data: Bytes,
    has_last: bool,
    prefix: bool,
    java: bool,
    offsets: Offsets,
    data: Bytes,
    first: Int32s,
    last: Int32s,
) -> None:
    """Find the blocks that can hold keys, or entries with a prefix.

    Args:
        index_offsets: int32[blocks + 1], offsets of the blocks' index keys. A block's index key is at most its first
            key and greater than the last key of the previous block; ascending.
        index_data: uint8[], bytes of the index keys.
        has_last: whether the last index key is the last key of the file rather than a block's.
        prefix: whether to search for prefixes.
        java: whether to compare as Java compares strings.
        offsets: int32[n + 1], Arrow offsets of the keys or prefixes.
        data: uint8[], bytes of the keys or prefixes.
        first: int32[n], filled with the first block.
        last: int32[n], filled with the last block; below ``first`` if no block can hold the key.
    """
    blocks = np.int64(index_offsets.size - 1)
    if has_last:
        blocks -= 1
    for row in range(offsets.size - 1):
        start = np.int64(offsets[row])
        size = np.int64(offsets[row + 1]) - start
        begin = _count_up_to(index_offsets, index_data, 0, data, start, size, False, java) - 1
        end = begin
        if prefix:
            end = _count_up_to(index_offsets, index_data, begin + 1, data, start, size, True, java) - 1
            begin = max(begin, np.int64(0))
        elif begin < 0:
            begin, end = np.int64(0), np.int64(-1)
        if begin >= blocks:  # at or above the last key of the file
            at = np.int64(index_offsets[blocks])
            length = np.int64(index_offsets[blocks + 1]) - at
            begin = blocks - 1
            end = begin if _compare(index_data, at, length, data, start, size) == 0 else begin - 1
        first[row] = np.int32(begin)
        last[row] = np.int32(min(end, blocks - 1))


@helper
def _head(data: Bytes, at: Int, length: Int) -> Any:
    """The first eight bytes, padded with zeros, as a number with the same order."""
    if length >= 8:
        return _swapped(load_u64(data, at))
    head = np.uint64(0)
    for i in range(8):
        head <<= np.uint64(8)
        if i < length:
            head |= np.uint64(data[at + i])
    return head


@kernel("i8(ri4, ru1, wu8)")
def key_heads(offsets: Offsets, data: Bytes, heads: UInt64s) -> Int:
    """Extract numbers that sort as the keys do, as far as eight bytes can distinguish them.

    Args:
        offsets: int32[n + 1], Arrow offsets of ascending keys.
        data: uint8[], bytes of these keys.
        heads: uint64[n], filled with the eight bytes after the prefix that all keys share.

    Returns:
        The length of the shared prefix in bytes.
    """
    rows = offsets.size - 1
    if rows == 0:
        return np.int64(0)
    first, last = np.int64(offsets[0]), np.int64(offsets[rows - 1])
    common = min(np.int64(offsets[1]) - first, np.int64(offsets[rows]) - last)
    shared = np.int64(0)
    while shared < common and data[first + shared] == data[last + shared]:
        shared += 1
    for row in range(rows):
        at = np.int64(offsets[row]) + shared
        heads[row] = _head(data, at, np.int64(offsets[row + 1]) - at)
    return shared


@helper
def _heads_below(heads: UInt64s, head: Any) -> Int:
    """Count the ascending heads below one head, without a branch that the CPU would mispredict."""
    base, count = np.int64(0), np.int64(heads.size)
    while count > 1:
        half = count >> 1
        base += half * np.int64(heads[base + half - 1] < head)
        count -= half
    if count == 1:
        base += np.int64(heads[base] < head)
    return base


@helper
def _first_candidate(
    key_offsets: Offsets, keys: Bytes, heads: UInt64s, shared: Int, data: Bytes, start: Int, size: Int
) -> Int:
    """The first row that may have a key, judged by heads; -1 if none can."""
    if heads.size == 0 or size < shared or not bytes_equal(keys, np.int64(key_offsets[0]), data, start, shared):
        return np.int64(-1)
    head = _head(data, start + shared, size - shared)
    low = np.int64(_heads_below(heads, head))
    if low == heads.size or heads[low] != head:
        return np.int64(-1)
    if low + _FEW < heads.size and heads[low + _FEW] == head:
        low = np.int64(_count_below(key_offsets, keys, low, data, start, size))
    return low


@helper
def _find_equal_run(
    key_offsets: Offsets, keys: Bytes, data: Bytes, start: Int, size: Int, first: Int64s, end: Int64s, i: Int
) -> None:
    """Replace the candidate ``first[i]`` by the range of rows with a key; -1 gives an empty range."""
    count = np.int64(key_offsets.size - 1)
    low = first[i] if first[i] >= 0 else count
    order: Int = np.int64(-1)
    while low < count:
        order = _compare_row(key_offsets, keys, low, data, start, size)
        if order >= 0:
            break
        low += 1
    first[i] = end[i] = low
    while order == 0 and low < count:
        low += 1
        end[i] = low
        if low < count:
            order = _compare_row(key_offsets, keys, low, data, start, size)


@kernel("void(ri4, ru1, ru8, i8, ri4, ru1, ri8, wi8, wi8)")
def find_keys(
    key_offsets: Offsets,
    keys: Bytes,
    heads: UInt64s,
    shared: Int,
    offsets: Offsets,
    data: Bytes,
    rows: Int64s,
    first: Int64s,
    end: Int64s,
) -> None:
    """Find the entries of one block with given keys.

    Args:
        key_offsets: int32[m + 1], offsets of the block's ascending keys.
        keys: uint8[], bytes of these keys.
        heads: uint64[m], from :func:`key_heads`.
        shared: length of the shared prefix, from :func:`key_heads`.
        offsets: int32[n + 1], Arrow offsets of the requested keys.
        data: uint8[], bytes of the requested keys.
        rows: int64[k], which requested keys to find.
        first: int64[k], filled with the first entry.
        end: int64[k], filled with the entry after the last; equal to ``first`` if no entry has the key.
    """
    for begin in range(0, rows.size, _BATCH):
        stop = min(begin + _BATCH, rows.size)
        for i in range(begin, stop):
            prefetch(data, np.int64(offsets[rows[i]]))
        for i in range(begin, stop):
            start = np.int64(offsets[rows[i]])
            low = _first_candidate(
                key_offsets, keys, heads, shared, data, start, np.int64(offsets[rows[i] + 1]) - start
            )
            first[i] = low
            prefetch(key_offsets, max(low, np.int64(0)))
        for i in range(begin, stop):
            prefetch(keys, np.int64(key_offsets[max(first[i], np.int64(0))]))
        for i in range(begin, stop):
            start = np.int64(offsets[rows[i]])
            _find_equal_run(key_offsets, keys, data, start, np.int64(offsets[rows[i] + 1]) - start, first, end, i)


@kernel("void(ri4, ru1, ri4, ru1, ri8, wi8, wi8)")
def find_prefixes(
    key_offsets: Offsets,
    keys: Bytes,
    offsets: Offsets,
    data: Bytes,
    rows: Int64s,
    first: Int64s,
    end: Int64s,
) -> None:
    """Find the entries of one block whose keys begin with given prefixes.

    Args:
        key_offsets: int32[m + 1], offsets of the block's ascending keys.
        keys: uint8[], bytes of these keys.
        offsets: int32[n + 1], Arrow offsets of the prefixes.
        data: uint8[], bytes of the prefixes.
        rows: int64[k], which prefixes to find.
        first: int64[k], filled with the first entry.
        end: int64[k], filled with the entry after the last; equal to ``first`` if no entry has the prefix.
    """
    for i in range(rows.size):
        start = np.int64(offsets[rows[i]])
        size = np.int64(offsets[rows[i] + 1]) - start
        low = _count_below(key_offsets, keys, 0, data, start, size)
        first[i] = low
        end[i] = _count_up_to(key_offsets, keys, low, data, start, size, True, False)


@kernel("i8(ri4, ru1, b1)")
def first_unordered(offsets: Offsets, data: Bytes, strict: bool) -> Int:
    """The first row whose key is below its predecessor, or with ``strict`` not above it; -1 if the keys are sorted.

    ``offsets`` int32[n + 1] and ``data`` are the keys.
    """
    limit = 0 if strict else 1
    for row in range(1, offsets.size - 1):
        before, start, end = np.int64(offsets[row - 1]), np.int64(offsets[row]), np.int64(offsets[row + 1])
        if _compare(data, before, start - before, data, start, end - start) >= limit:
            return row
    return -1


@kernel("i8(ri4, ru1, wb1)")
def mark_rare_keys(offsets: Offsets, data: Bytes, out: Bools) -> Int:
    """Mark in ``out`` bool[n] the keys whose position in Java's order may differ from byte order; return how many.

    ``offsets`` int32[n + 1] and ``data`` are the keys.
    """
    marked = 0
    for row in range(offsets.size - 1):
        rare = False
        for at in range(offsets[row], offsets[row + 1]):
            rare |= data[at] >= _RARE
        out[row] = rare
        marked += rare
    return marked
