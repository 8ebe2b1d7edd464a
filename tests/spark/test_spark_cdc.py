"""Change queries with Spark: what the local reader gives, columns and filters applied.

Modules: hudi_fast.spark.reading.scan.
"""

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.reading.incremental.cdc import change_options, plan_query
from hudi_fast.spark.reading.reader import incremental_frame
from hudi_fast.storage.base import Storage
from tests.spark.programs import run_program

CDC = change_options("earliest", None)


def rows_of(frame):
    return sorted(map(repr, (tuple(row) for row in frame.collect())))


@pytest.mark.smoke("mor_v9_cdc")
@pytest.mark.parametrize("name", ["cow_v9_cdc", "mor_v9_cdc"])
def test_spark_gives_what_the_local_reader_gives(spark, golden, name):
    path = str(golden(name).table)
    frame = hf.read(spark, path, CDC)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        (column, "string") for column in ("op", "ts_ms", "before", "after")
    ]
    expected = hf.HudiTable.open(path).cdc("earliest")
    assert rows_of(frame) == sorted(repr(tuple(row.values())) for row in expected.to_pylist())


def test_columns_and_filters_are_applied(spark, golden):
    path = str(golden("mor_v9_cdc").table)
    deletes = hf.HudiTable.open(path).cdc("earliest").filter(pc.field("op") == "d")
    expected = sorted(repr((row["before"], row["op"])) for row in deletes.to_pylist())
    for asked in ("op = 'd'", F.col("op") == "d", pc.field("op") == "d"):
        assert rows_of(hf.read(spark, path, CDC, columns=["before", "op"], filter=asked)) == expected
    assert len(expected) == 5
    for asked in ("after IS NULL", F.col("After").isNull(), pc.field("after").is_null()):
        assert rows_of(hf.read(spark, path, CDC, columns=["before", "op"], filter=asked)) == expected


def test_a_range_without_commits_is_a_frame_without_rows(spark, golden):
    path = str(golden("cow_v9_cdc").table)
    last = hf.HudiTable.open(path).cdc("earliest")["ts_ms"].to_pylist()
    frame = hf.read(spark, path, change_options(max(last), None))
    assert (frame.count(), frame.columns) == (0, ["op", "ts_ms", "before", "after"])


def test_tasks_get_about_as_many_bytes_each(spark, golden):
    plan = plan_query(Storage(golden("mor_v9_cdc").table), CDC)
    frame = incremental_frame(spark, plan)
    assert frame.rdd.getNumPartitions() == min(len(plan.units), spark.sparkContext.defaultParallelism)
    counted = frame.groupBy(F.spark_partition_id()).count().collect()
    assert len(counted) == frame.rdd.getNumPartitions()


@pytest.mark.smoke
def test_changes_on_spark_35(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    (line,) = run_program("change_queries", tmp_path, python=python)
    assert line.startswith("pyspark.sql.session 3.5.")
    assert line.endswith(" 12")


@pytest.mark.long
def test_changes_on_spark_connect(java, tmp_path):
    (line,) = run_program("change_queries", tmp_path, "connect")
    assert line.startswith("pyspark.sql.connect.session 4.")
    assert line.endswith(" 12")
