"""Return freed memory to the operating system between the steps of a large file group.

The C library and Arrow keep freed memory for later allocations. After the log of a slice with millions of rows has been
decoded, the process would hold some hundred MiB of it in addition to the allocations of the next step.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable

import pyarrow as pa

__all__ = ["return_freed_bytes", "return_freed_memory"]

_MANY_ROWS, _MANY_BYTES = 1_000_000, 64 << 20
"""A step with fewer rows or bytes frees little memory. Returning memory takes about 10 ms."""


def return_freed_memory(rows: int) -> None:
    """Return freed memory after a step that handled ``rows`` rows; does nothing for few rows."""
    if rows >= _MANY_ROWS:
        _return()


def return_freed_bytes(size: int) -> None:
    """Return freed memory after a step that handled ``size`` Arrow bytes; does nothing for few bytes."""
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
