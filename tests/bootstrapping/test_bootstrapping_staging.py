"""Where a bootstrapped table goes, and that it appears at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.bootstrapping.bootstrap import find_place
from hudi_fast.errors import ConfigError, TableExistsError
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def table(tmp_path: Path) -> Storage:
    hf.write(plain_rows([0]), tmp_path / "t", options())
    return Storage(tmp_path / "t")


def test_the_mode_decides_what_happens_to_a_table(table: Storage, tmp_path: Path) -> None:
    source = Storage(tmp_path / "source")
    assert find_place(table, source, "ignore") is None
    with pytest.raises(TableExistsError):
        find_place(table, source, "errorifexists")
    place = find_place(table, source, "overwrite")
    assert place is not None
    assert place.replaces
    fresh = find_place(Storage(tmp_path / "new"), source, "errorifexists")
    assert fresh is not None
    assert not fresh.replaces


@pytest.mark.parametrize(("path", "source"), [("a", "a"), ("a/b", "a"), ("a", "a/b")])
def test_table_and_source_are_not_inside_each_other(tmp_path: Path, path: str, source: str) -> None:
    with pytest.raises(ConfigError):
        find_place(Storage(tmp_path / path), Storage(tmp_path / source), "overwrite")
