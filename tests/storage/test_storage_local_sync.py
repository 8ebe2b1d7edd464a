"""Local tables through a loss of power: at any moment, with any action, nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage import local_store
from hudi_fast.storage.base import Storage
from tests.support.power import Disk, kinds
from tests.support.small_tables import options, plain_rows, table_rows


def given(version: str, kind: str, **changes: str) -> dict[str, Any]:
    return {
        **options(table_version=version),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        "hoodie.write.set.null.for.missing.columns": "true",
        **changes,
    }


def actions(path: Path, settings: dict[str, Any], kind: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """A life of a table, action by action."""
    services = hf.HudiTable.open(path).services
    yield "upsert", lambda: hf.write(plain_rows(range(4), ts=2, text="b"), path, settings)
    yield "delete", lambda: hf.delete(path, "id = 'k00005'", options=settings)
    if kind == "MERGE_ON_READ":
        yield "compact", lambda: services.compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
    yield "savepoint", services.savepoint
    yield "upsert again", lambda: hf.write(plain_rows(range(2, 9), ts=3, text="c"), path, settings)
    yield "restore", lambda: services.restore(services.savepoints()["instant"][0].as_py())
    yield "insert", lambda: hf.write(plain_rows([20, 21], ts=4), path, settings)
    yield "cluster", lambda: services.cluster({**settings, "hoodie.clustering.inline.max.commits": "1"})
    yield (
        "overwrite of partitions",
        lambda: hf.write(
            plain_rows([0, 30], ts=5, text="o"),
            path,
            settings | {"hoodie.datasource.write.operation": "insert_overwrite"},
        ),
    )
    yield "clean", lambda: services.clean({**settings, "hoodie.clean.commits.retained": "1"})
    yield "add of a column", lambda: hf.HudiTable.open(path).alter(hf.AddColumn("extra", pa.string()))
    for number in range(3):
        yield (
            f"write {number}",
            lambda number=number: hf.write(plain_rows([number], ts=6 + number, text="d"), path, settings),
        )
    yield (
        "archive",
        lambda: services.archive({**settings, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}),
    )
    other = "6" if settings["hoodie.write.table.version"] == "9" else "9"
    yield "change of the version", lambda: services.upgrade(int(other))
    yield "overwrite", lambda: hf.write(plain_rows(range(3), text="n"), path, settings, mode="overwrite")


@pytest.mark.slow
@kinds
def test_what_was_acknowledged_survives(
    tmp_path: Path, version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each action of a table's life the power is cut; the table has the same rows, and the next write goes on."""
    home = tmp_path / "home"
    home.mkdir()
    disk, path, settings = Disk(home, monkeypatch), home / "t", given(version, kind)
    hf.write(plain_rows(range(8)), path, settings)
    for what, act in itertools.chain([("", lambda: None)], actions(path, settings, kind)):
        act()
        expected = table_rows(path)
        left = disk.after_loss(tmp_path / "left") / "t"
        assert table_rows(left) == expected, what
        assert hf.HudiTable.open(left).services.validate().ok, what
        hf.write(plain_rows([50], ts=9), left, settings)
        assert set(table_rows(left)) == {*expected, "k00050"}, what


@pytest.mark.slow
@kinds
def test_a_loss_in_the_middle_leaves_the_old_rows_or_the_new_ones(
    tmp_path: Path, version: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    disk, path, settings = Disk(home, monkeypatch), home / "t", given(version, kind)
    hf.write(plain_rows(range(8)), path, settings)
    before, cut = table_rows(path), itertools.count()
    images: list[Path] = []
    lock = threading.Lock()

    def cut_the_power() -> None:
        with lock:
            images.append(disk.after_loss(tmp_path / f"left{next(cut)}") / "t")

    disk.at_each_step(cut_the_power)
    hf.write(plain_rows(range(4, 12), ts=2, text="b"), path, settings)
    disk.at_each_step(lambda: None)
    after = table_rows(path)
    assert len(images) > 5
    is_new = []
    for image in images:
        rows = table_rows(image)
        assert rows in (before, after)
        is_new.append(rows == after)
        hf.write(plain_rows([50], ts=9), image, settings)
        assert set(table_rows(image)) == {*rows, "k00050"}
    assert is_new == sorted(is_new)


def test_a_new_file_replaces_an_old_one_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    disk, storage = Disk(home, monkeypatch), Storage(home)
    storage.write_bytes("f", b"old")
    storage.sync()
    storage.write_bytes("f", b"new")
    assert (disk.after_loss(tmp_path / "left") / "f").read_bytes() == b"new"


def test_each_table_waits_for_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(local_store, "to_disk", waited.append)
    one, other = Storage(tmp_path / "one"), Storage(tmp_path / "one-too")
    for storage in (one, other):
        storage.write_bytes("p/f", b"1")
        with storage.open_output("p/g") as sink:
            sink.write(b"2")
    one.sync()
    assert {name for name in waited if Path(name).is_file()} == {str(tmp_path / "one/p/f"), str(tmp_path / "one/p/g")}
    assert {str(tmp_path / "one"), str(tmp_path / "one/p")} <= set(waited)
    waited.clear()
    one.sync()
    assert waited == []
    other.sync()
    assert str(tmp_path / "one-too/p/g") in waited


def test_files_that_the_disk_did_not_take_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(5, "Input/output error", name)

    path, settings = tmp_path / "t", given("9", "COPY_ON_WRITE")
    hf.write(plain_rows(range(8)), path, settings)
    before = table_rows(path)
    with monkeypatch.context() as patch:
        patch.setattr(local_store, "to_disk", broken)
        with pytest.raises(hf.CommitError, match="Input/output error"):
            hf.write(plain_rows(range(4), ts=2, text="b"), path, settings)
    assert table_rows(path) == before
    hf.write(plain_rows(range(4), ts=2, text="b"), path, settings)
    assert table_rows(path) != before


def test_an_option_leaves_it_to_the_operating_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(local_store, "to_disk", waited.append)
    hf.write(plain_rows(range(8)), tmp_path / "t", given("9", "MERGE_ON_READ", **{"hudi_fast.fsync": "false"}))
    assert waited == []


def begun_of(monkeypatch: pytest.MonkeyPatch, answer: int = 0) -> list[int]:
    """Sizes of the files that the disk was asked to begin with."""
    asked: list[int] = []

    def begin(descriptor: int, *_: int) -> int:
        asked.append(os.fstat(descriptor).st_size)
        return answer

    monkeypatch.setattr(local_store, "_sync_file_range", begin)
    return asked


@pytest.mark.parametrize("answer", [0, -1])
def test_the_disk_begins_with_a_large_file_when_it_is_closed(
    answer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, storage = begun_of(monkeypatch, answer), Storage(tmp_path)
    for name, size in (("large", 3 << 20), ("small", 1000)):
        with storage.open_output(name) as sink:
            sink.write(b"x" * size)
            assert name != "large" or asked == []
    assert asked == [3 << 20]
    assert storage.read_bytes("large") == b"x" * (3 << 20)
    storage.sync()
    with storage.without_sync().open_output("large") as sink:
        sink.write(b"x" * (3 << 20))
    assert asked == [3 << 20]


def test_a_system_that_cannot_begin_early_syncs_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "_sync_file_range", None)
    synced: list[str] = []
    monkeypatch.setattr(local_store, "to_disk", synced.append)
    storage = Storage(tmp_path)
    with storage.open_output("large") as sink:
        sink.write(b"x" * (2 << 20))
    storage.sync()
    assert str(tmp_path / "large") in synced


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")
def test_linux_begins_early() -> None:
    assert local_store._sync_file_range is not None
