"""Framing of Hudi's log files: read and written block by block.

Framing of Hudi's log files: positions and headers of the blocks, without their content.

The scan is one forward walk. It reads three parts of a block: the head (magic, size, version, type, headers, content
length), the tail (footer, length field) and the next six bytes, which must be another magic or the end of the file. All
reads use a window onto the file: the whole file if it is local (memory-mapped), else a range, positioned so that a
block's tail and the next block's head are one request.

::

    #HUDI# | size S | version | type | headers | content length | content | footers | ... | S + 6
             8 bytes  4         4      map       8                            map       any   8        all big endian

Footers have the keys of headers; no release of Hudi writes any, and 1.2.0 cannot read them (FooterMetadataType has no
members). Bytes between the footers and the last field are ignored, as the specification says; Hudi looks for the next
magic within them and fails (HoodieLogFileReader, 0.15.0 and 1.2.0).

A block with a damaged *frame* (it ends after the file, its two lengths differ, or no block follows it) is the result of
a crashed writer: it becomes a CORRUPT block that ends at the next magic. A block with an intact frame and invalid
content is unexpected damage: :class:`CorruptTableError`.

Source: spec sections 6.2, 6.3 and 6.8; HoodieLogFileReader and HoodieLogFormatWriter, Hudi 1.2.0.

Write Hudi's log files block by block, without copying the content.

A block is a list of parts: head, the caller's buffers, tail. :class:`LogFileWriter` creates a new file and streams the
parts into it. :mod:`~hudi_fast.formats.log.blocks` describes the layout. Source: spec sections 6.2 and 6.7;
HoodieLogFormatWriter, Hudi 1.2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, FileGoneError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import naming_file
from hudi_fast.values import dataclass

__all__ = [
    "LOG_FORMAT_VERSION",
    "MAGIC",
    "BlockType",
    "HeaderKey",
    "LogBlock",
    "LogFileWriter",
    "Part",
    "command_block",
    "encode_block",
    "read_content",
    "scan_log_blocks",
]

MAGIC = b"#HUDI#"
"""The first bytes of every block."""

LOG_FORMAT_VERSION = 1
"""Version of the blocks that are read and written."""

_OLD_MAGIC = b"HUDI"

_HEAD = struct.Struct(">qii")  # S, version, type
_MAP_ENTRY = struct.Struct(">ii")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
# Version, type, empty header map, content length, empty footer map, length field.
_LEAST_SIZE = 4 + 4 + 4 + 8 + 4 + 8
# One request to an object store: a tail, and the next block's head with its schema.
_WINDOW = 64 << 10
_SCAN_STEP = 1 << 20
_KEPT = 256 << 10
"""Bytes of a file in an object store up to which blocks keep their content: reading it again would be a request."""


class BlockType(IntEnum):
    """The content of a log block; values are the stored ordinals (spec section 6.3)."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header map; values are the stored ordinals (spec section 6.3)."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file.

    Attributes:
        path: the log file, relative to the table's base path.
        offset: byte position of the block's magic.
        kind: the block's type; CORRUPT for a range to skip (it has no headers).
        headers: header map.
        content_start: byte position of the content; for a CORRUPT block, the first byte after its magic.
        content_length: bytes of the content; for a CORRUPT block, up to the next magic or the end of the file.
        footers: footer map; empty in all files that Hudi wrote.
        content: the content, if the scan read the whole file; else :func:`read_content` reads it.
    """

    path: str
    offset: int
    kind: BlockType
    headers: Mapping[HeaderKey, str]
    content_start: int
    content_length: int
    footers: Mapping[HeaderKey, str] = field(default_factory=dict)
    content: pa.Buffer | None = field(default=None, repr=False, compare=False)

    @property
    def instant(self) -> str:
        """Requested time of the action that wrote the block.

        Raises:
            CorruptTableError: the block has no such header.
        """
        try:
            return self.headers[HeaderKey.INSTANT_TIME]
        except KeyError:
            raise CorruptTableError(
                f"Expected a log block with the header INSTANT_TIME, found {self.kind.name} with "
                f"{[key.name for key in self.headers]}.",
                self.path,
                self.offset,
            ) from None


def scan_log_blocks(storage: Storage, path: str, size: int | None = None) -> Iterator[LogBlock]:
    """Blocks of a log file in file order; a damaged block becomes a CORRUPT block.

    Content is not read, except that of a small file in an object store. A magic that is cut off by the end of the file
    is ignored, as in HoodieLogFileReader.

    Args:
        storage: storage of the table.
        path: the file.
        size: its bytes, if known: a small file in an object store then takes one request instead of two.

    Raises:
        FileNotFoundError: the file does not exist.
        CorruptTableError: no block begins at an expected position, or a block's lengths contradict each other.
        UnsupportedFeatureError: a block has a log format version of 0 or above 1, an unknown type, or an unknown header
            key.
    """
    with _open(storage, path, size) as source:
        file = _Window(source, path, storage.is_local)
        at = 0
        while at + len(MAGIC) <= file.size:
            found = file.read(at, len(MAGIC))
            if found != MAGIC:
                _check_version(0 if found.startswith(_OLD_MAGIC) else LOG_FORMAT_VERSION, path, at)
                raise CorruptTableError(
                    f"Expected a log block (it begins with {MAGIC.decode()}), found {found!r}.", path, at
                )
            block, at = _next_block(file, at)
            yield block


def read_content(storage: Storage, block: LogBlock) -> pa.Buffer:
    """Content of a block: kept by its scan, or a view of the mapped file if it is local, or one ranged read.

    Raises:
        FileGoneError: the file no longer exists.
        CorruptTableError: the file is shorter than when the block was found.
    """
    if block.content is not None:
        return block.content
    try:
        opened = _open(storage, block.path)
    except FileNotFoundError as error:
        raise FileGoneError(
            f"Table {storage.uri}: a clean or a rollback deleted a log file while it was read. Read again.", block.path
        ) from error
    with opened as source:
        found = max(0, int(source.size()) - block.content_start)
        if found < block.content_length:
            raise CorruptTableError(
                f"Expected {block.content_length} bytes of block content, found {found}: the file became shorter.",
                block.path,
                block.content_start,
            )
        source.seek(block.content_start)
        return source.read_buffer(block.content_length)


def _open(storage: Storage, path: str, size: int | None = None) -> pa.NativeFile:
    if storage.is_local:
        return pa.memory_map(storage.fs_path(path), "r")
    return storage.open_input(path, size)


class _Window:
    """Random access to a file of any size through two buffers.

    Args:
        source: the open file.
        path: its path, for messages.
        is_mapped: whether the file is mapped, so that a window over all of it reads nothing yet.
    """

    def __init__(self, source: pa.NativeFile, path: str, is_mapped: bool) -> None:
        self.path = path
        self.size = int(source.size())
        self._source = source
        # Newest first; the older buffer may still have the head of the block whose tail was read.
        self._buffers: list[tuple[int, memoryview]] = []
        self._kept: pa.Buffer | None = None
        if self.size and (is_mapped or self.size <= _KEPT):
            whole = self._load(0, self.size)
            # A mapping is not kept: its file would stay open as long as the blocks live.
            self._kept = None if is_mapped else pa.py_buffer(whole)

    def read(self, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` on; fewer at the end of the file."""
        length = max(0, min(length, self.size - start))
        for at, view in self._buffers:
            if at <= start and start + length <= at + len(view):
                return bytes(view[start - at : start - at + length])
        view = self._load(start, min(max(length, _WINDOW), self.size - start))
        return bytes(view[:length])

    def content(self, start: int, length: int) -> pa.Buffer | None:
        """A range of a file that is in memory; None for other files."""
        return None if self._kept is None else self._kept.slice(start, length)

    def find_magic(self, start: int) -> int:
        """Position of the first magic at ``start`` or later; the file's size if there is no other magic."""
        while start < self.size:
            found = self.read(start, _SCAN_STEP).find(MAGIC)
            if found >= 0:
                return start + found
            # A magic may begin in the last bytes of this step.
            start += _SCAN_STEP - len(MAGIC) + 1
        return self.size

    def _load(self, start: int, length: int) -> memoryview:
        self._source.seek(start)
        view = memoryview(self._source.read_buffer(length))
        self._buffers = [(start, view), *self._buffers[:1]]
        return view


def _next_block(file: _Window, offset: int) -> tuple[LogBlock, int]:
    """The block whose magic is at ``offset``, and the position of the next magic or of the end of the file."""
    start = offset + len(MAGIC)
    head = file.read(start, _HEAD.size)
    if len(head) == _HEAD.size:
        size, version, kind = _HEAD.unpack(head)
        end = start + 8 + size
        if size >= 8 and _frame_holds(file, size, end):
            return _sound_block(file, offset, end, version, kind), end
    end = file.find_magic(start)
    return LogBlock(file.path, offset, BlockType.CORRUPT, {}, start, end - start), end


def _frame_holds(file: _Window, size: int, end: int) -> bool:
    """Whether the length before ``end`` agrees with the block's size, and a magic or the file's end follows."""
    if end > file.size:
        return False
    # One read from the footer map on also loads the next block's head.
    tail = file.read(end - 12, 12 + len(MAGIC))
    after = tail[12:]
    return _LONG.unpack_from(tail, 4)[0] == size + len(MAGIC) and (len(after) < len(MAGIC) or after == MAGIC)


def _sound_block(file: _Window, offset: int, end: int, version: int, kind: int) -> LogBlock:
    """The block with an intact frame that ends at ``end``."""
    start = offset + len(MAGIC) + _HEAD.size
    _check_version(version, file.path, offset)
    if end - start < _LEAST_SIZE - 8:
        raise CorruptTableError(f"Expected a log block of at least {_LEAST_SIZE} bytes.", file.path, offset)
    headers, at = _read_map(file, start, end - 20, "header")
    content_length = _LONG.unpack(file.read(at, 8))[0]
    content_start = at + 8
    footers_at = content_start + content_length
    # At least an empty footer map and the length field follow the content.
    if footers_at + 12 > end or content_length < 0:
        raise CorruptTableError(
            f"Expected a content length of at most {end - content_start - 12} (the block's size without headers and "
            f"an empty footer), found {content_length}.",
            file.path,
            at,
        )
    footers, _ = _read_map(file, footers_at, end - 8, "footer")
    kind_found = _block_type(kind, file.path, offset)
    content = file.content(content_start, content_length)
    return LogBlock(file.path, offset, kind_found, headers, content_start, content_length, footers, content)


def _check_version(version: int, path: str, offset: int) -> None:
    """Raise for other versions than 1. Version 0 also stands for the older blocks that begin with HUDI."""
    if version == LOG_FORMAT_VERSION:
        return
    if version < 0:
        raise CorruptTableError(f"Expected log format version 1, found {version}.", path, offset)
    if version:
        what = "A later release of Hudi may have written it."
    else:
        what = (
            "Such blocks (Hudi before 0.4.1) do not name the write that they belong to, and no release of Apache Hudi "
            "since 0.5 reads them. Compact the file group with the release that wrote it."
        )
    raise UnsupportedFeatureError(
        f"Expected log format version 1, found {version} [file {path}, byte {offset}]. {what}"
    )


def _block_type(kind: int, path: str, offset: int) -> BlockType:
    if kind < 0 or kind == BlockType.CORRUPT:
        raise CorruptTableError(f"Expected a log block type, found {kind}, which is never written.", path, offset)
    try:
        return BlockType(kind)
    except ValueError:
        raise UnsupportedFeatureError(
            f"Expected one of the log block types {[t.value for t in BlockType]}, found {kind} "
            f"[file {path}, byte {offset}]; a later release of Hudi may have written it."
        ) from None


def _read_map(file: _Window, start: int, limit: int, what: str) -> tuple[dict[HeaderKey, str], int]:
    """The header or footer map (``what``) at ``start``, up to ``limit`` at most, and its end."""
    count = _INT.unpack(file.read(start, 4))[0]
    if not 0 <= count <= max(0, limit - start - 4) // _MAP_ENTRY.size:
        raise CorruptTableError(f"Expected a number of block {what}s, found {count}.", file.path, start)
    entries: dict[HeaderKey, str] = {}
    at = start + 4
    for _ in range(count):
        if at + _MAP_ENTRY.size > limit:
            raise CorruptTableError(f"Expected a block {what}, found the end of the block.", file.path, at)
        ordinal, length = _MAP_ENTRY.unpack(file.read(at, _MAP_ENTRY.size))
        text_at = at + _MAP_ENTRY.size
        key = _header_key(ordinal, what, file.path, at)
        # Rejecting duplicates also bounds the loop.
        if key in entries:
            raise CorruptTableError(f"Expected each block {what} once, found {key.name} again.", file.path, at)
        if not 0 <= length <= limit - text_at:
            raise CorruptTableError(
                f"Expected at most {limit - text_at} bytes of block {what} {key.name}, found {length}.", file.path, at
            )
        try:
            entries[key] = file.read(text_at, length).decode()
        except UnicodeDecodeError as error:
            raise CorruptTableError(f"Block {what} {key.name} is not UTF-8: {error}.", file.path, text_at) from error
        at = text_at + length
    return entries, at


def _header_key(ordinal: int, what: str, path: str, at: int) -> HeaderKey:
    if ordinal < 0:
        raise CorruptTableError(f"Expected a block {what} key, found {ordinal}.", path, at)
    try:
        return HeaderKey(ordinal)
    except ValueError:
        raise UnsupportedFeatureError(
            f"Expected one of the block {what} keys {[k.value for k in HeaderKey]}, found {ordinal} "
            f"[file {path}, byte {at}]; a later release of Hudi may have written it."
        ) from None


Part: TypeAlias = bytes | bytearray | memoryview | pa.Buffer | npt.NDArray[np.generic]
"""Bytes in memory: contiguous objects with the buffer protocol."""

_MAGIC_HEAD = struct.Struct(">6sqii")
_NO_FOOTER = _INT.pack(0)
# HoodieLogFileReader stores block sizes as ints.
_MAX_BYTES = 2**31 - 1


def encode_block(kind: BlockType, headers: Mapping[HeaderKey, str], content: Part | Sequence[Part]) -> list[Part]:
    """A block as consecutive parts: head, the content's own buffers, tail.

    Args:
        kind: type of the block.
        headers: headers in storage order.
        content: one buffer, or several consecutive buffers; no buffer for a command block.

    Raises:
        InvalidDataError: the block exceeds the 2 GiB that Hudi can read.
        ValueError: ``kind`` is CORRUPT.
    """
    if kind == BlockType.CORRUPT:
        raise ValueError("CORRUPT blocks cannot be written")
    parts = list(content) if isinstance(content, Sequence) and not _is_buffer(content) else [content]
    length = sum(_size(part) for part in parts)
    header = _encode_map(headers)
    # Version, type, headers, content length, content, footer, length field.
    size = 4 + 4 + len(header) + 8 + length + len(_NO_FOOTER) + 8
    if size > _MAX_BYTES:
        raise InvalidDataError(
            f"A log block of {size} bytes is more than Hudi can read (2 GiB); write fewer rows at once, or lower "
            "hoodie.logfile.data.block.max.size."
        )
    head = _MAGIC_HEAD.pack(MAGIC, size, LOG_FORMAT_VERSION, kind) + header + _LONG.pack(length)
    return [head, *(part for part in parts if _size(part)), _NO_FOOTER + _LONG.pack(size + len(MAGIC))]


def command_block(rollback_instant: str, target_instant: str) -> bytes:
    """A whole command block, which invalidates the log blocks of the target instant (table versions below 8)."""
    headers = {
        HeaderKey.INSTANT_TIME: rollback_instant,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",  # ROLLBACK_BLOCK, the only type
        HeaderKey.TARGET_INSTANT_TIME: target_instant,
    }
    return b"".join(bytes(part) for part in encode_block(BlockType.COMMAND, headers, []))


class LogFileWriter:
    """Writes a new log file; a context manager, which deletes the file if its body fails.

    Args:
        storage: the table's storage.
        path: the file, relative to the table's base path.
        is_ours: whether no other writer can write a file of this name, so that its creation need not be checked.

    Raises:
        FileExistsError: the file exists; it is not modified.
        UnsupportedFeatureError: the storage cannot create a file conditionally.
    """

    def __init__(self, storage: Storage, path: str, is_ours: bool = False) -> None:
        self.path = path
        self._storage = storage
        self._size = 0
        if not is_ours:  # create the file atomically first; the stream then overwrites this empty file
            storage.create_exclusive(path, b"")
        self._sink = storage.open_output(path)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._size

    def append(self, kind: BlockType, headers: Mapping[HeaderKey, str], content: Part | Sequence[Part]) -> int:
        """Write one block; arguments and errors as for :func:`encode_block`, writes nothing on error.

        Returns:
            The block's size in bytes, with its magic.
        """
        written = 0
        with naming_file(self.path):
            for part in encode_block(kind, headers, content):
                self._sink.write(part)
                written += _size(part)
        self._size += written
        return written

    def close(self) -> None:
        """Finish the file; idempotent."""
        if not self._sink.closed:
            with naming_file(self.path):
                self._sink.close()

    def abort(self) -> None:
        """Close the stream and delete the file."""
        try:
            self.close()
        finally:
            self._storage.delete_file(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _is_buffer(content: Any) -> bool:
    return isinstance(content, bytes | bytearray | memoryview | pa.Buffer)


def _size(part: Any) -> int:
    return part.size if isinstance(part, pa.Buffer) else memoryview(part).nbytes


def _encode_map(headers: Mapping[HeaderKey, str]) -> bytes:
    parts = [_INT.pack(len(headers))]
    for key, value in headers.items():
        text = value.encode()
        parts += (_MAP_ENTRY.pack(key, len(text)), text)
    return b"".join(parts)
