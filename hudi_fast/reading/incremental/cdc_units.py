"""The parts of a change query: units of work, and images of rows.

Units of a change query: one per file group that a commit changed.

::

    write stat ─┬─ with change logs ─────────────────► AS_IS
                ├─ base file, all rows deleted ──────► BASE_FILE_DELETE
                ├─ base file, all rows new ──────────► BASE_FILE_INSERT
                ├─ any other base file ──────────────► an error: its changes are unknown
                └─ log file ─ the slice before it ───► LOG_FILE
    replaced file group ─ its newest slice ──────────► REPLACE_COMMIT

Folders are listed only for information that a commit lacks: slices before a commit, and replaced ones.

Source: ``HoodieCDCExtractor``, ``HoodieCommitMetadata#getDependentFileSliceForFileGroupFromDeltaCommit`` (Hudi 1.2.0).

Row images: the JSON of rows before and after a change, and batches of changes.

::

    slice ─► rows ─► pieces of bounded size ─► JSON
    slice ─► rows with the given keys ───────► JSON, in the order of the keys
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.events import warn
from hudi_fast.formats.json_rows import JsonStyle, json_rows
from hudi_fast.formats.log.cdc_records import AFTER, BEFORE, DATA_BEFORE_AFTER, OP_KEY_ONLY
from hudi_fast.formats.varlen import gather, gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.keys.key_generator import KeyConfig, record_keys
from hudi_fast.merging.rules import RECORD_KEY
from hudi_fast.reading.incremental.commit_range import ChangeCommit
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState

__all__ = [
    "CHANGE_SCHEMA",
    "YIELDING_OPERATIONS",
    "CdcCase",
    "CdcScan",
    "CdcUnit",
    "change_batch",
    "commit_units",
    "images",
    "images_of_keys",
    "row_keys",
    "rows_of_keys",
]

YIELDING_OPERATIONS = frozenset(
    "INSERT UPSERT UPSERT_PREPPED DELETE DELETE_PREPPED BULK_INSERT DELETE_PARTITION INSERT_OVERWRITE "
    "INSERT_OVERWRITE_TABLE BOOTSTRAP".split()
)
"""Operations of commits that change rows (``WriteOperationType.yieldChanges``), without table services."""

_DELETES = frozenset({"DELETE", "DELETE_PREPPED"})
Names = dict[str, FileStat]
File = TypeVar("File", BaseFile, LogFile)


class CdcCase(Enum):
    """How the changes of a unit are found (``HoodieCDCInferenceCase``, Hudi 1.2.0).

    Attributes:
        AS_IS: read from change logs.
        BASE_FILE_INSERT: all rows of a base file are new.
        BASE_FILE_DELETE: all rows of the previous base file are deleted.
        LOG_FILE: the records of a log file, replayed on the slice that it was written to.
        REPLACE_COMMIT: all rows of a replaced file group are deleted.
    """

    AS_IS = "as_is"
    BASE_FILE_INSERT = "base_file_insert"
    BASE_FILE_DELETE = "base_file_delete"
    LOG_FILE = "log_file"
    REPLACE_COMMIT = "replace_commit"


@dataclass(frozen=True, slots=True)
class CdcUnit:
    """The changes of one commit in one file group.

    Attributes:
        case: how the changes are found.
        instant: requested time of the commit.
        logs: AS_IS: the change logs; LOG_FILE: the log file; else none.
        before: the slice that the commit changed, if its rows are needed.
        after: the base file that the commit wrote, if its rows are needed.
    """

    case: CdcCase
    instant: str
    partition: str
    file_id: str
    logs: tuple[LogFile, ...] = ()
    before: FileSlice | None = None
    after: BaseFile | None = None

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """The files to read."""
        before = self.before
        bases = (self.after, None if before is None else before.base_file)
        return (*self.logs, *(() if before is None else before.log_files), *(one for one in bases if one is not None))

    @property
    def weight(self) -> int:
        """Total bytes of the files to read."""
        return sum(file.size for file in self.files)


def commit_units(state: TableState, commits: tuple[ChangeCommit, ...]) -> Iterator[CdcUnit]:
    """The units of all commits, in their order; the commits must have an operation of :data:`YIELDING_OPERATIONS`.

    Raises:
        ConfigError: files from before a commit have been cleaned.
        CorruptTableError: a base file was rewritten without a change log.

    Warns:
        HudiWarning: a replaced file group has been cleaned; the deletes of its rows are missing.
    """
    finder, named = _Finder(state), renamer(state.view.history)
    for commit in commits:
        instant, deletes = commit.instant.requested, commit.metadata.operation_type in _DELETES
        for partition, stats in commit.metadata.partition_to_write_stats.items():
            for stat in stats:
                unit = _unit_of(finder, CdcUnit(CdcCase.AS_IS, instant, partition, stat.file_id), stat, deletes)
                yield _with_names(unit, named)
        for partition, file_ids in (commit.metadata.partition_to_replace_file_ids or {}).items():
            slices = finder.newest_slices(partition)
            gone = [file_id for file_id in file_ids if file_id not in slices]
            if gone:
                warn(_cleaned_groups(state, instant, partition, gone))
            for file_id in file_ids:
                if file_id in slices:
                    yield CdcUnit(CdcCase.REPLACE_COMMIT, instant, partition, file_id, before=slices[file_id])


def _with_names(unit: CdcUnit, named: Callable[[BaseFile], BaseFile]) -> CdcUnit:
    """The unit, with the current column names of its base files."""
    after, before = unit.after, unit.before
    if before is not None and before.base_file is not None:
        before = replace(before, base_file=named(before.base_file))
    return replace(unit, after=None if after is None else named(after), before=before)


def _unit_of(finder: _Finder, unit: CdcUnit, stat: WriteStat, deletes: bool) -> CdcUnit:
    written = FileStat(stat.path, stat.file_size, 0, False)
    log, base = parse_log_file(written), parse_base_file(written)
    if stat.cdc_stats:
        return _logged(finder, replace(unit, logs=_change_logs(stat.cdc_stats)), stat, base)
    if log is not None:
        return replace(unit, case=CdcCase.LOG_FILE, logs=(log,), before=finder.slice_before(unit, stat, log))
    if base is None:
        raise CorruptTableError(f"The commit {unit.instant} wrote neither a base file nor a log file.", stat.path)
    if deletes and not stat.num_writes and stat.num_deletes:
        return replace(unit, case=CdcCase.BASE_FILE_DELETE, before=finder.base_before(unit, stat))
    if not stat.num_update_writes and stat.num_writes == stat.num_inserts:
        return replace(unit, case=CdcCase.BASE_FILE_INSERT, after=base)
    raise CorruptTableError(
        f"There should be a cdc log file: commit {unit.instant} of {finder.state.storage.uri} rewrote a base file and "
        "did not log its changes. Begin after it.",
        stat.path,
    )


def _logged(finder: _Finder, unit: CdcUnit, stat: WriteStat, base: BaseFile | None) -> CdcUnit:
    """A unit with change logs, and the slices to look up images in, depending on the mode."""
    mode = finder.state.config.cdc_mode
    if mode == DATA_BEFORE_AFTER:
        return unit
    return replace(unit, after=base, before=finder.base_before(unit, stat) if mode == OP_KEY_ONLY else None)


def _change_logs(stats: Mapping[str, int]) -> tuple[LogFile, ...]:
    found = [parse_log_file(FileStat(path, size, 0, False)) for path, size in sorted(stats.items())]
    return tuple(log for log in found if log is not None)


@dataclass(frozen=True)
class _Finder:
    """Finds files that commits do not name in full; lists each folder once."""

    state: TableState
    listed: dict[str, Names] = field(default_factory=dict)
    slices: dict[str, dict[str, FileSlice]] = field(default_factory=dict)
    plans: dict[str, tuple[CompactionOperation, ...]] = field(default_factory=dict)

    def names(self, partition: str) -> Names:
        if partition not in self.listed:
            self.listed[partition] = {entry.name: entry for entry in self.state.view.lister.files(partition)}
        return self.listed[partition]

    def newest_slices(self, partition: str) -> dict[str, FileSlice]:
        """By file id, including replaced groups."""
        if partition not in self.slices:
            view = replace(self.state.view, replaced={})
            self.slices[partition] = {one.file_id: one for one in latest_slices(view, partition)}
        return self.slices[partition]

    def base_at(self, unit: CdcUnit, instant: str) -> BaseFile | None:
        """The base file of the group that a commit wrote."""
        bases = (parse_base_file(entry) for entry in self.names(unit.partition).values())
        found = [base for base in bases if base is not None and (base.file_id, base.instant) == (unit.file_id, instant)]
        return found[-1] if found else None

    def base_before(self, unit: CdcUnit, stat: WriteStat) -> FileSlice:
        base = self.base_at(unit, stat.prev_commit)
        if base is None:
            raise ConfigError(
                f"Can not get the previous version of the base file: commit {unit.instant} of "
                f"{self.state.storage.uri} changed the file group {unit.file_id} of partition {unit.partition!r}, "
                f"whose version by {stat.prev_commit} has been cleaned. Begin after {unit.instant}."
            )
        return FileSlice(unit.partition, unit.file_id, base)

    def slice_before(self, unit: CdcUnit, stat: WriteStat, log: LogFile) -> FileSlice:
        """The slice that the log file was written to, from the files that the commit and pending compactions name."""
        base = self._named(unit, stat.base_file, parse_base_file) if stat.base_file else None
        names = [name for name in stat.log_files or () if name != log.name]
        for operation in self._compacted_before(unit):
            names += operation.log_files
            if base is None and operation.base_file:
                base = self._named(unit, operation.base_file, parse_base_file)
        if base is None:
            base = self.base_at(unit, stat.prev_commit)
        logs = [self._named(unit, name, parse_log_file) for name in dict.fromkeys(names)]
        earlier = [one for one in logs if not one.is_cdc and log_order(one) < log_order(log)]
        return FileSlice(unit.partition, unit.file_id, base, tuple(sorted(earlier, key=log_order)), unit.instant)

    def _compacted_before(self, unit: CdcUnit) -> Iterator[CompactionOperation]:
        """Operations on the unit's file group in pending compactions that were planned before its commit."""
        for instant in self.state.timeline.pending_compactions:
            if instant.requested > unit.instant:
                continue
            if instant.requested not in self.plans:
                plan = read_compaction_plan(self.state.storage, self.state.config, instant)
                self.plans[instant.requested] = plan.operations
            for operation in self.plans[instant.requested]:
                if (operation.partition_path, operation.file_id) == (unit.partition, unit.file_id):
                    yield operation

    def _named(self, unit: CdcUnit, name: str, parse: Callable[[FileStat], File | None]) -> File:
        """The file of that name, even if it has been cleaned."""
        path = f"{unit.partition}/{name}" if unit.partition else name
        file = parse(self.names(unit.partition).get(name) or FileStat(path, 0, 0, False))
        if file is None:
            raise CorruptTableError(
                f"The commit {unit.instant} names a file that does not belong to a file group.", path
            )
        return file


def _cleaned_groups(state: TableState, instant: str, partition: str, file_ids: list[str]) -> str:
    return (
        f"The commit {instant} of {state.storage.uri} replaced the file groups {file_ids} of partition {partition!r}, "
        "which have been cleaned since: the change query lacks the deletes of their rows."
    )


CHANGE_SCHEMA = pa.schema({"op": pa.string(), "ts_ms": pa.string(), "before": pa.string(), "after": pa.string()})
"""Columns of a change query (``CDCRelation``, Hudi 1.2.0): i, u or d; the commit's instant; the row's JSON."""

_PIECE_ROWS = 1 << 14
_PIECE_BYTES = 16 << 20  # JSON has at most six times the bytes of a value

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CdcScan:
    """Settings for every unit. Picklable.

    Attributes:
        rows: all columns of the table's rows.
        key_config: how keys are computed from data columns; None for a table whose rows store them.
        mode: contents of change logs: one of :data:`hudi_fast.formats.log.cdc_records.CDC_MODES`.
        records: columns of a change record in that mode, as Avro stores them: without logical types.
        history: the table's schema history, to read change logs in current names; None without history.
        images: which of ``before`` and ``after`` are made; the others are null.
    """

    rows: SliceScan
    key_config: KeyConfig | None
    mode: str
    records: pa.Schema
    history: SchemaHistory | None = None
    images: frozenset[str] = frozenset((BEFORE, AFTER))


def change_batch(
    instant: str, op: str | pa.StringArray, before: pa.StringArray | None, after: pa.StringArray | None
) -> pa.RecordBatch:
    """Changes of one commit. At least one image is given; a missing one is null in all rows."""
    count = max(len(image) for image in (before, after) if image is not None)
    ops = pa.repeat(pa.scalar(op), count) if isinstance(op, str) else op
    nulls = pa.nulls(count, pa.string())
    columns = [ops, pa.repeat(pa.scalar(instant), count), nulls if before is None else before]
    return pa.RecordBatch.from_arrays([*columns, nulls if after is None else after], schema=CHANGE_SCHEMA)


def images(rows: pa.RecordBatch | pa.Table, made: bool = True) -> Iterator[pa.StringArray]:
    """The JSON of rows, in pieces of bounded size; nulls if it is not to be ``made``."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    for batch in batches:
        if not made:
            yield pa.nulls(batch.num_rows, pa.string())
            continue
        step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            yield json_rows(batch.slice(start, step), JsonStyle.ROW)


def row_keys(scan: CdcScan, rows: pa.RecordBatch | pa.Table, file_id: str) -> pa.StringArray:
    """The record keys of rows.

    Raises:
        CorruptTableError: a row has no key.
    """
    keys = rows.column(RECORD_KEY) if scan.key_config is None else record_keys(scan.key_config, rows)
    if keys.null_count:
        raise CorruptTableError(f"The file group {file_id} holds {keys.null_count} rows without a record key.")
    return single_chunk(keys)


def rows_of_keys(scan: CdcScan, slice_: FileSlice, keys: pa.StringArray) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """The rows of a slice with the given keys, and int64[n]: the index of each row's key in ``keys``.

    ``keys`` are distinct.
    """
    wanted = varlen_buffers(keys)
    table = KeyTable.build(wanted.offsets, wanted.data)
    for batch in read_slice(scan.rows, slice_):
        found = varlen_buffers(row_keys(scan, batch, slice_.file_id))
        hits = table.probe(found.offsets, found.data)
        here = np.flatnonzero(hits >= 0)
        if len(here):
            (rows,) = gather(pa.Table.from_batches([batch]), here).combine_chunks().to_batches()
            yield rows, hits[here].astype(np.int64)


def images_of_keys(scan: CdcScan, slice_: FileSlice, keys: pa.StringArray) -> pa.StringArray:
    """The JSON of the row of each key.

    ``keys`` are distinct.

    Raises:
        CorruptTableError: the slice lacks a row with one of the keys.
    """
    texts: list[pa.StringArray] = []
    order = np.full(len(keys), -1, dtype=np.int64)
    count = 0
    for rows, places in rows_of_keys(scan, slice_, keys) if len(keys) else ():
        order[places] = np.arange(count, count + rows.num_rows)
        count += rows.num_rows
        texts += images(rows)
    if (order < 0).any():
        missing = keys[int(np.argmax(order < 0))].as_py()
        path = None if slice_.base_file is None else slice_.base_file.path
        raise CorruptTableError(f"A change log names the record key {missing!r}, which this file lacks.", path)
    return gather_array(pa.concat_arrays(texts), order) if texts else pa.array([], pa.string())
