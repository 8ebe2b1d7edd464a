"""Hudi's SQL on tables of ours, and our writes on tables that its SQL made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.interop.sides import Sides, after_upsert, trip_options, trips
from tests.peer.client import RealHudi

SQL_ORDER = ["id", "ts", "fare", "seats", "started", "day", "note", "city"]
COLUMNS = "id string, ts bigint, fare double, seats int, started timestamp, day date, note string, city string"


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.long)])
def test_every_verb_of_sql_changes_a_table_of_ours(hudi_12: RealHudi, version: int, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(version))
    sides.we_write(trips(range(30)))
    name = sides.in_catalog()
    hudi_12.sql(f"UPDATE {name} SET note = 'by SQL', ts = ts + 1 WHERE seats = 2")
    assert sides.agree()["note"].to_pylist().count("by SQL") == 6
    hudi_12.sql(f"DELETE FROM {name} WHERE seats = 1")
    assert sides.agree().num_rows == 24
    merged = trips(range(20, 40), ts=7)
    hudi_12.sql(
        f"MERGE INTO {name} t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        rows={"src": merged},
    )
    assert sides.agree().num_rows == 36
    new = trips(range(15, 45), ts=9)
    sides.we_write(new)
    assert sides.agree().num_rows == 42
    hudi_12.sql(f"INSERT INTO {name} SELECT * FROM src", rows={"src": trips(range(50, 55)).select(SQL_ORDER)})
    assert sides.agree().num_rows == 47
    hudi_12.sql(f"ALTER TABLE {name} ADD COLUMNS (extra string)")
    sides.agree()
    sides.we_write(trips(range(60), ts=10).append_column("extra", pa.array(["e"] * 60)))
    sides.agree(trips(range(60), ts=10).append_column("extra", pa.array(["e"] * 60)))


@pytest.mark.smoke
def test_we_write_to_a_table_that_sql_created(hudi_12: RealHudi, tmp_path: Path) -> None:
    path = tmp_path / "made_by_sql"
    hudi_12.sql(
        f"CREATE TABLE made_by_sql ({COLUMNS}) USING hudi PARTITIONED BY (city) "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}'"
    )
    sides = Sides(hudi_12, path, {})
    assert sides.table.schema == trips([]).select(SQL_ORDER).schema
    rows = trips(range(20)).select(SQL_ORDER)
    sides.we_write(rows)
    sides.agree(rows)
    new = trips(range(10, 30), ts=2).select(SQL_ORDER)
    hudi_12.sql("INSERT INTO made_by_sql SELECT * FROM src", rows={"src": trips(range(50, 55)).select(SQL_ORDER)})
    rows = pa.concat_tables([rows, trips(range(50, 55)).select(SQL_ORDER)])
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_hudi_writes_to_an_empty_table_of_ours(
    peer: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sides = Sides(request.getfixturevalue(peer), tmp_path / "t", trip_options(version))
    hf.HudiTable.create(sides.path, trips([]).schema, sides.options)
    sides.agree(trips([]))
    sides.hudi_writes(trips(range(5)))
    sides.agree(trips(range(5)))
