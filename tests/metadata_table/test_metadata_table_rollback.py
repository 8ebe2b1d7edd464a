"""A commit of the metadata table goes when the action that it was for is rolled back, at whatever point that died."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, scan_log_blocks
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.maintain import finish_pending_metadata
from hudi_fast.metadata_table.updates.rollback import roll_back_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.plans import decode_rollback_metadata, decode_rollback_plan
from hudi_fast.writing.threads import ThreadBackend
from tests.metadata_table.stored_metadata import (
    begin_data,
    clock_of,
    commit_files,
    complete_data,
    live_files,
    log_files,
    metadata_at,
    records,
    state_of,
)
from tests.support.golden import Golden
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.sessions import rolled_back

TABLES = ["cow_v6_mixed", "h015_mor", "cow_v8_mixed", "mor_v9_mixed"]
NEW = [("p0", "new.parquet", 7, False)]


def fail(path: Path, finish: bool) -> str:
    """A write that died: its metadata table has its delta commit, whole or not."""
    instant = begin_data(path)
    log_files(path, instant, NEW, finish)
    return instant


def roll_back_data(path: Path, instant: str) -> str:
    state = state_of(path)
    failed = state.timeline.find(instant)
    assert failed is not None
    return rolled_back(path, failed).requested


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_a_rollback_takes_the_delta_commit_with_it(name: str, finish: bool, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    before = records(path)
    failed = fail(path, finish)
    assert records(path) == before
    rollback = roll_back_data(path, failed)
    table = metadata_at(path)
    own = rollback if table.config.layout_version > 1 else f"{rollback}006"
    found = table.timeline.find(own, "rollback")
    assert found is not None
    assert found.state is State.COMPLETED
    assert not any(one.requested == failed for one in table.timeline.instants)
    assert records(path) == before
    commit_files(path, NEW)
    assert live_files(path, "p0")["new.parquet"] == 7


def test_from_version_8_its_log_files_are_deleted(golden: Callable[[str], Golden]) -> None:
    path = golden("mor_v9_mixed").table
    failed = fail(path, finish=True)
    (name,) = [entry.name for entry in metadata_at(path).storage.list_dir("files") if failed in entry.name]
    rollback = roll_back_data(path, failed)
    table = metadata_at(path)
    assert not [entry for entry in table.storage.list_dir("files") if failed in entry.name]
    folder = table.config.timeline_folder
    plan = decode_rollback_plan(table.storage.read_bytes(f"{folder}/{rollback}.rollback.requested"))
    assert (plan.instant, plan.action) == (failed, "deltacommit")
    deleted = str(path / ".hoodie/metadata/files" / name)
    assert [one.files_to_be_deleted for one in plan.requests] == [(deleted,)]
    found = table.timeline.find(rollback, "rollback")
    assert found is not None
    done = decode_rollback_metadata(table.storage.read_bytes(f"{folder}/{found.file_name}"))
    assert [(one.partition_path, one.deleted) for one in done.partitions] == [("files", (deleted,))]


def test_before_version_8_a_command_block_answers_it(golden: Callable[[str], Golden]) -> None:
    path = golden("cow_v6_mixed").table
    newest = metadata_at(path).groups("files")[0].log_files[-1].version
    failed = fail(path, finish=True)
    rollback = roll_back_data(path, failed)
    table = metadata_at(path)
    last = max(table.groups("files")[0].log_files, key=lambda log: log.version)
    assert (last.version, last.write_token) == (newest + 2, "1-0-1")
    (block,) = scan_log_blocks(table.storage, last.path)
    assert block.kind is BlockType.COMMAND
    assert block.instant == f"{rollback}006"
    assert block.headers[HeaderKey.TARGET_INSTANT_TIME] == failed


def test_before_version_8_log_files_that_stay_are_listed(golden: Callable[[str], Golden]) -> None:
    path = golden("h015_mor").table
    state = state_of(path)
    before = live_files(path, "p1")
    failed = fail(path, finish=True)
    rollback = begin_data(path)  # any instant that the table has
    added = {"p1": {".a_1.log.2_0-0-0": 11, ".a_1.log.3_1-0-1": 12}}
    roll_back_metadata(state.storage, state.config, failed, rollback, clock_of(state), added)
    table = metadata_at(path)
    times = [(one.requested, one.action) for one in table.timeline.instants][-2:]
    assert times == [(rollback, "deltacommit"), (f"{rollback}006", "rollback")]
    assert live_files(path, "p1") == before  # the rollback itself is pending still
    complete_data(path, rollback)
    assert live_files(path, "p1") == {**before, **added["p1"]}


def test_before_version_8_empty_log_files_are_not_listed(golden: Callable[[str], Golden]) -> None:
    path = golden("h015_mor").table
    state, before = state_of(path), live_files(path, "p1")
    rollback = begin_data(path)
    others = {".b_1.log.1_0-0-0": 5}
    added = {"p1": {".a_1.log.2_0-0-0": 0, **others}}
    roll_back_metadata(state.storage, state.config, "20260101000000000", rollback, clock_of(state), added)
    complete_data(path, rollback)
    assert live_files(path, "p1") == {**before, **others}


def test_a_table_without_metadata_table_is_left_alone(golden: Callable[[str], Golden]) -> None:
    path = golden("mor_v9_log_compacted").table
    state = state_of(path)
    roll_back_metadata(state.storage, state.config, "20260101000000000", "20260101000000001", clock_of(state))
    assert not (path / ".hoodie/metadata").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow_v6_mixed", "cow_v9_mixed"])
def test_a_rollback_that_dies_at_any_call_is_finished(
    name: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    path = golden(name).table
    before = records(path)
    failed = fail(path, finish=True)
    rollback = begin_data(path)
    state = state_of(path)
    shutil.copytree(path, tmp_path / "fresh")
    recorder = RecordingStorage(path)
    roll_back_metadata(recorder, state.config, failed, rollback, clock_of(state))
    for call in [call for call in recorder.calls if call.changes]:
        again = tmp_path / "try"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(tmp_path / "fresh", again)
        broken = FaultyStorage(again, at=call.number, kind="after", die=True)
        with pytest.raises(Exception, match="injected fault"):
            roll_back_metadata(broken, state.config, failed, rollback, clock_of(state))
        assert records(again) == before, call
        roll_back_metadata(Storage(again), state.config, failed, rollback, clock_of(state))
        assert records(again) == before, call
        table = metadata_at(again)
        assert not table.timeline.pending(), call
        assert not any(one.requested == failed for one in table.timeline.instants), call
    assert metadata_storage(Storage(path)).exists("files")


@pytest.mark.parametrize("name", ["cow_v6_mixed", "cow_v9_mixed"])
def test_a_delta_commit_that_no_action_of_the_table_owns_is_undone(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    before = records(path)
    state = state_of(path)
    instant = clock_of(state).next_time(state.timeline.newest_time)
    log_files(path, instant, NEW, finish=False)
    assert finish_pending_metadata(metadata_at(path), clock_of(state), ThreadBackend().map_groups)
    assert not finish_pending_metadata(metadata_at(path), clock_of(state), ThreadBackend().map_groups)
    assert not metadata_at(path).timeline.pending()
    assert records(path) == before
