"""Delta commits that fail at any call to storage: readers see the old rows or the new, and the next write repairs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.faults.calls import attempt, faults, interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, RecordingStorage
from tests.support.mor_tables import log_files, mor_options
from tests.support.small_tables import assert_tidy, plain_rows, rows_of, table_rows, write_to

pytestmark = pytest.mark.slow

CHANGE = plain_rows(range(1, 14, 4), ts=3, text="b").append_column(
    "_hoodie_is_deleted", pa.array([False, True, False, False])
)
NEXT = plain_rows([1, 40], ts=4, text="c").append_column("_hoodie_is_deleted", pa.array([False, False]))
CASES = [
    ("upsert", "6"),
    ("delete", "9"),
    *[pytest.param(*case, marks=pytest.mark.long) for case in (("upsert", "9"), ("delete", "6"))],
    *[pytest.param(operation, "8", marks=pytest.mark.long) for operation in ("upsert", "delete")],  # as version 9
]


def make_table(path: Path, version: str) -> None:
    """Two partitions; the slice of p1 has a log file already."""
    settings = mor_options(table_version=version)
    first = plain_rows(range(10)).append_column("_hoodie_is_deleted", pa.nulls(10, pa.bool_()))
    hf.write(first, path, settings)
    hf.write(first.slice(1, 1), path, settings)


def check_after(path: Path, error: BaseException | None, old: dict, new: dict, settings: dict, where: str) -> None:
    seen = table_rows(path)
    if error is None:
        assert seen == new, where
    elif isinstance(error, hf.CommitStateUnknownError):
        assert seen in (old, new), where
    else:
        assert seen == old, where
    hf.write(NEXT, path, {**settings, "hoodie.datasource.write.operation": "upsert"})
    plain = NEXT
    assert table_rows(path) == {**seen, **rows_of(plain)}, where
    assert_tidy(path)


@pytest.mark.long("delete-6")
@pytest.mark.slow
@pytest.mark.smoke("upsert-6")
@pytest.mark.parametrize(("operation", "version"), CASES)
def test_any_failing_call_leaves_the_old_table_or_the_new_one(operation: str, version: str, tmp_path: Path) -> None:
    make_table(tmp_path / "base", version)
    settings = mor_options(table_version=version, operation=operation)
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, settings)
    new = table_rows(tmp_path / "whole")
    assert new != old
    assert any(".log." in call.path and call.name == "stream_write" for call in recorder.calls)
    for call, kind, die in faults(recorder.calls):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), CHANGE, settings)
        where = f"{call} {kind} die={die}: {error!r}"
        if not die and not isinstance(error, hf.CommitStateUnknownError):
            assert load_state(Storage(path)).timeline.pending() == (), where  # the failed write rolls itself back
        check_after(path, error, old, new, settings, where)
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_repair_that_dies_at_any_call_is_repaired(version: str, tmp_path: Path) -> None:
    """A write dies once its log files are there; the next one dies at each of its calls while it takes them back."""
    make_table(tmp_path / "base", version)
    settings = mor_options(table_version=version)
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, settings)
    last = max(call.number for call in recorder.calls if call.path.endswith(".deltacommit") and call.changes)
    assert attempt(FaultyStorage(tmp_path / "base", at=last, kind="before", die=True), CHANGE, settings) is not None
    assert table_rows(tmp_path / "base") == old
    assert len(log_files(tmp_path / "base")) > 1
    shutil.copytree(tmp_path / "base", tmp_path / "repaired")
    repair = RecordingStorage(tmp_path / "repaired")
    write_to(repair, NEXT, settings)
    begun = next(call.number for call in repair.calls if call.path.endswith("deltacommit.requested") and call.changes)
    chance = random.Random(3)
    for call in interesting([call for call in repair.calls if call.number < begun]):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        kind = chance.choice(FAULT_KINDS) if call.changes else "before"
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=True), NEXT, settings)
        assert error is not None
        assert table_rows(path) == old
        check_after(path, error, old, old, settings, f"{call} {kind}: {error!r}")
        shutil.rmtree(path)
