"""The backend of this process: threads. Kernels, Parquet encoding and Arrow compute release the GIL."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.arrow_input import RowStream, row_stream, to_arrow_table
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.events import Listener, phase
from hudi_fast.metadata_table.updates.groups import GroupSink, GroupVisitor, run_in_threads, visit_in_order
from hudi_fast.metadata_table.updates.produce_base import RecordSource
from hudi_fast.storage.base import DELETED_AT_ONCE, Storage
from hudi_fast.storage.concurrency import heaviest_first, is_little, units_at_once
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import BatchSource, PlannedEngine
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.spilling.engine import SpillingEngine
from hudi_fast.writing.spilling.spill_file import SpillSettings
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["ThreadBackend", "delete_in_threads", "map_in_threads"]

_MAX_THREADS = 8
_DELETING_THREADS = 16
_DELETING_REQUESTS = 4
"""Concurrent delete requests to an object store, each for many files: S3 counts each file against its limit."""

_FEW_FILES = 32
"""Fewer files are deleted one after the other: starting threads takes longer."""

Unit = TypeVar("Unit")


class ThreadBackend:
    """Executes work in threads of this process.

    Args:
        threads: number of threads that write records of the metadata table; None: one per core, at most eight. The plan
            of a service sets the number of threads that merge and rewrite files.
        is_local: whether the table is on local disk, so that one thread is best for small files.
    """

    name = "local"
    listeners: tuple[Listener, ...] = ()

    def __init__(self, threads: int | None = None, is_local: bool = False) -> None:
        self._is_local = is_local
        self._threads = threads or min(_MAX_THREADS, os.cpu_count() or 1)

    def engine(self, rows: Any, options: WriteOptions) -> PlannedEngine:
        """The engine of an Arrow table, of a stream of batches, or of anything with ``__arrow_c_stream__``."""
        if isinstance(rows, BatchSource):
            return LocalEngine(_read_all(rows, self._threads))
        stream = row_stream(rows)
        if stream is None:
            return LocalEngine(to_arrow_table(rows))
        return _stream_engine(stream, SpillSettings(options.engine.rows_memory, options.engine.spill_folder))

    def map_units(
        self,
        plan: FilePlan,
        units: Sequence[Unit],
        weights: Sequence[float],
        function: Callable[[Unit, TaskToken], list[WriteStat]],
    ) -> list[WriteStat]:
        """Apply a function to each unit, the heaviest first."""
        return map_in_threads(plan, units, weights, function)

    def write_records(self, sources: Sequence[RecordSource], writer: GroupSink) -> list[WriteStat]:
        """Write records of the metadata table."""
        return run_in_threads(sources, writer, self._threads, self._is_local)

    def visit_groups(self, sources: Sequence[RecordSource], visitor: GroupVisitor) -> Iterator[Any]:
        """Visit file groups of the metadata table, one at a time."""
        return visit_in_order(sources, visitor, self._threads)

    def map_groups(
        self, groups: Sequence[Unit], weights: Sequence[int], function: Callable[[Unit], WriteStat]
    ) -> list[WriteStat]:
        """Apply a function to file groups of the metadata table, the heaviest first."""
        threads = 1 if is_little(self._is_local, weights) else self._threads
        return heaviest_first(weights, lambda number: function(groups[number]), threads)

    @contextmanager
    def answering(self, states: Mapping[str, TableState]) -> Iterator[Callable[[str], pa.Table]]:
        """Answer SQL queries by duckdb."""
        from hudi_fast.sql_text.evaluate import evaluated
        from hudi_fast.writing.validators import scan_or_nothing

        last = list(states.values())[-1]
        sources = {name: scan_or_nothing(state, last) for name, state in states.items()}
        yield lambda text: evaluated(text, sources)

    def delete(self, storage: Storage, paths: Sequence[str]) -> list[bool]:
        """Delete files."""
        return delete_in_threads(storage, paths)


def map_in_threads(
    plan: FilePlan,
    units: Sequence[Unit],
    weights: Sequence[float],
    function: Callable[[Unit, TaskToken], list[WriteStat]],
) -> list[WriteStat]:
    """Apply a function to each unit in threads, the heaviest first.

    Args:
        plan: of the service.
        units: the units.
        weights: of each unit, in bytes that it reads: small units of an object store get more threads than cores.
        function: executes one unit.
    """
    threads = units_at_once(weights, plan.files.threads, plan.files.max_threads)
    with phase("rewrite_files", threads=threads) as step:
        one = step.counting(lambda number: function(units[number], TaskToken(number)), len(units), "file groups")
        written = heaviest_first(weights, one, threads)
        stats = [stat for some in written for stat in some]
        step.add(files=len(stats))
    return stats


def delete_in_threads(storage: Storage, paths: Sequence[str]) -> list[bool]:
    """Delete files; returns for each whether it existed and is deleted. After a storage error the file stays.

    An object store deletes many files in one request and does not report which ones existed: the result is True for
    all.
    """
    if not storage.has_folders:
        parts = [paths[start : start + DELETED_AT_ONCE] for start in range(0, len(paths), DELETED_AT_ONCE)]
        with ThreadPool(min(_DELETING_REQUESTS, len(parts) or 1), thread_name_prefix="hudi_fast") as pool:
            return [done for some in pool.map(lambda part: _delete_some(storage, part), parts) for done in some]
    if len(paths) <= _FEW_FILES:
        return [_delete(storage, path) for path in paths]
    with ThreadPool(_DELETING_THREADS, thread_name_prefix="hudi_fast") as pool:
        return list(pool.map(lambda path: _delete(storage, path), paths))


def _delete(storage: Storage, path: str) -> bool:
    try:
        return storage.delete_file(path)
    except OSError:
        return False


def _delete_some(storage: Storage, paths: Sequence[str]) -> list[bool]:
    try:
        storage.delete_files(paths)
    except OSError:
        return [False] * len(paths)
    return [True] * len(paths)


def _stream_engine(stream: RowStream, settings: SpillSettings) -> PlannedEngine:
    """The engine of rows in memory if the stream fits, otherwise one with temporary files."""
    batches, size = list[pa.RecordBatch](), 0
    for batch in stream.batches:
        batches.append(batch)
        size += batch.nbytes
        if size > settings.max_bytes:
            first, batches = _drained(batches), []
            return SpillingEngine(RowStream(stream.schema, itertools.chain(first, stream.batches)), settings)
    return LocalEngine(pa.Table.from_batches(batches, stream.schema))


def _drained(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; each one is released as soon as the next one is requested."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _read_all(source: BatchSource, threads: int) -> pa.Table:
    with ThreadPool(threads, thread_name_prefix="hudi_fast") as pool:
        parts = pool.map(lambda unit: list(source.read(unit)), source.units)
        return pa.Table.from_batches([batch for batches in parts for batch in batches], source.schema)
