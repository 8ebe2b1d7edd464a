"""Streams into S3 whose objects have headers that pyarrow's streams cannot send, for example for encryption.

::

    write ─► one part in memory ─► upload_part, up to four at once ─┐
    close ─► nothing uploaded yet: put_object                       └─► complete_multipart_upload

A stream holds at most five parts. They grow with the object, because an upload has at most 10 000 of them.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from hudi_fast.storage.object_store import with_retries
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["PART_BYTES", "PartStore", "S3Stream"]

PART_BYTES = 8 << 20
"""Bytes of the first parts."""

_GROWS_AFTER = 1000
"""Number of parts after which parts are twice as large."""

_AT_ONCE = 4


class PartStore(Protocol):
    """The requests of an upload; see :class:`~hudi_fast.storage.s3.S3Store`."""

    def put(self, name: str, data: bytes) -> None:
        """Create or replace an object."""
        ...

    def mark_of(self, name: str) -> str | None:
        """None if the object does not exist."""
        ...

    def begin_parts(self, name: str, mark: str) -> str:
        """Begin an upload; ``mark`` is stored with the object."""
        ...

    def put_part(self, name: str, upload: str, number: int, data: bytes) -> str:
        """Upload a part."""
        ...

    def end_parts(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Make an object of the parts."""
        ...

    def drop_parts(self, name: str, upload: str) -> None:
        """Delete the parts."""
        ...


class S3Stream:
    """An :class:`~hudi_fast.storage.object_store.ObjectStream`; not thread-safe.

    Args:
        store: sends the requests.
        name: full name of the object.
    """

    def __init__(self, store: PartStore, name: str) -> None:
        self._store, self._name = store, name
        self._buffer = bytearray()
        self._written = 0
        self._upload, self._mark = "", uuid.uuid4().hex
        self._tags: list[str] = []
        self._pending: deque[Future[str]] = deque()
        self._pool: ThreadPool | None = None
        self.closed = False

    def write(self, data: bytes) -> int:
        """See ``ObjectStream``."""
        self._buffer += data
        self._written += (size := memoryview(data).nbytes)
        part = PART_BYTES << ((len(self._tags) + len(self._pending)) // _GROWS_AFTER)
        while len(self._buffer) >= part:
            self._send(bytes(self._buffer[:part]))
            del self._buffer[:part]
        return size

    def tell(self) -> int:
        """See ``ObjectStream``."""
        return self._written

    def flush(self) -> None:
        """See ``ObjectStream``."""

    def close(self) -> None:
        """See ``ObjectStream``.

        Raises:
            OSError: there is no object, or an older one; the uploaded parts are deleted if the store answers.
        """
        if self.closed:
            return
        self.closed = True
        if not self._upload:
            with_retries(lambda: self._store.put(self._name, bytes(self._buffer)))
            return
        try:
            if self._buffer:
                self._send(bytes(self._buffer))
            self._settle(0)
            self._complete()
        except BaseException:
            self._give_up()
            raise
        finally:
            self._end_pool()

    def _send(self, data: bytes) -> None:
        store, name = self._store, self._name
        try:
            if self._pool is None:
                self._upload = with_retries(lambda: store.begin_parts(name, self._mark))
                self._pool = ThreadPool(_AT_ONCE, "hudi-fast-upload")
            upload, number = self._upload, len(self._tags) + len(self._pending) + 1
            task = self._pool.submit(with_retries, lambda: store.put_part(name, upload, number, data))
            self._pending.append(task)
            self._settle(_AT_ONCE - 1)
        except BaseException:
            self.closed = True
            self._give_up()
            self._end_pool()
            raise

    def _settle(self, left: int) -> None:
        """Wait until at most ``left`` parts are being uploaded."""
        while len(self._pending) > left:
            self._tags.append(self._pending[0].result())
            self._pending.popleft()

    def _complete(self) -> None:
        asked = False

        def once() -> None:
            nonlocal asked
            again, asked = asked, True
            try:
                self._store.end_parts(self._name, self._upload, self._tags)
            except OSError:
                if not (again and self._store.mark_of(self._name) == self._mark):
                    raise

        with_retries(once)

    def _give_up(self) -> None:
        """Delete the parts; an upload that is left costs storage until the bucket's rules end it."""
        for task in self._pending:
            task.cancel()
        for task in self._pending:
            with contextlib.suppress(BaseException):
                task.result()
        self._pending.clear()
        if self._upload:
            with contextlib.suppress(OSError):
                self._store.drop_parts(self._name, self._upload)

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
