"""Archiving that fails at any call to storage: no instant is lost or looks pending, and the next run goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.view.table_state import load_state
from tests.faults import calls as ways
from tests.faults.calls import interesting
from tests.support import small_tables
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow

KEEP = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.timeline.manifest.retained.versions": "1",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.archive.merge.enable": "true",
    "hoodie.archive.merge.files.batch.size": "2",
}
NEXT = plain_rows([3, 40], ts=99, text="n")
MAX_CALLS, MAX_CALLS_OF_LONG = {False: 14, True: 8}, {False: 28, True: 14}


def services(storage: Storage) -> TableServices:
    return TableServices(storage)


def write_times(path: Path, first: int, last: int, settings: dict[str, str]) -> None:
    for ts in range(first, last + 1):
        hf.write(plain_rows(range(4), ts=ts, text=f"t{ts}-"), path, settings)


def make_table(path: Path, settings: dict[str, str]) -> None:
    """One file of the archive is there already: the next one makes a second, and both are merged."""
    write_times(path, 1, 5, settings)
    services(Storage(path)).clean(settings)
    assert services(Storage(path)).archive(settings).instants
    write_times(path, 6, 9, settings)


def all_instants(path: Path) -> tuple[set[str], list[str]]:
    """Requested times on either timeline, and those of the archive."""
    state = load_state(Storage(path))
    archived = [one.requested for one in ArchivedTimeline(state.storage, state.config).instants()]
    bodies = [row.requested for row in ArchivedTimeline(state.storage, state.config).read()]
    assert bodies == archived
    return {one.requested for one in state.timeline.completed()} | set(archived), archived


def check_after(path: Path, settings: dict[str, str], instants: set[str], rows: dict, where: str) -> None:
    """Same rows, same history, nothing pending; a write works; the next run leaves each instant on one timeline."""
    assert table_rows(path) == rows, where
    assert all_instants(path)[0] == instants, where
    assert load_state(Storage(path)).timeline.pending() == (), where
    written = {hf.write(NEXT, path, settings).instant for _ in range(2)}
    services(Storage(path)).archive(settings)
    rows = {**rows, **rows_of(NEXT)}
    assert table_rows(path) == rows, where
    everything, archived = all_instants(path)
    assert everything >= instants | written, where
    assert len(archived) == len(set(archived)), where
    state = open_state(Storage(path))
    assert not {one.requested for one in state.timeline.writes()} & set(archived), where
    table = metadata_of(state)
    if table is not None:
        assert table.timeline.pending() == (), where


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The metadata table of:hudi_fast.HudiWarning")
@pytest.mark.parametrize(("version", "metadata"), [("9", False), ("6", False), ("9", True)])
def test_any_failing_call_loses_no_instant(
    version: str, metadata: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(small_tables.OPTIONS, "hoodie.metadata.enable", str(metadata).lower())
    settings = {**options(table_version=version), **KEEP}
    make_table(tmp_path / "base", settings)
    rows, instants = table_rows(tmp_path / "base"), all_instants(tmp_path / "base")[0]
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    whole = services(recorder).archive(settings)
    assert whole.instants
    assert whole.files_written == 2
    assert (whole.metadata_instants > 0) is metadata
    chooser = random.Random(f"{version} {metadata}")
    calls = interesting(recorder.calls)
    limit = (MAX_CALLS_OF_LONG if ways.EVERY_WAY else MAX_CALLS)[metadata]
    calls = sorted(chooser.sample(calls, min(len(calls), limit)), key=lambda call: call.number)
    outcomes = set()
    for call in calls:
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.random() < (0.7 if call.changes else 0.3)
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error: Exception | None = None
        try:
            services(FaultyStorage(path, at=call.number, kind=kind, die=die)).archive(settings)
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
        outcomes.add(error is None)
        check_after(path, settings, instants, rows, where)
        shutil.rmtree(path)
    assert False in outcomes
