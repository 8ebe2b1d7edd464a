"""Folders of the local file system are deleted with all that they hold, and with nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from hudi_fast.storage.local_store import LocalStore


@pytest.fixture
def store() -> LocalStore:
    return LocalStore(pafs.LocalFileSystem())


def _fill(folder: Path, count: int, inside: str = "") -> None:
    for number in range(count):
        below = folder / inside / f"c{number}" / "day=1"
        below.mkdir(parents=True)
        (below / "a.marker").write_bytes(b"")
        (below.parent / "b.marker").write_bytes(b"x")


@pytest.mark.parametrize(("count", "inside"), [(0, ""), (1, ""), (40, ""), (5, "one/alone")])
def test_a_folder_is_deleted_with_its_folders_at_every_depth(
    store: LocalStore, tmp_path: Path, count: int, inside: str
) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "gone").mkdir()
    _fill(tmp_path / "gone", count, inside)
    assert store.delete_folder(str(tmp_path / "gone"))
    assert [one.name for one in tmp_path.iterdir()] == ["beside"]
    assert not store.delete_folder(str(tmp_path / "gone"))


def test_a_link_in_a_deleted_folder_does_not_lead_out_of_it(store: LocalStore, tmp_path: Path) -> None:
    _fill(tmp_path / "gone", 2)
    _fill(tmp_path / "kept", 2)
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept", target_is_directory=True)
    before = sorted((tmp_path / "kept").rglob("*"))
    assert store.delete_folder(str(tmp_path / "gone"))
    assert sorted((tmp_path / "kept").rglob("*")) == before
    assert not (tmp_path / "gone").exists()


def test_several_threads_delete_one_folder_without_an_error(store: LocalStore, tmp_path: Path) -> None:
    for _ in range(5):
        _fill(tmp_path / "gone", 30)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: store.delete_folder(str(tmp_path / "gone")), range(4)))
        assert not (tmp_path / "gone").exists()
