"""Records of the metadata table: all of a partition, those of given keys, or those whose keys begin alike."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_fast.metadata.table import MetadataTable

__all__ = ["lookup", "prefix", "scan"]


def scan(table: MetadataTable, partition: str, groups: Sequence[int] | None = None) -> pa.Table:
    """All live records of a partition, as the flat table of its kind (:mod:`hudi_fast.metadata.records`).

    Args:
        table: the metadata table.
        partition: one that is usable.
        groups: numbers of the file groups to read; None for all.

    Returns:
        Rows by group number, then by key.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
    """
    raise NotImplementedError


def lookup(
    table: MetadataTable,
    partition: str,
    keys: pa.Array,
    hashed: pa.Array | None = None,
    data_partition: str | None = None,
) -> pa.Table:
    """The live records of the given keys; keys that are not there bring no rows.

    Args:
        table: the metadata table.
        partition: one that is usable.
        keys: string, in any order; repeated ones count once.
        hashed: string, one for each key: what decides on its group, where that is not the key itself.
        data_partition: the data partition to look in, for a record index that is partitioned.

    Returns:
        As of :func:`scan`: rows by group number, then by key.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
        ConfigError: a data partition for a partition that is not by data partitions, or none for one that is.
    """
    raise NotImplementedError


def prefix(table: MetadataTable, partition: str, prefixes: Sequence[str]) -> pa.Table:
    """The live records whose keys begin with one of the prefixes.

    Args:
        table: the metadata table.
        partition: one that is usable.
        prefixes: beginnings of keys; for a secondary index, of :func:`hudi_fast.metadata.keys.secondary_prefix`.

    Returns:
        As of :func:`scan`: rows by group number, then by key.

    Raises:
        CorruptTableError: a file is gone or cannot be understood.
        UnsupportedFeatureError: an unknown kind of partition, or values that are not read.
    """
    raise NotImplementedError
