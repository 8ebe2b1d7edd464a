"""Exact hash tables over variable-length byte keys: look rows up, and pick one row per distinct key.

A table is one uint64 array with a power-of-two capacity, at most three quarters full, probed linearly. A slot holds the
upper 32 bits of the key's hash above ``row + 1``; 0 is an empty slot. The table does not copy the key bytes: it works
only with the buffers that it was built on. Equal hashes are always followed by a comparison of the bytes.

Rows are processed in blocks of ``BLOCK``, in passes: hash and prefetch the slots; find the candidate row and prefetch
its offset; prefetch its bytes; compare. So the cache misses of a block overlap.

A table may have a filter: a bit array in which every key sets one bit; at most a tenth of the bits are set. Keys whose
bit is not set are absent. The filter fits into a faster cache than the slots, and its branch is predicted well, which
halves the time for keys that are mostly absent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bools, Bytes, Int, Int32s, Int64s, Offsets, UInt64s
from ._bytes import bytes_equal, hash_bytes, prefetch
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "KeyTable",
    "build_filter",
    "build_key_table",
    "count_distinct",
    "first_equal",
    "hash_keys",
    "pick_winners",
    "pick_winners_grouped",
    "probe_key_table",
    "table_capacity",
]


BLOCK = 64
_MANY_KEYS = 1 << 22
_TAG = np.uint64(0xFFFFFFFF00000000)
_ROW = np.uint64(0x00000000FFFFFFFF)


@kernel("void(ri4, ru1, wu8)")
def hash_keys(offsets: Offsets, data: Bytes, out: UInt64s) -> None:
    """Fill ``out`` uint64[n] with a hash of each key. The hash is only for use in memory: it may change in a release.

    ``offsets`` int32[n + 1] and ``data`` are the keys.
    """
    for row in range(offsets.size - 1):
        start = np.int64(offsets[row])
        out[row] = hash_bytes(data, start, np.int64(offsets[row + 1]) - start, np.uint64(0))


@helper
def _filter_bit(code: Any, bits: Any) -> Any:
    """The bit of a hash, from its upper half, because the lower half chooses the slot."""
    return ((code >> np.uint64(32)) * bits) >> np.uint64(32)


@helper
def _hash_block(offsets: Offsets, data: Bytes, first: Int, count: Int, hashes: Any, words: UInt64s, bits: Any) -> None:
    """Hash keys and prefetch their slots in ``words``, or their bits if ``words`` is a filter of ``bits`` bits."""
    mask = np.uint64(words.size - 1)
    for i in range(count):
        start = np.int64(offsets[first + i])
        code = hash_bytes(data, start, np.int64(offsets[first + i + 1]) - start, np.uint64(0))
        hashes[i] = code
        if bits:
            prefetch(words, np.int64(_filter_bit(code, bits) >> np.uint64(6)))
        else:
            prefetch(words, np.int64(code & mask))


@helper
def _possible(
    hashes: Any, count: Int, bit_words: UInt64s, slots: UInt64s, first: Int, waiting: Any, out: Int32s
) -> Int:
    """Keep the hashes whose bit is set, with their rows in ``waiting``; the other rows of ``out`` become -1."""
    bits, mask = np.uint64(bit_words.size * 64), np.uint64(slots.size - 1)
    kept = np.int64(0)
    for i in range(count):
        code = hashes[i]
        bit = _filter_bit(code, bits)
        if (bit_words[np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & np.uint64(1):
            hashes[kept] = code
            waiting[kept] = first + i
            kept += 1
            prefetch(slots, np.int64(code & mask))
        else:
            out[first + i] = np.int32(-1)
    return kept


@helper
def _same_key(
    left_offsets: Offsets, left_data: Bytes, left: Int, right_offsets: Offsets, right_data: Bytes, right: Int
) -> bool:
    left_start, right_start = np.int64(left_offsets[left]), np.int64(right_offsets[right])
    length = np.int64(left_offsets[left + 1]) - left_start
    if np.int64(right_offsets[right + 1]) - right_start != length:
        return False
    return bytes_equal(left_data, left_start, right_data, right_start, length)


@helper
def _next_tagged(slots: UInt64s, place: Int, code: Any) -> Int:
    """The first slot from ``place`` on that is empty or has the tag of ``code``."""
    mask = slots.size - 1
    while slots[place] != np.uint64(0) and (slots[place] ^ code) & _TAG:
        place = (place + 1) & mask
    return place


@kernel("i8(ri4, ru1, wu8)")
def _fill_table(offsets: Offsets, data: Bytes, slots: UInt64s) -> Int:
    """Insert the first row of every key into zeroed ``slots``; return the number of distinct keys."""
    hashes = np.empty(BLOCK, np.uint64)
    rows = offsets.size - 1
    mask = slots.size - 1
    distinct = np.int64(0)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        _hash_block(offsets, data, first, count, hashes, slots, np.uint64(0))
        for i in range(count):
            code = hashes[i]
            row = first + i
            place = _next_tagged(slots, np.int64(code & np.uint64(mask)), code)
            while slots[place] != np.uint64(0):
                known = np.int64(slots[place] & _ROW) - 1
                if _same_key(offsets, data, known, offsets, data, row):
                    break
                place = _next_tagged(slots, (place + 1) & mask, code)
            if slots[place] == np.uint64(0):
                slots[place] = (code & _TAG) | np.uint64(row + 1)
                distinct += 1
    return distinct


@kernel("void(ru8, wu8)")
def _fill_filter(slots: UInt64s, bit_words: UInt64s) -> None:
    """Set the bit of each key of a table in zeroed ``bit_words``."""
    bits = np.uint64(bit_words.size * 64)
    for slot in slots:
        if slot != np.uint64(0):
            bit = _filter_bit(slot, bits)
            bit_words[np.int64(bit >> np.uint64(6))] |= np.uint64(1) << (bit & np.uint64(63))


@kernel("void(ru8, ri4, ru1, ru8, ri4, ru1, wi4)")
def probe_key_table(
    slots: UInt64s,
    build_offsets: Offsets,
    build_data: Bytes,
    bit_words: UInt64s,
    offsets: Offsets,
    data: Bytes,
    out: Int32s,
) -> None:
    """Look keys up.

    Args:
        slots: uint64[capacity], from :func:`build_key_table`.
        build_offsets: int32[m + 1], the offsets that the table was built on.
        build_data: uint8[], the bytes that the table was built on.
        bit_words: uint64[], from :func:`build_filter`; uint64[0] for no filter.
        offsets: int32[n + 1], Arrow offsets of the keys to look up.
        data: uint8[], bytes of these keys.
        out: int32[n], filled with the first build row of the same key, or -1.
    """
    hashes = np.empty(BLOCK, np.uint64)
    places = np.empty(BLOCK, np.int64)
    waiting = np.empty(BLOCK, np.int64)
    rows = offsets.size - 1
    mask = slots.size - 1
    bits = np.uint64(bit_words.size * 64)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        if bits:
            _hash_block(offsets, data, first, count, hashes, bit_words, bits)
            kept: Any = _possible(hashes, count, bit_words, slots, first, waiting, out)
        else:
            _hash_block(offsets, data, first, count, hashes, slots, np.uint64(0))
            for i in range(count):
                waiting[i] = first + i
            kept = count
        for i in range(kept):
            place = _next_tagged(slots, np.int64(hashes[i] & np.uint64(mask)), hashes[i])
            places[i] = place
            known = np.int64(slots[place] & _ROW) - 1
            out[waiting[i]] = np.int32(known)
            prefetch(build_offsets, max(known, np.int64(0)))
        for i in range(kept):
            known = np.int64(out[waiting[i]])
            if known >= 0:
                start = np.int64(build_offsets[known])
                prefetch(build_data, start)
                prefetch(build_data, np.int64(build_offsets[known + 1]) - 1)
        for i in range(kept):
            row = waiting[i]
            known = np.int64(out[row])
            place = places[i]
            while known >= 0 and not _same_key(build_offsets, build_data, known, offsets, data, row):
                place = _next_tagged(slots, (place + 1) & mask, hashes[i])
                known = np.int64(slots[place] & _ROW) - 1
            out[row] = np.int32(known)


@kernel("i8(ri4, ru1, ri4, ri8, wu8, wb1)")
def _mark_winners(
    offsets: Offsets,
    data: Bytes,
    groups: Int32s,
    rank: Int64s,
    slots: UInt64s,
    wins: Bools,
) -> Int:
    """Mark the winning row of each (key, group) in ``wins``; empty ``groups`` is one group. Returns the number."""
    hashes = np.empty(BLOCK, np.uint64)
    rows = offsets.size - 1
    mask = slots.size - 1
    grouped = groups.size > 0
    distinct = np.int64(0)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        for i in range(count):
            start = np.int64(offsets[first + i])
            seed = np.uint64(np.uint32(groups[first + i])) + np.uint64(1) if grouped else np.uint64(0)
            hashes[i] = hash_bytes(data, start, np.int64(offsets[first + i + 1]) - start, seed)
            prefetch(slots, np.int64(hashes[i] & np.uint64(mask)))
        for i in range(count):
            code = hashes[i]
            row = first + i
            place = _next_tagged(slots, np.int64(code & np.uint64(mask)), code)
            known = np.int64(slots[place] & _ROW) - 1
            while known >= 0:
                same_group = not grouped or groups[known] == groups[row]
                if same_group and _same_key(offsets, data, known, offsets, data, row):
                    break
                place = _next_tagged(slots, (place + 1) & mask, code)
                known = np.int64(slots[place] & _ROW) - 1
            if known < 0:
                distinct += 1
            elif rank[row] < rank[known]:
                continue
            else:
                wins[known] = False
            slots[place] = (code & _TAG) | np.uint64(row + 1)
            wins[row] = True
    return distinct


def table_capacity(rows: int) -> int:
    """The number of slots for ``rows`` keys: a power of two that is at least twice the rows, to keep chains short.

    For many keys it is at least four thirds of the rows: a table of 20 million keys takes 256 MiB instead of 512.
    """
    needed = 2 * max(rows, 1) if rows < _MANY_KEYS else rows + rows // 3 + 1
    return 1 << max(3, (needed - 1).bit_length())


def build_key_table(offsets: Offsets, data: Bytes) -> UInt64s:
    """Build a table over keys, uint64[capacity]; among equal keys the first row is stored.

    :func:`probe_key_table` requires the same ``offsets`` and ``data``.
    """
    slots = np.zeros(table_capacity(offsets.size - 1), np.uint64)
    _fill_table(offsets, data, slots)
    return slots


def build_filter(slots: UInt64s) -> UInt64s:
    """The filter of a table, uint64[]: eight bits for each of its ``slots``, so more than ten bits for a key."""
    bit_words = np.zeros(max(1, slots.size // 8), np.uint64)
    _fill_filter(slots, bit_words)
    return bit_words


def count_distinct(offsets: Offsets, data: Bytes) -> int:
    """The number of distinct keys, ``offsets`` int32[n + 1] into ``data`` uint8[]."""
    return int(_fill_table(offsets, data, np.zeros(table_capacity(offsets.size - 1), np.uint64)))


def pick_winners(offsets: Offsets, data: Bytes, rank: Int64s) -> Int64s:
    """The winning row of each distinct key, ascending int64[]: the row with the greatest rank, the last among equals.

    ``offsets`` int32[n + 1] and ``data`` are the keys, ``rank`` is int64[n].
    """
    return pick_winners_grouped(offsets, data, np.empty(0, np.int32), rank)


def pick_winners_grouped(offsets: Offsets, data: Bytes, groups: Int32s, rank: Int64s) -> Int64s:
    """The winning row of each distinct (key, group), as in :func:`pick_winners`.

    ``groups`` int32[n], such as the row's partition; int32[0] for one group. ``offsets``, ``data``, ``rank``: as there.

    Raises:
        ValueError: the lengths differ.
    """
    rows = offsets.size - 1
    if rank.size != rows or groups.size not in (0, rows):
        raise ValueError(f"{rows} keys need as many ranks and groups; got {rank.size} and {groups.size}")
    wins = np.zeros(rows, np.bool_)
    _mark_winners(offsets, data, groups, rank, np.zeros(table_capacity(rows), np.uint64), wins)
    return np.flatnonzero(wins)


def first_equal(offsets: Offsets, data: Bytes) -> Int32s:
    """int32[n]: for each key, the first row with the same bytes, so equal keys have the same number.

    Args:
        offsets: int32[n + 1].
        data: uint8[].
    """
    return KeyTable.build(offsets, data).probe(offsets, data)


class KeyTable:
    """The ``slots`` of :func:`build_key_table` together with the ``offsets`` and ``data`` that they were built on.

    ``bit_words`` is the filter, uint64[0] without one.
    """

    __slots__ = ("bit_words", "data", "offsets", "slots")

    def __init__(self, offsets: Offsets, data: Bytes, slots: UInt64s, bit_words: UInt64s) -> None:
        self.offsets = offsets
        self.data = data
        self.slots = slots
        self.bit_words = bit_words

    @classmethod
    def build(cls, offsets: Offsets, data: Bytes, mostly_absent: bool = False) -> KeyTable:
        """Build a table over keys, see :func:`build_key_table`; keeps references to both arrays.

        Args:
            offsets: int32[n + 1].
            data: uint8[].
            mostly_absent: whether most keys to look up are not in the table; builds a filter, too.
        """
        slots = build_key_table(offsets, data)
        return cls(offsets, data, slots, build_filter(slots) if mostly_absent else np.empty(0, np.uint64))

    def probe(self, offsets: Offsets, data: Bytes) -> Int32s:
        """int32[n]: for each key, the first build row with the same bytes, or -1."""
        out = np.empty(offsets.size - 1, np.int32)
        probe_key_table(self.slots, self.offsets, self.data, self.bit_words, offsets, data, out)
        return out
