"""Arrow batches to Python workers; estimated sizes of rows; and which sessions have executors of their own."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from hudi_fast.spark import arrow
from hudi_fast.spark.arrow import (
    arrow_batches_of,
    estimated_bytes,
    first_rows,
    is_local,
    numbers_of,
    parallelism,
    reads_files,
    running_parallelism,
)
from tests.spark.programs import run_program


def batch_sizes(df):
    """(rows, bytes) of the batches that a Python worker gets."""

    def measure(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

    return [tuple(row) for row in df.mapInArrow(measure, "rows long, bytes long").collect()]


@pytest.mark.parametrize("row_bytes", [0, 10_000])
def test_wide_rows_come_in_small_batches(spark, monkeypatch, row_bytes):
    monkeypatch.setattr(arrow, "BATCH_BYTES", 1 << 20)
    monkeypatch.setattr(arrow, "_KNOWN_BYTES", 1 << 20)
    wide = spark.range(0, 2_000, 1, 1).select(F.repeat(F.lit("x"), 10_000).alias("text"))
    with arrow_batches_of(spark, row_bytes):
        sizes = batch_sizes(wide)
    assert sum(rows for rows, _ in sizes) == 2_000
    assert max(size for _, size in sizes) < 2 << 20


@pytest.mark.parametrize("row_bytes", [0, 8])
def test_narrow_rows_come_in_large_batches(spark, row_bytes):
    with arrow_batches_of(spark, row_bytes):
        sizes = batch_sizes(spark.range(0, 200_000, 1, 1))
    assert [rows for rows, _ in sizes] == [65_536] * 3 + [200_000 - 3 * 65_536]


def test_rows_of_known_size_are_counted_without_a_limit_in_bytes(spark):
    with arrow_batches_of(spark, 1000):
        assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == str((16 << 20) // 1000)
        assert int(spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch").rstrip("b")) == 2**31 - 1


def test_a_scan_of_files_costs_little_at_first(spark, tmp_path):
    spark.range(10).write.parquet(str(tmp_path / "rows"))
    scan = spark.read.parquet(str(tmp_path / "rows"))
    assert reads_files(scan)
    assert reads_files(scan.select((F.col("id") + 1).alias("more")))
    assert not reads_files(scan.where("id > 5"))
    assert not reads_files(scan.groupBy("id").count())
    assert not reads_files(scan.join(scan, "id"))


@pytest.mark.parametrize(("asked", "files"), [(5, 1), (25, 2), (200, 5)])
def test_first_rows_open_no_more_files_than_needed(spark, tmp_path, asked, files):
    for number in range(5):
        pq.write_table(pa.table({"id": [number] * 20}), tmp_path / f"{number}.parquet")
    found = first_rows(spark.read.parquet(str(tmp_path)), asked)
    assert found.num_rows == min(asked, 100)
    assert len(set(found["id"].to_pylist())) == files
    filtered = first_rows(spark.read.parquet(str(tmp_path)).where("id = 4"), asked)
    assert filtered["id"].to_pylist() == [4] * min(asked, 20)


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[4]", True), ("local-cluster[2,1,1024]", False), ("spark://host:7077", False)],
)
def test_a_local_cluster_has_executors(master, expected):
    assert is_local(SimpleNamespace(conf={"spark.master": master})) is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 3),
        ({"spark.executor.instances": "50", "spark.executor.cores": "4"}, 200),
        ({"spark.executor.instances": "50", "spark.executor.cores": "4", "spark.task.cpus": "2"}, 100),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "20"}, 20),
        ({"spark.dynamicAllocation.enabled": "true"}, 200),
        ({"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "64"}, 64),
        ({"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "auto"}, 200),
        ({"spark.dynamicAllocation.enabled": "true", "spark.cores.max": "12"}, 12),
        ({"spark.dynamicAllocation.enabled": "true", "spark.default.parallelism": "3"}, 3),
        ({"spark.dynamicAllocation.enabled": "true", "spark.master": "local[2]"}, 3),
    ],
)
def test_executors_that_a_session_may_have_count(settings, expected):
    now = SimpleNamespace(defaultParallelism=3)
    session = SimpleNamespace(_sc=now, conf={"spark.master": "spark://host:7077", **settings})
    assert running_parallelism(session) == 3
    assert parallelism(session) == expected


@pytest.mark.long
def test_executors_that_are_not_there_yet_count_where_tasks_are_large_enough():
    assert run_program("allowed_executors") == [f"True 7 10 10 {1 << 13}"]


def test_the_size_of_rows_that_a_function_makes_is_unknown(spark):
    rows = spark.range(1_000).withColumn("text", F.lit("x"))
    assert estimated_bytes(rows) > 8_000
    assert estimated_bytes(rows.mapInArrow(lambda batches: batches, rows.schema).filter("id > 5")) is None
    assert estimated_bytes(rows.mapInPandas(lambda frames: frames, rows.schema).union(rows)) is None


@pytest.mark.parametrize("size", [0, 10_000, 10**15])
@pytest.mark.parametrize(("count", "tasks"), [(1, 1), (7, 3), (1_000, 4)])
def test_numbers_are_complete_and_in_their_tasks_whatever_the_size(spark, count, tasks, size):
    numbers = numbers_of(spark, count, tasks, size, columns=3)
    assert sorted(row[0] for row in numbers.collect()) == list(range(count))
    assert numbers.rdd.getNumPartitions() == tasks


@pytest.mark.parametrize(
    ("size", "least", "limit"), [(0, 1, 1_000), (50 << 20, 10 << 20, 100 << 20), (10**15, 1 << 28, 10**10)]
)
def test_rows_made_of_numbers_are_estimated_at_about_the_given_size(spark, size, least, limit):
    made = numbers_of(spark, 5, 2, size, columns=3).mapInArrow(lambda batches: batches, "a long, b long, c string")
    assert least <= int(str(made._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) <= limit
