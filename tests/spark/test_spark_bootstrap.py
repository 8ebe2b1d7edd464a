"""Bootstraps on Spark: the tables of the local engine, skeletons by tasks, rows by a bulk insert, queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.support.bootstrap_tables import BY_REGEX, bootstrap_options, changed, data, make_source, unpack
from tests.support.rows import assert_same_rows

TASKS = {"hudi_fast.driver.max.bytes": 0}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def plan_text(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.smoke("hive")
@pytest.mark.parametrize("style", ["hive", "plain"])
def test_tasks_make_what_threads_make(spark: Any, style: str, tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source", style))
    options = bootstrap_options(**TASKS, **BY_REGEX, hoodie__datasource__write__partitionpath__field="city")
    options["hoodie.bootstrap.mode.selector.regex"] = ".*c1"
    result = hf.bootstrap(tmp_path / "source", tmp_path / "t", options, spark=spark)
    assert (result.plan, result.inserts, len(result.kept), len(result.copied)) == ("spark", rows.num_rows, 2, 1)
    table = hf.HudiTable.open(tmp_path / "t")
    assert data(table.to_arrow()).equals(rows)
    assert len(table.to_arrow(["_hoodie_commit_seqno"]).column(0).unique()) == rows.num_rows
    assert table.services.validate().ok
    read = hf.read(spark, tmp_path / "t")
    assert_same_rows(collect(read), table.to_arrow(), ignore=())


def test_data_columns_are_scanned_by_spark_itself(spark: Any, tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source"))
    hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(**MOR))
    read = hf.read(spark, tmp_path / "t", columns=["id", "fare", "tags", "city", "at"])
    text = plan_text(read.filter("fare > 300 and city = 'c2'").select("id"))
    assert "MapInArrow" not in text
    assert "GreaterThan(fare,300.0)" in text
    assert data(collect(read)).equals(rows.select(["id", "fare", "tags", "city", "at"]))
    table = hf.HudiTable.open(tmp_path / "t")
    table.upsert(changed(rows.slice(0, 2)))
    table.delete(rows.slice(30, 1))
    for columns in (["id", "note", "city"], ["_hoodie_record_key", "note"], None):
        assert_same_rows(collect(hf.read(spark, tmp_path / "t", columns=columns)), table.to_arrow(columns), ignore=())
    assert hf.read(spark, tmp_path / "t", columns=["note"]).filter(F.col("note") == "changed").count() == 2


def test_a_table_of_real_hudi(spark: Any, tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    assert_same_rows(collect(hf.read(spark, real.path)), real.expected, ignore=())
    some = ["note", "city", "amount"]
    assert_same_rows(collect(hf.read(spark, real.path, columns=some)), real.expected.select(some), ignore=())


def test_files_with_types_of_their_own_are_read_right(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(pa.table({"id": pa.array(["a"]), "n": pa.array([1], pa.int32())}), source / "1.parquet")
    pq.write_table(pa.table({"id": pa.array(["b"]), "n": pa.array([1.5], pa.float64())}), source / "2.parquet")
    stamp = pa.table({"id": pa.array(["c"]), "at": pa.array([10**18], pa.timestamp("ns", "UTC"))})
    pq.write_table(stamp, source / "3.parquet", use_deprecated_int96_timestamps=True)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hf.bootstrap(source, tmp_path / "t", options)
    expected = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "n", "at"])
    assert_same_rows(collect(hf.read(spark, tmp_path / "t", columns=["id", "n", "at"])), expected, key=["id"])


def test_a_write_with_the_operation_bootstrap(spark: Any, tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source"))
    options = bootstrap_options(
        hoodie__datasource__write__operation="bootstrap", hoodie__bootstrap__base__path=str(tmp_path / "source")
    )
    result = hf.write(spark.createDataFrame([], "x int"), tmp_path / "t", options, "overwrite")
    assert (result.operation, result.inserts) == ("bootstrap", rows.num_rows)
    table = hf.HudiTable.open(tmp_path / "t")
    row = changed(data(table.to_arrow()).slice(1, 1), note="by spark")
    hf.write(spark.createDataFrame(row), tmp_path / "t", bootstrap_options())
    found = hf.read(spark, tmp_path / "t").filter("note = 'by spark'").collect()
    assert [one["id"] for one in found] == ["k0001"]
