"""``hudi-fast stream``: once, until it is stopped, and with what HoodieStreamer is given."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest

import hudi_fast as hf
from hudi_fast.streamer.arguments import ARGUMENTS, REFUSED, WITHOUT_EFFECT
from tests.servers.s3 import free_port


@pytest.fixture
def job(tmp_path):
    """A property file, a folder with one file, and the arguments of a stream of them."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "fare": 9.5}\n{"id": 2, "fare": 3}')
    file = tmp_path / "trips.properties"
    file.write_text(
        f"hoodie.datasource.write.recordkey.field=id\nhoodie.deltastreamer.source.dfs.root=file://{tmp_path}/in\n"
    )
    source = "org.apache.hudi.utilities.sources.JsonDFSSource"
    return [
        *("--props", str(file), "--source-class", source, "--target-base-path", str(tmp_path / "trips")),
        *("--target-table", "trips", "--table-type", "MERGE_ON_READ", "--op", "UPSERT"),
    ]


def test_the_arguments_of_hoodie_streamer_run(run, job, tmp_path):
    code, out, errors = run("stream", *job, "--source-ordering-field", "fare", "--json")
    assert (code, errors) == (0, "")
    told = json.loads(out)
    assert (told["inserts"], told["updates"], told["deletes"]) == (2, 0, 0)
    config = hf.HudiTable.open(tmp_path / "trips").config
    assert (config.name, config.is_mor, config.ordering_fields) == ("trips", True, ("fare",))
    assert json.loads(run("stream", *job, "--json")[1])["instant"] == ""


def test_a_property_may_be_given_beside_the_file(run, job, tmp_path):
    code, _, errors = run("stream", *job, "--hoodie-conf", "hoodie.table.name=other", "--json")
    assert (code, errors) == (0, "")
    assert hf.HudiTable.open(tmp_path / "trips").config.name == "trips"  # the argument wins


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "needs --target-base-path"),
        (("no.properties",), "no.properties cannot be read: No such file or directory"),
        (("--target-base-path", "t", "--source-class", "KinesisSource"), "KinesisSource is not supported"),
        (("a", "--props", "b"), "Give the property file once"),
    ],
)
def test_what_is_missing_is_told_in_one_line(run, arguments, told):
    code, out, errors = run("stream", *arguments)
    assert (code != 0, out) == (True, "")
    assert told in errors


def test_every_argument_of_hoodie_streamer_is_taken_refused_or_without_effect():
    known = {name for one in ARGUMENTS for name in (one.name, *one.others)}
    assert not known & set(REFUSED)
    assert not known & WITHOUT_EFFECT
    assert {"props", "hoodie-conf", "help"} | known | set(REFUSED) | WITHOUT_EFFECT >= HOODIE_STREAMER


HOODIE_STREAMER = set(
    """
    target-base-path target-table table-type base-file-format props hoodie-conf source-class source-ordering-fields
    source-ordering-field payload-class merge-mode record-merge-mode merge-strategy-id record-merge-strategy-id
    merge-impl-classes record-merge-custom-implementation-classes schemaprovider-class transformer-class source-limit op
    filter-dupes enable-hive-sync enable-sync force-empty-sync sync-tool-classes max-pending-compactions
    max-pending-clustering continuous min-sync-interval-seconds spark-master enable-hive-support commit-on-errors
    delta-sync-scheduling-weight compact-scheduling-weight delta-sync-scheduling-minshare compact-scheduling-minshare
    disable-compaction checkpoint initial-checkpoint-provider run-bootstrap bootstrap-overwrite bootstrap-index-class
    retry-on-source-failures retry-interval-seconds max-retry-count allow-commit-on-no-checkpoint-change help
    retry-last-pending-inline-clustering retry-last-pending-inline-compaction cluster-scheduling-weight
    cluster-scheduling-minshare post-write-termination-strategy-class ingestion-metrics-class
    config-hot-update-strategy-class ignore-checkpoint spark-app-name
    """.split()
)
"""Arguments of ``HoodieStreamer.Config``, Hudi 1.2.0."""


@pytest.mark.slow
def test_a_stream_ends_after_its_turn_when_the_process_is_asked_to(job, tmp_path):
    program = "from hudi_fast.cli.main import program; program()"
    command = [sys.executable, "-c", program, "stream", *job, "--continuous", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["inserts"] == 2
    (tmp_path / "in" / "2.json").write_text('{"id": 3, "fare": 1}')
    assert json.loads(process.stdout.readline())["inserts"] == 1
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (0, "", "")
    assert time.monotonic() - started < 10
    assert hf.HudiTable.open(tmp_path / "trips").history()["state"].unique().to_pylist() == ["COMPLETED"]
    assert hf.HudiTable.open(tmp_path / "trips").count() == 3


def test_a_check_tells_where_a_stream_begins_and_writes_nothing(run, job, tmp_path):
    code, out, errors = run("stream", *job, "--spark-master", "yarn", "--check", "--json")
    told = json.loads(out)
    assert (code, errors) == (0, "")
    assert (told["exists"], told["source"], told["position"]) == (False, "JsonDFSSource", None)
    assert told["without_effect"] == ["spark-master"]
    assert not (tmp_path / "trips").exists()
    run("stream", *job)
    told = json.loads(run("stream", *job, "--check", "--json")[1])
    assert (told["exists"], told["operation"]) == (True, "upsert")
    assert told["position"].isdecimal()


@pytest.mark.slow
def test_a_running_stream_answers_at_its_port(job):
    port = free_port()
    program = "from hudi_fast.cli.main import program; program()"
    command = [sys.executable, "-c", program, "stream", *job, "--continuous", "--json", "--health-port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["inserts"] == 2
    with urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
        assert json.load(answer)["rows"]["inserts"] == 2
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert b"hudi_fast_stream_turns_total 1.0" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


def test_several_tables_have_their_turns_one_after_the_other(run, tmp_path):
    (tmp_path / "conf").mkdir()
    for number, name in enumerate(("orders", "customers"), 1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.json").write_text("\n".join(f'{{"id": {key}}}' for key in range(number)))
        (tmp_path / "conf" / f"shop_{name}_config.properties").write_text(
            f"hoodie.streamer.source.dfs.root={tmp_path}/{name}\nhoodie.datasource.write.recordkey.field=id\n"
        )
    file = tmp_path / "all.properties"
    file.write_text("hoodie.streamer.ingestion.tablesToBeIngested=shop.orders,shop.customers\n")
    job = ["--props", file, "--base-path-prefix", tmp_path / "lake", "--config-folder", tmp_path / "conf"]
    code, out, errors = run("stream", *job, "--source-class", "JsonDFSSource", "--json")
    assert (code, errors) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["table"], one["inserts"]) for one in told] == [
        (f"{tmp_path}/lake/shop/orders", 1),
        (f"{tmp_path}/lake/shop/customers", 2),
    ]
    code, out, _ = run("stream", *job, "--source-class", "JsonDFSSource", "--check", "--json")
    assert [json.loads(line)["exists"] for line in out.splitlines()] == [True, True]
    assert run("stream", *job, "--source-class", "JsonDFSSource", "--health-port", 8080)[0] == 2
