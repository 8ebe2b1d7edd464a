"""``hudi-fast update``."""

from __future__ import annotations

import json

import pyarrow as pa

import hudi_fast as hf

KEY = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def test_update_sets_columns_of_the_rows_that_meet_the_condition(run, tmp_path):
    table = tmp_path / "t"
    hf.write(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"], "fare": [1.0, 2.0, 3.0]}), table, KEY)
    settings = ["--set", "city='it''s, = Bergen'", "--set", "fare = id"]
    code, out, _ = run("update", table, *settings, "--where", "city = 'Oslo' and fare > 2", "--json")
    assert (code, json.loads(out)["updates"]) == (0, 1)
    rows = hf.HudiTable.open(table).to_arrow(columns=["id", "city", "fare"]).sort_by("id").to_pylist()
    assert rows[2] == {"id": 3, "city": "it's, = Bergen", "fare": 3.0}
    code, _, err = run("update", table, "--set", "city=Bergen")
    assert code == 1
    assert "column 'Bergen' does not exist (text is in quotes: 'text')" in err
    code, _, err = run("update", table, "--set", "city")
    assert (code, "takes COLUMN=VALUE" in err) == (2, True)
