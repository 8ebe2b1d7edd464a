"""A merge as text: what it will do, before it is executed.

Module: hudi_fast.dml.statement.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf


def test_a_merge_shows_its_statement(tmp_path: Path) -> None:
    hf.write(pa.table({"id": [1], "fare": [1.0]}), tmp_path / "t", key="id")
    begun = hf.HudiTable(tmp_path / "t").merge(pa.table({"id": [1], "fare": [2.0]}), aliases=("t", "s"))
    assert str(begun) == "MERGE INTO t USING s\nON ..."
    merge = (
        begun.on("id", "t.fare < 9")
        .when_matched_delete("s.fare < 0")
        .when_matched_update({"fare": "s.fare + 1"})
        .when_not_matched_insert()
    )
    assert str(merge).splitlines() == [
        "MERGE INTO t USING s",
        "ON t.id = s.id AND t.fare < 9",
        "WHEN MATCHED AND s.fare < 0 THEN DELETE",
        "WHEN MATCHED THEN UPDATE fare = s.fare + 1",
        "WHEN NOT MATCHED THEN INSERT *",
    ]
    assert repr(merge).startswith("Merge('MERGE INTO t USING s ON t.id = s.id AND t.fare < 9 WHEN")
    assert merge._repr_html_().startswith("<pre>MERGE INTO t USING s\nON t.id = s.id AND t.fare &lt; 9\n")
    assert merge.execute().updates == 1


def test_conditions_of_expressions_are_shown_as_they_print(tmp_path: Path) -> None:
    hf.write(pa.table({"id": [1]}), tmp_path / "t", key="id")
    merge = hf.HudiTable(tmp_path / "t").merge(pa.table({"id": [1]})).on("id")
    assert "WHEN MATCHED AND (id > 3) THEN DELETE" in str(merge.when_matched_delete(pc.field("id") > 3))
