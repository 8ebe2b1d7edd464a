"""Build partitions of the metadata table from the data table.

::

    a new table      folders, without files that their commit does not name
    each partition   requested ─► inflight ─► folder, an empty log file per group ─► sources ─► base files ─► completed
    then             index definitions ─► the names in the data table's properties

Readers ignore a partition until the properties name it. The files of an abandoned build are deleted by the next build.

Source: metadata reference 2.4 to 2.6, 2.10, 2.13; HoodieBackedTableMetadataWriter#initializeFromFilesystem,
HoodieTableMetadataUtil#estimateFileGroupCount, Hudi 1.2.0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa

from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.properties_file import format_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.formats.avro.schema import META_FIELDS, OPERATION_FIELD
from hudi_fast.metadata_table.layout import (
    IndexDefinition,
    PartitionKind,
    group_file_id,
    group_file_id_prefix,
    index_version,
    kind_of,
)
from hudi_fast.metadata_table.records import RECORD_SCHEMA
from hudi_fast.metadata_table.stat_values import StatsVersion, indexed_columns
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.bookkeeping import (
    create_metadata,
    record_built,
    write_definitions,
)
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, start_delta_commit
from hudi_fast.metadata_table.updates.groups import GroupTarget, GroupWriter, WriteRecords, empty_group_log
from hudi_fast.metadata_table.updates.produce import ProducerContext, record_counts, sources_of_table
from hudi_fast.metadata_table.updates.produce_expression import require_readable_filters
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import SOLO_TIME, Instant, State, Timeline
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.values import dataclass
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.lost_files import committed_files

__all__ = [
    "build_order",
    "build_partitions",
    "definition_of",
    "group_count",
    "initial_instant",
    "measured_columns",
    "open_groups",
    "requested_indexes",
]

_FIRST_WITH_LAYOUT_2 = 8
_RECORD_BYTES = 48
_ORDER = tuple(PartitionKind)


@dataclass(frozen=True, slots=True)
class _Target:
    """The metadata table to build."""

    storage: Storage
    config: TableConfig
    timeline: Timeline


def build_partitions(
    context: ProducerContext,
    wanted: Sequence[str],
    options: MetadataOptions,
    last_completed: str | None,
    clock: InstantClock,
    write_records: WriteRecords,
) -> TableConfig:
    """Build partitions, and the metadata table itself if it does not exist. The caller holds the data table's lock.

    Args:
        context: the data table, with the definitions of all its indexes.
        wanted: partitions to build; the data table's properties name none of them.
        options: numbers of file groups.
        last_completed: requested time of the data table's newest completed action; None when it has none.
        clock: gives completion times.
        write_records: reads the sources and writes their records.

    Returns:
        The data table's new configuration.

    Raises:
        HudiError: the build failed; the metadata table is unchanged, except for folders that no property names.
    """
    if context.metadata is None:
        lister = committed_files(context.storage, context.config, context.view.timeline)
        context = replace(context, view=replace(context.view, lister=lister))
    target = _target(context)
    used = {instant.requested for instant in target.timeline.instants}
    for partition in build_order(wanted):
        instant = initial_instant(context.config.layout_version, last_completed, used)
        used.add(instant)
        _build(context, target, partition, instant, options, clock, write_records)
    old = {} if context.metadata is None else dict(context.metadata.definitions)
    config = write_definitions(context.storage, context.config, dict(context.definitions), old)
    return record_built(context.storage, config, wanted)


def build_order(partitions: Iterable[str]) -> list[str]:
    """Partitions in build order: the build of a partition may read earlier partitions."""
    return sorted(partitions, key=lambda name: (_ORDER.index(kind_of(name)), name))


def initial_instant(layout: int, last_completed: str | None, used: Iterable[str]) -> str:
    """An unused requested time for an initialisation.

    Args:
        layout: timeline layout.
        last_completed: requested time of the data table's newest completed action; None when it has none.
        used: requested times on the metadata table's timeline.
    """
    taken = set(used)
    prefix, number = (SOLO_TIME, 0) if layout > 1 else (last_completed or SOLO_TIME, 10)
    while f"{prefix}{number:03d}" in taken:
        number += 1
    return f"{prefix}{number:03d}"


def group_count(records: int, options: MetadataOptions, partitioned: bool = False) -> int:
    """Number of file groups of a record index or secondary index with ``records`` initial records."""
    low, high = options.record_index_min_groups, options.record_index_max_groups
    if partitioned:
        low, high = options.partitioned_index_min_groups, options.partitioned_index_max_groups
    per_group = max(options.record_index_group_bytes // _RECORD_BYTES, 1)
    estimate = math.ceil(records * options.record_index_growth) // per_group
    return max(low, min(high, estimate))


def measured_columns(
    schema: pa.Schema, config: TableConfig, definitions: Mapping[str, IndexDefinition], options: MetadataOptions
) -> list[str]:
    """The columns with ``column_stats``, in Hudi's order.

    Columns that files do not store are left out: statistics would report them as null.
    """
    missing = config.partition_fields if config.drop_partition_columns else ()
    stored = pa.schema([one for one in schema if one.name not in missing])
    version = cast(StatsVersion, index_version(PartitionKind.COLUMN_STATS, config.version, definitions))
    return indexed_columns(stored, version, config.populate_meta_fields, options.column_list, options.max_columns)


def definition_of(
    partition: str, config: TableConfig, columns: Sequence[str], options: MetadataOptions
) -> IndexDefinition | None:
    """The ``index.json`` definition of a partition; None for kinds without one.

    Users define secondary and expression indexes. ``columns`` are the indexed columns of ``column_stats``.
    """
    if partition == PartitionKind.COLUMN_STATS:
        meta = {*META_FIELDS, OPERATION_FIELD}.intersection(columns)
        fields = (*sorted(meta), *(name for name in columns if name not in meta))
        version = index_version(partition, config.version, {})
        return IndexDefinition(partition, "column_stats", "column_stats", fields, {}, version)
    if partition == PartitionKind.RECORD_INDEX:
        partitioned = "true" if options.partitioned_record_index else "false"
        return IndexDefinition(partition, "record_index", "", (), {"isPartitioned": partitioned}, "V1")
    return None


def requested_indexes(options: MetadataOptions, config: TableConfig) -> dict[str, IndexDefinition]:
    """The secondary or expression index that the options request, as a definition by partition name.

    Raises:
        ConfigError: an index of that kind needs a later table version.
    """
    column = options.secondary_column or options.expression_column
    if not options.enabled or column is None:
        return {}
    if config.version < _FIRST_WITH_LAYOUT_2:
        raise ConfigError(
            f"An index on the column {column} needs table version 8 or later; table {config.name} has version "
            f"{config.version}. Leave hoodie.metadata.index.*.column out, or upgrade the table with services.upgrade()."
        )
    name = options.index_name or column.replace(".", "_")
    if options.secondary_column is not None:
        partition = name if name.startswith("secondary_index_") else f"secondary_index_{name}"
        kind, function, settings = "secondary_index", "identity", {}
    else:
        partition = name if name.startswith("expr_index_") else f"expr_index_{name}"
        kind, settings = options.expression_type.lower(), options.expression_options
        function = settings.get("expr", "identity")
    version = index_version(partition, config.version, {})
    return {partition: IndexDefinition(partition, kind, function, (column,), settings, version)}


def open_groups(
    storage: Storage, context: ProducerContext, partition: str, instant: str, options: MetadataOptions
) -> tuple[tuple[GroupTarget, ...], Mapping[str, tuple[int, ...]]]:
    """Create the folder of a new partition, and in it an empty log file for each of its file groups.

    ``storage`` is of the metadata table; ``instant`` is the requested time of the files' delta commit.

    Returns:
        The groups by number; for a partitioned record index also the group numbers of each data partition.

    Raises:
        UnsupportedFeatureError: Apache Hudi could not use the expression index.
    """
    if kind_of(partition) is PartitionKind.EXPRESSION_INDEX:
        require_readable_filters(context, partition)
    _make_marker(storage, partition, instant)
    groups, places = _groups(context, partition, options)
    for one in groups:
        empty_group_log(storage, partition, one.file_id, instant)
    return groups, places


# ---- one partition


def _target(context: ProducerContext) -> _Target:
    table: MetadataTable | None = context.metadata
    if table is not None:
        return _Target(table.storage, table.config, table.timeline)
    storage, config = create_metadata(context.storage, context.config)
    return _Target(storage, config, Timeline(()))


def _build(
    context: ProducerContext,
    target: _Target,
    partition: str,
    instant: str,
    options: MetadataOptions,
    clock: InstantClock,
    write_records: WriteRecords,
) -> None:
    storage = target.storage
    if context.metadata is not None:
        storage.delete_dir(partition)  # files of an earlier attempt
    start_delta_commit(storage, target.config, instant)
    try:
        groups, places = open_groups(storage, context, partition, instant, options)
        writer = GroupWriter(
            storage, target.config, instant, RECORD_SCHEMA, {partition: groups}, {partition: places}, building=True
        )
        stats = write_records(sources_of_table(context, partition, instant), writer)
        finish_delta_commit(
            storage, target.config, instant, stats, RECORD_SCHEMA, "BULK_INSERT_PREPPED", clock, durable=True
        )
    except BaseException:
        delete_instant_files(storage, target.config, Instant(instant, "deltacommit", State.INFLIGHT))
        storage.delete_dir(partition)
        raise


def _groups(
    context: ProducerContext, partition: str, options: MetadataOptions
) -> tuple[tuple[GroupTarget, ...], Mapping[str, tuple[int, ...]]]:
    """The file groups of a new partition; for a partitioned record index also their numbers by data partition."""
    definition = context.definitions.get(partition)
    if partition == PartitionKind.RECORD_INDEX and definition and definition.options.get("isPartitioned") == "true":
        groups: list[GroupTarget] = []
        places: dict[str, tuple[int, ...]] = {}
        for data_partition, records in sorted(record_counts(context).items()):
            first, count = len(groups), group_count(records, options, partitioned=True)
            groups += [GroupTarget(group_file_id(partition, number, data_partition)) for number in range(count)]
            places[group_file_id_prefix(partition, data_partition)] = tuple(range(first, first + count))
        return tuple(groups), places
    count = _count(context, partition, options)
    return tuple(GroupTarget(group_file_id(partition, number)) for number in range(count)), {}


def _count(context: ProducerContext, partition: str, options: MetadataOptions) -> int:
    kind = kind_of(partition)
    if kind in (PartitionKind.RECORD_INDEX, PartitionKind.SECONDARY_INDEX):
        return group_count(sum(record_counts(context).values()), options)
    return {
        PartitionKind.COLUMN_STATS: options.column_stats_groups,
        PartitionKind.PARTITION_STATS: options.partition_stats_groups,
        PartitionKind.BLOOM_FILTERS: options.bloom_groups,
        PartitionKind.EXPRESSION_INDEX: options.expression_groups,
    }.get(kind, 1)


def _make_marker(storage: Storage, partition: str, instant: str) -> None:
    values = {"commitTime": instant, "partitionDepth": "1"}
    text = format_properties(values, ["partition metadata", time.strftime("%a %b %d %H:%M:%S %Z %Y")])
    storage.write_bytes(f"{partition}/{PARTITION_MARKERS[0]}", text.encode("iso-8859-1"))
