"""THE READ PATH, top to bottom.

::

    plan_scan     state, columns, filter ─► slices that may match (skipping: paths, then the metadata table)
                  ─► is all that the state shows still there?  (a value)
    scan_batches  slices ─► read_slice in threads ─► batches, as they come
    scan_table    slices ─► read_slice in threads ─► one table

Of a merge-on-read table a snapshot sees slices with their log files merged, a read-optimized query the base files.
Memory of :func:`scan_batches` is bounded by the batches and the log records of the slices in flight: reader threads
stop while a few batches wait to be taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import with_meta
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.merging.rules import Merger
from hudi_fast.merging.slice_merge import merge_schema, slice_merge
from hudi_fast.reading.in_threads import in_threads
from hudi_fast.reading.pinned_commits import require_still_there
from hudi_fast.reading.prune import filter_columns
from hudi_fast.reading.skipping.filter_terms import Anything, Condition, parse_filter
from hudi_fast.reading.skipping.select_files import Selection, SkipReport, SkipRequest, select_slices
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.view.slices import FileSlice, TableView, base_slices, latest_slices
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["ScanPlan", "ScanQuery", "check_filter", "plan_scan", "readable_schema", "scan_batches", "scan_table"]


@dataclass(frozen=True)
class ScanPlan:
    """What will be read.

    Attributes:
        scan: what is wanted of every slice.
        slices: the slices that may hold matching rows.
        partitions: how many partitions the table has.
        threads: slices read at once.
        skipping: what the filter left out.
        state: the table.
    """

    scan: SliceScan
    slices: tuple[FileSlice, ...]
    partitions: int
    threads: int
    skipping: SkipReport
    state: TableState


@dataclass(frozen=True)
class ScanQuery:
    """What a query makes of log files and of indexes.

    Attributes:
        read_optimized: leave them out.
        unmerged: show their rows beside those of the base files.
        use_positions: match their records to rows of the base file by position where they say it, not by key.
        merger: the user's function that merges rows of a table whose merge mode is CUSTOM.
        use_indexes: whether the metadata table may say which files a filter cannot match.
        bucket: how record keys are spread over file groups, if the caller knows it.
    """

    read_optimized: bool = False
    unmerged: bool = False
    use_positions: bool = False
    merger: Merger | None = None
    use_indexes: bool = True
    bucket: BucketSettings | None = None


def plan_scan(
    state: TableState,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    threads: int | None = None,
    query: ScanQuery | None = None,
    condition: Condition | None = None,
) -> ScanPlan:
    """Decide what to read.

    Args:
        state: the table, now or as it was.
        columns: columns in the order wanted; None for all, meta columns first.
        filter: which rows.
        threads: slices to read at once; None for one per processor.
        query: what log files mean to the query; None for a snapshot that merges them.
        condition: which of these rows the caller will keep, when that is not the filter: files are left out by it.

    Raises:
        UnsupportedFeatureError: base files that are not Parquet, or a way to merge that is unknown here.
        ConfigError: a column that the table does not have.
        FileGoneError: what the state shows was rolled back or cleaned before its files were listed.
    """
    query = query or ScanQuery()
    if state.config.base_file_format != "PARQUET":
        raise UnsupportedFeatureError(
            f"{state.storage.uri} has base files in {state.config.base_file_format}; only PARQUET is supported."
        )
    full = readable_schema(state)
    if isinstance(columns, str):
        raise ConfigError(f"columns takes a list of names; got the text {columns!r}.")
    twice = sorted({name for name in columns or () if list(columns or ()).count(name) > 1})
    if twice:
        raise ConfigError(f"columns names {twice} more than once.")
    output = full if columns is None else pa.schema([_field(full, name, state) for name in columns])
    if filter is not None and not isinstance(filter, pc.Expression):
        raise ConfigError(f"A filter is a pyarrow.compute expression such as field('id') == 1; got {filter!r}.")
    looked_at = [] if filter is None else filter_columns(filter, full)
    schema = pa.schema([*output, *(full.field(n) for n in looked_at if n not in output.names)])
    if filter is not None:
        check_filter(filter, schema, full.names)
    scan = SliceScan(state.storage, state.config, schema, output, filter)
    if state.config.is_mor and not query.read_optimized:
        merge = slice_merge(state, query.merger, query.use_positions)
        scan = replace(scan, merge=merge, merge_columns=merge_schema(merge, schema, full), unmerged=query.unmerged)
    workers = threads or os.cpu_count() or 1
    request = SkipRequest(
        state,
        full,
        filter,
        condition or (Anything() if filter is None else parse_filter(filter)),
        workers,
        merged=not (query.read_optimized or query.unmerged) or not state.config.is_mor,
        mixes_rows=scan.merge is not None and scan.merge.rules.merger is not None,
        use_indexes=query.use_indexes,
        bucket=query.bucket,
    )
    chosen = _choose(request, base_slices if query.read_optimized else latest_slices)
    return ScanPlan(scan, chosen.slices, chosen.partitions, workers, chosen.report, state)


def _choose(request: SkipRequest, slices_of: Callable[[TableView, str], list[FileSlice]]) -> Selection:
    """The slices that may hold rows that are wanted, if they are what the state shows."""
    view, listed = request.state.view, set[str]()

    def slices_in(partition: str) -> list[FileSlice]:
        listed.add(partition)
        return slices_of(view, partition)

    chosen = select_slices(request, slices_in)
    require_still_there(request.state, listed)
    return chosen


def scan_table(plan: ScanPlan) -> pa.Table:
    """All rows at once, in the order of the plan's slices."""
    with ThreadPoolExecutor(plan.threads) as pool:
        parts = pool.map(lambda one: list(read_slice(plan.scan, one)), plan.slices)
        return pa.Table.from_batches([batch for part in parts for batch in part], plan.scan.output)


def scan_batches(plan: ScanPlan) -> pa.RecordBatchReader:
    """All rows as a stream, in no particular order."""
    batches = in_threads(plan.slices, lambda one: read_slice(plan.scan, one), plan.threads)
    return pa.RecordBatchReader.from_batches(plan.scan.output, batches)


def readable_schema(state: TableState) -> pa.Schema:
    """The meta columns, then the data columns; a table that does not fill its meta columns does not show them."""
    data = table_schema(state) or pa.schema([])
    return with_meta(data) if state.config.populate_meta_fields else data


def _field(schema: pa.Schema, name: str, state: TableState) -> pa.Field:
    if name not in schema.names:
        raise ConfigError(f"{state.storage.uri} has no column {name!r}; it has {schema.names}.")
    return schema.field(name)


def check_filter(filter_: pc.Expression, schema: pa.Schema, columns: Sequence[str]) -> None:
    """Refuse a filter that does not fit.

    Args:
        filter_: which rows.
        schema: columns that it may name.
        columns: of the table, for the message.

    Raises:
        ConfigError: an unknown column, types that do not go together, or an expression that is no condition.
    """
    try:
        schema.empty_table().filter(filter_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error)
        if reason.startswith("No match for"):  # goes on with the whole schema
            reason = f"{reason.partition(' in ')[0]}; the table has {list(columns)}."
        raise ConfigError(f"The filter {filter_} does not fit the table: {reason}") from error
