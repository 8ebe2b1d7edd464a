"""Framing of Hudi's log files: where the blocks of a file are and what their headers say; content is not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from hudi_fast.storage.base import Storage

__all__ = ["BlockType", "HeaderKey", "LogBlock", "read_content", "scan_log_blocks"]


class BlockType(IntEnum):
    """What a log block holds; values are the ordinals on storage (spec section 6.3)."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header map; values are the ordinals on storage (spec section 6.3)."""

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
        kind: what the block holds; CORRUPT for a span that is to be skipped (no headers).
        headers: header map.
        content_start: byte position of the content.
        content_length: bytes of the content.
    """

    path: str
    offset: int
    kind: BlockType
    headers: Mapping[HeaderKey, str]
    content_start: int
    content_length: int

    @property
    def instant(self) -> str:
        """Requested time of the action that wrote the block."""
        return self.headers[HeaderKey.INSTANT_TIME]


def scan_log_blocks(storage: Storage, path: str) -> Iterator[LogBlock]:
    """Blocks of a log file in file order; corrupt spans come as CORRUPT blocks."""
    raise NotImplementedError


def read_content(storage: Storage, block: LogBlock) -> pa.Buffer:
    """Content of a block; memory-mapped where the file is local."""
    raise NotImplementedError
