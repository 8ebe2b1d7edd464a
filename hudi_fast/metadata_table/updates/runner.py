"""Read sources and write their records, group by group: in threads here, as tasks in spark/metadata.py.

::

    sources ─ read ─► EncodedRecords ─ route ─► by (partition, group) ─► sorted by key, one per key ─► GroupWriter
                                                  └ above a memory budget: on local disk (record_bins.py)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import single_chunk
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.gather import gather_array
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, RecordSource
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Bin, Entries, GroupBins
from hudi_fast.storage.concurrency import MAX_FAR, heaviest_first, in_threads, is_little, units_at_once
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = [
    "GroupVisitor",
    "GroupWriter",
    "MapGroups",
    "Router",
    "WriteRecords",
    "routed",
    "run_in_threads",
    "visit_in_order",
]


class Router(Protocol):
    """Sends records to the file groups of metadata partitions; picklable."""

    @property
    def schema(self) -> str:
        """Avro JSON of the values."""
        ...

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """int32[n]: the file group (position among the groups of the partition) of each record."""
        ...


class GroupWriter(Router, Protocol):
    """Writes the records of one file group of a metadata partition."""

    def write(self, partition: str, group: int, entries: Iterable[Entries]) -> WriteStat:
        """Write keys (string[n], ascending by bytes, distinct) and values (binary[n], null for a delete), in pieces."""
        ...


class GroupVisitor(Router, Protocol):
    """Computes a result from the records of each file group, one group after another, without writing files."""

    @property
    def groups(self) -> Sequence[Bin]:
        """Groups to visit even if they get no records."""
        ...

    def visit(self, partition: str, group: int, entries: Iterable[Entries]) -> Any:
        """The result for one group, picklable. Entries are in any order, and keys may repeat."""
        ...


WriteRecords: TypeAlias = Callable[[Sequence[RecordSource], GroupWriter], list[WriteStat]]
"""Reads all sources and writes their records; one stat for each file group that received records."""

MapGroups: TypeAlias = Callable[[Sequence[Any], Sequence[int], Callable[[Any], WriteStat]], list[WriteStat]]
"""Applies a function to file groups, each with the bytes to read for it; one stat for each, in any order."""


def run_in_threads(
    sources: Sequence[RecordSource], writer: GroupWriter, threads: int = 2, is_local: bool = False
) -> list[WriteStat]:
    """Read sources and write their records in threads of this process.

    Args:
        sources: sources of the records.
        writer: writes the records.
        threads: number of threads.
        is_local: whether files are on local disk, so that one thread is best for a few records.
    """
    with GroupBins() as bins:
        weights = [one.weight for one in sources]
        readers = 1 if is_little(is_local, weights) else threads
        heaviest_first(weights, lambda number: _collect(sources[number], writer, bins), readers)
        names = bins.names()
        writers = 1 if is_little(is_local, [bins.nbytes]) else threads
        if not is_local:  # a log file takes one or two requests, so its thread mostly waits
            writers = units_at_once([bins.nbytes / len(names)] * len(names), threads, MAX_FAR) if names else 1
        return in_threads(lambda one: writer.write(one[0], one[1], bins.take(one)), names, writers)


def visit_in_order(sources: Sequence[RecordSource], visitor: GroupVisitor, threads: int = 2) -> Iterator[Any]:
    """Read sources in threads of this process, then visit the groups, one at a time."""
    with GroupBins(ordered=False) as bins:
        in_threads(lambda source: _collect(source, visitor, bins), sources, threads)
        for name in sorted({*bins.names(), *visitor.groups}):
            yield visitor.visit(*name, bins.take(name))


def routed(records: EncodedRecords, writer: Router) -> Iterator[tuple[int, pa.Table]]:
    """Records by file group, as tables of :data:`RECORDS`."""
    groups = writer.route(records)
    if not len(groups):
        return
    order, bounds = group_rows(groups, int(groups.max()) + 1)
    keys, values = single_chunk(records.keys), single_chunk(records.values)
    for group in np.flatnonzero(np.diff(bounds)):
        rows = order[bounds[group] : bounds[group + 1]].astype(np.int64)
        columns = [gather_array(keys, rows), gather_array(values, rows)]
        yield int(group), pa.Table.from_arrays(columns, schema=RECORDS)


def _collect(source: RecordSource, writer: Router, bins: GroupBins) -> None:
    for records in source.read(writer.schema):
        for group, table in routed(records, writer):
            bins.put((str(records.partition), group), table)
