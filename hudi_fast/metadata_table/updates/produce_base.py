"""Values that producers of metadata records share, and the file groups of a change.

::

    table before ─┐                      ┌─► GroupChange: slice before, slice after
    TableDelta ───┴─► view after it ─────┴─► files of each partition

The view after a change applies the table's own rules as if the change were complete: it lists the new files, and leaves
out replaced groups.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import LogBlock
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import merged_rows
from hudi_fast.merging.slice_merge import SliceMerge, merge_schema
from hudi_fast.metadata_table.definitions import IndexDefinition
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.table_delta import AddedFile, TableDelta
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_fast.view.base_files import open_base, open_file
from hudi_fast.view.file_names import parse_base_file
from hudi_fast.view.listing import WithFiles
from hudi_fast.view.slices import FileSlice, TableView, latest_slices

__all__ = [
    "META_FIELDS",
    "ROWS_OF_A_BATCH",
    "EncodedRecords",
    "GroupChange",
    "ProducerContext",
    "RecordSource",
    "after_change",
    "group_changes",
    "in_chunks",
    "open_added",
    "opened",
    "removals",
    "slice_bytes",
    "slice_rows",
    "stored_schema",
]

META_FIELDS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The five meta columns."""

ROWS_OF_A_BATCH = 1 << 17
"""Rows that a producer reads at a time."""

_LAST = "99991231235959999"
"""A completion time after all other times."""

_CHANGES_NO_ROWS = frozenset({"COMPACT", "LOG_COMPACT", "CLEAN"})

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Records for one metadata partition, unordered.

    Attributes:
        partition: the metadata partition (folder name).
        keys: string[n].
        values: binary[n], Avro; null deletes the key.
        hashed: string[n], the text whose hash selects the file group; None for the key itself.
        data_partition: for a partitioned record index: the data partition whose file groups receive the records.
    """

    partition: str
    keys: pa.Array
    values: pa.Array
    hashed: pa.Array | None = None
    data_partition: str | None = None


class RecordSource(Protocol):
    """Produces records when it is read; picklable."""

    @property
    def weight(self) -> int:
        """Approximate bytes of data files to read; decides where sources run."""
        ...

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """All records, in batches, with values encoded by ``schema`` (Avro JSON)."""
        ...


@dataclass(frozen=True)
class ProducerContext:
    """State shared by all sources of one action. Picklable.

    Attributes:
        view: the table before the action; for a build, the current table.
        merge: merge inputs of the same state.
        metadata: the metadata table before the action; None before its first build.
        schema: data columns of the table after the action.
        indexed_columns: columns of ``column_stats``, including meta columns.
        file_id_encoding: encoding of file ids in the record index: 0 as numbers where they are UUIDs, 1 as text.
        no_earlier_writes: whether no earlier write is pending. Records of an earlier write always precede those of this
            action, whenever they are written, so a record of this action about a whole partition would hide them.
    """

    storage: Storage
    config: TableConfig
    view: TableView
    merge: SliceMerge
    metadata: MetadataTable | None
    schema: pa.Schema
    indexed_columns: tuple[str, ...] = ()
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)
    file_id_encoding: int = 0
    no_earlier_writes: bool = True


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A file group that a change touches.

    Attributes:
        before: newest slice of the group before the change; None for a new group.
        after: newest slice of the group after the change; None for a replaced group.
        inserts_last: number of inserted rows if these are the last rows of the new base file; None when unknown.
        deletes: number of deleted rows in the writer's statistics; None when unknown.
    """

    partition: str
    file_id: str
    before: FileSlice | None
    after: FileSlice | None
    inserts_last: int | None = None
    deletes: int | None = None


def after_change(context: ProducerContext, change: TableDelta) -> ProducerContext:
    """The context after the change: its files are listed and visible, and replaced groups are hidden."""
    timeline = _with_completed(context.view.timeline, change.instant)
    files: dict[str, list[FileStat]] = {}
    for one in change.added:
        files.setdefault(one.partition, []).append(FileStat(one.path, one.size, 0, False))
    replaced = {(partition, one): change.instant for partition, ids in change.replaced.items() for one in ids}

    def others(pending: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        return {group: instant for group, instant in pending.items() if instant != change.instant}

    view = replace(
        context.view,
        timeline=timeline,
        lister=WithFiles(context.view.lister, {name: tuple(found) for name, found in files.items()}),
        replaced={**context.view.replaced, **replaced},
        pending_compactions=others(context.view.pending_compactions),
        pending_log_compactions=others(context.view.pending_log_compactions),
    )
    earlier = any(one.requested < change.instant for one in context.view.timeline.pending_writes)
    return replace(context, view=view, merge=replace(context.merge, timeline=timeline), no_earlier_writes=not earlier)


def group_changes(context: ProducerContext, after: ProducerContext, change: TableDelta) -> list[GroupChange]:
    """The file groups whose rows a change may alter, by partition and file id.

    ``after`` is the result of :func:`after_change`. Compactions and cleans alter no rows.
    """
    if change.operation.upper() in _CHANGES_NO_ROWS:
        return []
    touched: dict[str, set[str]] = {}
    for one in change.added:
        if not one.is_cdc:
            touched.setdefault(one.partition, set()).add(one.file_id)
    for partition, file_ids in change.replaced.items():
        touched.setdefault(partition, set()).update(file_ids)
    stats = {(one.partition, one.file_id): one.stat for one in change.added if not one.is_log}
    log_deletes = _log_deletes(change)
    found: list[GroupChange] = []
    for partition in sorted(touched):
        before = {one.file_id: one for one in latest_slices(context.view, partition)}
        later = {one.file_id: one for one in latest_slices(after.view, partition)}
        for file_id in sorted(touched[partition]):
            stat = stats.get((partition, file_id))
            last = stat is not None and stat.inserts_last
            found.append(
                GroupChange(
                    partition,
                    file_id,
                    before.get(file_id),
                    later.get(file_id),
                    stat.num_inserts if stat is not None and last else None,
                    stat.num_deletes if stat is not None and last else log_deletes.get((partition, file_id)),
                )
            )
    return found


def _log_deletes(change: TableDelta) -> dict[tuple[str, str], int]:
    """The number of deletes in each group's new log files, if their writers report that all rows have stored keys."""
    found: dict[tuple[str, str], int] = {}
    incomplete = {
        (one.partition, one.file_id)
        for one in change.added
        if not one.is_log or one.stat is None or not one.stat.inserts_last
    }
    for one in change.added:
        group = one.partition, one.file_id
        if one.stat is not None and group not in incomplete:
            found[group] = found.get(group, 0) + one.stat.num_deletes
    return found


def stored_schema(context: ProducerContext) -> pa.Schema:
    """The columns of stored rows: meta columns, if the table has them, then the table's columns."""
    if not context.config.populate_meta_fields:
        return context.schema
    data = [one for one in context.schema if one.name not in META_FIELDS]
    return pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *data])


def slice_rows(context: ProducerContext, slice_: FileSlice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a slice in a snapshot, in the table's types; columns that its files lack are null.

    ``columns`` are top-level columns, at least one.

    Raises:
        CorruptTableError: a file of the slice is missing or corrupt.
    """
    full = stored_schema(context)
    wanted = pa.schema([full.field(name).with_nullable(True) for name in columns])
    blocks = visible_blocks(context.merge, slice_) if slice_.log_files else []
    with opened(context.storage, slice_) as reader:
        yield from _rows(context, slice_, blocks, wanted, full, reader)


def open_added(storage: Storage, one: AddedFile) -> BaseFileReader:
    """Open a base file that an action wrote.

    Raises:
        CorruptTableError: the file is missing, truncated, or has another format.
    """
    base = parse_base_file(FileStat(one.path, one.size, 0, False))
    return open_file(storage, one.path) if base is None else open_base(storage, base)


@contextlib.contextmanager
def opened(storage: Storage, slice_: FileSlice) -> Iterator[BaseFileReader | None]:
    """The base file of a slice; None when it has none."""
    if slice_.base_file is None:
        yield None
        return
    with open_base(storage, slice_.base_file) as reader:
        yield reader


def _rows(
    context: ProducerContext,
    slice_: FileSlice,
    blocks: list[LogBlock],
    wanted: pa.Schema,
    full: pa.Schema,
    reader: BaseFileReader | None,
) -> Iterator[pa.RecordBatch]:
    columns = merge_schema(context.merge, wanted, full)
    yield from merged_rows(context.merge, slice_, blocks, wanted, columns, reader, ROWS_OF_A_BATCH)


def removals(partition: str, keys: Sequence[str]) -> Iterator[EncodedRecords]:
    """Records that delete keys; no batch without keys."""
    if keys:
        yield EncodedRecords(partition, pa.array(keys, pa.string()), pa.nulls(len(keys), pa.binary()))


def slice_bytes(*slices: FileSlice | None) -> int:
    """Total size of the slices' files in bytes, a measure of the work to read them."""
    return sum(one.weight for one in slices if one is not None)


def in_chunks(items: Sequence[_Item], size: int) -> Iterator[tuple[_Item, ...]]:
    """``items`` in order, in tuples of ``size`` items; the last one may be shorter."""
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])


def _with_completed(timeline: Timeline, instant: str) -> Timeline:
    """The timeline with the write at ``instant`` completed after all other instants."""
    others = [one for one in timeline.instants if one.requested != instant or one.action not in WRITE_ACTIONS]
    others = [one for one in others if one.requested != instant or one.action not in _PENDING_FORMS]
    done = Instant(instant, "commit", State.COMPLETED, _LAST)
    return replace(timeline, instants=tuple(sorted([*others, done], key=lambda one: (one.requested, one.action))))


_PENDING_FORMS = frozenset({"compaction", "logcompaction", "clustering"})
