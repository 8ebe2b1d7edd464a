"""Errors of Spark's jobs: those with a known cause say what to do, others stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.job_errors import explained_job_errors
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
        hf.InvalidDataError("No space left on device"),
    ],
)
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explained_job_errors(Session()):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("plan", ["fused", pytest.param("routed", marks=pytest.mark.long)])
def test_a_full_local_folder_is_one_clear_error_and_the_next_writer_goes_on(
    java: Any, tmp_path: Path, plan: str
) -> None:
    error, *rest = run_program("full_local_folder", tmp_path, plan)
    assert "File too large" in error
    assert f"{tmp_path}/t" in error
    assert f"spark.local.dir, here {tmp_path}/local" in error
    assert "Free space" in error
    assert rest == ["as before", plan]
