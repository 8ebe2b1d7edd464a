"""Descriptors of this process: those that are open, and pipes of other processes."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

__all__ = ["open_things", "readable"]


def open_things() -> tuple[int, int]:
    """Number of open descriptors and of threads."""
    return len(os.listdir("/dev/fd")), threading.active_count()


def readable(pipe: Any, seconds: float) -> bool:
    """Whether a read of ``pipe`` would not wait: bytes are there, or the other side has closed it.

    ``select.select`` refuses descriptors from 1024 upwards, and a process of many tests reaches them.
    """
    poll = select.poll()
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(max(seconds, 0.0) * 1000))
