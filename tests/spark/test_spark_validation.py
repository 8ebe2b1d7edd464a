"""Validation in tasks finds what validation in one process finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.services.validate import ValidationResult
from hudi_fast.storage.base import Storage
from tests.services.planted import metadata, plant
from tests.support.small_tables import options, plain_rows

INDEXES = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
IN_TASKS = {"hudi_fast.driver.max.bytes": "0"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(300), partitions=3), tmp_path, {**options(), **INDEXES})
    hf.write(plain_rows(range(250, 320), ts=2, partitions=3), tmp_path, {**options(), **INDEXES})
    return tmp_path


def both(spark: Any, path: Path, limit: int = 1000) -> ValidationResult:
    """The result of a process, after it was compared with that of tasks."""
    services = hf.HudiTable.open(path).services
    here, tasks = services.validate(limit=limit), services.validate(limit=limit, options=IN_TASKS, spark=spark)
    assert tasks.differences.to_pylist() == here.differences.to_pylist()
    untimed = [one.summary.drop_columns(["seconds"]).to_pylist() for one in (here, tasks)]
    assert untimed[0] == untimed[1]
    return here


def last_job(spark: Any) -> int:
    """The greatest number of a job. Spark forgets old jobs, so their count says less."""
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(None), default=-1)


def test_a_table_without_faults_is_valid_in_tasks_too(spark: Any, table: Path) -> None:
    before = last_job(spark)
    found = both(spark, table)
    assert last_job(spark) >= before + found.summary.num_rows
    assert found.ok
    counted = {row["partition"]: row["expected"] for row in found.summary.to_pylist()}
    assert counted["record_index"] == 320


@pytest.mark.smoke
def test_planted_faults_are_found_by_both(spark: Any, table: Path) -> None:
    rows = {row["key"]: row for row in scan(metadata(table), "record_index").to_pylist()}
    stale = [{**rows["k00001"], "key": f"gone{number:02d}"} for number in range(30)]
    plant(table, "record_index", stale, ("k00005", "k00006"))
    (stats, *_) = scan(metadata(table), "column_stats").to_pylist()
    plant(table, "column_stats", [{**stats, "null_count": 77}])
    found = both(spark, table)
    counts = {row["partition"]: row["differences"] for row in found.summary.to_pylist()}
    assert counts["record_index"] == 32
    assert 1 <= counts["column_stats"] <= 5
    few = both(spark, table, limit=5)
    assert few.summary.column("differences").to_pylist() == found.summary.column("differences").to_pylist()
    assert few.differences.num_rows == 5 + counts["column_stats"]


def test_a_damaged_file_is_found_by_both(spark: Any, table: Path) -> None:
    (slice_, *_) = (one for one in metadata(table).groups("record_index") if one.base_file or one.log_files)
    path = max(slice_.log_files, key=lambda log: log.size).path
    storage = metadata_storage(Storage(table))
    content = storage.read_bytes(path)
    storage.write_bytes(path, content[: len(content) // 2])
    found = both(spark, table)
    (row,) = found.differences.to_pylist()
    assert (row["partition"], row["what"]) == ("record_index", "unreadable")
    assert path in row["found"]
