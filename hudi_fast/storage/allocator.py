"""The allocator of Arrow in processes that belong to hudi_fast: its command, and the workers of its daemon on Spark.

Arrow allocates with mimalloc unless the environment names another allocator when it is loaded. Decoding Parquet files
frees buffers of all sizes, and mimalloc keeps a part of them for each thread. With jemalloc, a read of 2 million rows
of 12 columns holds 70 MB less and takes four fifths of the time.

The library does not choose for a process of somebody else.
"""

from __future__ import annotations

import os
import sys

__all__ = ["choose_allocator"]

_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


def choose_allocator() -> None:
    """Let Arrow use jemalloc, unless the environment names an allocator. Call it before pyarrow is imported."""
    if sys.platform == "linux":
        os.environ.setdefault(_VARIABLE, "jemalloc")
