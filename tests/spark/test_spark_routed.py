"""The number of files and the balance of a large write, whatever the parallelism.

Modules: hudi_fast.spark.writing.routed, hudi_fast.spark.writing.tasks, hudi_fast.spark.writing.workload.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.spark.writing.workload import TASK_BYTES, task_count
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.metadata.enable": "false",
}
PARTITIONED = {**TABLE, "hoodie.datasource.write.partitionpath.field": "part"}
ROUTED = {"hudi_fast.plan": "routed"}
MAX_FILE = 1_000_000
SIZED = {"hoodie.parquet.max.file.size": str(MAX_FILE), "hoodie.parquet.small.file.limit": str(MAX_FILE * 4 // 5)}
INCOMPRESSIBLE = 100


def wide_rows(ids: Any, parts: int = 2, ts: int = 1) -> pa.Table:
    """Rows of about ``INCOMPRESSIBLE`` bytes and more in a file."""
    numbers = np.asarray(ids, dtype=np.int64)
    rng = np.random.default_rng(len(numbers) + ts)
    noise = rng.integers(0, 256, len(numbers) * INCOMPRESSIBLE, dtype=np.uint8).tobytes().hex()
    text = [noise[start : start + 2 * INCOMPRESSIBLE] for start in range(0, len(noise), 2 * INCOMPRESSIBLE)]
    return pa.table(
        {
            "id": [f"k{number:07d}" for number in numbers],
            "part": [f"p{number % parts}" for number in numbers],
            "ts": pa.array(np.full(len(numbers), ts), pa.int64()),
            "noise": text,
        }
    )


def written_files(path: Path) -> dict[str, list[int]]:
    """Sizes of the newest base files by partition."""
    sizes: dict[str, list[int]] = {}
    for row in hf.HudiTable.open(path).files().to_pylist():
        sizes.setdefault(row["partition"], []).append(row["base_bytes"])
    return sizes


def assert_sized(path: Path) -> None:
    """At most a tenth more files than the bytes fill, and one per partition."""
    sizes = written_files(path)
    full = sum(math.ceil(sum(each) / MAX_FILE) for each in sizes.values())
    assert sum(map(len, sizes.values())) <= full * 1.1 + len(sizes)


@pytest.mark.long
@pytest.mark.parametrize(("operation", "tasks"), [("insert", 16), ("upsert", 3), ("insert_overwrite", 7)])
def test_the_number_of_files_depends_on_bytes_alone(spark, tmp_path, operation, tasks):
    settings = {**PARTITIONED, **SIZED, **ROUTED, "hoodie.datasource.write.operation": operation}
    settings |= {f"hoodie.{name}.shuffle.parallelism": str(tasks) for name in ("insert", "upsert")}
    rows = wide_rows(range(50_000))
    result = hf.write(frame(spark, rows), tmp_path / "t", settings)
    assert (result.plan, result.inserts) == ("routed", rows.num_rows)
    assert_sized(tmp_path / "t")
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "noise"])
    assert sorted(found["id"].to_pylist()) == sorted(rows["id"].to_pylist())
    numbers = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_commit_seqno"])["_hoodie_commit_seqno"]
    used = {one.split("_")[1] for one in numbers.to_pylist()}
    assert 1 < len(used) <= tasks


def test_inserts_fill_small_files_of_the_whole_partition_first(spark, tmp_path):
    settings = {**PARTITIONED, **SIZED, **ROUTED, "hoodie.upsert.shuffle.parallelism": "8"}
    hf.write(wide_rows(range(3_000)), tmp_path / "t", settings)
    before = {name: len(sizes) for name, sizes in written_files(tmp_path / "t").items()}
    hf.write(frame(spark, wide_rows(range(3_000, 9_000))), tmp_path / "t", settings)
    after = {name: len(sizes) for name, sizes in written_files(tmp_path / "t").items()}
    assert before == after
    hf.write(frame(spark, wide_rows(range(9_000, 60_000))), tmp_path / "t", settings)
    assert_sized(tmp_path / "t")
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["id"]).num_rows == 60_000


@pytest.mark.parametrize(
    "index",
    [
        "SIMPLE",
        pytest.param("GLOBAL_SIMPLE", marks=pytest.mark.long),
        pytest.param("GLOBAL_RECORD_LEVEL_INDEX", marks=pytest.mark.long),
    ],
)
def test_rows_that_are_updates_do_not_ask_for_new_files(spark, tmp_path, index):
    settings = {**PARTITIONED, **SIZED, "hoodie.index.type": index, "hoodie.metadata.enable": "true"}
    settings |= {"hoodie.metadata.global.record.level.index.enable": str("RECORD" in index)}
    hf.write(
        wide_rows(range(30_000), parts=1), tmp_path / "t", {**settings, "hoodie.datasource.write.operation": "insert"}
    )
    before = {name: len(sizes) for name, sizes in written_files(tmp_path / "t").items()}
    result = hf.write(frame(spark, wide_rows(range(500, 30_100), parts=1, ts=2)), tmp_path / "t", settings | ROUTED)
    assert (result.updates, result.inserts) == (29_500, 100)
    after = {name: len(sizes) for name, sizes in written_files(tmp_path / "t").items()}
    assert sum(after.values()) <= sum(before.values()) + len(before)
    assert pc.sum(hf.HudiTable.open(tmp_path / "t").to_arrow(["ts"])["ts"]).as_py() == 500 + 2 * 29_600


def test_an_uneven_batch_is_shared_by_all_tasks(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("hudi_fast.spark.writing.engine._EVEN_FROM", 0)
    rows = wide_rows(range(6_000))
    uneven = rows.set_column(1, "part", pa.array(["today" if n % 10 else "other" for n in range(6_000)]))
    few = {"hudi_fast.driver.max.bytes": "1000"}
    settings = PARTITIONED | SIZED | few | {"hoodie.datasource.write.operation": "insert"}
    result = hf.write(frame(spark, uneven), tmp_path / "uneven", settings)
    assert result.plan == "routed"
    assert "5,400 in the largest: tasks for whole partitions would be uneven" in result.reason
    assert_sized(tmp_path / "uneven")
    assert hf.write(frame(spark, rows), tmp_path / "even", settings).plan == "fused"


def test_a_partition_beyond_the_memory_of_a_task_is_shared(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("hudi_fast.spark.writing.engine.PARTITIONS_TASK_BYTES", 10_000)
    few = {"hudi_fast.driver.max.bytes": "1000"}
    result = hf.write(frame(spark, wide_rows(range(1_000))), tmp_path / "t", PARTITIONED | SIZED | few)
    assert result.plan == "routed"
    assert "bytes in memory" in result.reason


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_uneven_batches_give_the_same_table(spark, tmp_path, kind):
    def moved(rows: pa.Table) -> pa.Table:
        places = ["p0" if number % 7 else "p1" for number in rows["number"].to_pylist()]
        return rows.set_column(rows.schema.get_field_index("part"), "part", pa.array(places))

    settings = {**PARTITIONED, "hoodie.datasource.write.table.type": kind}
    settings |= {"hoodie.parquet.max.file.size": "9000", "hoodie.copyonwrite.record.size.estimate": "100"}
    steps = [
        Step("upsert", moved(batch(range(300)))),
        Step(
            "upsert",
            moved(
                batch([*range(250, 420), *range(250, 270)], ts=[*[200] * 170, *[210] * 20], deletes=[255, 400], seed=1)
            ),
        ),
        Step("delete", moved(batch([5, 6, 7, 999]))),
        Step("upsert", moved(batch(range(0, 500, 9), ts=300, seed=2))),
    ]
    assert_same_writes(spark, tmp_path, "routed", settings, steps, given=1)


def test_keys_of_other_partitions_are_new_where_all_stored_keys_are_joined(spark, tmp_path, monkeypatch):
    """As in a write whose lanes would read large slices too often."""
    monkeypatch.setattr("hudi_fast.spark.writing.key_lookup._MAX_READS", 0)
    steps = [
        Step("upsert", batch(range(60))),
        Step("upsert", batch(range(30, 90), ts=200, shift=1)),
        Step("delete", batch([*range(10), *range(80, 85)], shift=1)),
    ]
    assert_same_writes(spark, tmp_path, "routed", PARTITIONED, steps, given=1)


def test_rows_without_keys_are_shared_by_their_content(spark, tmp_path):
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.operation": "insert", **SIZED, **ROUTED}
    rows = wide_rows(range(30_000)).append_column(
        "m", pa.array([[("a", 1)]] * 30_000, pa.map_(pa.string(), pa.int64()))
    )
    hf.write(frame(spark, rows), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_record_key", "id"])
    assert len(set(table["_hoodie_record_key"].to_pylist())) == rows.num_rows
    assert Counter(table["id"].to_pylist()) == Counter(rows["id"].to_pylist())
    assert_sized(tmp_path / "t")


def test_a_partition_that_was_not_counted_is_written(spark, tmp_path, monkeypatch):
    """A source may give other rows when Spark evaluates it again."""
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    monkeypatch.setattr("hudi_fast.spark.writing.engine.count_rows", lambda *_: ({"p0": 10}, 3))
    result = hf.write(frame(spark, batch(range(30, 80), ts=200)), tmp_path / "t", PARTITIONED | ROUTED)
    assert (result.updates, result.inserts) == (10, 40)
    result = hf.write(
        frame(spark, batch(range(10))),
        tmp_path / "t",
        PARTITIONED | ROUTED | {"hoodie.datasource.write.operation": "delete"},
    )
    assert result.deletes == 10
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id"])["id"].to_pylist()
    assert sorted(found) == [f"k{number:04d}" for number in range(10, 80)]


@pytest.mark.parametrize(("limit", "plan"), [(50, "driver"), (49, "fused")])
def test_rows_of_large_files_are_counted_before_they_are_collected(spark, tmp_path, monkeypatch, limit, plan):
    rows = batch(range(50))
    frame(spark, rows).repartition(9).write.parquet(str(tmp_path / "rows"))
    monkeypatch.setattr("hudi_fast.spark.writing.engine._WORTH_COUNTING", 0)
    monkeypatch.setattr("hudi_fast.spark.writing.engine.TINY", 1 << 40)
    monkeypatch.setattr("hudi_fast.spark.writing.engine.DRIVER_ROWS", limit)
    hf.write(batch(range(4)), tmp_path / "t", PARTITIONED)
    result = hf.write(spark.read.parquet(str(tmp_path / "rows")), tmp_path / "t", PARTITIONED)
    assert (result.plan, result.updates, result.inserts) == (plan, 4, 46)


def test_tasks_follow_the_size_of_the_input(spark):
    assert task_count(spark, 0) == task_count(spark, TASK_BYTES) == 4
    assert task_count(spark, 100 * TASK_BYTES + 1) == 101
    assert task_count(spark, 100 * TASK_BYTES, requested=7) == 7
