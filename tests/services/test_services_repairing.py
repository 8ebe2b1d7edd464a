"""What repairing finds, what it removes, and what it leaves alone.

Modules: hudi_fast.services.repairing.repair, hudi_fast.services.repairing.files, hudi_fast.services.repairing.findings,
hudi_fast.services.repairing.instants.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import machine_lock
from hudi_fast.services.repairing.findings import FINDING_KINDS
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.plans import (
    CleanMetadata,
    CleanPartition,
    RollbackPlan,
    encode_clean_metadata,
    encode_rollback_plan,
)
from hudi_fast.view.table_state import load_state
from tests.support.golden import golden_names
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows

PLAIN = {"hoodie.metadata.enable": "false"}
TEMPORARY = ".y.parquet.0123456789abcdef0123456789abcdef.tmp"
REAL = [name for name in golden_names() if not name.startswith("hudi_rs/") and name != "cow_v9_restored"]


def make(path: Path, version: str = "9", mor: bool = False, **more: str) -> hf.HudiTable:
    settings = (mor_options if mor else options)(table_version=version) | PLAIN | more
    hf.write(plain_rows(range(6)), path, settings)
    hf.write(plain_rows([0, 1], ts=2), path, settings)
    return hf.HudiTable.open(path)


def timeline_of(path: Path, version: str = "9") -> Path:
    return path / ".hoodie" / ("" if version == "6" else "timeline")


def findings(table: hf.HudiTable, kind: str | None = None) -> list:
    found = table.services.plan_repair().findings
    return [one for one in found if kind in (None, one.kind)]


def age(path: Path, hours: float = 2) -> Path:
    then = time.time() - hours * 3600
    os.utime(path, (then, then))
    return path


def base_files(path: Path) -> list[Path]:
    return sorted(path.glob("p*/*.parquet"))


def instants(path: Path) -> list[str]:
    return [one.requested for one in load_state(Storage(path)).timeline.instants]


# ---- nothing to find


@pytest.mark.parametrize("name", [*REAL[::4], "cow_v9_archived", "h015_cow_archived", "h015_mor_rollback_compacted"])
def test_tables_of_real_hudi_have_no_findings(golden, name):
    assert findings(hf.HudiTable.open(golden(name).table)) == []


@pytest.mark.slow("6-False")
@pytest.mark.parametrize("mor", [False, True])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_healthy_table_has_no_findings_and_repairing_it_changes_nothing(tmp_path, version, mor):
    table = make(tmp_path, version, mor)
    before = listing(tmp_path)
    assert findings(table) == []
    result = table.services.repair()
    assert (result.instant, result.repaired, result.left, result.bytes_deleted) == ("", (), (), 0)
    assert listing(tmp_path) == before


def test_planned_services_are_no_findings(tmp_path):
    table = make(tmp_path, mor=True)
    assert table.services.schedule_compact() is not None
    assert findings(table) == []


# ---- data files


@pytest.mark.parametrize("version", ["6", "9"])
def test_files_of_an_attempt_that_did_not_win_go(tmp_path, version):
    table = make(tmp_path, version)
    rows = table_rows(tmp_path)
    newest = max(base_files(tmp_path), key=lambda file: file.name.rpartition("_")[2])
    file_id, _, instant = newest.stem.split("_")
    twin = newest.with_name(f"{file_id}_9-9-9_{instant}.parquet")
    shutil.copy(newest, twin)
    (found,) = findings(table)
    assert (found.kind, found.instant, found.path) == ("orphan file", instant, f"{twin.parent.name}/{twin.name}")
    assert (found.bytes, found.repairable) == (twin.stat().st_size, True)
    assert "duplicate task attempt" in found.advice
    result = table.services.repair()
    assert (result.files_deleted, result.bytes_deleted, result.left) == (1, found.bytes, ())
    assert not twin.exists()
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.parametrize("mor", [False, True])
def test_files_of_a_write_that_was_rolled_back_go(tmp_path, mor):
    table = make(tmp_path, mor=mor)
    rows, file = table_rows(tmp_path), base_files(tmp_path)[0]
    failed = table.history()["instant"][-1].as_py()
    stray = file.with_name(f"{file.stem.split('_')[0]}_0-0-0_{int(failed) + 1}.parquet")
    shutil.copy(file, stray)
    (timeline_of(tmp_path) / f"{int(failed) + 1}.{'deltacommit' if mor else 'commit'}.requested").touch()
    assert [one.kind for one in findings(table)] == ["failed write"]
    assert table.services.repair().rolled_back == (str(int(failed) + 1),)
    (found,) = findings(table)
    assert (found.kind, found.repairable) == ("orphan file", True)
    assert "was rolled back" in found.advice
    assert table.services.repair().files_deleted == 1
    assert not stray.exists()
    assert table_rows(tmp_path) == rows


SOON = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
ARCHIVED = [(version, mor) for version in ("9", "6") for mor in (False, True)]


def archived_life(path: Path, version: str, mor: bool, rolled_back_first: bool) -> tuple[str, hf.HudiTable]:
    """A table whose writes, and whose rollback of a write, are archived, all but the last; that write."""
    settings = (mor_options if mor else options)(table_version=version) | PLAIN | SOON
    settings |= {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    settings |= {"hoodie.compact.inline.max.delta.commits": "1"} if mor else {}
    if not rolled_back_first:
        hf.write(plain_rows(range(6)), path, settings)
    undone = hf.write(plain_rows([0, 1, 9], ts=2), path, settings).instant
    table = hf.HudiTable.open(path)
    table.services.rollback(undone)
    for ts in range(3, 13):
        hf.write(plain_rows(range(6), ts=ts), path, settings)
        if mor:
            table.services.compact(settings)
        if version == "6":  # its rollbacks are counted by themselves
            table.services.rollback(hf.write(plain_rows([2], ts=ts), path, settings).instant)
    table.services.archive(settings)
    state = load_state(Storage(path))
    archived = ArchivedTimeline(state.storage, state.config).instants()
    assert undone not in [one.requested for one in (*archived, *state.timeline.instants)]
    assert "rollback" in [one.action for one in archived]
    return undone, table


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mor"), ARCHIVED)
def test_files_of_archived_commits_are_never_orphans(tmp_path, version, mor):
    _, table = archived_life(tmp_path, version, mor, rolled_back_first=False)
    active = set(instants(tmp_path))
    old = [file for file in base_files(tmp_path) if file.stem.rpartition("_")[2] not in active]
    assert len(old) > 5
    assert findings(table) == []
    before = listing(tmp_path)
    assert table.services.repair().files_deleted == 0
    assert listing(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("version", "mor"), ARCHIVED)
def test_files_of_a_write_whose_rollback_is_archived_go(tmp_path, version, mor, first):
    """Also of the first write of all: the archive does not reach back to it, but names it."""
    undone, table = archived_life(tmp_path, version, mor, rolled_back_first=first)
    rows, file = table_rows(tmp_path), base_files(tmp_path)[0]
    stray = file.with_name(f"{file.name.partition('_')[0]}_0-0-0_{undone}.parquet")
    shutil.copy(file, stray)
    (found,) = findings(table)
    assert (found.kind, found.instant, found.path) == ("orphan file", undone, str(stray.relative_to(tmp_path)))
    assert found.advice.startswith(f"The instant {undone} was rolled back.")
    assert found.repairable
    assert table.services.repair().files_deleted == 1
    assert not stray.exists()
    assert table_rows(tmp_path) == rows
    alone = file.with_name(f"11111111-0_0-0-0_{undone}.parquet")  # the newest of its file group: in every query
    shutil.copy(file, alone)
    (found,) = findings(table)
    assert not found.repairable
    assert "Queries read it" in found.advice


def test_files_of_an_instant_that_is_on_no_timeline_go(tmp_path):
    table = make(tmp_path)
    first, second = instants(tmp_path)
    file = base_files(tmp_path)[0]
    between = str(int(first) + 1)
    assert first < between < second
    stray = file.with_name(f"11111111-0_0-0-0_{between}.parquet")
    shutil.copy(file, stray)
    (found,) = findings(table)
    assert "on no timeline" in found.advice
    assert found.repairable
    table.services.repair()
    assert not stray.exists()


def test_files_newer_than_the_timeline_are_left_to_their_writer(tmp_path):
    table = make(tmp_path)
    file = base_files(tmp_path)[0]
    shutil.copy(file, file.with_name("11111111-0_0-0-0_29991231000000000.parquet"))
    assert findings(table) == []


def test_files_older_than_the_timeline_are_left_where_no_archive_tells_of_them(tmp_path):
    table = make(tmp_path)
    file = base_files(tmp_path)[0]
    shutil.copy(file, file.with_name("11111111-0_0-0-0_20200101000000000.parquet"))
    assert findings(table) == []


def test_a_file_that_queries_read_stays_even_if_no_timeline_knows_it(golden):
    """Older than the active timeline counts as committed, so a stray file there is in every query."""
    path = golden("cow_v9_archived").table
    table = hf.HudiTable.open(path)
    archived = [row["instant"] for row in table.history(archived=True).to_pylist() if row["archived"]]
    file = next(path.glob("*/*.parquet"))
    stray = file.with_name(f"11111111-0_0-0-0_{int(archived[1]) + 1}.parquet")
    shutil.copy(file, stray)
    (found,) = findings(table, "orphan file")
    assert not found.repairable
    assert "Queries read it" in found.advice or "metadata table lists it" in found.advice
    result = table.services.repair()
    assert stray.exists()
    assert [one.path for one in result.left] == [found.path]


def test_files_that_a_savepoint_protects_stay(golden):
    path = golden("cow_v9_savepoint_rollback").table
    table = hf.HudiTable.open(path)
    saved = next(row["instant"] for row in table.history().to_pylist() if row["action"] == "savepoint")
    folder = path / ".hoodie" / "timeline"
    for file in folder.glob(f"{saved}*"):  # as if the commit were lost and its savepoint not
        if "savepoint" not in file.name:
            file.unlink()
    before = listing(path)
    result = table.services.repair()
    assert [one.path for one in result.repaired if one.kind == "orphan file"] == []
    assert listing(path) == before


def test_log_files_of_an_upgraded_table_that_are_named_after_their_slice_stay(tmp_path):
    table = make(tmp_path, mor=True)
    rows = table_rows(tmp_path)
    base = next(file for file in base_files(tmp_path))
    file_id, _, instant = base.stem.split("_")
    old = base.with_name(f".{file_id}_{instant}.log.1_0-0-0")
    old.write_bytes(next(base.parent.glob(f".{file_id}_*.log.*")).read_bytes())
    assert findings(table) == []
    assert table_rows(tmp_path).keys() == rows.keys()


def test_files_that_a_clean_could_not_delete_go(tmp_path):
    table = make(tmp_path)
    rows = table_rows(tmp_path)
    first, second = instants(tmp_path)
    old = [file for file in base_files(tmp_path) if first in file.name]
    parts = tuple(CleanPartition(file.parent.name, "KEEP_LATEST_COMMITS", failed=(file.name,)) for file in old)
    time_ = str(int(second) + 1)
    body = encode_clean_metadata(CleanMetadata(time_, second, second, 5, parts))
    (timeline_of(tmp_path) / f"{time_}_{int(time_) + 1}.clean").write_bytes(body)
    found = findings(table)
    assert {one.kind for one in found} == {"failed delete"}
    assert sorted(one.path for one in found) == sorted(f"{file.parent.name}/{file.name}" for file in old)
    result = table.services.repair()
    assert result.files_deleted == len(old) == 2
    assert not any(file.exists() for file in old)
    assert table_rows(tmp_path) == rows


# ---- instants


@pytest.mark.parametrize("version", ["6", "9"])
def test_failed_writes_are_rolled_back(tmp_path, version):
    table = make(tmp_path, version)
    rows = table_rows(tmp_path)
    time_ = str(int(instants(tmp_path)[-1]) + 1)
    folder = timeline_of(tmp_path, version)
    for ending in ("commit.requested", "inflight"):
        (folder / f"{time_}.{ending}").touch()
    stray = base_files(tmp_path)[0].with_name(f"11111111-0_0-0-0_{time_}.parquet")
    shutil.copy(base_files(tmp_path)[0], stray)
    (found,) = findings(table)
    assert (found.kind, found.instant, found.repairable) == ("failed write", time_, True)
    result = table.services.repair()
    assert result.rolled_back == (time_,)
    history = {row["instant"]: row for row in table.history().to_pylist()}
    assert history[result.instant]["rolled_back"] == [time_]
    assert not stray.exists()
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


def test_a_write_whose_writer_gives_signs_of_life_is_left_alone(tmp_path):
    table = make(tmp_path)
    time_ = str(int(instants(tmp_path)[-1]) + 1)
    (timeline_of(tmp_path) / f"{time_}.commit.requested").touch()
    beat = tmp_path / ".hoodie/.heartbeat" / time_
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    assert findings(table) == []
    age(beat, hours=0.1)
    assert [one.kind for one in findings(table)] == ["failed write"]
    table.services.repair()
    assert not beat.exists()
    assert findings(table) == []


def test_a_write_that_may_be_at_work_is_named_and_left_alone(tmp_path):
    table = make(tmp_path)
    time_ = str(int(instants(tmp_path)[-1]) + 1)
    (timeline_of(tmp_path) / f"{time_}.commit.requested").touch()
    with machine_lock(Storage(tmp_path), 1):
        (found,) = findings(table)
        assert (found.kind, found.repairable) == ("failed write", False)
        assert "may be running it" in found.advice
        with pytest.raises(hf.LockTimeoutError):
            table.services.repair({"hoodie.write.lock.wait_time_ms": "50"})
    (found,) = findings(table)
    assert found.repairable


def test_repairs_beside_writers_lose_no_row(tmp_path):
    table = make(tmp_path)
    age_tmp(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_often, tmp_path)
        while not writing.done():
            with contextlib.suppress(hf.CommitConflictError):  # what was found was still being written, and is done now
                table.services.repair(plan=table.services.plan_repair())
            assert table.services.repair().rolled_back == ()
        writing.result()
    assert len(table_rows(tmp_path)) == 6 + 5
    assert findings(table) == []
    assert_tidy(tmp_path)


def write_often(path: Path) -> None:
    for number in range(5):
        hf.write(plain_rows([100 + number], ts=number), path, options() | PLAIN | {"hoodie.clean.automatic": "false"})


@pytest.mark.parametrize(("known", "said"), [(True, "is complete: its rows are removed"), (False, "it is finished")])
def test_a_rollback_that_was_not_finished_is(tmp_path, known, said):
    table = make(tmp_path)
    first, second = instants(tmp_path)
    target = second if known else str(int(second) + 1)
    body = encode_rollback_plan(RollbackPlan(target, "commit"))
    (timeline_of(tmp_path) / f"{int(second) + 2}.rollback.requested").write_bytes(body)
    (found,) = findings(table)
    assert (found.kind, found.repairable) == ("failed write", True)
    assert said in found.advice
    result = table.services.repair()
    assert result.instant == str(int(second) + 2)
    assert (second in instants(tmp_path)) is not known
    assert first in instants(tmp_path)


@pytest.mark.parametrize(("action", "body"), [("compaction", b""), ("clean", b"Obj\x01cut"), ("indexing", b"")])
def test_services_without_a_plan_are_taken_off_the_timeline(tmp_path, action, body):
    table = make(tmp_path, mor=True)
    rows = table_rows(tmp_path)
    time_ = str(int(instants(tmp_path)[-1]) + 1)
    requested = timeline_of(tmp_path) / f"{time_}.{action}.requested"
    requested.write_bytes(body)
    lost = [one for one in findings(table) if one.instant == time_]
    assert [(one.kind, one.repairable) for one in lost] == [("dangling instant", True)]
    assert "plan is lost" in lost[0].advice
    table.services.repair()
    assert not requested.exists()
    assert findings(table) == []
    assert table_rows(tmp_path) == rows


def test_a_compaction_without_a_plan_that_has_files_is_left_to_a_person(tmp_path):
    table = make(tmp_path, "6", mor=True)
    time_ = str(int(instants(tmp_path)[-1]) + 1)
    (timeline_of(tmp_path, "6") / f"{time_}.compaction.requested").touch()
    log = next(tmp_path.glob("p*/.*.log.*"))
    shutil.copy(log, log.with_name(f".{log.name[1:].split('_')[0]}_{time_}.log.1_0-0-0"))
    before = listing(tmp_path)
    (lost,) = findings(table)
    assert (lost.kind, lost.repairable) == ("dangling instant", False)
    assert "they may hold rows" in lost.advice
    table.services.repair()
    assert listing(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"Obj\x01cut off"])
def test_a_completed_write_whose_body_is_lost_is_named_and_nothing_of_it_deleted(tmp_path, content):
    table = make(tmp_path)
    done = sorted(timeline_of(tmp_path).glob("*.commit"))[-1]
    done.write_bytes(content)
    before = listing(tmp_path)
    (found,) = findings(table, "dangling instant")
    assert (found.instant, found.repairable) == (done.name.split("_")[0], False)
    assert "empty or truncated" in found.advice
    result = table.services.repair()
    assert found in result.left
    assert listing(tmp_path) == before


def test_a_savepoint_that_was_not_made_goes_after_an_hour(tmp_path):
    table = make(tmp_path)
    half = timeline_of(tmp_path) / f"{instants(tmp_path)[0]}.savepoint.inflight"
    half.touch()
    assert findings(table) == []
    age(half)
    assert [one.kind for one in findings(table)] == ["dangling instant"]
    table.services.repair()
    assert not half.exists()
    assert len(instants(tmp_path)) == 2


def test_a_pending_restore_is_named_and_stops_what_depends_on_it(tmp_path):
    table = make(tmp_path)
    time_ = int(instants(tmp_path)[-1])
    (timeline_of(tmp_path) / f"{time_ + 1}.commit.requested").touch()
    (timeline_of(tmp_path) / f"{time_ + 2}.restore.requested").touch()
    before = listing(tmp_path)
    restore, write = findings(table)[::-1]
    assert (write.kind, write.repairable) == ("failed write", False)
    assert "Restore to its savepoint again" in restore.advice
    assert table.services.repair().repaired == ()
    assert listing(tmp_path) == before


def test_an_archive_that_cannot_be_read_keeps_data_files_from_being_judged(golden):
    path = golden("cow_v9_archived", own=True).table
    table = hf.HudiTable.open(path)
    for file in (path / ".hoodie/timeline/history").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    file = next(path.glob("*/*.parquet"))
    shutil.copy(file, file.with_name("11111111-0_0-0-0_20260101000000000.parquet"))
    (found,) = findings(table)
    assert (found.kind, found.repairable) == ("dangling instant", False)
    assert "cannot be checked" in found.advice
    assert "history" in found.path


# ---- leftovers


def test_the_timeline_of_another_version_that_a_move_left_goes(tmp_path):
    make(tmp_path / "old", "6")
    table = make(tmp_path / "t", "9")
    rows, time_ = table_rows(tmp_path / "t"), instants(tmp_path / "old")[0]
    left = tmp_path / "t" / ".hoodie" / f"{time_}.commit"
    shutil.copy(tmp_path / "old" / ".hoodie" / f"{time_}.commit", left)
    (found,) = findings(table)
    assert (found.kind, found.path, found.repairable) == ("other timeline", f".hoodie/{left.name}", True)
    table.services.repair()
    assert not left.exists()
    assert table_rows(tmp_path / "t") == rows


def test_leftovers_below_hoodie_go(tmp_path):
    table = make(tmp_path)
    rows, first = table_rows(tmp_path), instants(tmp_path)[0]
    hoodie = tmp_path / ".hoodie"
    (hoodie / ".temp" / first / "p0").mkdir(parents=True)
    (hoodie / ".temp" / first / "p0" / "x.parquet.marker.CREATE").touch()
    (hoodie / ".heartbeat").mkdir(exist_ok=True)
    (hoodie / ".heartbeat" / first).touch()
    age(hoodie / ".heartbeat" / first)
    shutil.copy(hoodie / "hoodie.properties", hoodie / "hoodie.properties.backup")
    for temporary in (hoodie / "timeline" / ".x.commit.abc.tmp", tmp_path / "p0" / TEMPORARY):
        temporary.write_bytes(b"half")
        age(temporary)
    assert [one.kind for one in findings(table)] == [
        "markers",
        "temporary file",
        "temporary file",
        "properties backup",
        "heartbeat",
    ]
    result = table.services.repair()
    assert (len(result.repaired), result.left, result.instant) == (5, (), "")
    assert findings(table) == []
    assert table_rows(tmp_path) == rows


def test_a_temporary_file_that_may_be_being_written_stays(tmp_path):
    table = make(tmp_path)
    (tmp_path / "p0" / TEMPORARY).write_bytes(b"half")
    assert findings(table) == []


def test_files_of_others_are_no_findings(tmp_path):
    table = make(tmp_path)
    table.upsert(plain_rows([1]))
    time = str(int(instants(tmp_path)[0]) + 1)
    for name in ("notes.tmp", ".notes.tmp", f"sales_q1_{time}.parquet", f".sales_{time}.txt"):
        (tmp_path / "p0" / name).write_bytes(b"theirs")
        age(tmp_path / "p0" / name)
    assert findings(table) == []


def test_properties_that_only_the_backup_has_come_back(tmp_path):
    table = make(tmp_path)
    rows, hoodie = table_rows(tmp_path), tmp_path / ".hoodie"
    (hoodie / "hoodie.properties").rename(hoodie / "hoodie.properties.backup")
    assert [one.kind for one in findings(table)] == ["properties backup"]
    table.services.repair()
    assert (hoodie / "hoodie.properties").exists()
    assert not (hoodie / "hoodie.properties.backup").exists()
    assert table_rows(tmp_path) == rows


def test_locks_of_apache_hudi_are_named_and_never_deleted(tmp_path):
    table = make(tmp_path)
    file_lock = tmp_path / ".hoodie" / "lock"
    file_lock.write_text('{"lockThreadName": "ingest-7"}')
    assert findings(table) == []
    age(file_lock, hours=3)
    lease = tmp_path / ".hoodie" / ".locks" / "table_lock.json"
    lease.write_text(json.dumps({"expired": False, "validUntil": 1_000, "owner": "x"}))
    first, second = findings(table)
    assert (first.kind, second.kind, first.repairable, second.repairable) == ("lock", "lock", False, False)
    assert "ingest-7" in second.advice + first.advice
    table.services.repair()
    assert file_lock.exists()
    assert lease.exists()


def test_what_was_kept_of_a_dropped_metadata_table_is_named(golden):
    (found,) = findings(hf.HudiTable.open(golden("cow_v9_restored").table))
    assert (found.kind, found.repairable) == ("metadata table", False)
    assert found.path.startswith(".hoodie/.metadata_")


def test_a_metadata_table_that_cannot_be_used_is_named(tmp_path):
    table = make(tmp_path, **{"hoodie.metadata.enable": "true"})
    (tmp_path / ".hoodie/metadata/.hoodie/hoodie.properties").unlink()
    (found,) = findings(table)
    assert (found.kind, found.repairable) == ("metadata table", False)
    assert "rebuilds it" in found.advice


# ---- plans


def test_a_plan_is_carried_out_and_nothing_else(tmp_path):
    table = make(tmp_path)
    first = instants(tmp_path)[0]
    (tmp_path / ".hoodie/.temp" / first).mkdir(parents=True)
    plan = table.services.plan_repair()
    stray = age_tmp(tmp_path)
    result = table.services.repair(plan=plan)
    assert [one.kind for one in result.repaired] == ["markers"]
    assert stray.exists()
    assert [one.kind for one in result.left] == ["temporary file"]


def test_a_plan_that_no_longer_fits_is_refused_and_changes_nothing(tmp_path):
    table = make(tmp_path)
    stray = age_tmp(tmp_path)
    (tmp_path / ".hoodie/.temp" / instants(tmp_path)[0]).mkdir(parents=True)
    plan = table.services.plan_repair()
    stray.unlink()
    before = listing(tmp_path)
    with pytest.raises(
        hf.CommitConflictError, match=rf"1 of its 2 findings are missing .*temporary file p0/{TEMPORARY}"
    ):
        table.services.repair(plan=plan)
    assert listing(tmp_path) == before


def test_findings_are_an_arrow_table(tmp_path):
    table = make(tmp_path)
    age_tmp(tmp_path)
    plan = table.services.plan_repair()
    (row,) = plan.to_arrow().to_pylist()
    assert set(row) == {"kind", "instant", "path", "bytes", "repairable", "advice"}
    assert row["kind"] in FINDING_KINDS
    assert (plan.bytes, row["bytes"]) == (4, 4)
    assert table.services.repair().to_arrow().num_rows == 0


def test_looking_writes_nothing(tmp_path):
    table = make(tmp_path)
    age_tmp(tmp_path)
    before = listing(tmp_path)
    table.services.plan_repair()
    assert listing(tmp_path) == before


def test_without_a_table_there_is_nothing_to_repair(tmp_path):
    table = make(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(hf.TableNotFoundError):
        table.services.plan_repair()
    with pytest.raises(hf.TableNotFoundError):
        table.services.repair()


def age_tmp(path: Path) -> Path:
    stray = path / "p0" / TEMPORARY
    stray.write_bytes(b"half")
    return age(stray)
