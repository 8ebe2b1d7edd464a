"""Compactions that fail at any call to storage: readers see the same rows all the while, and the next one succeeds."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.faults import calls as ways
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.mor_tables import log_files, mor_options
from tests.support.small_tables import assert_tidy, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

NEXT = plain_rows([3, 40], ts=9, text="n")
LOGS = {"hoodie.log.compaction.blocks.threshold": "1"}
CASES = [
    ("compact", "9"),
    ("compact_logs", "6"),
    *[
        pytest.param(service, version, marks=pytest.mark.long)
        for service, version in (("compact", "6"), ("compact", "8"), ("compact_logs", "8"), ("compact_logs", "9"))
    ],
]


def make_table(path: Path, version: str) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(8)), path, settings)
    hf.write(plain_rows(range(2, 6), ts=2, text="b"), path, settings)
    hf.write(plain_rows([0], ts=3), path, {**settings, "hoodie.datasource.write.operation": "delete"})


def run(storage: Storage, service: str, version: str) -> str:
    settings = mor_options(LOGS, table_version=version)
    del settings["hoodie.compact.inline"]
    services = TableServices(storage)
    return str(getattr(services, service)(settings).instant)


def check_after(path: Path, service: str, version: str, error: Exception | None, rows: dict, where: str) -> None:
    """Same rows; a write works; what failed is done the next time."""
    assert table_rows(path) == rows, where
    assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
    timeline = load_state(Storage(path)).timeline
    assert not [one for one in timeline.pending() if one.action not in ("compaction", "logcompaction", "rollback")]
    hf.write(NEXT, path, mor_options(table_version=version))
    rows = {**rows, **rows_of(NEXT)}
    assert table_rows(path) == rows, where
    run(Storage(path), service, version)
    assert table_rows(path) == rows, where
    if service == "compact":
        table = hf.HudiTable.open(path)
        assert rows_of(table.to_arrow(query_type="read_optimized")) == rows, where
    assert_tidy(path)


@pytest.mark.slow
@pytest.mark.parametrize(("service", "version"), CASES)
def test_any_failing_call_leaves_the_rows_alone(service: str, version: str, tmp_path: Path) -> None:
    make_table(tmp_path / "base", version)
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    assert run(recorder, service, version)
    chooser = random.Random(f"{service} {version}")
    outcomes = set()
    for call in interesting(recorder.calls):
        # One kind of fault for each call, drawn by lot: all of them take minutes.
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        for die in (False, True) if call.changes and ways.EVERY_WAY else (chooser.choice((False, True)),):
            path = tmp_path / "try"
            shutil.copytree(tmp_path / "base", path)
            error: Exception | None = None
            try:
                run(FaultyStorage(path, at=call.number, kind=kind, die=die), service, version)
            except Exception as caught:
                error = caught
            where = f"{call} {kind} die={die}: {error!r}"
            if not die and not isinstance(error, hf.CommitStateUnknownError):
                pending = load_state(Storage(path)).timeline.pending()
                assert all(one.state is State.REQUESTED for one in pending), where
            outcomes.add(error is None)
            check_after(path, service, version, error, rows, where)
            shutil.rmtree(path)
    assert outcomes == {True, False}


@pytest.mark.parametrize("version", ["9", "6"])
def test_a_compaction_that_died_twice_is_done_the_third_time(version: str, tmp_path: Path) -> None:
    make_table(tmp_path / "t", version)
    rows = table_rows(tmp_path / "t")
    recorder = RecordingStorage(tmp_path / "t")
    planned = TableServices(recorder).schedule_compact()
    assert planned is not None
    for at in (60, 90):
        with pytest.raises(Exception, match="injected fault"):
            run(FaultyStorage(tmp_path / "t", at=at, die=True), "compact", version)
        assert table_rows(tmp_path / "t") == rows
    assert run(Storage(tmp_path / "t"), "compact", version) == planned.instant
    assert table_rows(tmp_path / "t") == rows
    assert len(log_files(tmp_path / "t")) == 3
    assert_tidy(tmp_path / "t")
