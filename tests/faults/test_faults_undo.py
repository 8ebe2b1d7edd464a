"""Rollbacks, savepoints and restores that fail at any call to storage.

Readers see the rows of some commit all the while, and whoever comes next finishes what was begun.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from tests.faults.calls import interesting
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

pytestmark = pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")

NEXT = plain_rows([2, 40], ts=9, text="n")
MOST_CALLS = 30


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


CASES = [Case(COW, "9"), Case(MOR, "9"), Case(MOR, "6"), Case(COW, "9", True), Case(MOR, "6", True)]


def make_table(path: Path, case: Case) -> list[str]:
    """Three commits, the first of them savepointed."""
    changes = [plain_rows(range(4)), plain_rows([1, 2], ts=2, text="b"), plain_rows([2, 6], ts=3, text="c")]
    commits = [hf.write(changes[0], path, case.settings).instant]
    services(path).savepoint()
    return [*commits, *(hf.write(rows, path, case.settings).instant for rows in changes[1:])]


def chosen(calls: list[StorageCall], name: str, most: int = MOST_CALLS) -> Iterator[tuple[StorageCall, str, bool]]:
    """Calls that change files, one kind of fault each, drawn by lot, and a few that only look."""
    chance = random.Random(name)
    found = []
    for call in interesting(calls):
        if call.changes:
            found.append((call, chance.choice(FAULT_KINDS), chance.random() < 0.6))
        elif chance.random() < 0.1:
            found.append((call, "before", chance.random() < 0.5))
    return iter(found if len(found) <= most else sorted(chance.sample(found, most), key=lambda one: one[0].number))


def run(storage: Storage, verb: str, instant: str, case: Case) -> None:
    options = {"hoodie.metadata.enable": str(case.indexes).lower()}
    getattr(services_on(storage), verb)(instant, options=options)


def attempts(base: Path, path: Path, verb: str, instant: str, case: Case) -> Iterator[tuple[str, Exception | None]]:
    """Each fault in turn, on a copy of the table."""
    shutil.copytree(base, path / "whole")
    recorder = RecordingStorage(path / "whole")
    run(recorder, verb, instant, case)
    for call, kind, die in chosen(recorder.calls, f"{verb} {case}"):
        shutil.copytree(base, path / "try")
        error: Exception | None = None
        try:
            run(FaultyStorage(path / "try", at=call.number, kind=kind, die=die), verb, instant, case)
        except (hf.HudiError, InjectedFaultError) as caught:
            error = caught
        yield f"{call} {kind} die={die}: {error!r}", error
        shutil.rmtree(path / "try")


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
