"""Which batch a table holds: found behind other commits, in the archive, in what Apache Hudi writes. Without Spark."""

from __future__ import annotations

import json
import threading

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.spark_api.streaming.exactly_once import (
    CHECKPOINT_KEY,
    QUERY_KEY,
    Batch,
    Checkpoint,
    checkpoint_metadata,
    find_checkpoint,
    is_written,
    noting,
    unless_written,
    write_exactly_once,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.view.table_state import commits_newest_first, load_state
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend
from tests.support.interleaving import OCC, InterleavedEngine
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows


def found(path, identifier="default_single_writer", after=None):
    storage = Storage(path)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return find_checkpoint(storage, config, load_timeline(storage, config), identifier, after)


def session_for(batch, path, given):
    settings = noting(Settings.from_options(given), batch)
    return TableSession(Call(Storage(path), settings, ThreadBackend(1), guard=unless_written(batch)))


def put(path, numbers, batch, query=None, settings=None, mode="append", name="default_single_writer", **known):
    which = Batch(name, batch, query, **known)
    session = session_for(which, path, settings or options())
    return write_exactly_once(session, LocalEngine(plain_rows(numbers, ts=batch)), mode, which)


def test_a_session_that_does_not_note_the_batch_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="noting"):
        write_exactly_once(session_of(tmp_path, options()), LocalEngine(plain_rows([1])), "append", Batch("s", 1))
    assert list(tmp_path.iterdir()) == []


def test_the_commit_says_which_batch_it_holds_as_apache_hudi_says_it(tmp_path):
    put(tmp_path / "t", range(3), 7, "query-1")
    (_, commit), *_ = commits_newest_first(load_state(Storage(tmp_path / "t")))
    assert commit.extra_metadata[CHECKPOINT_KEY] == '{"default_single_writer":"7"}'
    assert commit.extra_metadata[QUERY_KEY] == "query-1"
    assert found(tmp_path / "t") == Checkpoint(7, "query-1")


def test_without_a_known_query_nothing_is_said_of_it():
    assert checkpoint_metadata("s", 3, None) == {CHECKPOINT_KEY: '{"s":"3"}'}


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_batch_is_found_behind_commits_of_others_and_of_services(tmp_path, version):
    path, given = tmp_path / "t", options(table_version=version)
    given["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
    put(path, range(3), 4, settings=given)
    hf.write(plain_rows(range(2, 9), ts=9), path, {**given, "hoodie.compact.inline.max.delta.commits": "1"})
    put(path, range(1), 11, settings=given, name="another")
    table = hf.HudiTable.open(path)
    table.services.cluster()
    assert [one["operation"] for one in table.history().to_pylist() if one["action"] in ("commit", "replacecommit")]
    assert found(path) == Checkpoint(4)
    assert found(path, "another") == Checkpoint(11)
    assert found(path, "nobody") is None


@pytest.mark.slow
def test_a_batch_is_found_in_the_archive(tmp_path):
    path = tmp_path / "t"
    put(path, range(3), 5)
    small = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    for number in range(5):
        hf.write(plain_rows(range(number, number + 2), ts=number), path, {**options(), **small})
    said = [commit.extra_metadata for _, commit in commits_newest_first(load_state(Storage(path)))]
    assert not any(CHECKPOINT_KEY in extra for extra in said)
    assert found(path) == Checkpoint(5)
    assert put(path, range(3), 5) is None
    assert put(path, range(3), 6) is not None


def test_only_commits_after_a_time_are_looked_at_when_it_is_known_what_was_before(tmp_path):
    path = tmp_path / "t"
    put(path, range(3), 0)
    before = load_state(Storage(path)).timeline.writes()[-1].completion
    assert found(path, after=before) is None
    put(path, range(3), 1)
    assert found(path, after=before) == Checkpoint(1)


def test_a_batch_that_is_there_and_older_ones_are_not_written_again(tmp_path):
    path = tmp_path / "t"
    assert put(path, range(3), 2) is not None
    rows = table_rows(path)
    assert put(path, range(90), 2) is None
    assert put(path, range(90), 1, known=Checkpoint(2), after="99999999999999999") is None
    assert table_rows(path) == rows
    assert put(path, range(4), 3) is not None
    assert len(table_rows(path)) == 4


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_a_batch_that_two_processes_write_at_the_same_time_is_there_once(tmp_path, kind, version, operation):
    path, batch = tmp_path / "t", Batch("default_single_writer", 1)
    given = options(operation=operation, table_version=version) | OCC
    given |= {"hoodie.datasource.write.table.type": kind}
    put(path, range(3), 0, settings=given)

    def write(engine):
        return write_exactly_once(session_for(batch, path, given), engine, "append", batch)

    rows, others = plain_rows(range(3, 7), ts=1), []
    assert write(InterleavedEngine(rows, lambda: others.append(write(LocalEngine(rows))))) is None
    assert others[0].inserts == 4
    assert sorted(table_rows(path)) == [f"k{n:05}" for n in range(7)]
    assert_tidy(path)


def test_a_batch_that_takes_the_place_of_the_table_does_so_once(tmp_path):
    path = tmp_path / "t"
    put(path, range(9), 0, mode="overwrite")
    assert put(path, range(4), 1, mode="overwrite") is not None
    assert put(path, range(9), 1, mode="overwrite") is None
    assert len(table_rows(path)) == 4


def test_batches_of_another_query_under_the_same_name_are_refused_not_skipped(tmp_path):
    path = tmp_path / "t"
    put(path, range(3), 9, "query-1")
    with pytest.raises(hf.ConfigError, match=r"query query-2 .* up to 9 .*checkpoint\.identifier"):
        put(path, range(3, 6), 0, "query-2")
    assert put(path, range(3, 6), 0, "query-2", name="second") is not None
    assert put(path, range(3), 9) is None  # a query that is not known may be the same


def test_no_table_holds_no_batch(tmp_path):
    assert not is_written(Storage(tmp_path / "t"), Batch("s", 0))


def test_what_cannot_be_understood_is_said_with_its_file(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(3)), path, {**options(), CHECKPOINT_KEY: "[1]"})
    with pytest.raises(hf.CorruptTableError, match=r"expected JSON that maps names .*\[file \.hoodie/timeline/"):
        found(path)


@pytest.mark.slow
def test_of_two_drivers_with_one_batch_one_writes_it(tmp_path):
    """A driver that was taken for dead goes on beside the one that took its place."""
    path, given = tmp_path / "t", options(operation="insert")
    put(path, range(3), 0, settings=given)
    written = []

    def drive():
        for batch in range(1, 6):
            written.append((batch, put(path, range(3 * batch, 3 * batch + 3), batch, settings=given) is not None))

    drivers = [threading.Thread(target=drive) for _ in range(2)]
    for one in drivers:
        one.start()
    for one in drivers:
        one.join()
    assert sorted(batch for batch, done in written if done) == [1, 2, 3, 4, 5]
    assert len(table_rows(path)) == 18
    bodies = [commit.extra_metadata[CHECKPOINT_KEY] for _, commit in commits_newest_first(load_state(Storage(path)))]
    assert [json.loads(body)["default_single_writer"] for body in bodies] == ["5", "4", "3", "2", "1", "0"]
