"""The sink: batches of real streaming queries, and what happens when a batch cannot be written.

Module: hudi_fast.spark_api.streaming.sink.
"""

from __future__ import annotations

import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import machine_lock
from hudi_fast.spark.arrow import collect
from hudi_fast.spark_api.streaming.sink import stream_writer
from hudi_fast.storage.base import Storage
from tests.spark.programs import environment_of
from tests.spark.stream_files import numbered, put_file, stream_of
from tests.support.small_tables import assert_tidy, options, rows_of, table_rows

OPTIONS = options()
MOR = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
RETRY = "hoodie.datasource.write.streaming.retry"


def frame(spark, numbers, ts=1):
    return spark.createDataFrame(numbered(numbers, ts).to_pandas())


def run(spark, folder, settings, checkpoint="checkpoint", **more):
    query = stream_writer(
        stream_of(spark, folder / "in"),
        folder / "t",
        settings,
        trigger={"availableNow": True},
        checkpoint=str(folder / checkpoint),
        **more,
    )
    query.awaitTermination()
    return query


def operations(path):
    history = hf.HudiTable.open(path).history().to_pylist()
    return [one["operation"] for one in history if one["operation"] is not None]


def numbers_of(path):
    return sorted(values[-1] for values in table_rows(path).values())


@pytest.mark.smoke
def test_a_stream_goes_on_where_it_stopped_and_another_may_not_take_its_name(spark, tmp_path):
    for batch in range(2):
        put_file(tmp_path / "in", batch, numbered(range(10 * batch, 10 * batch + 15), batch))
    query = run(spark, tmp_path, OPTIONS, query_name="numbers")
    assert query.name == "numbers"
    assert operations(tmp_path / "t") == ["UPSERT", "UPSERT"]
    put_file(tmp_path / "in", 2, numbered(range(20, 40), 2))
    run(spark, tmp_path, OPTIONS)
    assert numbers_of(tmp_path / "t") == list(range(40))
    with pytest.raises(Exception, match=r"ConfigError: Batch 0 of the query .* up to 2 of the stream"):
        run(spark, tmp_path, OPTIONS, checkpoint="another")
    named = {**OPTIONS, "hoodie.datasource.write.streaming.checkpoint.identifier": "another"}
    run(spark, tmp_path, named, checkpoint="third")
    assert len(operations(tmp_path / "t")) == 6
    assert_tidy(tmp_path / "t")


@pytest.mark.smoke
def test_a_batch_whose_commit_spark_did_not_learn_of_is_skipped(spark, tmp_path):
    put_file(tmp_path / "in", 0, numbered(range(9), 0))
    settings = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
    run(spark, tmp_path, settings)
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink()
    run(spark, tmp_path, settings)
    assert operations(tmp_path / "t") == ["INSERT"]
    assert numbers_of(tmp_path / "t") == list(range(9))


def test_wrong_options_are_refused_before_the_query_starts(tmp_path):
    with pytest.raises(hf.ConfigError, match=r"retry\.count=0 is out of range"):
        hf.sink(tmp_path / "t", {**OPTIONS, f"{RETRY}.count": "0"})
    with pytest.raises(hf.ConfigError, match="modes append, update, complete, overwrite; got 'ignore'"):
        hf.sink(tmp_path / "t", OPTIONS, mode="ignore")
    with pytest.raises(hf.ConfigError, match="The output mode 'insert' is unknown"):
        stream_writer(None, tmp_path / "t", OPTIONS, output_mode="insert")


def test_a_sink_is_pickled_as_what_it_was_made_of(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", OPTIONS)
    sink(frame(spark, range(3)), 0)
    copied = pickle.loads(pickle.dumps(sink))
    copied(frame(spark, range(30)), 0)
    copied(frame(spark, range(3, 5)), 1)
    sink(frame(spark, range(30)), 1)  # written by the other one since
    assert numbers_of(tmp_path / "t") == list(range(5))


def test_batches_without_rows_are_commits_unless_the_options_say_no(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", OPTIONS)
    sink(frame(spark, range(3)), 0)
    nothing = frame(spark, range(1)).limit(0)
    sink(nothing, 1)
    hf.sink(tmp_path / "t", {**OPTIONS, "hoodie.allow.empty.commit": "false"})(nothing, 2)
    sink(frame(spark, range(3, 4)), 2)
    assert operations(tmp_path / "t") == ["UPSERT"] * 3
    assert numbers_of(tmp_path / "t") == list(range(4))


def test_what_may_pass_is_tried_again(spark, tmp_path):
    settings = {**OPTIONS, "hoodie.write.lock.wait_time_ms": "50", f"{RETRY}.interval.ms": "300"}
    sink = hf.sink(tmp_path / "t", settings)
    sink(frame(spark, range(3)), 0)
    held, done = threading.Event(), threading.Event()

    def hold():
        with machine_lock(Storage(tmp_path / "t"), 5):
            held.set()
            done.wait(0.4)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    sink(frame(spark, range(3, 6)), 1)
    other.join()
    assert numbers_of(tmp_path / "t") == list(range(6))


def test_a_batch_that_fails_for_good_fails_the_stream_or_is_left_out(spark, tmp_path):
    settings = {**OPTIONS, "hoodie.write.lock.wait_time_ms": "20", f"{RETRY}.count": "2", f"{RETRY}.interval.ms": "1"}
    sink = hf.sink(tmp_path / "t", settings)
    lenient = hf.sink(tmp_path / "t", {**settings, "hoodie.datasource.write.streaming.ignore.failed.batch": "true"})
    sink(frame(spark, range(3)), 0)
    with machine_lock(Storage(tmp_path / "t"), 5):
        with pytest.raises(hf.LockTimeoutError):
            sink(frame(spark, range(3, 6)), 1)
        with pytest.warns(hf.HudiWarning, match="Batch 1 of the stream .* failed and is skipped: LockTimeoutError"):
            lenient(frame(spark, range(3, 6)), 1)
    lenient(frame(spark, range(6, 9)), 2)
    assert numbers_of(tmp_path / "t") == [0, 1, 2, 6, 7, 8]


def test_what_is_wrong_with_the_rows_is_not_tried_again(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", {**OPTIONS, f"{RETRY}.interval.ms": "600000"})
    with pytest.raises(hf.InvalidDataError):
        sink(spark.sql("select cast(null as string) as id, 'p0' as part, 1L as ts, 1L as number"), 0)
    assert not (tmp_path / "t").exists()


def test_a_merge_on_read_table_is_compacted_beside_the_stream(spark, tmp_path):
    sink = hf.sink(tmp_path / "t", {**MOR, "hoodie.compact.inline.max.delta.commits": "2"})
    for batch in range(6):
        sink(frame(spark, range(batch, batch + 10), batch), batch)
        if batch == 3:
            assert sink.wait(60)
    assert sink.wait(60)
    assert operations(tmp_path / "t").count("COMPACT") >= 2
    assert numbers_of(tmp_path / "t") == list(range(15))
    assert_tidy(tmp_path / "t")


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.datasource.write.streaming.disable.compaction": "true"},
        {"hoodie.datasource.compaction.async.enable": "false"},
        {"hoodie.table.services.enabled": "false"},
    ],
)
def test_no_compaction_where_the_options_say_no(spark, tmp_path, changes):
    sink = hf.sink(tmp_path / "t", {**MOR, "hoodie.compact.inline.max.delta.commits": "1", **changes})
    for batch in range(2):
        sink(frame(spark, range(batch, batch + 3), batch), batch)
    assert sink.wait(60)
    assert operations(tmp_path / "t") == ["UPSERT"] * 2


def test_a_table_is_clustered_beside_the_stream(spark, tmp_path):
    asked = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "2"}
    sink = hf.sink(tmp_path / "t", {**OPTIONS, **asked, "hoodie.datasource.write.operation": "insert"})
    for batch in range(3):
        sink(frame(spark, range(3 * batch, 3 * batch + 3), batch), batch)
        assert sink.wait(60)
    assert "CLUSTER" in operations(tmp_path / "t")
    assert numbers_of(tmp_path / "t") == list(range(9))


def test_a_plan_that_a_dead_driver_left_is_taken_up(spark, tmp_path):
    planned = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    for ts in range(2):
        hf.write(numbered(range(5), ts), tmp_path / "t", {**MOR, **planned})
    assert hf.HudiTable.open(tmp_path / "t").services.pending()["service"].to_pylist() == ["compact"]
    sink = hf.sink(tmp_path / "t", MOR)
    sink(frame(spark, range(5), 3), 0)
    assert sink.wait(60)
    assert "COMPACT" in operations(tmp_path / "t")


def test_a_service_that_fails_beside_the_stream_is_a_warning(spark, tmp_path):
    calm = hf.sink(tmp_path / "t", {**MOR, "hoodie.datasource.compaction.async.enable": "false"})
    for batch in range(2):
        calm(frame(spark, range(0, 6, 2), batch), batch)
    (base,) = (tmp_path / "t" / "p0").glob("*.parquet")
    kept = base.read_bytes()
    base.write_bytes(b"")
    sink = hf.sink(tmp_path / "t", {**MOR, "hoodie.compact.inline.max.delta.commits": "2"})

    def compact_what_is_damaged():
        sink(frame(spark, range(1, 6, 2)), 2)
        assert sink.wait(60)

    with pytest.warns(hf.HudiWarning, match="An asynchronous service of the stream into .* The stream continues"):
        compact_what_is_damaged()
    base.write_bytes(kept)
    sink(frame(spark, range(7, 8)), 3)
    assert sink.wait(60)
    assert "COMPACT" in operations(tmp_path / "t")
    assert numbers_of(tmp_path / "t") == [0, 1, 2, 3, 4, 5, 7]


def test_a_service_that_fails_after_a_batch_neither_ends_the_stream_nor_repeats_the_batch(spark, tmp_path):
    strict = {
        **OPTIONS,
        "hoodie.clean.commits.retained": "1",
        "hoodie.fail.writes.on.inline.table.service.exception": "true",
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.metastore.uris": "thrift://localhost:1",
    }
    calm = {**OPTIONS, "hoodie.table.services.enabled": "false"}
    for batch in range(3):
        put_file(tmp_path / "in", batch, numbered(range(3), batch))
        run(spark, tmp_path, calm, query_name="calm")
    newest = max((tmp_path / "t" / ".hoodie" / "timeline").glob("*.commit"))
    newest.with_name(f"{int(newest.name[:17]) + 1}.clean.requested").write_bytes(b"Obj\x01 no plan")
    for batch in (3, 4):
        put_file(tmp_path / "in", batch, numbered(range(10 * batch, 10 * batch + 2), batch))
        with pytest.warns(hf.HudiWarning, match="is committed; a service after it failed") as told:
            run(spark, tmp_path, strict, query_name="calm")
        said = " ".join(str(one.message) for one in told)
        assert "clean: " in said
        assert "sync: The Hive metastore" in said
    assert numbers_of(tmp_path / "t") == [0, 1, 2, 30, 31, 40, 41]
    assert operations(tmp_path / "t") == ["UPSERT"] * 5


def test_on_spark_a_write_heals_what_its_pipeline_left_and_tells_what_happened(spark, tmp_path):
    clusters = {**OPTIONS, "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    calm = {**OPTIONS, "hoodie.table.services.enabled": "false"}
    path = tmp_path / "t"
    for ts in (1, 2):
        hf.write(frame(spark, range(4), ts), path, {**calm, "hoodie.datasource.write.operation": "upsert"})
    assert hf.HudiTable.open(path).services.schedule_cluster(clusters) is not None
    with pytest.raises(hf.CommitConflictError, match="pending clustering is rewriting"):
        hf.write(frame(spark, range(4), 3), path, calm)
    hf.write(frame(spark, range(4), 4), path, clusters)
    assert hf.HudiTable.open(path).services.pending().num_rows == 0
    assert operations(path).count("CLUSTER") == 2
    newest = max((path / ".hoodie" / "timeline").glob("*.*commit"))
    newest.with_name(f"{int(newest.name[:17]) + 1}.clean.requested").write_bytes(b"Obj\x01 no plan")
    insert = {**OPTIONS, "hoodie.clean.commits.retained": "1", "hoodie.datasource.write.operation": "insert"}
    with pytest.raises(hf.PostCommitError, match="Do not run the write again") as caught:
        hf.write(frame(spark, [9], 9), path, insert)
    assert caught.value.result.inserts == 1
    assert numbers_of(path) == [0, 1, 2, 3, 9]


def start_driver(folder, kind):
    command = [sys.executable, "-m", "tests.spark.stream_driver", str(folder), kind]
    return subprocess.Popen(command, env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_drivers(folder: Path, kind: str, kills: int, batches: int, seed: int) -> None:
    """Have a stream driven whose driver is killed while it writes; then to its end. Every row is there once."""
    moments = random.Random(seed)
    for batch in range(batches):
        put_file(folder / "in", batch, numbered(range(20 * batch, 20 * batch + 20), batch))
    for _ in range(kills):
        driver = start_driver(folder, kind)
        assert driver.stdout is not None
        for line in driver.stdout:
            if line.startswith("batch"):
                break
        time.sleep(moments.uniform(0, 0.5))
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    driver = start_driver(folder, kind)
    _, errors = driver.communicate(timeout=240)
    assert driver.returncode == 0, errors[-6000:]
    rows = hf.HudiTable.open(folder / "t").to_arrow()
    assert rows.num_rows == 20 * batches
    assert sorted(rows["number"].to_pylist()) == list(range(20 * batches))


@pytest.mark.long
def test_a_driver_is_killed_and_every_row_is_there_once(java, tmp_path):
    kill_drivers(tmp_path, "MERGE_ON_READ", kills=1, batches=4, seed=1)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "seed"), [("COPY_ON_WRITE", 2), ("MERGE_ON_READ", 3), ("MERGE_ON_READ", 4)])
def test_drivers_are_killed_again_and_again_and_every_row_is_there_once(java, tmp_path, kind, seed):
    kill_drivers(tmp_path, kind, kills=6, batches=40, seed=seed)


def test_what_comes_out_of_a_stream_is_what_hf_read_reads(spark, tmp_path):
    put_file(tmp_path / "in", 0, numbered(range(20), 0))
    run(spark, tmp_path, MOR)
    assert rows_of(collect(hf.read(spark, tmp_path / "t"))) == table_rows(tmp_path / "t")
