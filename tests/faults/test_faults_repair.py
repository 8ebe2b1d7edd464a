"""Repairs that fail at any call to storage: readers see the same rows all the while, and the next one finishes."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.services.repairing.findings import RepairResult
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.table_state import load_state
from tests.faults import calls as ways
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, RecordingStorage
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, plain_rows, table_rows

pytestmark = pytest.mark.slow

KINDS = {
    "orphan file",
    "failed write",
    "dangling instant",
    "markers",
    "temporary file",
    "properties backup",
    "heartbeat",
}


def make_disarray(path: Path, version: str) -> None:
    """A table with a finding of every kind that can be repaired, but for deletes of cleans: they go as orphans do."""
    for rows in (plain_rows(range(6)), plain_rows(range(2, 5), ts=2, text="b")):
        hf.write(rows, path, mor_options(table_version=version))
    hoodie = path / ".hoodie"
    timeline = hoodie / ("timeline" if version == "9" else "")
    first, second = (int(one.requested) for one in load_state(Storage(path)).timeline.instants)
    base = next(path.glob("p0/*.parquet"))
    shutil.copy(base, base.with_name(f"11111111-0_0-0-0_{first + 1}.parquet"))  # of no instant
    for ending in ("deltacommit.requested", "deltacommit.inflight"):
        (timeline / f"{second + 1}.{ending}").touch()
    shutil.copy(base, base.with_name(f"22222222-0_0-0-0_{second + 1}.parquet"))  # of a failed write
    (timeline / f"{second + 2}.clean.requested").write_bytes(b"Obj\x01cut")
    (hoodie / ".temp" / str(first) / "p0").mkdir(parents=True)
    (hoodie / ".temp" / str(first) / "p0" / "x.parquet.marker.CREATE").touch()
    (hoodie / ".heartbeat").mkdir(exist_ok=True)
    shutil.copy(hoodie / "hoodie.properties", hoodie / "hoodie.properties.backup")
    for left in (hoodie / ".heartbeat" / str(first), path / "p1" / f".x.parquet.{'0' * 32}.tmp"):
        left.touch()
        os.utime(left, (time.time() - 7200, time.time() - 7200))


def repair(storage: Storage) -> RepairResult:
    return TableServices(storage).repair(mor_options())


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_any_failing_call_leaves_the_rows_alone(version: str, tmp_path: Path) -> None:
    make_disarray(tmp_path / "base", version)
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    assert {one.kind for one in repair(recorder).repaired} == KINDS
    chooser, outcomes = random.Random(version), set()
    for call in interesting(recorder.calls):
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        for die in (False, True) if call.changes and ways.EVERY_WAY else (chooser.choice((False, True)),):
            path, error = tmp_path / "try", None
            shutil.copytree(tmp_path / "base", path)  # copies keep the times of files
            try:
                repair(FaultyStorage(path, at=call.number, kind=kind, die=die))
            except Exception as caught:
                error = caught
            where = f"{call} {kind} die={die}: {error!r}"
            assert error is None or isinstance(error, hf.HudiError), where
            outcomes.add(error is None)
            assert table_rows(path) == rows, where
            check_after(path, rows, where)
            shutil.rmtree(path)
    assert outcomes == {True, False}


def check_after(path: Path, rows: dict, where: str) -> None:
    """The next repair leaves nothing but files of the write that it rolled back; the one after that, nothing."""
    assert repair(Storage(path)).left == (), where
    left = TableServices(Storage(path)).plan_repair().findings
    assert {one.kind for one in left} <= {"orphan file"}, where
    repair(Storage(path))
    assert table_rows(path) == rows, where
    assert_tidy(path)
