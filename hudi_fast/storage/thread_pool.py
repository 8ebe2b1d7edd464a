"""Thread pools that also work while the interpreter exits, as in functions of :mod:`atexit`.

Python then refuses tasks for pools, and from 3.12 on new threads. The calling thread then executes the tasks itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["ThreadPool"]

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
