"""Turns of a streamer: each row of the source once, whatever fails, and however many streamers run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.streamer.sources.source import Fetched
from tests.faults.calls import faults
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.interleaving import OCC
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


class Numbers:
    """A source of numbered rows; its position is the next number."""

    def __init__(self, last, step=3, meanwhile=None):
        self.last, self.step, self.meanwhile = last, step, meanwhile
        self.committed_at, self.is_closed = [], False

    def fetch(self, position, limit):
        begin = int(position or 0)
        end = min(self.last, begin + (limit or self.step))
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        if begin == end:
            return Fetched(None, position)
        return Fetched(plain_rows(range(begin, end), ts=begin).to_reader(), str(end), {"numbers": self.last - end})

    def committed(self, position):
        self.committed_at.append(position)

    def close(self):
        self.is_closed = True


def streamer(path, source, settings=None, **arguments):
    given = {**options(operation="insert"), **(settings or {})}
    arguments.setdefault("source_limit", source.step)
    return hf.Streamer(given, source=source, target_base_path=str(path), op="insert", **arguments)


def ids(path):
    """Keys of all rows, those that are there twice among them."""
    return sorted(hf.read(path, columns=["id"])["id"].to_pylist())


def keys(count):
    return [f"k{number:05}" for number in range(count)]


@pytest.mark.slow(but="9-MERGE_ON_READ")
@KINDS
@pytest.mark.parametrize("version", ["6", "9"])
def test_turns_continue_where_the_last_one_ended(tmp_path, kind, version):
    path, settings = tmp_path / "t", {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    source = Numbers(8)
    turns = [next(streamer(path, source, settings).run()) for _ in range(4)]  # each by a process of its own
    assert [(turn.inserts, turn.position, turn.lag) for turn in turns] == [
        (3, "3", {"numbers": 5}),
        (3, "6", {"numbers": 2}),
        (2, "8", {"numbers": 0}),
        (0, "8", {}),
    ]
    assert source.committed_at == ["3", "6", "8"]
    assert ids(path) == keys(8)
    assert len(hf.HudiTable.open(path).history()) == 3


def test_without_a_limit_one_run_brings_in_all_that_there_is(tmp_path):
    turns = list(streamer(tmp_path / "t", Numbers(8), source_limit=None).run())
    assert [turn.inserts for turn in turns] == [3, 3, 2]
    assert ids(tmp_path / "t") == keys(8)


def test_a_continuous_stream_ends_where_it_is_stopped_and_goes_on_from_there(tmp_path):
    path, source = tmp_path / "t", Numbers(100)
    stream = streamer(path, source, continuous=True)
    for number, _ in enumerate(stream.run()):
        if number == 2:
            stream.stop()
    assert ids(path) == keys(9)
    again = streamer(path, source, continuous=True, source_limit=50)
    first = next(again.run())
    assert first.inserts == 50
    assert ids(path) == keys(59)


def test_a_stream_that_is_stopped_does_not_wait_for_its_interval(tmp_path):
    stream = streamer(tmp_path / "t", Numbers(100), continuous=True, min_sync_interval_seconds=60)
    started = time.monotonic()
    for _ in stream.run():
        threading.Timer(0.1, stream.stop).start()
    assert time.monotonic() - started < 30


def test_a_stream_without_new_rows_ends_when_it_is_told_so(tmp_path):
    given = {"max.rounds.without.new.data.to.shutdown": "2"}
    strategy = "org.apache.hudi.utilities.streamer.NoNewDataTerminationStrategy"
    stream = streamer(
        tmp_path / "t", Numbers(4), given, continuous=True, post_write_termination_strategy_class=strategy
    )
    assert [turn.inserts for turn in stream.run()] == [3, 1, 0, 0]


def test_a_turn_whose_rows_are_all_dropped_stores_its_position(tmp_path):
    path = tmp_path / "t"
    list(streamer(path, Numbers(3)).run())
    turns = list(streamer(path, Numbers(6), transforms=[lambda batch: None]).run())
    assert [(turn.inserts, turn.position) for turn in turns] == [(0, "6")]
    assert ids(path) == keys(3)
    assert [turn.position for turn in streamer(path, Numbers(7)).run()] == ["7"]
    assert ids(path) == [*keys(3), "k00006"]


class Latest(Numbers):
    """A source that begins with its newest rows."""

    def fetch(self, position, limit):
        if position is None:
            return Fetched(None, str(self.last))
        return super().fetch(position, limit)


def test_a_stream_that_begins_with_the_newest_rows_misses_none_of_those_that_come_later(tmp_path):
    source = Latest(10)
    stream = streamer(tmp_path / "t", source)
    assert [turn.instant for turn in stream.run()] == [""]
    source.last = 12
    assert [turn.inserts for turn in stream.run()] == [2]
    assert ids(tmp_path / "t") == ["k00010", "k00011"]


def test_positions_are_not_stored_if_the_settings_say_so(tmp_path):
    given = {"hoodie.streamer.checkpoint.force.skip": "true"}
    for _ in range(2):
        list(streamer(tmp_path / "t", Numbers(3), given).run())
    assert ids(tmp_path / "t") == sorted(keys(3) * 2)


def test_a_checkpoint_counts_once(tmp_path):
    path = tmp_path / "t"
    for _ in range(2):
        list(streamer(path, Numbers(9), checkpoint="4").run())
    assert ids(path) == keys(9)[4:]
    list(streamer(path, Numbers(9), ignore_checkpoint="again").run())
    list(streamer(path, Numbers(9), ignore_checkpoint="again").run())
    assert ids(path) == sorted([*keys(9)[4:], *keys(6)])


class Failing(Numbers):
    """A source that fails some times."""

    failures = 2

    def fetch(self, position, limit):
        if self.failures:
            self.failures -= 1
            raise hf.SourceError("The broker is away.")
        return super().fetch(position, limit)


def test_a_source_that_fails_is_asked_again_if_the_settings_say_so(tmp_path):
    with pytest.raises(hf.SourceError, match="The broker is away"):
        list(streamer(tmp_path / "t", Failing(3)).run())
    patient = {"retry_on_source_failures": True, "retry_interval_seconds": 0, "max_retry_count": 2}
    with pytest.warns(hf.HudiWarning, match=r"The source Failing failed, tries left: \d\. The broker is away"):
        turns = list(streamer(tmp_path / "t", Failing(3), **patient).run())
    assert [turn.inserts for turn in turns] == [3]


# ---- several streamers


@pytest.mark.slow(but="side by side-9-MERGE_ON_READ")
@KINDS
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("shared", [False, True], ids=["one at a time", "side by side"])
def test_of_two_streamers_at_one_position_one_writes(tmp_path, kind, version, shared):
    path = tmp_path / "t"
    settings = {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    settings |= OCC if shared else {}
    list(streamer(path, Numbers(3), settings).run())
    other = streamer(path, Numbers(6), settings)
    late = Numbers(8, meanwhile=lambda: list(other.run()))
    turns = list(streamer(path, late, settings).run())
    assert [(turn.inserts, turn.position) for turn in turns] == [(2, "8")]  # what the other one left
    assert ids(path) == keys(8)
    assert_tidy(path)


class Chased(Numbers):
    """Another streamer writes each time that this one has fetched rows."""

    def __init__(self, path):
        super().__init__(100)
        self._path = path

    def fetch(self, position, limit):
        list(streamer(self._path, Numbers(100)).run())
        return super().fetch(position, limit)


def test_a_streamer_that_is_always_late_says_that_there_is_another_one(tmp_path):
    path = tmp_path / "t"
    with pytest.raises(hf.CommitConflictError, match=r"Another streamer feeds .*t: it moved the position 3 times"):
        list(streamer(path, Chased(path)).run())
    assert ids(path) == keys(9)


def test_streams_with_names_feed_one_table_side_by_side(tmp_path):
    path = tmp_path / "t"
    for _ in range(2):
        list(streamer(path, Numbers(5), OCC, name="low").run())
        list(streamer(path, Numbers(105), OCC, name="high", checkpoint="100").run())
    assert ids(path) == [f"k{number:05}" for number in (*range(5), *range(100, 105))]


@pytest.mark.slow
def test_two_processes_that_race_write_each_row_once(tmp_path):
    path, failed = tmp_path / "t", []
    list(streamer(path, Numbers(1), OCC).run())

    def run():
        given = OCC | {"max.rounds.without.new.data.to.shutdown": "1"}
        strategy = "NoNewDataTerminationStrategy"
        stream = streamer(path, Numbers(40), given, continuous=True, post_write_termination_strategy_class=strategy)
        while True:
            try:
                for _ in stream.run():
                    pass
                return
            except hf.CommitConflictError as error:
                failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(path) == keys(40)
    assert_tidy(path)


# ---- faults and kills


@KINDS
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
def test_any_failing_call_loses_and_doubles_no_row(tmp_path, kind):
    settings = {"hoodie.datasource.write.table.type": kind}
    path = tmp_path / "t"
    list(streamer(path, Numbers(3), settings).run())
    stream = streamer(path, Numbers(6), settings)
    stream._storage = recorded = RecordingStorage(path)
    list(stream.run())
    for number, (call, how, die) in enumerate(faults(recorded.calls)):
        place = tmp_path / f"{number}"
        list(streamer(place, Numbers(3), settings).run())
        stream = streamer(place, Numbers(6), settings)
        stream._storage = FaultyStorage(place, at=call.number, kind=how, die=die)
        try:
            list(stream.run())
        except (hf.HudiError, OSError):
            pass
        for _ in range(2):
            list(streamer(place, Numbers(6), settings).run())
        assert ids(place) == keys(6), (call, how, die)


PROGRAM = """
import sys
sys.path[:0] = {path!r}
from tests.streamer.test_streamer_streamer import Numbers, streamer
stream = streamer({table!r}, Numbers({last}, step=7), {settings!r}, continuous=True)
print("ready", flush=True)
for turn in stream.run():
    if turn.position == "{last}":
        break
"""


def killed(path, settings, seed, last=70):
    """A stream that is killed at random moments and started again until it is done; how often it was killed."""
    chance, kills = random.Random(seed), 0
    code = PROGRAM.format(path=[one for one in sys.path if one], table=str(path), last=last, settings=settings)
    while True:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert process.wait(chance.uniform(0.0, 0.6) if kills < 5 else 60) == 0
            return kills
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        finally:
            process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 100))])
def test_a_stream_that_is_killed_again_and_again_writes_each_row_once(tmp_path, seed):
    kind = ("COPY_ON_WRITE", "MERGE_ON_READ")[seed % 2]
    assert killed(tmp_path / "t", {"hoodie.datasource.write.table.type": kind}, seed) > 0
    assert ids(tmp_path / "t") == keys(70)


# ---- wrong input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"needs --target-base-path"),
        ({"target_base_path": "t"}, r"needs --source-class"),
        (
            {"target_base_path": "t", "source_class": "KinesisSource"},
            r"KinesisSource is not supported\. Supported are Parq",
        ),
        ({"target_base_path": "t", "source_class": "JsonDFSource"}, r"is not supported; did you mean JsonDFSSource\?"),
        ({"target_base_path": "t", "source_clas": "JsonDFSSource"}, r"--source-clas\. Did you mean --source-class\?"),
        ({"target_base_path": "t", "source_class": "JsonDFSSource"}, r"JsonDFSSource needs the property .*dfs\.root"),
    ],
)
def test_a_streamer_with_wrong_arguments_is_refused(arguments, message):
    with pytest.raises(hf.HudiError, match=message):
        hf.Streamer({}, **arguments)


def test_the_properties_are_read_from_a_file_and_those_that_it_includes(tmp_path):
    (tmp_path / "base.properties").write_text("hoodie.datasource.write.recordkey.field=id\nhoodie.table.name=trips\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1}')
    file = tmp_path / "stream.properties"
    file.write_text(
        f"include=base.properties\nhoodie.deltastreamer.source.dfs.root={tmp_path}/in\n"
        f"hudi_fast.streamer.source-class=org.apache.hudi.utilities.sources.JsonDFSSource\n"
        f"hudi_fast.streamer.target-base-path={tmp_path}/t\n"
    )
    assert [turn.inserts for turn in hf.Streamer(file).run()] == [1]
    assert hf.HudiTable.open(tmp_path / "t").config.name == "trips"
    with pytest.raises(hf.ConfigError, match=r"no.properties cannot be read: No such file"):
        hf.Streamer(str(tmp_path / "no.properties"))


def test_a_transform_may_be_any_function_of_a_batch(tmp_path):
    def doubled(batch):
        return pa.Table.from_batches([batch]).append_column("twice", pa.array([1] * batch.num_rows, pa.int32()))

    list(streamer(tmp_path / "t", Numbers(3), transforms=[doubled]).run())
    assert hf.read(tmp_path / "t")["twice"].to_pylist() == [1, 1, 1]
    assert len(table_rows(tmp_path / "t")) == 3
