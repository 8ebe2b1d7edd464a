"""The read path, top to bottom, and its threads.

::

    whole_scan    state ─► how its slices are read, with all columns and rows
    asked_rows    columns, filter ─► the same for these columns and rows
    plan_scan     state, columns, filter ─► slices that may match (skipping: paths, then the metadata table)
                  ─► check that the state is still complete  (a value)
    narrowed      a plan and one more condition ─► its slices that may match
    scan_batches  slices ─► read_slice in threads ─► batches, as they become available
    scan_table    slices ─► read_slice in threads ─► one table

A snapshot query of a merge-on-read table merges the log files of each slice; a read-optimized query reads base files
only. Memory of :func:`scan_batches` is bounded by the batches and log records of the slices in flight: reader threads
block while the queue of batches is full.

Read units in threads of this process and yield their batches as they become available.

Memory is bounded by the units in flight and a few queued batches: reader threads block while the queue is full.

::

    iterator is read to its end, or closed ─► its threads have ended
    process ends before that               ─► :func:`_close_all` ends them, before the interpreter does, and a thread
                                              that waits for their batches gets an error

The interpreter ends a daemon thread when the thread next wants its lock. A thread that is inside a C++ library then
unwinds frames that must not be unwound, and the process aborts (``terminate called without an active exception``).
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.errors import ConfigError, FileGoneError
from hudi_fast.events import phase
from hudi_fast.expressions.arrow_filters import RowFilter
from hudi_fast.expressions.conditions import Anything, Condition
from hudi_fast.formats.avro.schema import OPERATION_FIELD, with_meta
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.merging.rules import Merger, merge_schema, slice_merge
from hudi_fast.reading.prune import path_columns
from hudi_fast.reading.shown_columns import ShownColumns, shown_columns
from hudi_fast.reading.skipping.keys import bucket_settings
from hudi_fast.reading.skipping.select_files import Selection, SkipReport, SkipRequest, narrow_slices, select_slices
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.storage.concurrency import reads_at_once
from hudi_fast.storage.failures import told_while_read
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.lost_files import cleaned_since
from hudi_fast.view.slices import FileSlice, TableView, base_slices, latest_slices
from hudi_fast.view.table_state import TableState, table_schema

__all__ = [
    "AskedRows",
    "Filter",
    "ScanPlan",
    "ScanQuery",
    "asked_rows",
    "check_filter",
    "expression_of",
    "filter_of",
    "in_threads",
    "narrowed",
    "plan_scan",
    "readable_schema",
    "require_files_present",
    "scan_batches",
    "scan_table",
    "whole_scan",
]

_WAITING_BATCHES = 2
_JOIN_SECONDS = 0.01
_EXIT_SECONDS = 30.0
"""The process waits at most this long at its end for batches being read: storage may not answer."""

_ENDED = "The process ends while rows are read."

Unit = TypeVar("Unit")
Read = Callable[[Unit], Iterator[pa.RecordBatch]]


def in_threads(units: Sequence[Unit], read: Read[Unit], threads: int) -> Iterator[pa.RecordBatch]:
    """The batches of all units, in no particular order; in order with one thread.

    Several threads call ``read`` concurrently. An error in a thread is raised here. Threads end when the iterator is
    closed or the process ends.
    """
    readers = _Readers(units, read, min(threads, len(units))) if threads > 1 and len(units) > 1 else None
    if readers is None or not readers.begin():
        for unit in units:
            yield from read(unit)
        return
    _open.add(readers)
    atexit.unregister(_close_all)
    atexit.register(_close_all)  # runs before earlier registrations: libraries must not shut down while threads read
    try:
        yield from readers.batches()
    finally:
        readers.close()
        _open.discard(readers)


class _Readers(Generic[Unit]):
    """Threads that read units, and the batches that wait for the caller.

    Args:
        units: units to read.
        read: reads one unit.
        count: number of threads.
    """

    def __init__(self, units: Sequence[Unit], read: Read[Unit], count: int) -> None:
        self._read = read
        self._ready: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_WAITING_BATCHES * count)
        self._is_awaited = False
        self._todo: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        self._stopped = threading.Event()
        for unit in units:
            self._todo.put(unit)
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def begin(self) -> bool:
        """Start the threads; False if the interpreter is ending and starts no more threads (since Python 3.12)."""
        for thread in self._threads:
            try:
                thread.start()
            except RuntimeError:
                if thread is self._threads[0]:
                    return False
                raise
        return True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches that the threads read."""
        running = len(self._threads)
        while running:
            self._is_awaited = True
            item = self._ready.get()
            self._is_awaited = False
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
        if self._stopped.is_set():
            raise RuntimeError(_ENDED)

    def close(self, seconds: float = float("inf")) -> None:
        """End the threads, after waiting up to ``seconds`` for the batches that they are reading."""
        deadline = time.monotonic() + seconds
        self._stopped.set()
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                self._drain()
                thread.join(_JOIN_SECONDS)

    def give_up(self, seconds: float) -> None:
        """End the threads before the interpreter ends.

        Another library may wait for a batch in a thread of its own, which has to leave Python, too.
        """
        deadline = time.monotonic() + seconds
        self.close(seconds)
        while self._is_awaited and time.monotonic() < deadline:
            if self._ready.empty():
                self._ready.put_nowait(RuntimeError(_ENDED))
            time.sleep(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                for batch in self._read(self._todo.get_nowait()):
                    self._ready.put(batch)
                    if self._stopped.is_set():
                        return
        except queue.Empty:
            pass
        except BaseException as error:  # raised by in_threads
            self._ready.put(error)
        self._ready.put(None)

    def _drain(self) -> None:
        try:
            while True:
                self._ready.get_nowait()
        except queue.Empty:
            return


_open: set[_Readers[Any]] = set()
"""Readers whose iterator is neither exhausted nor closed."""


def _close_all() -> None:
    deadline = time.monotonic() + _EXIT_SECONDS
    for readers in list(_open):
        readers.give_up(deadline - time.monotonic())


Filter: TypeAlias = pc.Expression | str
"""A condition of rows: a ``pyarrow.compute`` expression, or SQL text as after ``WHERE``."""


@dataclass(frozen=True)
class AskedRows:
    """Columns and rows of a query, and how any slice of the table is read for them. Picklable.

    Attributes:
        shown: how the result follows from the columns that are read; None if these are the result.
    """

    scan: SliceScan
    shown: ShownColumns | None

    @property
    def output(self) -> pa.Schema:
        """The columns of the result."""
        return self.scan.output if self.shown is None else self.shown.schema

    def read(self, one: FileSlice) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, as in the result."""
        batches = read_slice(self.scan, one)
        return batches if self.shown is None else map(self.shown.apply, batches)


@dataclass(frozen=True)
class ScanPlan(AskedRows):
    """The plan of a scan.

    Attributes:
        slices: the slices that may hold matching rows.
        skipping: the steps that excluded slices.
        request: the request that the slices were chosen for.
    """

    slices: tuple[FileSlice, ...]
    partitions: int
    threads: int
    skipping: SkipReport
    request: SkipRequest

    @property
    def state(self) -> TableState:
        """The pinned state of the table."""
        return self.request.state


@dataclass(frozen=True)
class ScanQuery:
    """How a query treats log files and indexes.

    Attributes:
        read_optimized: ignore log files.
        unmerged: return rows of log files in addition to those of base files.
        use_positions: match log records to base rows by position, where recorded, instead of by key.
        merger: the user's merge function of a table with merge mode CUSTOM.
        use_indexes: whether the metadata table may be used to skip files.
        bucket: bucket settings of the table, if the caller knows them.
        values_from_path: read all partition columns from folder names, or fail; else only those with values there.
        folder: read only partitions in this folder of the table; empty for all.
    """

    read_optimized: bool = False
    unmerged: bool = False
    use_positions: bool = False
    merger: Merger | None = None
    use_indexes: bool = True
    bucket: BucketSettings | None = None
    values_from_path: bool = False
    folder: str = ""

    @classmethod
    def from_options(cls, settings: ReadOptions, options: Mapping[str, Any], folder: str = "") -> ScanQuery:
        """The query of a read with options.

        Args:
            settings: the options.
            options: the same options as given; they may include bucket settings of the table.
            folder: see the class.

        Raises:
            ConfigError: the options request an incremental query of a folder.
        """
        if folder and settings.query_type == "incremental":
            raise ConfigError(
                f"An incremental query reads a whole table, and {folder} is a folder of one: Apache Hudi 1.2 returns "
                "changes of other partitions, too. Give the path of the table, and a filter on the partition columns "
                "or hoodie.datasource.read.incr.path.glob."
            )
        return cls(
            read_optimized=settings.query_type == "read_optimized",
            unmerged=settings.merge_type == "skip_merge",
            use_positions=settings.use_positions,
            merger=settings.merger,
            use_indexes=settings.data_skipping,
            bucket=bucket_settings(options),
            values_from_path=settings.values_from_path,
            folder=folder,
        )


def plan_scan(
    state: TableState,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    threads: int | None = None,
    query: ScanQuery | None = None,
    condition: Condition | None = None,
) -> ScanPlan:
    """Plan a scan.

    Args:
        state: the table, current or at an earlier time.
        columns: columns in the requested order, see :mod:`hudi_fast.reading.shown_columns`; None for all, meta columns
            first.
        filter: condition of the rows, SQL text or an expression.
        threads: slices to read in parallel; None for one per processor, and more for small slices of an object store.
        query: treatment of log files; None for a merged snapshot.
        condition: condition of the rows that the caller keeps, if it differs from the filter; used to skip files.

    Raises:
        UnsupportedFeatureError: the merge mode is unsupported.
        ConfigError: a column is unknown.
        FileGoneError: files of the state were rolled back or cleaned before they were listed.
    """
    query, filter = query or ScanQuery(), filter_of(filter, state)
    whole = whole_scan(state, columns, query)
    asked = asked_rows(whole, columns, filter)
    scan, row_filter = asked.scan, asked.scan.filter
    workers = threads or os.cpu_count() or 1
    request = SkipRequest(
        state,
        whole.schema,
        filter,
        condition or (Anything() if row_filter is None else row_filter.condition),
        columns=None if row_filter is None else row_filter.columns,
        threads=workers,
        merged=not (query.read_optimized or query.unmerged) or not state.config.is_mor,
        mixes_rows=scan.merge is not None and scan.merge.rules.merger is not None,
        from_path=scan.from_path,
        use_indexes=query.use_indexes,
        bucket=query.bucket,
        folder=query.folder,
    )
    chosen = _choose(request, base_slices if query.read_optimized else latest_slices)
    at_once = threads or reads_at_once(state.storage, (one.weight for one in chosen.slices))
    return ScanPlan(scan, asked.shown, chosen.slices, chosen.partitions, at_once, chosen.report, request)


def narrowed(plan: ScanPlan, condition: Condition) -> frozenset[FileSlice]:
    """The slices of a plan that may hold rows that also match ``condition``; lists no files.

    Warns:
        HudiWarning: an index cannot be read and is ignored.
    """
    request = replace(plan.request, filter=None, condition=condition, columns=None)
    return frozenset(narrow_slices(request, plan.slices).slices)


def whole_scan(state: TableState, columns: Sequence[str] | None = None, query: ScanQuery | None = None) -> SliceScan:
    """How the slices of a table are read, with all its columns and rows.

    Args:
        state: the table, current or at an earlier time.
        columns: see :func:`readable_schema`.
        query: treatment of log files; None for a merged snapshot.

    Raises:
        UnsupportedFeatureError: the merge mode is unsupported.
    """
    query, config, full = query or ScanQuery(), state.config, readable_schema(state, columns)
    from_path = frozenset(config.partition_fields) if query.values_from_path else path_columns(config, full)
    scan = SliceScan(
        state.storage, config, full, full, None, from_path=from_path, values_from_path=query.values_from_path
    )
    if not config.is_mor or query.read_optimized:
        return scan
    return replace(scan, merge=slice_merge(state, query.merger, query.use_positions), unmerged=query.unmerged)


def asked_rows(whole: SliceScan, columns: Sequence[str] | None, filter: pc.Expression | None) -> AskedRows:
    """A scan of some columns and rows.

    Args:
        whole: the scan of all columns and rows.
        columns: columns in the requested order, see :mod:`hudi_fast.reading.shown_columns`; None for all.
        filter: condition of the rows.

    Raises:
        ConfigError: a column is unknown, or the filter does not fit the table.
    """
    full = whole.schema
    shown = None if columns is None else shown_columns(columns, full, whole.storage.uri)
    output = full if shown is None else pa.schema([full.field(name) for name in shown.roots])
    row_filter = None if filter is None else RowFilter.of(filter, full)
    used = frozenset() if row_filter is None else row_filter.columns
    schema = pa.schema([*output, *(field for field in full if field.name in used and field.name not in output.names)])
    if filter is not None:
        check_filter(filter, schema, full.names)
    merge_columns = None if whole.merge is None else merge_schema(whole.merge, schema, full)
    scan = replace(whole, schema=schema, output=output, filter=row_filter, merge_columns=merge_columns)
    return AskedRows(scan, None if shown is None or shown.is_plain else shown)


def _choose(request: SkipRequest, slices_of: Callable[[TableView, str], list[FileSlice]]) -> Selection:
    """The slices that may hold matching rows, after checking that the state is still complete."""
    view, listed = request.state.view, set[str]()

    def slices_in(partition: str) -> list[FileSlice]:
        listed.add(partition)
        return slices_of(view, partition)

    chosen = select_slices(request, slices_in)
    require_files_present(request.state, listed)
    return chosen


def scan_table(plan: ScanPlan) -> pa.Table:
    """All rows as one table, in the order of the plan's slices."""
    count = len(plan.slices)
    with phase("read", "reading", plan.scan.storage.uri) as step, ThreadPool(plan.threads) as pool:
        one = step.counting(lambda number: list(plan.read(plan.slices[number])), count, "file slices")
        rows = pa.Table.from_batches([batch for part in pool.map(one, range(count)) for batch in part], plan.output)
        step.add(rows=rows.num_rows, slices=count)
    return rows


def scan_batches(plan: ScanPlan) -> pa.RecordBatchReader:
    """All rows as a stream, in no particular order."""
    batches = in_threads(plan.slices, plan.read, plan.threads)
    return pa.RecordBatchReader.from_batches(plan.output, told_while_read(batches, plan.scan.storage.uri))


def filter_of(filter: Any, state: TableState, alias: str = "") -> pc.Expression | None:
    """A filter that a caller gave, as an expression.

    Args:
        filter: a ``pyarrow.compute`` expression, a condition in SQL, or None.
        state: the table.
        alias: a name of the table in the condition; empty without one.

    Raises:
        ConfigError: the filter is another object, or does not fit the table.
        UnsupportedFeatureError: the SQL calls a function that has no counterpart here.
    """
    return expression_of(filter, readable_schema(state) if isinstance(filter, str) else None, alias)


def expression_of(filter: Any, schema: pa.Schema | None, alias: str = "") -> pc.Expression | None:
    """A filter on the columns of ``schema``, as an expression; see :func:`filter_of`.

    Raises:
        ConfigError: as :func:`filter_of`.
        UnsupportedFeatureError: as :func:`filter_of`.
    """
    if filter is None or isinstance(filter, pc.Expression):
        return filter
    if isinstance(filter, str):
        from hudi_fast.expressions.sql_filters import sql_filter  # sqlglot takes 0.1 s to import

        return sql_filter(filter, schema, alias)
    raise ConfigError(
        "A filter is SQL text such as \"id = 1\", or a pyarrow.compute expression such as field('id') == 1; got "
        f"{filter!r}."
    )


def readable_schema(state: TableState, columns: Sequence[str] | None = None) -> pa.Schema:
    """The meta columns, if the table populates them, then the data columns.

    Args:
        state: the table.
        columns: requested columns. ``_hoodie_operation`` is returned only if requested: the schema does not tell
            whether files have it.
    """
    data = table_schema(state) or pa.schema([])
    return with_meta(data, OPERATION_FIELD in (columns or ())) if state.config.populate_meta_fields else data


def check_filter(filter_: pc.Expression, schema: pa.Schema, columns: Sequence[str]) -> None:
    """Check that a filter fits the table.

    ``schema`` has the columns that the filter may name; the message lists ``columns``.

    Raises:
        ConfigError: an unknown column, incompatible types, or an expression that is not a condition.
    """
    try:
        schema.empty_table().filter(filter_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error)
        if reason.startswith("No match for"):  # the rest of the message is the whole schema
            reason = f"{reason.partition(' in ')[0]}; the table has {list(columns)}."
        raise ConfigError(f"The filter {filter_} does not fit the table: {reason}") from error


# ---- check that a pinned state is still complete, after the files of a query have been listed
#
# ::
#
#     timeline now ─► writes of the state that were rolled back meanwhile        ─► read again
#                 ─► newest slices of the state that cleans deleted meanwhile    ─► read again
#
# A rollback makes a commit invisible before it deletes files. So if the commit is still visible, all its files
# existed when they were listed. Otherwise some folders may have been listed before the deletion and others after it,
# and the files that the commit replaced would be missing as well. Files that are deleted later cause an error when
# they are opened.


def require_files_present(state: TableState, listed: Set[str]) -> None:
    """Check that the listed files are the files of the state.

    ``listed`` are the partition paths whose files were listed.

    Raises:
        FileGoneError: a write of the state was rolled back, or a clean deleted a file of it, before the listing ended.
    """
    now = load_timeline(state.storage, state.config)
    as_of = state.view.as_of
    for one in state.timeline.writes():
        if one.requested == state.uncommitted:
            continue
        if (as_of is None or one.requested <= as_of) and not now.is_completed_or_archived(one.requested):
            raise FileGoneError(
                f"The {one.action} {one.requested} of {state.storage.uri} was rolled back after the query was "
                "planned. Read again.",
                f"{state.config.timeline_folder}/{one.file_name}",
            )
    removed = tuple(cleaned_since(state, now))
    pruned = {*state.view.lister.partitions()} - listed if removed else set()
    for file in removed:
        if file.partition not in pruned:
            raise FileGoneError(
                f"The clean {file.clean.requested} deleted a file of {state.storage.uri} after the query was planned. "
                "Read again.",
                file.path,
            )
