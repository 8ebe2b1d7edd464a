"""Counts and first rows of a scan, without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.reading.scan import ScanPlan
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice

__all__ = ["count_rows", "first_batches", "first_rows"]

_FEWEST = 1024
"""Minimum rows of a batch: smaller batches cost more than reading the additional rows."""


def count_rows(plan: ScanPlan) -> int:
    """The number of rows of a scan.

    Without a filter, the rows of a slice that no log file changes are counted from the footer of its base file, and no
    column is decoded. Other slices are read with the columns that the filter and merging need.

    Args:
        plan: the plan of a scan without output columns.
    """
    with ThreadPool(plan.threads) as pool:
        return sum(pool.map(lambda one: _count(plan.scan, one), plan.slices))


def first_rows(plan: ScanPlan, count: int) -> pa.Table:
    """The first rows in the order of the plan's slices; reading stops after them.

    Args:
        plan: the plan of a scan.
        count: number of rows.

    Raises:
        ConfigError: ``count`` is not a number, or negative.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ConfigError(f"head takes a number of rows, 0 or more; got {count!r}.")
    return pa.Table.from_batches(first_batches(plan, count), plan.output)


def first_batches(plan: ScanPlan, count: int) -> Iterator[pa.RecordBatch]:
    """Like :func:`first_rows`, as a stream."""
    plan = replace(plan, scan=replace(plan.scan, batch_rows=max(_FEWEST, min(count, plan.scan.batch_rows))))
    batches = chain.from_iterable(map(plan.read, plan.slices))
    while count and (batch := next(batches, None)) is not None:
        yield batch.slice(0, count)
        count -= min(count, batch.num_rows)


def _count(scan: SliceScan, one: FileSlice) -> int:
    if scan.filter is None and one.base_file is not None and not _is_merged(scan, one):
        with open_base(scan.storage, one.base_file) as reader:
            return reader.num_rows
    return sum(batch.num_rows for batch in read_slice(scan, one))


def _is_merged(scan: SliceScan, one: FileSlice) -> bool:
    """Whether log files may change the rows of the base file."""
    return scan.merge is not None and bool(one.log_files) and bool(visible_blocks(scan.merge, one))
