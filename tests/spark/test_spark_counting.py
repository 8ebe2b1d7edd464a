"""Rows are counted by partition before they are written: by Spark, or by Python where it reads the files.

Module: hudi_fast.spark.writing.counting.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.spark.arrow import arrow_schema, session_conf
from hudi_fast.spark.incoming.chosen_scan import file_scan
from hudi_fast.spark.writing import counting
from hudi_fast.spark.writing.counting import count_pieces, count_rows
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.write_plan import WritePlan
from tests.spark.spark_writes import batch, frame

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
PARTITIONED = {**TABLE, "hoodie.datasource.write.partitionpath.field": "part"}
PARTITIONS = {
    "text": {"hoodie.datasource.write.partitionpath.field": "part"},
    "two columns": {"hoodie.datasource.write.partitionpath.field": "part,day"},
    "hive": {
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    },
    "number": {"hoodie.datasource.write.partitionpath.field": "number"},
    "nested": {"hoodie.datasource.write.partitionpath.field": "inner.name"},
    "none": {},
}


def rows(count: int) -> pa.Table:
    numbers = range(count)
    return pa.table({
        "id": [f"k{one}" for one in numbers],
        "ts": pa.array(numbers, pa.int64()),
        "part": [None if one % 7 == 6 else f"p {one % 3}" for one in numbers],
        "day": [datetime.date(2026, 1, 1 + one % 4) for one in numbers],
        "number": pa.array([one % 2 for one in numbers], pa.int32()),
        "inner": [{"name": "ab"[one % 2], "other": one} for one in numbers],
    })  # fmt: skip


def planned(path: Path, schema: pa.Schema, more: Mapping[str, str], spark: Any) -> WritePlan:
    given = {**TABLE, **more}
    hf.write(rows(2), path, given)
    return draft_plan(load_state(Storage(path)), WriteOptions.from_options(given), schema)


def stored(spark: Any, folder: Path, partition: str | None = None) -> Any:
    """Rows in several files, each of which is a task."""
    writer = frame(spark, rows(60)).repartition(5).write
    (writer if partition is None else writer.partitionBy(partition)).parquet(str(folder))
    return spark.read.parquet(str(folder))


def test_rows_are_counted_by_partition(spark, tmp_path):
    hf.write(batch(range(4)), tmp_path / "t", PARTITIONED)
    rows = batch(range(50))
    plan = draft_plan(load_state(Storage(tmp_path / "t")), WriteOptions.from_options(PARTITIONED), rows.schema)
    assert count_rows(frame(spark, rows), plan) == ({"p0": 13, "p1": 13, "p2": 12, "p3": 12}, 3)


def test_rows_of_many_files_are_counted_in_few_tasks(spark, tmp_path):
    hf.write(batch(range(4)), tmp_path / "t", PARTITIONED)
    rows = batch(range(50))
    plan = draft_plan(load_state(Storage(tmp_path / "t")), WriteOptions.from_options(PARTITIONED), rows.schema)
    frame(spark, rows).repartition(9).write.parquet(str(tmp_path / "rows"))
    with session_conf(spark, {"spark.sql.files.openCostInBytes": str(128 << 20)}):  # a task for each file
        scan = spark.read.parquet(str(tmp_path / "rows"))
        assert count_rows(scan, plan) == ({"p0": 13, "p1": 13, "p2": 12, "p3": 12}, 9)
        counted, _ = count_rows(scan.where("id < 'k0005'"), plan)
    assert counted == {"p0": 2, "p1": 1, "p2": 1, "p3": 1}
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"


@pytest.fixture
def task_a_file(spark: Any) -> Any:
    with session_conf(spark, {"spark.sql.files.openCostInBytes": str(128 << 20)}):
        yield


@pytest.mark.usefixtures("task_a_file")
@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("shape", ["all", "filtered", "projected", "partitioned"])
def test_python_counts_as_spark_does(spark: Any, tmp_path: Path, partitions: str, shape: str) -> None:
    df = stored(spark, tmp_path / "rows", "number" if shape == "partitioned" else None)
    if shape == "filtered":
        df = df.filter("ts >= 10 AND part = 'p 1'")
    if shape == "projected":
        df = df.selectExpr("ts", "id", "'p 0' AS part", "day", "number", "inner")
    plan = planned(tmp_path / "t", arrow_schema(df), PARTITIONS[partitions], spark)
    files = file_scan(df)
    assert count_rows(df, plan, files)[0] == count_rows(df, plan)[0]
    assert count_pieces(df, plan, 4, files) == count_pieces(df, plan, 4)


@pytest.mark.usefixtures("task_a_file")
def test_tasks_count_on_a_cluster(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    df = stored(spark, tmp_path / "rows")
    plan = planned(tmp_path / "t", arrow_schema(df), PARTITIONS["text"], spark)
    files = file_scan(df)
    here = count_pieces(df, plan, 4, files)
    monkeypatch.setattr(counting, "is_local", lambda _: False)
    assert count_pieces(df, plan, 4, files) == here


def test_only_the_partition_columns_are_read(spark: Any, tmp_path: Path) -> None:
    df = stored(spark, tmp_path / "rows").filter("ts < 30")
    chosen = file_scan(df).of_columns(["day", "part"])
    assert chosen.columns.names == ["ts", "part", "day"]
    (task,) = {split for task in chosen.tasks for split in task if split.file == 0}
    found = pa.Table.from_batches(chosen.read([task]), chosen.schema)
    assert found.column_names == ["day", "part"]
    assert 0 < found.num_rows < 30
