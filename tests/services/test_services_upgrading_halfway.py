"""Tables between two versions, left by an upgrade of another program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.upgrading.halfway import refuse_halfway
from hudi_fast.services.upgrading.move import other_layout
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for ts in (1, 2):
        hf.write(plain_rows([0], ts=ts), tmp_path, {**options(table_version="6"), "hoodie.metadata.enable": "false"})
    return Storage(tmp_path)


def move_newest(storage: Storage) -> str:
    """Move the newest commit to the timeline folder of the other layout; returns its requested time."""
    state = load_state(storage)
    newest, other = state.timeline.writes()[-1], other_layout(state.config, storage.uri)
    storage.make_dir(other.timeline_folder)
    source = storage.fs_path(f"{state.config.timeline_folder}/{newest.file_name}")
    shutil.move(source, storage.fs_path(f"{other.timeline_folder}/{newest.requested}_{newest.requested}.commit"))
    return newest.requested


def test_a_table_with_a_whole_timeline_is_not_halfway(storage: Storage) -> None:
    refuse_halfway(storage, load_state(storage).config)


def test_a_commit_in_the_other_layout_alone_is_refused_while_its_files_are_there(
    storage: Storage, tmp_path: Path
) -> None:
    config = load_state(storage).config
    requested = move_newest(storage)
    with pytest.raises(CorruptTableError, match=requested):
        refuse_halfway(storage, config)
    for path in tmp_path.rglob(f"*_{requested}.parquet"):
        path.unlink()
    refuse_halfway(storage, config)
