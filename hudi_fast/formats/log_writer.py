"""Write Hudi's log files block by block, without copying content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from hudi_fast.formats.log_blocks import BlockType, HeaderKey
from hudi_fast.storage.base import Storage

__all__ = ["LogFileWriter", "command_block", "encode_block"]


def encode_block(kind: BlockType, headers: Mapping[HeaderKey, str], content: Any) -> list[Any]:
    """The parts of a block, in order: framing around ``content`` (one buffer or several), which is not copied."""
    raise NotImplementedError


def command_block(rollback_instant: str, target_instant: str) -> bytes:
    """A whole command block: the rollback of ``target_instant``."""
    raise NotImplementedError


class LogFileWriter:
    """One new log file; a context manager."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes written so far."""
        raise NotImplementedError

    def append(self, kind: BlockType, headers: Mapping[HeaderKey, str], content: Any | Sequence[Any]) -> int:
        """Write one block; its size in bytes."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the file."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
