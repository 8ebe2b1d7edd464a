"""Deleting files as tasks of a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.storage.base import Storage
from tests.services.clean_tables import COMMITS, data_files, write_times, writes
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import table_rows


def test_tasks_delete_what_is_there_and_tell_what_is_not(spark: Any, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    names = [f"p{number % 3}/file {number} ü" for number in range(20)]
    for name in names[::2]:
        storage.write_bytes(name, b"x")
    (tmp_path / "p1" / "file 7 ü").mkdir(parents=True)  # no file: it cannot be deleted as one
    assert SparkBackend(spark, driver_files=1).delete(storage, names) == [number % 2 == 0 for number in range(20)]
    assert [path for path in tmp_path.rglob("file*") if path.is_file()] == []


def test_a_clean_on_spark_does_what_one_in_threads_does(spark: Any, tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    times = write_times(tmp_path, 4, settings)
    rows = table_rows(tmp_path)
    done = hf.HudiTable.open(tmp_path).services.clean(settings, spark=spark)
    assert (done.files_deleted, done.files_failed) == (4, 0)
    assert data_files(tmp_path) == {"p0": times[2:], "p1": times[2:]}
    assert table_rows(tmp_path) == rows
    assert_metadata_true(tmp_path)
