"""Read units in threads of this process and yield their batches as they become available.

Memory is bounded by the units in flight and a few queued batches: reader threads block while the queue is full.

::

    iterator is read to its end, or closed ─► its threads have ended
    process ends before that               ─► :func:`_close_all` ends them, before the interpreter does, and a thread
                                              that waits for their batches gets an error

The interpreter ends a daemon thread when the thread next wants its lock. A thread that is inside a C++ library then
unwinds frames that must not be unwound, and the process aborts (``terminate called without an active exception``).
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

__all__ = ["in_threads"]

_WAITING_BATCHES = 2
_JOIN_SECONDS = 0.01
_EXIT_SECONDS = 30.0
"""The process waits at most this long at its end for batches being read: storage may not answer."""

_ENDED = "The process ends while rows are read."

Unit = TypeVar("Unit")
Read = Callable[[Unit], Iterator[pa.RecordBatch]]


def in_threads(units: Sequence[Unit], read: Read[Unit], threads: int) -> Iterator[pa.RecordBatch]:
    """The batches of all units, in no particular order; in order with one thread.

    Several threads call ``read`` concurrently. An error in a thread is raised here. Threads end when the iterator is
    closed or the process ends.
    """
    readers = _Readers(units, read, min(threads, len(units))) if threads > 1 and len(units) > 1 else None
    if readers is None or not readers.begin():
        for unit in units:
            yield from read(unit)
        return
    _open.add(readers)
    atexit.unregister(_close_all)
    atexit.register(_close_all)  # runs before earlier registrations: libraries must not shut down while threads read
    try:
        yield from readers.batches()
    finally:
        readers.close()
        _open.discard(readers)


class _Readers(Generic[Unit]):
    """Threads that read units, and the batches that wait for the caller.

    Args:
        units: units to read.
        read: reads one unit.
        count: number of threads.
    """

    def __init__(self, units: Sequence[Unit], read: Read[Unit], count: int) -> None:
        self._read = read
        self._ready: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_WAITING_BATCHES * count)
        self._is_awaited = False
        self._todo: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        self._stopped = threading.Event()
        for unit in units:
            self._todo.put(unit)
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def begin(self) -> bool:
        """Start the threads; False if the interpreter is ending and starts no more threads (since Python 3.12)."""
        for thread in self._threads:
            try:
                thread.start()
            except RuntimeError:
                if thread is self._threads[0]:
                    return False
                raise
        return True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches that the threads read."""
        running = len(self._threads)
        while running:
            self._is_awaited = True
            item = self._ready.get()
            self._is_awaited = False
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
        if self._stopped.is_set():
            raise RuntimeError(_ENDED)

    def close(self, seconds: float = float("inf")) -> None:
        """End the threads, after waiting up to ``seconds`` for the batches that they are reading."""
        deadline = time.monotonic() + seconds
        self._stopped.set()
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                self._drain()
                thread.join(_JOIN_SECONDS)

    def give_up(self, seconds: float) -> None:
        """End the threads before the interpreter ends.

        Another library may wait for a batch in a thread of its own, which has to leave Python, too.
        """
        deadline = time.monotonic() + seconds
        self.close(seconds)
        while self._is_awaited and time.monotonic() < deadline:
            if self._ready.empty():
                self._ready.put_nowait(RuntimeError(_ENDED))
            time.sleep(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                for batch in self._read(self._todo.get_nowait()):
                    self._ready.put(batch)
                    if self._stopped.is_set():
                        return
        except queue.Empty:
            pass
        except BaseException as error:  # raised by in_threads
            self._ready.put(error)
        self._ready.put(None)

    def _drain(self) -> None:
        try:
            while True:
                self._ready.get_nowait()
        except queue.Empty:
            return


_open: set[_Readers[Any]] = set()
"""Readers whose iterator is neither exhausted nor closed."""


def _close_all() -> None:
    deadline = time.monotonic() + _EXIT_SECONDS
    for readers in list(_open):
        readers.give_up(deadline - time.monotonic())
