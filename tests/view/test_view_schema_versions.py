"""The schema history of a table as Arrow tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.schema_versions import schema_changes, schema_versions
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


def test_a_table_without_history_has_no_versions(tmp_path: Path) -> None:
    hf.write(plain_rows(range(2)), tmp_path, options())
    state = load_state(Storage(tmp_path))
    assert schema_versions(state).num_rows == 0
    assert schema_changes(state).num_rows == 0


def test_versions_list_columns_and_changes_what_became_of_them(tmp_path: Path) -> None:
    hf.write(plain_rows(range(2)), tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    table.alter(hf.RenameColumn("text", "note"), hf.AddColumn("extra", pa.int32()))
    table.alter(hf.ChangeType("extra", pa.int64()), hf.DropColumn("note"))
    state = load_state(Storage(tmp_path))
    versions = schema_versions(state).to_pylist()
    of_version: dict[str, list[str]] = {}
    for row in versions:
        of_version.setdefault(row["version"], []).append(row["column"])
    assert [("text" in one, "note" in one, "extra" in one) for one in of_version.values()] == [
        (True, False, False),
        (False, True, True),
        (False, False, True),
    ]
    assert not any(row["column"].startswith("_hoodie_") for row in versions)
    changes = [(row["change"], row["column"], row["before"], row["after"]) for row in schema_changes(state).to_pylist()]
    assert sorted(changes) == [
        ("added", "extra", None, "int"),
        ("dropped", "note", "string", None),
        ("renamed", "note", "text", "note"),
        ("retyped", "extra", "int", "long"),
    ]
