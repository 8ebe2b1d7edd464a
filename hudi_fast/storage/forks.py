"""Locks, connections and pools of threads that stay usable after ``fork`` and at the end of the interpreter.

Locks and connections that a child of ``fork`` does not share with its parent.

A child begins with a copy of its parent's memory and open files, but has only the thread that forked. A lock that
another thread held would stay locked in the child for ever, and both processes would read from the same connections.
:mod:`hudi_fast.storage.file_locks` handles locked files.

Thread pools that also work while the interpreter exits, as in functions of :mod:`atexit`.

Python then refuses tasks for pools, and from 3.12 on new threads. The calling thread then executes the tasks itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet, finalize

__all__ = ["PerProcess", "ThreadPool", "in_child", "new_lock"]

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


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class ThreadPool(ThreadPoolExecutor):
    """A pool whose tasks the caller executes if no thread can begin. It has the arguments of its base class."""

    _has_ended = False

    def submit(
        self, fn: Callable[Arguments, Answer], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Answer]:
        """See :class:`concurrent.futures.Executor`."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            if self._has_ended:
                raise
        future = Future[Answer]()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See :class:`concurrent.futures.Executor`."""
        self._has_ended = True
        super().shutdown(wait, cancel_futures=cancel_futures)
