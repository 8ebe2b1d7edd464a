"""Which properties users may set on a table.

Modules: hudi_fast.writing.alter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows, table_rows

NAMES = ["owner", "a b", "ключ", "with=sign", "#comment", "back\\slash", "two\nlines", "hoodie", "Hoodie.x"]
VALUES = ["", "x", "a=b", "emoji 😀", "inner  blanks", "line\nbreak", "\\u0041", "#!:="]


@pytest.fixture
def table(tmp_path: Path) -> hf.HudiTable:
    hf.write(plain_rows(range(3)), tmp_path / "t", options())
    return hf.HudiTable.open(tmp_path / "t")


def test_properties_are_set_kept_by_writes_and_removed(table: hf.HudiTable) -> None:
    before = dict(table.config.raw)
    assert table.set_properties({"owner": "team", "pii": True, "days": 30}) == {
        "owner": "team",
        "pii": "true",
        "days": "30",
    }
    table.upsert(plain_rows([1, 7], ts=2), options())
    assert table.set_properties({"pii": None, "not.there": None}) == {"owner": "team", "days": "30"}
    table.services.upgrade(9)
    assert table.config.raw["owner"] == "team"
    assert len(table_rows(Path(table.path))) == 4
    assert table.set_properties(dict.fromkeys(("owner", "days"))) == {}
    assert before.keys() <= table.config.raw.keys()


@pytest.mark.parametrize("name", NAMES)
def test_any_name_and_value_is_read_as_it_was_set(table: hf.HudiTable, name: str) -> None:
    for value in VALUES:
        assert table.set_properties({name: value}) == {name: value}
        assert load_properties(Storage(table.path))[name] == value


@pytest.mark.slow("hoodie.database.name")
@pytest.mark.parametrize("key", ["hoodie.database.name", "hoodie.table.partition_extractor_class"])
def test_what_no_stored_file_depends_on_can_be_set(table: hf.HudiTable, key: str) -> None:
    assert table.set_properties({key: "sales"}) == {key: "sales"}
    table.upsert(plain_rows([9], ts=2), options())
    assert table.set_properties({})[key] == "sales"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hoodie.table.type": "MERGE_ON_READ"}, "describes how the files of the table are stored"),
        ({"hoodie.table.cdc.enabled": True}, "describes how the files of the table are stored"),
        ({"hoodie.parquet.max.file.size": 1}, "is an option of calls, not of a table: pass it as options="),
        ({"hudi_fast.plan": "fused"}, "is an option of calls"),
        ({"hoodie.nothing": 1}, "keys that begin with hoodie. or hudi_fast. belong to the format"),
        ({" hoodie.nothing": 1}, "belong to the format"),
        ({"ok": "x", "hoodie.table.name": None}, "describes how"),
        ({"": "x"}, "not blank"),
        ({1: "x"}, "not blank; got 1"),
        ({"x": {"y": 1}}, "x has a value of type dict"),
        (["x"], "Properties are a dict of keys and values; got list"),
    ],
)
def test_other_changes_are_refused_and_nothing_is_changed(table: hf.HudiTable, changes: Any, said: str) -> None:
    before = dict(table.config.raw)
    with pytest.raises(hf.ConfigError, match=said):
        table.set_properties(changes)
    assert dict(table.config.raw) == before
