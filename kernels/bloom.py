"""Hudi's bloom filter: set and test bits for many keys at a time.

The hash is the chained MurmurHash 2 variant of ``org.apache.hudi.common.bloom`` (Hudi 0.15 to 1.2): the first seed
is 0, each next seed is the previous hash, the bit is ``abs(seed % bit_count)`` in Java's signed 32-bit arithmetic. The
tail bytes of a key (length modulo 4) are read from its end and sign-extended.

Two properties make it fast. The contribution of a 4-byte word does not depend on the seed, so each word is mixed once
per key and not once per hash. And keys are independent: ``LANES`` of them advance together, word by word, in vector
registers. A batch ends early once every key in it has met an unset bit.

::

    keys --load_lanes--> words[word][lane], tail[lane], length[lane] --hash_lanes--> seed[lane] --> bit, per hash
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Offsets
from ._bytes import load_u32
from ._kernel import helper, kernel

__all__ = ["bloom_add", "bloom_probe", "bloom_probe_rows"]


Lanes: TypeAlias = npt.NDArray[np.uint32]

LANES = 16
_M = np.uint32(0x5BD1E995)


@helper
def _load_lanes(
    offsets: Offsets, data: Bytes, first: Int, count: Int, words: Lanes, word_counts: Any, lengths: Lanes, tails: Lanes
) -> Any:
    """Mix the words of ``count`` keys from row ``first`` on into lanes; return (fewest, most) words of a key."""
    fewest, most = np.int64(1 << 40), np.int64(0)
    for lane in range(LANES):
        row = first + min(lane, count - 1)
        start = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        full = length >> 2
        for word in range(full):
            k = np.uint32(load_u32(data, start + 4 * word) * _M)
            k ^= k >> np.uint32(24)
            words[word * LANES + lane] = np.uint32(k * _M)
        left = length & 3
        end = start + length
        tail = np.int64(0)
        if left >= 3:
            tail ^= np.int64(np.int8(data[end - 3])) << 16
        if left >= 2:
            tail ^= np.int64(np.int8(data[end - 2])) << 8
        if left >= 1:
            tail ^= np.int64(np.int8(data[end - 1]))
        lengths[lane] = np.uint32(length)
        tails[lane] = np.uint32(tail)
        word_counts[lane] = np.int32(full)
        fewest = min(fewest, full)
        most = max(most, full)
    return fewest, most


@helper
def _hash_lanes(
    seeds: Lanes, fewest: Int, most: Int, words: Lanes, word_counts: Any, lengths: Lanes, tails: Lanes
) -> None:
    """Replace each lane's seed by its next hash."""
    for lane in range(LANES):
        seeds[lane] ^= lengths[lane]
    for word in range(fewest):
        at = word * LANES
        for lane in range(LANES):
            seeds[lane] = np.uint32(seeds[lane] * _M) ^ words[at + lane]
    for word in range(fewest, most):
        at = word * LANES
        for lane in range(LANES):
            mixed = np.uint32(seeds[lane] * _M) ^ words[at + lane]
            seeds[lane] = mixed if word < word_counts[lane] else seeds[lane]
    for lane in range(LANES):
        h = seeds[lane]
        mixed = np.uint32(np.uint32(h ^ tails[lane]) * _M)
        h = mixed if lengths[lane] & np.uint32(3) else h
        h ^= h >> np.uint32(13)
        h = np.uint32(h * _M)
        seeds[lane] = h ^ (h >> np.uint32(15))


@helper
def _magic(bit_count: Int) -> Any:
    """``(multiplier, shift)`` with ``x // bit_count == x * multiplier >> shift`` for 0 <= x <= 2**31."""
    power = np.int64(0)
    while (np.int64(1) << power) < bit_count:
        power += 1
    shift = np.uint64(31 + power)
    multiplier = ((np.uint64(1) << shift) + np.uint64(bit_count) - np.uint64(1)) // np.uint64(bit_count)
    return multiplier, shift


@helper
def _bit_of(seed: Any, bit_count: Int, multiplier: Any, shift: Any) -> Any:
    """Java's ``Math.abs(seed % bitCount)``, exact for all seeds including ``Integer.MIN_VALUE``."""
    magnitude = np.uint64(abs(np.int64(np.int32(seed))))
    quotient = (magnitude * multiplier) >> shift
    return np.int64(magnitude - quotient * np.uint64(bit_count))


@helper
def _most_words(offsets: Offsets) -> Int:
    longest = np.int64(0)
    for row in range(offsets.size - 1):
        longest = max(longest, np.int64(offsets[row + 1]) - np.int64(offsets[row]))
    return longest >> 2


@kernel("void(ri4, ru1, wu1, i8, i8)")
def bloom_add(offsets: Offsets, data: Bytes, bits: Bytes, bit_count: Int, hash_count: Int) -> None:
    """Set the bits of every key.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the keys.
        bits: uint8[(bit_count + 7) // 8], changed in place; bit i is byte i >> 3, mask 1 << (i & 7).
        bit_count: bits in the filter, at least 1 and below 2**31.
        hash_count: hashes per key.
    """
    words = np.empty(max(1, _most_words(offsets)) * LANES, np.uint32)
    word_counts = np.empty(LANES, np.int32)
    lengths, tails, seeds = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    multiplier, shift = _magic(bit_count)
    rows = offsets.size - 1
    for first in range(0, rows, LANES):
        count = min(LANES, rows - first)
        fewest, most = _load_lanes(offsets, data, first, count, words, word_counts, lengths, tails)
        seeds[:] = np.uint32(0)
        for _ in range(hash_count):
            _hash_lanes(seeds, fewest, most, words, word_counts, lengths, tails)
            for lane in range(count):
                bit = _bit_of(seeds[lane], bit_count, multiplier, shift)
                bits[bit >> 3] |= np.uint8(1 << (bit & 7))


@helper
def _probe(
    offsets: Offsets, data: Bytes, filters: Bytes, filter_count: Int, bit_count: Int, hash_count: Int, out: Bytes
) -> None:
    words = np.empty(max(1, _most_words(offsets)) * LANES, np.uint32)
    word_counts = np.empty(LANES, np.int32)
    lengths, tails, seeds = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    alive = np.empty(LANES, np.uint8)
    multiplier, shift = _magic(bit_count)
    row_bytes = (bit_count + 7) >> 3
    rows = offsets.size - 1
    for first in range(0, rows, LANES):
        count = min(LANES, rows - first)
        fewest, most = _load_lanes(offsets, data, first, count, words, word_counts, lengths, tails)
        for lane in range(count):
            out[first + lane] = np.uint8(0)
        for row in range(filter_count):
            base = row * row_bytes
            seeds[:] = np.uint32(0)
            alive[:] = np.uint8(1)
            for _ in range(hash_count):
                _hash_lanes(seeds, fewest, most, words, word_counts, lengths, tails)
                any_alive = np.uint8(0)
                for lane in range(LANES):
                    bit = _bit_of(seeds[lane], bit_count, multiplier, shift)
                    left = alive[lane] & (filters[base + (bit >> 3)] >> np.uint8(bit & 7))
                    alive[lane] = left
                    any_alive |= left
                if not any_alive:
                    break
            for lane in range(count):
                out[first + lane] |= alive[lane]


@kernel("void(ri4, ru1, ru1, i8, i8, wu1)")
def bloom_probe(offsets: Offsets, data: Bytes, bits: Bytes, bit_count: Int, hash_count: Int, out: Bytes) -> None:
    """Test whether each key may be in a filter of one row.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the keys.
        bits: uint8[(bit_count + 7) // 8], the filter.
        bit_count: bits in the filter, at least 1 and below 2**31.
        hash_count: hashes per key.
        out: uint8[n], set to 1 where all bits of the key are set, else 0.
    """
    _probe(offsets, data, bits, 1, bit_count, hash_count, out)


@kernel("void(ri4, ru1, ru1, i8, i8, i8, wu1)")
def bloom_probe_rows(
    offsets: Offsets, data: Bytes, filters: Bytes, filter_count: Int, bit_count: Int, hash_count: Int, out: Bytes
) -> None:
    """Test whether each key may be in any of several filters of one shape, such as the rows of a dynamic filter.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the keys.
        filters: uint8[filter_count * ((bit_count + 7) // 8)], the concatenated filters.
        filter_count: number of filters.
        bit_count: bits in one filter, at least 1 and below 2**31.
        hash_count: hashes per key.
        out: uint8[n], set to 1 where all bits of the key are set in one of the filters, else 0.
    """
    _probe(offsets, data, filters, filter_count, bit_count, hash_count, out)
