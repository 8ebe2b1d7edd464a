"""Producers of metadata-table records: for one action, or for a new partition.

::

    TableDelta ── sources_of_delta ──┐                             one module per kind: produce_files, _stats, _bloom,
    whole table ─ sources_of_table ──┴─► RecordSource, ...                     _records, _secondary, _expression
                                              └ read() ─► EncodedRecords, EncodedRecords ... ─► runner

A source is a small picklable value. It opens files when it is read, in a thread or in a Spark task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.state import AddedFile, TableDelta, added_logs
from hudi_fast.metadata_table.updates.produce_base import (
    BloomOfFiles,
    BloomOfRemoved,
    EncodedRecords,
    FilesOfChange,
    FilesOfTable,
    GroupChange,
    ProducerContext,
    RecordSource,
    after_change,
    group_changes,
    in_chunks,
    is_data_file,
)
from hudi_fast.metadata_table.updates.produce_expression import (
    ExpressionFilters,
    ExpressionOfPartition,
    ExpressionOfRemoved,
    check_expression,
)
from hudi_fast.metadata_table.updates.produce_records import (
    KeysOfGroup,
    KeysOfSlice,
    PairsOfGroup,
    PairsOfSlice,
    check_secondary,
)
from hudi_fast.metadata_table.updates.produce_stats import (
    StatsOfFiles,
    StatsOfPartitions,
    StatsOfRemoved,
    files_of_slices,
)
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = [
    "EncodedRecords",
    "ProducerContext",
    "RecordSource",
    "record_counts",
    "sources_of_delta",
    "sources_of_table",
]

_FILES_AT_ONCE = 32
_FILTERS_AT_ONCE = 8
"""Filters that one source makes; each filter takes 430 kB with Hudi's settings."""
_REMOVED_AT_ONCE = 4096
_PARTITIONS_AT_ONCE = 16
_THREADS = 8

_LOG_BYTES_OF_A_RECORD = 100
"""Bytes of a record in slices without base file: a low estimate, so an index may get a few groups too many."""


def sources_of_delta(context: ProducerContext, change: TableDelta, partitions: Sequence[str]) -> list[RecordSource]:
    """The sources of the records that ``change`` adds to these metadata partitions.

    ``context`` is the table before the action; ``partitions`` includes those under construction.

    Raises:
        UnsupportedFeatureError: a partition is not supported.
    """
    after = after_change(context, change)
    groups: list[GroupChange] | None = None
    sources: list[RecordSource] = []
    for partition in partitions:
        kind = kind_of(partition)
        if kind in (PartitionKind.RECORD_INDEX, PartitionKind.SECONDARY_INDEX):
            if groups is None:
                groups = group_changes(context, after, change)
            sources += _of_groups(context, after, change, partition, groups)
        else:
            sources += _of_files(context, after, change, partition)
    return sources


def sources_of_table(context: ProducerContext, partition: str, instant: str) -> list[RecordSource]:
    """The sources of all records of one metadata partition, for the table in ``context.view``.

    ``instant`` is the requested time of the build; records that have an instant store it.

    Raises:
        UnsupportedFeatureError: the partition cannot be built.
    """
    kind = kind_of(partition)
    if kind is PartitionKind.FILES:
        return [FilesOfTable(context)]
    if kind is PartitionKind.COLUMN_STATS:
        return [StatsOfFiles(context, part) for part in in_chunks(list(_all_files(context)), _FILES_AT_ONCE)]
    if kind is PartitionKind.BLOOM_FILTERS:
        bases = [one for one in _all_files(context) if not one.is_log]
        return [BloomOfFiles(context, part) for part in in_chunks(bases, _FILES_AT_ONCE)]
    if kind is PartitionKind.PARTITION_STATS:
        found = ((name, files_of_slices(context, name)) for name in context.view.lister.partitions())
        return [StatsOfPartitions(context, {name: files}, frozenset(), False) for name, files in found if files]
    if kind is PartitionKind.EXPRESSION_INDEX:
        if check_expression(context, partition).has_filters:
            every = [one for name in context.view.lister.partitions() for one in files_of_slices(context, name)]
            return [ExpressionFilters(context, partition, some, instant) for some in in_chunks(every, _FILTERS_AT_ONCE)]
        return [
            ExpressionOfPartition(context, partition, name, files, frozenset(one.name for one in files))
            for name in context.view.lister.partitions()
            if (files := files_of_slices(context, name))
        ]
    if kind is PartitionKind.SECONDARY_INDEX:
        check_secondary(context, partition)
        return [PairsOfSlice(context, partition, one) for one in _all_slices(context)]
    return [KeysOfSlice(context, one, _is_partitioned(context)) for one in _all_slices(context)]


def record_counts(context: ProducerContext) -> dict[str, int]:
    """Approximate number of rows per data partition (footers of base files, sizes of log files), for sizing."""
    slices = list(_all_slices(context))
    with ThreadPool(_THREADS) as pool:
        counts = list(pool.map(lambda one: _rows_of(context, one), slices))
    found: dict[str, int] = {}
    for slice_, count in zip(slices, counts, strict=True):
        found[slice_.partition] = found.get(slice_.partition, 0) + count
    return found


# ---- sources of a change


def _of_files(
    context: ProducerContext, after: ProducerContext, change: TableDelta, partition: str
) -> list[RecordSource]:
    """Sources of a change for partitions with records about files."""
    kind = kind_of(partition)
    added = [one for one in change.added if not one.is_cdc]
    removed = [(folder, name) for folder, names in sorted(change.removed.items()) for name in names]
    if kind is PartitionKind.FILES:
        return [FilesOfChange(context, change)]
    if kind is PartitionKind.BLOOM_FILTERS:
        bases = [one for one in added if not one.is_log]
        removed_bases = [(folder, name) for folder, name in removed if not name.startswith(".")]
        return [
            *(BloomOfFiles(after, part) for part in in_chunks(bases, _FILES_AT_ONCE)),
            *(BloomOfRemoved(part) for part in in_chunks(removed_bases, _REMOVED_AT_ONCE)),
        ]
    if kind is PartitionKind.COLUMN_STATS:
        return [
            *(StatsOfFiles(after, part) for part in in_chunks(added, _FILES_AT_ONCE)),
            *(StatsOfRemoved(context, part) for part in in_chunks(removed, _REMOVED_AT_ONCE)),
        ]
    touched = sorted({one.partition for one in added} | set(change.replaced))
    if kind is PartitionKind.EXPRESSION_INDEX:
        deletes = [ExpressionOfRemoved(context, partition, part) for part in in_chunks(removed, _REMOVED_AT_ONCE)]
        if check_expression(after, partition).has_filters:
            parts = in_chunks(added, _FILTERS_AT_ONCE)
            return [*deletes, *(ExpressionFilters(after, partition, part, change.instant) for part in parts)]
        names = frozenset(one.name for one in added)
        return [
            *deletes,
            *(
                ExpressionOfPartition(after, partition, name, files_of_slices(after, name, change), names)
                for name in touched
            ),
        ]
    records = context.metadata is not None and PartitionKind.COLUMN_STATS in context.metadata.partitions
    written = frozenset((one.partition, one.name) for one in added)
    return [
        StatsOfPartitions(after, {name: files_of_slices(after, name, change) for name in part}, written, records)
        for part in in_chunks(touched, _PARTITIONS_AT_ONCE)
    ]


def _of_groups(
    context: ProducerContext,
    after: ProducerContext,
    change: TableDelta,
    partition: str,
    groups: Sequence[GroupChange],
) -> list[RecordSource]:
    """Sources of a change for partitions with records about rows."""
    if kind_of(partition) is PartitionKind.SECONDARY_INDEX:
        check_secondary(after, partition)
        return [PairsOfGroup(context, after, partition, one) for one in groups]
    deletes = change.operation.upper() != "CLUSTER"
    partitioned = _is_partitioned(after)
    return [KeysOfGroup(context, after, one, change.instant, partitioned, deletes) for one in groups]


# ---- sources of a table


def _all_files(context: ProducerContext) -> Iterator[AddedFile]:
    """Base files and log files of all completed writes."""
    for partition in context.view.lister.partitions():
        logs: dict[tuple[str, str], list[LogFile]] = {}
        for entry in context.view.lister.files(partition):
            if not is_data_file(context, entry):
                continue
            base, log = parse_base_file(entry), parse_log_file(entry)
            if base is not None:
                yield AddedFile(partition, base.name, base.size, base.file_id, False, base.instant)
            elif log is not None and not log.is_cdc:
                logs.setdefault((log.file_id, log.instant), []).append(log)
        for found in logs.values():
            yield from added_logs(partition, sorted(found, key=log_order))


def _all_slices(context: ProducerContext) -> Iterator[FileSlice]:
    for partition in context.view.lister.partitions():
        yield from latest_slices(context.view, partition)


def _is_partitioned(context: ProducerContext) -> bool:
    definition = context.definitions.get(PartitionKind.RECORD_INDEX)
    return definition is not None and definition.options.get("isPartitioned") == "true"


def _rows_of(context: ProducerContext, slice_: FileSlice) -> int:
    if slice_.base_file is None:
        return sum(log.size for log in slice_.log_files) // _LOG_BYTES_OF_A_RECORD
    with open_base(context.storage, slice_.base_file) as reader:
        return reader.num_rows
