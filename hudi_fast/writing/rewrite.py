"""Rewrite a base file, with its change log.

Rewrites a base file with rows replaced, dropped and appended (``HoodieWriteMergeHandle``, ``HoodieConcatHandle``;
Hudi 1.2.0).

The work names base rows by position. :mod:`hudi_fast.merging.base_merge` resolves which incoming rows win, and
:mod:`hudi_fast.merging.base_merge` iterates over the file: it merges incoming rows here as reads and compaction merge
log entries. Changed rows get new meta columns; all others keep theirs, except the file name. Row groups without changes
are copied as bytes where they may be (:mod:`hudi_fast.writing.patched_file`). Tables with change data capture also get
a change log (:mod:`hudi_fast.writing.rewrite`).

Change logs: the row changes of a new base file version (``HoodieCDCLogger``, Hudi 1.2.0).

::

    replaced stored rows, and their replacements ─► u ─┐
    deleted stored rows                          ─► d ─┼─► Avro records ─► CDC blocks ─► .<name>.cdc
    appended rows                                ─► i ─┘

A change log belongs to one base file and has its instant and write token, in every table version; it is announced by a
marker and named in the base file's write stat. The table's supplemental logging mode decides the content of an entry.
Memory holds one batch of rows and a part of a block.

Base files with a change log:

==============================================  ===========
new version of the base file                    change log
==============================================  ===========
no stored row before it (all rows inserted)     none
a delete operation leaves no row                none: readers take all rows of the version before
anything else, even if nothing changed          one
==============================================  ===========

Apache Hudi's readers infer the first two cases without a change log. They cannot infer an upsert or a compaction that
leaves no row: hudi_fast writes a change log there; Apache Hudi does not, and its CDC query then fails.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.avro.rows import AvroEncoder, block_content_head
from hudi_fast.formats.avro.schema import without_meta
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogFileWriter
from hudi_fast.formats.log.cdc_records import AFTER, BEFORE, DELETE, INSERT, OP, TS_MS, UPDATE, cdc_columns
from hudi_fast.formats.log.cdc_records import RECORD_KEY as CDC_KEY
from hudi_fast.formats.log.cdc_records import cdc_schema as cdc_schema_of
from hudi_fast.formats.varlen import gather, gather_array, replace_rows, single_chunk
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.merging.base_merge import (
    BaseRowUpdates,
    Replaced,
    Replacement,
    incoming_beats_stored,
    merged_batches,
    resolve_matches,
    stored_batches,
)
from hudi_fast.merging.blend import fill_gaps, run_merger
from hudi_fast.merging.rules import default_ordering, ordering_columns
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import BaseFile, log_file_name
from hudi_fast.writing import output_file
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.output_file import (
    META_COLUMNS,
    RECORD_KEY,
    CarriedColumns,
    OutputFile,
    Rows,
    new_rows,
    with_new_meta,
)
from hudi_fast.writing.patched_file import PatchedFile, next_version
from hudi_fast.writing.write_plan import PART_BYTES, PART_ROWS, FileGroupWork, FilePlan, Incoming, TaskToken, WritePlan

__all__ = ["ChangeLog", "change_log_of", "rewrite_file_group"]

_MAX_WAITING = 16 << 20
"""Bytes of encoded entries after which a block is written, if ``hoodie.logfile.data.block.max.size`` allows more."""


def change_log_of(
    plan: FilePlan, partition: str, file_id: str, token: TaskToken, stored: int, remaining: int, deletes: bool = False
) -> ChangeLog | None:
    """The change log of a new version of a base file; None if it has none.

    Args:
        plan: the write.
        partition: partition path.
        file_id: the file group.
        token: write token.
        stored: rows of the version before.
        remaining: a lower bound of the rows of the new version.
        deletes: whether all rows of the write are deletes.
    """
    inferred = stored == 0 or (deletes and not remaining)
    return None if plan.table.cdc is None or inferred else ChangeLog(plan, plan.table.cdc, partition, file_id, token)


class ChangeLog:
    """Writer of one change log; a context manager, and a :class:`hudi_fast.merging.base_merge.CdcObserver`.

    Rows are tables with the data columns of the plan's ``file_schema`` and, where the table has meta columns, the
    record key; other columns are ignored.

    Args:
        plan: the write.
        mode: supplemental logging mode.
        partition: partition path.
        file_id: the file group.
        token: write token.
    """

    def __init__(self, plan: FilePlan, mode: str, partition: str, file_id: str, token: TaskToken) -> None:
        self.sizes: dict[str, int] = {}
        """Bytes of each finished file, by path, for the write stat."""
        self._plan, self._mode = plan, mode
        self._columns = cdc_columns(mode)
        self._schema = cdc_schema_of(mode, plan.avro_schema)
        self._encoders: dict[str, AvroEncoder] = {}
        self._folder, self._file_id, self._token = f"{partition}/" if partition else "", file_id, token
        self._writer: LogFileWriter | None = None
        self._version = 0
        self._parts: list[npt.NDArray[np.uint8]] = []
        self._bytes, self._entries = 0, 0

    @property
    def wants_stored(self) -> bool:
        """Whether entries hold before images."""
        return BEFORE in self._columns

    def updated(self, stored: pa.Table | None, rows: pa.Table) -> None:
        """Record that row i of ``rows`` replaces row i of ``stored``."""
        self._log(UPDATE, rows, before=stored, after=rows)

    def deleted(self, stored: pa.Table) -> None:
        """Record deleted stored rows."""
        self._log(DELETE, stored, before=stored)

    def inserted(self, rows: pa.Table) -> None:
        """Record inserted rows."""
        self._log(INSERT, rows, after=rows)

    def close(self) -> None:
        """Write buffered entries and finish the file; a file without entries still has one block."""
        if self._entries or (self._writer is None and not self.sizes):
            self._flush()
        self._finish_file()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None and self._writer is not None:  # a rollback deletes remaining files
            with contextlib.suppress(OSError):
                self._writer.abort()

    # ---- entries

    def _log(self, op: str, keyed: pa.Table, before: pa.Table | None = None, after: pa.Table | None = None) -> None:
        if not keyed.num_rows:
            return
        columns: dict[str, pa.Array] = {}
        if CDC_KEY in self._columns:
            columns[CDC_KEY] = self._keys(keyed)
        for name, rows in ((BEFORE, before), (AFTER, after)):
            if rows is not None and name in self._columns:
                columns[name] = self._image(rows)
        batch = pa.RecordBatch.from_pydict(columns)
        if op not in self._encoders:
            constants = {OP: op, TS_MS: self._plan.instant}
            self._encoders[op] = AvroEncoder.compile(batch.schema, _with_defaults(self._schema, constants))
        self._put(*self._encoders[op].encode_records(batch))

    def _keys(self, rows: pa.Table) -> pa.Array:
        if self._plan.config.populate_meta_fields:
            return single_chunk(rows.column(output_file.RECORD_KEY))
        return single_chunk(record_keys(self._plan.key_config, rows))

    def _image(self, rows: pa.Table) -> pa.StructArray:
        fields = [field.remove_metadata() for field in without_meta(self._plan.file_schema)]
        columns = [single_chunk(rows.column(field.name)) for field in fields]
        return pa.StructArray.from_arrays(columns, fields=fields)

    # ---- blocks

    def _put(self, data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> None:
        """Buffer encoded records, and write each full block."""
        limit = min(_MAX_WAITING, self._plan.files.log.max_block_size)
        start, count = 0, len(bounds) - 1
        while start < count:
            end = int(np.searchsorted(bounds, bounds[start] + limit - self._bytes, "right")) - 1
            end = min(max(end, start if self._entries else start + 1), count)  # a block holds at least one entry
            self._parts.append(data[bounds[start] : bounds[end]])
            self._bytes += int(bounds[end] - bounds[start])
            self._entries += end - start
            if end < count:
                self._flush()
            start = end

    def _flush(self) -> None:
        if self._writer is not None and self._writer.size > self._plan.files.log.max_file_size:
            self._finish_file()
        if self._writer is None:
            self._writer = self._open()
        headers = {HeaderKey.INSTANT_TIME: self._plan.instant, HeaderKey.SCHEMA: self._schema}
        self._writer.append(BlockType.CDC_DATA, headers, [block_content_head(self._entries), *self._parts])
        self._parts, self._bytes, self._entries = [], 0, 0

    def _open(self) -> LogFileWriter:
        """Open a new file; other attempts of the task have another write token."""
        self._version += 1
        name = log_file_name(self._file_id, self._plan.instant, self._version, str(self._token))
        path = f"{self._folder}{name}.cdc"
        # In every table version: all releases delete files with this marker when they roll the write back.
        create_marker(self._plan.storage, self._plan.instant, path, "CREATE")
        return LogFileWriter(self._plan.storage, path, is_ours=True)

    def _finish_file(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        self.sizes[writer.path] = writer.size


def _with_defaults(schema: str, constants: dict[str, str]) -> str:
    """The records' schema with defaults for fields without a column."""
    record: dict[str, Any] = stored_json(schema)
    fields: Sequence[dict[str, Any]] = record["fields"]
    filled = [each | {"default": constants[each["name"]]} if each["name"] in constants else each for each in fields]
    return json.dumps(record | {"fields": filled})


Flags = npt.NDArray[np.bool_]


def rewrite_file_group(plan: WritePlan, work: FileGroupWork, base: BaseFile, incoming: Incoming) -> WriteStat:
    """Write the next version of a base file."""
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(open_base(plan.storage, base))
        changes = _resolve(plan, work, incoming, reader)
        log = _change_log(plan, work, reader.num_rows, changes)
        if log is not None:
            stack.enter_context(log)
        unset = plan.unset if log is None and plan.rules.merger is None else None
        version = next_version(plan, work, base, reader, changes, len(work.inserts), unset)
        output = version.file
        stack.enter_context(output)
        carried = CarriedColumns.of(plan, work.partition, output.name)
        updates = _Updates(plan, work, incoming, changes, output.name)
        limit = _rows_at_once(reader, incoming)
        for run in version.encoded:
            wanted = run.left(carried.wanted)
            for table in merged_batches(
                reader,
                wanted,
                changes,
                updates.making(wanted),
                batch_rows=limit,
                row_groups=run.groups,
                observer=log,
            ):
                if run.copied:
                    output.write(table)
                    continue
                complete = carried.complete(table)
                output.write(complete)
                output.footer.carry(complete.column(RECORD_KEY))
        _append(plan, work, incoming, work.first_sequence + len(changes.replaced), output, log)
        size = output.close()
        if log is not None:
            log.close()
    return WriteStat(
        file_id=work.file_id,
        path=output.path,
        prev_commit=base.instant,
        prev_base_file=base.name,
        partition_path=work.partition,
        num_writes=output.rows,
        num_inserts=len(work.inserts),
        num_update_writes=len(changes.replaced) - updates.kept - updates.gone,
        num_deletes=len(changes.dropped) + updates.gone,
        total_write_bytes=size,
        file_size=size,
        cdc_stats=None if log is None else log.sizes,
        column_ranges=output.ranges,
        inserts_last=True,
        copied_row_groups=version.copied,
    )


def _rows_at_once(reader: BaseFileReader, incoming: Incoming) -> int:
    """Rows of a batch of the base file: its rows and the incoming ones have about :data:`PART_BYTES` each."""
    stored = sum(one.stored_bytes for one in reader.parts) / max(1, reader.num_rows)
    return int(min(max(PART_BYTES / max(stored, incoming.row_bytes), 1), PART_ROWS))


def _change_log(plan: WritePlan, work: FileGroupWork, stored: int, changes: BaseRowUpdates) -> ChangeLog | None:
    remaining = stored - len(changes.dropped) + len(work.inserts)
    return change_log_of(
        plan, work.partition, work.file_id, work.token, stored, remaining, deletes=plan.operation == "delete"
    )


def _append(
    plan: WritePlan,
    work: FileGroupWork,
    incoming: Incoming,
    first: int,
    output: OutputFile | PatchedFile,
    log: ChangeLog | None,
) -> None:
    """Write the rows that are new to the file group; ``first`` is the sequence number of the first."""
    for part in incoming.parts(work.inserts):
        rows = new_rows(plan, work, incoming, part, output.name, first)
        output.write(rows)
        output.footer.add(gather_array(incoming.key_array(), part))
        if log is not None:
            log.inserted(rows)
        first += len(part)


# ---- merging


def _resolve(plan: WritePlan, work: FileGroupWork, incoming: Incoming, reader: BaseFileReader) -> BaseRowUpdates:
    """Merge the rows that the work names; a stored row whose key moves to another partition is deleted."""
    deletes = _deletes(incoming, work.incoming_rows)
    if work.moved is not None:
        deletes |= work.moved
    wins = np.ones(len(deletes), dtype=np.bool_)
    if plan.rules.compares and incoming.ordering and (work.moved is None or not work.moved.all()):
        wins = _wins(plan, work, incoming, reader, deletes)
        if work.moved is not None:
            wins |= work.moved
    return resolve_matches(plan.rules, work.base_rows, work.incoming_rows, deletes, wins)


def _deletes(incoming: Incoming, sources: Rows) -> Flags:
    return np.zeros(len(sources), dtype=np.bool_) if incoming.deletes is None else incoming.deletes[sources]


def _wins(plan: WritePlan, work: FileGroupWork, incoming: Incoming, reader: BaseFileReader, deletes: Flags) -> Flags:
    """Compare ordering values: stored ones in the table's types, null in a file older than the column."""
    roots = sorted({name.split(".")[0] for name in plan.rules.ordering_fields})
    wanted = pa.schema([plan.schema.field(name).with_nullable(True) for name in roots])
    wins, end = np.ones(len(deletes), dtype=np.bool_), 0
    for group, rows in enumerate(reader.row_group_rows()):
        start, end = end, end + rows
        if np.searchsorted(work.base_rows, start) == np.searchsorted(work.base_rows, end):
            continue
        for batch in stored_batches(reader, wanted, row_groups=[group]):
            part = slice(*np.searchsorted(work.base_rows, (start, start + batch.num_rows)))
            sources = work.incoming_rows[part]
            if len(sources):
                new = [gather_array(column, sources) for column in incoming.ordering]
                stored = gather(pa.Table.from_batches([batch]), work.base_rows[part] - start)
                old, default = ordering_columns(plan.rules, stored), default_ordering(new, len(sources))
                wins[part] = incoming_beats_stored(plan.rules, deletes[part], default, new, old)
            start += batch.num_rows
    return wins


# ---- the new version's rows


class _Updates:
    """Builds the rows that replace stored ones.

    Args:
        plan: the write.
        work: the file group.
        incoming: rows of the write.
        changes: their changes to the file.
        name: the new file's name.
    """

    def __init__(
        self, plan: WritePlan, work: FileGroupWork, incoming: Incoming, changes: BaseRowUpdates, name: str
    ) -> None:
        self.kept = 0  # stored rows left unchanged by the incoming row
        self.gone = 0  # stored rows deleted by the user's merger
        self._plan, self._work, self._incoming, self._changes = plan, work, incoming, changes
        self._name = name

    def making(self, schema: pa.Schema) -> Replacement:
        """A function that makes rows with the columns of ``schema``, which are some of the columns that vary by row."""
        return lambda part, stored: self._make(schema, part, stored)

    def _make(self, schema: pa.Schema, part: slice, stored: pa.Table | None) -> Replaced:
        sources, first = self._changes.sources[part], self._work.first_sequence + part.start
        if stored is None:
            return Replaced(new_rows(self._plan, self._work, self._incoming, sources, self._name, first, schema))
        names = [name for name in schema.names if name not in META_COLUMNS]
        older = stored.select(names)
        newer = pa.Table.from_arrays(self._incoming.take(sources, names).columns, schema=older.schema)
        if self._plan.rules.merger is not None:
            merged, gone = run_merger(self._plan.rules.merger, older, newer)
            self.gone += 0 if gone is None else int(gone.sum())
            return Replaced(self._with_meta(schema, merged, sources, first), gone)
        wins = None if self._changes.source_wins is None else self._changes.source_wins[part]
        merged, gave_way = fill_gaps(self._plan.rules, older, newer, wins)
        rows = self._with_meta(schema, merged, sources, first)
        if wins is None:
            return Replaced(rows)
        idle = ~wins & ~gave_way
        kept = np.flatnonzero(idle)
        self.kept += len(kept)
        return Replaced(replace_rows(rows, gather(stored, kept), kept, np.zeros(0, dtype=np.int64)), kept=idle)

    def _with_meta(self, schema: pa.Schema, data: pa.Table, sources: Rows, first: int) -> pa.Table:
        return with_new_meta(self._plan, self._work, self._incoming, sources, self._name, first, data, schema)
