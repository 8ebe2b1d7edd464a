"""Tasks of writes: functions in Python workers, and their grouping by weight.

Task functions in Python workers: Arrow batches in, write stats out. Plain functions over a pickled plan.

A task holds the rows of one table partition (or, routed, of one file group) at a time; they arrive sorted. Rows beyond
a budget are moved to a local file (:mod:`hudi_fast.merging.row_buffer`). Results are one binary column: rows are
never returned to the JVM.

Groups units of work into Spark tasks of similar total weight.

No row passes through the JVM: a task gets the numbers of its units (slices to merge, groups to rewrite, rows to write),
reads and writes their files, and returns write statistics or other results. The units are sent to each worker once.

The task of the routed plan: one file group after another.

Rows arrive sorted by bucket. A bucket holds the rows of one file group: updates of its slice, and the inserts that the
workload profile assigns to it. Memory holds one bucket.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import platform
import re
import zlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError, HudiError
from hudi_fast.formats.parquet.column_ranges import ColumnRange, ColumnRanges
from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.merging.row_buffer import CollectedRows, RowBuffer, return_freed_memory, write_failure
from hudi_fast.spark.arrow import is_local, parallelism
from hudi_fast.spark.job_errors import explained_job_errors, lack_of_memory, out_of_memory
from hudi_fast.spark.writing.columns import pack_bins
from hudi_fast.spark.writing.workload import TASKS_PER_CORE
from hudi_fast.storage.conditional import credentials_advice, has_expired
from hudi_fast.storage.failures import storage_failure
from hudi_fast.storage.local_store import sync
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import BUCKET, BucketWriter, write_file_group
from hudi_fast.writing.markers import begin_task, clear_if_left_behind
from hudi_fast.writing.prepare import prepare_rows, spooled_form, with_auto_keys
from hudi_fast.writing.profile import with_measured_row_size
from hudi_fast.writing.whole_rows import refuse_unknown
from hudi_fast.writing.write_plan import FilePlan, TaskToken, WritePlan

__all__ = [
    "ANSWER_SCHEMA",
    "Answer",
    "PackedRanges",
    "answers",
    "bins_of",
    "cut_runs",
    "final_failure",
    "in_tasks",
    "is_tried_again",
    "most_tasks",
    "results_in_tasks",
    "run_tasks",
    "task_attempts",
    "task_token",
    "write_buckets",
    "write_partition",
    "write_partitions",
]

ANSWER_SCHEMA = "answer binary"
"""Column of a write task's result, pickled and compressed: a third of the size where files have column ranges."""

_LOCAL_ATTEMPTS = re.compile(r"local\[[^,]*,\s*(\d+)\s*\]")


@dataclass(frozen=True)
class Answer:
    """Result of one task.

    Attributes:
        stats: one per file.
        partitions: partition paths that received rows.
        error: an error that a retry would repeat, or of the last attempt.
        results: of tasks that write no files.
    """

    stats: list[WriteStat] = field(default_factory=list)
    partitions: frozenset[str] = frozenset()
    error: HudiError | None = None
    results: list[Any] = field(default_factory=list)


def run_tasks(rows: Any, plan: FilePlan | None, work: Callable[[Iterator[pa.RecordBatch]], Answer]) -> list[Answer]:
    """Apply ``work`` to each partition of a DataFrame; returns the tasks' results.

    Args:
        rows: a DataFrame; each of its partitions is a task.
        plan: of the write or service; None if tasks create no markers.
        work: picklable.

    Raises:
        HudiError: the error of a task. Spark has retried the task if the error may be temporary.
        CommitError: a worker ran out of memory or was killed, or Spark's local folders are full.
        ConfigError: workers lack a package.
    """
    spark = rows.sparkSession
    attempts = task_attempts(spark)
    with explained_job_errors(spark, "" if plan is None else plan.storage.uri):
        collected = rows.mapInArrow(answers(plan, work, attempts), ANSWER_SCHEMA).collect()
    found: list[Answer] = [pickle.loads(zlib.decompress(row[0])) for row in collected]
    for answer in found:
        if answer.error is not None:
            raise answer.error
    return found


def answers(
    plan: FilePlan | None, work: Callable[[Iterator[pa.RecordBatch]], Answer], attempts: int = 1
) -> Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]:
    """``work`` as a function for ``mapInArrow``.

    A :class:`HudiError` becomes a result, because Spark would hide it inside its own exception; so do a lack of memory,
    credentials that have expired, and other failures of storage. An error that may be temporary fails the task instead,
    so that Spark retries it, unless this is the last of ``attempts``.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            with contextlib.nullcontext() if plan is None else _with_markers(plan):
                answer = _packed(work(iter(batches)))
                sync("/")  # the driver cannot: its machine may be another
        except (HudiError, MemoryError, OSError) as error:
            answer = Answer(error=final_failure(error, plan, attempts))
        packed = zlib.compress(pickle.dumps(answer))  # the driver holds all of them: spark.driver.maxResultSize
        yield pa.RecordBatch.from_pydict({"answer": pa.array([packed], pa.binary())})

    return run


def final_failure(error: Exception, plan: FilePlan | None, attempts: int) -> HudiError:
    """The error that the caller of the write sees, to be sent to it.

    Args:
        error: raised in a task.
        plan: of the write or service.
        attempts: maximum number of attempts of the task.

    Raises:
        HudiError: it may be temporary, and Spark is to try the task again.
        Exception: ``error``, which is not a failure of the write itself.
    """
    failure = _failure_of(error, plan)
    if failure is None:
        raise error
    if is_tried_again(failure, attempts):
        raise failure from error
    return failure


def _failure_of(error: Exception, plan: FilePlan | None) -> HudiError | None:
    """The error that the caller of the write sees; None for one that is not a failure of the write itself."""
    cause = lack_of_memory(error)
    if cause is not None:
        text = f"{type(cause).__name__}: {cause}".rstrip(": ")
        made: HudiError = out_of_memory("" if plan is None else plan.storage.uri, text)
        made.__cause__ = cause
        return made
    if isinstance(error, HudiError) or not isinstance(error, OSError):
        return error if isinstance(error, HudiError) else None
    if has_expired(error):
        made = CommitError(str(error) if plan is None else credentials_advice(plan.storage.uri, plan.instant))
    else:
        made = storage_failure(error, f"A task on {platform.node()}", "")  # the driver adds the outcome of the write
    made.__cause__ = error
    return made


@contextlib.contextmanager
def _with_markers(plan: FilePlan) -> Iterator[None]:
    """Forget the markers of earlier tasks; afterwards delete the files of this task if its write has ended."""
    begin_task(plan.storage, plan.instant)
    try:
        yield
        clear_if_left_behind(plan.storage, plan.instant)
    except BaseException:
        with contextlib.suppress(OSError):
            clear_if_left_behind(plan.storage, plan.instant)
        raise


def _packed(answer: Answer) -> Answer:
    """The answer with packed column ranges: the driver holds the ranges of all files."""
    stats = [
        stat if stat.column_ranges is None else replace(stat, column_ranges=PackedRanges(stat.column_ranges))
        for stat in answer.stats
    ]
    return replace(answer, stats=stats)


def task_attempts(spark: Any) -> int:
    """How often Spark executes a task at most: ``spark.task.maxFailures``, or the second number of ``local[n, m]``."""
    if not is_local(spark):
        return int(spark.conf.get("spark.task.maxFailures", "4"))
    found = _LOCAL_ATTEMPTS.fullmatch(str(spark.conf.get("spark.master", "local")))
    return int(found[1]) if found else 1


def is_tried_again(error: HudiError, attempts: int) -> bool:
    """Whether this task should fail for Spark to execute it again: storage or memory failed, and an attempt is left.

    A missing file stays missing, so such a task is not retried. The next attempt has a worker of its own, perhaps on an
    executor with more memory.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.attemptNumber() + 1 >= attempts or has_expired(error):
        return False
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return True
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError | FileExistsError | PermissionError):
            return True
        cause = cause.__cause__
    return False


def write_partitions(plan: WritePlan) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """The fused task: rows of whole table partitions, sorted by partition; tag, assign, write."""

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        token = task_token()
        stats: list[WriteStat] = []
        seen: list[str] = []
        sequence = 0
        for partition, rows in _by_partition(plan, batches):
            count = rows.table.num_rows
            written, sequence = write_partition(plan, partition, rows, token, sequence)
            del rows  # before the rows of the next partition are read
            return_freed_memory(count)
            stats += written
            seen.append(partition)
        return Answer(stats, frozenset(seen))

    return work


def task_token() -> TaskToken:
    """Write token of this task; attempts differ, so two attempts never write to one file."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return TaskToken(0)
    return TaskToken(context.partitionId(), context.stageId(), context.taskAttemptId())


def write_partition(
    plan: WritePlan, partition: str, collected: CollectedRows, token: TaskToken, sequence: int
) -> tuple[list[WriteStat], int]:
    """Write all incoming rows of one table partition; returns write stats and the next sequence number."""
    plan = with_measured_row_size(plan, collected.table.num_rows, collected.table)  # if the rows were not counted
    incoming = with_auto_keys(plan, prepare_rows(plan, collected.table, collected.release), token.task, sequence)
    rows = np.arange(incoming.count, dtype=np.int64)
    works = assign_partition(plan, partition, incoming, rows, token, first_sequence=sequence)
    refuse_unknown(plan, incoming, works)
    stats = [stat for work in works for stat in write_file_group(plan, work, incoming)]
    return stats, sequence + incoming.count


def _by_partition(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, CollectedRows]]:
    """Iterate over table partitions with their rows; input is sorted by a hash of the partition.

    Raises:
        CommitError: the rows of a partition do not follow each other.
    """
    current, done = "", set[str]()
    with RowBuffer(partial(write_failure, plan.storage.uri), partial(spooled_form, plan)) as buffer:
        for batch in batches:
            for partition, part in _runs(plan, batch):
                if partition != current and (rows := buffer.take()) is not None:
                    done.add(current)
                    yield current, rows
                    del rows
                if partition in done:
                    raise CommitError(
                        f"Rows of the partition {partition!r} of {plan.storage.uri} reach a task in several parts: its "
                        "path and another one have the same hash. The table is as before. Use hudi_fast.plan=routed."
                    )
                current = partition
                buffer.add(part)
        if (rows := buffer.take()) is not None:
            yield current, rows


def _runs(plan: WritePlan, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut a batch where the partition path changes."""
    if batch.num_rows == 0:
        return
    paths = partition_paths(plan.key_config, batch)
    codes = np.asarray(paths.indices)
    for start, end in cut_runs(codes):
        yield paths.dictionary[int(codes[start])].as_py(), batch.slice(start, end - start)


def cut_runs(values: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """First and last-plus-one position of each run of equal values."""
    if len(values):
        cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
        yield from itertools.pairwise([0, *cuts.tolist(), len(values)])


# ---- column ranges as compressed bytes, for a driver that holds the ranges of many files


class PackedRanges(Mapping[str, ColumnRange]):
    """The ranges of one file, in a thirtieth of the memory of the objects.

    Each access unpacks all of them; use :meth:`items` for several.
    """

    __slots__ = ("_count", "_data")

    def __init__(self, ranges: ColumnRanges) -> None:
        self._data = zlib.compress(pickle.dumps(dict(ranges)), 1)
        self._count = len(ranges)

    def __getitem__(self, name: str) -> ColumnRange:
        return self._unpacked()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._unpacked())

    def __len__(self) -> int:
        return self._count

    def items(self) -> ItemsView[str, ColumnRange]:
        """All ranges by column, unpacked once."""
        return self._unpacked().items()

    def _unpacked(self) -> dict[str, ColumnRange]:
        found: dict[str, ColumnRange] = pickle.loads(zlib.decompress(self._data))
        return found


Function = Callable[[Any, TaskToken], list[WriteStat]]
"""Executes one unit; picklable."""

_Found = list[tuple[int, Any]]
"""The number of each unit of a task, and its result."""


def in_tasks(
    spark: Any, plan: FilePlan | None, units: Sequence[Any], weights: Sequence[float], function: Function
) -> list[WriteStat]:
    """Apply a function that writes files to all units, as tasks of a Spark session.

    Args:
        spark: the session.
        plan: of the write or service; None for work on the metadata table, whose files have no markers.
        units: the units.
        weights: of each unit, in bytes.
        function: executes one unit.

    Raises:
        HudiError: a task refused its unit.
    """
    return [stat for answer in _run(spark, plan, units, weights, function, _stats) for stat in answer.stats]


def results_in_tasks(
    spark: Any, units: Sequence[Any], weights: Sequence[float], function: Callable[[Any], Any]
) -> list[Any]:
    """Apply a function that writes no files to all units, as tasks; returns its results in the order of the units.

    Args:
        spark: the session.
        units: the units.
        weights: of each unit, in bytes.
        function: executes one unit; picklable.

    Raises:
        HudiError: a task refused its unit.
    """
    answers = _run(spark, None, units, weights, lambda unit, _: function(unit), _results)
    by_number = dict(found for answer in answers for found in answer.results)
    return [by_number[number] for number in range(len(units))]


def most_tasks(spark: Any) -> int:
    """The largest number of tasks that units are grouped into.

    A Python task has an overhead of 25 to 40 ms; more tasks than cores keep all cores busy until the end.
    """
    return parallelism(spark) * TASKS_PER_CORE


def bins_of(weights: Sequence[float], count: int) -> list[list[int]]:
    """The numbers of the units of each of ``count`` bins of similar total weight."""
    placed = pack_bins({f"{number:09}": int(weight) for number, weight in enumerate(weights)}, count)
    bins: list[list[int]] = [[] for _ in range(count)]
    for number, chosen in placed.items():
        bins[chosen].append(int(number))
    return bins


def _run(
    spark: Any,
    plan: FilePlan | None,
    units: Sequence[Any],
    weights: Sequence[float],
    function: Callable[[Any, TaskToken], Any],
    answer: Callable[[_Found], Answer],
) -> list[Answer]:
    if not units:
        return []
    context = getattr(spark, "_sc", None)
    sent: Any = units if context is None else context.broadcast(units)
    bins = bins_of(weights, min(len(units), most_tasks(spark)))
    numbers = spark.range(len(bins), numPartitions=len(bins))
    try:
        return run_tasks(numbers, plan, _task(sent, bins, function, answer))
    finally:
        if context is not None:
            sent.destroy()


def _task(
    sent: Any, bins: list[list[int]], function: Callable[[Any, TaskToken], Any], answer: Callable[[_Found], Answer]
) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``sent``: the units, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        units, token = getattr(sent, "value", sent), task_token()
        found: _Found = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # file names and sequence numbers depend on the unit only
                found.append((number, function(units[number], replace(token, task=number))))
        return answer(found)

    return run


def _stats(found: _Found) -> Answer:
    return Answer([stat for _, stats in found for stat in stats])


def _results(found: _Found) -> Answer:
    return Answer(results=list(found))


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
