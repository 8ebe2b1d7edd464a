"""The task of the routed plan: inserts first, then slice after slice.

Rows arrive sorted: rows without a slice, by partition, then rows sorted by slice. Inserts are assigned when all of them
have been read; inserts for a small file are kept until that file is rewritten, because each file is rewritten once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError
from hudi_fast.index.tagging import IncomingKeys, SliceMatches
from hudi_fast.merging.gather import gather, gather_array
from hudi_fast.schema.conform import conform
from hudi_fast.spark.writing.record_index import UNREADABLE
from hudi_fast.spark.writing.tasks import Answer, RowBuffer, cut_runs, task_token
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.assign import PartitionMatches, assign_rows, combined_rows, files_to_fill
from hudi_fast.writing.dml_rows import match_dml_rows, refuse_lost
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.located import locate_rows, match_located
from hudi_fast.writing.lookup import look_up
from hudi_fast.writing.partial import refuse_unknown
from hudi_fast.writing.plan import PARTITION_PATH, RECORD_KEY, FileGroupWork, Incoming, TaskToken, WritePlan
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys

__all__ = ["BIN", "MOVED", "SLICE", "write_slices"]

SLICE, MOVED, BIN = "__hudi_fast_slice", "__hudi_fast_moved", "__hudi_fast_bin"
"""Columns of routed rows: number of the slice that holds the key, whether the row leaves it, number of the task."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


def write_slices(
    plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """The task's function.

    Args:
        plan: the write.
        slices: all slices of the table, in the order of the numbers in the column :data:`SLICE`.
        owners: the task that owns each of them, in the numbers of the column :data:`BIN`.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        task = _Task(plan, slices, owners, task_token())
        for number, table in _by_slice(batches):
            if number is None:
                task.insert(table)
            elif number == UNREADABLE:
                task.refuse(table)
            else:
                task.update(number, table)
        task.finish()
        return Answer(task.stats, frozenset(stat.partition_path for stat in task.stats))

    return work


class _Task:
    """State of one task: its write stats, and the inserts kept for small files."""

    def __init__(self, plan: WritePlan, slices: Sequence[FileSlice], owners: Sequence[int], token: TaskToken) -> None:
        self.stats: list[WriteStat] = []
        self._plan = plan
        self._slices = slices
        self._owners = owners
        self._token = token
        self._sequence = 0
        self._waiting: dict[int, pa.Table] = {}

    def insert(self, table: pa.Table) -> None:
        """Assign all inserts of this task."""
        owner = table.column(BIN)[0].as_py()
        rows = table.drop_columns([SLICE, MOVED, BIN])
        incoming = self._prepared(rows)
        if incoming.inserted is not None:
            refuse_lost(self._plan, incoming, np.flatnonzero(~incoming.inserted))
        names = incoming.partitions.dictionary.to_pylist()
        codes = np.asarray(incoming.partitions.indices)
        mine = {number: one for number, one in enumerate(self._slices) if self._owners[number] == owner}
        numbers = {(one.partition, one.file_id): number for number, one in mine.items()}
        waiting = rows if self._plan.is_dml else _whole_rows(self._plan, incoming)
        for code, name in enumerate(names):
            here = combined_rows(self._plan, incoming, np.flatnonzero(codes == code))
            all_here = [one for one in self._slices if one.partition == name]
            filled = [one for one in files_to_fill(self._plan, name, all_here) if (name, one.file_id) in numbers]
            found = PartitionMatches(filled, [], [], here)
            works = assign_rows(self._plan, name, incoming, found, self._token, self._sequence)
            refuse_unknown(self._plan, incoming, works)
            for work in works:
                self._sequence += len(work.inserts)
                if work.slice is None:
                    self.stats += write_file_group(self._plan, work, incoming)
                else:
                    self._waiting[numbers[name, work.file_id]] = gather(waiting, work.inserts)

    def update(self, number: int, table: pa.Table) -> None:
        """Write one slice's updates and deletes, and the inserts kept for it."""
        slice_ = self._slices[number]
        waiting = self._waiting.pop(number, None)
        rows = table.drop_columns([SLICE, MOVED, BIN])
        updates = rows.num_rows
        if waiting is not None:
            rows = rows if self._plan.is_dml else conform(rows, self._plan.input_schema)
            rows = pa.concat_tables([rows, waiting])
        incoming = self._prepared(rows) if self._plan.is_dml else prepare_rows(self._plan, rows)
        kept = combined_rows(self._plan, incoming, np.arange(updates, dtype=np.int64))
        moved = np.asarray(table.column(MOVED))
        match = self._match(slice_, incoming, kept, moved)
        lost = kept if match is None else np.setdiff1d(kept, match.incoming_rows)
        inserts = np.arange(updates, incoming.count, dtype=np.int64)
        if len(lost):
            inserts = np.concatenate([self._stale(slice_, incoming, lost, moved), inserts])
        for work in self._works(slice_, match, moved, incoming, inserts):
            refuse_unknown(self._plan, incoming, [work])
            self._write(work, incoming)

    def _match(self, slice_: FileSlice, incoming: Incoming, rows: Rows, moved: Flags) -> SliceMatches | None:
        if self._plan.index.uses_records and incoming.groups is None:
            return match_located(self._plan, incoming, slice_, rows, moved[rows])
        if incoming.groups is not None:
            matches = match_dml_rows(self._plan, incoming, rows, [slice_])
            return matches[0] if matches else None
        keys = IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)
        return look_up(self._plan, slice_, keys)

    def _works(
        self, slice_: FileSlice, match: SliceMatches | None, moved: Flags, incoming: Incoming, inserts: Rows
    ) -> list[FileGroupWork]:
        """The work of the slice; None without changes."""
        if match is None:
            none = FileGroupWork(
                slice_.partition, slice_.file_id, slice_, _NO_ROWS, _NO_ROWS, None, inserts, self._token
            )
            return [none] if len(inserts) else []
        gone = moved[match.incoming_rows]
        found = PartitionMatches([slice_], [match], [gone if gone.any() else None], _NO_ROWS)
        works = assign_rows(self._plan, slice_.partition, incoming, found, self._token, self._sequence)
        return [replace(work, inserts=inserts) for work in works]

    def _stale(self, slice_: FileSlice, incoming: Incoming, lost: Rows, moved: Flags) -> Rows:
        """Rows to insert into the slice, of those whose key it does not hold.

        Raises:
            CommitError: the rows were routed by the slice's stored keys.
        """
        if not self._plan.index.uses_records:
            raise self._lost(slice_, incoming, lost)
        kept = lost[~moved[lost]]
        return kept if incoming.deletes is None else kept[~incoming.deletes[kept]]

    def refuse(self, table: pa.Table) -> None:
        """Raise the error of the record index.

        Raises:
            HudiError: always.
        """
        incoming = self._prepared(table.drop_columns([SLICE, MOVED, BIN]))
        locate_rows(self._plan, incoming, np.arange(incoming.count, dtype=np.int64), "")
        raise CommitError(
            f"The record index of {self._plan.storage.uri} could not be read for {incoming.count} rows and now can. "
            "The table is as before; run the operation again."
        )

    def finish(self) -> None:
        """Write small files that only receive inserts."""
        for number, rows in sorted(self._waiting.items()):
            incoming, one = self._prepared(rows), self._slices[number]
            inserts = np.arange(incoming.count, dtype=np.int64)
            work = FileGroupWork(one.partition, one.file_id, one, _NO_ROWS, _NO_ROWS, None, inserts, self._token)
            self._write(work, incoming)
        self._waiting = {}

    def _prepared(self, rows: pa.Table) -> Incoming:
        return with_auto_keys(self._plan, prepare_rows(self._plan, rows), self._token.task, self._sequence)

    def _write(self, work: FileGroupWork, incoming: Incoming) -> None:
        self.stats += write_file_group(self._plan, replace(work, first_sequence=self._sequence), incoming)
        self._sequence += len(work.base_rows) + len(work.inserts)

    def _lost(self, slice_: FileSlice, incoming: Incoming, rows: Rows) -> CommitError:
        """Spark and the core disagree about a key: fail instead of losing rows."""
        key = incoming.key_array()[int(rows[0])].as_py()
        return CommitError(
            f"{len(rows)} rows were sent to file group {slice_.file_id} of {self._plan.storage.uri}, partition "
            f"{slice_.partition!r}, which does not hold their keys, for example {key!r}. The table is as before; this "
            "is a bug of hudi_fast. hudi_fast.plan=driver avoids the failing code."
        )


def _whole_rows(plan: WritePlan, incoming: Incoming) -> pa.Table:
    """The incoming rows; with their key columns, where the data columns do not contain the key."""
    if not plan.takes_stored_keys:
        return incoming.rows
    rows = incoming.rows.append_column(RECORD_KEY, incoming.key_array())
    return rows.append_column(PARTITION_PATH, incoming.partitions.cast(pa.string())).select(plan.input_schema.names)


def _by_slice(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.Table]]:
    current: int | None = None
    with RowBuffer() as buffer:
        for batch in batches:
            numbers = batch.column(batch.schema.get_field_index(SLICE))
            for start, end in cut_runs(np.asarray(numbers.fill_null(-1))):
                number = numbers[start].as_py()
                if number != current and (rows := buffer.take()) is not None:
                    yield current, rows
                current = number
                buffer.add(batch.slice(start, end - start))
        if (rows := buffer.take()) is not None:
            yield current, rows
