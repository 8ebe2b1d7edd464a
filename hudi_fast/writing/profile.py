"""Workload profile: the incoming rows of each partition, and the files that take its inserts.

::

    incoming rows per partition ─┬─ :func:`load_factor`: can tasks that own whole partitions share the work evenly?
                                 └─ :func:`insert_files`: rows of a partition ─► small files, then new files

A profile influences the number and size of files and the balance of tasks. It never influences which rows are written:
a write with a wrong profile is correct.

Source: ``WorkloadProfile`` and ``UpsertPartitioner`` (Hudi 1.2.0).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_fast.config.file_options import SizingOptions
from hudi_fast.formats.parquet.base_file import ParquetStream
from hudi_fast.formats.parquet.leaf_columns import dictionary_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.assign import SmallFile, assign_inserts, files_to_fill, max_files
from hudi_fast.writing.output_file import COMMIT_SEQNO, COMMIT_TIME, CONSTANT_META, RECORD_KEY, new_rows, writer_schema
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys
from hudi_fast.writing.write_plan import FileGroupWork, TaskToken, WritePlan

__all__ = [
    "InsertFiles",
    "WorkloadProfile",
    "bulk_parts",
    "encoded_row_size",
    "insert_files",
    "load_factor",
    "may_need_row_size",
    "needs_row_size",
    "rows_to_encode",
    "sizing_of",
    "with_measured_row_size",
    "with_row_size",
]

_FILLING = frozenset({"upsert", "insert"})
_SAMPLE_INSTANT = "0" * 17
_ROWS_WORTH_A_FILE = 100_000
_FEWEST_ENCODED, _MAX_ENCODED, _ENCODED_BYTES = 2000, 20_000, 128 << 20


@dataclass(frozen=True, slots=True)
class WorkloadProfile:
    """The incoming rows of a write.

    Attributes:
        rows: number of rows by partition path; rows without a valid path are not counted.
        row_bytes: average Arrow size of a row.
        new_share: share of rows with a new key, by partition path, where it was estimated; in other partitions all rows
            count as new.
        inputs: number of tasks that compute the rows; 0 if unknown.
    """

    rows: Mapping[str, int]
    row_bytes: int
    new_share: Mapping[str, float]
    inputs: int = 0

    @property
    def total(self) -> int:
        """Number of rows."""
        return sum(self.rows.values())

    @property
    def total_bytes(self) -> int:
        """Arrow size of all rows."""
        return self.total * self.row_bytes

    @property
    def largest(self) -> int:
        """Number of rows of the largest partition."""
        return max(self.rows.values(), default=0)

    def inserts(self, partition: str) -> int:
        """Estimated number of rows with a new key."""
        return math.ceil(self.rows[partition] * self.new_share.get(partition, 1.0))


@dataclass(frozen=True, slots=True)
class InsertFiles:
    """The files of one partition that take its inserts.

    Attributes:
        filled: (number of the slice, rows) of each small file.
        new: rows of each new file group: all are full but the last one.
    """

    filled: tuple[tuple[int, int], ...]
    new: tuple[int, ...]

    @property
    def new_files(self) -> int:
        """Number of new file groups."""
        return len(self.new)

    @property
    def rows(self) -> int:
        """Rows of the new file groups."""
        return sum(self.new)

    @property
    def filled_share(self) -> float:
        """Share of the inserts that small files take; 1 without new files."""
        taken = sum(count for _, count in self.filled)
        return 1.0 if not self.new_files else taken / (taken + self.rows)


def load_factor(weights: Iterable[int], workers: int) -> float:
    """Load of the busiest worker relative to an even share, if each weight is executed by one worker.

    Args:
        weights: of the units; each unit is given to the least busy worker, the heaviest unit first.
        workers: number of workers, at least 1.

    Returns:
        1.0 for an even share, at most ``workers``.
    """
    loads = [0] * workers
    for weight in sorted(weights, reverse=True):
        heapq.heapreplace(loads, loads[0] + weight)
    total = sum(loads)
    return max(loads) * workers / total if total else 1.0


def insert_files(plan: WritePlan, partition: str, slices: Sequence[tuple[int, FileSlice]], inserts: int) -> InsertFiles:
    """The files for ``inserts`` rows of a partition, by the sizing rules of :mod:`hudi_fast.writing.assign`.

    Args:
        plan: the write.
        partition: partition path.
        slices: (number, slice) of the partition's newest slices.
        inserts: number of rows; at least one file results, because the number may be an estimate.
    """
    numbers = {one.file_id: number for number, one in slices}
    fill = files_to_fill(plan, partition, [one for _, one in slices]) if plan.operation in _FILLING else []
    small = [SmallFile(one.file_id, one.base_file.size) for one in fill if one.base_file is not None]
    assigned = assign_inserts(max(1, inserts), small, plan.files.average_record_size, sizing_of(plan))
    filled = tuple((numbers[one.file_id], one.count) for one in assigned if one.file_id is not None)
    return InsertFiles(filled, tuple(one.count for one in assigned if one.file_id is None))


def sizing_of(plan: WritePlan) -> SizingOptions:
    """The settings for new files. Files of a bulk_insert end by size alone, as they do while they are written."""
    sizing = plan.files.sizing
    return replace(sizing, auto_split=True) if plan.operation == "bulk_insert" else sizing


def bulk_parts(plan: WritePlan, rows: int, wanted: int) -> list[int]:
    """The number of rows of each file of one partition in a bulk_insert: ``wanted`` files, if sizes allow as many.

    Args:
        plan: the write.
        rows: of the partition, at least one.
        wanted: number of files that keeps all threads busy.
    """
    new = insert_files(plan, "", [], rows).new
    count = min(wanted, rows // _ROWS_WORTH_A_FILE, max_files(len(new), 1))
    if count <= len(new):
        return list(new)
    return [rows * (number + 1) // count - rows * number // count for number in range(count)]


def needs_row_size(plan: WritePlan, largest: int) -> bool:
    """Whether the number of files depends on the size of a stored row, which neither commits nor options give.

    Args:
        plan: the write.
        largest: number of rows of the largest partition.
    """
    if not may_need_row_size(plan):
        return False
    return largest * plan.files.sizing.record_size_estimate > plan.files.sizing.max_file_size


def may_need_row_size(plan: WritePlan) -> bool:
    """Whether :func:`needs_row_size` depends on the number of rows."""
    sizing = sizing_of(plan)
    known = plan.files.average_record_size != sizing.record_size_estimate or plan.files.record_size_is_given
    sized = plan.operation not in ("delete", "delete_partition") and plan.index.bucket is None
    return sized and not known and sizing.auto_split and plan.partial is None


def encoded_row_size(plan: WritePlan, sample: pa.Table) -> float:
    """Bytes that a row takes in a base file, measured on a sample.

    Args:
        plan: the write.
        sample: incoming rows, at least one.

    Raises:
        InvalidDataError: the rows cannot be written.
    """
    plan = replace(plan, instant=_SAMPLE_INSTANT)
    incoming = with_auto_keys(plan, prepare_rows(plan, sample), task=0)
    rows, none = np.arange(incoming.count, dtype=np.int64), np.zeros(0, dtype=np.int64)
    partition = incoming.partitions[0].as_py()
    work = FileGroupWork(partition, "sample-0", None, none, none, None, rows, TaskToken(0))
    table = new_rows(plan, work, incoming, rows, "sample-0", 0)
    sink = pa.BufferOutputStream()
    chosen = dictionary_columns(table, [COMMIT_TIME, *CONSTANT_META], [RECORD_KEY, COMMIT_SEQNO])
    stream = ParquetStream(sink, writer_schema(plan), plan.files.parquet, chosen)
    stream.write(table)
    encoded = sink.tell()  # without the footer
    stream.close({})
    return float(max(1.0, encoded / table.num_rows))


def with_row_size(plan: WritePlan, row_size: float) -> WritePlan:
    """The plan with another average size of stored rows, in bytes."""
    return replace(plan, files=replace(plan.files, average_record_size=math.ceil(row_size)))


def rows_to_encode(row_bytes: int) -> int:
    """The number of rows to encode when their size in a base file is measured: fewer if rows are wide.

    Args:
        row_bytes: Arrow size of a row, at least 1.
    """
    return min(_MAX_ENCODED, max(_FEWEST_ENCODED, _ENCODED_BYTES // row_bytes))


def with_measured_row_size(plan: WritePlan, largest: int, rows: pa.Table) -> WritePlan:
    """The plan with the average size of stored rows, measured on the first rows when unknown.

    Args:
        plan: the write.
        largest: number of rows of the largest partition.
        rows: incoming rows that may be new.
    """
    if not rows.num_rows or not needs_row_size(plan, largest):
        return plan
    first = rows.slice(0, rows_to_encode(max(1, rows.nbytes // rows.num_rows)))
    return with_row_size(plan, encoded_row_size(plan, first))
