"""Cleans that fail at any call to storage: the same rows all the while, and the next clean leaves nothing behind."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.retention import CleanResult
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.instants import read_instant_body
from hudi_fast.timeline.plans import decode_clean_metadata
from hudi_fast.view.table_state import load_state
from tests.faults.calls import few, interesting
from tests.support.instrumented_storage import (
    FAULT_KINDS,
    FaultyStorage,
    InjectedFaultError,
    RecordingStorage,
    StorageCall,
)
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import options, plain_rows, table_rows

CASES = [("9", False), ("9", True), ("6", True)]


def settings_of(version: str, metadata: bool) -> dict[str, Any]:
    return {
        **options(table_version=version),
        "hoodie.metadata.enable": str(metadata).lower(),
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.clean.commits.retained": "1",
    }


def make_table(path: Path, settings: dict[str, Any]) -> None:
    """Two slices to give up in p0; in p1 one, of a group that was replaced: the partition goes."""
    hf.write(plain_rows(range(2)), path, settings)
    gone = {**settings, "hoodie.datasource.write.operation": "delete_partition"}
    hf.write(plain_rows([]), path, {**gone, "hoodie.datasource.write.partitions.to.delete": "p1"})
    for ts in (2, 3):
        hf.write(plain_rows([0], ts=ts), path, settings)


def run(storage: Storage, settings: dict[str, Any]) -> CleanResult:
    return TableServices(storage).clean(settings)


def chosen(calls: list[StorageCall], settings: dict[str, Any]) -> list[tuple[StorageCall, str, bool]]:
    """Every call that changes files, in one of the ways of failing; some of those that look."""
    chance = random.Random(str(settings))
    found = []
    for call in interesting(calls):
        if call.changes:
            whole = settings["hoodie.metadata.enable"] == "false"  # the others make many more calls
            dies = (False, True) if whole else (chance.random() < 0.5,)
            found += [(call, chance.choice(FAULT_KINDS), die) for die in dies]
        elif chance.random() < 0.2:
            found.append((call, "before", chance.random() < 0.5))
    return few(found, 16)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")  # of a metadata table that is not to be trusted
@pytest.mark.parametrize(("version", "metadata"), CASES)
def test_any_failing_call_loses_nothing_and_leaves_nothing(version: str, metadata: bool, tmp_path: Path) -> None:
    settings = settings_of(version, metadata)
    make_table(tmp_path / "base", settings)
    rows = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    done = run(recorder, settings)
    assert (done.files_deleted, done.partitions_deleted) == (2, ("p1",))
    left = data_files(tmp_path / "whole")
    outcomes = set()
    for call, kind, die in chosen(recorder.calls, settings):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            run(FaultyStorage(path, at=call.number, kind=kind, die=die), settings)
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
        outcomes.add(error is None)
        assert table_rows(path) == rows, where
        run(Storage(path), settings)
        assert data_files(path) == left, where
        check_whole(path, rows, metadata, where)
        hf.write(plain_rows([0, 1], ts=9), path, settings)
        check_whole(path, table_rows(path), metadata, where)
        assert set(table_rows(path)) == {"k00000", "k00001"}, where
        shutil.rmtree(path)
    assert outcomes == {True, False}


def check_whole(path: Path, rows: dict[str, tuple[object, ...]], metadata: bool, where: str) -> None:
    """Nothing is pending, what cleans recorded as deleted is gone, and the metadata table tells the truth."""
    assert table_rows(path) == rows, where
    state = load_state(Storage(path))
    assert not state.timeline.pending(), where
    for clean in state.timeline.of_action("clean"):
        recorded = decode_clean_metadata(read_instant_body(state.storage, state.config, clean))
        for part in recorded.partitions:
            assert not [name for name in part.deleted if (path / part.partition_path / name).exists()], where
    assert bool(assert_metadata_true(path)) == metadata, where


def data_files(path: Path) -> set[str]:
    """Paths of base files."""
    return {str(file.relative_to(path)) for file in path.glob("p*/*.parquet") if ".hoodie" not in file.name}


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_clean_that_died_after_its_metadata_was_written_is_carried_out_again(version: str, tmp_path: Path) -> None:
    settings = settings_of(version, metadata=True)
    make_table(tmp_path / "t", settings)
    shutil.copytree(tmp_path / "t", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    planned = run(recorder, settings)
    completed = [call for call in recorder.calls if call.name == "create_exclusive"][-1]
    assert completed.path.endswith(".clean")
    for _ in range(2):
        storage = FaultyStorage(tmp_path / "t", at=completed.number, die=True)
        with pytest.raises((InjectedFaultError, hf.HudiError)):
            run(storage, settings)
        assert [one.action for one in load_state(Storage(tmp_path / "t")).timeline.pending()] == ["clean"]
    done = run(Storage(tmp_path / "t"), settings)
    assert (done.files_deleted, done.partitions_deleted) == (planned.files_deleted, planned.partitions_deleted)
    check_whole(tmp_path / "t", table_rows(tmp_path / "whole"), True, version)
