"""xxHash32 and xxHash64 of many strings at a time.

Hudi's consistent bucket index hashes record keys with xxHash32; the metadata table's keys of columns and partitions
hold xxHash64. Both read little-endian words: four lanes while a whole stripe (16 or 32 bytes) is left, then single
words, then single bytes, and a final mix. Arithmetic wraps.

Source: the xxHash specification, version 0.1.1; results match ``net.jpountz.xxhash``, which Hudi 1.2.0 uses.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Offsets, UInt64s
from ._bytes import load_u32, load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = ["xx_hash32", "xx_hash64"]

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
