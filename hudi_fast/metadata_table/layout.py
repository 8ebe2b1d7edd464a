"""Layout of the metadata table: its folder, partition kinds, file groups, and the group of each key.

::

    partition folder ─► kind        files, column_stats, secondary_index_<name> ...
    partition, number ─► file id    files-0000-0, record-index-<data partition>-0003-0
    key ─► group number             Java's hash of the key, modulo the number of groups

Pure functions. Source: metadata reference 2.2 and 2.3; MetadataPartitionType, HoodieTableMetadataUtil, release 1.2.0.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.java_hash import string_hash_codes

__all__ = [
    "METADATA_FOLDER",
    "PartitionKind",
    "group_file_id",
    "group_file_id_prefix",
    "group_numbers",
    "kind_of",
    "plain_group_id",
]

METADATA_FOLDER = ".hoodie/metadata"
"""Base path of the metadata table, relative to the data table."""

# Characters that Hive escapes in path names (with control characters), and the separators of ids and file names.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^-_") | {chr(code) for code in range(1, 32)} | {"\x7f"}


class PartitionKind(StrEnum):
    """Kinds of partitions of the metadata table.

    Values are folder names; for secondary and expression indexes they are prefixes of folder names.
    """

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"
    SECONDARY_INDEX = "secondary_index_"
    EXPRESSION_INDEX = "expr_index_"


_PREFIXES = {
    PartitionKind.FILES: "files-",
    PartitionKind.COLUMN_STATS: "col-stats-",
    PartitionKind.PARTITION_STATS: "partition-stats-",
    PartitionKind.BLOOM_FILTERS: "bloom-filters-",
    PartitionKind.RECORD_INDEX: "record-index-",
}
_NAMED = (PartitionKind.SECONDARY_INDEX, PartitionKind.EXPRESSION_INDEX)


def kind_of(partition: str) -> PartitionKind:
    """The kind of a partition by its folder name.

    Raises:
        UnsupportedFeatureError: the kind is unknown.
    """
    for kind in PartitionKind:
        if partition == kind.value if kind not in _NAMED else partition.startswith(kind.value):
            return kind
    raise UnsupportedFeatureError(
        f"The metadata table has a partition {partition!r}; expected {', '.join(kind.value for kind in _PREFIXES)}, "
        f"{'<name>, '.join(kind.value for kind in _NAMED)}<name>. A later release of Hudi may have created it: use "
        "Apache Hudi, or drop the partition."
    )


def group_file_id_prefix(partition: str, data_partition: str | None = None) -> str:
    """The prefix of a partition's file ids.

    ``data_partition`` is set for a partitioned record index.

    Raises:
        UnsupportedFeatureError: the kind of the partition is unknown.
    """
    kind = kind_of(partition)
    prefix = _PREFIXES[kind] if kind in _PREFIXES else partition.replace("_", "-") + "-"
    return prefix if data_partition is None else f"{prefix}{_escape(data_partition)}-"


def group_file_id(partition: str, group: int, data_partition: str | None = None) -> str:
    """The file id of a group.

    Groups count from 0. ``data_partition`` is set for a partitioned record index.

    Raises:
        UnsupportedFeatureError: the kind of the partition is unknown.
    """
    return f"{group_file_id_prefix(partition, data_partition)}{group:04d}-0"


def plain_group_id(file_id: str) -> str:
    """The file id of a group without the suffix that releases 0.11 to 0.13 leave out.

    Source: HoodieTableMetadataUtil.getFileIdLengthWithoutFileIndex, release 0.15.0.
    """
    return file_id.removesuffix("-0")


def group_numbers(keys: pa.Array, groups: int) -> npt.NDArray[np.int32]:
    """The group number of each key (``HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex``): int32[n].

    ``keys`` are strings or UTF-8 binaries without nulls.
    """
    codes = np.empty(len(keys), np.int32)
    buffers = varlen_buffers(keys)
    string_hash_codes(buffers.offsets, buffers.data, codes)
    # Java's abs of the smallest int is itself, and its remainder has the sign of the dividend, like numpy's fmod.
    return np.abs(np.fmod(np.abs(codes), np.int32(groups))).astype(np.int32, copy=False)


def _escape(path: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in path)
