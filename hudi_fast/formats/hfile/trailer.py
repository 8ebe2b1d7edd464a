"""The trailer and the file info block of an HFile: two small protobuf messages.

::

    trailer     TRABLK"$ | length | numbers by field | zeros ... | 03 00 00 03     the last 4096 bytes of the file
    file info   PBUF | length | pairs of name and value                            payload of a block

Source: HFile reference sections 1.8 and 1.9; HFileTrailer and HFileInfo, Hudi 1.2.0; FixedFileTrailer, HBase 2.4.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.hfile.blocks import HFileContent
from hudi_fast.formats.hfile.codecs import READ_CODECS, Codec
from hudi_fast.formats.hfile.messages import encode_message, framed, message_fields, unframed

__all__ = [
    "TRAILER_SIZE",
    "HFileTrailer",
    "encode_file_info",
    "encode_trailer",
    "read_file_info",
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
        return dict(_pair(value) for field, value in message_fields(unframed(payload[4:])) if field == 1)
    except ValueError as error:
        raise file.corrupt(f"Expected names and values in the file info of an HFile, found {error}.", offset) from error


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """The payload of a file info block."""
    pairs = [(1, encode_message((1, name.encode()), (2, value))) for name, value in info.items()]
    return _INFO + framed(encode_message(*pairs))


def _pair(value: int | memoryview) -> tuple[str, bytes]:
    parts = dict(message_fields(value)) if isinstance(value, memoryview) else {}
    name, content = parts.get(1), parts.get(2)
    if not isinstance(name, memoryview) or not isinstance(content, memoryview):
        raise ValueError("a pair without a name or a value")
    return str(name, "utf-8"), bytes(content)


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
