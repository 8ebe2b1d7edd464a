"""Children of ``fork`` in tests."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator

__all__ = ["in_children", "started", "wait_for"]


def started(act: Callable[[], object]) -> int:
    """The process id of a child that acts; it fails if ``act`` raises an error."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(child: int, seconds: float = 60.0) -> int:
    """The exit code of a child; that of a signal if it does not end in time."""
    deadline = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1])


@contextlib.contextmanager
def in_children(count: int, act: Callable[[], object]) -> Iterator[None]:
    """Children that act beside the block, and have succeeded at its end."""
    children = [started(act) for _ in range(count)]
    try:
        yield
    finally:
        codes = [wait_for(child) for child in children]
    assert codes == [0] * count
