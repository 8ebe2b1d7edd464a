"""``hf.stream_changes``: batches of a table's commits, each again the same after a failure.

Modules: hudi_fast.reading.incremental.commit_range, hudi_fast.spark_api.streaming.changes.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import hudi_fast as hf
from hudi_fast.config.read_options import EARLIEST
from hudi_fast.reading.incremental.commit_range import FIRST, BatchLimits, StreamOffset, StreamQuery
from hudi_fast.spark_api.streaming.sink import stream_reader
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.spark.programs import environment_of, run_program
from tests.spark.stream_files import numbered
from tests.support.small_tables import options, table_rows

MOR = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
START = "hoodie.datasource.streaming.startOffset"
TWO = {"hudi_fast.stream.max.commits": "2"}


def put(path, *commits, settings=None):
    """One commit of ten rows for each number."""
    for number in commits:
        hf.write(numbered(range(10 * number, 10 * number + 10), number), path, settings or options())


class Kept:
    """Collects the batches that a stream delivers; fails where it is told, after the batch was read."""

    def __init__(self, fails_at=None):
        self.batches = {}
        self.fails_at = fails_at

    def __call__(self, rows, batch):
        assert batch not in self.batches
        self.batches[batch] = sorted(one.number for one in rows.collect())
        if batch == self.fails_at:
            raise RuntimeError("told to fail")

    @property
    def commits(self):
        """The commits of each batch, which are of ten rows each."""
        return {batch: sorted({number // 10 for number in numbers}) for batch, numbers in self.batches.items()}


def drain(spark, folder, settings=None, fails_at=None, trigger="availableNow", **more):
    kept = Kept(fails_at)
    query = hf.stream_changes(
        spark, folder / "t", kept, settings, checkpoint=folder / "checkpoint", trigger={trigger: True}, **more
    )
    if fails_at is None:
        query.awaitTermination()
    else:
        with pytest.raises(Exception, match="told to fail"):
            query.awaitTermination()
    return kept.commits


@pytest.mark.smoke
def test_a_stream_delivers_every_commit_once_in_batches_as_large_as_allowed(spark, tmp_path):
    put(tmp_path / "t", 0, 1, 2)
    assert drain(spark, tmp_path, TWO) == {0: [0, 1], 1: [2]}
    assert drain(spark, tmp_path, TWO) == {}
    put(tmp_path / "t", 3)
    assert drain(spark, tmp_path, TWO) == {2: [3]}
    newest = load_state(Storage(tmp_path / "t")).timeline.writes()[-1].completion
    written = (tmp_path / "checkpoint" / "offsets" / "2").read_text().splitlines()
    assert json.loads(written[-1]) == {"offsetCommitTime": newest}


def test_a_trigger_once_delivers_everything_in_one_batch(spark, tmp_path):
    put(tmp_path / "t", 0, 1, 2)
    assert drain(spark, tmp_path, TWO, trigger="once") == {0: [0, 1, 2]}


def test_a_stream_begins_where_it_is_told(spark, tmp_path):
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        put(tmp_path / str(number) / "t", 0)
    middle = load_state(Storage(tmp_path / "0" / "t")).timeline.writes()[-1].completion
    put(tmp_path / "0" / "t", 1)
    assert drain(spark, tmp_path / "0", {START: middle}) == {0: [1]}
    assert drain(spark, tmp_path / "1", {START: "earliest"}) == {0: [0]}
    assert drain(spark, tmp_path / "2", {START: "latest"}) == {}


@pytest.mark.parametrize(
    "settings",
    [options(), pytest.param(MOR, marks=pytest.mark.long), options(table_version="6")],
    ids=["cow", "mor", "version 6"],
)
def test_a_failed_batch_is_delivered_again_with_the_same_number_and_commits(spark, tmp_path, settings):
    put(tmp_path / "t", 0, 1, 2, settings=settings)
    assert drain(spark, tmp_path, TWO, fails_at=1) == {0: [0, 1], 1: [2]}
    put(tmp_path / "t", 3, 4, settings=settings)
    assert drain(spark, tmp_path, {}, fails_at=1) == {1: [2]}
    assert drain(spark, tmp_path, {}) == {1: [2], 2: [3, 4]}


def test_the_first_batch_from_the_latest_commit_is_the_same_when_it_is_delivered_again(spark, tmp_path):
    put(tmp_path / "t", 0)
    started, go = threading.Event(), {"hudi_fast.stream.max.commits": "1", START: "latest"}
    kept = Kept(fails_at=0)

    def deliver(rows, batch):
        started.set()
        kept(rows, batch)

    query = hf.stream_changes(spark, tmp_path / "t", deliver, go, checkpoint=tmp_path / "checkpoint")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "checkpoint" / "clock").glob("commits/*")) and time.monotonic() < deadline:
        time.sleep(0.1)  # the stream has begun after the commit of now
    assert not started.is_set()
    put(tmp_path / "t", 1)
    with pytest.raises(Exception, match="told to fail"):
        query.awaitTermination()
    assert kept.commits == {0: [1]}
    put(tmp_path / "t", 2)
    assert drain(spark, tmp_path, go) == {0: [1], 1: [2]}


def test_without_a_trigger_the_stream_goes_on_until_it_is_stopped(spark, tmp_path):
    put(tmp_path / "t", 0)
    kept = Kept()
    query = hf.stream_changes(
        spark, tmp_path / "t", kept, checkpoint=tmp_path / "checkpoint", query_name="numbers", columns=["number"]
    )
    assert query.name == "numbers"
    for number in (1, 2):
        deadline = time.monotonic() + 60
        while number - 1 not in kept.batches and time.monotonic() < deadline:
            time.sleep(0.1)
        put(tmp_path / "t", number)
    while 2 not in kept.batches and time.monotonic() < deadline + 60:
        time.sleep(0.1)
    query.stop()
    assert kept.commits == {0: [0], 1: [1], 2: [2]}


def test_a_filter_and_columns_apply_to_every_batch(spark, tmp_path):
    put(tmp_path / "t", 0, 1, settings=MOR)
    found = []
    hf.stream_changes(
        spark,
        tmp_path / "t",
        lambda rows, _: found.extend(map(tuple, rows.collect())),
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        columns=["number", "ts"],
        filter="number in (3, 14)",
    ).awaitTermination()
    assert sorted(found) == [(3, 0), (14, 1)]


def test_a_sink_takes_the_batches_of_a_restarted_stream_as_those_of_one_query(spark, tmp_path):
    for number in range(3):
        put(tmp_path / "t", number)
        sink = hf.sink(tmp_path / "copy", options(operation="insert"))
        query = hf.stream_changes(
            spark,
            tmp_path / "t",
            lambda rows, batch, sink=sink: sink(rows.select("id", "part", "ts", "number"), batch),
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    assert table_rows(tmp_path / "copy") == table_rows(tmp_path / "t")
    assert len(hf.HudiTable.open(tmp_path / "copy").history()) == 3
    assert json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"] == str(query.id)


def test_sparks_own_source_goes_on_from_the_checkpoint_and_the_other_way_round(spark, tmp_path):
    hf.register_data_source(spark)

    def sparks(kept):
        writer = stream_reader(spark, tmp_path / "t").writeStream.foreachBatch(kept).trigger(availableNow=True)
        for left in (2, 1, 0):  # Spark gives a Python source ten seconds to start, busy machines take more
            try:
                writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
                return
            except Exception as error:
                if left == 0 or "failed to connect back" not in str(error):
                    raise

    put(tmp_path / "t", 0, 1)
    assert drain(spark, tmp_path, {"hudi_fast.stream.max.commits": "1"}) == {0: [0], 1: [1]}
    put(tmp_path / "t", 2)
    kept = Kept()
    sparks(kept)
    assert kept.commits == {2: [2]}
    put(tmp_path / "t", 3)
    assert drain(spark, tmp_path) == {3: [3]}


def test_a_batch_that_sparks_own_source_left_is_delivered(spark, tmp_path):
    hf.register_data_source(spark)
    put(tmp_path / "t", 0)
    kept = Kept(fails_at=0)
    writer = stream_reader(spark, tmp_path / "t").writeStream.foreachBatch(kept).trigger(availableNow=True)
    with pytest.raises(Exception, match="told to fail"):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    put(tmp_path / "t", 1)
    assert drain(spark, tmp_path) == {0: [0], 1: [1]}


def test_a_stream_of_changes_has_what_was_inserted_updated_and_deleted(spark, tmp_path):
    asked = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
    settings = {**options(), "hoodie.table.cdc.enabled": "true"}
    found = []
    for number in range(2):
        hf.write(numbered(range(2 * number, 2 * number + 3), number), tmp_path / "t", settings)
        hf.stream_changes(
            spark,
            tmp_path / "t",
            lambda rows, batch: found.append((batch, sorted(one.op for one in rows.collect()))),
            asked,
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
        ).awaitTermination()
    assert found == [(0, ["i", "i", "i"]), (1, ["i", "i", "u"])]


def test_before_version_8_a_stream_waits_for_a_commit_that_others_have_overtaken(spark, tmp_path):
    put(tmp_path / "t", 0, 1, 2, settings=options(table_version="6"))
    times = [one.requested for one in load_state(Storage(tmp_path / "t")).timeline.writes()]
    middle = tmp_path / "t" / ".hoodie" / f"{times[1]}.commit"
    kept = middle.read_bytes()
    middle.unlink()  # pending again
    assert drain(spark, tmp_path) == {0: [0]}
    assert drain(spark, tmp_path) == {}
    query = StreamQuery.from_options(Storage(tmp_path / "t"), {})
    assert query.batch_settings(FIRST, times[0]).hollow_commit_policy == "BLOCK"  # for the source of PySpark 4
    middle.write_bytes(kept)
    assert drain(spark, tmp_path) == {1: [1, 2]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hoodie.datasource.read.begin.instanttime": "earliest"}, "belongs to a query of one range"),
        ({"hoodie.datasource.read.end.instanttime": "20240101000000"}, "belongs to a query of one range"),
        ({"as.of.instant": "20240101000000"}, "belongs to a query of one range"),
        ({"hoodie.datasource.query.type": "read_optimized"}, "read_optimized does not apply to a stream"),
        ({"hudi_fast.stream.max.commits": "0"}, "out of range"),
    ],
)
def test_options_that_a_stream_cannot_follow_are_refused_before_it_starts(spark, tmp_path, given, said):
    put(tmp_path / "t", 0)
    with pytest.raises(hf.ConfigError, match=said):
        hf.stream_changes(spark, tmp_path / "t", print, given, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(hf.ConfigError, match=said):
        stream_reader(spark, tmp_path / "t", given)
    assert not (tmp_path / "checkpoint").exists()


def test_wrong_arguments_are_refused_before_the_stream_starts(spark, tmp_path):
    place = {"checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(hf.TableNotFoundError):
        hf.stream_changes(spark, tmp_path / "t", print, **place)
    put(tmp_path / "t", 0)
    with pytest.raises(hf.ConfigError, match="stream_changes needs a SparkSession, got str"):
        hf.stream_changes("spark", tmp_path / "t", print, **place)
    with pytest.raises(hf.ConfigError, match="each_batch is a function"):
        hf.stream_changes(spark, tmp_path / "t", None, **place)
    for trigger in ({"continuous": "1 second"}, {"availableNow": True, "once": True}):
        with pytest.raises(hf.ConfigError, match="use one of availableNow, once, processingTime"):
            hf.stream_changes(spark, tmp_path / "t", print, trigger=trigger, **place)
    assert not (tmp_path / "checkpoint").exists()


def test_offsets_and_ends_of_a_stream(tmp_path):
    put(tmp_path / "t", 0, 1)
    query = StreamQuery.from_options(Storage(tmp_path / "t"), {})
    times = [one.completion for one in load_state(Storage(tmp_path / "t")).timeline.writes()]
    assert (query.start(), query.newest()) == (FIRST, times[1])
    assert query.end_after(FIRST, BatchLimits(max_commits=1)) == times[0]
    assert query.end_after(times[1], BatchLimits()) == times[1]
    assert query.batch_options({}, FIRST, times[0])["hoodie.datasource.read.begin.instanttime"] == EARLIEST
    both = StreamOffset(times[1], times[0])
    assert StreamOffset.of(both.stored()) == both
    assert StreamOffset(times[1]).stored() == {"offsetCommitTime": times[1]}
    for wrong in ({"time": "1"}, {"offsetCommitTime": 1}, []):
        with pytest.raises(hf.CorruptTableError, match="has no offsetCommitTime"):
            StreamOffset.of(wrong)


# ---- drivers of their own


def spark_35(request):
    return request.config.rootpath / ".venv-spark35" / "bin" / "python"


def copied(folder):
    rows = hf.HudiTable.open(folder / "copy").to_arrow()
    return sorted(rows["number"].to_pylist())


@pytest.mark.long
def test_on_spark_35_a_killed_driver_delivers_the_same_batch_again(java, tmp_path, request):
    put(tmp_path / "source", 0, 1)
    python = spark_35(request)
    command = [str(python), "-m", "tests.spark.changes_driver", str(tmp_path), "hang"]
    driver = subprocess.Popen(command, env=environment_of(python), stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    line = driver.stdout.readline()
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert line == "batch 0 10\n"
    log = tmp_path / "checkpoint"
    assert (log / "offsets" / "0").exists()
    assert not (log / "commits" / "0").exists()
    put(tmp_path / "source", 2)
    lines = run_program("changes_driver", tmp_path, python=python)
    assert lines[:3] == ["batch 0 10", "batch 1 10", "batch 2 10"]
    assert lines[3].startswith("pyspark.sql.session 3.5.")
    assert copied(tmp_path) == list(range(30))
    assert len(hf.HudiTable.open(tmp_path / "copy").history()) == 3


@pytest.mark.long
def test_a_stream_on_spark_connect(java, tmp_path):
    put(tmp_path / "source", 0, 1)
    (line,) = run_program("changes_driver", tmp_path, "connect")
    assert line.startswith("pyspark.sql.connect.session 4.")
    assert copied(tmp_path) == list(range(20))


@pytest.mark.long
@pytest.mark.parametrize("old", [True, False], ids=["3.5", "4"])
def test_drivers_are_killed_again_and_again_and_every_row_is_copied_once(java, tmp_path, request, old):
    put(tmp_path / "source", *range(25))
    python, moments = spark_35(request) if old else sys.executable, random.Random(5)
    command = [str(python), "-m", "tests.spark.changes_driver", str(tmp_path)]
    for _ in range(5):
        driver = subprocess.Popen(command, env=environment_of(python), stdout=subprocess.PIPE, text=True)
        assert driver.stdout is not None
        driver.stdout.readline()
        time.sleep(moments.uniform(0, 1))
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    run_program("changes_driver", tmp_path, python=python)
    assert copied(tmp_path) == list(range(250))
    operations = hf.HudiTable.open(tmp_path / "copy").history()["operation"].to_pylist()
    assert operations.count("INSERT") == 25
