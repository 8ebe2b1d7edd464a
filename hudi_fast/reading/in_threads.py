"""Read units in threads of this process and yield their batches as they become available.

Memory is bounded by the units in flight and a few queued batches: reader threads block while the queue is full.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

__all__ = ["in_threads"]

_WAITING_BATCHES = 2

Unit = TypeVar("Unit")
Read = Callable[[Unit], Iterator[pa.RecordBatch]]


def in_threads(units: Sequence[Unit], read: Read[Unit], threads: int) -> Iterator[pa.RecordBatch]:
    """The batches of all units, in no particular order; in order with one thread.

    An error of a thread is raised here. Threads end when the iterator is closed.

    Several threads call ``read`` concurrently.
    """
    if threads == 1 or len(units) < 2:
        for unit in units:
            yield from read(unit)
        return
    ready: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_WAITING_BATCHES * threads)
    todo: queue.SimpleQueue[Unit] = queue.SimpleQueue()
    stopped = threading.Event()
    for unit in units:
        todo.put(unit)
    workers = [
        threading.Thread(target=_read_into, args=(read, todo, ready, stopped), daemon=True)
        for _ in range(min(threads, len(units)))
    ]
    for worker in workers:
        worker.start()
    running = len(workers)
    try:
        while running:
            item = ready.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stopped.set()
        for worker in workers:
            while worker.is_alive():
                _drain(ready)
                worker.join(0.01)


def _read_into(
    read: Read[Unit],
    todo: queue.SimpleQueue[Unit],
    ready: queue.Queue[pa.RecordBatch | BaseException | None],
    stopped: threading.Event,
) -> None:
    try:
        while not stopped.is_set():
            for batch in read(todo.get_nowait()):
                ready.put(batch)
                if stopped.is_set():
                    return
    except queue.Empty:
        pass
    except BaseException as error:  # raised by in_threads
        ready.put(error)
    ready.put(None)


def _drain(ready: queue.Queue[pa.RecordBatch | BaseException | None]) -> None:
    try:
        while True:
            ready.get_nowait()
    except queue.Empty:
        return
