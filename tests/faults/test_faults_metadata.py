"""Writes that keep a metadata table and fail at any call to storage.

Readers see the old rows or the new through it, and the next write leaves it true again.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from tests.faults.calls import attempt, few, interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, RecordingStorage, StorageCall
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows, write_to

pytestmark = pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")

CHANGE = plain_rows([1, 5, 11], ts=3, text="b")
NEXT = plain_rows([1, 40], ts=4, text="c")
INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
}


@dataclass(frozen=True)
class Case:
    """One kind of table."""

    kind: str
    version: str

    def settings(self) -> dict[str, str]:
        made = mor_options(table_version=self.version) if self.kind == "mor" else options(table_version=self.version)
        return {**made, **INDEXES, "hoodie.metadata.compact.max.delta.commits": "5"}


CASES = [Case("cow", "9"), pytest.param(Case("cow", "6"), marks=pytest.mark.long), Case("mor", "9"), Case("mor", "6")]


def chosen(calls: list[StorageCall], case: Case) -> list[tuple[StorageCall, str, bool]]:
    """Calls that change files, one kind of fault each, drawn by lot, and a few that only look."""
    chance = random.Random(f"{case.kind}{case.version}")
    found = []
    for call in interesting(calls):
        if call.changes:
            found.append((call, chance.choice(FAULT_KINDS), chance.random() < 0.6))
        elif chance.random() < 0.15:
            found.append((call, "before", chance.random() < 0.5))
    return few(found, 24)


def make_table(path: Path, case: Case) -> None:
    hf.write(plain_rows(range(10)), path, case.settings())
    hf.write(plain_rows([2, 3], ts=2), path, case.settings())


@pytest.mark.smoke("mor-v9")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-v{case.version}")
def test_any_failing_call_leaves_rows_and_indexes_of_one_state(case: Case, tmp_path: Path) -> None:
    make_table(tmp_path / "base", case)
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, case.settings())
    new = table_rows(tmp_path / "whole")
    assert new != old
    assert set(assert_metadata_true(tmp_path / "whole")) >= {"files", "column_stats", "record_index"}
    outcomes = set()
    for call, kind, die in chosen(recorder.calls, case):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), CHANGE, case.settings())
        where = f"{call} {kind} die={die}: {error!r}"
        seen = table_rows(path)
        if error is None:
            assert seen == new, where
        else:
            assert seen in (old, new) if isinstance(error, hf.CommitStateUnknownError) else seen == old, where
        assert_index_knows(path, seen, where)
        outcomes.add(error is None)
        hf.write(NEXT, path, case.settings())
        assert table_rows(path) == {**seen, **rows_of(NEXT)}, where
        assert assert_metadata_true(path), where
        assert_tidy(path)
        shutil.rmtree(path)
    assert outcomes == {True, False}


def assert_index_knows(path: Path, rows: dict[str, tuple[object, ...]], where: str) -> None:
    """The record index, where there is one to be trusted, has the keys that readers see."""
    table = metadata_of(open_state(Storage(path)))
    if table is not None and table.usable("record_index"):
        assert set(scan(table, "record_index")["key"].to_pylist()) == set(rows), where


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_dying_while_a_metadata_table_is_built_or_dropped_loses_nothing(version: str, tmp_path: Path) -> None:
    plain = {**options(table_version=version), "hoodie.metadata.enable": "false"}
    kept = {**options(table_version=version), **INDEXES}
    hf.write(plain_rows(range(6)), tmp_path / "without", plain)
    hf.write(plain_rows(range(6)), tmp_path / "with", kept)
    chance = random.Random(version)
    for base, settings, after in (("without", kept, True), ("with", plain, False)):
        shutil.copytree(tmp_path / base, tmp_path / "whole")
        old = table_rows(tmp_path / base)
        recorder = RecordingStorage(tmp_path / "whole")
        write_to(recorder, NEXT, settings)
        begun = next(c.number for c in recorder.calls if c.path.endswith("commit.requested") and "00000" not in c.path)
        for call in few([call for call in recorder.calls[:begun] if call.changes], 20):
            path = tmp_path / "try"
            shutil.copytree(tmp_path / base, path)
            storage = FaultyStorage(path, at=call.number, kind=chance.choice(FAULT_KINDS), die=True)
            assert attempt(storage, NEXT, settings) is not None
            assert table_rows(path) == old, call
            hf.write(NEXT, path, settings)
            assert table_rows(path) == {**old, **rows_of(NEXT)}, call
            assert bool(assert_metadata_true(path)) == after, call
            shutil.rmtree(path)
        shutil.rmtree(tmp_path / "whole")
