"""Rewrites a base file with rows replaced, dropped and appended (``HoodieWriteMergeHandle``, ``HoodieConcatHandle``;
Hudi 1.2.0).

The work names base rows by position. :mod:`hudi_fast.merging.matched_rows` resolves which incoming rows win, and
:mod:`hudi_fast.merging.base_merge` iterates over the file: it merges incoming rows here as reads and compaction merge
log entries. Changed rows get new meta columns; all others keep theirs, except the file name. Row groups without changes
are copied as bytes where they may be (:mod:`hudi_fast.writing.patched_file`). Tables with change data capture also get
a change log (:mod:`hudi_fast.writing.change_log`).
"""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.merging.base_merge import Replaced, Replacement, merged_batches
from hudi_fast.merging.blend import fill_gaps, run_merger
from hudi_fast.merging.gather import gather, gather_array
from hudi_fast.merging.interleave import replace_rows
from hudi_fast.merging.matched_rows import BaseRowUpdates, incoming_beats_stored, resolve_matches
from hudi_fast.merging.rules import default_ordering, ordering_columns
from hudi_fast.merging.stored_columns import stored_batches
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import BaseFile
from hudi_fast.writing.change_log import ChangeLog, change_log_of
from hudi_fast.writing.file_columns import META_COLUMNS, RECORD_KEY, CarriedColumns
from hudi_fast.writing.output_file import OutputFile, Rows, new_rows, with_new_meta
from hudi_fast.writing.patched_file import PatchedFile, next_version
from hudi_fast.writing.write_plan import PART_BYTES, PART_ROWS, FileGroupWork, Incoming, WritePlan

__all__ = ["rewrite_file_group"]

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
