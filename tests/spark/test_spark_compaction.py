"""Compaction and log compaction as Spark tasks: the same files' worth as in threads, one task for each slice.

Modules: hudi_fast.spark.writing.tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import log_files, mor_options, stats_of
from tests.support.small_tables import assert_tidy, plain_rows, table_rows


def make(path: Path, version: str) -> dict[str, Any]:
    settings = mor_options({"hoodie.log.compaction.blocks.threshold": "1"}, table_version=version)
    hf.write(plain_rows(range(9), partitions=3), path, settings)
    hf.write(plain_rows(range(3, 6), ts=2, text="b", partitions=3), path, settings)
    hf.write(plain_rows([3], ts=3, partitions=3), path, {**settings, "hoodie.datasource.write.operation": "delete"})
    return settings


@pytest.mark.smoke("9")
@pytest.mark.parametrize("version", ["9", "6"])
def test_each_slice_is_a_task(spark: Any, version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    rows = table_rows(tmp_path)
    services = hf.HudiTable.open(tmp_path).services
    logged = services.compact_logs(settings, spark=spark)
    assert (logged.file_groups, logged.log_files, logged.rows, logged.deletes) == (3, 4, 2, 1)
    assert table_rows(tmp_path) == rows
    result = services.compact(spark=spark)
    assert (result.file_groups, result.rows, result.updates, result.deletes) == (3, 8, 2, 1)
    assert table_rows(tmp_path) == rows
    tokens = {stat.path.split("_")[1] for stat in stats_of(tmp_path)}
    assert len({token.split("-")[0] for token in tokens}) == 3  # as many tasks
    assert {token.split("-")[1] for token in tokens} != {"0"}
    assert_tidy(tmp_path)


def test_an_error_of_a_task_is_the_error_of_the_call(spark: Any, tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = hf.HudiTable.open(tmp_path).services.schedule_compact()
    (tmp_path / log_files(tmp_path)[0].path).unlink()
    with pytest.raises(hf.CorruptTableError, match="a file of it is missing"):
        hf.HudiTable.open(tmp_path).services.compact(spark=spark, plan=planned)
    (pending,) = load_state(Storage(tmp_path)).timeline.pending()
    assert pending.state is State.REQUESTED
    assert not list(tmp_path.rglob(f"*_{pending.requested}.parquet"))


@pytest.mark.parametrize("driver_bytes", ["0", "67108864"])
def test_a_dataframe_is_written_and_the_table_compacted_after_it(spark: Any, driver_bytes: str, tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    del settings["hoodie.compact.inline"]
    settings |= {"hudi_fast.driver.max.bytes": driver_bytes, "hoodie.compact.inline.max.delta.commits": "4"}
    frame = spark.createDataFrame([("k00007", "p1", 9, "n")], ["id", "part", "ts", "text"])
    hf.write(frame, tmp_path, settings)
    assert load_state(Storage(tmp_path)).timeline.writes()[-1].action == "commit"
    tasks = {stat.path.split("_")[1].split("-")[1] for stat in stats_of(tmp_path)}
    assert (tasks == {"0"}) is (driver_bytes != "0")  # the driver's threads have no stage
    assert table_rows(tmp_path)["k00007"] == ("p1", 9, "n")
