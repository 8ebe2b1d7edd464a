"""Apply a change of the data table to its metadata table: one delta commit, completed before the data table's own.

::

    requested ─► inflight ─► TableDelta ─► sources ─► runner ─► log files ─► completed     at the change's instant

Readers ignore a delta commit of the metadata table while its instant is pending on the data table, so a failure in
between stays invisible; :mod:`hudi_fast.metadata_table.updates.rollback` rolls it back.

Source: metadata reference 2.5 to 2.11; HoodieBackedTableMetadataWriter, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.layout import group_file_id, group_file_id_prefix
from hudi_fast.metadata_table.records import RECORD_SCHEMA
from hudi_fast.metadata_table.state import TableDelta
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.bookkeeping import commit_schema
from hudi_fast.metadata_table.updates.groups import GroupTarget, GroupWriter, WriteRecords, empty_group_log, target_of
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import (
    CommitMetadata,
    WriteStat,
    encode_commit_metadata,
)
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice

__all__ = [
    "Recorded",
    "finish_delta_commit",
    "log_writer",
    "start_delta_commit",
    "update_metadata",
]

_ACTION = "deltacommit"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A change of the data table that its metadata table has recorded.

    Attributes:
        table: the metadata table with the delta commit.
        change: the file changes.
    """

    table: MetadataTable
    change: TableDelta


def update_metadata(
    context: ProducerContext, change: TableDelta, clock: InstantClock, write_records: WriteRecords, min_groups: int = 1
) -> Recorded | None:
    """Record a change of the data table. Call it under the table lock, before the change becomes visible.

    Args:
        context: the table before the change; its ``metadata`` is the metadata table to update.
        change: the file changes of the action.
        clock: gives the completion time, which the data table's own must exceed.
        write_records: reads the sources and writes their records.
        min_groups: file groups of a new data partition in a partitioned record index.

    Returns:
        None when the table has no metadata table.

    Raises:
        HudiError: the update failed; the change must be rolled back.
    """
    table = context.metadata
    if table is None:
        return None
    partitions = [*table.partitions, *table.building]
    sources = sources_of_delta(context, change, partitions)
    start_delta_commit(table.storage, table.config, change.instant)
    writer = log_writer(table, change.instant, partitions)
    writer, opened = _with_new_partitions(writer, table, change, min_groups)
    stats = [*opened, *write_records(sources, writer)]
    newest = table.timeline.newest_time
    completed = finish_delta_commit(
        table.storage, table.config, change.instant, stats, writer.schema, "UPSERT_PREPPED", clock, newest
    )
    return Recorded(table.with_commit(completed, stats), change)


def start_delta_commit(storage: Storage, config: TableConfig, instant: str) -> None:
    """Create an inflight delta commit on the metadata table's timeline; its files may be written after this."""
    requested = Instant(instant, _ACTION, State.REQUESTED)
    create_requested(storage, config, requested)
    to_inflight(storage, config, requested)


def finish_delta_commit(
    storage: Storage,
    config: TableConfig,
    instant: str,
    stats: Iterable[WriteStat],
    schema: str,
    operation: str,
    clock: InstantClock,
    newest: str | None = None,
    durable: bool = False,
) -> Instant:
    """Complete a delta commit of the metadata table.

    Args:
        storage: storage of the metadata table.
        config: configuration of the metadata table.
        instant: requested time.
        stats: write statistics of the written files.
        schema: Avro JSON of the records, with meta columns.
        operation: ``UPSERT_PREPPED``, or ``BULK_INSERT_PREPPED`` for a build.
        clock: gives the completion time.
        newest: newest time on the metadata table's timeline; None where ``clock`` knows it. Guards against a slow clock
            of this host: an earlier completion time would put the commit into an already compacted slice.
        durable: whether to force the delta commit to disk here, so that it survives a loss of power. The delta commit
            of a write need not: the write itself forces both to disk. A build has no such write.
    """
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    metadata = CommitMetadata(by_partition, {"schema": commit_schema(schema)}, operation)
    body = encode_commit_metadata(metadata, config.layout_version)
    inflight = Instant(instant, _ACTION, State.INFLIGHT)
    return complete(storage, config, inflight, body, lambda: clock.next_time(newest), durable)


def log_writer(table: MetadataTable, instant: str, partitions: Sequence[str]) -> GroupWriter:
    """A writer of log files on top of the newest slices of the given partitions.

    Raises:
        CorruptTableError: groups of a partition are missing.
    """
    groups = {name: table.groups(name) for name in partitions}
    return GroupWriter(
        table.storage,
        table.config,
        instant,
        RECORD_SCHEMA,
        {name: tuple(map(target_of, slices)) for name, slices in groups.items()},
        {name: _places(slices) for name, slices in groups.items() if table.is_by_partition(name)},
    )


# ---- writers


def _places(slices: Sequence[FileSlice]) -> dict[str, tuple[int, ...]]:
    """Positions of each data partition's groups among all groups, by the prefix of their file ids."""
    places: dict[str, tuple[int, ...]] = {}
    for place, slice_ in enumerate(slices):
        prefix = slice_.file_id.rsplit("-", 2)[0] + "-"
        places[prefix] = (*places.get(prefix, ()), place)
    return places


def _with_new_partitions(
    writer: GroupWriter, table: MetadataTable, change: TableDelta, min_groups: int
) -> tuple[GroupWriter, list[WriteStat]]:
    """The writer with file groups for data partitions that are new to a partitioned record index."""
    opened: list[WriteStat] = []
    targets, places = dict(writer.targets), dict(writer.places)
    for name, known in writer.places.items():
        for data_partition in sorted({file.partition for file in change.added}):
            prefix = group_file_id_prefix(name, data_partition)
            if prefix in known:
                continue
            file_ids = [group_file_id(name, group, data_partition) for group in range(min_groups)]
            opened += [empty_group_log(table.storage, name, file_id, change.instant) for file_id in file_ids]
            first = len(targets[name])
            # The empty log file has version 1, so this commit's records go to version 2.
            targets[name] = (*targets[name], *(GroupTarget(one, change.instant, "", 1) for one in file_ids))
            places[name] = {**places[name], prefix: tuple(range(first, first + min_groups))}
    return replace(writer, targets=targets, places=places), opened
