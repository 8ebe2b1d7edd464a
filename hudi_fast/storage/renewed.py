"""File systems of :mod:`pyarrow.fs` that are made late, and again when their keys would expire."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow.fs as pafs

__all__ = ["RenewedFiles"]


class RenewedFiles:
    """Makes a file system when it is first used, and another one whenever there are new keys. Thread-safe.

    Streams that are open keep their keys.

    Args:
        keys: the keys that are valid now; renews them in time.
        make: makes a file system with these keys.
        first: called before a file system is made for the first time; its error is raised.
    """

    def __init__(
        self,
        keys: Callable[[], Any],
        make: Callable[[Any], pafs.FileSystem],
        first: Callable[[], object] = lambda: None,
    ) -> None:
        self._keys, self._make, self._first = keys, make, first
        self._lock = threading.Lock()
        self._known: Any = None
        self._made: pafs.FileSystem | None = None

    def __call__(self) -> pafs.FileSystem:
        """The file system for the next accesses.

        Raises:
            OSError: there are no keys now.
        """
        with self._lock:
            if self._made is None:
                self._first()
            keys = self._keys()
            if self._made is None or keys != self._known:
                self._made, self._known = self._make(keys), keys
            return self._made
