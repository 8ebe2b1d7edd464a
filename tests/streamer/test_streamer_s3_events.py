"""A folder in S3 that is fed by a queue: each object once, whatever comes twice and whenever the process is killed."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import boto3
import pytest
from botocore.config import Config

import hudi_fast as hf
from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, start_s3
from tests.servers.s3_events import NotifiedBucket
from tests.support.instrumented_storage import FaultyStorage

_numbers = itertools.count()
ONE_TRY = Config(retries={"total_max_attempts": 1})
KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.insert.drop.duplicates": "false",
}


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    """S3 and SQS of this machine."""
    folder = tmp_path_factory.mktemp("moto")
    with start_s3(folder, folder, "moto") as server:
        yield server


class Job:
    """A stream from a bucket into a table of this machine."""

    def __init__(self, server, folder):
        self.server, self.table = server, str(folder / "t")
        self.bucket = NotifiedBucket(server, f"events{next(_numbers)}")

    @property
    def properties(self):
        return KEYS | {
            "hoodie.streamer.source.dfs.root": f"s3a://{self.bucket.name}/in",
            "hoodie.streamer.s3.source.queue.url": self.bucket.url,
            "hoodie.deltastreamer.s3.source.queue.region": REGION,
            "hoodie.streamer.s3.source.queue.long.poll.wait": "0",
        }

    def stream(self, more=None, source="JsonDFSSource", **arguments):
        given = {"op": "INSERT", "target_base_path": self.table, **arguments}
        return hf.Streamer({**self.properties, **(more or {})}, source_class=source, **given)

    def turn(self, more=None, **arguments):
        streamer = self.stream(more, **arguments)
        try:
            return streamer.turn()
        finally:
            streamer.close()

    def ids(self):
        """How often each id is in the table; inserts do not merge rows."""
        return Counter(hf.read(self.table, columns=["id"])["id"].to_pylist())


@pytest.fixture
def job(moto, tmp_path, monkeypatch):
    """A job with a bucket of its own, whose server is in the environment: its table is on this machine."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", REGION)
    made = Job(moto, tmp_path)
    yield made
    made.bucket.close()


@pytest.mark.smoke
def test_objects_are_read_once_and_their_messages_are_deleted(job):
    job.bucket.put("in/1.json", [{"id": 1}, {"id": 2}])
    job.bucket.put("in/a b+c/é.json", [{"id": 3}])
    turn = job.turn()
    assert (turn.inserts, turn.position, sum(turn.lag.values())) == (3, "2 events of S3", 0)
    assert job.bucket.left() == 0
    assert job.turn().instant == ""
    job.bucket.put("in/2.json", [{"id": 4}])
    assert job.turn().position == "3 events of S3"
    assert job.ids() == dict.fromkeys([1, 2, 3, 4], 1)


def test_storage_options_reach_the_queue_the_objects_and_the_table(job, monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    job.bucket.put("in/1.json", [{"id": 1}])
    table = job.server.path(job.bucket.name)
    assert job.turn(target_base_path=table, storage_options=job.server.options).inserts == 1
    found = hf.read(table, columns=["id"], storage_options=job.server.options)
    assert (found["id"].to_pylist(), job.bucket.left()) == ([1], 0)


def test_objects_may_be_read_by_tasks_of_spark(job, spark):
    table, options = job.server.path(job.bucket.name), job.server.options
    for number, session in enumerate((spark, None, spark)):
        job.bucket.put(f"in/{number}.json", [{"id": 2 * number}, {"id": 2 * number + 1}])
        turn = job.turn(target_base_path=table, storage_options=options, spark=session)
        assert (turn.inserts, turn.position) == (2, f"{number + 1} events of S3")
    found = hf.read(table, columns=["id"], storage_options=options)
    assert (sorted(found["id"].to_pylist()), job.bucket.left()) == (list(range(6)), 0)


def test_what_is_not_a_file_of_the_folder_is_passed_over(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    job.bucket.put("in/_temporary/2.json", [{"id": 2}])
    job.bucket.put("in/.3.json", [{"id": 3}])
    job.bucket.put_bytes("in/empty.json", b"")
    job.bucket.send('{"Service": "Amazon S3", "Event": "s3:TestEvent"}')
    job.bucket.put("in/gone.json", [{"id": 4}])
    job.turn()
    job.bucket.delete("in/gone.json")
    job.bucket.put("input/4.json", [{"id": 5}])
    with pytest.warns(hf.HudiWarning, match=r"has events of 1 objects outside of s3a://"):
        assert job.turn().instant == ""
    assert (job.ids(), job.bucket.left()) == ({1: 1, 4: 1}, 0)


def test_copies_of_a_message_are_read_once_in_one_turn_and_in_later_ones(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    job.bucket.put("in/2.json", [{"id": 2}])
    copies = job.bucket.bodies()
    job.bucket.send(copies[0])
    assert job.turn().inserts == 2
    for body in copies:
        job.bucket.send(body)
        job.bucket.send(json.dumps({"Type": "Notification", "Message": body}))
    job.bucket.put("in/3.json", [{"id": 3}])
    assert job.turn().inserts == 1
    assert (job.ids(), job.bucket.left()) == ({1: 1, 2: 1, 3: 1}, 0)


def test_messages_that_are_not_deleted_come_again_and_are_not_read_again(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    streamer = job.stream({"hoodie.streamer.s3.source.queue.visibility.timeout": "1"})
    with (
        stopped(streamer._source._client, "delete_message_batch"),
        pytest.warns(hf.HudiWarning, match="not delete 1 mes"),
    ):
        assert streamer.turn().inserts == 1
    streamer.close()
    assert job.bucket.left() == 1
    job.bucket.wait()
    assert job.turn().instant == ""
    assert (job.ids(), job.bucket.left()) == ({1: 1}, 0)


@contextmanager
def stopped(client, call):
    """Requests of a kind reach a port where nobody listens."""
    real = getattr(client, call)
    other = boto3.client("sqs", REGION, endpoint_url="http://127.0.0.1:9", config=ONE_TRY)
    setattr(client, call, getattr(other, call))
    try:
        yield
    finally:
        setattr(client, call, real)
        other.close()


def test_a_limit_ends_a_turn_and_the_rest_waits(job):
    for number in range(25):
        job.bucket.put(f"in/{number:02}.json", [{"id": number}])
    more = {"hoodie.streamer.s3.source.queue.max.messages.per.request": "5"}
    first = job.turn(more, source_limit=60)
    assert (first.inserts, first.lag) == (10, {f"{job.bucket.name}-events": 15})
    second = job.turn({**more, "hoodie.streamer.s3.source.queue.max.messages.per.batch": "7"})
    assert second.inserts == 7
    streamer = job.stream()
    assert [turn.inserts for turn in streamer.run()] == [8]
    streamer.close()
    assert (job.ids(), job.bucket.left()) == (dict.fromkeys(range(25), 1), 0)


def test_a_turn_that_fails_gives_its_messages_back(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    job.bucket.put_bytes("in/2.json", b"no JSON")
    for _ in range(2):
        with pytest.raises(hf.InvalidDataError, match=r"in/2\.json, object 1: expected a JSON object"):
            job.turn()
    failing = job.stream({"hoodie.streamer.source.json.skip.invalid.records": "true"})
    failing._storage = FaultyStorage(job.table, at=20, kind="before")
    with pytest.warns(hf.HudiWarning), pytest.raises((hf.HudiError, OSError)):
        failing.turn()
    failing.close()
    with pytest.warns(hf.HudiWarning, match="Left out messages that cannot be read: 1"):
        assert job.turn({"hoodie.streamer.source.json.skip.invalid.records": "true"}).inserts == 1
    assert job.bucket.left() == 0


def test_an_object_that_is_deleted_before_it_is_read_is_an_error_or_left_out(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    job.bucket.put("in/2.json", [{"id": 2}])
    job.bucket.delete("in/1.json")
    key = "hoodie.streamer.source.cloud.data.check.file.exists"
    with pytest.raises(hf.SourceError, match=rf"in/1\.json was deleted after its event\. Set {key}=true"):
        job.turn()
    with pytest.warns(hf.HudiWarning, match=r"deleted after their events: 1; the first: .*in/1\.json"):
        assert job.turn({key: "true"}).inserts == 1
    assert (job.ids(), job.bucket.left()) == ({2: 1}, 0)


def test_a_message_that_is_no_event_stops_the_stream_or_is_in_the_error_table(job, tmp_path):
    job.bucket.send("hello")
    with pytest.raises(
        hf.InvalidDataError, match=r"Queue events\d+-events, message .*: expected an event notification"
    ):
        job.turn()
    errors = {"hoodie.errortable.enable": "true", "hoodie.errortable.base.path": str(tmp_path / "errors")}
    job.bucket.put("in/1.json", [{"id": 1}])
    assert job.turn(errors).inserts == 1
    assert hf.read(tmp_path / "errors", columns=["value"])["value"].to_pylist() == [b"hello"]
    job.bucket.send("again")
    job.turn(errors)
    assert (hf.HudiTable(tmp_path / "errors").count(), job.bucket.left()) == (2, 0)


def test_of_two_streams_one_gives_its_turn_up_and_no_row_is_written_twice(job):
    job.bucket.put("in/1.json", [{"id": 1}])
    job.turn()
    job.bucket.put("in/2.json", [{"id": 2}])
    quick = {"hoodie.streamer.s3.source.queue.visibility.timeout": "0"}
    slow = job.stream(quick)
    found, config = slow._position()
    fetched = slow._fetch(found.text)
    assert job.turn(quick).inserts == 1
    with pytest.raises(Exception, match=r"moved from '1 events of S3' to '2 events of S3'"):
        slow._commit(fetched, found, config.version)
    assert slow.turn().instant == ""
    slow.close()
    assert (job.ids(), job.bucket.left()) == ({1: 1, 2: 1}, 0)


# ---- kills

PROGRAM = """
import os, signal, sys
sys.path[:0] = {path!r}
import hudi_fast as hf
from hudi_fast.streamer import streamer as module
from hudi_fast.streamer.sources.s3_events import S3EventSource

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name, calls=1):
    real, left = getattr(owner, name), [calls]
    def call(*args, **kwargs):
        made = real(*args, **kwargs)
        left[0] -= 1
        if not left[0]:
            die()
        return made
    setattr(owner, name, call)

stream = hf.Streamer({properties!r}, source_class="JsonDFSSource", target_base_path={table!r}, op="INSERT")
step = {step!r}
if step == "received":
    after(S3EventSource, "_received")
elif step == "fetched":
    after(S3EventSource, "fetch")
elif step.startswith("writing"):
    from hudi_fast.storage.base import Storage
    after(Storage, "create_exclusive", int(step.split()[1]))
elif step == "committed":
    after(module, "write_with_services")
elif step == "deleting":
    after(stream._source._client, "delete_message_batch")
elif step == "deleted":
    after(S3EventSource, "committed")
stream.turn()
"""
STEPS = ["received", "fetched", "writing 1", "writing 2", "writing 3", "committed", "deleting", "deleted"]


@pytest.mark.long("writing 2", "writing 3", "deleted")
@pytest.mark.parametrize("step", STEPS)
def test_a_stream_that_is_killed_at_any_step_loses_no_object_and_reads_none_twice(job, step):
    job.bucket.put("in/first.json", [{"id": -1}])
    job.turn()
    for number in range(15):
        job.bucket.put(f"in/{number:02}.json", [{"id": number}])
    quick = {"hoodie.streamer.s3.source.queue.visibility.timeout": "2"}
    values = {"properties": job.properties | quick, "table": job.table}
    code = PROGRAM.format(path=[one for one in sys.path if one], step=step, **values)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    expected = {-1: 1, **dict.fromkeys(range(15), 1)}
    has_committed = step in ("committed", "deleting", "deleted")
    assert job.ids() == (expected if has_committed else {-1: 1})
    assert job.bucket.left() == {"deleting": 5, "deleted": 0}.get(step, 15)
    job.bucket.wait()
    streamer = job.stream()
    assert sum(turn.inserts for turn in streamer.run()) == (0 if has_committed else 15)
    streamer.close()
    assert (job.ids(), job.bucket.left()) == (expected, 0)


# ---- wrong input


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"s3.source.queue.url": ""}, r"needs the property hoodie\.streamer\.s3\.source\.queue\.url"),
        ({"s3.source.queue.url": "events"}, r"queue\.url is the address of a queue, such as https://sqs.*got 'events'"),
        ({"s3.source.queue.region": ""}, r"needs the property hoodie\.streamer\.s3\.source\.queue\.region"),
        ({"s3.source.queue.long.poll.wait": "21"}, r"long\.poll\.wait is a number, 0 to 20; got 21"),
        ({"s3.source.queue.max.messages.per.request": "11"}, r"per\.request is a number, 1 to 10; got 11"),
        ({"s3.source.queue.max.messages.per.batch": "0"}, r"per\.batch is a number, 1 or more; got '0'"),
        ({"source.dfs.root": "/tmp"}, r"A queue of S3's events needs a folder in S3; /tmp is another one"),
        ({"checkpoint.force.skip": "true"}, r"checkpoint\.force\.skip=true stores no position"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, monkeypatch, more, message):
    given = {
        "source.dfs.root": "s3://b/in",
        "s3.source.queue.url": "http://127.0.0.1:9/1/events",
        "s3.source.queue.region": REGION,
        **more,
    }
    properties = KEYS | {f"hoodie.streamer.{key}": value for key, value in given.items()}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(hf.ConfigError, match=message):
        hf.Streamer(properties, source_class="JsonDFSSource", target_base_path=str(tmp_path / "t"))


@pytest.mark.parametrize("name", ["S3EventsSource", "S3EventsHoodieIncrSource"])
def test_a_table_of_events_is_not_needed(tmp_path, name):
    with pytest.raises(hf.UnsupportedFeatureError, match=rf"{name} is not supported: no table of events.*queue\.url"):
        hf.Streamer(KEYS, source_class=name, target_base_path=str(tmp_path / "t"))


def test_a_queue_that_is_not_there_is_told(job):
    more = {"hoodie.streamer.s3.source.queue.url": f"{job.bucket.url}-other"}
    with pytest.raises(hf.SourceError, match=r"The queue http://.*-other cannot be read: .*NonExistentQueue.*rights"):
        job.turn(more)
