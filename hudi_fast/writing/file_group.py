"""Rows whose file group is known become files.

Step 4 of a write: one file group's rows become files.

Pure in the plan, the work and the files of the pinned slice; returns plain write stats.

===================================  ===============================================================================
file group                           written files
===================================  ===============================================================================
new                                  base files, here (``HoodieCreateHandle``, Hudi 1.2.0)
existing                             a new base file version: :mod:`hudi_fast.writing.rewrite`
existing, MERGE_ON_READ, no inserts  log files: :mod:`hudi_fast.writing.log_file`
===================================  ===============================================================================

Rows that need values of stored rows get them first (:mod:`hudi_fast.writing.whole_rows`).

Rows whose file group is known, written one file group at a time.

Additional columns hold the place of each row's key; a lookup added them before the rows were grouped by file group. A
bucket is such a group of rows: updates of one slice with the inserts that fill it, or rows of a new file group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError
from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.tagging import IncomingKeys, SliceMatches, untagged_rows
from hudi_fast.merging.row_buffer import CollectedRows
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.assign import PartitionMatches, assign_partition, assign_rows, combined_rows, new_file_id
from hudi_fast.writing.dml_rows import match_dml_rows, refuse_lost
from hudi_fast.writing.early_conflicts import require_no_earlier_writer
from hudi_fast.writing.located import UNKNOWN_ROW, UNREADABLE, locate_rows, match_located, with_row_numbers
from hudi_fast.writing.log_file import append_log
from hudi_fast.writing.lookup import look_up, look_up_all
from hudi_fast.writing.markers import ensure_partition_marker
from hudi_fast.writing.output_file import KeyFooter, OutputFile, Rows, new_rows
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys
from hudi_fast.writing.rewrite import rewrite_file_group
from hudi_fast.writing.whole_rows import refuse_unknown, whole_rows
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, Incoming, TaskToken, WritePlan

__all__ = ["BUCKET", "MOVED", "ORIGIN", "SLICE", "STORED_ROW", "BucketWriter", "write_file_group"]

_FEWEST_ROWS = 100


def write_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write one file group and return its write stats.

    Raises:
        CommitConflictError: early conflict detection found another writer of the file group.
        InvalidDataError: a log has deleted the row that a partial row changes.
    """
    if plan.early is not None and (work.slice is not None or plan.index.bucket is not None):  # may have other writers
        require_no_earlier_writer(plan.early, plan.storage, plan.config, plan.instant, (work.partition, work.file_id))
    plan, work, incoming = whole_rows(plan, work, incoming)
    ensure_partition_marker(plan.storage, work.partition, plan.instant, plan.config.partition_metafile_in_base_format)
    if work.slice is None:
        return _create_file_group(plan, work, incoming)
    if plan.config.is_mor and not len(work.inserts):
        return append_log(plan, work, incoming)
    if work.slice.base_file is None:
        raise ValueError(f"rows are inserted into {work.file_id}, which has no base file")
    return [rewrite_file_group(plan, with_row_numbers(plan, work, incoming), work.slice.base_file, incoming)]


def _create_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write ``work.inserts``; a full file is followed by another with the next suffix."""
    stats: list[WriteStat] = []
    prefix, _, suffix = work.file_id.rpartition("-")
    rows, start = work.inserts, 0
    while start < len(rows) or not stats:
        file_id = f"{prefix}-{int(suffix) + len(stats)}"
        stat = _create_file(plan, work, file_id, incoming, rows[start:], work.first_sequence + start)
        start += stat.num_writes
        stats.append(stat)
    return stats


def _create_file(
    plan: WritePlan, work: FileGroupWork, file_id: str, incoming: Incoming, rows: Rows, first_sequence: int
) -> WriteStat:
    sizing = plan.files.sizing
    ceiling = sizing.max_file_size * (1 + sizing.compression_ratio) - 2 * plan.files.average_record_size
    if plan.index.bucket is not None:  # a bucket is one file group, however large
        ceiling = math.inf
    else:
        rows = rows[: math.ceil(sizing.max_file_rows * (1 + sizing.compression_ratio))]
    with OutputFile(plan, work, file_id, "CREATE", KeyFooter.for_new_file(plan)) as output:
        for part in incoming.parts(rows, _rows_at_once(incoming, ceiling)):
            output.write(new_rows(plan, work, incoming, part, output.name, first_sequence + output.rows))
            output.footer.add(gather_array(incoming.key_array(), part))
            if output.rows < len(rows) and output.is_full(ceiling):
                break
        size = output.close()
    return WriteStat(
        file_id=file_id,
        path=output.path,
        prev_commit="null",
        partition_path=work.partition,
        num_writes=output.rows,
        num_inserts=output.rows,
        total_write_bytes=size,
        file_size=size,
        column_ranges=output.ranges,
    )


def _rows_at_once(incoming: Incoming, ceiling: float) -> int:
    """Rows between two checks of the file's size: a small part of the file's capacity."""
    return int(min(max(ceiling / 16 / incoming.row_bytes, _FEWEST_ROWS), PART_ROWS))


SLICE, MOVED, BUCKET = "__hudi_fast_slice", "__hudi_fast_moved", "__hudi_fast_bucket"
"""Columns of routed rows: number of the slice that holds the key, whether the row leaves it, number of the bucket."""

STORED_ROW = "__hudi_fast_stored_row"
"""Column that replaces :data:`SLICE`: number of the key's row in the slice of the bucket; null for new keys.

See :class:`hudi_fast.writing.located.KeyPlaces`. Without :data:`MOVED` no row leaves its slice.
"""

ORIGIN = "__hudi_fast_origin"
"""Column of writes that need it (:attr:`hudi_fast.writing.write_plan.WritePlan.needs_origins`): for a row that moves
to the partition of the bucket, the number of the slice that it leaves; null for other rows.
"""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Routing:
    """The values of the routing columns of n rows.

    Attributes:
        stored: bool[n], rows whose key is stored in the slice of the bucket.
        moved: bool[n], rows that leave the slice.
        rows: int64[n], rows of their keys in the slice (:data:`STORED_ROW`); None if they were not sent.
        origins: int64[n], the slices that rows leave for the partition of the bucket, -1 for other rows; None for none.
    """

    stored: Flags
    moved: Flags
    rows: Rows | None
    origins: Rows | None

    @classmethod
    def of(cls, table: pa.Table) -> tuple[_Routing, pa.Table]:
        """The routing of rows, and the rows without the routing columns. Rows that lack these columns are new."""
        stored = moved = np.zeros(table.num_rows, dtype=np.bool_)
        rows = None
        if MOVED in table.column_names:
            moved = np.asarray(table.column(MOVED))
        if SLICE in table.column_names:
            stored = np.asarray(table.column(SLICE).is_valid())
        elif STORED_ROW in table.column_names:
            numbers = table.column(STORED_ROW)
            stored, rows = np.asarray(numbers.is_valid()), np.asarray(numbers.fill_null(-1)).astype(np.int64)
        origins = None
        if ORIGIN in table.column_names:
            origins = np.asarray(table.column(ORIGIN).fill_null(-1)).astype(np.int64)
        present = [name for name in (SLICE, STORED_ROW, MOVED, ORIGIN, BUCKET) if name in table.column_names]
        return cls(stored, moved, rows, origins), table.drop_columns(present)


def _found_before(slice_: FileSlice, rows: Rows, stored: Rows) -> SliceMatches:
    """The match of ``rows``, from the rows of their keys in the slice; rows that only the log has are last."""
    order = np.argsort(np.where(stored < 0, np.iinfo(np.int64).max, stored), kind="stable")
    return SliceMatches(slice_, stored[order], rows[order])


class BucketWriter:
    """Writes buckets, one after another; keeps the write stats and the number of rows so far.

    Args:
        plan: the write.
        slices: slices of the table. The bucket of a slice has the number of its position; other buckets are new file
            groups.
        uncounted: buckets from this number on hold all rows of other partitions. Their keys were not looked up among
            ``slices``. None without such buckets.
        token: write token.
    """

    def __init__(self, plan: WritePlan, slices: Sequence[FileSlice], uncounted: int | None, token: TaskToken) -> None:
        self.stats: list[WriteStat] = []
        self._plan = plan
        self._slices = slices
        self._uncounted = uncounted
        self._token = token
        self._sequence = 0

    def write(self, bucket: int, collected: CollectedRows) -> None:
        """Write the rows of one bucket."""
        routing, rows = _Routing.of(collected.table)
        incoming = prepare_rows(self._plan, rows, collected.release)
        incoming = with_auto_keys(self._plan, incoming, self._token.task, self._sequence)
        if bucket == UNREADABLE:
            raise self._unreadable(incoming)
        inserts = np.flatnonzero(~routing.stored)
        if incoming.inserted is not None:
            refuse_lost(self._plan, incoming, inserts[~incoming.inserted[inserts]])
        if self._plan.is_dml and self._plan.index.is_global:  # rows of one key may be for several partitions
            inserts = combined_rows(self._plan, incoming, inserts)
        if bucket < len(self._slices):
            self._write_slice(self._slices[bucket], incoming, routing, inserts)
        elif self._uncounted is not None and bucket >= self._uncounted:
            self._write_partitions(incoming, inserts)
        else:
            self._write_new(bucket, incoming, inserts, routing)
        self._sequence += incoming.count

    def _write_new(self, bucket: int, incoming: Incoming, inserts: Rows, routing: _Routing) -> None:
        """Write one new file group for each partition of the rows."""
        names, codes = incoming.partitions.dictionary.to_pylist(), np.asarray(incoming.partitions.indices)
        for code, name in enumerate(names):
            here = inserts if len(names) == 1 else inserts[codes[inserts] == code]
            here = combined_rows(self._plan, incoming, here)
            found = PartitionMatches([], [], [], here)
            self._write(name, incoming, found, new_file_id(self._plan, name, bucket), routing)

    def _write_partitions(self, incoming: Incoming, rows: Rows) -> None:
        """Look up keys, assign and write, as a task for whole partitions does."""
        codes, sequence = np.asarray(incoming.partitions.indices), self._sequence
        for code, name in enumerate(incoming.partitions.dictionary.to_pylist()):
            here = rows[codes[rows] == code]
            works = assign_partition(self._plan, name, incoming, here, self._token, first_sequence=sequence)
            self._write_works(works, incoming)
            sequence += len(here)

    def _write_slice(self, slice_: FileSlice, incoming: Incoming, routing: _Routing, inserts: Rows) -> None:
        """Write updates and deletes of one slice, and the inserts that fill it."""
        kept = combined_rows(self._plan, incoming, np.flatnonzero(routing.stored))
        match = self._match(slice_, incoming, kept, routing)
        lost = kept if match is None else untagged_rows(kept, [match], incoming.count)
        inserts = combined_rows(self._plan, incoming, inserts)
        if len(lost):
            inserts = np.concatenate([self._stale(slice_, incoming, lost, routing.moved), inserts])
        matches = [] if match is None else [match]
        gone = [routing.moved[one.incoming_rows] for one in matches]
        found = PartitionMatches([slice_], matches, [one if one.any() else None for one in gone], inserts)
        self._write(slice_.partition, incoming, found, slice_.file_id, routing)

    def _write(
        self, partition: str, incoming: Incoming, found: PartitionMatches, file_id: str, routing: _Routing
    ) -> None:
        works = assign_rows(self._plan, partition, incoming, found, self._token, self._sequence, inserts_into=file_id)
        if routing.origins is not None:
            works = [self._with_origins(work, incoming, routing.origins) for work in works]
        self._write_works(works, incoming)

    def _with_origins(self, work: FileGroupWork, incoming: Incoming, origins: Rows) -> FileGroupWork:
        """The work, with the stored rows of incoming rows that move to its partition."""
        found = []
        for number in np.unique(origins[work.inserts]).tolist():
            if number >= 0:
                rows = work.inserts[origins[work.inserts] == number]
                keys = IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)
                found.append(look_up(self._plan, self._slices[number], keys))
        return replace(work, origins=tuple(one for one in found if one is not None))

    def _write_works(self, works: Sequence[FileGroupWork], incoming: Incoming) -> None:
        refuse_unknown(self._plan, incoming, works)
        for work in works:
            self.stats += write_file_group(self._plan, work, incoming)

    def _match(self, slice_: FileSlice, incoming: Incoming, rows: Rows, routing: _Routing) -> SliceMatches | None:
        if not len(rows):
            return None
        if routing.rows is not None and not (routing.rows[rows] == UNKNOWN_ROW).any():
            return _found_before(slice_, rows, routing.rows[rows])
        if self._plan.index.uses_records and incoming.groups is None:
            return match_located(self._plan, incoming, slice_, rows, routing.moved[rows])
        if incoming.groups is not None:
            matches = match_dml_rows(self._plan, incoming, rows, [slice_])
            return matches[0] if matches else None
        keys = IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)
        return look_up(self._plan, slice_, keys)

    def _stale(self, slice_: FileSlice, incoming: Incoming, lost: Rows, moved: Flags) -> Rows:
        """The rows to insert into the slice, among rows whose key it does not hold.

        Raises:
            CommitError: the rows were routed by the slice's stored keys.
        """
        if not self._plan.index.uses_records:
            raise self._lost(slice_, incoming, lost)
        kept = lost[~moved[lost]]
        return kept if incoming.deletes is None else kept[~incoming.deletes[kept]]

    def _unreadable(self, incoming: Incoming) -> CommitError:
        """The error of rows whose slice could not be found, because files could not be read.

        Raises:
            HudiError: the files still cannot be read.
        """
        rows = np.arange(incoming.count, dtype=np.int64)
        if self._plan.index.uses_records:
            locate_rows(self._plan, incoming, rows, "")
        else:
            names = set(incoming.partitions.to_pylist())
            slices = [one for one in self._slices if one.partition in names]
            look_up_all(self._plan, slices, IncomingKeys.of(incoming.key_array(), rows), map)
        return CommitError(
            f"The stored keys of {self._plan.storage.uri} could not be read for {incoming.count} rows and now can. "
            "The table is as before; run the operation again."
        )

    def _lost(self, slice_: FileSlice, incoming: Incoming, rows: Rows) -> CommitError:
        """Spark and the core disagree about a key: fail instead of losing rows."""
        key = incoming.key_array()[int(rows[0])].as_py()
        return CommitError(
            f"{len(rows)} rows were sent to file group {slice_.file_id} of {self._plan.storage.uri}, partition "
            f"{slice_.partition!r}, which does not hold their keys, for example {key!r}. The table is as before; this "
            "is a bug of hudi_fast. hudi_fast.plan=driver avoids the failing code."
        )
