"""The target of a write: save modes, missing tables, and what a failed first write leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, CorruptTableError, TableExistsError, TableNotFoundError
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage
from hudi_fast.writing.open_table import create_table, find_target, known_mode, remove_if_unused, table_exists
from hudi_fast.writing.settings import Settings
from tests.support.small_tables import options, plain_rows

OPTIONS = WriteOptions.from_options(options())


@pytest.fixture
def table(tmp_path: Path) -> Storage:
    hf.write(plain_rows([0]), tmp_path / "t", options())
    return Storage(tmp_path / "t")


def test_modes_are_read_in_any_case(table: Storage) -> None:
    assert [known_mode(table, mode) for mode in ("Append", "ERROR", "ErrorIfExists")] == [
        *("append", "errorifexists", "errorifexists")
    ]
    with pytest.raises(ConfigError, match="'update'"):
        known_mode(table, "update")


def test_the_mode_decides_about_an_existing_table(table: Storage) -> None:
    appended = find_target(table, OPTIONS, "append")
    assert appended is not None
    assert (appended.new, appended.exists) == (None, True)
    replaced = find_target(table, OPTIONS, "overwrite")
    assert replaced is not None
    assert replaced.new is not None
    assert replaced.exists
    assert find_target(table, OPTIONS, "ignore") is None
    with pytest.raises(TableExistsError):
        find_target(table, OPTIONS, "errorifexists")


def test_a_new_table_is_created_with_its_properties(tmp_path: Path) -> None:
    target = find_target(Storage(tmp_path / "new"), OPTIONS, "errorifexists")
    assert target is not None
    assert target.new_state().view.lister.partitions() == []
    state = create_table(target, OPTIONS)
    assert state.config.name == "t"
    assert table_exists(target.storage, False)
    with pytest.raises(TableExistsError):
        create_table(target, OPTIONS)


def test_a_delete_needs_a_table(tmp_path: Path) -> None:
    delete = WriteOptions.from_options(options(operation="delete"))
    with pytest.raises(TableNotFoundError):
        find_target(Storage(tmp_path / "new"), delete, "append")
    with pytest.raises(ConfigError, match="Append is the only save mode"):
        find_target(Storage(tmp_path / "new"), delete, "overwrite")


@pytest.mark.slow
def test_a_broken_table_exists_only_to_be_replaced(table: Storage) -> None:
    for name in ("hoodie.properties", "hoodie.properties.backup"):
        if table.exists(f".hoodie/{name}"):
            table.write_bytes(f".hoodie/{name}", b"nothing")
    with pytest.raises(CorruptTableError):
        table_exists(table, broken_counts=False)
    assert table_exists(table, broken_counts=True)


def test_a_table_that_nothing_was_written_to_is_removed(table: Storage, tmp_path: Path) -> None:
    target = find_target(Storage(tmp_path / "new"), OPTIONS, "append")
    assert target is not None
    create_table(target, OPTIONS)
    remove_if_unused(target.storage, shared=True)
    assert not (tmp_path / "new").exists()
    remove_if_unused(table, shared=False)
    assert table_exists(table, False)


def test_a_session_without_spark_runs_in_threads(table: Storage) -> None:
    session = open_session(table, Settings.from_options({"hudi_fast.threads": "3"}))
    assert session.backend.name == "local"
    assert session.state.config.name == "t"
