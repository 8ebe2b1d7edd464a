"""``hudi-fast stream --engine spark``: its session, and a driver that is killed.

Modules: hudi_fast.streamer.on_spark.engine, hudi_fast.spark.session, hudi_fast.cli.shared.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.cli.main import main
from tests.streamer.test_streamer_kafka import ids, message
from tests.streamer.test_streamer_spark_folder import feed, put, row
from tests.support.jvm import java_options, pyspark_jars
from tests.support.small_tables import assert_tidy, options

PROGRAM = "from hudi_fast.cli.main import program; program()"


@pytest.fixture
def job(tmp_path) -> Path:
    """A property file of a folder, which describes a small session of Spark."""
    (tmp_path / "in").mkdir()
    settings = options(operation="insert") | {
        "hoodie.streamer.source.dfs.root": f"{tmp_path}/in",
        "hudi_fast.streamer.source-class": "JsonDFSSource",
        "hudi_fast.streamer.target-base-path": f"{tmp_path}/t",
        "hudi_fast.streamer.op": "INSERT",
        **session_settings(tmp_path),
    }
    return write(tmp_path / "stream.properties", settings)


def session_settings(folder):
    return {
        "hudi_fast.streamer.engine": "spark",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": java_options(512, pyspark_jars()),
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }


def write(file, settings):
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process; gives (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["hudi-fast", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


@contextlib.contextmanager
def running(job, *arguments) -> Iterator[subprocess.Popen[str]]:
    """A continuous stream in a process of its own, which is killed in the end."""
    command = [sys.executable, "-c", PROGRAM, "stream", str(job), "--continuous", "--json", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    with open(job.with_suffix(".log"), "ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def next_turn(process):
    line = process.stdout.readline()
    assert line, "the stream ended"
    return json.loads(line)


@pytest.mark.spark
def test_a_command_starts_a_session_and_ends_it_after_the_turn_under_way(job, tmp_path):
    put(tmp_path / "in", "1.json", [row(0), row(1)])
    with running(job, "--master", "local[1]", "--conf", "spark.app.name=orders") as process:
        assert next_turn(process)["inserts"] == 2
        put(tmp_path / "in", "2.json", [row(2)], 2)
        assert next_turn(process)["inserts"] == 1
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
    assert ids(tmp_path / "t") == [0, 1, 2]
    assert_tidy(tmp_path / "t")


@pytest.mark.spark
@pytest.mark.parametrize("step", ["turn", "commit"])
def test_a_driver_that_is_killed_loses_and_doubles_no_row(job, tmp_path, spark, step):
    path = tmp_path / "t"
    put(tmp_path / "in", "1.json", [row(number) for number in range(3)], 30)
    with running(job, "--spark-master", "local[2]") as process:
        next_turn(process)
        before = files(path)
        put(tmp_path / "in", "2.json", [row(number) for number in range(3, 9)], 20)
        if step == "turn":  # rows are in files, and the commit is not there
            wait_for(lambda: files(path) > before)
        else:
            next_turn(process)
    put(tmp_path / "in", "3.json", [row(9)], 10)
    more = {"hoodie.datasource.write.operation": "insert"}
    feed(path, tmp_path / "in", more, spark=spark, op="INSERT")
    assert feed(path, tmp_path / "in", more, op="INSERT").instant == ""
    assert ids(path) == list(range(10))
    assert_tidy(path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))])
def test_a_driver_that_is_killed_again_and_again_writes_each_message_once(kafka, tmp_path, seed):
    topic, chance, sent, path = f"killed.{tmp_path.name}", random.Random(seed), 0, tmp_path / "t"
    kafka.create_topic(topic, 2)
    job = write(
        tmp_path / "stream.properties",
        options(operation="insert")
        | {
            "bootstrap.servers": kafka.servers,
            "auto.offset.reset": "earliest",
            "hoodie.streamer.source.kafka.topic": topic,
            "hudi_fast.streamer.source-class": "JsonKafkaSource",
            "hudi_fast.streamer.target-base-path": f"{path}",
            "hudi_fast.streamer.op": "INSERT",
            "hudi_fast.streamer.source-limit": "15",
            "hoodie.datasource.write.table.type": ("COPY_ON_WRITE", "MERGE_ON_READ")[seed % 2],
            **session_settings(tmp_path),
        },
    )
    for start in range(4):
        engine = ("spark", "spark", "process", "spark")[start]
        master = ["--master", "local[2]"] if engine == "spark" else []
        kafka.send(topic, [message(number) for number in range(sent, sent + 40)])
        sent += 40
        with running(job, "--engine", engine, *master) as process:
            next_turn(process)
            time.sleep(chance.uniform(0, 2))
    with running(job, "--engine", "process") as process:
        wait_for(lambda: process.poll() is not None or len(ids(path)) >= sent)  # a turn without rows prints nothing
    assert ids(path) == list(range(sent))


def files(path):
    return {one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts}


def wait_for(is_true):
    deadline = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- wrong input


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--master", "yarn"), "--master and --conf are settings of Spark. Give --engine spark"),
        (("--conf", "spark.ui.enabled=false"), "--master and --conf are settings of Spark"),
        (("--engine", "flink"), "--engine is one of process, spark; got 'flink'"),
        (("--engine", "spark", "--conf", "ui.enabled=false"), "begins with spark.; got 'ui.enabled'"),
        (("--engine", "spark", "--conf", "spark.ui.enabled"), "--conf"),
    ],
)
def test_wrong_settings_of_a_session_are_told_in_one_line(run, tmp_path, arguments, told):
    (tmp_path / "in").mkdir()
    names = ["--source-class", "JsonDFSSource", "--target-base-path", str(tmp_path / "t")]
    root = f"hoodie.streamer.source.dfs.root={tmp_path}/in"
    code, _, errors = run("stream", *names, "--hoodie-conf", root, *arguments)
    assert code != 0
    assert told in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.spark
def test_a_master_that_does_not_answer_is_told(job, tmp_path):
    command = [sys.executable, "-c", PROGRAM, "stream", str(job), "--master", "no-such-master"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Spark does not start with the master 'no-such-master'" in done.stderr.splitlines()[-1]
    assert not hf.is_table(tmp_path / "t")
