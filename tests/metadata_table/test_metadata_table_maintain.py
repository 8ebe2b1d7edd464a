"""The metadata table's own services change no answer, and what they leave half done is finished."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.maintain import (
    clean_metadata,
    compact_metadata,
    compaction_due,
    finish_pending_metadata,
)
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.plans import decode_clean_metadata
from hudi_fast.view.table_state import read_commit
from hudi_fast.writing.threads import ThreadBackend
from tests.metadata_table.stored_metadata import (
    begin_data,
    clock_of,
    commit_files,
    live_files,
    log_files,
    metadata_at,
    records,
    state_of,
)
from tests.support.golden import Golden
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage

TABLES = ["mor_v9_secondary_index", "mor_v9_record_index", "cow_v8_mixed", "mor_v6_compacted", "h015_cow_record_index"]


def compact(path: Path) -> str | None:
    return compact_metadata(metadata_at(path), clock_of(state_of(path)), ThreadBackend().map_groups)


@pytest.mark.slow("mor_v9_record_index", "h015_cow_record_index")
@pytest.mark.parametrize("name", TABLES)
def test_compaction_and_cleaning_change_no_answer(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    before = records(path)
    assert compact(path)
    table = metadata_at(path)
    assert records(path) == before
    slices = [one for partition in table.partitions for one in table.groups(partition)]
    assert all(one.base_file is not None and not one.log_files for one in slices)
    assert compact(path) is None  # nothing is left to do
    commit_files(path, [("p0", "new.parquet", 7, False)])
    assert compact(path)
    table = metadata_at(path)
    assert clean_metadata(table, clock_of(state_of(path)), kept_commits=1)
    assert live_files(path, "p0")["new.parquet"] == 7
    assert {key: value for key, value in records(path).items() if key != "files"} == {
        key: value for key, value in before.items() if key != "files"
    }


@pytest.mark.parametrize(("name", "instant"), [("mor_v6_mixed", "20261121054556817001"), ("mor_v9_mixed", None)])
def test_a_compaction_is_told_as_hudi_tells_it(name: str, instant: str | None, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    done = compact(path)
    assert done == (instant or done)
    table = metadata_at(path)
    found = table.timeline.find(str(done))
    assert found is not None
    assert (found.action, found.state) == ("commit", State.COMPLETED)
    metadata = read_commit(table.storage, table.config, found)
    assert (metadata.operation_type, metadata.compacted) == ("COMPACT", True)
    for stat in metadata.write_stats():
        assert stat.path.endswith(f"_{done}.hfile")
        assert stat.file_size == (path / ".hoodie/metadata" / stat.path).stat().st_size
        assert stat.num_writes == stat.num_inserts > 0
    assert {stat.file_id for stat in metadata.write_stats()} >= {"files-0000-0", "col-stats-0000-0"}


@pytest.mark.parametrize("name", ["mor_v6_mixed", "mor_v9_mixed"])
def test_log_files_go_on_top_of_the_compacted_slice(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    done = compact(path)
    before = live_files(path, "p0")
    first = commit_files(path, [("p0", "one.parquet", 1, False)])
    commit_files(path, [("p0", "two.parquet", 2, False), ("p0", "one.parquet", 0, True)])
    assert live_files(path, "p0") == {**before, "two.parquet": 2}
    names = [log.name for log in metadata_at(path).groups("files")[0].log_files]
    named = done if name == "mor_v6_mixed" else first
    assert names[0] == f".files-0000-0_{named}.log.1_0-0-0"


def test_compaction_is_due_after_so_many_delta_commits_since_the_last(golden: Callable[[str], Golden]) -> None:
    path = golden("cow_v9_mixed").table
    count = sum(one.action == "deltacommit" for one in metadata_at(path).timeline.writes())
    assert compaction_due(metadata_at(path), count)
    assert not compaction_due(metadata_at(path), count + 1)
    compact(path)
    assert not compaction_due(metadata_at(path), 1)
    commit_files(path, [("p0", "new.parquet", 7, False)])
    assert compaction_due(metadata_at(path), 1)
    assert not compaction_due(metadata_at(path), 2)


@pytest.mark.parametrize("name", ["cow_v6_mixed", "cow_v9_mixed"])
def test_what_the_table_has_not_completed_is_not_compacted(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    instant = begin_data(path)
    assert compaction_due(metadata_at(path), 1)  # the metadata table does not know of the pending write
    log_files(path, instant, [("p0", "new.parquet", 7, False)])
    assert not compaction_due(metadata_at(path), 1)
    assert "new.parquet" not in live_files(path, "p0")


def test_cleaning_keeps_what_the_last_commits_need(golden: Callable[[str], Golden]) -> None:
    path = golden("mor_v9_compacted").table
    compact(path)
    table, clock = metadata_at(path), clock_of(state_of(path))
    assert clean_metadata(table, clock, kept_commits=20) is None
    old = {entry.name for entry in table.storage.list_dir("files")}
    done = clean_metadata(table, clock, kept_commits=1)
    table = metadata_at(path)
    gone = old - {entry.name for entry in table.storage.list_dir("files")}
    found = table.timeline.find(str(done), "clean")
    assert found is not None
    body = decode_clean_metadata(table.storage.read_bytes(f"{table.config.timeline_folder}/{found.file_name}"))
    assert set(next(one.deleted for one in body.partitions if one.partition_path == "files")) == gone
    bases = sorted((name for name in old if name.endswith(".hfile")), key=lambda name: name.rpartition("_")[2])
    assert [name for name in bases if name not in gone] == bases[-2:]  # one compaction's and the one before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mor_v6_mixed", "mor_v9_mixed"])
def test_a_service_that_dies_at_any_call_is_finished_by_the_next_writer(
    name: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    path = golden(name).table
    before = records(path)
    shutil.copytree(path, tmp_path / "fresh")
    recorder = RecordingStorage(path)
    opened = metadata_of(open_state(recorder))
    assert opened is not None
    start = len(recorder.calls)
    compact_metadata(opened, clock_of(state_of(path)), ThreadBackend().map_groups)
    changing = [call for call in recorder.calls[start:] if call.changes]
    assert len(changing) >= 6
    for call in changing[:: max(len(changing) // 12, 1)]:
        again = tmp_path / "try"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(tmp_path / "fresh", again)
        offset = call.number - start
        probe = FaultyStorage(again)
        ready = metadata_of(open_state(probe))
        assert ready is not None
        storage = FaultyStorage(again, at=len(probe.calls) + offset, kind="after", die=True)
        broken = metadata_of(open_state(storage))
        assert broken is not None
        with pytest.raises(Exception, match="injected fault"):
            compact_metadata(broken, clock_of(state_of(again)), ThreadBackend().map_groups)
        assert records(again) == before, call
        finish_pending_metadata(metadata_at(again), clock_of(state_of(again)), ThreadBackend().map_groups)
        table = metadata_at(again)
        assert not table.timeline.pending(), call
        assert records(again) == before, call
        commit_files(again, [("p0", "new.parquet", 7, False)])
        assert live_files(again, "p0")["new.parquet"] == 7
