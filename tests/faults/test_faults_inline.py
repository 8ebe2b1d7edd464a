"""Services after a write that fail at any call to storage: the write stays, and the next one serves the table."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.services.inline import write_with_services
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.flow import WriteResult
from tests.faults.calls import interesting
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

SERVED = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
ALONE = {"hoodie.table.services.enabled": "false"}
TRIES = 8


def settings_of(table_type: str, metadata: str) -> dict[str, Any]:
    more = {"hoodie.datasource.write.table.type": table_type, "hoodie.metadata.enable": metadata}
    kept = {key: value for key, value in SERVED.items() if table_type == "MERGE_ON_READ" or "compact.inline" not in key}
    return {**options(), **more, **kept}


def serve_through(storage: Storage, settings: dict[str, Any]) -> None:
    newest = load_state(Storage(storage.uri)).timeline.last_completed_write
    assert newest is not None
    done = WriteResult(newest.requested, "upsert", 0, 0, 0, 0, 0, 0.0, "", "")
    write_with_services(session_of(storage, settings), lambda: done)


def failure_of(storage: Storage, settings: dict[str, Any]) -> Exception | None:
    try:
        serve_through(storage, settings)
    except (hf.HudiError, OSError) as error:
        return error
    return None


def make(path: Path, settings: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """A table that is due for all services."""
    for ts in range(1, 6):
        hf.write(plain_rows(range(6), ts=ts, text=f"t{ts}-"), path, {**settings, **ALONE})
        if ts in (2, 4) and "hoodie.compact.inline" in settings:
            hf.HudiTable.open(path).services.compact(settings)
    return table_rows(path)


@pytest.mark.slow
@pytest.mark.parametrize(("table_type", "metadata"), [("COPY_ON_WRITE", "true"), ("MERGE_ON_READ", "false")])
def test_any_failing_call_leaves_the_write_and_the_next_one_serves(
    table_type: str, metadata: str, tmp_path: Path
) -> None:
    settings = settings_of(table_type, metadata)
    rows = make(tmp_path / "base", settings)
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    serve_through(recorder, settings)
    before, after = (load_state(Storage(tmp_path / name)).timeline.instants for name in ("base", "whole"))
    assert {one.action for one in after} - {one.action for one in before} == {"clean"}
    assert after[0].requested > before[0].requested  # archived
    assert (after[-1].action == "commit") == (table_type == "MERGE_ON_READ")  # compacted
    chooser = random.Random(f"{table_type} {metadata}")
    calls = interesting(recorder.calls)
    next_rows = plain_rows([3, 40], ts=9, text="n")
    outcomes = set()
    for call in chooser.sample(calls, min(TRIES, len(calls))):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        kind, die = chooser.choice(FAULT_KINDS) if call.changes else "before", chooser.random() < 0.5
        error = failure_of(FaultyStorage(path, at=call.number, kind=kind, die=die), settings)
        assert error is None or isinstance(error, hf.PostCommitError), repr(error)
        outcomes.add(error is None)
        where = f"{call} {kind} die={die}: {error!r}"
        assert table_rows(path) == rows, where
        hf.write(next_rows, path, settings)
        assert table_rows(path) == {**rows, **rows_of(next_rows)}, where
        hf.HudiTable.open(path).services.run_pending(settings)
        assert_tidy(path)
        if metadata == "true":
            assert_metadata_true(path)
        shutil.rmtree(path)
    assert False in outcomes


def test_a_service_that_fails_does_not_keep_the_others_from_running_if_failures_do_not_count(tmp_path: Path) -> None:
    settings = settings_of("COPY_ON_WRITE", "false")
    make(tmp_path / "table", settings)
    shutil.copytree(tmp_path / "table", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    serve_through(recorder, settings)
    broken = next(call for call in recorder.calls if ".clean.requested" in call.path)
    settings["hoodie.write.can.ignore.post.commit.failures"] = "true"
    with pytest.warns(hf.HudiWarning, match="is committed; a service after it failed"):
        serve_through(FaultyStorage(tmp_path / "table", at=broken.number), settings)
    actions = [one.action for one in load_state(Storage(tmp_path / "table")).timeline.instants]
    assert "clean" not in actions
    assert len(actions) < 5  # archived all the same
