"""Read and write the sections of an ORC file, which are footers and streams: its codec, and its chunks of content.

A chunk consists of three bytes with its length and a bit for "not compressed", and the content. Sections written here
are not compressed. Files without a codec have no chunks.

Source: ORC specification v1, "Compression".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.varint import snappy_size
from hudi_fast.kernels.lz4_blocks import lz4_size

__all__ = ["LZ4", "LZO", "MAX_SECTION", "NO_CODEC", "SNAPPY", "ZLIB", "ZSTD", "Sections"]

NO_CODEC, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
"""Codecs, ``CompressionKind``."""

MAX_SECTION = 64 << 20
"""Maximum bytes of a footer, and of a chunk before compression."""

_GAINS = {ZLIB: 1032, SNAPPY: 22, LZO: 256, LZ4: 255, ZSTD: 1 << 15}
"""Maximum decompressed bytes for each byte of a chunk."""

_LONGEST_CHUNK = (1 << 23) - 1
"""The maximum length that a chunk's header can store."""


@dataclass(frozen=True, slots=True)
class Sections:
    """How a file stores its sections.

    Attributes:
        path: the file, for messages.
        codec: the file's codec.
        block_size: maximum bytes of a chunk before compression.
    """

    path: str
    codec: int
    block_size: int

    def content(self, stored: bytes | memoryview, limit: int | None = None) -> bytes:
        """The content of a section.

        Raises:
            ValueError: the section is malformed, or has more than ``limit`` bytes.
            UnsupportedFeatureError: the section is compressed with LZO.
        """
        if self.codec == NO_CODEC:
            if limit is not None and len(stored) > limit:
                raise ValueError(f"{len(stored)} bytes where {limit} are allowed")
            return bytes(stored)
        parts, size = [], 0
        for chunk, is_plain in _chunks(stored):
            parts.append(bytes(chunk) if is_plain else self._decompressed(chunk))
            size += len(parts[-1])
            if limit is not None and size > limit:
                raise ValueError(f"more than the {limit} bytes that are allowed")
        return b"".join(parts)

    def max_bytes(self, stored: bytes | memoryview) -> int:
        """The maximum bytes of a section's content, without decompressing it.

        Raises:
            ValueError: the section is malformed.
        """
        if self.codec == NO_CODEC:
            return len(stored)
        gain = _GAINS.get(self.codec, 0)
        return sum(
            len(chunk) if is_plain else min(self.block_size, gain * len(chunk)) for chunk, is_plain in _chunks(stored)
        )

    def stored(self, content: bytes) -> bytes:
        """A section with this content, not compressed."""
        if self.codec == NO_CODEC:
            return content
        size = min(self.block_size, _LONGEST_CHUNK)
        parts = (content[at : at + size] for at in range(0, len(content), size))
        return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in parts)

    def _decompressed(self, chunk: memoryview) -> bytes:
        limit = min(self.block_size, MAX_SECTION)
        try:
            if self.codec == ZLIB:
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, limit)
            if self.codec == ZSTD:
                with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                    return bytes(stream.read(limit))
            if self.codec in (SNAPPY, LZ4):
                size = snappy_size(chunk) if self.codec == SNAPPY else int(lz4_size(np.frombuffer(chunk, np.uint8)))
                if not 0 <= size <= limit:
                    raise ValueError(f"a chunk of {size} bytes where {limit} are allowed")
                codec = pa.Codec("snappy" if self.codec == SNAPPY else "lz4_raw")
                return bytes(codec.decompress(chunk, decompressed_size=size, asbytes=True))
        except (zlib.error, pa.ArrowException, OSError) as error:
            raise ValueError(str(error)) from error
        raise UnsupportedFeatureError(f"The ORC file {self.path} is compressed with LZO; write it with another codec.")


def _chunks(stored: bytes | memoryview) -> Iterator[tuple[memoryview, bool]]:
    """The chunks of a section, and whether each is not compressed."""
    view, at = memoryview(stored), 0
    while at < len(view):
        head = int.from_bytes(view[at : at + 3], "little")
        length, at = head >> 1, at + 3
        if length > len(view) - at:
            raise ValueError(f"a chunk of {length} bytes where {max(len(view) - at, 0)} are left")
        yield view[at : at + length], bool(head & 1)
        at += length
