"""The difference between two states of a table: inserted, updated and deleted rows. It needs no change log.

::

    state before ─► file slices ─┐                           ┌─ the same key and values on both sides ─► no difference
                                 ├─ slices of one side, by ──┼─ a key of one side ────────────────────► insert, delete
    state after ──► file slices ─┘  partition: their rows    └─ a key with other values ──────────────► both rows

Slices that both states have are not read, so the cost depends on the file groups that were written in between. Rows
that a compaction or a clustering only moved are on both sides and no difference. A row is known by its partition path
and its record key; a row that moves to another partition is a delete and an insert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.moments import Moment, normalise_instant, timeline_zone
from hudi_fast.config.read_options import EARLIEST, query_time
from hudi_fast.errors import ConfigError
from hudi_fast.formats.avro.schema import without_meta
from hudi_fast.formats.varlen import gather, single_chunk
from hudi_fast.keys.key_generator import KeyConfig, record_keys
from hudi_fast.merging.rules import RECORD_KEY, stored_key_config
from hudi_fast.reading.incremental.cdc_units import images
from hudi_fast.reading.scan import Filter, ScanPlan, ScanQuery, check_filter, expression_of, in_threads, plan_scan
from hudi_fast.reading.shown_columns import ShownColumns, shown_columns
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import told_while_read
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE
from hudi_fast.view.slices import FileSlice

__all__ = ["CHANGE", "DiffPlan", "diff_batches", "plan_diff"]

CHANGE = "change"
"""The first column of a difference: ``insert``, ``delete``, ``update_before`` or ``update_after``."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DiffPlan:
    """The plan of a difference.

    Attributes:
        parts: for each partition that changed, the slices to read of both states.
        before: how rows of the earlier state are read: in the columns of the later one.
        after: how rows of the later state are read.
        keys: how record keys are computed; None for a table whose rows store them.
        data: the data columns.
        schema: all columns of a difference: its kind, and those of the later state.
    """

    storage: Storage
    parts: tuple[tuple[tuple[FileSlice, ...], tuple[FileSlice, ...]], ...]
    before: SliceScan
    after: SliceScan
    keys: KeyConfig | None
    data: list[str]
    schema: pa.Schema
    threads: int


def plan_diff(storage: Storage, begin: Moment, end: Moment | None, query: ScanQuery) -> DiffPlan:
    """Plan the difference between the states at two times.

    Args:
        storage: the table's storage.
        begin: time of the earlier state, as of time travel; ``earliest`` for a table without rows.
        end: time of the later state; None for now.
        query: how rows are merged.

    Raises:
        ConfigError: ``end`` is before ``begin``, a state is not available, or a column of the table is named
            ``change``.
        UnsupportedFeatureError: the rows of the table have no keys.
    """
    zone = timeline_zone(storage)
    first = query_time(begin, "begin", zone)
    last = None if end is None else normalise_instant(end, "end", zone)
    if last is not None and last < first:
        raise ConfigError(f"A difference goes from the earlier time to the later one; got {first} and {last}.")
    now = plan_scan(state_for_query(storage, last), query=query)
    if CHANGE in now.output.names:
        raise ConfigError(f"{storage.uri} has a column {CHANGE!r}, which is the first column of a difference.")
    then = () if first == EARLIEST else plan_scan(state_for_query(storage, first), [], query=query).slices
    return DiffPlan(
        storage,
        _changed(then, now),
        _as_of(now.scan, first),
        now.scan,
        stored_key_config(now.state.config),
        without_meta(now.output).names,
        pa.schema([pa.field(CHANGE, pa.string(), nullable=False), *now.output]),
        now.threads,
    )


def _as_of(scan: SliceScan, moment: str) -> SliceScan:
    """The scan at an earlier time."""
    return scan if scan.merge is None else replace(scan, merge=replace(scan.merge, as_of=moment))


def _changed(
    then: Sequence[FileSlice], now: ScanPlan
) -> tuple[tuple[tuple[FileSlice, ...], tuple[FileSlice, ...]], ...]:
    """The slices of each partition that only one state has, or that may have changed."""
    may_grow = now.state.config.version < LOGS_NAMED_BY_WRITE  # a write may append to a log file of its slice
    same = {one for one in {*then} & {*now.slices} if not (may_grow and one.log_files)}
    parts: dict[str, tuple[list[FileSlice], list[FileSlice]]] = {}
    for side, slices in enumerate((then, now.slices)):
        for one in slices:
            if one not in same:
                parts.setdefault(one.partition, ([], []))[side].append(one)
    return tuple((tuple(before), tuple(after)) for _, (before, after) in sorted(parts.items()))


def diff_batches(
    plan: DiffPlan, columns: Sequence[str] | None = None, filter: Filter | None = None
) -> pa.RecordBatchReader:
    """The differences, partition by partition; the two rows of an update follow each other.

    Memory holds the rows of the changed slices of the partitions in flight.

    Args:
        plan: plan of the difference.
        columns: columns of the result, in this order; None for the kind of change and the data columns.
        filter: condition of the differences.

    Raises:
        ConfigError: an unknown column, or a filter that does not fit.
    """
    condition = expression_of(filter, plan.schema)
    if condition is not None:
        check_filter(condition, plan.schema, plan.schema.names)
    shown = shown_columns([CHANGE, *plan.data] if columns is None else columns, plan.schema, "A difference")

    def read(part: tuple[tuple[FileSlice, ...], tuple[FileSlice, ...]]) -> Iterator[pa.RecordBatch]:
        rows = _differences(plan, *part)
        yield from _finished(rows if condition is None else rows.filter(condition), shown).to_batches()

    batches = in_threads(plan.parts, read, plan.threads)
    return pa.RecordBatchReader.from_batches(shown.schema, told_while_read(batches, plan.storage.uri))


def _finished(rows: pa.Table, shown: ShownColumns) -> pa.Table:
    return rows.select(shown.roots) if shown.is_plain else shown.apply(rows)


def _differences(plan: DiffPlan, before: Sequence[FileSlice], after: Sequence[FileSlice]) -> pa.Table:
    """The differences of one partition, in :attr:`DiffPlan.schema`."""
    sides = [_rows(plan, scan, slices) for scan, slices in ((plan.before, before), (plan.after, after))]
    keys, values = _numbered(plan, sides)
    left = [np.arange(side.num_rows) for side in sides]
    width = int(values[0].max(initial=-1).item()) + int(values[1].max(initial=-1).item()) + 2
    for numbers in ([key * width + value for key, value in zip(keys, values, strict=True)], keys):
        pairs = _pairs(*(one[rows] for one, rows in zip(numbers, left, strict=True)))
        updated = [rows[pair] for rows, pair in zip(left, pairs, strict=True)]
        left = [np.delete(rows, pair) for rows, pair in zip(left, pairs, strict=True)]
    deleted, inserted = left
    parts = [
        _labelled("insert", gather(sides[1], inserted)),
        _labelled("update_before", gather(sides[0], updated[0])),
        _labelled("update_after", gather(sides[1], updated[1])),
        _labelled("delete", gather(sides[0], deleted)),
    ]
    found, first, count = pa.concat_tables(parts).cast(plan.schema), len(inserted), len(updated[0])
    order = np.arange(found.num_rows)
    order[first : first + 2 * count] = first + np.arange(2 * count).reshape(2, count).T.ravel()
    return gather(found.combine_chunks(), order)


def _rows(plan: DiffPlan, scan: SliceScan, slices: Sequence[FileSlice]) -> pa.Table:
    batches = [batch for one in slices for batch in read_slice(scan, one)]
    return pa.Table.from_batches(batches, scan.output).combine_chunks()


def _numbered(plan: DiffPlan, sides: Sequence[pa.Table]) -> tuple[list[Numbers], list[Numbers]]:
    """Numbers for the keys and for the values of the rows of both sides: equal ones have equal numbers."""
    keys = [rows.column(RECORD_KEY) if plan.keys is None else record_keys(plan.keys, rows) for rows in sides]
    values = [pa.chunked_array(images(rows.select(plan.data)) if rows.num_rows else [], pa.string()) for rows in sides]
    return _codes(keys), _codes(values)


def _codes(texts: Sequence[pa.Array | pa.ChunkedArray]) -> list[Numbers]:
    counts = [len(one) for one in texts]
    chunks = [chunk for one in texts for chunk in (one.chunks if isinstance(one, pa.ChunkedArray) else [one])]
    encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode().combine_chunks()
    codes = single_chunk(encoded).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return [codes[: counts[0]], codes[counts[0] :]]


def _pairs(before: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
    """Positions of equal numbers on both sides, each position once: the n-th of a number belongs to the n-th."""
    ranked = [_ranked(one) for one in (before, after)]
    limit = max((int(rank.max(initial=0)) for rank in ranked), default=0) + 1
    _, first, second = np.intersect1d(
        before * limit + ranked[0], after * limit + ranked[1], assume_unique=True, return_indices=True
    )
    return first, second


def _ranked(numbers: Numbers) -> Numbers:
    """For each number, how many equal ones come before it."""
    order = np.argsort(numbers, kind="stable")
    begins = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    lengths = np.diff(begins, append=len(numbers))
    ranks = np.empty(len(numbers), dtype=np.int64)
    ranks[order] = np.arange(len(numbers)) - np.repeat(begins, lengths)
    return ranks


def _labelled(change: str, rows: pa.Table) -> pa.Table:
    return rows.add_column(0, CHANGE, pa.repeat(pa.scalar(change), rows.num_rows))
