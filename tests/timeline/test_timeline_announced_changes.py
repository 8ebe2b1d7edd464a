"""Changes of a table's properties take effect with the commit that they were announced for."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.transition import ANNOUNCED_KEY, announce, apply_announced
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows

CHANGES = {"hoodie.table.recordkey.fields": "text", "hoodie.table.ordering.fields": None}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    table = hf.HudiTable.open(_written(tmp_path))
    table.insert_overwrite(plain_rows([1]), options())
    return Storage(tmp_path)


def _written(path: Path) -> Path:
    hf.write(plain_rows(range(3)), path, options())
    return path


def test_changes_of_a_completed_commit_are_in_effect_before_they_are_applied(storage: Storage) -> None:
    before = load_state(storage)
    announce(storage, before.timeline.writes()[-1].requested, CHANGES)
    state = load_state(storage)
    assert (state.config.record_key_fields, state.config.ordering_fields) == (("text",), ())
    assert load_properties(storage)["hoodie.table.recordkey.fields"] == "id"
    assert apply_announced(storage, state.config, state.timeline)
    assert load_properties(storage)["hoodie.table.recordkey.fields"] == "text"
    assert ANNOUNCED_KEY not in load_properties(storage)
    assert not apply_announced(storage, load_state(storage).config, state.timeline)


@pytest.mark.slow
@pytest.mark.parametrize("archive", [False, True])
def test_changes_of_a_commit_that_was_archived_are_not_forgotten(storage: Storage, archive: bool) -> None:
    table = hf.HudiTable.open(storage.uri)
    requested = load_state(storage).timeline.writes()[-1].requested
    if archive:
        for number in range(4):
            table.upsert(plain_rows([number]), options())
        table.services.clean({"hoodie.clean.commits.retained": "1"})
        table.services.archive({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
        assert load_state(storage).timeline.find(requested) is None
    announce(storage, requested, CHANGES)
    assert load_state(storage).config.record_key_fields == ("text",)


def test_changes_of_a_commit_that_was_rolled_back_are_forgotten(storage: Storage) -> None:
    before = load_properties(storage)
    announce(storage, "20200101000000000", CHANGES)
    assert load_state(storage).config.record_key_fields == ("id",)
    hf.write(plain_rows([1]), storage.uri, options())
    assert load_properties(storage) == before


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"instant": 1, "changes": {}}', '{"instant": "1", "changes": {"a": 1}}']
)
def test_a_damaged_announcement_is_named(storage: Storage, text: str) -> None:
    path = Path(storage.uri) / ".hoodie" / "hoodie.properties"
    path.write_text(f"{path.read_text()}{ANNOUNCED_KEY}={text}\n")
    with pytest.raises(hf.CorruptTableError, match=ANNOUNCED_KEY):
        load_state(storage)
