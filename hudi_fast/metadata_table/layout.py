"""Layout of the metadata table, and the definitions of its indexes.

Layout of the metadata table: its folder, partition kinds, file groups, and the group of each key.

::

    partition folder ─► kind        files, column_stats, secondary_index_<name> ...
    partition, number ─► file id    files-0000-0, record-index-<data partition>-0003-0
    key ─► group number             Java's hash of the key, modulo the number of groups

Pure functions. Source: metadata reference 2.2 and 2.3; MetadataPartitionType, HoodieTableMetadataUtil, release 1.2.0.

Index definitions of the metadata table, stored in ``.hoodie/.index_defs/index.json``.

::

    index.json ─ load_definitions ─► {metadata partition: IndexDefinition} ─ save_definitions ─► index.json, whole

Unknown fields are ignored. Source: metadata reference 4; HoodieIndexMetadata and HoodieIndexDefinition, release 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.kernels.hashes import string_hash_codes
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import check_relative, stored_json
from hudi_fast.values import dataclass

__all__ = [
    "DEFINITIONS_PATH",
    "METADATA_FOLDER",
    "IndexDefinition",
    "PartitionKind",
    "group_file_id",
    "group_file_id_prefix",
    "group_numbers",
    "index_version",
    "kind_of",
    "load_definitions",
    "plain_group_id",
    "save_definitions",
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


DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
"""Path of the definitions, unless the table's properties name another."""

_PATH_KEY = "hoodie.table.index.defs.path"
_VERSION_2_FROM = {
    PartitionKind.COLUMN_STATS: 9,
    PartitionKind.PARTITION_STATS: 9,
    PartitionKind.EXPRESSION_INDEX: 9,
    PartitionKind.SECONDARY_INDEX: 9,
}


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index of the metadata table.

    Attributes:
        name: partition of the metadata table: ``column_stats``, ``secondary_index_x`` ...
        kind: ``column_stats``, ``record_index``, ``secondary_index``, ``bloom_filters`` ... (``indexType``).
        function: ``column_stats``, ``identity``, ``upper``, ``from_unixtime`` ...; empty for a record index.
        source_fields: the indexed columns.
        options: options of the index: ``isPartitioned``, ``expr``, ``format`` ...
        version: ``V1`` or ``V2``; None where the file has none (table versions below 9).
    """

    name: str
    kind: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None


def load_definitions(storage: Storage, config: TableConfig) -> Mapping[str, IndexDefinition]:
    """The definitions of a data table by partition of its metadata table; empty when it has none.

    Raises:
        CorruptTableError: the file is invalid, or the table's properties name a path outside the table.
    """
    path = _path(storage, config)
    try:
        stored = stored_json(storage.read_bytes(path))["indexDefinitions"]
        return {str(name): _definition(str(name), one) for name, one in stored.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(
            f"Table {storage.uri}: its index definitions are invalid ({error!r}); expected JSON with "
            '"indexDefinitions". Restore the file, or drop the indexes and build them again.',
            path,
        ) from error


def save_definitions(storage: Storage, config: TableConfig, definitions: Mapping[str, IndexDefinition]) -> None:
    """Replace the contents of the file by ``definitions``; the caller holds the table lock.

    Raises:
        CorruptTableError: the table's properties name a path outside the table.
    """
    stored = {
        name: {
            "indexName": one.name,
            "indexType": one.kind,
            "indexFunction": one.function,
            "sourceFields": list(one.source_fields),
            "indexOptions": dict(one.options),
        }
        | ({} if one.version is None else {"version": one.version})
        for name, one in definitions.items()
    }
    text = json.dumps({"indexDefinitions": stored}, indent=2, ensure_ascii=False)
    storage.write_bytes(_path(storage, config), text.encode())


def index_version(partition: str, table_version: int, definitions: Mapping[str, IndexDefinition]) -> str:
    """``V1`` or ``V2``: the format of the records of a metadata partition.

    Partition stats use the version of column stats, since they are computed from their records.

    Raises:
        UnsupportedFeatureError: the kind of the partition is unknown.
    """
    kind = kind_of(partition)
    names = [partition, PartitionKind.COLUMN_STATS.value] if kind is PartitionKind.PARTITION_STATS else [partition]
    for name in names:
        definition = definitions.get(name)
        if definition is not None and definition.version is not None:
            return definition.version
    return "V2" if table_version >= _VERSION_2_FROM.get(kind, table_version + 1) else "V1"


def _path(storage: Storage, config: TableConfig) -> str:
    path = config.raw.get(_PATH_KEY) or DEFINITIONS_PATH
    return check_relative(path.removeprefix(f"{storage.uri}/"), PROPERTIES_PATH)


def _definition(name: str, stored: Mapping[str, object]) -> IndexDefinition:
    fields, options, version = stored.get("sourceFields"), stored.get("indexOptions"), stored.get("version")
    if not isinstance(fields or [], list) or not isinstance(options or {}, dict):
        raise TypeError(f"sourceFields or indexOptions of {name}")
    return IndexDefinition(
        name=str(stored.get("indexName") or name),
        kind=str(stored["indexType"]),
        function=str(stored.get("indexFunction") or ""),
        source_fields=tuple(str(one) for one in fields or ()),  # type: ignore[attr-defined]
        options={str(key): str(value) for key, value in (options or {}).items()},  # type: ignore[attr-defined]
        version=None if version is None else str(version),
    )
