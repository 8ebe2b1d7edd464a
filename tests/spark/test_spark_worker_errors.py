"""Workers without memory: what the caller is told. Modules: hudi_fast.spark.writing.worker_errors, .tasks."""

from __future__ import annotations

import errno
import pickle
import zlib

import pyarrow as pa
import pytest

from hudi_fast.errors import CommitError
from hudi_fast.spark.writing.tasks import Answer, answers
from hudi_fast.spark.writing.worker_errors import explained, lack_of_memory
from tests.spark.programs import run_program


def chained(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (pa.lib.ArrowMemoryError("malloc of size 8 failed"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (chained(CommitError("the local file"), OSError(errno.ENOMEM, "Cannot allocate memory")), True),
        (chained(CommitError("the local file"), OSError(errno.ENOSPC, "No space left on device")), False),
    ],
)
def test_a_lack_of_memory_is_told_from_other_errors(error, expected):
    assert (lack_of_memory(error) is not None) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 2.00 GiB", "ran out of memory"),
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Container killed by YARN "
         "for exceeding physical memory limits. 4.5 GB of 4 GB physical memory used.", "Container killed by YARN"),
        ("The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).", "exit code 137"),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "lost its Python worker"),
    ],
)  # fmt: skip
def test_messages_of_spark_lead_to_the_settings_of_memory(text, expected):
    found = explained(RuntimeError(text), "file:/tmp/t")
    assert isinstance(found, CommitError)
    for part in (expected, "file:/tmp/t", "spark.executor.memoryOverhead", "spark.executor.pyspark.memory"):
        assert part in str(found)


def test_other_errors_of_spark_are_left_as_they_are():
    assert explained(RuntimeError("[DIVIDE_BY_ZERO] Division by zero."), "file:/tmp/t") is None


def test_a_task_without_memory_answers_with_the_settings():
    def work(_):
        return Answer([bytearray(1 << 62)])

    with pytest.raises(CommitError, match=r"ran out of memory: MemoryError\. .*spark\.executor\.memoryOverhead"):
        raise _error_of(answers(None, work)([]))


def _error_of(batches):
    (batch,) = batches
    return pickle.loads(zlib.decompress(batch.column(0)[0].as_py())).error


@pytest.mark.parametrize(("way", "reason"), [("limited", "ran out of memory"), ("killed", "lost its Python worker")])
def test_a_write_whose_worker_lack_of_memory_changes_nothing(java, tmp_path, way, reason):
    error, rows = run_program("little_memory", tmp_path, way)
    assert error.startswith("CommitError A task")
    assert reason in error
    assert "spark.executor.memoryOverhead" in error
    assert rows == "10"
