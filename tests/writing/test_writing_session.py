"""A session opens the table once, and what it derives is what a new look finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.services.inline import write_with_services
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.flow import run_write
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend
from tests.support.instrumented_storage import RecordingStorage
from tests.support.interleaving import OCC
from tests.support.small_tables import options, plain_rows, table_rows

CLEANED = {"hoodie.clean.commits.retained": "1", "hoodie.clean.max.commits": "1"}


def write(session: TableSession, rows: Any) -> hf.WriteResult:
    engine = session.backend.engine(rows, session.settings.write)
    result = write_with_services(session, lambda: run_write(session, engine, "append"))
    assert result is not None
    return result


def session_on(storage: Storage, settings: dict[str, Any]) -> TableSession:
    return TableSession(Call(storage, Settings.for_write(settings), ThreadBackend(1)))


def test_a_small_upsert_with_its_clean_opens_the_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**options(), **CLEANED, "hoodie.metadata.compact.max.delta.commits": "100"}
    for ts in range(1, 5):
        hf.write(plain_rows(range(400), ts=ts, partitions=4), tmp_path, settings)
    opened: Counter[str] = Counter()
    for module, name in (("hudi_fast.writing.session", "open_state"), ("hudi_fast.metadata_table.table", "_open")):
        monkeypatch.setattr(f"{module}.{name}", counting(f"{module}.{name}", opened))
    storage = RecordingStorage(tmp_path)
    write(session_on(storage, settings), plain_rows(range(100), ts=9, partitions=4))
    listed = [call.path for call in storage.calls if call.name == "list_dir"]
    timelines = [path for path in listed if path.endswith(".hoodie/timeline")]
    assert dict(opened) == {"hudi_fast.writing.session.open_state": 1, "hudi_fast.metadata_table.table._open": 1}
    assert len(timelines) <= 2  # that of the table and that of its metadata table
    assert len(listed) <= 9
    history = hf.HudiTable.open(tmp_path).history().to_pylist()
    assert history[-1]["action"] == "clean"  # it was part of what was counted


def counting(name: str, counts: Counter[str]) -> Any:
    module, _, attribute = name.rpartition(".")
    original = getattr(__import__(module, fromlist=[attribute]), attribute)

    def counted(*args: Any, **named: Any) -> Any:
        counts[name] += 1
        return original(*args, **named)

    return counted


@pytest.mark.slow("9-true-MERGE_ON_READ", "6-true-COPY_ON_WRITE", "9-true-COPY_ON_WRITE", "6-true-MERGE_ON_READ")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("version", ["9", "6"])
def test_the_state_after_a_commit_is_the_one_that_is_opened_again(
    kind: str, metadata: str, version: str, tmp_path: Path
) -> None:
    settings = {
        **options(table_version=version),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.enable": metadata,
        "hoodie.clean.automatic": "false",
    }
    hf.write(plain_rows(range(40), partitions=4), tmp_path, settings)
    session = session_on(Storage(tmp_path), settings)
    with session.keeping_turn():
        engine = session.backend.engine(plain_rows(range(30, 60), ts=2, partitions=5), session.settings.write)
        run_write(session, engine, "append")
        assert_same_state(session, tmp_path)


def assert_same_state(session: TableSession, path: Path) -> None:
    derived, opened = session.state, open_state(Storage(path))
    assert derived.timeline == opened.timeline
    assert derived.view.lister.partitions() == opened.view.lister.partitions()
    for partition in opened.view.lister.partitions():
        assert latest_slices(derived.view, partition) == latest_slices(opened.view, partition)
    ours, fresh = metadata_of(derived), metadata_of(opened)
    assert (ours is None) == (fresh is None)
    if ours is not None and fresh is not None:
        assert ours.timeline == fresh.timeline
        for name in fresh.partitions:
            assert ours.groups(name) == fresh.groups(name)


def test_a_single_writer_keeps_the_lock_until_its_clean_is_done(tmp_path: Path) -> None:
    session = session_on(Storage(tmp_path), options())
    hf.write(plain_rows(range(4)), tmp_path, options())
    with session.keeping_turn():
        with session.turn():
            assert session.holds_lock
        assert session.holds_lock
    assert not session.holds_lock


def test_sections_of_several_writers_see_what_others_did_in_between(tmp_path: Path) -> None:
    settings = {**options(), **OCC}
    hf.write(plain_rows(range(4)), tmp_path, settings)
    session = session_on(Storage(tmp_path), settings)
    with session.keeping_turn(), session.turn():
        with session.locked() as state:
            assert len(state.timeline.writes()) == 1
        hf.write(plain_rows(range(4, 8), ts=2), tmp_path, settings)
        with session.locked() as state:
            assert len(state.timeline.writes()) == 2
            with session.locked() as nested:
                assert nested is state
    assert len(table_rows(tmp_path)) == 8


def test_times_of_a_section_follow_those_on_the_timeline(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    session = session_on(Storage(tmp_path), options())
    with session.locked() as state:
        newest = state.timeline.newest_time
        assert newest is not None
        first, second = session.next_time(), session.next_time()
        assert newest < first < second
    with pytest.raises(hf.LockError):
        session.clock.next_time()
