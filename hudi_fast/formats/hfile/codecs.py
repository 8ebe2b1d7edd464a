"""Decompression of HFile blocks.

::

    GZ             gzip members, one after the other
    ZSTD           a zstd stream
    SNAPPY, LZ4    Hadoop's framing:   plain size | chunk size | chunk | chunk size | chunk ...     sizes: 4 bytes each
                                       (again, if more follows)

Hudi 0.15 and earlier wrote such files with HBase, which uses Hadoop's codecs; Hudi 1.x reads only GZ and NONE
(HoodieDecompressorFactory, 1.2.0). Source: BlockCompressorStream, Hadoop 3.3; Compression, HBase 2.4.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

import numpy as np
import pyarrow as pa

from hudi_fast.formats.varint import snappy_size
from hudi_fast.kernels.lz4_blocks import lz4_size

__all__ = ["GZIP", "READ_CODECS", "Codec", "decompress"]

GZIP = 31
"""zlib's code for a gzip member with the largest window."""

_SIZE = struct.Struct(">i")


class Codec(IntEnum):
    """Compression of all blocks of a file; values are the numbers in the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


READ_CODECS = (Codec.GZ, Codec.NONE, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
"""Codecs of files that can be read."""


def decompress(codec: Codec, payload: memoryview, plain: int) -> memoryview:
    """The decompressed payload of a block; it has another size than ``plain`` if the block is damaged.

    Args:
        codec: GZ, SNAPPY, LZ4 or ZSTD.
        payload: unsigned bytes.
        plain: expected number of bytes; decompression stops after at most one byte more.

    Raises:
        ValueError: the codec cannot decompress the bytes; the message gives the reason.
    """
    try:
        if codec == Codec.GZ:
            return _gunzip(payload, plain)
        if codec == Codec.ZSTD:
            return memoryview(pa.Codec("zstd").decompress(payload, plain, asbytes=True))
        return _chunks(codec, payload, plain)
    except (zlib.error, pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def _gunzip(payload: memoryview, plain: int) -> memoryview:
    parts: list[bytes] = []
    left = plain
    rest: bytes | memoryview = payload
    while len(rest):
        member = zlib.decompressobj(GZIP)
        parts.append(member.decompress(rest, left + 1))
        left -= len(parts[-1])
        if left < 0 or not member.eof:
            break
        rest = member.unused_data
    return memoryview(b"".join(parts) if len(parts) != 1 else parts[0])


def _chunks(codec: Codec, payload: memoryview, plain: int) -> memoryview:
    unpack = pa.Codec("snappy" if codec == Codec.SNAPPY else "lz4_raw").decompress
    parts: list[bytes] = []
    at, made, due = 0, 0, 0
    while at < len(payload):
        if made == due:
            due, at = made + _size(payload, at), at + _SIZE.size
            if due > plain:
                raise ValueError(f"{due} bytes instead of {plain}")
            continue
        size, at = _size(payload, at), at + _SIZE.size
        chunk = payload[at : at + size]
        if len(chunk) < size:
            raise ValueError("a chunk that is cut off")
        becomes = snappy_size(chunk) if codec == Codec.SNAPPY else int(lz4_size(np.frombuffer(chunk, np.uint8)))
        if not 0 < becomes <= due - made:
            raise ValueError(f"a chunk of {becomes} bytes where {due - made} are left")
        parts.append(unpack(chunk, becomes, asbytes=True))
        at, made = at + size, made + becomes
    return memoryview(b"".join(parts))


def _size(payload: memoryview, at: int) -> int:
    if at + _SIZE.size > len(payload):
        raise ValueError("a size that is cut off")
    size: int = _SIZE.unpack_from(payload, at)[0]
    if size < 0:
        raise ValueError(f"a size of {size}")
    return size
