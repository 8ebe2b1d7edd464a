"""Values that producers of metadata records share, and the producers of ``files`` and ``bloom_filters``.

Values that producers of metadata records share, and the file groups of a change.

::

    table before ─┐                      ┌─► GroupChange: slice before, slice after
    TableDelta ───┴─► view after it ─────┴─► files of each partition

The view after a change applies the table's own rules as if the change were complete: it lists the new files, and leaves
out replaced groups.

Records of ``bloom_filters``: the bloom filter in the footer of each base file.

::

    base file ─ footer ─► filter's text, its type ─► one record          no filter: no record
    deleted base file ──► a delete

Source: metadata reference 3.7; HoodieTableMetadataUtil#convertMetadataToBloomFilterRecords, Hudi 1.2.0.

Records of ``files``: the list of partitions, and the files of each.

::

    change   files written ─► {partition: {file: size}}, and the names of these partitions
             files deleted ─► {partition: {file: deleted}}; for a deleted partition, deletes of its record and name
    table    all folders listed ─► files of completed writes

Files of replaced groups stay listed until they are cleaned; the data timeline records the replacement. Source: metadata
reference 2.7, 2.13 and 3.3; HoodieTableMetadataUtil#convertMetadataToFilesPartitionRecords, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import LogBlock
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import merged_rows
from hudi_fast.merging.rules import SliceMerge, merge_schema
from hudi_fast.metadata_table.keys import NON_PARTITIONED, bloom_key
from hudi_fast.metadata_table.layout import IndexDefinition, PartitionKind
from hudi_fast.metadata_table.records import ALL_PARTITIONS, BLOOM, FILES, encode_records
from hudi_fast.metadata_table.state import AddedFile, TableDelta
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, State, Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base, open_file
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister, WithFiles
from hudi_fast.view.lost_files import require_content
from hudi_fast.view.slices import FileSlice, TableView, latest_slices

__all__ = [
    "META_FIELDS",
    "ROWS_OF_A_BATCH",
    "BloomOfFiles",
    "BloomOfRemoved",
    "EncodedRecords",
    "FilesOfChange",
    "FilesOfTable",
    "FilterRow",
    "GroupChange",
    "ProducerContext",
    "RecordSource",
    "after_change",
    "filter_records",
    "group_changes",
    "in_chunks",
    "is_data_file",
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


FilterRow: TypeAlias = tuple[str, str, str, bytes, bool]
"""A filter's key, its type, its instant, the filter as Base64, and whether it is deleted."""

_SIMPLE = "SIMPLE"
_FOOTER_BYTES = 1 << 19
"""Approximate size of a footer with a filter of default size."""


@dataclass(frozen=True)
class BloomOfFiles:
    """The filters of base files."""

    context: ProducerContext
    files: tuple[AddedFile, ...]

    @property
    def weight(self) -> int:
        """Size of the footers."""
        return len(self.files) * _FOOTER_BYTES

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        rows = []
        for one in self.files:
            with open_file(self.context.storage, one.path) as reader:
                footer = reader.footer()
            if footer.bloom_filter is not None:
                kind = footer.bloom_type or _SIMPLE
                text = footer.bloom_filter.encode()
                rows.append((bloom_key(one.partition, one.name), kind, one.instant, text, False))
        if rows:
            yield filter_records(PartitionKind.BLOOM_FILTERS, rows, schema)


@dataclass(frozen=True)
class BloomOfRemoved:
    """Deletes for removed base files.

    Attributes:
        files: (partition path, name) of each file.
    """

    files: tuple[tuple[str, str], ...]

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        yield from removals(PartitionKind.BLOOM_FILTERS, [bloom_key(partition, name) for partition, name in self.files])


def filter_records(partition: str, rows: Sequence[FilterRow], schema: str) -> EncodedRecords:
    """Records of bloom filters in a partition of the metadata table; ``rows`` is not empty."""
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), BLOOM, strict=True)]
    keys, values = encode_records(PartitionKind.BLOOM_FILTERS, pa.Table.from_arrays(columns, schema=BLOOM), schema)
    return EncodedRecords(partition, keys, values)


_PARTITIONS, _FILES = 1, 2
_THREADS = 8


@dataclass(frozen=True)
class FilesOfChange:
    """The records of one action."""

    context: ProducerContext
    change: TableDelta

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records, and another batch for deleted partitions."""
        change = self.change
        files = {
            partition: {name: (0, True) if one is None else (self._size(one), False) for name, one in changed.items()}
            for partition, changed in change.files().items()
        }
        deleted = change.emptied
        names = dict.fromkeys((one.partition for one in change.added), False) | dict.fromkeys(deleted, True)
        if names or files or change.operation != "CLEAN":
            yield _encoded(names, files, schema)
        if deleted:
            keys = pa.array([partition or NON_PARTITIONED for partition in deleted], pa.string())
            yield EncodedRecords(PartitionKind.FILES, keys, pa.nulls(len(deleted), pa.binary()))

    def _size(self, file: AddedFile) -> int:
        """The file's size, never 0: read from storage if the write stat has none."""
        if file.size > 0:
            return file.size
        found = self.context.storage.stat(file.path)
        return max(1, 0 if found is None else found.size)


@dataclass(frozen=True)
class FilesOfTable:
    """All records, from listing the table's folders."""

    context: ProducerContext

    @property
    def weight(self) -> int:
        """0: lists folders, reads no data."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        known = self.context.view.lister
        lister = known if known.lists_folders else StorageLister(self.context.storage)
        partitions = lister.partitions()
        with ThreadPool(_THREADS) as pool:
            listed = list(pool.map(lister.files, partitions))
        files = {
            partition: {entry.name: (entry.size, False) for entry in entries if is_data_file(self.context, entry)}
            for partition, entries in zip(partitions, listed, strict=True)
        }
        yield _encoded(
            dict.fromkeys(partitions, False), {name: found for name, found in files.items() if found}, schema
        )


def is_data_file(context: ProducerContext, entry: FileStat) -> bool:
    """Whether an entry of a partition folder is a data file or change log of a completed write.

    Raises:
        CorruptTableError: the file is empty, although a completed write has written it.
    """
    file, timeline = parse_base_file(entry) or parse_log_file(entry), context.view.timeline
    if file is None or not timeline.is_completed_or_archived(file.instant):
        return False
    if not entry.size:
        require_content(context.storage, timeline, entry.path, file.instant)
    return entry.size > 0


def _encoded(
    names: Mapping[str, bool], files: Mapping[str, Mapping[str, tuple[int, bool]]], schema: str
) -> EncodedRecords:
    """The record of partitions, if it has entries, and one record per partition's files."""
    rows: list[tuple[str, int, str | None, int | None, bool | None]] = []
    for partition, deleted in sorted(names.items()):
        rows.append((ALL_PARTITIONS, _PARTITIONS, partition or NON_PARTITIONED, 0, deleted))
    if not rows and not files:
        rows.append((ALL_PARTITIONS, _PARTITIONS, None, None, None))
    for partition, found in sorted(files.items()):
        rows += [(partition or NON_PARTITIONED, _FILES, name, *found[name]) for name in sorted(found)]
    keys, values = encode_records(PartitionKind.FILES, _table(rows), schema)
    return EncodedRecords(PartitionKind.FILES, keys, values)


def _table(rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FILES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FILES)
