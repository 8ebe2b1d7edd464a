from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.services.archive import archive_after_write
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import (
    ArchivedTimeline,
    append_archive,
    delete_instants,
    read_instant,
    state_files,
)
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import Instant, State, parse_instant_file
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.table_state import load_state, read_commit, table_schema
from hudi_fast.writing.markers import create_marker, make_marker_folder
from hudi_fast.writing.settings import Settings
from tests.services.clean_tables import save, services, write_times, writes
from tests.support.instrumented_storage import RecordingStorage
from tests.support.sessions import session_of
from tests.support.small_tables import plain_rows, table_rows

KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
LAYOUTS = pytest.mark.parametrize("version", ["9", "6"])


def archived(path: Path) -> list[Instant]:
    state = load_state(Storage(path))
    return ArchivedTimeline(state.storage, state.config).instants()


def active(path: Path) -> list[str]:
    return [one.requested for one in load_state(Storage(path)).timeline.writes()]


def timeline_files(path: Path) -> list[str]:
    state = load_state(Storage(path))
    return [entry.name for entry in state.storage.list_dir(state.config.timeline_folder) if entry.name[:1].isdigit()]


def assert_settled(path: Path) -> None:
    """Nothing pending, no markers, and no instant on both timelines."""
    assert load_state(Storage(path)).timeline.pending() == ()
    assert list((path / ".hoodie/.temp").rglob("*")) == []
    times = [one.requested for one in archived(path)]
    assert times == sorted(set(times))
    assert not set(times) & set(active(path))


@LAYOUTS
def test_the_oldest_instants_move_to_the_archive_with_all_their_files(tmp_path, version):
    settings = {**writes(version, metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    before = table_rows(tmp_path)
    state = load_state(Storage(tmp_path))
    bodies = [read_commit(state.storage, state.config, one) for one in state.timeline.writes()]
    done = services(tmp_path).archive(settings)
    assert (done.instants, done.first, done.last) == (tuple(times[:3]), times[0], times[2])
    assert (done.active, done.files_written, done.blocked_by, done.metadata_instants) == (2, 1, "", 0)
    assert active(tmp_path) == times[3:]
    assert [one.requested for one in archived(tmp_path)] == times[:3]
    assert not [name for name in timeline_files(tmp_path) if name.startswith(tuple(times[:3]))]
    stored = list(ArchivedTimeline(state.storage, state.config).read())
    for row, body in zip(stored, bodies[:3], strict=True):
        metadata = decode_commit_metadata(row.metadata)
        assert metadata.extra_metadata == body.extra_metadata
        assert [stat.path for stat in metadata.write_stats()] == [stat.path for stat in body.write_stats()]
    assert table_rows(tmp_path) == before
    assert_settled(tmp_path)
    assert services(tmp_path).archive(settings).instants == ()


@LAYOUTS
def test_a_plan_is_a_look_and_can_be_carried_out(tmp_path, version):
    settings = {**writes(version, metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    files = timeline_files(tmp_path)
    plan = services(tmp_path).plan_archive(settings)
    assert [one.requested for one in plan.instants] == times[:3]
    assert plan.to_arrow().column("instant").to_pylist() == times[:3]
    assert timeline_files(tmp_path) == files
    write_times(tmp_path, 1, settings, first=9)
    assert services(tmp_path).archive(settings, plan).instants == tuple(times[:3])


def test_a_run_of_table_version_6_may_be_limited_and_the_next_one_goes_on(tmp_path):
    settings = {**writes("6", metadata=False), **KEEP, "hoodie.archive.limit.instants": "2"}
    times = write_times(tmp_path, 6, settings)
    before = table_rows(tmp_path)
    done = services(tmp_path).archive(settings)
    assert (done.instants, done.blocked_by) == (
        tuple(times[:2]),
        "one run archives at most hoodie.archive.limit.instants=2 instants",
    )
    assert services(tmp_path).archive({**settings, "hoodie.archive.limit.instants": "0"}).instants == ()
    assert services(tmp_path).archive(settings).instants == tuple(times[2:4])
    assert services(tmp_path).archive(settings).instants == ()  # there are no more than hoodie.keep.min.commits
    assert [one.requested for one in archived(tmp_path)] == times[:4]
    assert set(before) <= set(table_rows(tmp_path))
    assert_settled(tmp_path)


def test_the_limit_of_a_run_has_no_effect_on_other_versions_and_that_is_told(tmp_path):
    settings = {**writes(metadata=False), **KEEP, "hoodie.archive.limit.instants": "1"}
    times = write_times(tmp_path, 5, settings)
    with pytest.warns(hf.HudiWarning, match=r"limit\.instants=1 has no effect on .*this table has version 9"):
        done = services(tmp_path).archive(settings)
    assert done.instants == tuple(times[:3])


def test_a_plan_that_no_longer_fits_is_refused_and_nothing_changes(tmp_path):
    settings = {**writes(metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    plan = services(tmp_path).plan_archive(settings)
    save(tmp_path, times[-1])
    state = load_state(Storage(tmp_path))
    create_requested(state.storage, state.config, Instant(str(int(times[1]) + 1), "clustering", State.REQUESTED), b"")
    files = timeline_files(tmp_path)
    with pytest.raises(
        hf.CommitConflictError, match=rf"commit {times[1]} \(2 such\) is not to be archived now: the clustering"
    ):
        services(tmp_path).archive(settings, plan)
    assert timeline_files(tmp_path) == files
    assert archived(tmp_path) == []


def test_a_plan_whose_instants_somebody_else_archived_is_refused(tmp_path):
    settings = {**writes(metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    plan = services(tmp_path).plan_archive(settings)
    services(tmp_path).archive(settings)
    with pytest.raises(hf.CommitConflictError, match=f"commit {times[0]} "):
        services(tmp_path).archive(settings, plan)


@pytest.mark.slow
@LAYOUTS
def test_the_metadata_table_follows_and_stays_trusted(tmp_path, version, recwarn):
    settings = {**writes(version), **KEEP}
    done = []
    for ts in range(1, 15):
        write_times(tmp_path, 1, settings, first=ts)
        done.append(services(tmp_path).archive(settings))
    assert [one.metadata_instants > 0 for one in done].count(True) > 2
    state = open_state(Storage(tmp_path))
    table = metadata_of(state)
    assert table is not None
    kept = {one.requested for one in table.timeline.writes()}
    assert {one.requested for one in state.timeline.writes()} <= kept
    own = ArchivedTimeline(table.storage, table.config).instants()
    assert {one.requested for one in archived(tmp_path)} & {one.requested for one in own}
    assert len(kept) <= 8
    assert table_rows(tmp_path) == table_rows(tmp_path)
    assert not [one for one in recwarn if "not used" in str(one.message)]
    assert services(tmp_path).validate().ok
    assert_settled(tmp_path)


@pytest.mark.slow
def test_slices_of_the_metadata_table_go_although_archiving_leaves_few_commits(tmp_path):
    settings = {**writes(), **KEEP}
    sizes = []
    for ts in range(1, 28):
        write_times(tmp_path, 1, settings, first=ts)
        services(tmp_path).archive(settings)
        sizes.append(len([one for one in (tmp_path / ".hoodie/metadata/files").iterdir() if one.suffix != ".crc"]))
    assert max(sizes[20:]) <= max(sizes[:16])


@pytest.mark.slow("6")
@LAYOUTS
def test_nothing_is_archived_before_the_metadata_table_has_been_compacted(tmp_path, version):
    settings = {**writes(version), **KEEP, "hoodie.metadata.compact.max.delta.commits": "100"}
    write_times(tmp_path, 6, settings)
    done = services(tmp_path).archive(settings)
    assert done.instants == ()
    assert done.blocked_by.startswith("the metadata table has not been compacted")


@pytest.mark.slow("6")
@LAYOUTS
def test_a_replace_commit_stays_until_its_files_are_gone(tmp_path, version):
    settings = {**writes(version, metadata=False), **KEEP}
    del settings["hoodie.clean.policy"]
    settings["hoodie.clean.commits.retained"] = "1"
    overwrite = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    write_times(tmp_path, 2, settings)
    replaced = hf.write(plain_rows(range(4), ts=3), tmp_path, overwrite).instant
    write_times(tmp_path, 4, settings, first=4)
    rows = table_rows(tmp_path)
    blocked = services(tmp_path).archive(settings)
    assert blocked.blocked_by.startswith(f"the replacecommit {replaced} replaced files that are still there")
    assert blocked.last < replaced
    assert table_rows(tmp_path) == rows
    services(tmp_path).clean(settings)
    done = services(tmp_path).archive(settings)
    assert replaced in done.instants
    assert table_rows(tmp_path) == rows
    assert_settled(tmp_path)


def test_a_replaced_file_that_no_clean_deleted_holds_its_replace_commit(tmp_path):
    settings = {**writes(metadata=False), **KEEP}
    del settings["hoodie.clean.policy"]
    settings["hoodie.clean.commits.retained"] = "1"
    write_times(tmp_path, 1, settings)
    old = next(tmp_path.glob("p0/*.parquet"))
    overwrite = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    replaced = hf.write(plain_rows(range(4), ts=3), tmp_path, overwrite).instant
    write_times(tmp_path, 4, settings, first=4)
    data = old.read_bytes()
    services(tmp_path).clean(settings)
    assert not old.exists()
    old.write_bytes(data)  # as if the clean had failed to delete it
    rows = table_rows(tmp_path)
    done = services(tmp_path).archive(settings)
    assert done.blocked_by == f"the replacecommit {replaced} replaced p0/{old.name}, which is still there"
    assert replaced not in done.instants
    assert table_rows(tmp_path) == rows


@pytest.mark.slow("6")
@LAYOUTS
def test_markers_that_an_archived_write_left_go(tmp_path, version):
    settings = {**writes(version, metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    make_marker_folder(Storage(tmp_path), times[0])
    create_marker(Storage(tmp_path), times[0], "p0/f.parquet", "CREATE")
    services(tmp_path).archive(settings)
    assert not list((tmp_path / ".hoodie/.temp").iterdir())


@pytest.mark.slow("6")
@LAYOUTS
def test_cleans_and_their_plans_are_archived(tmp_path, version):
    settings = {**writes(version, metadata=False), **KEEP}
    for ts in range(1, 8):
        write_times(tmp_path, 1, settings, first=ts)
        services(tmp_path).clean(settings)
    done = services(tmp_path).archive(settings)
    state = load_state(Storage(tmp_path))
    rows = [one for one in ArchivedTimeline(state.storage, state.config).read() if one.action == "clean"]
    assert rows
    assert all(one.metadata is not None and one.plan is not None for one in rows)
    assert {one.requested for one in rows} <= set(done.instants)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "8", "6"])
def test_compactions_are_archived_with_their_plans(tmp_path, version):
    settings = {**writes(version, metadata=False, mor=True), **KEEP, "hoodie.compact.inline.max.delta.commits": "2"}
    settings["hoodie.compact.inline"] = "true"
    write_times(tmp_path, 12, settings)
    rows = table_rows(tmp_path)
    done = services(tmp_path).archive(settings)
    state = load_state(Storage(tmp_path))
    stored = {one.requested: one for one in ArchivedTimeline(state.storage, state.config).read()}
    assert set(done.instants) == stored.keys()
    assert {one.action for one in stored.values()} == {"commit", "deltacommit"}
    assert all((one.plan is not None) == (one.action == "commit") for one in stored.values())
    assert table_rows(tmp_path) == rows
    services(tmp_path).compact(settings)
    assert table_rows(tmp_path) == rows
    assert_settled(tmp_path)


def test_many_instants_are_archived_a_thousand_at_a_time(tmp_path, monkeypatch):
    settings = {**writes(metadata=False), **KEEP}
    write_times(tmp_path, 8, settings)
    monkeypatch.setattr("hudi_fast.services.archive._AT_ONCE", 2)
    done = services(tmp_path).archive(settings)
    assert len(done.instants) == 6
    assert done.files_written == 4  # three of level 0, one that they were merged to
    assert [one.requested for one in archived(tmp_path)] == list(done.instants)


def test_what_a_run_that_died_left_on_both_timelines_is_not_archived_twice(tmp_path):
    settings = {**writes(metadata=False), **KEEP}
    times = write_times(tmp_path, 5, settings)
    folder = tmp_path / ".hoodie/timeline"
    left = {path: path.read_bytes() for path in folder.glob(f"{times[2]}*") if path.suffix == ".commit"}
    services(tmp_path).archive(settings)
    for path, body in left.items():
        path.write_bytes(body)
    assert active(tmp_path) == times[2:]
    times += write_times(tmp_path, 1, settings, first=6)
    done = services(tmp_path).archive(settings)
    assert done.instants == (times[2], times[3])
    assert [one.requested for one in archived(tmp_path)] == times[:4]
    assert active(tmp_path) == times[4:]


def settings_of(options: dict[str, Any]) -> Settings:
    return Settings.from_options(options)


def test_after_a_write_what_is_not_due_asks_storage_nothing(tmp_path):
    options = {**writes(metadata=False), **KEEP, "hoodie.archive.automatic": "true"}
    write_times(tmp_path, 3, options)
    storage = RecordingStorage(tmp_path)
    session = session_of(storage, options)
    assert len(session.timeline.writes()) == 3  # a write has the state
    storage.calls.clear()
    assert archive_after_write(session) is None
    assert storage.calls == []
    disabled = {**options, "hoodie.archive.automatic": "false"}
    write_times(tmp_path, 1, disabled, first=4)
    assert archive_after_write(session_of(storage, disabled)) is None
    done = archive_after_write(session_of(storage, options))
    assert done is not None
    assert len(done.instants) == 2


def test_the_schema_is_found_in_the_archive_when_only_services_are_left(tmp_path):
    settings = {**writes(metadata=False), **KEEP}
    wide = plain_rows(range(4)).append_column("more", plain_rows(range(4)).column("ts"))
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(wide, tmp_path, settings)
    settings |= {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"}
    services(tmp_path).cluster({**settings, "hoodie.clustering.plan.strategy.sort.columns": "id"})
    services(tmp_path).clean(settings)
    before = table_schema(load_state(Storage(tmp_path)))
    done = services(tmp_path).archive(settings)
    left = load_state(Storage(tmp_path))
    assert {read_commit(left.storage, left.config, one).operation_type for one in left.timeline.writes()} == {"CLUSTER"}
    assert len(done.instants) >= 2
    assert table_schema(left) == before
    assert "more" in before.names


def test_time_travel_still_knows_of_a_clean_that_was_archived(tmp_path):
    settings = {**writes(metadata=False), **KEEP, "hoodie.clean.policy": "KEEP_LATEST_COMMITS"}
    settings["hoodie.clean.commits.retained"] = "1"
    times = write_times(tmp_path, 3, settings)
    services(tmp_path).clean(settings)
    times += write_times(tmp_path, 4, settings, first=4)
    services(tmp_path).archive(settings)
    assert "clean" in {one.action for one in archived(tmp_path)}
    table = hf.HudiTable.open(tmp_path)
    with pytest.raises(hf.ConfigError, match="Cleaner cleaned up"):
        table.to_arrow(as_of=times[0])
    assert table.to_arrow(as_of=times[3]).num_rows == 4


def in_turns() -> Iterator[tuple[str, bool]]:
    yield from (("9", False), ("9", True), ("6", True))


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mor"), list(in_turns()))
def test_writes_cleans_and_archiving_go_on_for_long(tmp_path, version, mor):
    settings = {**writes(version, mor=mor), **KEEP, "hoodie.compact.inline.max.delta.commits": "2"}
    settings["hoodie.clean.commits.retained"] = "1"
    del settings["hoodie.clean.policy"]
    if mor:
        settings["hoodie.compact.inline"] = "true"
    for ts in range(1, 13):
        hf.write(plain_rows(range(ts % 3, 6), ts=ts, text=f"t{ts}-"), tmp_path, settings)
        services(tmp_path).clean(settings)
        services(tmp_path).archive(settings)
    newest = {f"k{number:05d}": max(ts for ts in range(1, 13) if ts % 3 <= number) for number in range(6)}
    assert {key: row[1] for key, row in table_rows(tmp_path).items()} == newest
    assert len(active(tmp_path)) <= 8
    assert_settled(tmp_path)


def test_a_compaction_takes_in_what_an_archived_write_logged_after_the_last_one_was_planned(tmp_path):
    options = {**writes(metadata=False, mor=True), **KEEP}
    options["hoodie.compact.inline"] = "false"
    first, late = write_times(tmp_path, 2, options)
    planned = services(tmp_path).schedule_compact(options)
    services(tmp_path).compact(options, plan=planned)
    state = load_state(Storage(tmp_path))
    folder = tmp_path / state.config.timeline_folder
    (done,) = folder.glob(f"{late}_*")
    done.rename(folder / f"{late}_{int(planned.instant) + 1}.deltacommit")  # it ended after the plan was made
    found = state_files(state.storage, state.config)
    files = [found[time, "deltacommit"] for time in (first, late)]
    rows = [read_instant(state.storage, one) for one in files]
    append_archive(state.storage, state.config, rows, ArchiveOptions())
    delete_instants(state.storage, files)
    assert load_state(Storage(tmp_path)).timeline.find(late) is None
    again = services(tmp_path).schedule_compact(options)
    assert again is not None
    assert {one.partition_path for one in again.plan.operations} == {"p0", "p1"}


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["6", "8"])
def test_at_each_moment_of_an_archive_the_timeline_has_its_newest_instants_whole(tmp_path, version):
    """A missing instant after one that is there would hide its files; a pending one alone would be rolled back."""
    write_times(tmp_path, 6, {**writes(metadata=False), "hoodie.write.table.version": version})
    storage = RecordingStorage(tmp_path)
    config = load_state(storage).config
    found = state_files(storage, config)
    files = [found[key] for key in sorted(found)]
    seen = [file.path for one in files for file in one]
    delete_instants(storage, files[:4])
    deletions = [call for call in storage.calls if call.name == "delete_file"]
    assert len(deletions) == sum(map(len, files[:4]))
    for call in deletions:
        seen.remove(call.path)
        instants = [parse_instant_file(path.rpartition("/")[2], config.layout_version) for path in seen]
        completed = sorted(one.requested for one in instants if one.is_completed)
        assert completed == sorted(time for time, _ in found)[-len(completed) :]
        assert {one.requested for one in instants} == set(completed)
