"""Files that no commit names, as late task attempts leave them, are left out of a listing."""

from __future__ import annotations

from pathlib import Path

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.lost_files import committed_files
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


def listed(path: Path) -> list[str]:
    state = load_state(Storage(path))
    lister = committed_files(state.storage, state.config, state.view.timeline)
    return sorted(entry.path for partition in lister.partitions() for entry in lister.files(partition))


def test_only_base_files_of_known_commits_are_judged(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    before = listed(tmp_path)
    assert sum(name.endswith(".parquet") for name in before) == 2
    file = next(tmp_path.glob("p0/*.parquet"))
    file_id, _, instant = file.stem.rsplit("_", 2)
    (tmp_path / f"p0/{file_id}_9-9-9_{instant}.parquet").write_bytes(b"late")
    assert listed(tmp_path) == before
    others = ["p0/notes.txt", f"p0/{file_id}_9-9-9_20200101000000000.parquet", f"p0/.{file_id}_{instant}.log.1_9-9-9"]
    for name in others:
        (tmp_path / name).write_bytes(b"other")
    assert listed(tmp_path) == sorted([*before, *others])


def test_a_commit_that_cannot_be_read_judges_nothing(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    before = listed(tmp_path)
    (commit,) = (tmp_path / ".hoodie/timeline").glob("*.commit")
    commit.write_bytes(b"damaged")
    assert listed(tmp_path) == before
