"""A table that hudi_fast overwrote where it is belongs to Apache Hudi as any other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.writing import flow
from tests.interop.sides import Sides, after_upsert, trip_options, trips


@pytest.mark.parametrize(
    ("peer", "version"), [("hudi_12", 9), pytest.param("hudi_12", 6, marks=pytest.mark.long), ("hudi_015", 6)]
)
def test_hudi_reads_the_new_table_and_writes_to_it(
    peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "stage", lambda storage, deletes_others: None)
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version))
    sides.options = {**sides.options, "hoodie.metadata.enable": peer == "hudi_12"}
    sides.hudi_writes(trips(range(60)))
    sides.hudi_writes(trips(range(30, 40), ts=2))

    rows = trips(range(50, 90), note="new")
    hf.write(rows, sides.path, sides.options, mode="overwrite")
    sides.agree(rows)
    sides.hudi_writes(trips(range(80, 99), ts=3))
    rows = after_upsert(rows, trips(range(80, 99), ts=3))
    sides.agree(rows)

    others = {
        "hoodie.datasource.write.recordkey.field": "seats",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    sides.options = {**sides.options, **others}
    sides.key = ("seats",)
    rows = pa.table({"seats": ["a", "b", "c"], "city": ["city0", "x", "city0"], "ts": pa.array([5, 5, 5], pa.int64())})
    hf.write(rows, sides.path, sides.options, mode="overwrite")
    sides.agree(rows)
    changed = rows.slice(1, 1).set_column(2, "ts", pa.array([7], pa.int64()))
    sides.hudi_writes(changed)
    sides.agree(pa.concat_tables([rows.slice(0, 1), changed, rows.slice(2)]))
