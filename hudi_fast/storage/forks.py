"""Locks and connections that a child of ``fork`` does not share with its parent.

A child begins with a copy of its parent's memory and open files, but has only the thread that forked. A lock that
another thread held would stay locked in the child for ever, and both processes would read from the same connections.
:mod:`hudi_fast.storage.file_locks` handles locked files.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet, finalize

__all__ = ["PerProcess", "in_child", "new_lock"]

Made = TypeVar("Made")

_locks: WeakSet[Any] = WeakSet()
_inherited: list[object] = []
"""Values of the parent, kept alive: closing their connections would close the parent's connections, too."""


def in_child(act: Callable[[], object]) -> None:
    """Call ``act`` in each child of ``fork`` before the child continues."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=act)


def new_lock() -> threading.Lock:
    """A lock that is free in a child of ``fork``, whichever thread of the parent held it."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


class PerProcess(Generic[Made]):
    """A value with connections: a child of ``fork`` does not use its parent's value. Not thread-safe.

    Args:
        end: closes the connections of a value. It is called for the last value when this object is dropped: clients of
            stores refer to themselves, so that their connections would stay open until the next garbage collection.
    """

    def __init__(self, end: Callable[[Made], object] | None = None) -> None:
        self._made: Made | None = None
        self._process = os.getpid()
        self._end = end
        self._closing: finalize[[int, Callable[[Made], object], Made], PerProcess[Made]] | None = None

    def get(self) -> Made | None:
        """The value of this process; None if it has set none."""
        return self._made if self._process == os.getpid() else None

    def set(self, made: Made) -> Made:
        """Set the value of this process, and return it."""
        if self._process != os.getpid():
            _inherited.append(self._made)
        self._made, self._process = made, os.getpid()
        if self._closing is not None:
            self._closing.detach()  # other threads may still use the value before
        if self._end is not None:
            self._closing = finalize(self, _end_of, self._process, self._end, made)
            self._closing.atexit = False
        return made


def _end_of(process: int, end: Callable[[Made], object], made: Made) -> None:
    if process == os.getpid():  # a child would close the connections of its parent
        end(made)


def _free_locks() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as Python's own modules do, for example logging


in_child(_free_locks)
