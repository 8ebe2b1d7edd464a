"""Compiled loops on Arrow buffers: arrays in, arrays out. Imports numpy and numba only.

::

    bloom.py       Hudi's bloom filter: add keys, probe keys
    java_hash.py   String.hashCode and List.hashCode
    bucket_hash.py  the hashes of record keys that buckets follow from
    key_table.py   exact hash tables over byte keys: look up, pick one row per key
    gather.py      take rows of one source, or interleave two
    fold_entries.py  the entries of a log, folded into one state per key
    hfile_entries.py  entries of a block of an HFile, taken out and laid out
    hfile_search.py   sorted keys: which blocks and which entries have given keys or prefixes
    grouping.py    rows by group number
    seqno.py       sequence number texts
    xx_hash.py     xxHash32 and xxHash64
    file_ids.py    file ids as the numbers that the record index stores
    secondary_keys.py  keys of secondary indexes, joined and parted
    _bytes.py      byte helpers that they share; _machine_ops.py: the same as machine instructions
    _jit.py        how kernels are compiled, cached and loaded

Variable-length values come as Arrow buffers: ``offsets`` int32[n + 1] and ``data`` uint8[]. The offsets of a sliced
array need not start at 0, and ``offsets`` is already cut to the slice. Kernels read only inside the offsets, so
well-formed buffers cannot make them leave the arrays; the value of a null is what its offsets say.

Importing is cheap; the first call of a kernel loads it from the cache or compiles it (see ``_jit``).
"""

from __future__ import annotations

from ._jit import warm_up

__all__ = ["warm_up"]
