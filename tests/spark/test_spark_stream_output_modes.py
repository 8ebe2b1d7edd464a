"""Output modes of a stream into a table: what a batch replaces, and that it does so once.

Module: hudi_fast.spark_api.streaming.exactly_once.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark_api.streaming.exactly_once import save_mode_of, with_output_mode
from hudi_fast.spark_api.streaming.sink import stream_writer
from tests.spark.programs import environment_of
from tests.spark.stream_files import numbered, put_file, stream_of
from tests.support.small_tables import assert_tidy, options, rows_of, table_rows

OPERATION = "hoodie.datasource.write.operation"
COMBINE = "hoodie.combine.before.insert"
COUNTS = {**options(ordering="count"), "hoodie.table.name": "counts"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def counted(spark, folder):
    """How often each key was in the files so far."""
    return stream_of(spark, folder / "in").groupBy("id", "part").count()


def run(spark, folder, mode, settings=None, checkpoint="checkpoint"):
    query = stream_writer(
        counted(spark, folder),
        folder / "t",
        {**COUNTS, **(settings or {})},
        output_mode=mode,
        trigger={"availableNow": True},
        checkpoint=str(folder / checkpoint),
    )
    query.awaitTermination()


def counts_in(path, as_of=None):
    rows = hf.HudiTable.open(path).to_arrow(as_of=as_of).to_pylist()
    return {int(row["id"][1:]): row["count"] for row in rows}


def operations(path):
    return hf.HudiTable.open(path).history()["operation"].to_pylist()


@pytest.mark.parametrize("settings", [pytest.param({}, marks=pytest.mark.long), MOR], ids=["cow", "mor"])
def test_an_update_changes_the_rows_that_it_has_and_keeps_the_others(spark, tmp_path, settings):
    put_file(tmp_path / "in", 0, numbered(range(4), 0))
    put_file(tmp_path / "in", 1, numbered(range(2, 6), 1))
    run(spark, tmp_path, "update", settings)
    assert counts_in(tmp_path / "t") == {0: 1, 1: 1, 2: 2, 3: 2, 4: 1, 5: 1}
    assert operations(tmp_path / "t") == ["UPSERT"] * 2
    put_file(tmp_path / "in", 2, numbered([5], 2))
    run(spark, tmp_path, "update", settings)
    assert counts_in(tmp_path / "t")[5] == 2


@pytest.mark.smoke("cow")
@pytest.mark.parametrize("settings", [{}, pytest.param(MOR, marks=pytest.mark.long)], ids=["cow", "mor"])
def test_a_complete_batch_replaces_all_rows_in_one_commit_and_keeps_the_history(spark, tmp_path, settings):
    old = numbered([77], 0).select(["id", "part", "ts"]).rename_columns(["id", "part", "count"])
    hf.write(old, tmp_path / "t", {**COUNTS, **settings})
    put_file(tmp_path / "in", 0, numbered(range(4), 0))
    put_file(tmp_path / "in", 1, numbered(range(2, 6), 1))
    run(spark, tmp_path, "complete", settings)
    assert counts_in(tmp_path / "t") == {0: 1, 1: 1, 2: 2, 3: 2, 4: 1, 5: 1}
    table = hf.HudiTable.open(tmp_path / "t")
    assert operations(tmp_path / "t") == ["UPSERT", *["INSERT_OVERWRITE_TABLE"] * 2]
    first, second = table.history()["instant"].to_pylist()[:2]
    assert counts_in(tmp_path / "t", as_of=second) == dict.fromkeys(range(4), 1)
    assert list(counts_in(tmp_path / "t", as_of=first)) == [77]
    assert_tidy(tmp_path / "t")


def test_groups_that_a_complete_batch_no_longer_has_are_gone(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", options(), mode="complete")
    for batch, numbers in enumerate((range(6), range(4, 8), [])):
        rows = spark.createDataFrame(numbered([*numbers, 99], batch).to_pandas()).filter("number <> 99")
        sink(rows, batch)
        assert sorted(one[-1] for one in table_rows(tmp_path / "t").values()) == list(numbers)
    assert operations(tmp_path / "t") == ["INSERT_OVERWRITE_TABLE"] * 3


@pytest.mark.parametrize("mode", ["complete", pytest.param("update", marks=pytest.mark.long)])
def test_a_batch_whose_commit_spark_did_not_learn_of_is_skipped(spark, tmp_path, mode):
    put_file(tmp_path / "in", 0, numbered(range(4), 0))
    put_file(tmp_path / "in", 1, numbered(range(2, 6), 1))
    run(spark, tmp_path, mode)
    before = hf.HudiTable.open(tmp_path / "t").history()["instant"].to_pylist()
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink()
    run(spark, tmp_path, mode)
    assert hf.HudiTable.open(tmp_path / "t").history()["instant"].to_pylist() == before
    with pytest.raises(Exception, match=r"ConfigError: Batch 0 of the query .* up to 1 of the stream"):
        run(spark, tmp_path, mode, checkpoint="another")


def test_batches_in_an_object_store_are_written_once_by_one_commit_each(spark, s3_server):
    path, store = s3_server.path("complete"), s3_server.options
    settings = {"hoodie.clean.automatic": "false", **options()}
    for batch, numbers in ((0, range(6)), (1, range(4, 8)), (1, range(50)), (0, range(50))):
        sink = hf.sink(path, settings, mode="complete", storage_options=store)
        sink(spark.createDataFrame(numbered(numbers, batch).to_pandas()), batch)
    table = hf.HudiTable.open(path, store)
    assert sorted(one[-1] for one in rows_of(table.to_arrow()).values()) == [4, 5, 6, 7]
    history = table.history().to_pylist()
    assert [(one["action"], one["operation"]) for one in history] == [("replacecommit", "INSERT_OVERWRITE_TABLE")] * 2
    earlier = table.to_arrow(as_of=history[0]["instant"])
    assert sorted(one[-1] for one in rows_of(earlier).values()) == list(range(6))


def test_rows_of_a_complete_batch_with_one_key_are_merged_as_an_upsert_merges_them(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", options(), mode="complete")
    twice = spark.createDataFrame(numbered([1, 2, 3], 1).to_pandas())
    sink(twice.union(twice.withColumn("ts", F.lit(5).cast("long")).withColumn("number", F.col("number") + 10)), 0)
    assert sorted(one[-1] for one in table_rows(tmp_path / "t").values()) == [11, 12, 13]


def test_a_mode_that_the_operation_contradicts_is_refused(tmp_path):
    for mode, operation in (("update", "insert"), ("update", "delete"), ("complete", "delete")):
        with pytest.raises(hf.ConfigError, match=f"operation={operation} contradicts the output mode {mode}"):
            hf.sink(tmp_path / "t", options(operation=operation), mode=mode)


def test_an_update_of_a_table_without_record_keys_is_refused(spark, tmp_path):
    settings = {"hoodie.table.name": "t"}
    with pytest.raises(hf.ConfigError, match="key"):
        hf.sink(tmp_path / "t", settings, mode="update")(spark.createDataFrame(numbered([1], 1).to_pandas()), 0)
    assert not (tmp_path / "t").exists()


def test_the_options_of_a_batch_follow_from_the_mode():
    given = {"hoodie.datasource.write.recordkey.field": "id"}
    assert with_output_mode(given, "append") == given
    assert with_output_mode(given, "update") == {**given, OPERATION: "upsert"}
    assert with_output_mode(given, "complete") == {**given, OPERATION: "insert_overwrite_table", COMBINE: "true"}
    assert with_output_mode({**given, COMBINE: "false"}, "complete")[COMBINE] == "false"
    assert COMBINE not in with_output_mode({}, "complete")  # keys that are generated differ
    inserted = with_output_mode({**given, OPERATION: "INSERT"}, "complete")
    assert inserted == {**given, OPERATION: "insert_overwrite_table"}
    assert [save_mode_of(mode) for mode in ("append", "update", "complete", "overwrite")] == [
        *["append"] * 3,
        "overwrite",
    ]


@pytest.mark.long
def test_drivers_of_complete_batches_are_killed_and_the_last_batch_is_the_table(java, tmp_path):
    for batch in range(12):
        put_file(tmp_path / "in", batch, numbered(range(10 * batch, 10 * batch + 10), batch))
    command = [sys.executable, "-m", "tests.spark.stream_driver", str(tmp_path), "COPY_ON_WRITE", "complete"]
    moments = random.Random(7)
    for kill in (True, True, True, False):
        driver = subprocess.Popen(command, env=environment_of(), stdout=subprocess.PIPE, text=True)
        assert driver.stdout is not None
        if kill:
            driver.stdout.readline()
            time.sleep(moments.uniform(0, 1))
            driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=240)
    assert driver.returncode == 0
    rows = hf.HudiTable.open(tmp_path / "t").to_arrow(columns=["id", "number", "ts"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [("p0", 118, 11), ("p1", 119, 11)]
    assert_tidy(tmp_path / "t")
