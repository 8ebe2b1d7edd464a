"""Compute the decompressed size of an LZ4 block, which does not store it.

A block consists of sequences ``token | more literal lengths | literals | offset (2 bytes) | more match lengths``; the
last sequence ends after its literals. Source: LZ4 block format description 1.10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int
from ._declared import helper
from ._kernel import kernel

__all__ = ["lz4_size"]

_LEAST_MATCH = 4


@helper
def _length(data: Bytes, at: Int, length: Int) -> Any:
    """(length, next position) of a run whose token has ``length`` 0 to 15; the position is -1 if it is cut off."""
    if length < 15:
        return np.int64(length), np.int64(at)
    while at < data.size:
        byte = np.int64(data[at])
        at += 1
        length += byte
        if byte < 255:
            return np.int64(length), np.int64(at)
    return np.int64(0), np.int64(-1)


@kernel("i8(ru1)")
def lz4_size(data: Bytes) -> Int:
    """Decompressed size in bytes of the block ``data`` uint8[]; -1 if it is cut off."""
    size = np.int64(0)
    at = np.int64(0)
    while at < data.size:
        token = np.int64(data[at])
        literals, at = _length(data, at + 1, token >> 4)
        if at < 0 or literals > data.size - at:
            return np.int64(-1)
        size += literals
        at += literals
        if at == data.size:
            return np.int64(size)
        matched, at = _length(data, at + 2, token & 15)
        if at < 0 or at > data.size:
            return np.int64(-1)
        size += matched + _LEAST_MATCH
    return np.int64(-1)
