"""Blocks of an HFile: their frame, compression, and access to the loaded part of a file.

::

    magic | stored size | plain size | previous | checksum type | interval | data size | payload | checksums
     8        4             4            8          1               4          4         stored        4 each

:func:`read_block` opens one block of a known kind, :func:`encode_block` writes one. Stored checksums are not verified,
as in Hudi's own reader; gzip has its own. Source: HFile reference sections 1.2 to 1.4; HFileBlock, Hudi 1.2.0.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.hfile.codecs import GZIP, Codec, decompress

__all__ = [
    "DATA",
    "FILE_INFO",
    "LEAF_INDEX",
    "META",
    "MIDDLE_INDEX",
    "ROOT_INDEX",
    "BlockReference",
    "Codec",
    "HFileContent",
    "block_end",
    "encode_block",
    "read_block",
]

DATA, META, FILE_INFO = b"DATABLK*", b"METABLKc", b"FILEINF2"
"""Kinds of blocks, by their magic: entries; a named value; properties of the file."""
LEAF_INDEX, MIDDLE_INDEX, ROOT_INDEX = b"IDXLEAF2", b"IDXINTE2", b"IDXROOT2"
"""Kinds of index blocks; a file has two ROOT_INDEX blocks, for data blocks and for meta blocks."""

_HEADER = struct.Struct(">8siiqbii")  # as drawn above
# Level 3 compresses twice as fast as Java's 6 and makes real records of metadata tables 0 to 7 % larger.
_LEVEL = 3
_NO_CHECKSUM = 0
# Larger blocks are refused before they are decompressed. Blocks hold 1 MiB, or one longer entry, and compress to 1/50
# at most; deflate allows 1/1000.
_MAX_PLAIN, _MAX_RATIO = 32 << 20, 100
# Hudi's own reader takes the end of a *decompressed* payload for checksums, as many bytes as the stored block has, and
# loses entries that begin there. With one interval per block the checksums have 4 bytes, fewer than any entry. HBase's
# reader accepts intervals of any size and verifies no checksum of this type.
_INTERVAL = 1 << 30


@dataclass(frozen=True, slots=True)
class HFileContent:
    """The bytes of an HFile, or a part of them, with their position; created by :meth:`of`.

    Attributes:
        data: unsigned bytes.
        path: the file that holds the HFile.
        offset: byte position of the HFile in that file (log blocks).
        start: position of ``data`` in the HFile. All positions below are positions in the HFile.
    """

    data: memoryview
    path: str
    offset: int = 0
    start: int = 0

    @classmethod
    def of(cls, content: pa.Buffer | bytes, path: str, offset: int = 0, start: int = 0) -> Self:
        """The content of a buffer; Arrow's own views of buffers have signed bytes."""
        return cls(memoryview(content).cast("B"), path, offset, start)

    @property
    def end(self) -> int:
        """Position after the last loaded byte."""
        return self.start + len(self.data)

    def cut(self, first: int, last: int) -> HFileContent:
        """The bytes from position ``first`` up to ``last``, without a copy."""
        view = self.data[first - self.start : last - self.start]
        return HFileContent(view, self.path, self.offset, first)

    def corrupt(self, message: str, at: int) -> CorruptTableError:
        """The error for an invalid byte at position ``at``."""
        return CorruptTableError(message, self.path, self.offset + at)


@dataclass(frozen=True, slots=True)
class BlockReference:
    """An entry of an index.

    Attributes:
        offset: start of the block.
        size: bytes of the block, with header and checksums.
        key: the stored key, which is at most the block's first key and above the last key of the previous block; for a
            meta block, its name.
    """

    offset: int
    size: int
    key: bytes

    @property
    def end(self) -> int:
        """The end of the block."""
        return self.offset + self.size


def read_block(file: HFileContent, offset: int, size: int | None, magic: bytes, codec: Codec) -> memoryview:
    """The decompressed payload of one block; a view of the file if it is not compressed.

    Args:
        file: the HFile, or the part of it that has the block.
        offset: start of the block.
        size: bytes of the block, from its reference; None without reference.
        magic: the expected kind of block.
        codec: codec of the trailer.

    Raises:
        CorruptTableError: the block has another kind, or contradictory lengths.
    """
    at = offset - file.start
    room = len(file.data) - at - _HEADER.size
    if at < 0 or room < 0:
        raise file.corrupt(f"Expected a block inside the HFile, found a reference to byte {offset}.", file.end)
    found, stored, plain, _, _, _, with_header = _HEADER.unpack_from(file.data, at)
    if found != magic:
        raise file.corrupt(f"Expected an HFile block {magic!r}, found {found!r}.", offset)
    lengths_hold = 0 <= with_header - _HEADER.size <= stored <= room and plain >= 0
    if not lengths_hold or (size is not None and size != stored + _HEADER.size):
        raise file.corrupt(
            f"Expected an HFile block of {size} bytes, found {stored} with {with_header} of data.",
            offset,
        )
    if plain > _MAX_PLAIN + _MAX_RATIO * stored:
        raise file.corrupt(f"Expected an HFile block that {stored} bytes can hold, found {plain} bytes.", offset)
    payload = file.data[at + _HEADER.size : at + with_header]
    if codec != Codec.NONE:
        try:
            payload = decompress(codec, payload, plain)
        except ValueError as error:
            raise file.corrupt(f"An HFile block cannot be decompressed: {error}.", offset) from error
    if len(payload) != plain:
        raise file.corrupt(f"Expected {plain} bytes in an HFile block, found {len(payload)}.", offset)
    return payload


def block_end(file: HFileContent, offset: int) -> int:
    """The end of the block at ``offset`` that :func:`read_block` has accepted."""
    stored: int = _HEADER.unpack_from(file.data, offset - file.start)[1]
    return offset + _HEADER.size + stored


def encode_block(magic: bytes, payload: Any, codec: Codec, previous: int) -> tuple[list[Any], int]:
    """A block as consecutive parts, and its size in bytes.

    Args:
        magic: kind of the block.
        payload: a contiguous object with the buffer protocol; the result refers to it if the codec is NONE.
        codec: GZ or NONE.
        previous: position of the previous block of this kind, -1 for the first; readers ignore it.
    """
    plain = memoryview(payload).nbytes
    stored = payload
    if codec == Codec.GZ:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, GZIP)
        stored = packer.compress(payload) + packer.flush()
    with_header = _HEADER.size + memoryview(stored).nbytes
    checksums = bytes(4 * -(-with_header // _INTERVAL))
    size = with_header + len(checksums)
    head = _HEADER.pack(magic, size - _HEADER.size, plain, previous, _NO_CHECKSUM, _INTERVAL, with_header)
    return [head, stored, checksums], size
