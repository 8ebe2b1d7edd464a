"""ALTERs that fail at any call to storage: the table has its columns of before or of after, and goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.alter import AlterResult, alter_table
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.sessions import session_of
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

CHANGES = (hf.AddColumn("extra", pa.int32()), hf.RenameColumn("extra", "more"))
PLAIN = {"hoodie.metadata.enable": False}


def run(storage: Storage) -> AlterResult:
    return alter_table(session_of(storage, PLAIN), CHANGES)


def old_columns(rows: dict[str, Any]) -> dict[str, Any]:
    """Without the column that the ALTER adds, the last one."""
    return {key: values[:3] for key, values in rows.items()}


def check_after(path: Path, version: str, rows: dict[str, Any], where: str) -> None:
    table = hf.HudiTable.open(path)
    done = "more" in table.schema.names
    assert (table.schema_history().num_rows > 0) == done, where
    assert old_columns(table_rows(path)) == rows, where
    more = plain_rows([3, 40], ts=9, text="n")
    written = more.append_column("more", pa.array([1, 2], pa.int32())) if done else more
    hf.write(written, path, {**options(table_version=version), **PLAIN})
    if not done:
        run(Storage(path))
    assert old_columns(table_rows(path)) == {**rows, **rows_of(more)}, where
    assert table.schema.names[-1] == "more", where
    assert not load_state(Storage(path)).timeline.pending(), where


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_any_failing_call_leaves_a_table_that_goes_on(version: str, tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "base", {**options(table_version=version), **PLAIN})
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    run(recorder)
    chooser = random.Random(version)
    outcomes = set()
    for call in interesting(recorder.calls):
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.choice((False, True))
        path = tmp_path / "t"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            run(FaultyStorage(path, at=call.number, kind=kind, die=die))
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
        outcomes.add(error is None)
        check_after(path, version, rows, where)
        shutil.rmtree(path)
    assert outcomes == {True, False}
