"""Indexings that fail at any call to storage: the table is read and written as before, and the next one succeeds."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.table_services import TableServices
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instant import State
from hudi_fast.view.table_state import load_state
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

NEXT = plain_rows([3, 40], ts=9, text="n")
GROUPS = {
    "hoodie.metadata.index.column.stats.enable": False,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
    "hudi_fast.threads": 1,
}


def settings(version: str) -> dict[str, Any]:
    return {**options(table_version=version), **GROUPS, "hoodie.metadata.enable": True}


def run(storage: Storage) -> Any:
    services = TableServices(storage)
    return services.index("record_index", options=GROUPS)


def states(path: Path) -> dict[str, str]:
    return {row["partition"]: row["state"] for row in hf.HudiTable.open(path).services.indexes().to_pylist()}


def check_after(path: Path, version: str, rows: dict[str, Any], where: str) -> None:
    """Same rows; a write works, and what the metadata table says is true; the next indexing is whole."""
    assert table_rows(path) == rows, where
    hf.write(NEXT, path, settings(version))
    rows = {**rows, **rows_of(NEXT)}
    assert table_rows(path) == rows, where
    services = hf.HudiTable.open(path).services
    assert services.validate().differences.to_pylist() == [], where
    run(Storage(path))
    assert states(path) == {"files": "ready", "record_index": "ready"}, where
    result = services.validate()
    assert result.differences.to_pylist() == [], where
    assert result.summary.column("found").to_pylist()[-1] == len(rows), where
    instants = load_state(Storage(path)).timeline
    assert not instants.pending(), where
    assert len(instants.of_action("indexing")) == 1, where


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_any_failing_call_leaves_the_table_usable(version: str, tmp_path: Path) -> None:
    hf.write(plain_rows(range(8)), tmp_path / "base", settings(version))
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    assert run(recorder).records == 8
    chooser = random.Random(version)
    outcomes = set()
    for call in interesting(recorder.calls):
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.choice((False, True))
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            run(FaultyStorage(path, at=call.number, kind=kind, die=die))
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
        if not die and not isinstance(error, hf.CommitStateUnknownError):
            assert all(one.state is not State.INFLIGHT or error for one in load_state(Storage(path)).timeline.pending())
        outcomes.add(error is None)
        check_after(path, version, rows, where)
        shutil.rmtree(path)
    assert outcomes == {True, False}
