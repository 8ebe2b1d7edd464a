"""Return freed memory to the operating system between the steps of a large file group.

The C library and Arrow keep freed memory for later allocations. After the log of a slice with millions of rows has been
decoded, that is some hundred MiB, which the process would hold beside what the next step allocates.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable

import pyarrow as pa

__all__ = ["return_freed_bytes", "return_freed_memory"]

_MANY_ROWS, _MANY_BYTES = 1_000_000, 64 << 20
"""A step with fewer rows or bytes leaves little behind. Returning memory takes about 10 ms."""


def return_freed_memory(rows: int) -> None:
    """Return freed memory after a step that handled so many rows; nothing is done if they are few."""
    if rows >= _MANY_ROWS:
        _return()


def return_freed_bytes(size: int) -> None:
    """Return freed memory after a step that handled so many Arrow bytes; nothing is done if they are few."""
    if size >= _MANY_BYTES:
        _return()


def _return() -> None:
    pa.default_memory_pool().release_unused()
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    """``malloc_trim`` of glibc; a function that does nothing where the C library lacks it."""
    with contextlib.suppress(OSError, AttributeError):
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return found
    return lambda _: 0
