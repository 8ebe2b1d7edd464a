"""Tasks that fail, are tried again, or are left behind; sources that do not give the same rows twice."""

from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.spark.writing.tasks import Answer, answers
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.markers import create_marker, make_marker_folder
from tests.spark.programs import run_program
from tests.spark.spark_writes import batch, frame
from tests.support.small_tables import assert_tidy, options

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def test_tasks_that_fail_are_tried_again_and_leave_no_trace(java, tmp_path):
    assert run_program("retried_tasks", tmp_path, "routed", "fused") == ["routed", "fused"]


@pytest.mark.long
def test_tasks_of_the_other_plans_that_fail_are_tried_again_and_leave_no_trace(java, tmp_path):
    assert run_program("retried_tasks", tmp_path, "direct", "broadcast") == ["direct", "broadcast"]


@pytest.mark.long
@pytest.mark.parametrize("plan", ["fused"])
def test_a_worker_stays_below_a_gibibyte(java, tmp_path, plan):
    size, peak = map(int, run_program("worker_memory", tmp_path, plan)[-1].split())
    assert size >= 120
    assert 100 < peak < 1024


def left_behind(tmp_path, has_ended):
    """A task whose write has ended, or not, when it is done; whether its file is still there."""
    hf.write(batch(range(10)), tmp_path / "t", options())
    storage = Storage(tmp_path / "t")
    plan = draft_plan(load_state(storage), WriteOptions.from_options(options()), batch([1]).schema)
    plan = replace(plan, instant="20300101000000000")
    make_marker_folder(storage, plan.instant)

    def work(_):
        create_marker(storage, plan.instant, "p1/late.parquet", "CREATE")
        storage.write_bytes("p1/late.parquet", b"rows")
        if has_ended:
            storage.delete_dir(f".hoodie/.temp/{plan.instant}")
        return Answer([WriteStat(file_id="f", path="p1/late.parquet", prev_commit="null", partition_path="p1")])

    assert len(list(answers(plan, work)([]))) == 1
    return storage.exists("p1/late.parquet")


def test_a_task_that_comes_too_late_takes_its_files_away(tmp_path):
    assert not left_behind(tmp_path, has_ended=True)
    assert left_behind(tmp_path, has_ended=False)


def drawn(spark):
    """500 rows whose keys and places are random, and others whenever the source runs."""

    def draw(batches):
        for numbers in batches:
            keys = [uuid4().hex for _ in range(numbers.num_rows)]
            parts = [f"p{int(key[0], 16) % 4}" for key in keys]
            texts = [f"{key}|{part}" for key, part in zip(keys, parts, strict=True)]
            yield pa.RecordBatch.from_pydict({"id": keys, "part": parts, "ts": numbers.column(0), "text": texts})

    return spark.range(0, 500, 1, 3).mapInArrow(draw, "id string, part string, ts long, text string")


@pytest.mark.parametrize(
    ("plan", "index"),
    [
        ("fused", "BLOOM"),
        ("routed", "GLOBAL_SIMPLE"),
        pytest.param("broadcast", "BLOOM", marks=pytest.mark.long),
        pytest.param("driver", "BLOOM", marks=pytest.mark.long),
        pytest.param("routed", "BLOOM", marks=pytest.mark.long),
    ],
)
def test_rows_that_come_out_different_each_time(spark, tmp_path, plan, index):
    rows = drawn(spark)
    settings = options(index=index) | {"hudi_fast.plan": plan}
    for count in (500, 1000):
        assert hf.write(rows, tmp_path / "t", settings).inserts == 500
        table = hf.HudiTable.open(tmp_path / "t").to_arrow()
        assert table.num_rows == len(set(table["id"].to_pylist())) == count
        for row in table.to_pylist():  # key, place and row are of one drawing
            assert row["_hoodie_record_key"] == row["id"]
            assert row["_hoodie_partition_path"] == row["part"]
            assert row["text"] == f"{row['id']}|{row['part']}"


def counted(spark, log, times=1):
    """A source of 60 rows that makes a file for each of its two tasks that runs; or of so many times 60 rows."""

    def note(batches):
        (log / uuid4().hex).touch()
        for rows in batches:
            yield from [rows] * times

    source = spark.range(0, 60, 1, 2).selectExpr("concat('k', id) as id", "concat('p', id % 3) as part", "id as ts")
    log.mkdir()
    return source.mapInArrow(note, source.schema)


@pytest.mark.parametrize(
    "plan",
    [
        "fused",
        "auto",
        pytest.param("broadcast", marks=pytest.mark.long),
        pytest.param("driver", marks=pytest.mark.long),
    ],
)
def test_the_source_runs_once(spark, tmp_path, plan):
    log = tmp_path / "log"
    assert hf.write(counted(spark, log), tmp_path / "t", options() | {"hudi_fast.plan": plan}).inserts == 60
    assert len(list(log.iterdir())) == 2


def test_a_source_that_is_larger_than_it_seemed_runs_for_its_size_its_partitions_and_its_rows(spark, tmp_path):
    log = tmp_path / "log"
    result = hf.write(counted(spark, log, times=50), tmp_path / "t", options() | {"hudi_fast.driver.max.bytes": "9000"})
    assert (result.plan, result.inserts) == ("fused", 60)
    assert len(list(log.iterdir())) == 6
    assert_tidy(tmp_path / "t")


@pytest.mark.smoke("fused")
@pytest.mark.parametrize(
    "plan",
    [
        "driver",
        "fused",
        pytest.param("broadcast", marks=pytest.mark.long),
        pytest.param("routed", marks=pytest.mark.long),
    ],
)
def test_the_session_is_left_as_it_was(spark, tmp_path, plan):
    settings = options() | {"hudi_fast.plan": plan}
    before = spark.conf.get(BATCH_ROWS)
    spark.conf.set(BATCH_ROWS, "777")
    try:
        hf.write(frame(spark, batch(range(20))), tmp_path / "t", settings)
        bad = frame(spark, batch(range(20))).withColumn("id", F.lit(""))
        with pytest.raises(hf.InvalidDataError):
            hf.write(bad, tmp_path / "t", settings)
        assert spark.conf.get(BATCH_ROWS) == "777"
    finally:
        spark.conf.set(BATCH_ROWS, before)
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


@pytest.mark.smoke
def test_the_plan_follows_from_size_index_and_partitions(spark, tmp_path):
    rows = frame(spark, batch(range(40)))
    unpartitioned = options(partition=None)
    large = {"hudi_fast.driver.max.bytes": "100"}
    cases = [
        (options(), "driver", "40 rows"),
        (options() | large, "fused", "bytes"),
        (unpartitioned | large, "routed", "not partitioned"),
        (options(index="GLOBAL_BLOOM") | large, "routed", "GLOBAL_BLOOM"),
        (options(operation="bulk_insert") | large, "direct", "bulk_insert"),
    ]
    for number, (settings, plan, reason) in enumerate(cases):
        preview = hf.plan_write(rows, tmp_path / str(number), settings)
        assert not (tmp_path / str(number)).exists()
        result = hf.write(rows, tmp_path / str(number), settings)
        assert (result.plan, result.inserts) == (plan, 40)
        assert reason in result.reason
        assert (preview.plan, preview.reason) == (result.plan, result.reason)
        assert preview.partitions is None if plan == "direct" else sum(preview.partitions.values()) == 40
        assert (preview.tasks is None) == (plan in ("driver", "direct"))


@pytest.mark.parametrize(
    ("changes", "plan", "message"),
    [
        ({"hoodie.index.type": "GLOBAL_SIMPLE"}, "fused", "use routed"),
        ({"hoodie.datasource.insert.dup.policy": "drop"}, "routed", "use fused"),
    ],
)
def test_plans_that_cannot_serve_are_refused(spark, tmp_path, changes, plan, message):
    with pytest.raises(hf.HudiError, match=message):
        hf.write(frame(spark, batch([1])), tmp_path / "t", options() | changes | {"hudi_fast.plan": plan})
    assert list(tmp_path.iterdir()) == []


def test_a_delete_with_a_global_index_does_not_go_by_partition(spark, tmp_path):
    """A row to delete need not name the partition that its key is stored in."""
    changed = options() | {"hoodie.index.type": "GLOBAL_SIMPLE"}
    hf.write(batch(range(20)), tmp_path / "t", changed)
    gone = {**changed, "hoodie.datasource.write.operation": "delete"}
    with pytest.raises(hf.ConfigError, match="use routed"):
        hf.write(frame(spark, batch([1, 2], shift=1)), tmp_path / "t", gone | {"hudi_fast.plan": "fused"})
    result = hf.write(frame(spark, batch([1, 2], shift=1)), tmp_path / "t", gone | {"hudi_fast.driver.max.bytes": "1"})
    assert (result.plan, result.deletes) == ("routed", 2)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["id"]).num_rows == 18
