"""Errors of tasks: which ones Spark tries again, and how often."""

from __future__ import annotations

import errno
import pickle
import sys
import zlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, CorruptTableError, FileGoneError, HudiError
from hudi_fast.spark.writing.tasks import Answer, answers, is_tried_again, task_attempts, write_partitions
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.markers import make_marker_folder
from tests.spark.programs import PROJECT, run_program
from tests.spark.spark_writes import batch

PARTITIONED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
}


def caused(error: HudiError, cause: Exception) -> HudiError:
    error.__cause__ = cause
    return error


SLOW = OSError("AWS Error SLOW_DOWN")


@pytest.mark.parametrize(
    ("error", "attempt", "expected"),
    [
        (caused(CorruptTableError("unreadable", "f"), SLOW), 0, True),
        (caused(CorruptTableError("unreadable", "f"), caused(HudiError("inner"), SLOW)), 2, True),
        (caused(CorruptTableError("unreadable", "f"), SLOW), 3, False),
        (caused(FileGoneError("gone", "f"), FileNotFoundError("f")), 0, False),
        (caused(CorruptTableError("unreadable", "f"), ValueError("not Parquet")), 0, False),
        (CommitConflictError("another writer"), 0, False),
    ],
)
def test_errors_of_storage_are_tried_again_while_attempts_are_left(monkeypatch, error, attempt, expected):
    context = SimpleNamespace(attemptNumber=lambda: attempt)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
    assert is_tried_again(error, 4) is expected


def test_outside_of_a_task_nothing_is_tried_again():
    assert not is_tried_again(caused(CorruptTableError("unreadable", "f"), SLOW), 4)


def test_workers_without_the_package_are_named(java, tmp_path):
    bare = PROJECT / ".venv-hudi/bin/python"
    (line,) = run_program("bare_workers", tmp_path, workers=bare)
    assert line.startswith(f"Spark's workers run {bare}, which lacks hudi_fast")
    assert sys.executable in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"spark.master": "local[2]"}, 1),
        ({"spark.master": "local[2, 3]"}, 3),
        ({"spark.master": "local[*,5]"}, 5),
        ({"spark.master": "spark://host:7077"}, 4),
        ({"spark.master": "yarn", "spark.task.maxFailures": "8"}, 8),
        ({"spark.master": "local-cluster[2,1,1024]"}, 4),
    ],
)
def test_attempts_of_a_task(settings, expected):
    assert task_attempts(SimpleNamespace(conf=settings)) == expected


def test_rows_of_a_partition_in_several_parts_are_refused(tmp_path):
    rows = batch(range(12))  # partitions in turn
    hf.write(rows, tmp_path / "t", PARTITIONED)
    plan = draft_plan(load_state(Storage(tmp_path / "t")), WriteOptions.from_options(PARTITIONED), rows.schema)
    plan = replace(plan, instant="20990101000000000")
    make_marker_folder(plan.storage, plan.instant)
    with pytest.raises(hf.CommitError, match=r"'p0' of .* have the same hash"):
        write_partitions(plan)(iter(rows.to_batches()))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), hf.StorageFailedError),
        (PermissionError(errno.EACCES, "Permission denied"), hf.StorageAccessError),
        (SLOW, hf.StorageFailedError),
        (hf.FileGoneError("gone", "f"), hf.FileGoneError),
    ],
)
def test_a_failure_of_storage_is_an_answer_of_its_task(error: Exception, kind: type[Exception]) -> None:
    def work(_: object) -> Answer:
        raise error

    (answered,) = answers(None, work)([])
    found = pickle.loads(zlib.decompress(answered.column(0)[0].as_py())).error
    assert type(found) is kind
    assert str(error) in str(found)
