"""Blocks of an HFile: read from a file or a buffer, decompressed, taken apart.

Blocks of an HFile: their frame, compression, and access to the loaded part of a file.

::

    magic | stored size | plain size | previous | checksum type | interval | data size | payload | checksums
     8        4             4            8          1               4          4         stored        4 each

:func:`read_block` opens one block of a known kind, :func:`encode_block` writes one. Stored checksums are not verified,
as in Hudi's own reader; gzip has its own. Source: HFile reference sections 1.2 to 1.4; HFileBlock, Hudi 1.2.0.

::

    GZ             gzip members, one after the other
    ZSTD           a zstd stream
    SNAPPY, LZ4    Hadoop's framing:   plain size | chunk size | chunk | chunk size | chunk ...     sizes: 4 bytes each
                                       (again, if more follows)

Hudi 0.15 and earlier wrote such files with HBase, which uses Hadoop's codecs; Hudi 1.x reads only GZ and NONE
(HoodieDecompressorFactory, 1.2.0). Source: BlockCompressorStream, Hadoop 3.3; Compression, HBase 2.4.

Lazy ranged reads of one HFile inside a file or a buffer.

The end of the HFile, which has the trailer and usually the indexes, is read at once and cached; a small HFile is read
in a single request. Neighbouring required blocks share a request (:meth:`HFileSource.parts`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Self

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.varint import snappy_size
from hudi_fast.kernels.lz4_blocks import lz4_size
from hudi_fast.values import dataclass

__all__ = [
    "DATA",
    "FILE_INFO",
    "GZIP",
    "LEAF_INDEX",
    "META",
    "MIDDLE_INDEX",
    "READ_CODECS",
    "ROOT_INDEX",
    "BlockReference",
    "Codec",
    "HFileContent",
    "HFileSource",
    "block_end",
    "decompress",
    "encode_block",
    "read_block",
]

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


_END = 128 << 10  # read on open; on an object store this is hardly slower than reading only the trailer
_GAP = 64 << 10  # unneeded bytes between two blocks that are read to save a request
_REQUEST = 8 << 20  # maximum bytes of a request for several blocks; bounds memory
_LEAST = 1 << 10  # minimum bytes of a request: pyarrow takes S3's refusal of a smaller one for data, and does not retry


class HFileSource:
    """One HFile; thread-safe.

    Args:
        source: the file (for random access), or its content.
        path: path of the file, for messages.
        offset: byte position of the HFile in ``source``.
        length: bytes of the HFile; None: up to the end of ``source``.
        message_offset: byte position of the HFile for messages, if ``source`` is a part of a larger file.

    Attributes:
        end: the end of the HFile; the whole HFile if it is small.

    Raises:
        CorruptTableError: the source ends before the HFile does.
    """

    def __init__(
        self,
        source: pa.NativeFile | pa.Buffer,
        path: str,
        offset: int,
        length: int | None,
        message_offset: int | None = None,
    ) -> None:
        self.path = path
        self.offset = offset
        self.message_offset = offset if message_offset is None else message_offset
        self._source: pa.NativeFile | pa.Buffer | None = source
        total = source.size if isinstance(source, pa.Buffer) else source.size()
        self.length = total - offset if length is None else length
        nothing = HFileContent.of(b"", path, self.message_offset)
        if offset < 0 or not 0 <= self.length <= total - offset:
            raise nothing.corrupt(f"Expected {length} bytes of an HFile, found {total - offset}.", 0)
        self.end = nothing
        self.end = self.read(0 if isinstance(source, pa.Buffer) else max(0, self.length - _END), self.length)

    def read(self, first: int, last: int) -> HFileContent:
        """The bytes from position ``first`` up to ``last``.

        Raises:
            CorruptTableError: the range is outside the HFile.
            ValueError: the source is closed.
        """
        if self._source is None:
            raise ValueError(f"the HFile {self.path} is closed")
        if not 0 <= first <= last <= self.length:
            raise self.end.corrupt(f"Expected a block inside the HFile, found bytes {first} to {last}.", self.length)
        if self.end.data and first >= self.end.start:
            return self.end.cut(first, last)
        at, size = self.offset + first, last - first
        if isinstance(self._source, pa.Buffer):
            content = self._source.slice(at, size)
        else:
            content = self._source.read_at(max(size, min(_LEAST, self.length - first)), at)[:size]
        part = HFileContent.of(content, self.path, self.message_offset, first)
        if len(part.data) != size:
            raise part.corrupt(f"Expected {size} bytes, found {len(part.data)}.", first)
        return part

    def parts(self, references: Sequence[BlockReference]) -> Iterator[HFileContent]:
        """Bytes that contain each block, in file order; neighbouring blocks share one read."""
        at = 0
        while at < len(references):
            first, stop = references[at].offset, references[at].end
            following = at + 1
            while following < len(references):
                block = references[following]
                if block.offset - stop > _GAP or block.end - first > _REQUEST:
                    break
                stop = max(stop, block.end)
                following += 1
            part = self.read(first, stop)
            for _ in range(at, following):
                yield part
            at = following

    def close(self) -> None:
        """Release the source without closing it."""
        self._source = None
