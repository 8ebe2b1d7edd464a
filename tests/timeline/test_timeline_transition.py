import pytest

from hudi_fast.config.new_table import create_table_layout
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import NewTable, TableConfig, new_table_properties
from hudi_fast.errors import CommitConflictError, CommitError, CommitStateUnknownError, LockError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, load_timeline, read_instant_body
from hudi_fast.timeline.transition import (
    complete,
    create_requested,
    delete_instant_files,
    revert_to_inflight,
    revert_to_requested,
    to_inflight,
)

T, C = "20260101000000000", "20260101000001000"


class FailingStorage(Storage):
    """Reports an error when a file is created, after or without having created it."""

    def __init__(self, uri, *, lands, readable=True, damage=False):
        super().__init__(uri)
        self.lands, self.readable, self.damage = lands, readable, damage

    def create_exclusive(self, path, data, *more):
        if self.lands:
            super().create_exclusive(path, data[:1] if self.damage else data, *more)
        raise OSError("connection reset")

    def read_bytes(self, path):
        if not self.readable:
            raise OSError("connection refused")
        return super().read_bytes(path)


@pytest.fixture(params=[6, 9])
def table(request, tmp_path):
    storage = Storage(tmp_path / "table")
    layout = 1 if request.param == 6 else 2
    create_table_layout(storage, new_table_properties(NewTable("t", version=request.param)), layout)
    return storage, TableConfig.from_properties(load_properties(storage), storage.uri)


def files(storage, config):
    return [e.name for e in storage.list_dir(config.timeline_folder) if e.name.startswith(T) and not e.is_dir]


def commit(storage, config, action="commit"):
    requested = create_requested(storage, config, Instant(T, action, State.REQUESTED))
    inflight = to_inflight(storage, config, requested, b"profile")
    return complete(storage, config, inflight, b"done", lambda: C)


@pytest.mark.parametrize(
    ("action", "completed", "inflight"),
    [
        ("commit", "commit", f"{T}.inflight"),
        ("deltacommit", "deltacommit", f"{T}.deltacommit.inflight"),
        ("compaction", "commit", f"{T}.compaction.inflight"),
        ("clean", "clean", f"{T}.clean.inflight"),
    ],
)
def test_an_instant_goes_through_its_states(table, action, completed, inflight):
    storage, config = table
    done = commit(storage, config, action)
    name = f"{T}.{completed}" if config.layout_version == 1 else f"{T}_{C}.{completed}"
    assert sorted(files(storage, config)) == sorted([f"{T}.{action}.requested", inflight, name])
    (found,) = load_timeline(storage, config).instants
    assert found == done
    assert (found.action, found.state, found.file_name) == (completed, State.COMPLETED, name)
    assert read_instant_body(storage, config, done) == b"done"
    assert done.completion == (C if config.layout_version == 2 else found.completion)


def test_a_time_that_is_taken_is_a_conflict(table):
    storage, config = table
    create_requested(storage, config, Instant(T, "commit", State.REQUESTED), b"first")
    with pytest.raises(CommitConflictError, match="exists already"):
        create_requested(storage, config, Instant(T, "commit", State.REQUESTED), b"second")
    assert storage.read_bytes(f"{config.timeline_folder}/{T}.commit.requested") == b"first"


def test_an_instant_that_was_rolled_back_meanwhile_cannot_go_on(table):
    storage, config = table
    requested = create_requested(storage, config, Instant(T, "commit", State.REQUESTED))
    storage.delete_file(f"{config.timeline_folder}/{requested.file_name}")
    with pytest.raises(CommitConflictError, match="no longer requested"):
        to_inflight(storage, config, requested)
    requested = create_requested(storage, config, Instant(T, "commit", State.REQUESTED))
    inflight = to_inflight(storage, config, requested)
    delete_instant_files(storage, config, inflight)
    with pytest.raises(CommitConflictError, match="no longer inflight"):
        complete(storage, config, inflight, b"done", lambda: C)
    assert files(storage, config) == []


def test_the_lock_is_asked_for_after_all_looking_and_right_before_the_file(table):
    storage, config = table
    inflight, calls = inflight_on(storage, config), []

    class Telling(Storage):
        def exists(self, path):
            calls.append("exists")
            return super().exists(path)

        def create_exclusive(self, path, data, *more):
            calls.append("create")
            super().create_exclusive(path, data, *more)

    def lost():
        calls.append("lock")
        raise LockError("somebody else has it")

    with pytest.raises(LockError):
        complete(Telling(storage.uri), config, inflight, b"done", lost)
    assert calls == ["exists", "lock"]
    assert load_timeline(storage, config).pending() == (inflight,)


def test_completing_twice_is_a_conflict(table):
    storage, config = table
    commit(storage, config)
    with pytest.raises(CommitConflictError, match="exists already"):
        complete(storage, config, Instant(T, "commit", State.INFLIGHT), b"other", lambda: C)
    assert read_instant_body(storage, config, load_timeline(storage, config).instants[0]) == b"done"


def test_a_savepoint_begins_inflight(table):
    storage, config = table
    commit(storage, config)
    inflight = to_inflight(storage, config, Instant(T, "savepoint", State.INFLIGHT))
    complete(storage, config, inflight, b"files", lambda: C)
    assert [i.action for i in load_timeline(storage, config).completed()] == ["commit", "savepoint"]


def inflight_on(storage, config):
    return to_inflight(storage, config, create_requested(storage, config, Instant(T, "commit", State.REQUESTED)))


def test_an_error_after_the_file_landed_is_success(table):
    storage, config = table
    inflight = inflight_on(storage, config)
    done = complete(FailingStorage(storage.uri, lands=True), config, inflight, b"done", lambda: C)
    assert load_timeline(storage, config).instants == (done,)


def test_an_error_without_a_file_leaves_the_table_as_it_was(table):
    storage, config = table
    inflight = inflight_on(storage, config)
    with pytest.raises(CommitError, match="Nothing changed") as caught:
        complete(FailingStorage(storage.uri, lands=False), config, inflight, b"done", lambda: C)
    assert not isinstance(caught.value, CommitStateUnknownError)
    assert load_timeline(storage, config).pending() == (inflight,)


@pytest.mark.parametrize("trouble", [{"readable": False}, {"damage": True}])
def test_an_error_that_hides_the_outcome_is_reported_as_such(table, trouble):
    storage, config = table
    inflight = inflight_on(storage, config)
    with pytest.raises(CommitStateUnknownError, match="Check the timeline"):
        complete(FailingStorage(storage.uri, lands=True, **trouble), config, inflight, b"done", lambda: C)


def test_deleting_takes_pending_files_before_the_completed_one(table):
    storage, config = table
    done = commit(storage, config, "compaction")
    keep = create_requested(storage, config, Instant(T, "clean", State.REQUESTED))
    names = delete_instant_files(storage, config, done)
    assert names == [f"{T}.compaction.inflight", f"{T}.compaction.requested", done.file_name]
    assert load_timeline(storage, config).instants == (keep,)
    assert delete_instant_files(storage, config, done) == []


def test_a_completed_instant_can_be_made_pending_again(table):
    storage, config = table
    reverted = revert_to_inflight(storage, config, commit(storage, config))
    (found,) = load_timeline(storage, config).instants
    assert (found.requested, found.state) == (reverted.requested, State.INFLIGHT)


def test_a_compaction_that_died_waits_again_with_its_plan(table):
    storage, config = table
    requested = create_requested(storage, config, Instant(T, "compaction", State.REQUESTED), b"plan")
    inflight = to_inflight(storage, config, requested)
    assert revert_to_requested(storage, config, inflight) == Instant(T, "compaction", State.REQUESTED)
    assert files(storage, config) == [f"{T}.compaction.requested"]
    assert revert_to_requested(storage, config, requested).state is State.REQUESTED
    assert to_inflight(storage, config, requested).state is State.INFLIGHT
