"""Deleting files as tasks of a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.storage.base import Storage
from hudi_fast.writing.threads import delete_in_threads
from tests.servers.http_faults import http_faults
from tests.servers.s3 import S3Server
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


def test_tasks_and_threads_delete_objects_in_chunks(
    spark: Any, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(s3_server.path("chunks"), s3_server.options)
    names = [f"p{number % 3}/file {number} ü" for number in range(2500)]
    for driver_requests in (100, 1):
        monkeypatch.setattr("hudi_fast.spark.backend._DRIVER_REQUESTS", driver_requests)
        for name in names[::100]:
            storage.write_bytes(name, b"x")
        assert SparkBackend(spark).delete(storage, names) == [True] * 2500
        assert storage.list_dir("", recursive=True) == []


def test_files_of_a_request_that_fails_count_as_left(s3_server: S3Server) -> None:
    with http_faults(s3_server.url) as faults:
        storage = Storage(s3_server.path("left"), s3_server.options_at(faults.url))
        storage.write_bytes("kept", b"x")
        faults.arm(0, "before", lasts=4)
        done = delete_in_threads(storage, ["kept", "none"])
        assert done == [False, False]
        assert storage.has_file("kept")
        assert delete_in_threads(storage, ["kept", "none"]) == [True, True]
        assert not storage.has_file("kept")


def test_a_clean_on_spark_does_what_one_in_threads_does(spark: Any, tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    times = write_times(tmp_path, 4, settings)
    rows = table_rows(tmp_path)
    done = hf.HudiTable.open(tmp_path).services.clean(settings, spark=spark)
    assert (done.files_deleted, done.files_failed) == (4, 0)
    assert data_files(tmp_path) == {"p0": times[2:], "p1": times[2:]}
    assert table_rows(tmp_path) == rows
    assert_metadata_true(tmp_path)
