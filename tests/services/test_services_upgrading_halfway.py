"""Tables between two versions, left by an upgrade of another program: refused by readers and writers, put back by ours.

Modules: hudi_fast.view.lost_files, hudi_fast.services.upgrading.move.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.table_config import other_layout
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.upgrading.move import copy_timeline
from hudi_fast.services.upgrading.upgrade import put_back
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.lost_files import moved_away
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

PLAIN = {"hoodie.metadata.enable": "false"}


@pytest.fixture(params=["6", "9"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    for ts in (1, 2, 3):
        hf.write(plain_rows([0, ts], ts=ts), tmp_path, {**options(table_version=request.param), **PLAIN})
    return Storage(tmp_path)


def move(storage: Storage, which: slice, only_completed: bool = False) -> list[str]:
    """Move some commits to the timeline folder of the other layout, as Apache Hudi does; returns their times."""
    config = load_state(storage).config
    times = [one.requested for one in load_state(storage).timeline.writes()[which]]
    other = other_layout(config, storage.uri)
    storage.make_dir(other.timeline_folder)
    copy_timeline(storage, config, other, times)
    for entry in storage.list_dir(config.timeline_folder):
        if entry.name.startswith(tuple(times)) and not (
            only_completed and entry.name.endswith(("requested", "inflight"))
        ):
            storage.delete_file(entry.path)
    return times


def test_a_table_with_a_whole_timeline_is_not_halfway(storage: Storage) -> None:
    config = load_state(storage).config
    assert moved_away(storage, config) == ()
    assert put_back(storage, config) == 0


@pytest.mark.parametrize("only_completed", [False, True])
def test_commits_that_were_moved_away_are_put_back_by_an_upgrade(storage: Storage, only_completed: bool) -> None:
    path = Path(storage.uri)
    rows, before = table_rows(path), load_state(storage)
    moved = move(storage, slice(1, None), only_completed)
    assert [one.requested for one in moved_away(storage, before.config)] == moved
    services, version = TableServices(storage), before.config.version
    (first, *_) = services.plan_upgrade(version).steps
    assert first.startswith(f"put 2 instants back into {before.config.timeline_folder} (the first is {moved[0]})")
    services.upgrade(version)
    assert table_rows(path) == rows
    after = load_state(storage).timeline.writes()
    assert [(one.requested, one.completion) for one in after] == [
        (one.requested, one.completion) for one in before.timeline.writes()
    ]
    assert services.plan_upgrade(version).steps == ()


@pytest.mark.slow("6")
def test_a_whole_timeline_that_was_moved_is_put_back_on_the_way_to_another_version(storage: Storage) -> None:
    path = Path(storage.uri)
    rows, version = table_rows(path), load_state(storage).config.version
    move(storage, slice(None))
    other = 9 if version == 6 else 6
    TableServices(storage).upgrade(other)
    assert (table_rows(path), load_state(storage).config.version) == (rows, other)


@pytest.mark.parametrize("storage", ["6"], indirect=True)
def test_reads_and_writes_of_a_version_6_table_name_the_way_out(storage: Storage) -> None:
    path = Path(storage.uri)
    rows = table_rows(path)
    (moved,) = move(storage, slice(-1, None))
    with pytest.raises(CorruptTableError, match=rf"{moved}.*services.upgrade\(6\)"):
        hf.read(path)
    with pytest.raises(CorruptTableError, match=moved):
        hf.write(plain_rows([9]), path, {**options(table_version="6"), **PLAIN})
    TableServices(storage).upgrade(6)
    hf.write(plain_rows([9]), path, {**options(table_version="6"), **PLAIN})
    assert table_rows(path) == {**rows, **rows_of(plain_rows([9]))}


def test_moved_instants_whose_files_were_deleted_are_leftovers(storage: Storage) -> None:
    config = load_state(storage).config
    (moved,) = move(storage, slice(-1, None))
    for file in Path(storage.uri).rglob(f"*_{moved}.parquet"):
        file.unlink()
    assert moved_away(storage, config) == ()


def test_an_archived_instant_is_not_moved_away(tmp_path: Path) -> None:
    kept = {**PLAIN, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    for ts in range(1, 7):
        hf.write(plain_rows([0, ts], ts=ts), tmp_path, {**options(table_version="6"), **PLAIN})
    storage = Storage(tmp_path)
    config = load_state(storage).config
    other = other_layout(config, storage.uri)
    storage.make_dir(other.timeline_folder)
    copy_timeline(storage, config, other)
    TableServices(storage).archive(kept)
    assert len(load_state(storage).timeline.writes()) < 6
    assert moved_away(storage, config) == ()
    shutil.rmtree(tmp_path)
