"""File systems of :mod:`pyarrow.fs` that are made on first use, and again before their keys expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.fs as pafs

from hudi_fast.storage.forks import PerProcess, new_lock

__all__ = ["RenewedFiles"]


class RenewedFiles:
    """Makes a file system when it is first used, and another one whenever there are new keys. Thread-safe.

    Streams that are open keep their keys.

    Args:
        keys: the keys that are valid now; renews them in time.
        make: makes a file system with these keys.
        first: called before a file system is made for the first time; its errors are not caught.
    """

    def __init__(
        self,
        keys: Callable[[], Any],
        make: Callable[[Any], pafs.FileSystem],
        first: Callable[[], object] = lambda: None,
    ) -> None:
        self._keys, self._make, self._first = keys, make, first
        self._lock = new_lock()
        self._made: PerProcess[tuple[Any, pafs.FileSystem]] = PerProcess()

    def __call__(self) -> pafs.FileSystem:
        """The file system for the next accesses.

        Raises:
            OSError: there are no keys now.
        """
        with self._lock:
            made = self._made.get()
            if made is None:
                self._first()
            keys = self._keys()
            if made is None or keys != made[0]:
                made = self._made.set((keys, self._make(keys)))
            return made[1]
