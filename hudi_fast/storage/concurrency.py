"""How many files to work on at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import accumulate

from hudi_fast.storage.base import Storage

__all__ = ["most_threads", "reads_at_once", "units_at_once"]

_MOST_FAR = 32
"""Threads that mostly wait for an object store."""

_IN_FLIGHT = 32 << 20
"""Bytes of files, as stored, that more threads than cores may work on together."""


def most_threads(storage: Storage) -> int:
    """The largest sensible number of threads: of cores on local disk, more where threads wait for an object store."""
    cores = os.cpu_count() or 1
    return cores if storage.is_local else max(cores, _MOST_FAR)


def units_at_once(sizes: Iterable[int], threads: int, most: int) -> int:
    """The number of threads for units of the given sizes.

    A thread that waits for an object store uses no core. So small units get more threads: as many as work on 32 MiB
    together, whichever units they take.

    Args:
        sizes: bytes of each unit's files.
        threads: at least so many.
        most: at most so many.
    """
    largest = sorted(sizes, reverse=True)[:most]
    return max(threads, sum(total <= _IN_FLIGHT for total in accumulate(largest)))


def reads_at_once(storage: Storage, sizes: Iterable[int]) -> int:
    """The number of threads that read units of the given sizes in bytes."""
    return units_at_once(sizes, os.cpu_count() or 1, most_threads(storage))
