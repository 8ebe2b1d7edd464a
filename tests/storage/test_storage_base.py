"""Files below a base path: what each call of a storage promises, and that the instrumented ones keep it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow.fs as pafs
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.local_store import delete_folder, exchange_by_renames, exchange_folders
from hudi_fast.storage.untrusted import check_relative
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError, RecordingStorage


@pytest.fixture(params=[Storage, RecordingStorage, FaultyStorage])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return request.param(tmp_path / "base")


def test_paths_and_uris_mean_the_same_folder(tmp_path: Path) -> None:
    plain = Storage(tmp_path)
    for uri in (f"file://{tmp_path}", f"file:{tmp_path}", f"{tmp_path}/", str(tmp_path)):
        other = Storage(uri)
        assert (other.uri, other.fs_path("a"), other.absolute("a")) == (plain.uri, plain.fs_path("a"), f"{tmp_path}/a")
        assert other.is_local
    assert Storage("file:///a%20b").uri == "/a b"


def test_a_replaced_file_is_the_old_or_the_new_one(storage: Storage) -> None:
    storage.write_bytes("d/f", b"old")
    with storage.replacing("d/f") as sink:
        sink.write(b"new")
        assert storage.read_bytes("d/f") == b"old"
    assert storage.read_bytes("d/f") == b"new"

    def fail() -> None:
        with storage.replacing("d/f") as sink:
            sink.write(b"half")
            raise KeyError("the writer failed")

    with pytest.raises(KeyError):
        fail()
    assert storage.read_bytes("d/f") == b"new"
    with storage.replacing("top") as sink:
        sink.write(b"x")
    assert [entry.path for entry in storage.list_dir("", recursive=True) if not entry.is_dir] == ["d/f", "top"]


def test_files_are_copied_and_deleted_within_and_between_folders(storage: Storage) -> None:
    for path in ("d/f", "d/g", "e/f", "top"):
        storage.write_bytes(path, path.encode())
    storage.copy_file("d/f", "e/f")
    storage.rooted_at(storage.fs_path("d")).copy_file("g", "g", storage.rooted_at(storage.fs_path("e")))
    storage.delete_files(["d/f", "d/missing", "missing/f", "top"])
    left = {one.path: storage.read_bytes(one.path) for one in storage.list_dir("", recursive=True) if not one.is_dir}
    assert left == {"d/g": b"d/g", "e/f": b"d/f", "e/g": b"d/g"}
    storage.write_bytes("e/g", b"new")
    assert storage.read_bytes("d/g") == b"d/g"


def test_unknown_file_systems_and_options_for_local_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match="No file system"):
        Storage("nope://bucket/table")
    with pytest.raises(hf.ConfigError, match="do not support storage options"):
        Storage(tmp_path, {"region": "x"})


def test_bytes_are_written_and_read(storage: Storage) -> None:
    storage.write_bytes("a/b/file", b"one")
    storage.write_bytes("a/b/file", b"three")
    assert storage.read_bytes("a/b/file") == b"three"
    stat = storage.stat("a/b/file")
    assert stat is not None
    assert (stat.path, stat.name, stat.size, stat.is_dir) == ("a/b/file", "file", 5, False)
    assert stat.modified_ms > 1_600_000_000_000
    assert storage.stat("a/b/none") is None
    assert not storage.exists("a/b/none")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("a/b/none")
    with pytest.raises(FileNotFoundError):
        storage.open_input("a/b/none")


def test_streams_write_and_read(storage: Storage) -> None:
    with storage.open_output("x/stream") as sink:
        sink.write(b"0123")
        sink.write(b"456789")
        assert sink.tell() == 10
    with storage.open_input("x/stream") as source:
        assert source.size() == 10
        source.seek(4)
        assert source.read(3) == b"456"


def test_an_exclusive_create_never_replaces(storage: Storage) -> None:
    storage.create_exclusive("f", b"first")
    with pytest.raises(FileExistsError):
        storage.create_exclusive("f", b"second")
    assert storage.read_bytes("f") == b"first"
    assert [entry.name for entry in storage.list_dir("")] == ["f"]  # nothing temporary is left


def test_a_checksum_that_hadoop_left_goes_with_the_content_it_was_for(storage: Storage, tmp_path: Path) -> None:
    for write in (storage.write_bytes, storage.create_exclusive):
        (tmp_path / "base").mkdir(exist_ok=True)
        (tmp_path / "base" / f".{write.__name__}.crc").write_bytes(b"crc")
        write(write.__name__, b"new")
    storage.write_bytes("gone", b"")
    (tmp_path / "base" / ".gone.crc").write_bytes(b"crc")
    assert storage.delete_file("gone")
    for name in ("many", "more"):
        storage.write_bytes(name, b"")
        (tmp_path / "base" / f".{name}.crc").write_bytes(b"crc")
    storage.delete_files(["many", "none", "more"])
    assert sorted(entry.name for entry in storage.list_dir("")) == ["create_exclusive", "write_bytes"]


def test_a_folder_that_is_made_while_it_is_listed_is_listed(tmp_path: Path) -> None:
    class Meanwhile:
        """The folder appears between Arrow's two looks: it then raises in spite of ``allow_not_found``."""

        def __init__(self, fs: pafs.FileSystem) -> None:
            self._fs, self.calls = fs, 0

        def get_file_info(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
            self.calls += 1
            if self.calls == 1:
                (tmp_path / "new").mkdir()
                (tmp_path / "new" / "file").write_bytes(b"x")
                raise FileNotFoundError(2, "Cannot list directory")
            found: list[pafs.FileInfo] = self._fs.get_file_info(selector)
            return found

    storage = Storage(str(tmp_path))
    storage._files = Meanwhile(storage.fs)
    assert [entry.name for entry in storage.list_dir("new")] == ["file"]


def test_listings_are_sorted_and_relative(storage: Storage) -> None:
    for name in ("b", "a/c", "a/d/e"):
        storage.write_bytes(name, name.encode())
    assert [(entry.path, entry.is_dir) for entry in storage.list_dir("")] == [("a", True), ("b", False)]
    assert [entry.path for entry in storage.list_dir("a", recursive=True)] == ["a/c", "a/d", "a/d/e"]
    assert storage.list_dir("none") == []


def test_deleting_says_whether_there_was_something(storage: Storage) -> None:
    storage.write_bytes("d/f", b"")
    assert storage.delete_file("d/f")
    assert not storage.delete_file("d/f")
    storage.make_dir("d/deep/er")
    storage.make_dir("d/deep/er")
    assert storage.delete_dir("d")
    assert not storage.delete_dir("d")


class FilledMeanwhile:
    """A file system where somebody puts a file into the folder after it was emptied, some times."""

    def __init__(self, times: int) -> None:
        self._fs, self._left = pafs.LocalFileSystem(), times

    def delete_dir(self, path: str) -> None:
        if self._left:
            self._left -= 1
            self._fs.delete_dir_contents(path)
            Path(path, "one more").touch()
            os.rmdir(path)
        self._fs.delete_dir(path)


def test_a_folder_is_deleted_while_others_fill_it(tmp_path: Path) -> None:
    Storage(tmp_path).write_bytes("d/f", b"")
    assert delete_folder(FilledMeanwhile(3), str(tmp_path / "d"))
    assert list(tmp_path.iterdir()) == []
    assert not delete_folder(FilledMeanwhile(0), str(tmp_path / "d"))
    (tmp_path / "d").mkdir()
    with pytest.raises(OSError, match="not empty"):
        delete_folder(FilledMeanwhile(1000), str(tmp_path / "d"))


def test_a_move_replaces_what_is_at_its_target(storage: Storage) -> None:
    storage.write_bytes("a", b"new")
    storage.write_bytes("x/b", b"old")
    storage.move("a", "x/b")
    assert storage.read_bytes("x/b") == b"new"
    assert not storage.exists("a")


def test_a_file_can_be_made_as_old_as_it_should_be(storage: Storage) -> None:
    storage.write_bytes("a", b"1")
    storage.set_modified("a", 1_600_000_000_123)
    found = storage.stat("a")
    assert found is not None
    assert found.modified_ms == 1_600_000_000_123
    with pytest.raises(FileNotFoundError):
        storage.set_modified("b", 0)


def test_a_failed_write_leaves_nothing_temporary(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    with pytest.raises(TypeError):
        storage.write_bytes("f", "no bytes")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_storages_can_be_pickled(storage: Storage) -> None:
    storage.write_bytes("f", b"1")
    twin = pickle.loads(pickle.dumps(storage))
    assert type(twin) is type(storage)
    assert twin.read_bytes("f") == b"1"
    elsewhere = pickle.loads(pickle.dumps(storage.rooted_at(storage.fs_path("sub"))))
    elsewhere.write_bytes("g", b"2")
    assert storage.read_bytes("sub/g") == b"2"
    assert elsewhere.absolute("g") == storage.absolute("g")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a/.."])
def test_paths_that_leave_the_base_are_refused(path: str) -> None:
    with pytest.raises(hf.CorruptTableError, match="leaves the table"):
        check_relative(path)
    assert check_relative("a/..b/c") == "a/..b/c"


# ---- changing places


def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").write_text(name)
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.parametrize("exchange", [exchange_folders, exchange_by_renames])
def test_two_folders_change_places(exchange: Callable[[str, str], None], tmp_path: Path) -> None:
    one, two = folders(tmp_path)
    exchange(str(one), str(two))
    assert (one / "inner" / "file").read_text() == "two"
    assert (two / "inner" / "file").read_text() == "one"
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


@pytest.mark.parametrize("exchange", [exchange_folders, exchange_by_renames])
def test_an_exchange_that_fails_leaves_both_where_they_are(
    exchange: Callable[[str, str], None], tmp_path: Path
) -> None:
    one, _ = folders(tmp_path)
    with pytest.raises(FileNotFoundError):
        exchange(str(one), str(tmp_path / "none"))
    assert (one / "inner" / "file").read_text() == "one"
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_the_roots_of_two_storages_change_places(tmp_path: Path) -> None:
    one, two = folders(tmp_path)
    Storage(one).exchange(Storage(two))
    assert Storage(one).read_bytes("inner/file") == b"two"


# ---- storages that break


def names(storage: RecordingStorage) -> list[tuple[str, str]]:
    return [(call.name, call.path) for call in storage.calls]


def test_calls_are_recorded_in_order_with_those_of_streams(tmp_path: Path) -> None:
    storage = RecordingStorage(tmp_path)
    storage.write_bytes("a", b"")
    with storage.open_output("b") as sink:
        sink.write(b"x")
    storage.exists("b")
    assert names(storage) == [
        ("write_bytes", "a"),
        ("open_output", "b"),
        ("stream_write", "b"),
        ("stream_close", "b"),
        ("stat", "b"),
    ]
    assert [call.changes for call in storage.calls] == [True, True, True, True, False]
    assert [call.number for call in storage.calls] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "content"), [("before", None), ("after", b"content"), ("tear", None)], ids=["before", "after", "tear"]
)
def test_a_fault_hits_one_call_before_in_or_after_it(kind: str, content: bytes | None, tmp_path: Path) -> None:
    storage = FaultyStorage(tmp_path, at=1, kind=kind)
    storage.write_bytes("first", b"1")
    with pytest.raises(InjectedFaultError, match="write_bytes of second"):
        storage.write_bytes("second", b"content")
    storage.write_bytes("third", b"3")
    assert (storage.read_bytes("second") if storage.exists("second") else None) == content
    torn = [path.read_bytes() for path in tmp_path.glob(".second.*.tmp")]
    assert torn == ([b"con"] if kind == "tear" else [])


def test_after_a_death_every_call_fails(tmp_path: Path) -> None:
    storage = FaultyStorage(tmp_path, at=0, kind="after", die=True)
    for _ in range(2):
        with pytest.raises(InjectedFaultError):
            storage.write_bytes("f", b"1")
    with pytest.raises(InjectedFaultError):
        storage.list_dir("")
    assert (tmp_path / "f").read_bytes() == b"1"


def test_a_torn_stream_holds_a_part(tmp_path: Path) -> None:
    storage = FaultyStorage(tmp_path, at=1, kind="tear")
    sink = storage.open_output("f")
    with pytest.raises(InjectedFaultError):
        sink.write(b"0123456789")
    sink.close()
    assert (tmp_path / "f").read_bytes() == b"01234"


def test_a_kind_of_fault_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sideways"):
        FaultyStorage(tmp_path, at=0, kind="sideways")
