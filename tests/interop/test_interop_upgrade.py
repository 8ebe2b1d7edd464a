"""Tables whose version we changed go on with Apache Hudi, and those whose version it changed go on with us."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import other_layout
from hudi_fast.services.upgrading.move import copy_timeline
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, data_columns, trips
from tests.peer.client import RealHudi
from tests.support.golden import Golden
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage, StorageCall
from tests.support.rows import assert_same_rows

THROUGH = {"hoodie.metadata.enable": True}
RECORD_INDEX = {
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
}

Unzip = Callable[[str], Golden]


def version_of(path: Path) -> int:
    return load_state(Storage(path)).config.version


def upgrade(sides: MorSides, version: int) -> None:
    """Our change, after which writers of both sides are told of the version."""
    result = sides.table.services.upgrade(version)
    assert (result.after, version_of(sides.path)) == (version, version)
    sides.options = {**sides.options, "hoodie.write.table.version": version}


def told_by_hudi(sides: MorSides) -> None:
    """Hudi's own comparison of its metadata table with the folders finds nothing, and neither does ours."""
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{sides.in_catalog()}')")
    assert differing.num_rows == 0, differing.to_pylist()
    assert sides.table.services.validate().differences.to_pylist() == []


def with_logs(hudi: RealHudi, path: Path, version: int, more: dict[str, Any] | None = None) -> tuple[MorSides, Any]:
    """A MERGE_ON_READ table of ours with log files over base files, and its rows."""
    sides = MorSides(hudi, path, {**mor_options(version), **(more or {})})
    rows = trips(range(30))
    sides.we_write(rows)
    new = trips(range(10, 20), ts=5, note="logged")
    sides.we_write(new)
    gone = trips(range(0, 6, 2))
    sides.table.delete(gone, sides.options)
    assert sides.merged_slices()
    return sides, after_delete(after_upsert(rows, new), gone)


def turns(sides: MorSides, rows: Any, count: int, first_ts: int = 10) -> Any:
    """Writes of both sides in turns, through the metadata table; the rows afterwards."""
    for turn in range(count):
        ours = trips(range(turn, 8 + 4 * turn), ts=first_ts + 2 * turn, note="by us")
        sides.we_write(ours)
        theirs = trips(range(12 + turn, 40 + turn), ts=first_ts + 1 + 2 * turn, note="by Hudi")
        sides.hudi_writes(theirs, more=THROUGH)
        rows = after_upsert(after_upsert(rows, ours), theirs)
        if sides.hudi.version.startswith("0."):  # else it reads through the metadata table by default
            assert_same_rows(data_columns(sides.hudi.read(sides.path, THROUGH)), rows, key=("id",))
        sides.agree(rows)
    return rows


@pytest.mark.smoke
def test_hudi_goes_on_with_a_table_that_we_upgraded(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides, rows = with_logs(hudi_12, tmp_path / "trips", 6)
    upgrade(sides, 9)
    sides.agree(rows)
    told_by_hudi(sides)
    rows = turns(sides, rows, 1)
    assert sides.hudi_compacts()
    sides.agree(rows)
    told_by_hudi(sides)


def test_release_0_15_goes_on_with_a_table_that_we_downgraded(hudi_015: RealHudi, tmp_path: Path) -> None:
    sides, rows = with_logs(hudi_015, tmp_path / "trips", 9, RECORD_INDEX)
    sides.options = {
        **sides.options,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.metadata.compact.max.delta.commits": 2,
    }
    upgrade(sides, 6)
    assert "record_index" in load_state(Storage(sides.path)).config.metadata_partitions
    sides.agree(rows)
    rows = turns(sides, rows, 2)
    assert sides.hudi_compacts()
    sides.agree(rows)
    told_by_hudi(sides)


def test_hudi_upgrades_we_downgrade_and_upgrade_again(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides, rows = with_logs(hudi_12, tmp_path / "trips", 6)
    hudi_12.sql(f"CALL upgrade_table(table => '{sides.in_catalog()}', to_version => 'NINE')")
    assert version_of(sides.path) == 9
    sides.options = {**sides.options, "hoodie.write.table.version": 9}
    new = trips(range(5, 15), ts=6, note="logged in 9")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    upgrade(sides, 6)
    sides.agree(rows)
    rows = turns(sides, rows, 1)
    upgrade(sides, 9)
    rows = turns(sides, rows, 1, first_ts=20)
    told_by_hudi(sides)


@pytest.mark.long
def test_hudi_downgrades_and_upgrades_what_we_upgraded(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides, rows = with_logs(hudi_12, tmp_path / "trips", 6)
    upgrade(sides, 9)
    rows = turns(sides, rows, 1)
    name = sides.in_catalog()
    for procedure, target, version in (("downgrade_table", "SIX", 6), ("upgrade_table", "EIGHT", 8)):
        hudi_12.sql(f"CALL {procedure}(table => '{name}', to_version => '{target}')")
        assert version_of(sides.path) == version
        assert_same_rows(data_columns(sides.table.to_arrow()), rows, key=("id",))
    sides.options = {**sides.options, "hoodie.write.table.version": 8}
    turns(sides, rows, 1, first_ts=20)


def archived_by_hudi(hudi: RealHudi, path: Path, name: str) -> set[str]:
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    always = "start_ts => '20200101000000000', end_ts => '20990101000000000', limit => 1000"
    told = hudi.sql(f"CALL show_archived_commits(table => '{name}', {always})")
    return set(told["commit_time"].to_pylist())


def commits_in_archive(path: Path) -> set[str]:
    state = load_state(Storage(path))
    found = ArchivedTimeline(state.storage, state.config).instants(actions=("commit", "deltacommit", "replacecommit"))
    return {one.requested for one in found}


@pytest.mark.smoke("hudi_12-h015_cow_archived-9")
@pytest.mark.parametrize(
    ("release", "name", "after"), [("hudi_12", "h015_cow_archived", 9), ("hudi_015", "cow_v9_archived", 6)]
)
def test_hudi_reads_the_archive_in_the_other_layout(
    release: str, name: str, after: int, golden: Unzip, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    hudi: RealHudi = request.getfixturevalue(release)
    path = tmp_path / "moved"
    shutil.copytree(golden(name).table, path)
    before = commits_in_archive(path)
    assert before
    hf.HudiTable.open(path).services.upgrade(after)
    assert commits_in_archive(path) == before
    assert archived_by_hudi(hudi, path, f"moved_{after}") == before
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), hudi.read(path), ignore=())


def test_properties_of_an_upgrade_are_those_of_hudi(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides, _ = with_logs(hudi_12, tmp_path / "trips", 6)
    twin = MorSides(hudi_12, tmp_path / "twin", sides.options)
    shutil.copytree(sides.path, twin.path)
    for ours, theirs in ((8, "EIGHT"), (9, "NINE")):
        upgrade(sides, ours)
        hudi_12.sql(f"CALL upgrade_table(table => '{twin.in_catalog()}', to_version => '{theirs}')")
        assert load_properties(Storage(sides.path)) == load_properties(Storage(twin.path))
    done = pc.equal(sides.table.history()["state"], "COMPLETED")
    assert pc.all(done).as_py()


@pytest.mark.long
def test_hudi_loses_commits_whose_completed_file_its_failed_upgrade_moved_and_we_put_them_back(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    """Release 1.2.0 moves the timeline file by file; what is left of a commit then looks like a failed write."""
    sides = MorSides(hudi_12, tmp_path / "trips", mor_options(6))
    for ts in (1, 2, 3):
        sides.we_write(trips(range(5 * ts), ts=ts))
    storage = Storage(sides.path)
    config = load_state(storage).config
    other = other_layout(config, storage.uri)
    moved = [one.requested for one in load_state(storage).timeline.writes()[1:]]
    storage.make_dir(other.timeline_folder)
    copy_timeline(storage, config, other, moved)
    for time in moved:
        storage.delete_file(f"{config.timeline_folder}/{time}.deltacommit")
        for state in ("requested", "inflight"):
            storage.delete_file(f"{other.timeline_folder}/{time}.deltacommit.{state}")
    twin = MorSides(hudi_12, tmp_path / "twin", sides.options)
    shutil.copytree(sides.path, twin.path)
    hudi_12.sql(f"CALL upgrade_table(table => '{twin.in_catalog()}', to_version => 'NINE')")
    assert (hudi_12.read(twin.path).num_rows, version_of(twin.path)) == (5, 9)
    upgrade(sides, 9)
    sides.agree(trips(range(15), ts=3))


def kill_changes(base: Path, version: int, places: dict[str, Callable[[StorageCall], bool]]) -> dict[str, Path]:
    """Copies of a table whose change of the version died near the last call of each kind: those of the data table."""
    whole = base.with_name(f"{base.name}_whole")
    shutil.copytree(base, whole)
    recorder = RecordingStorage(whole)
    TableServices(recorder).upgrade(version, {"hudi_fast.threads": 1})
    made = {}
    for name, is_there in places.items():
        at = [call.number for call in recorder.calls if call.changes and is_there(call)]
        made[name] = base.with_name(f"{base.name}_{name}")
        shutil.copytree(base, made[name])
        storage = FaultyStorage(made[name], at=at[-3 if len(at) > 4 else -1], die=True)
        with pytest.raises(hf.HudiError):
            TableServices(storage).upgrade(version, {"hudi_fast.threads": 1})
    return made


def of_the_old_layout(call: StorageCall) -> bool:
    return call.name == "write_bytes" and call.path.endswith((".deltacommit", ".commit"))


PLACES_DOWN: dict[str, Callable[[StorageCall], bool]] = {
    "copying": of_the_old_layout,
    "switching": lambda call: call.path == ".hoodie/hoodie.properties" and call.name == "write_bytes",
    "switched": lambda call: call.path.endswith("properties.backup") and call.name == "delete_file",
    "sweeping": lambda call: call.path.startswith(".hoodie/timeline/2") and call.name == "delete_file",
}
PLACES_UP: dict[str, Callable[[StorageCall], bool]] = {
    "switching": PLACES_DOWN["switching"],
    "sweeping": lambda call: call.name == "delete_file" and call.path.startswith(".hoodie/2"),
}


@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
def test_hudi_changes_the_version_after_the_repair_of_a_change_of_ours_that_died(
    hudi_12: RealHudi, tmp_path: Path
) -> None:
    for before, after, places in ((9, 6, PLACES_DOWN), (6, 9, PLACES_UP)):
        sides = MorSides(hudi_12, tmp_path / f"from{before}", mor_options(before))
        for ts in (1, 2, 3):
            sides.we_write(trips(range(5 * ts), ts=ts))
        expected = trips(range(15), ts=3)
        for name, path in kill_changes(sides.path, after, places).items():
            twin = MorSides(hudi_12, path, sides.options)
            twin.table.services.repair()
            version = version_of(path)
            assert version == (before if name in ("copying", "switching") else after), name
            twin.agree(expected)
            procedure, target = ("downgrade_table", "SIX") if version == 9 else ("upgrade_table", "NINE")
            hudi_12.sql(f"CALL {procedure}(table => '{twin.in_catalog()}', to_version => '{target}')")
            assert version_of(path) == (6 if version == 9 else 9), name
            twin.agree(expected)


@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
def test_an_upgrade_by_hudi_over_what_a_downgrade_of_ours_left_loses_nothing(hudi_12: RealHudi, tmp_path: Path) -> None:
    """It may fail, for it moves files of the timeline onto those that are there; our upgrade then finishes it."""
    sides = MorSides(hudi_12, tmp_path / "trips", mor_options(9))
    for ts in (1, 2, 3):
        sides.we_write(trips(range(5 * ts), ts=ts))
    places = {"switched": PLACES_DOWN["switched"], "sweeping": PLACES_DOWN["sweeping"]}
    for path in kill_changes(sides.path, 6, places).values():
        twin = MorSides(hudi_12, path, sides.options)
        assert version_of(path) == 6
        with contextlib.suppress(Exception):
            hudi_12.sql(f"CALL upgrade_table(table => '{twin.in_catalog()}', to_version => 'NINE')")
        upgrade(twin, 9)
        twin.agree(trips(range(15), ts=3))
