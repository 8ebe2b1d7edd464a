"""Index definitions of the metadata table, stored in ``.hoodie/.index_defs/index.json``.

::

    index.json ─ load_definitions ─► {metadata partition: IndexDefinition} ─ save_definitions ─► index.json, whole

Unknown fields are ignored. Source: metadata reference 4; HoodieIndexMetadata and HoodieIndexDefinition, release 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.storage.base import Storage
from hudi_fast.storage.relative_path import check_relative
from hudi_fast.storage.stored_json import stored_json

__all__ = ["DEFINITIONS_PATH", "IndexDefinition", "index_version", "load_definitions", "save_definitions"]

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
