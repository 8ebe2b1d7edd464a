"""Errors of Spark's jobs: those with a known cause say what to do, others stay as they are."""

from __future__ import annotations

import errno
import pickle
import traceback
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitError
from hudi_fast.spark.job_errors import explained_job_errors, lack_of_memory
from hudi_fast.spark.writing.tasks import Answer, answers
from tests.spark.programs import run_program

FULL = """An error occurred while calling o62.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent
failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.9 executor 3): {cause}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


class Session:
    """What the message needs of a session: its settings."""

    def __init__(self) -> None:
        self.conf = {"spark.local.dir": "/mnt/local"}


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.IOException: No space left on device",
        "java.io.FileNotFoundException: /mnt/local/blockmgr-1/0c/shuffle_0_1_0.data (No space left on device)",
        "java.nio.file.FileSystemException: /mnt/local/blockmgr-1/0c: Disk quota exceeded",
        "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
    ],
)
def test_a_disk_that_is_full_is_named_with_host_and_folders(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    with (
        pytest.raises(hf.CommitError, match=r"file:/t on the host 10\.0\.0\.9") as caught,
        explained_job_errors(Session(), "file:/t"),
    ):
        raise RuntimeError(FULL.format(cause=cause))
    assert cause.split(" (")[0] in str(caught.value)
    assert "spark.local.dir, here /mnt/local" in str(caught.value)
    assert "\tat " not in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_missing_package_is_named() -> None:
    with pytest.raises(hf.ConfigError, match=r"no module 'pyarrow'.*PYSPARK_PYTHON"), explained_job_errors(Session()):
        raise RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(FULL.format(cause="java.io.IOException: Connection reset by peer")),
        RuntimeError("ModuleNotFoundError: No module named 'my_udf'"),
        RuntimeError("[DIVIDE_BY_ZERO] Division by zero."),
        hf.InvalidDataError("No space left on device"),
    ],
)
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explained_job_errors(Session()):
        raise error
    assert caught.value is error


LOST = """An error occurred while calling o62.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.9
executor 3): org.apache.spark.api.python.PythonException: {traceback}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
Driver stacktrace:
"""
STARTING = """Error from python worker:
  Traceback (most recent call last):
    File "/usr/lib/python3.11/runpy.py", line 187, in _run_module_as_main
      mod_name, mod_spec, code = _get_module_details(mod_name, _Error)
  {last}
PYTHONPATH was: /opt"""


def quoting(error: BaseException) -> None:
    raise error  # except (HudiError, MemoryError, ArrowMemoryError, OSError): [Errno 12] Cannot allocate memory


def handling(first: BaseException, second: BaseException) -> None:
    try:
        raise first
    except type(first):
        raise second  # noqa: B904 - the first one was handled


def causing(first: BaseException, second: BaseException) -> None:
    try:
        raise first
    except type(first) as error:
        raise second from error


def traceback_of(function: Any, *errors: BaseException) -> str:
    try:
        function(*errors)
    except BaseException:
        return LOST.format(traceback=traceback.format_exc())
    raise AssertionError


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (traceback_of(quoting, ValueError("bad value")), RuntimeError),
        (traceback_of(quoting, ValueError("MemoryError")), RuntimeError),
        (traceback_of(quoting, ValueError("a line\nMemoryError: of the user's")), RuntimeError),
        (traceback_of(quoting, ValueError("exit code 137, OOMKilled, Cannot allocate memory")), RuntimeError),
        (traceback_of(quoting, KeyError()), RuntimeError),
        (traceback_of(quoting, ImportError("No module named 'pyarrow'")), RuntimeError),
        (traceback_of(handling, MemoryError(), ValueError("bad value")), RuntimeError),
        (traceback_of(quoting, MemoryError()), CommitError),
        (traceback_of(quoting, MemoryError("std::bad_alloc")), CommitError),
        (traceback_of(quoting, pa.lib.ArrowMemoryError("malloc of size 8 failed")), CommitError),
        (traceback_of(quoting, OSError(errno.ENOMEM, "Cannot allocate memory")), CommitError),
        (traceback_of(causing, MemoryError(), ValueError("bad value")), CommitError),
        (traceback_of(handling, ValueError("bad value"), MemoryError()), CommitError),
        (STARTING.format(last="MemoryError"), CommitError),
        (STARTING.format(last="ValueError: MemoryError"), RuntimeError),
        (STARTING.format(last="ModuleNotFoundError: No module named 'pyarrow'"), hf.ConfigError),
        (traceback_of(quoting, ModuleNotFoundError("No module named 'pyarrow.lib'")), hf.ConfigError),
    ],
)
def test_the_exception_of_a_worker_decides_and_not_the_text_around_it(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind), explained_job_errors(Session(), "file:/t"):
        raise RuntimeError(text)


@pytest.mark.long
@pytest.mark.parametrize("plan", ["fused", "routed"])
def test_a_full_local_folder_is_one_clear_error_and_the_next_writer_goes_on(
    java: Any, tmp_path: Path, plan: str
) -> None:
    error, *rest = run_program("full_local_folder", tmp_path, plan)
    assert "File too large" in error
    assert f"{tmp_path}/t" in error
    assert f"spark.local.dir, here {tmp_path}/local" in error
    assert "Free space" in error
    assert rest == ["as before", plan]


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
    with pytest.raises(CommitError) as caught, explained_job_errors(Session(), "file:/tmp/t"):
        raise RuntimeError(text)
    found = caught.value
    for part in (expected, "file:/tmp/t", "spark.executor.memoryOverhead", "spark.executor.pyspark.memory"):
        assert part in str(found)


def test_a_task_without_memory_answers_with_the_settings():
    def work(_):
        return Answer([bytearray(1 << 62)])

    with pytest.raises(CommitError, match=r"ran out of memory: MemoryError\. .*spark\.executor\.memoryOverhead"):
        raise _error_of(answers(None, work)([]))


def _error_of(batches):
    (batch,) = batches
    return pickle.loads(zlib.decompress(batch.column(0)[0].as_py())).error


def test_writes_whose_workers_are_killed_or_lack_memory_change_nothing(java, tmp_path):
    killed, rows, limited, rows_after = run_program("little_memory", tmp_path)
    for error, reason in ((killed, "lost its Python worker"), (limited, "ran out of memory")):
        assert error.startswith("CommitError A task")
        assert reason in error
        assert "spark.executor.memoryOverhead" in error
    assert rows == rows_after == "10"
