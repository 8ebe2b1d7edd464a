"""``hf.sql``: statements without Spark.

Modules: hudi_fast.local_sql.queries, hudi_fast.local_sql.sql, hudi_fast.dml.dml, hudi_fast.dml.sql_statements.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
SHOWN = "SELECT id, fare, note, city FROM trips ORDER BY id"


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    return made_at(tmp_path, request.param)


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def kept_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """A table for tests that leave it as it is."""
    return made_at(tmp_path_factory.mktemp("kept"), request.param)


def made_at(folder: Path, table_type: str) -> str:
    rows = {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Rome"], "fare": [10.0, 20.0, 30.0], "note": ["a", "b", None]}
    place = str(folder / "trips")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type}
    hf.write(pa.table({**rows, "ts": [1, 1, 1]}), place, options)
    return place


def listed(path: str, text: str = SHOWN, **more: Any) -> list[tuple[Any, ...]]:
    found = hf.sql(text, {"trips": path, **more})
    return [tuple(row.values()) for row in found.to_pylist()]


def counts(path: str, text: str, **more: Any) -> tuple[int, ...]:
    (row,) = listed(path, text, **more)
    return row


# ---- queries


@pytest.mark.slow("COPY_ON_WRITE")
def test_a_query_reads_tables_and_rows_of_the_program(path: str) -> None:
    prices = pd.DataFrame({"city": ["Oslo", "Rome"], "extra": [1, 2]})
    text = (
        "SELECT t.id, t.fare + p.extra AS fare FROM trips t JOIN prices p ON t.city = p.city WHERE t.id > 1 ORDER BY 1"
    )
    assert listed(path, text, prices=prices) == [(2, 22.0), (3, 32.0)]
    text = "WITH dear AS (SELECT city, max(fare) AS fare FROM trips GROUP BY city) SELECT count(*) FROM dear JOIN trips"
    assert listed(path, f"{text} ON dear.fare = trips.fare") == [(2,)]
    assert hf.sql(f"SELECT `id` FROM `{path}` WHERE city = 'Oslo'").to_pylist() == [{"id": 1}]
    assert hf.sql(f"SELECT max(id) AS m FROM hudi.`{path}`").to_pylist() == [{"m": 3}]
    assert hf.sql("SELECT count(*) AS n FROM TRIPS", {"trips": hf.HudiTable.open(path)}).to_pylist() == [{"n": 3}]


@pytest.mark.slow("COPY_ON_WRITE")
def test_all_columns_are_in_the_order_of_sparks_catalog(path: str) -> None:
    names = ["id", "fare", "note", "ts", "city"]
    for text in ("SELECT * FROM trips", "SELECT t.* FROM trips t WHERE id = 1"):
        assert hf.sql(text, {"trips": path}).column_names[-5:] == names
    assert hf.sql("DESCRIBE trips", {"trips": path})["col_name"].to_pylist() == ["id", "city", "fare", "note", "ts"]


@pytest.mark.slow("COPY_ON_WRITE")
def test_time_travel_and_changes(path: str) -> None:
    first = hf.HudiTable.open(path).history()["instant"][0].as_py()
    hf.sql("DELETE FROM trips WHERE id = 1", {"trips": path})
    hf.sql("UPDATE trips SET fare = 0 WHERE id = 2", {"trips": path})
    assert listed(path, f"SELECT count(*) FROM trips TIMESTAMP AS OF '{first}'") == [(3,)]
    assert listed(path, f"SELECT count(*) FROM trips VERSION AS OF {first}") == [(3,)]
    begin = hf.HudiTable.open(path).history()["completion"][1].as_py()
    text = f"SELECT id, fare FROM hudi_table_changes('trips', 'latest_state', '{begin}')"
    assert listed(path, text) == [(2, 0.0)]
    assert listed(path, f"SELECT count(*) FROM hudi_query('{path}', 'snapshot')") == [(2,)]


@pytest.mark.slow("COPY_ON_WRITE")
def test_without_duckdb_simple_queries_work(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert hf.sql("SELECT * FROM trips", {"trips": path}).num_rows == 3
    assert hf.sql("VALUES (1, 'a'), (-2, upper('b'))").to_pylist() == [
        {"col1": 1, "col2": "a"},
        {"col1": -2, "col2": "B"},
    ]
    assert counts(path, "INSERT INTO trips VALUES (4, 1.5, 'x', 2, 'Bonn')") == (1, 0, 0)
    with pytest.raises(hf.ConfigError, match=r"pip install .hudi-fast\[sql\]"):
        hf.sql("SELECT id FROM trips", {"trips": path})


# ---- changes


@pytest.mark.slow
def test_rows_are_inserted_by_position_by_name_and_into_partitions(path: str) -> None:
    assert counts(path, "INSERT INTO trips VALUES (4, 40, 'd', 2, 'Bonn')") == (1, 0, 0)
    assert counts(path, "INSERT INTO trips (id, city, ts) VALUES (5, 'Bonn', 2)") == (1, 0, 0)
    text = "INSERT INTO trips PARTITION (city = 'Lima') SELECT id + 5, fare, note, ts FROM trips WHERE id = 1"
    assert counts(path, text) == (1, 0, 0)
    more = pa.table({"city": ["Lima"], "id": [7], "ts": [3]})
    assert counts(path, "INSERT INTO trips BY NAME SELECT * FROM more", more=more) == (1, 0, 0)
    assert listed(path)[3:] == [
        (4, 40.0, "d", "Bonn"),
        (5, None, None, "Bonn"),
        (6, 10.0, "a", "Lima"),
        (7, None, None, "Lima"),
    ]
    hf.sql("INSERT OVERWRITE trips PARTITION (city = 'Bonn') SELECT 9, 9, 'z', 9", {"trips": path})
    assert [row[0] for row in listed(path)] == [1, 2, 3, 6, 7, 9]
    hf.sql("INSERT OVERWRITE trips VALUES (1, 1, 'o', 9, 'Oslo')", {"trips": path})
    assert listed(path) == [(1, 1.0, "o", "Oslo")]


@pytest.mark.slow("COPY_ON_WRITE")
def test_an_insert_may_be_an_upsert(path: str) -> None:
    options = {"hoodie.spark.sql.insert.into.operation": "upsert"}
    done = hf.sql("INSERT INTO trips VALUES (1, 11, 'new', 5, 'Oslo')", {"trips": path}, options)
    assert done.to_pylist() == [{"inserts": 0, "updates": 1, "deletes": 0}]
    assert listed(path)[0] == (1, 11.0, "new", "Oslo")


@pytest.mark.slow
def test_rows_are_updated_and_deleted(path: str) -> None:
    text = "UPDATE trips AS t SET fare = round(t.fare * 1.11, 1), note = concat(city, '-', id) WHERE t.id <> 2"
    assert counts(path, text) == (0, 2, 0)
    assert listed(path) == [(1, 11.1, "Oslo-1", "Oslo"), (2, 20.0, "b", "Rome"), (3, 33.3, "Rome-3", "Rome")]
    assert counts(path, "UPDATE trips SET city = 'Bonn' WHERE id = 2")[0] in (0, 1)
    assert counts(path, "DELETE FROM trips WHERE fare > 30 OR note LIKE 'Os%'") == (0, 0, 2)
    assert listed(path) == [(2, 20.0, "b", "Bonn")]
    hf.sql("TRUNCATE TABLE trips", {"trips": path})
    assert listed(path) == []


@pytest.mark.slow("COPY_ON_WRITE")
def test_partitions_are_truncated(path: str) -> None:
    with pytest.raises(hf.ConfigError, match="no partition city='Paris'"):
        hf.sql("TRUNCATE TABLE trips PARTITION (city = 'Paris')", {"trips": path})
    with pytest.raises(hf.ConfigError, match=r"partitioned by \['city'\], not by \['note'\]"):
        hf.sql("TRUNCATE TABLE trips PARTITION (note = 'a')", {"trips": path})
    hf.sql("TRUNCATE TABLE trips PARTITION (CITY = 'Rome')", {"trips": path})
    assert listed(path) == [(1, 10.0, "a", "Oslo")]


@pytest.mark.slow
def test_a_static_overwrite_replaces_what_its_partition_clause_matches(path: str) -> None:
    hf.sql("INSERT OVERWRITE trips PARTITION (city = 'Rome') SELECT 9, 9, 'z', 9 WHERE false", {"trips": path})
    assert listed(path) == [(1, 10.0, "a", "Oslo")]
    dynamic = {"hoodie.datasource.overwrite.mode": "dynamic"}
    hf.sql("INSERT OVERWRITE trips VALUES (2, 2, 'b', 9, 'Bonn')", {"trips": path}, dynamic)
    assert listed(path) == [(1, 10.0, "a", "Oslo"), (2, 2.0, "b", "Bonn")]
    hf.sql("INSERT OVERWRITE trips PARTITION (city) SELECT 3, 3, 'c', 9, 'Lima'", {"trips": path})
    assert listed(path) == [(3, 3.0, "c", "Lima")]


@pytest.mark.slow
def test_escapes_in_texts_are_those_of_spark(path: str) -> None:
    assert counts(path, r"INSERT INTO trips VALUES (4, 1, 'a\tb', 2, 'Oslo')") == (1, 0, 0)
    assert counts(path, r"UPDATE trips SET note = 'it\'s\t' WHERE id = 1") == (0, 1, 0)
    text = r"MERGE INTO trips t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'x\\y'"
    assert counts(path, text) == (0, 1, 0)
    assert [row[2] for row in listed(path)] == ["it's\t", "x\\y", None, "a\tb"]


COLLECTIONS = [
    ("array()", [], "map()", []),
    ("array(1, 2)", ["1", "2"], "map('z', null)", [("z", None)]),
    ("array('q', null)", ["q", None], "map('z', 3, 'y', 4)", [("z", 3), ("y", 4)]),
]
"""Arrays and maps whose elements have no type, the column's type, or one that Spark casts to it; and their values."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_queries_may_make_arrays_and_maps_and_expressions_may_not(kind: str, tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int32()), ("tags", pa.list_(pa.string())), ("sizes", pa.map_(pa.string(), pa.int32()))]
    )
    rows = pa.table({"id": [0, 1], "tags": [["x"]] * 2, "sizes": [[("k", 1)]] * 2}, schema)
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.table.type": kind}
    for number, (tags, list_, sizes, map_) in enumerate(COLLECTIONS):
        path = str(tmp_path / str(number))
        hf.write(rows, path, {"hoodie.table.name": "t", **options})
        for refused in (
            f"UPDATE t SET tags = {tags} WHERE id = 0",
            f"UPDATE t SET sizes = {sizes} WHERE id = 0",
            f"INSERT INTO t VALUES (2, {tags}, {sizes})",
        ):
            with pytest.raises(hf.UnsupportedFeatureError, match=r"(ARRAY|MAP)\(.*\) is not supported without Spark"):
                hf.sql(refused, {"t": path})
        assert len(hf.HudiTable.open(path).history()) == 1
        hf.sql(f"INSERT INTO t SELECT 2, {tags}, {sizes}", {"t": path})
        source = f"SELECT 1 id, {tags} tags, {sizes} sizes"
        set_ = "UPDATE SET tags = s.tags, sizes = s.sizes"
        hf.sql(f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN {set_}", {"t": path})
        found = [
            tuple(row.values()) for row in hf.sql("SELECT id, tags, sizes FROM t ORDER BY id", {"t": path}).to_pylist()
        ]
        assert found == [(0, ["x"], [("k", 1)]), (1, list_, map_), (2, list_, map_)]


@pytest.mark.slow
def test_rows_are_merged(path: str) -> None:
    towns, ops = ["Rome", "Rome", "Bonn", "Bonn"], ["u", "d", "i", "x"]
    feed = pa.table({"ID": [2, 3, 4, 5], "fare": [1.0, 2.0, 3.0, 4.0], "town": towns, "op": ops})
    text = """
        MERGE INTO trips t USING (SELECT * FROM feed) s ON t.id = s.id
        WHEN MATCHED AND s.op = 'd' THEN DELETE
        WHEN MATCHED THEN UPDATE SET fare = t.fare + s.fare, note = CASE WHEN t.note = 'b' THEN 'B' ELSE 'other' END
        WHEN NOT MATCHED AND op = 'i' THEN INSERT (id, fare, ts, city) VALUES (s.id, s.fare * 2, 7, s.town)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'alone'
    """
    assert counts(path, text, feed=feed) == (1, 2, 1)
    assert listed(path) == [(1, 10.0, "alone", "Oslo"), (2, 21.0, "B", "Rome"), (4, 6.0, None, "Bonn")]
    text = "MERGE INTO trips USING feed ON trips.id < feed.id - 3 WHEN MATCHED AND trips.id = 1 THEN DELETE"
    assert counts(path, text, feed=feed) == (0, 0, 1)


# ---- procedures and descriptions


@pytest.mark.slow
def test_procedures(path: str) -> None:
    hf.sql("UPDATE trips SET fare = 0 WHERE id = 1", {"trips": path})
    found = hf.sql("CALL show_commits(table => 'trips', limit => 1)", {"trips": path})
    assert (found.num_rows, found.schema.field("total_records_written").type) == (1, pa.int64())
    assert hf.sql(f"CALL create_savepoint(table => '{path}')").to_pylist() == [{"create_savepoint_result": True}]
    assert len(listed(path, "CALL show_savepoints(table => 'trips')")) == 1
    hf.sql("CALL run_clustering(table => 'trips', op => 'schedule_and_execute')", {"trips": path})
    assert listed(path)[0] == (1, 0.0, "a", "Oslo")
    assert "run_clean" in listed(path, "CALL help()")[0][0]


def test_a_folder_is_bootstrapped_and_its_files_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "day=1"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]}), folder / "part.parquet")
    place = tmp_path / "made"
    call = f"CALL run_bootstrap(table => 'made', table_type => 'COPY_ON_WRITE', bootstrap_path => '{folder.parent}', "
    call += f"base_path => '{place}', rowKey_field => 'id', partition_path_field => 'day')"
    assert hf.sql(call).to_pylist() == [{"status": 0}]
    assert listed(str(place), "SELECT id, fare FROM trips ORDER BY id") == [("a", 1.0), ("b", 2.0)]
    with pytest.raises(hf.TableExistsError):
        hf.sql(call)
    assert hf.sql(f"CALL show_bootstrap_partitions(path => '{place}')").to_pylist() == [{"indexed_partitions": "day=1"}]
    (shown,) = hf.sql(f"CALL show_bootstrap_mapping(path => '{place}')").to_pylist()
    assert (shown["partition"], shown["source_partition"], shown["source_file"]) == ("day=1", "day=1", "part.parquet")


@pytest.mark.slow("COPY_ON_WRITE")
def test_two_tables_are_compared_and_instants_exported(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    hf.sql("DELETE FROM trips WHERE id = 1", {"trips": path})
    newest = hf.HudiTable.open(path).history()["instant"][-1].as_py()
    (answer,) = listed(path, f"CALL commits_compare(table => 'trips', path => '{copy}')")[0]
    assert answer == f"Source trips is ahead by 1 commits. Commits to catch up - [{newest}]"
    (answer,) = listed(str(copy), f"CALL commits_compare(table => 'trips', path => '{path}')")[0]
    assert answer == f"Target {path} is ahead by 1 commits. Commits to catch up - [{newest}]"
    text = f"CALL export_instants(table => 'trips', local_folder => '{tmp_path}', limit => 1)"
    assert listed(path, text) == [(f"Exported 1 Instants to {tmp_path}",)]
    assert len(list(tmp_path.glob("2*commit"))) == 1
    with pytest.raises(hf.ConfigError, match="not a folder"):
        hf.sql("CALL export_instants(table => 'trips', local_folder => '/no/where')", {"trips": path})


def test_markers_of_a_finished_write_are_deleted(path: str) -> None:
    instant = hf.HudiTable.open(path).history()["instant"][0].as_py()
    folder = Path(path) / ".hoodie" / ".temp" / instant
    folder.mkdir(parents=True)
    assert listed(path, f"CALL delete_marker(table => 'trips', instant_time => '{instant}')") == [(True,)]
    assert not folder.exists()


@pytest.mark.slow("COPY_ON_WRITE")
def test_descriptions(path: str) -> None:
    assert listed(path, "SHOW PARTITIONS trips") == [("Oslo",), ("Rome",)]
    assert listed(path, "SHOW TBLPROPERTIES trips ('hoodie.table.name')") == [("hoodie.table.name", "trips")]
    assert listed(path, "REFRESH TABLE trips") == []


def test_properties_are_set_and_removed(path: str) -> None:
    assert listed(path, "ALTER TABLE trips SET TBLPROPERTIES ('owner' = 'city team', days = '30')") == []
    assert listed(path, "SHOW TBLPROPERTIES trips ('owner')") == [("owner", "city team")]
    assert listed(path, "ALTER TABLE trips UNSET TBLPROPERTIES IF EXISTS (owner, gone)") == []
    assert listed(path, "SHOW TBLPROPERTIES trips ('owner')") == []
    assert listed(path, "SHOW TBLPROPERTIES trips ('days')") == [("days", "30")]
    with pytest.raises(hf.ConfigError, match="is an option of calls"):
        hf.sql("ALTER TABLE trips SET TBLPROPERTIES (hoodie.keep.max.commits = '40')", {"trips": path})


# ---- what is refused


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("SELECT * FROM nothing", hf.ConfigError, r"no table nothing\. Known are rows, trips\. Pass it"),
        ("SELECT * FROM `/no/where`", hf.TableNotFoundError, "/no/where"),
        ("SELECT nope FROM trips", hf.ConfigError, "duckdb refuses"),
        ("SELECT FROM WHERE", hf.ConfigError, "(?i)duckdb refuses|cannot be read|name"),
        ("SELECT * FROM hudi_filesystem_view('trips')", hf.UnsupportedFeatureError, "hudi_filesystem_view needs Spark"),
        ("SELECT id FROM rows TIMESTAMP AS OF '2024-01-01'", hf.ConfigError, "not a Hudi table"),
        ("INSERT INTO rows VALUES (1)", hf.ConfigError, "rows is not a Hudi table"),
        ("INSERT INTO trips VALUES (1, 2)", hf.ConfigError, "2 columns .* 5 are expected: id, fare, note, ts, city"),
        (
            "INSERT INTO trips VALUES (1, 'x', 'a', 1, 'Oslo')",
            hf.InvalidDataError,
            "'fare' is of type string and does not fit double",
        ),
        ("INSERT INTO trips (id, nope) VALUES (1, 2)", hf.ConfigError, "no column nope"),
        ("VALUES (1, 2), (3)", hf.ConfigError, "VALUES"),
        ("UPDATE trips SET id = 5", hf.ConfigError, "cannot be set"),
        ("UPDATE trips SET fare = my_udf(id)", hf.UnsupportedFeatureError, "(?i)my_udf"),
        ("UPDATE trips SET fare = 'x' + 1", hf.ConfigError, "types do not fit|cannot be compared"),
        ("DELETE FROM trips WHERE id IN (SELECT 1)", hf.UnsupportedFeatureError, "IN .SELECT 1"),
        ("MERGE INTO trips t USING rows s ON t.id = s.id", hf.ConfigError, "expected WHEN"),
        ("CREATE TABLE t (id int) USING hudi", hf.ConfigError, "no table t"),
        ("ALTER TABLE trips ADD COLUMNS (a int)", hf.UnsupportedFeatureError, "ALTER TABLE ... needs Spark"),
        ("SET x = 1", hf.UnsupportedFeatureError, "SET X ... needs Spark"),
        (
            "CALL repair_deduplicate('trips', 'p', '/o')",
            hf.UnsupportedFeatureError,
            "repair_deduplicate is not supported",
        ),
        ("CALL nothing()", hf.ConfigError, "no procedure nothing"),
        (
            "CALL show_file_status('trips', file => 'f')",
            hf.UnsupportedFeatureError,
            "show_file_status is not supported",
        ),
        ("CALL run_ttl(table => 'trips')", hf.ConfigError, "no partition would ever expire"),
        ("CALL show_commits(tabel => 'trips')", hf.ConfigError, "Did you mean table"),
        ("", hf.UnsupportedFeatureError, "needs Spark"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    kept_path: str, text: str, error: type[Exception], said: str
) -> None:
    before = hf.HudiTable.open(kept_path).history()
    with pytest.raises(error, match=said):
        hf.sql(text, {"trips": kept_path, "rows": pa.table({"id": [1]})})
    assert hf.HudiTable.open(kept_path).history() == before


def test_arguments_that_are_wrong_are_refused(path: str) -> None:
    with pytest.raises(hf.ConfigError, match="tables is a mapping"):
        hf.sql("SELECT 1", [path])  # type: ignore[arg-type]
    with pytest.raises(hf.ConfigError, match="differ only in upper and lower case"):
        hf.sql("SELECT 1", {"T": path, "t": path})
    with pytest.raises(hf.ConfigError, match="A statement is a text"):
        hf.sql(5)  # type: ignore[arg-type]
