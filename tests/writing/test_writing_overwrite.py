"""Save mode overwrite in its two ways: beside the old table, and in place where that cannot be."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.writing.open_table import discard, empty_table, exchange, stage
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(10)), tmp_path / "lake" / "t", options())
    return tmp_path / "lake" / "t"


def test_a_stage_lies_beside_the_table_and_is_hidden(table: Path) -> None:
    staged = stage(Storage(table))
    assert staged is not None
    (folder,) = (path for path in table.parent.iterdir() if path != table)
    assert folder.name.startswith(".t.overwrite-")
    assert staged.absolute("x") == f"{table}/x"  # as it will be called
    discard(staged)
    discard(staged)
    assert list(table.parent.iterdir()) == [table]


def test_a_stage_that_a_crash_left_goes_with_the_next_one(table: Path) -> None:
    neighbour = table.with_name(".u.overwrite-1")
    neighbour.mkdir()
    first = stage(Storage(table))
    assert first is not None
    first.write_bytes("left/behind", b"x")
    second = stage(Storage(table))
    assert second is not None
    assert not first.exists("left/behind")
    assert neighbour.exists()  # another table's


def test_the_root_of_a_file_system_is_not_exchanged() -> None:
    assert stage(Storage("/")) is None
    assert stage(Storage("/proc")) is None  # a mount point


def test_an_exchange_that_did_not_happen_is_a_commit_error(table: Path) -> None:
    storage = Storage(table)
    with pytest.raises(hf.CommitError, match="table is as before"):
        exchange(storage, storage.rooted_at(str(table.with_name("none"))))
    assert len(table_rows(table)) == 10


def test_an_exchange_whose_answer_was_lost_has_happened(table: Path) -> None:
    fresh = table.with_name("fresh")
    hf.write(plain_rows([1]), fresh, options())
    recorder = RecordingStorage(table)
    exchange(recorder, recorder.rooted_at(str(fresh)))
    (at,) = (call.number for call in recorder.calls if call.name == "exchange")
    storage = FaultyStorage(table, at=at, kind="after")
    exchange(storage, storage.rooted_at(str(fresh)))  # and back
    assert len(table_rows(table)) == 10
    dead = FaultyStorage(table, at=at, kind="after", die=True)
    with pytest.raises(hf.CommitStateUnknownError):
        exchange(dead, dead.rooted_at(str(fresh)))


@pytest.mark.slow
def test_a_table_that_is_emptied_in_place_can_be_overwritten_after_a_crash_at_any_call(
    table: Path, tmp_path: Path
) -> None:
    shutil.copytree(table, tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    empty_table(recorder)
    left = [path.relative_to(tmp_path / "whole").as_posix() for path in (tmp_path / "whole").rglob("*")]
    assert {path.partition("/")[2] for path in left} <= {"", ".locks", ".locks/hudi_fast.lock"}
    for call in recorder.calls:
        for kind in ("before", "after", "tear"):
            path = tmp_path / f"{call.number}-{kind}"
            shutil.copytree(table, path)
            with pytest.raises(InjectedFaultError):
                empty_table(FaultyStorage(path, at=call.number, kind=kind, die=True))
            hf.write(plain_rows([5]), path, options(), mode="overwrite")
            assert set(table_rows(path)) == {"k00005"}, f"{call} {kind}"
            assert_tidy(path)


def test_a_table_is_overwritten_by_rows_that_were_read_from_it(table: Path) -> None:
    rows = hf.HudiTable.open(table).to_arrow().slice(0, 4)
    hf.write(rows, table, options(), mode="overwrite")
    assert len(table_rows(table)) == 4
    assert len(hf.HudiTable.open(table).history()) == 1


def test_an_overwrite_that_is_refused_leaves_no_stage(table: Path) -> None:
    twice = plain_rows([1]).drop_columns(["ts"])
    with pytest.raises(hf.InvalidDataError, match="'ts'"):
        hf.write(twice, table, options(), mode="overwrite")
    assert list(table.parent.iterdir()) == [table]
    assert len(table_rows(table)) == 10


OTHERS = {"README": "read me", "p0/notes.txt": "notes", "thesis/chapter.tex": "one", "sales_q1_2023.parquet": "x"}


def put(table: Path, names: Iterable[str]) -> None:
    for name in names:
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_text(OTHERS[name])


@pytest.mark.slow(but="sales_q1_2023.parquet")
@pytest.mark.parametrize("name", list(OTHERS))
def test_files_of_others_are_not_deleted_by_an_overwrite(table: Path, name: str) -> None:
    put(table, [name])
    before = listing(table)
    with pytest.raises(hf.ConfigError, match=f"Save mode overwrite deletes all .*'{name}'.*Nothing was changed"):
        hf.write(plain_rows([1]), table, options(), "overwrite")
    assert listing(table) == before
    assert list(table.parent.iterdir()) == [table]
    hf.write(plain_rows([1]), table, options() | {"hudi_fast.delete.other.files": "true"}, "overwrite")
    assert len(table_rows(table)) == 1
    assert not (table / name).exists()


def test_files_of_others_stay_where_a_damaged_table_is_emptied_in_place(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_fast.writing.flow.stage", lambda *_: None)
    put(table, OTHERS)
    for properties in (table / ".hoodie").glob("hoodie.properties*"):
        properties.write_text("damaged")
    with pytest.raises(hf.ConfigError, match=r"'README', .*Nothing was changed"):
        hf.write(plain_rows([1]), table, options(), "overwrite")
    assert {name: (table / name).read_text() for name in OTHERS} == OTHERS


def test_files_of_others_stay_in_a_folder_that_becomes_a_table(tmp_path: Path) -> None:
    put(tmp_path, [])
    (tmp_path / "t").mkdir()
    put(tmp_path / "t", OTHERS)
    hf.write(plain_rows(range(4)), tmp_path / "t", options(), "overwrite")
    hf.write(plain_rows(range(2)), tmp_path / "t", options())
    hf.HudiTable.open(tmp_path / "t").truncate()
    hf.HudiTable.open(tmp_path / "t").services.clean({"hoodie.clean.commits.retained": "1"})
    assert {name: (tmp_path / "t" / name).read_text() for name in OTHERS} == OTHERS


@pytest.mark.slow("True")
@pytest.mark.parametrize("nested", [False, True])
def test_an_overwrite_through_a_symbolic_link_replaces_the_table_that_it_leads_to(
    table: Path, tmp_path: Path, nested: bool
) -> None:
    link = tmp_path / "link"
    link.symlink_to(table.parent if nested else table)
    hf.write(plain_rows([1, 2]), link / "t" if nested else link, options(), "overwrite")
    assert link.is_symlink()
    assert not table.is_symlink()
    assert len(table_rows(table)) == 2
    assert list(table.parent.iterdir()) == [table]
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "link"}
    hf.write(plain_rows([3]), table, options())
    assert len(table_rows(link / "t" if nested else link)) == 3


def test_a_folder_that_resembles_a_stage_is_kept(table: Path) -> None:
    others = table.with_name(".t.overwrite-notes")
    others.mkdir()
    hf.write(plain_rows([1]), table, options(), "overwrite")
    assert others.exists()
