"""Savepoints: what they keep, and which commits can have one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.formats.avro.container import read_single_record
from hudi_fast.services.savepoints import read_savepoint
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import revert_to_inflight, to_inflight
from hudi_fast.writing.rollback import request_rollback
from hudi_fast.writing.rollback_plan import plan_rollback
from tests.support.golden import Golden
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.rollback_tables import COW, KINDS, MOR, instants_of, services, services_on, settings_of, state_of
from tests.support.sessions import session_of
from tests.support.small_tables import listing, plain_rows, table_rows

OPERATION = "hoodie.datasource.write.operation"
CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"}
VERSIONS_KEPT = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


def make(path: Path, kind: str, version: str) -> list[str]:
    """Three commits to the rows of two partitions."""
    settings = settings_of(kind, version, indexes=False)
    changes = [plain_rows(range(8)), plain_rows([2, 3], ts=2), plain_rows([2, 3, 4], ts=3)]
    return [hf.write(rows, path, settings).instant for rows in changes]


def body_of(path: Path, instant: str) -> dict[str, tuple[str, ...]]:
    (found,) = [one for one in instants_of(path, "savepoint") if one.requested == instant]
    return dict(read_savepoint(state_of(path), found).files)


@pytest.mark.slow("COPY_ON_WRITE-9")
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_a_savepoint_names_the_files_of_its_commit(kind: str, version: str, tmp_path: Path) -> None:
    commits = make(tmp_path, kind, version)
    before = listing(tmp_path)
    result = services(tmp_path).savepoint(user="ada", comment="before the migration")
    assert (result.instant, result.files) == (commits[2], 2 if kind == COW else 6)
    files = body_of(tmp_path, commits[2])
    assert sorted(files) == ["p0", "p1"]
    sizes = [before[f"{partition}/{name}"] for partition, names in files.items() for name in names]
    assert (len(sizes), sum(sizes)) == (result.files, result.bytes)
    (row,) = services(tmp_path).savepoints().to_pylist()
    assert (row["instant"], row["user"], row["comment"]) == (commits[2], "ada", "before the migration")
    assert (row["partitions"], row["files"]) == (2, result.files)
    made = sorted(listing(tmp_path).keys() - before.keys())
    assert [name.rpartition(".")[2] for name in made] == ["inflight", "savepoint"] or version == "6"
    assert len(made) == 2
    assert len(table_rows(tmp_path)) == 8


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_savepoint_that_fails_leaves_nothing(version: str, tmp_path: Path) -> None:
    make(tmp_path / "base", COW, version)
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    services_on(recorder).savepoint()
    failed = 0
    for call in recorder.calls:
        path = tmp_path / f"try{call.number}"
        shutil.copytree(tmp_path / "base", path)
        try:
            services_on(FaultyStorage(path, at=call.number)).savepoint()
        except (hf.HudiError, InjectedFaultError):
            failed += 1
            left = [one for one in instants_of(path, "savepoint") if not one.is_completed]
            assert left == [], call
    assert failed > 3


def test_an_older_commit_keeps_the_files_that_it_saw(tmp_path: Path) -> None:
    commits = make(tmp_path, COW, "9")
    services(tmp_path).savepoint(commits[0])
    assert all(
        name.endswith(f"_{commits[0]}.parquet") for names in body_of(tmp_path, commits[0]).values() for name in names
    )
    services(tmp_path).clean(CLEAN)
    assert len([name for name in listing(tmp_path) if name.endswith(f"_{commits[0]}.parquet")]) == 2
    services(tmp_path).delete_savepoint(commits[0])
    assert instants_of(tmp_path, "savepoint") == []
    assert services(tmp_path).savepoints().num_rows == 0


def test_bodies_are_those_of_apache_hudi(golden: Callable[[str], Golden]) -> None:
    path = golden("cow_v9_savepoint_rollback").table
    (theirs,) = instants_of(path, "savepoint")
    folder = path / state_of(path).config.timeline_folder
    body = read_single_record((folder / str(theirs.file_name)).read_bytes())
    services(path).delete_savepoint(theirs.requested)
    services(path).savepoint(theirs.requested)
    (ours,) = instants_of(path, "savepoint")
    assert (folder / f"{ours.requested}.savepoint.inflight").read_bytes() == b""
    assert read_single_record((folder / str(ours.file_name)).read_bytes()) | {"savepointedAt": 0} == body | {
        "savepointedAt": 0
    }


def refused(path: Path, instant: str | None, because: str) -> None:
    before = listing(path)
    with pytest.raises(hf.ConfigError, match=because):
        services(path).savepoint(instant)
    assert listing(path) == before


def test_what_is_no_completed_commit_or_has_one_is_refused(tmp_path: Path) -> None:
    commits = make(tmp_path, MOR, "9")
    refused(tmp_path, "20200101000000000", "no completed commit 20200101000000000")
    planned = services(tmp_path).schedule_compact()
    assert planned is not None
    refused(tmp_path, planned.instant, f"no completed commit {planned.instant}")
    services(tmp_path).savepoint(commits[1])
    refused(tmp_path, commits[1], "has a savepoint already")
    with pytest.raises(hf.ConfigError, match=f"no savepoint; those with one: {commits[1]}"):
        services(tmp_path).delete_savepoint(commits[0])


def test_a_look_back_is_refused_where_a_service_took_the_place_of_what_is_kept(tmp_path: Path) -> None:
    """It was planned before the commit and carried out after the savepoint: queries of that time see its files."""
    settings = settings_of(COW, "9", indexes=False)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    assert services(tmp_path).schedule_cluster(settings) is not None
    commit = hf.write(plain_rows([10, 11]), tmp_path, {**settings, "hoodie.parquet.small.file.limit": 0}).instant
    services(tmp_path).savepoint(commit)
    services(tmp_path).run_pending(settings)
    hf.write(plain_rows([0, 1], ts=5), tmp_path, {**settings, OPERATION: "insert_overwrite"})
    assert hf.HudiTable.open(tmp_path).to_arrow(as_of=commit).num_rows == 6
    services(tmp_path).clean({**settings, **VERSIONS_KEPT})
    with pytest.raises(hf.ConfigError, match="Cleaner cleaned up the timestamp of interest"):
        hf.HudiTable.open(tmp_path).to_arrow(as_of=commit)


def test_a_commit_whose_rollback_is_pending_is_refused(tmp_path: Path) -> None:
    commits = make(tmp_path, COW, "9")
    state = state_of(tmp_path)
    written = state.timeline.find(commits[2])
    assert written is not None
    session = session_of(tmp_path)
    with session.locked():
        pending = request_rollback(session, plan_rollback(state.storage, state.config, written))
    with pytest.raises(hf.ConfigError, match=f"its rollback {pending.requested} is pending"):
        services(tmp_path).savepoint(commits[2])
    assert instants_of(tmp_path, "savepoint") == []


@pytest.mark.parametrize("carried_out", [True, False])
def test_what_a_clean_does_not_retain_is_refused(carried_out: bool, tmp_path: Path) -> None:
    commits = make(tmp_path, COW, "9")
    verb = services(tmp_path).clean if carried_out else services(tmp_path).schedule_clean
    assert verb(CLEAN) is not None
    refused(tmp_path, commits[0], f"retains nothing before {commits[2]}")
    refused(tmp_path, commits[1], f"retains nothing before {commits[2]}")
    services(tmp_path).savepoint(commits[2])


def test_a_clean_that_counts_versions_retains_the_newest_commit_alone(tmp_path: Path) -> None:
    commits = make(tmp_path, COW, "9")
    services(tmp_path).clean(VERSIONS_KEPT)
    refused(tmp_path, commits[1], "retains versions, not commits")
    assert services(tmp_path).savepoint().instant == commits[2]


def test_what_died_while_it_was_made_or_deleted_is_done_again(tmp_path: Path) -> None:
    commits = make(tmp_path, COW, "9")
    at = state_of(tmp_path)
    to_inflight(at.storage, at.config, Instant(commits[2], "savepoint", State.INFLIGHT))
    assert services(tmp_path).savepoints().num_rows == 0
    assert services(tmp_path).savepoint(commits[2]).files == 2
    (made,) = instants_of(tmp_path, "savepoint")
    revert_to_inflight(at.storage, at.config, made)
    services(tmp_path).delete_savepoint(commits[2])
    assert instants_of(tmp_path, "savepoint") == []
