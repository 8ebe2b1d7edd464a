"""Write Hudi's log files block by block, without copying the content.

A block is a list of parts: head, the caller's buffers, tail. :class:`LogFileWriter` creates a new file and streams the
parts into it. :mod:`~hudi_fast.formats.log.blocks` describes the layout. Source: spec sections 6.2 and 6.7;
HoodieLogFormatWriter, Hudi 1.2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.log.blocks import LOG_FORMAT_VERSION, MAGIC, BlockType, HeaderKey
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import naming_file

__all__ = ["LogFileWriter", "Part", "command_block", "encode_block"]

Part: TypeAlias = bytes | bytearray | memoryview | pa.Buffer | npt.NDArray[np.generic]
"""Bytes in memory: contiguous objects with the buffer protocol."""

_HEAD = struct.Struct(">6sqii")
_MAP_ENTRY = struct.Struct(">ii")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
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
    head = _HEAD.pack(MAGIC, size, LOG_FORMAT_VERSION, kind) + header + _LONG.pack(length)
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
