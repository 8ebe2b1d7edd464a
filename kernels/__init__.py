"""Compiled loops on Arrow buffers: arrays in, arrays out. Imports numpy and numba only.

::

    avro_decode.py, avro_structure.py   Avro binary to Arrow buffers
    avro_encode.py        Arrow buffers to Avro binary
    bloom.py              Hudi's bloom filter: add keys, probe keys, read its base64 text
    delete_records.py     entries of delete blocks: read, write
    fold_entries.py       fold the entries of log files into one state per key
    gather.py             take rows of one source, interleave two, or replace some
    hashes.py             hashes of keys that select buckets, Java's hash codes, xxHash
    hfile.py              entries of HFile blocks: read, write, find by keys or prefixes
    hudi_texts.py         sequence numbers, file ids, keys of secondary indexes
    java_text.py, json_text.py   numbers and JSON text as Java writes them
    key_table.py          exact hash tables over byte keys: look up, pick one row per key
    kryo_deletes.py       entries of delete blocks that Kryo serialised
    lz4_blocks.py         LZ4 blocks as Hadoop writes them
    orc_runs.py           integers of ORC streams
    parquet_footer.py     check the types of column chunks
    sorting.py            group and sort rows: words that order like bytes, space-filling curves, radix sort
    vector_distances.py   distances of many vectors to one
    _arrays.py, _bytes.py   array types, and byte helpers; _machine_ops.py: the same as machine instructions
    _declared.py          what a kernel is before any machine code is there
    _kernel.py            declare kernels, and load machine code; _jit.py: compile with numba instead
    _ahead.py, _runtime.c compile the library that a wheel ships, or that the cache has
    _cache.py             folders and locks of the cache

Variable-length values are Arrow buffers: ``offsets`` int32[n + 1] and ``data`` uint8[]. ``offsets`` is already cut to
the slice and need not start at 0. Kernels read only inside the offsets, so well-formed buffers keep them within the
arrays. A null has the bytes that its offsets span.

Importing is cheap: the first call of a kernel loads or compiles it (see ``_kernel``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._jit import cache_folder as compiled_here
from ._kernel import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["cache_folder", "compile_into_cache", "warm_up"]


def cache_folder() -> Path | None:
    """The folder of kernels that this process compiles; None if no folder is usable."""
    return compiled_here()


def compile_into_cache(levels: Sequence[int] = ()) -> Path | None:
    """Compile all kernels into a library in the cache, unless one fits; None where there can be no library.

    Args:
        levels: levels of processors; empty for all levels of this kind of machine.

    Raises:
        RuntimeError: a tool fails.
    """
    from ._ahead import compile_into_cache as compile_all

    return compile_all(levels)
