"""Clustering as Spark tasks: the same file groups as in threads, one task for each group while there are few."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.services.clustering.cluster import cluster_after_write
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import mor_options, newest_commit
from tests.support.rows import assert_same_rows
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

PLAN = "hoodie.clustering.plan.strategy."


def make(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    for number in range(2):
        rows = plain_rows(range(number * 9, number * 9 + 9), partitions=3)
        hf.write(rows, path, {**settings, "hoodie.datasource.write.operation": "bulk_insert"})
    return settings


@pytest.mark.smoke("9")
@pytest.mark.parametrize("version", ["9", "6"])
def test_each_group_is_a_task(spark: Any, version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, mor_options(table_version=version))
    hf.write(plain_rows(range(3, 6), ts=2, text="b", partitions=3), tmp_path, settings)
    rows = hf.HudiTable.open(tmp_path).to_arrow()
    services = hf.HudiTable.open(tmp_path).services
    spark.range(1).collect()  # so that this is not the session's first stage, which is numbered as threads are
    result = services.cluster({**settings, f"{PLAN}sort.columns": "ts,text"}, spark=spark)
    assert (result.file_groups, result.files_written, result.rows) == (6, 3, 18)
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), rows, ignore=["_hoodie_file_name"])
    tokens = {stat.path.split("_")[1] for stat in newest_commit(tmp_path)[1].write_stats()}
    assert len({token.split("-")[0] for token in tokens}) == 3  # as many tasks
    assert {token.split("-")[1] for token in tokens} != {"0"}
    assert services.validate().ok
    assert_tidy(tmp_path)


@pytest.mark.parametrize("curve", ["linear", "z-order", "hilbert"])
def test_rows_are_sorted_by_fields_of_structs(spark: Any, curve: str, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.datasource.write.operation": "bulk_insert"}
    for number in range(2):
        rows = plain_rows(range(number * 50, number * 50 + 50), partitions=1)
        places = [{"x": (int(key[1:]) * 37) % 101, "y": {"z": int(key[1:]) % 7}} for key in rows["id"].to_pylist()]
        hf.write(rows.append_column("place", pa.array(places)), tmp_path, settings)
    before = hf.HudiTable.open(tmp_path).to_arrow()
    services = hf.HudiTable.open(tmp_path).services
    by = {f"{PLAN}sort.columns": "place.x,place.y.z", "hoodie.layout.optimize.strategy": curve}
    assert services.cluster(by, spark=spark).rows == 100
    after = hf.HudiTable.open(tmp_path).to_arrow()
    assert_same_rows(after, before, ignore=["_hoodie_file_name"])
    found = [(one["x"], one["y"]["z"]) for one in after["place"].to_pylist()]
    assert found != [(one["x"], one["y"]["z"]) for one in before["place"].to_pylist()]
    if curve == "linear":
        assert found == sorted(found)
    else:  # neighbours on a curve are near each other in both columns
        steps = [abs(left[0] - right[0]) / 101 + abs(left[1] - right[1]) / 7 for left, right in pairwise(found)]
        assert sum(steps) / len(steps) < 0.25


def test_little_work_is_done_by_the_driver(spark: Any, tmp_path: Path) -> None:
    settings = make(tmp_path, options())
    asked = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    (done,) = cluster_after_write(session_of(tmp_path, {**settings, **asked}, SparkBackend(spark, unit_bytes=1 << 26)))
    assert {stat.path.split("_")[1].split("-")[1] for stat in done.stats} == {"0"}  # threads have no stage
    assert len(table_rows(tmp_path)) == 18


def test_an_error_of_a_task_is_the_error_of_the_call(spark: Any, tmp_path: Path) -> None:
    make(tmp_path, options())
    services = hf.HudiTable.open(tmp_path).services
    planned = services.schedule_cluster({f"{PLAN}sort.columns": "text"})
    damaged = next(tmp_path.glob("*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-40])
    with pytest.raises(hf.CorruptTableError, match=damaged.name):
        services.cluster(spark=spark, plan=planned)
    (pending,) = load_state(Storage(tmp_path)).timeline.pending()
    assert pending.state is State.REQUESTED
    assert not list(tmp_path.rglob(f"*_{pending.requested}.parquet"))
