"""HFiles of version 3: sorted keys and values in blocks, as Hudi's HFile log blocks and metadata table hold them.

::

    data blocks (leaf index blocks between them) | intermediate index | root index | meta index | file info | trailer
                                                                        ^ load-on-open offset            4096 bytes

    trailer -> root index -> (intermediate -> leaf index, where the writer was HBase) -> data blocks -> entries

Functions from the outside in, each usable alone: :func:`read_trailer`, :func:`data_blocks` (walks the index),
:func:`read_block` (one block of any kind, decompressed), :func:`read_entries` (keys and values of a data block).
:func:`hfile_arrays` streams a whole file block by block; :func:`read_hfile` is all of it at once.

Stored checksums are not verified, as in Hudi's own reader. Keys are the contents alone, without HBase's suffix.
Source: HFile reference section 1; HFileReaderImpl, HFileBlock and HFileTrailer, Hudi 1.2.0; files by HBase 2.4 and
Hudi 0.15 and 1.2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.varlen import string_array
from hudi_fast.kernels.hfile_entries import copy_entries, measure_entries

__all__ = [
    "BlockReference",
    "Codec",
    "HFileContent",
    "HFileTrailer",
    "data_blocks",
    "hfile_arrays",
    "read_block",
    "read_entries",
    "read_hfile",
    "read_trailer",
]

_DATA, _LEAF_INDEX, _MIDDLE_INDEX, _ROOT_INDEX = b"DATABLK*", b"IDXLEAF2", b"IDXINTE2", b"IDXROOT2"
_TRAILER = b'TRABLK"$'
_TRAILER_SIZE = 4096
_HEADER = struct.Struct(">8siiqbii")  # magic, stored size, plain size, previous, checksum type, interval, data size
_REFERENCE = struct.Struct(">qi")
_INT = struct.Struct(">i")
# HBase's default of 128 KiB index blocks makes four levels of any file that fits a disk.
_MOST_LEVELS = 16
_GZIP = 31  # zlib's code for a gzip member with the largest window


class Codec(IntEnum):
    """Compression of all blocks of a file; values are those of the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


@dataclass(frozen=True, slots=True)
class HFileContent:
    """The bytes of an HFile, and where they are, for messages; made by :meth:`of`.

    Attributes:
        data: the whole HFile, as unsigned bytes.
        path: the file that holds it.
        offset: byte position in that file at which it begins (log blocks).
    """

    data: memoryview
    path: str
    offset: int = 0

    @classmethod
    def of(cls, content: pa.Buffer | bytes, path: str, offset: int = 0) -> Self:
        """The content of a buffer; Arrow's own views of buffers are of signed bytes."""
        return cls(memoryview(content).cast("B"), path, offset)

    def corrupt(self, message: str, at: int) -> CorruptTableError:
        """The error for what is wrong ``at`` that byte of the HFile."""
        return CorruptTableError(message, self.path, self.offset + at)


@dataclass(frozen=True, slots=True)
class HFileTrailer:
    """What the trailer says, as far as readers need it.

    Attributes:
        load_on_open_offset: where the root index begins.
        index_count: entries of the root index.
        index_levels: 1 when the root index points at data blocks.
        entry_count: entries of the file.
        codec: compression of its blocks.
    """

    load_on_open_offset: int
    index_count: int
    index_levels: int
    entry_count: int
    codec: Codec


@dataclass(frozen=True, slots=True)
class BlockReference:
    """An entry of an index.

    Attributes:
        offset: where the block begins.
        size: bytes of the block, header and checksums included.
        key: a key not above the block's first and above the last of the block before.
    """

    offset: int
    size: int
    key: bytes


def read_hfile(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a whole HFile, binary[n] each, in key order; equal keys stand in the order of the file.

    Args:
        content: the HFile.
        path: the file that holds it, for messages.
        offset: byte position in that file at which it begins, for messages.

    Raises:
        CorruptTableError: no HFile, or a damaged one.
        UnsupportedFeatureError: another version, another compression than GZ or none, or more than 2 GiB of keys or
            values (use :func:`hfile_arrays`).
    """
    file = HFileContent.of(content, path, offset)
    pairs = list(hfile_arrays(file))
    if not pairs:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    if len(pairs) == 1:
        return pairs[0]
    try:
        return pa.concat_arrays([keys for keys, _ in pairs]), pa.concat_arrays([values for _, values in pairs])
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"The HFile holds more than an Arrow array can (2 GiB): {error} [file {path}, byte {offset}]"
        ) from error


def hfile_arrays(file: HFileContent) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of each data block, in key order; arguments and errors as for :func:`read_hfile`."""
    trailer = read_trailer(file)
    left = trailer.entry_count
    for block in data_blocks(file, trailer):
        payload = read_block(file, block.offset, block.size, _DATA, trailer.codec)
        keys, values = read_entries(file, block.offset, payload)
        left -= len(keys)
        yield keys, values
    if left:
        raise file.corrupt(
            f"Expected {trailer.entry_count} entries in an HFile, found {trailer.entry_count - left}.",
            len(file.data) - _TRAILER_SIZE,
        )


def read_trailer(file: HFileContent) -> HFileTrailer:
    """The trailer, which is the last 4096 bytes.

    Raises:
        CorruptTableError: there is none, or it points outside the file.
        UnsupportedFeatureError: another version than 3, or a compression that is not read.
    """
    at = len(file.data) - _TRAILER_SIZE
    if at < 0 or file.data[at : at + 8] != _TRAILER:
        raise file.corrupt("Expected an HFile (it ends with a trailer of 4096 bytes), found other bytes.", max(at, 0))
    version = _INT.unpack_from(file.data, len(file.data) - 4)[0] & 0xFFFFFF
    if version != 3:
        raise UnsupportedFeatureError(f"Expected HFile version 3, found {version} [file {file.path}]")
    fields = _trailer_fields(file, at + 8)
    trailer = HFileTrailer(
        load_on_open_offset=fields.get(2, -1),
        index_count=fields.get(5, -1),
        index_levels=fields.get(8, -1),
        entry_count=fields.get(7, -1),
        codec=_codec(file, fields.get(12, Codec.NONE)),
    )
    if not 0 <= trailer.load_on_open_offset <= at or not 1 <= trailer.index_levels <= _MOST_LEVELS:
        raise file.corrupt(f"Expected a trailer of an HFile, found {trailer}.", at)
    if trailer.index_count < 0 or trailer.entry_count < 0:
        raise file.corrupt(f"Expected counts of index and entries in the trailer, found {trailer}.", at)
    return trailer


def data_blocks(file: HFileContent, trailer: HFileTrailer) -> list[BlockReference]:
    """References to the data blocks, in the order of their keys, which is that of the file.

    Raises:
        CorruptTableError: an index is damaged.
    """
    if trailer.entry_count == 0:
        return []
    start = trailer.load_on_open_offset
    payload = read_block(file, start, None, _ROOT_INDEX, trailer.codec)
    found = _root_references(file, start, payload, trailer.index_count)
    for level in range(trailer.index_levels - 1, 0, -1):
        magic = _LEAF_INDEX if level == 1 else _MIDDLE_INDEX
        found = [
            inner
            for outer in found
            for inner in _inner_references(
                file, outer.offset, read_block(file, outer.offset, outer.size, magic, trailer.codec)
            )
        ]
        _check_ascending(file, start, found)
    return found


def read_block(file: HFileContent, offset: int, size: int | None, magic: bytes, codec: Codec) -> memoryview:
    """The payload of one block, decompressed; a view of the file where it is not compressed.

    Args:
        file: the HFile.
        offset: where the block begins.
        size: bytes of the block, as its reference says; None if there is no reference.
        magic: the kind of block that is expected.
        codec: of the trailer.

    Raises:
        CorruptTableError: another kind of block, or lengths that contradict each other.
    """
    end = len(file.data) - _TRAILER_SIZE
    if not 0 <= offset <= end - _HEADER.size:
        raise file.corrupt(f"Expected a block inside the HFile, found a reference to byte {offset}.", end)
    found, stored, plain, _, _, _, with_header = _HEADER.unpack_from(file.data, offset)
    if found != magic:
        raise file.corrupt(f"Expected an HFile block {magic!r}, found {found!r}.", offset)
    lengths_hold = 0 <= with_header - _HEADER.size <= stored <= end - offset - _HEADER.size and plain >= 0
    if not lengths_hold or (size is not None and size != stored + _HEADER.size):
        raise file.corrupt(
            f"Expected an HFile block of {size} bytes, found {stored} with {with_header} of data.", offset
        )
    payload = file.data[offset + _HEADER.size : offset + with_header]
    if codec == Codec.GZ:
        payload = _gunzip(file, offset, payload, plain)
    if len(payload) != plain:
        raise file.corrupt(f"Expected {plain} bytes in an HFile block, found {len(payload)}.", offset)
    return payload


def read_entries(file: HFileContent, offset: int, payload: memoryview) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a data block, binary[n] each.

    Args:
        file: the HFile, for messages.
        offset: where the block begins, for messages.
        payload: of the block.

    Raises:
        CorruptTableError: an entry is malformed.
    """
    data = np.frombuffer(payload, np.uint8)
    sizes = np.empty(2, np.int64)
    count = int(measure_entries(data, sizes))
    if count < 0:
        raise file.corrupt(f"Expected an entry at byte {-1 - count} of an HFile block, found other bytes.", offset)
    key_offsets, value_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, values = np.empty(int(sizes[0]), np.uint8), np.empty(int(sizes[1]), np.uint8)
    copy_entries(data, key_offsets, keys, value_offsets, values)
    return string_array(key_offsets, keys, pa.binary()), string_array(value_offsets, values, pa.binary())


# ---- inside


def _codec(file: HFileContent, number: int) -> Codec:
    try:
        codec = Codec(number)
    except ValueError:
        raise file.corrupt(
            f"Expected a compression of HFiles, found {number}.", len(file.data) - _TRAILER_SIZE
        ) from None
    if codec not in (Codec.GZ, Codec.NONE):
        raise UnsupportedFeatureError(f"HFiles compressed with {codec.name} are not supported [file {file.path}]")
    return codec


def _gunzip(file: HFileContent, offset: int, payload: memoryview, plain: int) -> memoryview:
    """The concatenated gzip members of a payload; never more than one byte above ``plain``."""
    parts: list[bytes] = []
    left = plain
    rest: bytes | memoryview = payload
    try:
        while len(rest):
            member = zlib.decompressobj(_GZIP)
            parts.append(member.decompress(rest, left + 1))
            left -= len(parts[-1])
            if left < 0 or not member.eof:
                break
            rest = member.unused_data
    except zlib.error as error:
        raise file.corrupt(f"An HFile block cannot be decompressed: {error}.", offset) from error
    return memoryview(b"".join(parts) if len(parts) != 1 else parts[0])


def _trailer_fields(file: HFileContent, at: int) -> dict[int, int]:
    """Numbers of the length-prefixed protobuf message at ``at``, by field number; other values are skipped."""
    length, at = _read_varint(file, at)
    end = at + length
    if end > len(file.data) - 4:
        raise file.corrupt("Expected the trailer's message to end within the trailer.", at)
    fields: dict[int, int] = {}
    while at < end:
        tag, at = _read_varint(file, at)
        value, at = _read_varint(file, at)
        if tag & 7 == 2:
            at += value
        elif tag & 7 == 0:
            fields[tag >> 3] = value if value < 1 << 63 else value - (1 << 64)
        else:
            raise file.corrupt(f"Expected a field of an HFile's trailer, found tag {tag}.", at)
    return fields


def _read_varint(file: HFileContent, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(file.data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise file.corrupt("Expected a number in an HFile's trailer.", at)


def _root_references(file: HFileContent, start: int, payload: memoryview, count: int) -> list[BlockReference]:
    found: list[BlockReference] = []
    at = 0
    for _ in range(count):  # ends with the bytes
        if len(payload) - at <= _REFERENCE.size:
            raise file.corrupt(f"Expected {count} entries in an HFile's root index, found {len(found)}.", start)
        offset, size = _REFERENCE.unpack_from(payload, at)
        length, at = _read_vint(payload, at + _REFERENCE.size)
        if not 0 <= length <= len(payload) - at:
            raise file.corrupt(f"Expected a key in an HFile's root index, found {length} as its length.", start)
        found.append(BlockReference(offset, size, bytes(payload[at : at + length])))
        at += length
    _check_ascending(file, start, found)
    return found


def _read_vint(data: memoryview, at: int) -> tuple[int, int]:
    """Hadoop's number of variable length at ``at``, and the position behind it; -1 for negative and cut ones."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    # As a signed byte, -113 and below announce 1 to 8 bytes of a positive number; the others are negative numbers.
    size = -112 - (first - 256)
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big") if 1 <= size <= 8 else -1
    return value, at + 1 + max(size, 0)


def _inner_references(file: HFileContent, start: int, payload: memoryview) -> list[BlockReference]:
    """Entries of a leaf or intermediate index block, at least one."""
    count = _INT.unpack_from(payload)[0] if len(payload) >= 4 else -1
    base = 4 * (count + 2)
    if count < 1 or base > len(payload):
        raise file.corrupt(f"Expected an index block of an HFile, found {count} entries.", start)
    bounds = np.frombuffer(payload, ">i4", count + 1, 4).astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != len(payload) - base or (np.diff(bounds) < _REFERENCE.size).any():
        raise file.corrupt("Expected ascending positions in an index block of an HFile.", start)
    found = []
    for first, last in zip((bounds[:-1] + base).tolist(), (bounds[1:] + base).tolist(), strict=True):
        offset, size = _REFERENCE.unpack_from(payload, first)
        found.append(BlockReference(offset, size, bytes(payload[first + _REFERENCE.size : last])))
    return found


def _check_ascending(file: HFileContent, start: int, references: list[BlockReference]) -> None:
    """Blocks follow each other in the order of their keys; so no index can lead round in circles."""
    for before, after in pairwise(references):
        if after.offset <= before.offset:
            raise file.corrupt(f"Expected blocks in ascending order, found {before.offset}, {after.offset}.", start)
