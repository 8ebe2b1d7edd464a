"""Indexings that fail at any call to storage: the table is read and written as before, and the next one succeeds."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.faults.calls import few, interesting
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
    for call in few(interesting(recorder.calls), 20):
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


def wait_for(path: Path, version: str) -> str:
    """A plan for another call; returns its instant."""
    hf.write(plain_rows(range(8)), path, settings(version))
    planned = TableServices(Storage(path)).schedule_index("record_index", options=GROUPS)
    assert planned is not None
    return planned.instant


def pending(path: Path) -> list[tuple[str, State]]:
    return [(one.requested, one.state) for one in load_state(Storage(path)).timeline.pending()]


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_the_next_write_withdraws_an_indexing_that_died_before_it_began(
    version: str, mode: str, tmp_path: Path
) -> None:
    several = {**settings(version), "hoodie.write.concurrency.mode": mode, "hoodie.auto.adjust.lock.configs": True}
    hf.write(plain_rows(range(8)), tmp_path, settings(version))
    begins = FaultyStorage(tmp_path, at=0, die=True, among=lambda call: call.path.endswith("indexing.inflight"))
    with pytest.raises(Exception):  # noqa: B017, PT011
        run(begins)
    ((instant, state),) = pending(tmp_path)
    assert state is State.REQUESTED
    if mode == "OPTIMISTIC_CONCURRENCY_CONTROL":
        hf.write(NEXT, tmp_path, several)
        assert pending(tmp_path) == [(instant, state)]  # it may be alive, by its heartbeat
        os.utime(tmp_path / heartbeat_path(instant), (0, 0))
    hf.write(NEXT, tmp_path, several)
    assert pending(tmp_path) == []
    assert states(tmp_path) == {"files": "ready"}
    assert run(Storage(tmp_path)).records == 9


def test_a_plan_waits_for_the_call_that_executes_it_whoever_dies(tmp_path: Path) -> None:
    planned = wait_for(tmp_path, "9")
    hf.write(NEXT, tmp_path, settings("9"))
    begins = FaultyStorage(tmp_path, at=0, die=True, among=lambda call: call.path.endswith("indexing.inflight"))
    with pytest.raises(Exception):  # noqa: B017, PT011
        TableServices(begins).run_pending(GROUPS)
    hf.write(NEXT, tmp_path, settings("9"))
    assert pending(tmp_path) == [(planned, State.REQUESTED)]
    assert run(Storage(tmp_path)).records == 9
    assert pending(tmp_path) == []
