"""Changes of the table version that fail at any call to storage: the table has one version or the other, whole.

Readers see the same rows all the while, and the same call made again goes on; nothing of history is lost.
"""

from __future__ import annotations

import errno
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.upgrading.move import both_tables, leftovers
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.view.table_state import load_state
from tests.faults import calls as ways
from tests.faults.calls import few, interesting
from tests.support.instrumented_storage import (
    FAULT_KINDS,
    FaultyStorage,
    InjectedFaultError,
    RecordingStorage,
    StorageCall,
)
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

NEXT = plain_rows([3, 40], ts=9, text="n")
PLAIN = [
    ("6", 9, False),
    ("9", 6, False),
    ("5", 9, False),
    pytest.param("9", 5, False, marks=pytest.mark.long),
    pytest.param("8", 9, False, marks=pytest.mark.long),
    pytest.param("9", 8, False, marks=pytest.mark.long),
]
WITH_METADATA = [("6", 9, True), ("9", 6, True)]
HISTORY = ".hoodie/timeline/history"
NAMED = 5
SAMPLE, SAMPLE_OF_LONG = {False: 8, True: 5}, {False: 22, True: 9}
KEPT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}

Instants = set[tuple[str, str]]


def write_table(path: Path, version: str, kept_metadata: bool) -> None:
    """Log files over base files of a compaction; an archive, for which version 6 with a metadata table is too young."""
    settings = {**mor_options(table_version=version), "hoodie.metadata.enable": kept_metadata}
    services = TableServices(Storage(path))
    hf.write(plain_rows(range(8)), path, settings)
    for turn in range(2, 7):
        hf.write(plain_rows(range(turn - 1, 8), ts=turn, text=f"t{turn}-"), path, settings)
        if turn == 4:
            services.compact({"hoodie.metadata.enable": kept_metadata})
    archived = services.archive({**KEPT, "hoodie.metadata.enable": kept_metadata})
    assert archived.instants or (kept_metadata and version == "6")


def instants(path: Path) -> Instants:
    state = load_state(Storage(path))
    found = {(one.requested, one.action) for one in state.timeline.completed()}
    return found | {(one.requested, one.action) for one in ArchivedTimeline(state.storage, state.config).instants()}


def run(storage: Storage, version: int) -> Any:
    return TableServices(storage).upgrade(version, {"hudi_fast.threads": 1})


def chosen(calls: list[StorageCall], chooser: random.Random, limit: int) -> list[StorageCall]:
    """Calls that change the properties, and at most so many of the others."""
    kept = interesting(calls)
    named = [call for call in kept if "hoodie.properties" in call.path and call.changes]
    others = [call for call in kept if call not in named]
    return sorted([*few(named, NAMED), *chooser.sample(others, min(limit, len(others)))], key=lambda call: call.number)


def check_after(path: Path, before: int, after: int, rows: dict[str, Any], known: Instants, where: str) -> None:
    """One version or the other, or 6 between them, with all rows and instants; a write works if the version stayed."""
    found = load_state(Storage(path)).config.version
    assert found in (before, after) or min(before, after) < found == 6 < max(before, after), where
    assert table_rows(path) == rows, where
    assert known <= instants(path), where
    if found == before:
        metadata = bool(load_state(Storage(path)).config.metadata_partitions)
        hf.write(NEXT, path, {**mor_options(table_version=str(before)), "hoodie.metadata.enable": metadata})
        rows = {**rows, **rows_of(NEXT)}
        assert table_rows(path) == rows, where
    run(Storage(path), after)
    assert load_state(Storage(path)).config.version == after, where
    assert table_rows(path) == rows, where
    assert known <= instants(path), where
    assert run(Storage(path), after).steps == (), where
    assert not [one for one in (path / ".hoodie").iterdir() if after > 6 and one.name[0].isdigit()], where
    assert_no_leftovers(path, after, where)


def assert_no_leftovers(path: Path, version: int, where: str) -> None:
    state = load_state(Storage(path))
    assert state.timeline.pending() == (), where
    if version <= 6:
        left = [one for one in (path / ".hoodie/timeline").rglob("*") if one.is_file() and one.suffix != ".tmp"]
        assert left == [], where
    if state.config.metadata_partitions:
        services = TableServices(Storage(path))
        assert services.validate().differences.to_pylist() == [], where


@pytest.mark.long("6-9-False", "9-6-False")
@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "kept_metadata"), [*PLAIN, *WITH_METADATA])
def test_any_failing_call_leaves_one_version_or_the_other(
    before: str, after: int, kept_metadata: bool, tmp_path: Path
) -> None:
    write_table(tmp_path / "base", before, kept_metadata)
    rows, known = table_rows(tmp_path / "base"), instants(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    assert run(recorder, after).steps
    chooser = random.Random(f"{before} {after} {kept_metadata}")
    limits = SAMPLE_OF_LONG if ways.EVERY_WAY else SAMPLE
    outcomes = set()
    for call in chosen(recorder.calls, chooser, limits[kept_metadata]):
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.choice((False, True))
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hf.HudiWarning)  # a metadata table between two versions is passed over
            try:
                run(FaultyStorage(path, at=call.number, kind=kind, die=die), after)
            except Exception as caught:
                error = caught
            where = f"{call} {kind} die={die}: {error!r}"
            assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
            check_after(path, int(before), after, rows, known, where)
        outcomes.add(error is None)
        shutil.rmtree(path)
    assert False in outcomes


def changes_the_archive(call: StorageCall) -> bool:
    return call.changes and call.path.startswith(HISTORY)


@pytest.mark.slow
def test_an_archive_of_which_a_part_was_removed_is_removed_by_the_next_attempt(tmp_path: Path) -> None:
    write_table(tmp_path / "base", "9", kept_metadata=False)
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    run(recorder, 6)
    removals = list(filter(changes_the_archive, recorder.calls))
    assert len(removals) >= 3
    for number, removal in enumerate(removals):
        path = tmp_path / f"try{number}"
        shutil.copytree(tmp_path / "base", path)
        with pytest.raises((hf.HudiError, InjectedFaultError)):
            run(FaultyStorage(path, at=number, kind="tear", die=True, among=changes_the_archive), 6)
        run(Storage(path), 6)
        assert_no_leftovers(path, 6, str(removal))
        shutil.rmtree(path)


@pytest.mark.slow
def test_a_change_that_died_again_and_again_is_done_in_the_end(tmp_path: Path) -> None:
    write_table(tmp_path / "t", "6", kept_metadata=False)
    rows, known = table_rows(tmp_path / "t"), instants(tmp_path / "t")
    for at in range(20, 400, 30):
        try:
            run(FaultyStorage(tmp_path / "t", at=at, die=True), 9)
            break
        except (InjectedFaultError, hf.HudiError):
            assert table_rows(tmp_path / "t") == rows
            assert known <= instants(tmp_path / "t")
    run(Storage(tmp_path / "t"), 9)
    assert load_state(Storage(tmp_path / "t")).config.version == 9
    assert table_rows(tmp_path / "t") == rows
    assert known <= instants(tmp_path / "t")


def test_what_a_move_left_does_not_come_back(tmp_path: Path) -> None:
    """A timeline of the old layout that was never swept is written over by the way back."""
    path = tmp_path / "t"
    hf.write(plain_rows(range(4)), path, options(table_version="6"))
    old = {one.name: one.read_bytes() for one in (path / ".hoodie").iterdir() if one.name[0].isdigit()}
    run(Storage(path), 8)
    hf.write(NEXT, path, options(table_version="8"))
    for name, body in old.items():
        (path / ".hoodie" / name).write_bytes(body)
    (path / ".hoodie/20200101000000000.commit").write_bytes(b"{}")
    run(Storage(path), 6)
    assert "20200101000000000" not in {one for one, _ in instants(path)}
    assert table_rows(path) == {**rows_of(plain_rows(range(4))), **rows_of(NEXT)}
    assert_tidy(path)


OF_A_CHANGE = {"other timeline", "properties backup"}


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("9", 6), ("6", 9)])
def test_the_repair_of_a_change_that_died_at_any_call_leaves_one_whole_timeline(
    before: str, after: int, tmp_path: Path
) -> None:
    """Then the change can be made again, here or by Apache Hudi, which fails where files of the other layout are."""
    write_table(tmp_path / "base", before, kept_metadata=False)
    rows, known = table_rows(tmp_path / "base"), instants(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    run(recorder, after)
    versions = set()
    changes = [one for one in recorder.calls if one.changes]
    for call in interesting(changes) if ways.EVERY_WAY else chosen(changes, random.Random(before), 14):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            run(FaultyStorage(path, at=call.number, die=True, number=errno.EIO), after)
        except Exception as caught:
            error = caught
        where = f"{call}: {error!r}"
        said = any(word in str(error) for word in ("again", "retry", "next"))
        assert error is None or (isinstance(error, hf.HudiError) and said), where
        services = TableServices(Storage(path))
        found = {one for one in services.plan_repair().findings if one.kind in OF_A_CHANGE}
        assert all(one.repairable for one in found), where
        assert found <= set(services.repair().repaired), where
        state = load_state(Storage(path))
        assert sum(len(leftovers(*one)) for one in both_tables(state.storage, state.config)) == 0, where
        assert state.config.version in (int(before), after), where
        versions.add(state.config.version)
        assert table_rows(path) == rows, where
        assert known <= instants(path), where
        run(Storage(path), after)
        assert table_rows(path) == rows, where
        assert known <= instants(path), where
        assert_no_leftovers(path, after, where)
        shutil.rmtree(path)
    assert versions == {int(before), after}
