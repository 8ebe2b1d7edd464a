"""Task functions in Python workers: Arrow batches in, write stats out. Plain functions over a pickled plan.

A task holds the rows of one table partition (or, routed, of one file group) at a time; they arrive sorted. Rows beyond
a budget are moved to a local file (:mod:`hudi_fast.merging.row_buffer`). Results are one binary column: rows are
never returned to the JVM.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import platform
import re
import zlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError, HudiError
from hudi_fast.formats.parquet.column_ranges import ColumnRange, ColumnRanges
from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.merging.freed_memory import return_freed_memory
from hudi_fast.merging.row_buffer import CollectedRows, RowBuffer, write_failure
from hudi_fast.spark.arrow import is_local
from hudi_fast.spark.job_errors import explained_job_errors, lack_of_memory, out_of_memory
from hudi_fast.storage.conditional import credentials_advice, has_expired
from hudi_fast.storage.failures import storage_failure
from hudi_fast.storage.local_sync import sync
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.markers import begin_task, clear_if_left_behind
from hudi_fast.writing.partial import refuse_unknown
from hudi_fast.writing.prepare import prepare_rows, spooled_form, with_auto_keys
from hudi_fast.writing.profile import with_measured_row_size
from hudi_fast.writing.write_plan import FilePlan, TaskToken, WritePlan

__all__ = [
    "ANSWER_SCHEMA",
    "Answer",
    "PackedRanges",
    "answers",
    "cut_runs",
    "final_failure",
    "is_tried_again",
    "run_tasks",
    "task_attempts",
    "task_token",
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
