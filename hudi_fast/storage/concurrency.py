"""The number of files to work on at once, and their order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import ThreadPool

__all__ = ["MAX_FAR", "heaviest_first", "in_threads", "is_little", "max_threads", "reads_at_once", "units_at_once"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MAX_FAR = 32
"""Threads that mostly wait for an object store."""

_IN_FLIGHT = 32 << 20
"""Bytes of files, as stored, that more threads than cores may work on together."""


_LITTLE = 1 << 20
"""Bytes of files on local disk that one thread works on as fast as several: they would compete for the interpreter."""


def is_little(is_local: bool, sizes: Iterable[float]) -> bool:
    """Whether one thread is best for files of the given sizes in bytes, all together."""
    return is_local and sum(sizes) <= _LITTLE


def max_threads(storage: Storage) -> int:
    """The largest sensible number of threads: one per core on local disk, more if threads wait for an object store."""
    cores = os.cpu_count() or 1
    return cores if storage.is_local else max(cores, MAX_FAR)


def units_at_once(sizes: Iterable[float], threads: int, limit: int) -> int:
    """The number of threads for units of the given sizes.

    A thread that waits for an object store uses no core. So small units get more threads: as many as work on 32 MiB
    together, whatever units they take.

    Args:
        sizes: bytes of each unit's files.
        threads: minimum number of threads.
        limit: maximum number of threads.
    """
    largest = sorted(sizes, reverse=True)[:limit]
    return max(threads, sum(total <= _IN_FLIGHT for total in accumulate(largest)))


def reads_at_once(storage: Storage, sizes: Iterable[int]) -> int:
    """The number of threads that read units of the given sizes in bytes."""
    return units_at_once(sizes, os.cpu_count() or 1, max_threads(storage))


def in_threads(function: Callable[[Item], Answer], items: Sequence[Item], threads: int) -> list[Answer]:
    """Call a function with each item; in this thread if there is one thread, or one item.

    Args:
        function: is called from any thread.
        items: its arguments, in the order in which the calls begin.
        threads: number of threads.

    Returns:
        The answers, in the order of the items.
    """
    if threads <= 1 or len(items) <= 1:
        return [function(one) for one in items]
    with ThreadPool(min(threads, len(items)), thread_name_prefix="hudi_fast") as pool:
        return list(pool.map(function, items))


def heaviest_first(weights: Sequence[float], function: Callable[[int], Answer], threads: int) -> list[Answer]:
    """Call a function with the number of each weight, in threads, the heaviest first.

    A heavy unit that begins last would prolong the work.

    Args:
        weights: of the units.
        function: executes the unit with the given number.
        threads: number of threads.

    Returns:
        The answers, starting with the answer for the heaviest unit.
    """
    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    return in_threads(function, order, threads)
