"""Clusterings that fail at any call to storage: readers see the same rows all the while, and the next one succeeds."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.faults.calls import few, interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

NEXT = plain_rows([40, 41], ts=9, text="n")
CASES = [
    ("COPY_ON_WRITE", "9", False, 30),
    ("MERGE_ON_READ", "9", False, 14),
    ("COPY_ON_WRITE", "6", False, 30),
    ("COPY_ON_WRITE", "9", True, 14),
]
"""Table type, version, whether it has a metadata table, and how many of the calls fail."""


def settings_of(kind: str, version: str, metadata: bool) -> dict[str, Any]:
    chosen = mor_options(table_version=version) if kind == "MERGE_ON_READ" else options(table_version=version)
    return {**chosen, "hoodie.metadata.enable": str(metadata).lower()}


def make_table(path: Path, settings: dict[str, Any]) -> None:
    append = {**settings, "hoodie.datasource.write.operation": "bulk_insert"}
    hf.write(plain_rows(range(6)), path, append)
    hf.write(plain_rows(range(6, 12)), path, append)
    hf.write(plain_rows(range(3, 5), ts=2, text="b"), path, settings)


def run(storage: Storage, settings: dict[str, Any]) -> Any:
    return TableServices(storage).cluster(settings)


def check_after(path: Path, settings: dict[str, Any], error: Exception | None, rows: dict, where: str) -> None:
    """Same rows; a write works; what failed is done the next time."""
    assert table_rows(path) == rows, where
    assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
    actions = {"clustering", "replacecommit", "rollback"}
    assert {one.action for one in load_state(Storage(path)).timeline.pending()} <= actions, where
    hf.write(NEXT, path, {**settings, "hoodie.datasource.write.operation": "insert"})
    rows = {**rows, **rows_of(NEXT)}
    assert table_rows(path) == rows, where
    run(Storage(path), settings)
    run(Storage(path), settings)
    assert table_rows(path) == rows, where
    state = load_state(Storage(path))
    assert len(hf.HudiTable.open(path).files()) == 2, where
    assert any(one.action == "replacecommit" for one in state.timeline.completed()), where
    assert_tidy(path)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version", "metadata", "count"), CASES)
def test_any_failing_call_leaves_the_rows_alone(
    kind: str, version: str, metadata: bool, count: int, tmp_path: Path
) -> None:
    settings = settings_of(kind, version, metadata)
    make_table(tmp_path / "base", settings)
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    assert run(recorder, settings).file_groups == 4
    chooser = random.Random(f"{kind} {version} {metadata}")
    calls = interesting(recorder.calls)
    outcomes = set()
    drawn = sorted(chooser.sample(calls, min(count, len(calls))), key=lambda one: one.number)
    for call in few(drawn, 12):
        failing = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.choice((False, True))
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            run(FaultyStorage(path, at=call.number, kind=failing, die=die), settings)
        except Exception as caught:
            error = caught
        where = f"{call} {failing} die={die}: {error!r}"
        if not die and not isinstance(error, hf.CommitStateUnknownError):
            pending = load_state(Storage(path)).timeline.pending()
            assert all(one.state is State.REQUESTED for one in pending), where
        outcomes.add(error is None)
        check_after(path, settings, error, rows, where)
        shutil.rmtree(path)
    assert False in outcomes


@pytest.mark.parametrize("version", ["9", "6"])
def test_a_clustering_that_died_twice_is_done_the_third_time_by_the_same_plan(version: str, tmp_path: Path) -> None:
    settings = settings_of("COPY_ON_WRITE", version, False)
    make_table(tmp_path / "t", settings)
    rows = table_rows(tmp_path / "t")
    services = TableServices(Storage(tmp_path / "t"))
    planned = services.schedule_cluster({**settings, "hoodie.clustering.plan.strategy.sort.columns": "text"})
    assert planned is not None
    shutil.copytree(tmp_path / "t", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    run(recorder, settings)
    data = [call.number for call in recorder.calls if call.changes and "parquet" in str(call)]
    for at in (data[0] + 1, data[-1] + 1):
        with pytest.raises(Exception, match="injected fault"):
            run(FaultyStorage(tmp_path / "t", at=at, die=True), settings)
        assert table_rows(tmp_path / "t") == rows
    assert run(Storage(tmp_path / "t"), settings).instants == (planned.instant,)
    assert table_rows(tmp_path / "t") == rows
    assert_tidy(tmp_path / "t")
