"""A file that is written in one call if it is small, and as a stream if it is large."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hudi_fast.formats.log.writer import Part
from hudi_fast.storage.base import Storage

__all__ = ["LateFile", "late_file", "views_of"]

_WHOLE_BYTES = 64 << 20
"""Files up to this size are written in one call: an object store needs one request for it."""


class LateFile:
    """A sink that holds its parts until they are too many for one call.

    Attributes:
        size: bytes so far.
    """

    def __init__(self, storage: Storage, path: str, stack: contextlib.ExitStack) -> None:
        self.size = 0
        self._storage, self._path, self._stack = storage, path, stack
        self._parts: list[Part] = []
        self._sink: Any = None

    def write(self, part: Part, /) -> None:
        """Accept the next bytes: contiguous, with the buffer protocol, not modified later."""
        self.size += memoryview(part).nbytes  # type: ignore[arg-type]  # an Arrow buffer supports the buffer protocol
        if self._sink is not None:
            self._sink.write(part)
            return
        self._parts.append(part)
        if self.size > _WHOLE_BYTES:
            self._sink = self._stack.enter_context(self._storage.replacing(self._path))
            for each in self._parts:
                self._sink.write(each)
            self._parts.clear()

    def finish(self) -> None:
        """Write what is held."""
        if self._sink is None:
            self._storage.write_bytes(self._path, b"".join(views_of(self._parts)))


@contextlib.contextmanager
def late_file(storage: Storage, path: str) -> Iterator[LateFile]:
    """A sink whose content becomes the file when the block ends, replacing one of an earlier attempt.

    After an error in the block the file is as before on local disk, and undefined in an object store.
    """
    with contextlib.ExitStack() as stack:
        file = LateFile(storage, path, stack)
        yield file
        file.finish()


def views_of(parts: list[Part]) -> list[memoryview]:
    """Views of parts, for joining."""
    return [memoryview(part) for part in parts]  # type: ignore[arg-type]  # an Arrow buffer supports the buffer protocol
