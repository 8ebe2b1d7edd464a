"""The files, the balance and the memory of large merges, updates and deletes by condition.

Modules: hudi_fast.spark.dml, hudi_fast.spark.writing.engine, hudi_fast.spark.writing.routed.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.compute import field
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.spark.spark_writes import frame
from tests.spark.test_spark_routed import MAX_FILE, PARTITIONED, ROUTED, SIZED, assert_sized, wide_rows, written_files
from tests.support.rows import assert_same_rows

DATA = ["id", "part", "ts", "noise"]


def uneven(ids: Any, ts: int = 1) -> pa.Table:
    """Rows of which nine in ten are in one partition."""
    rows = wide_rows(ids, ts=ts)
    places = np.where(np.asarray(ids) % 10 > 0, "today", "other")
    return rows.set_column(rows.schema.get_field_index("part"), "part", pa.array(places))


def same_rows(path: Path, other: Path) -> None:
    """Both tables hold the same data."""
    found, expected = (hf.HudiTable.open(each).to_arrow(DATA).sort_by("id") for each in (path, other))
    assert_same_rows(found, expected, ignore=())


def merge_of(spark: Any, path: Path, source: Any, options: dict[str, str]) -> Any:
    """A merge that updates one column and inserts rows: its keys are joined, not looked up."""
    merge = hf.merge(spark, path, source, options).on("id")
    return merge.when_matched_update({"ts": "source.ts"}).when_not_matched_insert().execute()


@pytest.mark.long("COPY_ON_WRITE-7")
@pytest.mark.parametrize(
    ("kind", "tasks"),
    [("MERGE_ON_READ", 16), *(pytest.param("COPY_ON_WRITE", tasks, marks=pytest.mark.long) for tasks in (3, 7))],
)
def test_the_files_of_a_merge_depend_on_bytes_alone(spark, tmp_path, kind, tasks):
    settings = {**PARTITIONED, **SIZED, "hoodie.datasource.write.table.type": kind}
    for name in ("t", "local"):
        hf.write(uneven(range(800)), tmp_path / name, settings)
    source = uneven(range(400, 20_000), ts=2)
    options = {**SIZED, **ROUTED, "hoodie.upsert.shuffle.parallelism": str(tasks)}
    result = merge_of(spark, tmp_path / "t", frame(spark, source), options)
    assert (result.plan, result.updates, result.inserts) == ("routed", 400, 19_200)
    assert "19,600 changed rows go to their file groups, 19,200 of them are new, in 2 partitions" in result.reason
    assert_sized(tmp_path / "t")
    merge_of(None, tmp_path / "local", source, SIZED)
    same_rows(tmp_path / "t", tmp_path / "local")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.long)])
def test_rows_that_move_to_another_partition_are_counted_as_new_rows(spark, tmp_path, kind):
    settings = {**PARTITIONED, **SIZED, "hoodie.datasource.write.table.type": kind}
    for name in ("t", "local"):
        hf.write(uneven(range(10_000)), tmp_path / name, settings)
    options = {**SIZED, **ROUTED, "hoodie.upsert.shuffle.parallelism": "16"}
    result = hf.update(spark, tmp_path / "t", "part = 'today'", {"part": "'later'"}, options)
    assert "18,000 changed rows go to their file groups, 9,000 of them are new, in 1 partitions" in result.reason
    hf.update(None, tmp_path / "local", field("part") == "today", {"part": "'later'"}, SIZED)
    same_rows(tmp_path / "t", tmp_path / "local")
    later = written_files(tmp_path / "t")["later"]
    assert len(later) <= 1 + math.ceil(sum(later) / MAX_FILE) * 1.1


def test_a_statement_that_inserts_nothing_is_not_counted(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("hudi_fast.spark.writing.engine.count_changes", None)
    hf.write(uneven(range(3_000)), tmp_path / "t", {**PARTITIONED, **SIZED})
    result = hf.update(spark, tmp_path / "t", "part = 'today'", {"ts": 5}, ROUTED)
    assert (result.updates, result.reason) == (
        2_700,
        "changed rows go to their file groups; hudi_fast.plan=routed",
    )


def test_tasks_share_the_file_groups_that_a_statement_reads(spark, tmp_path):
    """Thirty file groups, of which an update reads those of one partition: its tasks get one each."""
    places = pa.array([f"p{number % 3}" for number in range(30_000)])
    rows = wide_rows(range(30_000)).set_column(1, "part", places)
    sized = {"hoodie.parquet.max.file.size": "200000", "hoodie.parquet.small.file.limit": "0"}
    hf.write(rows, tmp_path / "t", {**PARTITIONED, **sized})
    groups = [one for one in hf.HudiTable.open(tmp_path / "t").files().to_pylist() if one["partition"] == "p1"]
    options = {**sized, **ROUTED, "hoodie.upsert.shuffle.parallelism": str(len(groups))}
    hf.update(spark, tmp_path / "t", "part = 'p1'", {"ts": 5}, options)
    written = hf.HudiTable.open(tmp_path / "t").files().to_pylist()
    tokens = [one["base_file"].split("_")[1].split("-")[0] for one in written if one["partition"] == "p1"]
    assert len(tokens) == len(set(tokens)) == len(groups)


def test_new_rows_of_a_partition_that_was_not_counted_are_inserted(spark, tmp_path, monkeypatch):
    """A source may give other rows when Spark evaluates it again."""
    monkeypatch.setattr("hudi_fast.spark.writing.engine.count_changes", lambda df, plan: ({"p9": 3}, {"p9": 3}))
    settings = {**PARTITIONED, **SIZED}
    hf.write(uneven(range(100)), tmp_path / "t", settings)
    result = merge_of(spark, tmp_path / "t", frame(spark, uneven(range(50, 300), ts=2)), {**SIZED, **ROUTED})
    assert (result.updates, result.inserts) == (50, 200)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["id"]).num_rows == 300


@pytest.mark.parametrize("way", [pytest.param("update", marks=pytest.mark.long), "delete by source"])
def test_the_size_of_a_statement_is_at_most_that_of_table_and_source(spark, tmp_path, way):
    """Spark multiplies the sizes of the sides of a join, and does not know how many rows Python makes."""
    kind = "COPY_ON_WRITE" if way == "delete by source" else "MERGE_ON_READ"
    settings = {**PARTITIONED, **SIZED, "hoodie.datasource.write.table.type": kind}
    hf.write(wide_rows(range(10_000)), tmp_path / "t", settings)
    few = {"hudi_fast.driver.max.bytes": "250000"}
    if way == "update":
        hf.write(wide_rows(range(10_000), ts=2), tmp_path / "t", settings)  # logs as large as base files
        result = hf.update(spark, tmp_path / "t", None, {"ts": 5}, few)
        assert result.updates == 10_000
    else:
        spark.range(5_000).select(F.format_string("k%07d", "id").alias("id")).write.parquet(str(tmp_path / "source"))
        merge = hf.merge(spark, tmp_path / "t", spark.read.parquet(str(tmp_path / "source")), few).on("id")
        result = merge.when_not_matched_by_source_delete().execute()
        assert result.deletes == 5_000
    stored = hf.HudiTable.open(tmp_path / "t").files()["bytes"].to_pylist()
    assert result.plan == "routed"
    expected = int(re.search(r"Spark expects ([\d,]+) bytes", result.reason)[1].replace(",", ""))
    assert expected < 2 * sum(stored)
