"""Deleting many files of a table at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hudi_fast.storage.base import Storage

__all__ = ["Deleter", "in_threads"]

_THREADS = 16

Deleter = Callable[[Storage, Sequence[str]], list[bool]]
"""Deletes files, given by paths relative to the table; for each whether it was there and is gone."""


def in_threads(storage: Storage, paths: Sequence[str]) -> list[bool]:
    """Delete files in threads of this process; storage that fails leaves a file for the next attempt."""

    def delete(path: str) -> bool:
        try:
            return storage.delete_file(path)
        except OSError:
            return False

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi_fast") as pool:
        return list(pool.map(delete, paths))
