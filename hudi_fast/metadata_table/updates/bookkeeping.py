"""Properties of the metadata table, and the data table's properties about it.

::

    build     files, delta commit ─► then add the name to hoodie.table.metadata.partitions
    drop      remove the name ─► then delete the folder

In this order readers never use an incomplete partition. A crash leaves a folder that no property names; the next writer
deletes it. A property never names a missing folder, which would stop Apache Hudi's writers.

Source: metadata reference 2.1, 2.10 and 2.12; HoodieTableConfig, HoodieBackedTableMetadataWriter, Hudi 0.15.0, 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from hudi_fast.config.new_table import create_table_layout
from hudi_fast.config.properties_file import PROPERTIES_PATH, table_checksum, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.layout import DEFINITIONS_PATH, METADATA_FOLDER, IndexDefinition, save_definitions
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import stored_json

__all__ = [
    "BUILDING_KEY",
    "DEFINITIONS_KEY",
    "PARTITIONS_KEY",
    "commit_schema",
    "create_metadata",
    "drop_metadata",
    "drop_partitions",
    "has_metadata_folder",
    "metadata_properties",
    "record_building",
    "record_built",
    "write_definitions",
]

PARTITIONS_KEY = "hoodie.table.metadata.partitions"
"""Property of the data table: complete partitions of its metadata table."""

BUILDING_KEY = "hoodie.table.metadata.partitions.inflight"
"""Property of the data table: partitions under construction; writers already append log files to them."""

DEFINITIONS_KEY = "hoodie.table.index.defs.path"
"""Property of the data table: path of the index definitions."""

_FIRST_WITH_LAYOUT_2 = 8
_CACHED_SCHEMAS = 16


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a new metadata table. For version 6 they are as 0.15 writes them; 1.x can read them, too.

    ``config`` is the configuration of the data table.
    """
    name = f"{config.name}_metadata"
    props = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.table.checksum": table_checksum(name),
    }
    if config.version < _FIRST_WITH_LAYOUT_2:
        return props | {
            "hoodie.timeline.layout.version": "1",
            "hoodie.archivelog.folder": "archived",
            "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        }
    return props | {
        "hoodie.timeline.layout.version": "2",
        "hoodie.archivelog.folder": "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.initial.version": str(config.version),
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.record.merge.mode": "CUSTOM",
    }


def create_metadata(storage: Storage, config: TableConfig) -> tuple[Storage, TableConfig]:
    """Create an empty metadata table, replacing an existing one. The caller holds the data table's lock.

    ``storage`` and ``config`` are of the data table.

    Returns:
        Storage and configuration of the metadata table.
    """
    storage.delete_dir(METADATA_FOLDER)
    inner, props = metadata_storage(storage), metadata_properties(config)
    create_table_layout(inner, props, int(props["hoodie.timeline.layout.version"]))
    inner.make_dir(".hoodie/.heartbeat")
    return inner, TableConfig.from_properties(props, storage.absolute(METADATA_FOLDER))


def has_metadata_folder(storage: Storage) -> bool:
    """Whether a metadata table exists, regardless of the data table's properties."""
    return storage.exists(f"{METADATA_FOLDER}/{PROPERTIES_PATH}")


def record_building(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> TableConfig:
    """Add partitions under construction to the data table's properties; returns its new configuration.

    From then on writers append log files to them.
    """
    return _with_partitions(storage, config.metadata_partitions, {*config.metadata_partitions_inflight, *partitions})


def record_built(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> TableConfig:
    """Add complete partitions to the data table's properties; returns its new configuration."""
    names = {*config.metadata_partitions, *partitions}
    building = set(config.metadata_partitions_inflight) - names
    return _with_partitions(storage, names, building)


def drop_partitions(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> TableConfig:
    """Drop partitions: first from the data table's properties, then their folders. Dropping ``files`` drops all.

    Returns:
        The data table's new configuration.
    """
    going = set(partitions)
    if "files" in going:
        drop_metadata(storage, config)
        return _with_partitions(storage, (), ())
    updated = _with_partitions(
        storage, set(config.metadata_partitions) - going, set(config.metadata_partitions_inflight) - going
    )
    for name in sorted(going):
        storage.delete_dir(f"{METADATA_FOLDER}/{name}")
    return updated


def drop_metadata(storage: Storage, config: TableConfig) -> bool:
    """Delete the metadata table; False when there was none. The caller holds the data table's lock."""
    named = config.all_metadata_partitions
    if named:
        update_properties(storage, {PARTITIONS_KEY: "", BUILDING_KEY: ""})
    return storage.delete_dir(METADATA_FOLDER) or bool(named)


def write_definitions(
    storage: Storage, config: TableConfig, definitions: dict[str, IndexDefinition], old: dict[str, IndexDefinition]
) -> TableConfig:
    """Write index definitions if they changed; returns the data table's configuration, which names their path."""
    if definitions == old:
        return config
    if not config.raw.get(DEFINITIONS_KEY):
        props = update_properties(storage, {DEFINITIONS_KEY: DEFINITIONS_PATH})
        config = TableConfig.from_properties(props, storage.uri)
    save_definitions(storage, config, definitions)
    return config


@lru_cache(_CACHED_SCHEMAS)
def commit_schema(schema: str) -> str:
    """The schema as stored in commits: without meta columns."""
    record = stored_json(schema)
    record["fields"] = [field for field in record["fields"] if not field["name"].startswith("_hoodie_")]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _with_partitions(storage: Storage, built: Iterable[str], building: Iterable[str]) -> TableConfig:
    props = update_properties(
        storage, {PARTITIONS_KEY: ",".join(sorted(built)), BUILDING_KEY: ",".join(sorted(building))}
    )
    return TableConfig.from_properties(props, storage.uri)
