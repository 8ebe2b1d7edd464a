"""Merges, updates and deletes by condition: real Hudi's SQL and ours do the same, and Hudi reads what ours wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.compute import field

import hudi_fast as hf
from tests.dml.moving_merges import ARRIVING, STORED, after_moving, moved_rows, moving_options, moving_rows
from tests.interop.sides import Sides, data_columns, trip_options, trips
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

SQL_ORDER = ["id", "ts", "fare", "seats", "started", "day", "note", "city"]
"""Where Hudi's SQL takes a partition column to be; it writes rows by place."""
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
LONG = pytest.mark.long


@pytest.fixture(autouse=True)
def settings_end_with_a_test(peers: list[RealHudi]) -> Iterator[None]:
    """What a test sets in the session of a peer would change the answers to others."""
    yield
    for peer in peers:
        peer.sql("RESET")


def source() -> pa.Table:
    """Rows that change some of the table's, delete others, and are new."""
    rows = trips(range(10, 25), ts=7).select(SQL_ORDER)
    return rows.append_column("op", pa.array(["d" if number % 5 == 0 else "u" for number in range(10, 25)]))


def we_change(sides: Sides) -> None:
    table = sides.table
    values = {name: f"source.{name}" for name in SQL_ORDER} | {"fare": field("source.fare") * 2}
    merge = table.merge(source()).on(["id", "city"]).when_matched_update(values, field("source.op") == "u")
    merge.when_matched_delete(field("source.op") == "d").when_not_matched_insert().execute()
    table.update(field("seats") == 2, {"note": "'by update'", "ts": field("ts") + 1})
    table.delete((field("seats") == 1) & (field("ts") < 7))


def hudi_changes(sides: Sides) -> None:
    name = sides.in_catalog()
    columns = SQL_ORDER
    sets = [f"t.{one} = s.{one}" + (" * 2" if one == "fare" else "") for one in columns]
    sides.hudi.sql("SET hoodie.spark.sql.merge.into.partial.updates=false")  # Hudi tries it on any table version
    sides.hudi.sql("SET hoodie.write.auto.upgrade=false")
    sides.hudi.sql(
        f"MERGE INTO {name} t USING src s ON t.id = s.id AND t.city = s.city "
        f"WHEN MATCHED AND s.op = 'u' THEN UPDATE SET {', '.join(sets)} "
        "WHEN MATCHED AND s.op = 'd' THEN DELETE "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join('s.' + one for one in columns)})",
        rows={"src": source()},
    )
    sides.hudi.sql(f"UPDATE {name} SET note = 'by update', ts = ts + 1 WHERE seats = 2")
    sides.hudi.sql(f"DELETE FROM {name} WHERE seats = 1 AND ts < 7")


@pytest.mark.parametrize(
    ("version", "options"),
    [
        pytest.param(9, {}, id="cow-9"),
        pytest.param(6, MOR, id="mor-6", marks=LONG),
        pytest.param(6, {}, id="cow-6", marks=LONG),
        pytest.param(9, MOR, id="mor-9", marks=LONG),
    ],
)
def test_our_statements_do_what_those_of_sql_do(hudi_12: RealHudi, version: int, options: dict, tmp_path: Path) -> None:
    answers = []
    for number, change in enumerate((we_change, hudi_changes)):
        sides = Sides(hudi_12, tmp_path / f"t{number}", {**trip_options(version), **options})
        sides.we_write(trips(range(18)).select(SQL_ORDER))
        change(sides)
        answers.append(data_columns(sides.agree()))
    assert answers[0].num_rows > 15
    assert_same_rows(*answers, key=["id"])


@pytest.mark.smoke
def test_partial_updates_and_moves_are_read_by_hudi(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(9), **MOR})
    sides.we_write(trips(range(12)))
    merge = sides.table.merge(trips([3, 4, 5], ts=2)).on("id").when_matched_delete(field("source.seats") == 5)
    merge.when_matched_update({"note": "'in part'", "ts": "source.ts"}).execute()
    assert sides.agree()["note"].to_pylist().count("in part") >= 2
    sides.table.update(field("id") == trips([7])["id"][0], {"city": "'Elsewhere'"})
    assert sides.agree()["city"].to_pylist().count("Elsewhere") == 1


@pytest.mark.long
def test_rows_of_a_table_that_makes_its_keys_are_read_by_hudi(hudi_12: RealHudi, tmp_path: Path) -> None:
    for options in ({}, MOR):
        given = {key: value for key, value in trip_options(9).items() if not key.endswith("recordkey.field")}
        path = tmp_path / ("mor" if options else "cow")
        hf.write(trips(range(10)), path, {**given, **options})
        sides = Sides(hudi_12, path, {})
        merge = sides.table.merge(trips(range(8, 12), ts=3)).on("id").when_matched_update({"note": "'ours'"})
        merge.when_not_matched_insert().execute()
        sides.table.delete(field("seats") == 1)
        found = sides.agree()
        assert found["note"].to_pylist().count("ours") == 2


SEVERAL = [(1, "b", 15), (1, "c", 16), (1, "a", 14), (3, "x", 5), (3, "y", 6), (7, "f", 15), (7, "g", 16), (7, "e", 14)]


@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_merges_of_several_source_rows_and_of_names_in_any_case_do_the_same(
    hudi_12: RealHudi, mode: str, tmp_path: Path
) -> None:
    given = pa.table({"ID": pa.array([row[0] for row in SEVERAL], pa.int32())})
    given = given.append_column("USERNAME", pa.array([row[1] for row in SEVERAL]))
    given = given.append_column("Ts", pa.array([row[2] for row in SEVERAL]))
    statement = "ON t.Id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    answers = []
    for side in ("ours", "hudi"):
        name, path = f"several_{mode[:5].lower()}_{side}", tmp_path / side
        hudi_12.sql(
            f"CREATE TABLE {name} (id int, userName string, ts bigint) USING hudi LOCATION '{path}' TBLPROPERTIES "
            f"(primaryKey = 'id', preCombineField = 'ts', 'hoodie.record.merge.mode' = '{mode}')"
        )
        hudi_12.sql(f"INSERT INTO {name} VALUES (1, 'old', 10), (2, 'old', 10), (3, 'old', 10)")
        if side == "hudi":
            hudi_12.sql(f"MERGE INTO {name} t USING src s {statement}", rows={"src": given})
        else:
            hf.sql(f"MERGE INTO t USING src s {statement}", {"t": path, "src": given})
        answers.append(hudi_12.read(path).select(["id", "userName", "ts"]).sort_by("id"))
    assert answers[0] == answers[1]
    assert answers[0]["userName"].to_pylist()[0] == "c"


def test_merges_whose_source_rows_of_one_key_move_do_the_same(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Apache Hudi with a global index; it takes some row where nothing decides, and hudi_fast refuses."""
    settings = "primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'GLOBAL_SIMPLE', "
    settings += "'hoodie.simple.index.update.partition.path' = 'true'"
    statement = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    arriving = moving_rows(ARRIVING).select(["id", "note", "ts", "part"])  # Hudi assigns them by place
    options = {key: value for key, value in moving_options("GLOBAL_SIMPLE").items() if "index" in key}
    for side in ("ours", "hudi"):
        path, name = tmp_path / side, f"moving_{side}"
        hudi_12.sql(
            f"CREATE TABLE {name} (id bigint, note string, ts bigint, part string) USING hudi LOCATION '{path}' "
            f"PARTITIONED BY (part) TBLPROPERTIES ({settings})"
        )
        hudi_12.sql(f"INSERT INTO {name} SELECT id, note, ts, part FROM src", rows={"src": moving_rows(STORED)})
        if side == "hudi":
            for key, value in options.items():
                hudi_12.sql(f"SET {key} = {value}")
            hudi_12.sql(f"MERGE INTO {name} t USING src s {statement}", rows={"src": arriving})
        else:
            hf.merge(path, arriving, options=options).on("id").when_matched_update().when_not_matched_insert().execute()
        assert moved_rows(hudi_12.read(path)) == after_moving("GLOBAL_SIMPLE", "all columns"), side
