"""The task of the routed plan: one file group after another.

Rows arrive sorted by bucket. A bucket holds the rows of one file group: updates of its slice, and the inserts that the
workload profile assigns to it. Memory holds one bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_fast.merging.freed_memory import return_freed_memory
from hudi_fast.merging.row_buffer import CollectedRows, RowBuffer, write_failure
from hudi_fast.spark.writing.tasks import Answer, cut_runs, task_token
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.prepare import spooled_form
from hudi_fast.writing.routed_rows import BUCKET, BucketWriter
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["write_buckets"]


def write_buckets(
    plan: WritePlan, slices: Sequence[FileSlice], uncounted: int | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """The task's function.

    Args:
        plan: the write.
        slices: slices of the table, in the order of the numbers in the column :data:`SLICE`. The bucket of a slice has
            the same number; other buckets are new file groups.
        uncounted: buckets from this number on hold all rows of partitions that the profile lacks. Their keys were not
            looked up among ``slices``. None without such buckets.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        task = BucketWriter(plan, slices, uncounted, task_token())
        for bucket, collected in _by_bucket(plan, batches):
            count = collected.table.num_rows
            task.write(bucket, collected)
            del collected  # before the rows of the next bucket are read
            return_freed_memory(count)
        return Answer(task.stats, frozenset(stat.partition_path for stat in task.stats))

    return work


def _by_bucket(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, CollectedRows]]:
    current: int | None = None
    with RowBuffer(partial(write_failure, plan.storage.uri), partial(spooled_form, plan)) as buffer:
        for batch in batches:
            numbers = np.asarray(batch.column(batch.schema.get_field_index(BUCKET)))
            for start, end in cut_runs(numbers):
                number = int(numbers[start])
                if current is not None and number != current and (rows := buffer.take()) is not None:
                    yield current, rows
                    del rows
                current = number
                buffer.add(batch.slice(start, end - start))
        if current is not None and (rows := buffer.take()) is not None:
            yield current, rows
