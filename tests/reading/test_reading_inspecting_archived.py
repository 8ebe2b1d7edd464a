"""What the history says of instants that have left the active timeline."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_fast as hf


def rows_of(table, **words):
    return table.history(**words).to_pylist()


@pytest.mark.parametrize("name", ["cow_v9_archived", "h015_cow_archived"])
def test_archived_instants_come_before_the_active_ones(golden, name):
    table = hf.HudiTable.open(golden(name).table)
    active, everything = rows_of(table), rows_of(table, archived=True)
    old = [row for row in everything if row["archived"]]
    assert old
    assert [row for row in everything if not row["archived"]] == active
    assert [row["instant"] for row in everything] == sorted(row["instant"] for row in everything)
    assert {row["state"] for row in old} == {"COMPLETED"}
    written = [row for row in old if row["action"] == "commit"]
    assert written
    assert all(row["files"] > 0 and row["inserts"] + row["updates"] > 0 and row["note"] is None for row in written)
    last = old[-1]["instant"]
    assert rows_of(table, archived=True, begin=last, end=last)[0] == old[-1]


def test_history_of_an_empty_table_has_no_rows(tmp_path):
    table = hf.HudiTable.create(tmp_path / "t", pa.schema({"id": pa.string()}), {"hoodie.table.name": "t"})
    assert table.history(archived=True).num_rows == 0
