"""Rollbacks, savepoints and restores that fail at any call to storage.

Readers see the rows of some commit all the while, and whoever comes next finishes what was begun.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from tests.faults.calls import few, interesting
from tests.support.instrumented_storage import (
    FAULT_KINDS,
    FaultyStorage,
    InjectedFaultError,
    RecordingStorage,
    StorageCall,
)
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rollback_tables import COW, MOR, services, services_on, settings_of, state_of
from tests.support.small_tables import assert_tidy, plain_rows, rows_of, table_rows
from tests.support.tiers import is_long

pytestmark = pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")

NEXT = plain_rows([2, 40], ts=9, text="n")
MAX_CALLS, FEW_CALLS = 30, 15


@dataclass(frozen=True)
class Case:
    """One kind of table."""

    kind: str
    version: str
    indexes: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        made = settings_of(self.kind, self.version, self.indexes)
        return made if self.indexes else {**made, "hoodie.metadata.enable": "false"}

    def __str__(self) -> str:
        return f"{self.kind}-v{self.version}{'-metadata' if self.indexes else ''}"


CASES = [
    Case(MOR, "9"),
    Case(COW, "9", True),
    Case(MOR, "6", True),
    *[pytest.param(case, marks=pytest.mark.long) for case in (Case(COW, "9"), Case(MOR, "6"))],  # without their indexes
]


def make_table(path: Path, case: Case) -> list[str]:
    """Three commits, the first of them savepointed."""
    changes = [plain_rows(range(4)), plain_rows([1, 2], ts=2, text="b"), plain_rows([2, 6], ts=3, text="c")]
    commits = [hf.write(changes[0], path, case.settings).instant]
    services(path).savepoint()
    return [*commits, *(hf.write(rows, path, case.settings).instant for rows in changes[1:])]


def chosen(calls: list[StorageCall], name: str, limit: int = MAX_CALLS) -> Iterator[tuple[StorageCall, str, bool]]:
    """Calls that change files, one kind of fault each, drawn by lot, and a few that only look."""
    chance = random.Random(name)
    found = []
    for call in interesting(calls):
        if call.changes:
            found.append((call, chance.choice(FAULT_KINDS), chance.random() < 0.6))
        elif chance.random() < 0.1:
            found.append((call, "before", chance.random() < 0.5))
    return iter(found if len(found) <= limit else sorted(chance.sample(found, limit), key=lambda one: one[0].number))


def run(storage: Storage, verb: str, instant: str, case: Case) -> None:
    options = {"hoodie.metadata.enable": str(case.indexes).lower()}
    getattr(services_on(storage), verb)(instant, options=options)


def attempts(base: Path, path: Path, verb: str, instant: str, case: Case) -> Iterator[tuple[str, Exception | None]]:
    """Each fault in turn, on a copy of the table."""
    shutil.copytree(base, path / "whole")
    recorder = RecordingStorage(path / "whole")
    run(recorder, verb, instant, case)
    for call, kind, die in few([*chosen(recorder.calls, f"{verb} {case}")], FEW_CALLS):
        shutil.copytree(base, path / "try")
        error: Exception | None = None
        try:
            run(FaultyStorage(path / "try", at=call.number, kind=kind, die=die), verb, instant, case)
        except (hf.HudiError, InjectedFaultError) as caught:
            error = caught
        yield f"{call} {kind} die={die}: {error!r}", error
        shutil.rmtree(path / "try")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rollback_is_whole_or_not_begun_for_every_reader(case: Case, tmp_path: Path) -> None:
    commits = make_table(tmp_path / "base", case)
    old = table_rows(tmp_path / "base")
    new = {"k00000": ("p0", 1, "a0"), "k00001": ("p1", 2, "b1"), "k00002": ("p0", 2, "b2"), "k00003": ("p1", 1, "a3")}
    outcomes = set()
    for number, (where, error) in enumerate(attempts(tmp_path / "base", tmp_path, "rollback", commits[2], case)):
        path = tmp_path / "try"
        begun = state_of(path).timeline.of_action("rollback")
        assert table_rows(path) in ((old, new) if begun else (old,)), where
        outcomes.add(error is None)
        if number % 2:
            hf.write(NEXT, path, case.settings)
            expected = {**(new if begun else old), **rows_of(NEXT)}
        else:
            services(path).rollback(options=case.settings)
            expected = new if begun else old
        assert table_rows(path) == expected, where
        assert_tidy(path)
        assert_metadata_true(path)
    assert False in outcomes


@pytest.mark.long("COPY_ON_WRITE-v9", "MERGE_ON_READ-v6")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_restore_goes_back_commit_by_commit_and_is_gone_on_with(case: Case, tmp_path: Path) -> None:
    commits = make_table(tmp_path / "base", case)
    table = hf.HudiTable.open(tmp_path / "base")
    states = [rows_of(table.to_arrow(as_of=commit)) for commit in commits]
    outcomes = set()
    for where, error in attempts(tmp_path / "base", tmp_path, "restore", commits[0], case):
        path = tmp_path / "try"
        assert table_rows(path) in states, where
        outcomes.add(error is None)
        pending = [one for one in state_of(path).timeline.pending() if one.action == "restore"]
        if pending:
            with pytest.raises(hf.CommitConflictError, match="pending restore"):
                hf.write(NEXT, path, case.settings)
        services(path).restore(commits[0], options=case.settings)
        assert table_rows(path) == states[0], where
        assert_tidy(path)
        assert_metadata_true(path)
        hf.write(NEXT, path, case.settings)
        assert table_rows(path) == {**states[0], **rows_of(NEXT)}, where
        assert_tidy(path)
        assert_metadata_true(path)
    assert False in outcomes


# ---- two attempts that die, one after the other


@dataclass(frozen=True)
class Twice:
    """A table whose restore dies twice.

    Attributes:
        case: its kind.
        rebuilds: whether the restore has to build its metadata table again: "all" of it, "one" index, or nothing.
    """

    case: Case
    rebuilds: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        compacted = {"hoodie.metadata.compact.max.delta.commits": "2"} if self.rebuilds == "all" else {}
        return {**self.case.settings, **compacted}

    def make(self, path: Path) -> tuple[str, dict[str, tuple[Any, ...]]]:
        """The savepointed commit, and the rows that the table had then."""
        first = {**self.settings, RECORD_INDEX: "false"} if self.rebuilds == "one" else self.settings
        commit = hf.write(plain_rows(range(4)), path, first).instant
        services(path).savepoint()
        rows = table_rows(path)
        hf.write(plain_rows([1, 2], ts=2, text="b"), path, first)
        if self.rebuilds == "one":
            services(path).index("record_index", options=self.settings)
        hf.HudiTable.open(path).delete(plain_rows([0], ts=3).select(["id", "part"]), self.settings)
        hf.write(plain_rows([2, 6], ts=4, text="c"), path, self.settings)
        return commit, rows

    def __str__(self) -> str:
        return f"{self.case}{'-rebuilds-' if self.rebuilds else ''}{self.rebuilds}"


RECORD_INDEX = "hoodie.metadata.global.record.level.index.enable"
TWICE = [
    Twice(Case(COW, "9", True)),
    Twice(Case(COW, "9", True), "all"),
    Twice(Case(COW, "9", True), "one"),
    Twice(Case(COW, "6", True), "all"),
    Twice(Case(MOR, "9", True), "all"),
]
MAX_DEATHS, MAX_DEATHS_OF_LONG = 5, 120


def deaths(base: Path, path: Path, commit: str, twice: Twice, limit: int) -> Iterator[str]:
    """Copies of the table on which the restore died at one call, and the next restore at another."""
    shutil.copytree(base, path / "whole")
    recorder = RecordingStorage(path / "whole")
    run(recorder, "restore", commit, twice.case)
    first = [one for one in chosen(recorder.calls, f"twice {twice}", 4 * limit) if one[0].changes]
    for call, kind, _ in random.Random(str(twice)).sample(first, min(limit, len(first))):
        shutil.copytree(base, path / "try")
        dies(path / "try", call, kind, commit, twice)
        (path / "try").rename(path / "kept")  # plans of rollbacks name files by absolute paths
        shutil.copytree(path / "kept", path / "try")
        recorder = RecordingStorage(path / "try")
        run(recorder, "restore", commit, twice.case)
        shutil.rmtree(path / "try")
        (path / "kept").rename(path / "try")
        later = [one for one in chosen(recorder.calls, f"{twice} {call}", 1) if one[0].changes]
        for last, how, _ in later:
            dies(path / "try", last, how, commit, twice)
        yield f"{call} {kind}, then {' '.join(f'{last} {how}' for last, how, _ in later)}"
        shutil.rmtree(path / "try")


def dies(path: Path, call: StorageCall, kind: str, commit: str, twice: Twice) -> None:
    with contextlib.suppress(hf.HudiError, InjectedFaultError):
        run(FaultyStorage(path, at=call.number, kind=kind, die=True), "restore", commit, twice.case)


@pytest.mark.long("COPY_ON_WRITE-v9-metadata-rebuilds-one", "COPY_ON_WRITE-v6-metadata-rebuilds-all")
@pytest.mark.slow
@pytest.mark.parametrize("twice", TWICE, ids=str)
def test_a_restore_that_died_twice_is_finished(twice: Twice, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """By the next restore, by pending services, or it is complete and the next write goes on."""
    commit, rows = twice.make(tmp_path / "base")
    limit = MAX_DEATHS_OF_LONG if is_long(request.config) else MAX_DEATHS
    for number, where in enumerate(deaths(tmp_path / "base", tmp_path, commit, twice, limit)):
        path = tmp_path / "try"
        is_pending = state_of(path).timeline.pending_restore is not None
        if is_pending and number % 2:
            services(path).run_pending(twice.settings)
        elif is_pending or number % 3:
            services(path).restore(commit, options=twice.settings)
        if is_pending or number % 3:
            assert table_rows(path) == rows, where
            assert_tidy(path)
            if twice.case.version != "6":  # which has no definitions of indexes: the next write builds them
                assert "record_index" in assert_metadata_true(path), where
        hf.write(NEXT, path, twice.settings)
        assert table_rows(path) == {**rows, **rows_of(NEXT)}, where
        assert_tidy(path)
        assert "record_index" in assert_metadata_true(path), where


@pytest.mark.slow
@pytest.mark.parametrize("rebuilds", ["all", "one"])
def test_a_restore_that_died_when_it_built_indexes_again_is_gone_on_with(rebuilds: str, tmp_path: Path) -> None:
    """The restore is complete by then: the next one has nothing to undo, and builds them."""
    twice, path = Twice(Case(COW, "9", True), rebuilds), tmp_path / "try"
    commit, rows = twice.make(tmp_path / "base")
    shutil.copytree(tmp_path / "base", path)
    recorder = RecordingStorage(path)
    run(recorder, "restore", commit, twice.case)
    built = [one for one in recorder.calls if one.name == "write_bytes" and one.path.startswith("record_index/")]
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "base", path)
    dies(path, built[-1], "before", commit, twice)
    assert state_of(path).timeline.pending_restore is None
    assert "record_index" not in state_of(path).config.metadata_partitions
    run(Storage(path), "restore", commit, twice.case)
    assert table_rows(path) == rows
    assert "record_index" in assert_metadata_true(path)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["savepoint", "delete_savepoint"])
def test_a_savepoint_is_there_or_not(verb: str, tmp_path: Path) -> None:
    case = Case(MOR, "9")
    commits = make_table(tmp_path / "base", case)
    target = commits[0] if verb == "delete_savepoint" else commits[1]
    rows = table_rows(tmp_path / "base")
    for where, _ in attempts(tmp_path / "base", tmp_path, verb, target, case):
        path = tmp_path / "try"
        assert table_rows(path) == rows, where
        hf.write(NEXT, path, case.settings)
        is_there = target in services(path).savepoints()["instant"].to_pylist()
        if verb == "savepoint" and not is_there:
            services(path).savepoint(target)
        if verb == "delete_savepoint" and any(
            one.requested == target for one in state_of(path).timeline.of_action("savepoint")
        ):
            services(path).delete_savepoint(target)
        kept = {one.requested for one in state_of(path).timeline.of_action("savepoint")}
        assert kept == ({commits[0], target} if verb == "savepoint" else set()), where
