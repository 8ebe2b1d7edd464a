"""The texts of the metadata table's keys, and back.

::

    column, partition  ── xxHash64 ─► 8 bytes  ─► base64 ─► 12 characters ┐
    file name          ── MD5 ──────► 16 bytes ─► base64 ─► 24 characters ┴─► joined: keys of statistics and filters

    indexed value, record key  ── escape ─► "value$key" ── split at the first bare $, unescape ─► value, record key

A text within a secondary key has a backslash before each backslash, ``$`` and NUL, so that the first bare ``$`` parts
the two; one bare NUL stands for null. Functions on Arrow arrays do not walk rows in Python.

Source: metadata table reference, sections 3.4 and 3.9; HashID, ColumnIndexID, PartitionIndexID, FileIndexID and
SecondaryIndexKeyUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.xx_hash import xx_hash64

__all__ = [
    "NON_PARTITIONED",
    "PARTITION_STAT",
    "bloom_key",
    "column_hash",
    "column_stats_key",
    "column_stats_keys",
    "expression_partition_key",
    "expression_partition_prefix",
    "file_hash",
    "partition_hash",
    "partition_stats_key",
    "secondary_keys",
    "secondary_prefix",
    "secondary_routing",
    "split_secondary_keys",
]

NON_PARTITIONED = "."
"""The empty partition path, as keys and the ``files`` partition spell it."""

PARTITION_STAT = "__partition_stat__"
"""What stands before the partition in the keys of an expression index's partition records."""

_SEED = 0xFFFFFFFFDABADABA


def column_hash(name: str) -> str:
    """The 12 characters that stand for a column (dotted, for nested ones)."""
    return _hashes([name])[0]


def partition_hash(path: str) -> str:
    """The 12 characters that stand for a partition path; the empty path is that of ``.``."""
    return _hashes([path or NON_PARTITIONED])[0]


def file_hash(names: Sequence[str]) -> list[str]:
    """The 24 characters that stand for each file name (without folder)."""
    return [base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode() for name in names]


def column_stats_key(column: str, partition: str, file: str) -> str:
    """The key of one file's statistics of one column; also those of an expression index.

    Args:
        column: name, dotted for a nested one.
        partition: relative path, may be empty.
        file: name without folder.
    """
    return column_hash(column) + partition_hash(partition) + file_hash([file])[0]


def column_stats_keys(columns: Sequence[str], partitions: Sequence[str], files: Sequence[str]) -> pa.Array:
    """:func:`column_stats_key` of many rows: string[n], from three sequences of n."""
    raise NotImplementedError


def partition_stats_key(column: str, partition: str) -> str:
    """The key of one partition's statistics of one column."""
    return column_hash(column) + partition_hash(partition)


def bloom_key(partition: str, file: str) -> str:
    """The key of one file's bloom filter; also those of an expression index of that kind."""
    return partition_hash(partition) + file_hash([file])[0]


def expression_partition_prefix(column: str) -> str:
    """How the keys of an expression index's partition records of a column begin."""
    return column_hash(column) + _hashes([PARTITION_STAT])[0]


def expression_partition_key(column: str, partition: str) -> str:
    """The key of a partition's record in an expression index (type 6)."""
    return expression_partition_prefix(column) + partition_hash(partition)


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Keys of a secondary index: string[n].

    Args:
        values: string[n], the indexed column's values as text; null is a value too.
        record_keys: string[n], without nulls.

    Raises:
        InvalidDataError: the keys take 2 GiB or more.
    """
    raise NotImplementedError


def split_secondary_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The values (null where null was indexed) and record keys of a secondary index's keys: string[n] each.

    Args:
        keys: string or binary[n].

    Raises:
        CorruptTableError: a key without a bare ``$``.
    """
    raise NotImplementedError


def secondary_prefix(value: str | None) -> str:
    """How the keys of all records with that value begin: the escaped value and ``$``."""
    raise NotImplementedError


def secondary_routing(keys: pa.Array) -> pa.Array:
    """What table version 9 hashes to choose a key's file group: the key up to its first bare ``$``, included.

    Args:
        keys: string or binary[n], of a secondary index.

    Returns:
        string[n].

    Raises:
        CorruptTableError: a key without a bare ``$``.
    """
    raise NotImplementedError


def _hashes(texts: Sequence[str]) -> list[str]:
    array = pa.array(texts, pa.string())
    out = np.empty(len(array), np.uint64)
    xx_hash64(*varlen_buffers(array), _SEED, out)
    big = out.astype(">u8").tobytes()
    return [base64.b64encode(big[at : at + 8]).decode() for at in range(0, len(big), 8)]
