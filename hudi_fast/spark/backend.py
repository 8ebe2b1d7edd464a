"""The backend of a Spark session: tasks execute the work of writes and table services.

::

    engine          a DataFrame ─► SparkEngine ─► the physical plan of the write
    map_units       (unit, weight) ─► tasks of similar total weight ─► write statistics
    write_records   record sources ─► tasks ─► one shuffle by file group ─► tasks ─► write statistics
    visit_groups    record sources ─► tasks ─► one shuffle by file group ─► tasks ─► results
    map_groups      file groups of the metadata table ─► tasks ─► write statistics
    delete          paths ─► tasks ─► deleted or not

A Spark job takes a tenth of a second or two. Threads of the driver execute work that reads less than a bound.
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.events import Completed, Listener, Phase, without_secrets
from hudi_fast.metadata_table.updates.groups import GroupSink, GroupVisitor
from hudi_fast.metadata_table.updates.produce_base import RecordSource
from hudi_fast.reading.scan import plan_scan, readable_schema
from hudi_fast.spark.arrow import as_spark, collect, is_local, parallelism, spark_arrow, spark_schema
from hudi_fast.spark.metadata_records import visit_groups, write_records
from hudi_fast.spark.reading.reader import frame_of
from hudi_fast.spark.writing.engine import SparkEngine
from hudi_fast.spark.writing.tasks import ANSWER_SCHEMA, in_tasks
from hudi_fast.storage.base import DELETED_AT_ONCE, Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.backend import BatchSource, PlannedEngine
from hudi_fast.writing.threads import ThreadBackend, delete_in_threads, map_in_threads
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["SparkBackend"]

_DRIVER_FILES = 2_000
"""The driver deletes fewer files than this: a local file takes about 50 microseconds."""

_DRIVER_REQUESTS = 16
"""The driver deletes files of an object store that need fewer requests than this, each for many files."""

_TASKS_PER_CORE = 2
_READING_TASKS_PER_CORE = 4

_LOCAL_FACTOR = 16
"""The driver of a local session may read this many times more: there are no other cores, and tasks need a shuffle."""

Unit = TypeVar("Unit")
Batches = Iterator[pa.RecordBatch]


class SparkBackend:
    """Executes work as tasks of a Spark session.

    Args:
        spark: the session.
        unit_bytes: the driver executes units of services that read less than this in total.
        record_bytes: the driver writes records of the metadata table whose sources read less than this in total.
        driver_files: the driver deletes fewer files than this.
        files_are_local: whether the table is on local disk.
    """

    name = "spark"

    def __init__(
        self,
        spark: Any,
        unit_bytes: int = 0,
        record_bytes: int = 0,
        driver_files: int = _DRIVER_FILES,
        files_are_local: bool = False,
    ) -> None:
        self.spark = spark
        self.listeners: tuple[Listener, ...] = (_JobDescriptions(spark),)
        self._driver = ThreadBackend(is_local=files_are_local)
        self._unit_bytes = unit_bytes
        self._record_bytes = record_bytes * (_LOCAL_FACTOR if is_local(spark) else 1)
        self._driver_files = driver_files

    def engine(self, rows: Any, options: WriteOptions) -> PlannedEngine:
        """The engine of a DataFrame."""
        if isinstance(rows, BatchSource):
            rows = self._read(rows)
        if not hasattr(rows, "sparkSession"):
            raise InvalidDataError(f"Cannot write a PySpark {type(rows).__name__}; pass a DataFrame.")
        return SparkEngine(rows, options)

    def map_units(
        self,
        plan: FilePlan,
        units: Sequence[Unit],
        weights: Sequence[float],
        function: Callable[[Unit, TaskToken], list[WriteStat]],
    ) -> list[WriteStat]:
        """Apply a function to each unit; each task gets units of similar total weight."""
        if sum(weights) < self._unit_bytes or not units:
            return map_in_threads(plan, units, weights, function)
        return in_tasks(self.spark, plan, units, weights, function)

    def write_records(self, sources: Sequence[RecordSource], writer: GroupSink) -> list[WriteStat]:
        """Write records of the metadata table."""
        if sum(one.weight for one in sources) < self._record_bytes:
            return self._driver.write_records(sources, writer)
        return write_records(self.spark, sources, writer)

    def visit_groups(self, sources: Sequence[RecordSource], visitor: GroupVisitor) -> Iterator[Any]:
        """Visit file groups of the metadata table."""
        if sum(one.weight for one in sources) < self._record_bytes:
            return self._driver.visit_groups(sources, visitor)
        return visit_groups(self.spark, sources, visitor)

    def map_groups(
        self, groups: Sequence[Unit], weights: Sequence[int], function: Callable[[Unit], WriteStat]
    ) -> list[WriteStat]:
        """Apply a function to file groups of the metadata table."""
        if sum(weights) < self._record_bytes or len(groups) < 2:
            return self._driver.map_groups(groups, weights, function)
        return in_tasks(self.spark, None, groups, weights, lambda one, _: [function(one)])

    @contextmanager
    def answering(self, states: Mapping[str, TableState]) -> Iterator[Callable[[str], pa.Table]]:
        """Answer SQL queries by Spark, over temporary views."""
        schema = spark_schema(readable_schema(list(states.values())[-1]))
        try:
            for name, state in states.items():
                has_rows = table_schema(state) is not None
                frame = frame_of(self.spark, plan_scan(state)) if has_rows else self.spark.createDataFrame([], schema)
                frame.createOrReplaceTempView(name)
            yield self._answer
        finally:
            for name in states:
                self.spark.catalog.dropTempView(name)

    def delete(self, storage: Storage, paths: Sequence[str]) -> list[bool]:
        """Delete files; for each whether it existed and is deleted."""
        least = 1 if storage.has_folders else DELETED_AT_ONCE
        if len(paths) < (self._driver_files if storage.has_folders else least * _DRIVER_REQUESTS):
            return delete_in_threads(storage, paths)
        tasks = min(-(-len(paths) // least), parallelism(self.spark) * _TASKS_PER_CORE)
        parts = [list(paths[number::tasks]) for number in range(tasks)]
        context = getattr(self.spark, "_sc", None)
        sent: Any = parts if context is None else context.broadcast(parts)
        numbers = self.spark.range(tasks, numPartitions=tasks)
        answers = [False] * len(paths)
        try:
            for row in numbers.mapInArrow(_deleting(storage, sent), ANSWER_SCHEMA).collect():
                number, done = pickle.loads(row[0])
                answers[number::tasks] = done
        finally:
            if context is not None:
                sent.destroy()
        return answers

    def _answer(self, text: str) -> pa.Table:
        try:
            return collect(self.spark.sql(text))
        except PySparkException as error:
            raise ConfigError(f"Spark refuses the query {text!r}: {error}") from error

    def _read(self, source: BatchSource) -> Any:
        """A DataFrame whose tasks read the units of a source."""
        units, read = source.units, source.read
        target = spark_arrow(source.schema)

        def run(batches: Batches) -> Batches:
            for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
                for rows in read(units[number]):
                    yield pa.RecordBatch.from_arrays(as_spark(rows, target), schema=target)

        tasks = min(len(units), _READING_TASKS_PER_CORE * parallelism(self.spark))
        return self.spark.range(0, len(units), 1, tasks).mapInArrow(run, spark_schema(source.schema))


def _deleting(storage: Storage, sent: Any) -> Callable[[Batches], Batches]:
    """``sent``: the paths of each task, or a broadcast variable of them."""

    def run(batches: Batches) -> Batches:
        parts = getattr(sent, "value", sent)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = pickle.dumps((number, delete_in_threads(storage, parts[number])))
                yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    return run


# ---- descriptions of Spark jobs: the Spark UI shows which phase of which table and instant a job belongs to
#
# On classic Spark a phase sets ``spark.job.description`` of its thread. The caller's job group stays, because the
# group is what the caller or a streaming query cancels; the caller's own description returns when the call ends.
# Spark Connect has no descriptions of jobs, but tags, which its UI lists.


_PROPERTY = "spark.job.description"
_NOT_IN_TAGS = re.compile(r"[,\s]+")


class _JobDescriptions:
    """A listener that describes the jobs of each phase.

    Args:
        spark: the session.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._context = getattr(spark, "_sc", None)
        self._thread = threading.local()

    def begun(self, phase: Phase) -> None:
        """Describe the jobs of a phase."""
        text = f"hudi_fast: {phase.name} {without_secrets(phase.table)} {phase.instant}".strip()
        texts = self._thread.__dict__.setdefault("texts", [])
        if not texts and self._context is not None:
            self._thread.callers = self._context.getLocalProperty(_PROPERTY)
        texts.append(text)
        if self._context is None:
            self._tag("addTag", text)
        else:
            self._context.setLocalProperty(_PROPERTY, text)

    def advanced(self, phase: Phase) -> None:
        """Nothing to do."""

    def ended(self, phase: Phase) -> None:
        """Return to the description of the phase around it, or to the caller's."""
        texts = self._thread.texts
        text = texts.pop()
        if self._context is None:
            self._tag("removeTag", text)
        else:
            self._context.setLocalProperty(_PROPERTY, texts[-1] if texts else self._thread.callers)

    def completed(self, done: Completed) -> None:
        """Nothing to do."""

    def _tag(self, method: str, text: str) -> None:
        with suppress(AttributeError):  # a session without tags
            getattr(self._spark, method)(_NOT_IN_TAGS.sub(" ", text).replace(" ", "_"))
