"""The trailer, the file info and the indexes of an HFile.

Indexes of an HFile: the positions of its data blocks and meta blocks.

::

    root index    position | size | length | key   ...                           one block per entry
    inner index   count | ends of the entries | position | size | key  ...       leaf and intermediate levels, HBase

:func:`read_root` and :func:`read_inner` read the entries of one index block, :func:`data_blocks` reads all levels,
:func:`encode_root` writes a root index. A key of the data index is stored as int16 length and content, with or without
HBase's suffix: :func:`index_keys` extracts the contents. Source: HFile reference section 1.6.

The trailer and the file info block of an HFile: two small protobuf messages.

::

    trailer     TRABLK"$ | length | numbers by field | zeros ... | 03 00 00 03     the last 4096 bytes of the file
    file info   PBUF | length | pairs of name and value                            payload of a block

Source: HFile reference sections 1.8 and 1.9; HFileTrailer and HFileInfo, Hudi 1.2.0; FixedFileTrailer, HBase 2.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.hfile.blocks import (
    LEAF_INDEX,
    MIDDLE_INDEX,
    READ_CODECS,
    ROOT_INDEX,
    BlockReference,
    Codec,
    HFileContent,
    read_block,
)
from hudi_fast.formats.varint import encode_message, framed, message_fields, message_pairs, unframed
from hudi_fast.values import dataclass

__all__ = [
    "KEY_SUFFIX",
    "TRAILER_SIZE",
    "HFileTrailer",
    "data_blocks",
    "encode_file_info",
    "encode_root",
    "encode_trailer",
    "full_key",
    "index_keys",
    "inner_blocks",
    "java_order",
    "key_content",
    "read_file_info",
    "read_root",
    "read_trailer",
]

TRAILER_SIZE = 4096
"""Bytes of a trailer."""

_TRAILER = b'TRABLK"$'
_INFO = b"PBUF"
_INT = struct.Struct(">i")
# With HBase's default of 128 KiB index blocks, four levels are enough for any file that fits a disk.
_MAX_LEVELS = 16
_VERSION = b"\x03\x00\x00\x03"  # minor version as in HBase, and major version
# HBase's reader instantiates this class, which is in Hudi's bundles; Hudi's own reader ignores it.
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


@dataclass(frozen=True, slots=True)
class HFileTrailer:
    """The content of the trailer.

    Attributes:
        load_on_open_offset: start of the root index, which the index of meta blocks and the file info follow.
        index_count: entries of the root index.
        index_levels: 1 if the root index refers to data blocks.
        entry_count: entries of the file.
        codec: compression of the file's blocks.
        meta_count: entries of the index of meta blocks.
    """

    load_on_open_offset: int
    index_count: int
    index_levels: int
    entry_count: int
    codec: Codec
    meta_count: int = 0


def read_trailer(file: HFileContent) -> HFileTrailer:
    """Read the trailer, the last 4096 bytes of an HFile or of its end.

    Raises:
        CorruptTableError: the trailer is missing, or refers to positions outside the file.
        UnsupportedFeatureError: the version is not 3, or the compression is unsupported.
    """
    at = file.end - TRAILER_SIZE
    if at < file.start or file.cut(at, at + 8).data != _TRAILER:
        raise file.corrupt("Expected an HFile (it ends with a trailer of 4096 bytes), found other bytes.", max(at, 0))
    version = _INT.unpack_from(file.data, len(file.data) - 4)[0] & 0xFFFFFF
    if version != 3:
        raise UnsupportedFeatureError(f"Expected HFile version 3, found {version} [file {file.path}]")
    fields = _numbers(file, at)
    trailer = HFileTrailer(
        load_on_open_offset=fields.get(2, -1),
        index_count=fields.get(5, 0),
        index_levels=fields.get(8, -1),
        entry_count=fields.get(7, 0),
        codec=_codec(file, fields.get(12, Codec.NONE)),
        meta_count=fields.get(6, 0),
    )
    if not 0 <= trailer.load_on_open_offset <= at or not 1 <= trailer.index_levels <= _MAX_LEVELS:
        raise file.corrupt(f"Expected a trailer of an HFile, found {trailer}.", at)
    if min(trailer.index_count, trailer.entry_count, trailer.meta_count) < 0:
        raise file.corrupt(f"Expected counts of indexes and entries in the trailer, found {trailer}.", at)
    return trailer


def encode_trailer(
    trailer: HFileTrailer, info_offset: int, index_bytes: int, data_bytes: int, first_block: int, last_block: int
) -> bytes:
    """The 4096 bytes of a trailer.

    Args:
        trailer: content of the trailer that readers use.
        info_offset: start of the file info block.
        index_bytes: bytes of the root index, before compression.
        data_bytes: bytes of all data blocks, before compression.
        first_block: start of the first data block; -1 without blocks.
        last_block: start of the last data block; -1 without blocks.
    """
    numbers = {1: info_offset, 2: trailer.load_on_open_offset, 3: index_bytes, 4: data_bytes}
    numbers |= {5: trailer.index_count, 6: trailer.meta_count, 7: trailer.entry_count, 8: trailer.index_levels}
    numbers |= {9: first_block, 10: last_block}
    message = framed(encode_message(*numbers.items(), (11, _COMPARATOR), (12, trailer.codec)))
    return (_TRAILER + message).ljust(TRAILER_SIZE - len(_VERSION), b"\0") + _VERSION


def read_file_info(file: HFileContent, offset: int, payload: memoryview) -> dict[str, bytes]:
    """Names and values of a file info block. ``file`` and ``offset``, the start of the block, are for messages.

    Raises:
        CorruptTableError: the payload is not a file info message.
    """
    try:
        if payload[:4] != _INFO:
            raise ValueError(f"{bytes(payload[:4])!r} at its beginning")
        return message_pairs(unframed(payload[4:]))
    except ValueError as error:
        raise file.corrupt(f"Expected names and values in the file info of an HFile, found {error}.", offset) from error


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """The payload of a file info block."""
    pairs = [(1, encode_message((1, name.encode()), (2, value))) for name, value in info.items()]
    return _INFO + framed(encode_message(*pairs))


def _numbers(file: HFileContent, at: int) -> dict[int, int]:
    """Numbers of the trailer's message, by field number."""
    begin = at + len(_TRAILER) - file.start
    try:
        message = unframed(file.data[begin : len(file.data) - len(_VERSION)])
        return {field: value for field, value in message_fields(message) if isinstance(value, int)}
    except ValueError as error:
        raise file.corrupt(f"Expected the message of an HFile's trailer, found {error}.", at) from error


def _codec(file: HFileContent, number: int) -> Codec:
    try:
        codec = Codec(number)
    except ValueError:
        raise file.corrupt(f"Expected a compression of HFiles, found {number}.", file.end - TRAILER_SIZE) from None
    if codec not in READ_CODECS:
        raise UnsupportedFeatureError(f"HFiles compressed with {codec.name} are not supported [file {file.path}]")
    return codec


KEY_SUFFIX = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"
"""HBase's suffix of a key's content: length of the column family, timestamp, type."""

_REFERENCE = struct.Struct(">qi")
_SHORT = struct.Struct(">h")


def data_blocks(file: HFileContent, trailer: HFileTrailer) -> list[BlockReference]:
    """References to the data blocks of a whole HFile, in key order, which is file order.

    Raises:
        CorruptTableError: an index is damaged.
    """
    if trailer.entry_count == 0:
        return []
    start = trailer.load_on_open_offset
    payload = read_block(file, start, None, ROOT_INDEX, trailer.codec)
    root = read_root(file, start, payload, trailer.index_count)
    return inner_blocks(root, trailer, lambda references: (file for _ in references))


def inner_blocks(
    root: Sequence[BlockReference],
    trailer: HFileTrailer,
    fetch: Callable[[Sequence[BlockReference]], Iterable[HFileContent]],
) -> list[BlockReference]:
    """The data blocks below a root index, through its leaf and intermediate levels.

    ``fetch`` loads, for each reference, bytes of the file that contain its block.

    Raises:
        CorruptTableError: an index block is damaged.
    """
    found = list(root)
    for level in range(trailer.index_levels - 1, 0, -1):
        magic = LEAF_INDEX if level == 1 else MIDDLE_INDEX
        outer, found = found, []
        for reference, file in zip(outer, fetch(outer), strict=True):
            payload = read_block(file, reference.offset, reference.size, magic, trailer.codec)
            inner = _read_inner(file, reference.offset, payload)
            _check_ascending(file, reference.offset, found[-1:] + inner)
            found += inner
    return found


def read_root(file: HFileContent, start: int, payload: memoryview, count: int) -> list[BlockReference]:
    """Entries of a root index block, of data or of meta blocks; ``count`` is their number in the trailer.

    ``file`` and ``start``, the start of the block, are for messages.

    Raises:
        CorruptTableError: there are fewer than ``count`` entries, or they are not in file order.
    """
    found: list[BlockReference] = []
    at = 0
    for _ in range(count):  # raises at the end of the bytes
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


def encode_root(references: Iterable[BlockReference]) -> bytes:
    """The payload of a root index block."""
    return b"".join(
        _REFERENCE.pack(entry.offset, entry.size) + _vint(len(entry.key)) + entry.key for entry in references
    )


def full_key(content: bytes) -> bytes:
    """A key as indexes and ``hfile.LASTKEY`` store it.

    HBase's reader requires the suffix: without it, looking up the first key of a block fails.
    """
    return _SHORT.pack(len(content)) + content + KEY_SUFFIX


def key_content(key: bytes) -> bytes | None:
    """The content of a stored key; None if it is cut off."""
    length = _SHORT.unpack_from(key)[0] if len(key) >= _SHORT.size else -1
    return key[_SHORT.size : _SHORT.size + length] if 0 <= length <= len(key) - _SHORT.size else None


def index_keys(file: HFileContent, start: int, references: Sequence[BlockReference]) -> pa.Array:
    """The contents of the keys of data blocks, binary[blocks].

    They ascend by their bytes; or in Java's string order, if Hudi 1.x has sorted keys with rare characters. ``file``
    and ``start``, the start of the root index, are for messages.

    Raises:
        CorruptTableError: a key is cut off, or below the previous one.
    """
    contents = [key_content(reference.key) for reference in references]
    if None in contents:
        raise file.corrupt("Expected keys in an HFile's index, found one that is cut off.", start)
    keys = [content for content in contents if content is not None]
    if keys != sorted(keys) and keys != sorted(keys, key=java_order):
        raise file.corrupt("Expected ascending keys in an HFile's index, found unsorted keys.", start)
    return pa.array(keys, pa.binary())


def java_order(key: bytes) -> bytes:
    """A sort key that orders UTF-8 texts as Java orders strings, by UTF-16 units."""
    return key.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")


# ---- internals


def _read_vint(data: memoryview, at: int) -> tuple[int, int]:
    """Hadoop's variable-length number at ``at``, and the next position; -1 for negative and cut-off numbers."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    # As a signed byte, -113 and below announce 1 to 8 bytes of a positive number; others announce negative numbers.
    size = -112 - (first - 256)
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big") if 1 <= size <= 8 else -1
    return value, at + 1 + max(size, 0)


def _vint(value: int) -> bytes:
    """Hadoop's encoding of a non-negative number."""
    if value < 0x80:
        return bytes([value])
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(body)]) + body


def _read_inner(file: HFileContent, start: int, payload: memoryview) -> list[BlockReference]:
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


def _check_ascending(file: HFileContent, start: int, references: Sequence[BlockReference]) -> None:
    """Check that blocks follow each other in key order; this also excludes cycles between index blocks."""
    for before, after in pairwise(references):
        if after.offset < before.end or after.size <= 0:
            raise file.corrupt(f"Expected blocks in ascending order, found {before.offset}, {after.offset}.", start)
