"""Hudi's bloom filter: bits for many keys at a time, and its base64 text.

Hudi's bloom filter: set and test bits for many keys at a time.

The hash is the chained MurmurHash 2 variant of ``org.apache.hudi.common.bloom`` (Hudi 0.15 to 1.2): the first seed
is 0, each next seed is the previous hash, the bit is ``abs(seed % bit_count)`` in Java's signed 32-bit arithmetic. The
tail bytes of a key (length modulo 4) are read from its end and sign-extended.

Three properties make it fast. The contribution of a 4-byte word does not depend on the seed, so each word is mixed once
per key and not once per hash. Keys are independent, so many keys advance together, word by word, each in a lane of the
vector registers; with fewer lanes each multiplication would wait for the previous one. The bits of all lanes are
computed before any bit is looked up, because only the computation can use vector registers. A batch ends early once
every key in it has met an unset bit.

::

    keys ─► _load: words[word, lane], lengths, tails ─► _hash: seeds ─► _bits_of: bits ─► set or test, per hash

Read base64 text of long byte strings: the bloom filters in the footers of base files.

A table holds the bits of each character at each of the four places of a group. Decoding a filter of the default size
takes 0.13 ms; the standard library, which decodes one character at a time, takes 1.15 ms.
"""

from __future__ import annotations

import binascii
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Int32s, Offsets
from ._bytes import load_u32, store_u32
from ._declared import helper
from ._kernel import kernel

__all__ = ["bloom_add", "bloom_probe", "bloom_probe_rows", "from_base64"]

Lanes: TypeAlias = npt.NDArray[np.uint32]

LANES, LANES_OF_LONG_KEYS = 128, 16
LONG_WORDS = 4096
"""A key with this many words is long: a batch has 512 bytes for each word of its longest key."""
_M = np.uint32(0x5BD1E995)


class _Keys(NamedTuple):
    """A batch of keys, one in each lane.

    Attributes:
        words: uint32[words of the longest key, lanes], mixed.
        counts: int32[lanes], words of each key.
        lengths: uint32[lanes], in bytes.
        tails: uint32[lanes], the bytes after the last word.
    """

    words: Lanes
    counts: Int32s
    lengths: Lanes
    tails: Lanes


@helper
def _empty_lanes(offsets: Offsets) -> Any:
    """Empty arrays for a batch of keys: few lanes for few keys, and for long keys, which would take much memory."""
    rows, longest = offsets.size - 1, np.int64(0)
    for row in range(rows):
        longest = max(longest, np.int64(offsets[row + 1]) - np.int64(offsets[row]))
    words = longest >> 2
    lanes = LANES_OF_LONG_KEYS if words > LONG_WORDS else min(LANES, (rows + 15) & ~15)
    return _Keys(
        np.empty((words, lanes), np.uint32),
        np.empty(lanes, np.int32),
        np.empty(lanes, np.uint32),
        np.empty(lanes, np.uint32),
    )


@helper
def _load(keys: Any, offsets: Offsets, data: Bytes, first: Int) -> Any:
    """Load the keys from row ``first`` on; return (fewest, most) words of a key. Lanes past the last key repeat it."""
    fewest, fullest = np.int64(1 << 40), np.int64(0)
    for lane in range(keys.lengths.size):
        row = min(first + lane, offsets.size - 2)
        start = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        full = length >> 2
        for word in range(full):
            k = np.uint32(load_u32(data, start + 4 * word) * _M)
            k ^= k >> np.uint32(24)
            keys.words[word, lane] = np.uint32(k * _M)
        left = length & 3
        end = start + length
        tail = np.int64(0)
        if left >= 3:
            tail ^= np.int64(np.int8(data[end - 3])) << 16
        if left >= 2:
            tail ^= np.int64(np.int8(data[end - 2])) << 8
        if left >= 1:
            tail ^= np.int64(np.int8(data[end - 1]))
        keys.lengths[lane] = np.uint32(length)
        keys.tails[lane] = np.uint32(tail)
        keys.counts[lane] = np.int32(full)
        fewest = min(fewest, full)
        fullest = max(fullest, full)
    return fewest, fullest


@helper
def _hash(keys: Any, fewest: Int, fullest: Int, seeds: Lanes) -> None:
    """Replace each lane's seed by its next hash."""
    words, counts, lengths, tails = keys
    for lane in range(seeds.size):
        seeds[lane] ^= lengths[lane]
    for word in range(fewest):
        for lane in range(seeds.size):
            seeds[lane] = np.uint32(seeds[lane] * _M) ^ words[word, lane]
    for word in range(fewest, fullest):
        for lane in range(seeds.size):
            mixed = np.uint32(seeds[lane] * _M) ^ words[word, lane]
            seeds[lane] = mixed if word < counts[lane] else seeds[lane]
    for lane in range(seeds.size):
        h = seeds[lane]
        mixed = np.uint32(np.uint32(h ^ tails[lane]) * _M)
        h = mixed if lengths[lane] & np.uint32(3) else h
        h ^= h >> np.uint32(13)
        h = np.uint32(h * _M)
        seeds[lane] = h ^ (h >> np.uint32(15))


@helper
def _magic(bit_count: Int) -> Any:
    """``(multiplier, shift)`` with ``x // bit_count == x * multiplier >> shift`` for 0 <= x <= 2**31.

    The multiplier is below 2**32.
    """
    power = np.int64(0)
    while (np.int64(1) << power) < bit_count:
        power += 1
    shift = np.uint64(31 + power)
    multiplier = ((np.uint64(1) << shift) + np.uint64(bit_count) - np.uint64(1)) // np.uint64(bit_count)
    return np.uint32(multiplier), shift


@helper
def _bits_of(seeds: Lanes, bit_count: Int, multiplier: Any, shift: Any, bits: Lanes) -> None:
    """The bit of each seed: Java's ``Math.abs(seed % bitCount)``, exact for all seeds, ``Integer.MIN_VALUE`` included.

    It multiplies factors of 32 bits, as vector registers can.
    """
    factor, divisor = np.uint64(multiplier), np.uint32(bit_count)
    for lane in range(seeds.size):
        seed = np.int64(np.int32(seeds[lane]))
        magnitude = np.uint32(abs(seed))
        quotient = np.uint32((np.uint64(magnitude) * factor) >> shift)
        bits[lane] = np.uint32(magnitude - np.uint32(quotient * divisor))


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
    keys = _empty_lanes(offsets)
    lanes, rows = keys.lengths.size, offsets.size - 1
    seeds, chosen = np.empty(lanes, np.uint32), np.empty(lanes, np.uint32)
    multiplier, shift = _magic(bit_count)
    for first in range(0, rows, max(1, lanes)):
        fewest, fullest = _load(keys, offsets, data, first)
        seeds[:] = np.uint32(0)
        for _ in range(hash_count):
            _hash(keys, fewest, fullest, seeds)
            _bits_of(seeds, bit_count, multiplier, shift, chosen)
            for lane in range(min(lanes, rows - first)):
                bit = np.int64(chosen[lane])
                bits[bit >> 3] |= np.uint8(1 << (bit & 7))


@helper
def _probe(
    offsets: Offsets, data: Bytes, filters: Bytes, filter_count: Int, bit_count: Int, hash_count: Int, out: Bytes
) -> None:
    keys = _empty_lanes(offsets)
    lanes, rows = keys.lengths.size, offsets.size - 1
    seeds, chosen, alive = np.empty(lanes, np.uint32), np.empty(lanes, np.uint32), np.empty(lanes, np.uint8)
    multiplier, shift = _magic(bit_count)
    row_bytes = (bit_count + 7) >> 3
    for first in range(0, rows, max(1, lanes)):
        fewest, fullest = _load(keys, offsets, data, first)
        count = min(lanes, rows - first)
        for lane in range(count):
            out[first + lane] = np.uint8(0)
        for row in range(filter_count):
            base = row * row_bytes
            seeds[:] = np.uint32(0)
            alive[:] = np.uint8(1)
            for _ in range(hash_count):
                _hash(keys, fewest, fullest, seeds)
                _bits_of(seeds, bit_count, multiplier, shift, chosen)
                any_alive = np.uint8(0)
                for lane in range(lanes):
                    bit = np.int64(chosen[lane])
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


_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_UNKNOWN = np.uint32(1 << 31)


def _values() -> npt.NDArray[np.uint32]:
    """uint32[4 * 256]: the stored bits of a character at the first to fourth place, or ``_UNKNOWN``."""
    values = np.full((4, 256), _UNKNOWN)
    for place in range(4):
        bits = np.arange(64, dtype=np.uint32) << np.uint32(18 - 6 * place)
        values[place, _ALPHABET] = (bits >> 16) | (bits & 0xFF00) | ((bits & 0xFF) << 16)
    return values.reshape(-1)


_VALUES = _values()


@kernel("b1(ru1, ru4, wu1)")
def _decode(text: Bytes, values: npt.NDArray[np.uint32], out: Bytes) -> Any:
    """Decode whole groups of four characters; False if a character is not base64.

    Each group writes four bytes for its three, so ``out`` needs one byte more than the decoded text.
    """
    seen = np.uint32(0)
    for group in range(text.size >> 2):
        at = group * 4
        bits = values[text[at]] | values[256 + text[at + 1]] | values[512 + text[at + 2]] | values[768 + text[at + 3]]
        seen |= bits
        store_u32(out, group * 3, bits)
    return seen < _UNKNOWN


def from_base64(text: bytes) -> bytes:
    """The bytes of a base64 ``text``.

    Raises:
        binascii.Error: the text is not base64, or is not padded to a multiple of four characters.
    """
    body = max(0, (len(text) - 1) // 4 * 4)
    out = np.empty(body // 4 * 3 + 1, np.uint8)
    if not _decode(np.frombuffer(text, np.uint8, body), _VALUES, out):
        return binascii.a2b_base64(text, strict_mode=True)
    return out[:-1].tobytes() + binascii.a2b_base64(text[body:], strict_mode=True)
