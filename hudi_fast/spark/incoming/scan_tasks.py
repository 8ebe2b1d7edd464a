"""Spark tasks that read the files of a scan: a DataFrame of their numbers, and functions from numbers to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.spark.incoming.file_scan import FileScan

__all__ = ["ScanTasks", "rows_in_tasks"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ScanTasks:
    """The rows of a scan, in tasks.

    Attributes:
        numbers: a DataFrame with the number of each task, in a partition of its own.
        files: the scan.
        count: number of tasks.
    """

    numbers: Any
    files: FileScan
    count: int

    def reading(self, work: Callable[[Iterator[pa.RecordBatch]], Result]) -> Callable[[Iterable[Any]], Result]:
        """A function over batches of :attr:`numbers`, from a function over batches of rows."""
        files, count = self.files, self.count

        def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from files.read(files.in_tasks(count)[number])

        return lambda batches: work(rows(batches))


def rows_in_tasks(spark: Any, files: FileScan, tasks: int) -> ScanTasks:
    """The rows of a scan.

    Args:
        spark: the session.
        files: the scan.
        tasks: maximum number of tasks.
    """
    count = len(files.in_tasks(tasks))
    return ScanTasks(spark.range(count, numPartitions=count), files, count)
