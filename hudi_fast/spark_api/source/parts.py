"""The work of one read task, file slices of a scan or changes, as picklable values.

::

    ScanPlan ─► slices divided by weight ─► SlicesPart ──┐
    CdcPlan  ─► units divided by number  ─► ChangesPart ─┴─► part_batches ─► Arrow batches in Spark's types
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_fast.reading.incremental.cdc import CdcPlan, read_changes
from hudi_fast.reading.scan import ScanPlan
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.spark.table_types import as_spark
from hudi_fast.spark.writing.routing import pack_bins
from hudi_fast.view.slices import FileSlice

__all__ = ["ChangesPart", "Part", "SlicesPart", "changes_parts", "part_batches", "slices_parts"]

_PART_BYTES = 32 << 20
_PARTS_PER_CORE = 2


@dataclass(frozen=True)
class SlicesPart:
    """Slices to read.

    Attributes:
        scan: columns and filter for each slice.
        slices: of this part.
    """

    scan: SliceScan
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True)
class ChangesPart:
    """Changes to read.

    Attributes:
        plan: with only the units of this part.
    """

    plan: CdcPlan


Part = SlicesPart | ChangesPart


def slices_parts(plan: ScanPlan) -> list[Part]:
    """Divide the slices of a plan: one part per 32 MiB, but several per processor if there are enough slices."""
    slices = [one for one in plan.slices if one.base_file is not None or plan.scan.merge is not None]
    if not slices:
        return []
    wanted = max(_PARTS_PER_CORE * (os.cpu_count() or 1), sum(one.weight for one in slices) // _PART_BYTES)
    bins = _dealt([one.weight for one in slices], wanted)
    return [SlicesPart(plan.scan, tuple(slices[number] for number in each)) for each in bins]


def changes_parts(plan: CdcPlan) -> list[Part]:
    """Divide the units of a plan."""
    bins = _dealt([1] * len(plan.units), _PARTS_PER_CORE * (os.cpu_count() or 1))
    return [ChangesPart(replace(plan, units=tuple(plan.units[number] for number in each))) for each in bins]


def part_batches(part: Part | None, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a part; no rows for None.

    Args:
        part: slices or changes.
        target: columns in Spark's types.
    """
    if part is None:
        return
    for batch in _read(part):
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays(as_spark(batch, target), schema=target)


def _read(part: Part) -> Iterator[pa.RecordBatch]:
    if isinstance(part, ChangesPart):
        for unit in part.plan.units:
            yield from read_changes(part.plan, unit)
        return
    for one in part.slices:
        yield from read_slice(part.scan, one)


def _dealt(weights: Sequence[int], parts: int) -> list[list[int]]:
    parts = min(len(weights), parts)
    bins: list[list[Any]] = [[] for _ in range(parts)]
    for number, bin_ in pack_bins({f"{number:09}": weight for number, weight in enumerate(weights)}, parts).items():
        bins[bin_].append(int(number))
    return bins
