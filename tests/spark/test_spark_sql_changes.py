"""INSERT, UPDATE, DELETE and MERGE INTO by name."""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.spark.sql.catalog import find_entry
from hudi_fast.spark.sql.changes import write_settings
from tests.spark.sql_sessions import fast, listed

__all__ = ["fast"]

COLUMNS = "(id int, name string, price double, ts bigint, city string)"
ROWS = "SELECT id, name, price, ts, city FROM t"


@pytest.fixture(params=["cow", "mor"])
def goods(fast, request):
    fast.sql(
        f"CREATE TABLE t {COLUMNS} USING hudi PARTITIONED BY (city) "
        f"TBLPROPERTIES (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts')"
    )
    fast.sql("INSERT INTO t VALUES (1, 'a', 1.5, 1, 'x'), (2, 'b', 2.5, 1, 'y'), (3, 'c', 3.5, 1, 'y')")
    return fast


@pytest.mark.smoke("cow")
def test_rows_are_inserted_by_position_by_column_and_by_name(goods):
    goods.sql("INSERT INTO t (ts, ID, city) VALUES (5, 4, 'x')")
    goods.sql("INSERT INTO t BY NAME SELECT 'z' AS city, 5 AS id, 6L AS ts")
    goods.sql("INSERT INTO t PARTITION (city = 'w') SELECT 6, 'f', 6.5, 1")
    found = listed(goods, "SELECT id, name, ts, city FROM t WHERE id > 3")
    assert found == [(4, None, 5, "x"), (5, None, 6, "z"), (6, "f", 1, "w")]


def test_the_operation_of_an_insert_is_a_setting(goods):
    goods.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    goods.sql("INSERT INTO t VALUES (1, 'later', 9.0, 2, 'x'), (2, 'earlier', 9.0, 0, 'y')")
    assert listed(goods, "SELECT name FROM t WHERE id < 3") == [("b",), ("later",)]
    entry = find_entry(goods, ("t",))
    assert write_settings(goods, entry)["hoodie.spark.sql.insert.into.operation"] == "upsert"
    goods.sql("RESET hoodie.spark.sql.insert.into.operation")


def test_overwriting(goods):
    goods.sql("INSERT OVERWRITE t PARTITION (city = 'y') SELECT 7, 'g', 7.5, 1")
    assert listed(goods, "SELECT id, city FROM t") == [(1, "x"), (7, "y")]
    goods.sql("INSERT OVERWRITE t PARTITION (city = 'y') SELECT 7, 'g', 7.5, 1 WHERE false")
    assert listed(goods, "SELECT id, city FROM t") == [(1, "x")]
    goods.sql("SET hoodie.datasource.overwrite.mode = dynamic")
    goods.sql("INSERT OVERWRITE t SELECT 8, 'h', 8.5, 1, 'z'")
    assert listed(goods, "SELECT id, city FROM t") == [(1, "x"), (8, "z")]
    goods.sql("RESET hoodie.datasource.overwrite.mode")
    goods.sql("INSERT OVERWRITE TABLE t SELECT id + 1, name, price, ts, city FROM t")
    assert listed(goods, "SELECT id, city FROM t") == [(2, "x"), (9, "z")]


@pytest.mark.smoke("mor")
def test_updates_and_deletes_use_sparks_expressions(goods):
    goods.createDataFrame([(2,), (9,)], "id int").createOrReplaceTempView("wanted")
    goods.sql(
        "UPDATE t AS a SET a.Name = concat(upper(a.name), '!'), price = price * 2 WHERE a.id IN (SELECT id FROM wanted)"
    )
    assert listed(goods, "SELECT name, price FROM t WHERE id = 2") == [("B!", 5.0)]
    goods.sql("DELETE FROM t WHERE price > (SELECT avg(price) FROM t)")
    assert listed(goods, "SELECT id FROM t") == [(1,)]
    goods.sql("UPDATE t SET ts = ts + 1")
    goods.sql("DELETE FROM t")
    assert listed(goods, ROWS) == []


@pytest.mark.smoke("cow", "mor")
def test_a_merge_with_every_clause(goods):
    values = "(1, 'new', 9L), (2, 'gone', 9L), (4, 'd', 9L), (5, 'no', 0L)"
    goods.sql(f"CREATE TABLE s USING parquet AS SELECT * FROM VALUES {values} s(k, n, at)")
    goods.sql(
        "WITH q AS (SELECT * FROM s WHERE k < 9) MERGE INTO sql_tests.t AS a USING q ON a.id = q.k "
        "WHEN MATCHED AND CASE WHEN q.n = 'gone' THEN true ELSE false END THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = q.n, ts = q.at "
        "WHEN NOT MATCHED AND q.at > 0 THEN INSERT (id, name, ts, city) VALUES (q.k, q.n, q.at, 'new') "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'alone', ts = a.ts + 1"
    )
    assert listed(goods, ROWS) == [(1, "new", 1.5, 9, "x"), (3, "alone", 3.5, 2, "y"), (4, "d", None, 9, "new")]


def test_a_merge_of_whole_rows_from_a_hudi_table(goods):
    query = "SELECT id + 1 AS id, 'm' AS name, price, 5L AS ts, city FROM t"
    goods.sql(f"CREATE TABLE s USING hudi TBLPROPERTIES (primaryKey = 'id') AS {query}")
    goods.sql(
        "MERGE INTO t USING s ON s.id = t.id AND t.city = s.city "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert listed(goods, "SELECT id, name, ts FROM t WHERE ts = 5") == [(2, "m", 5), (3, "m", 5), (4, "m", 5)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO t VALUES (1, 'a')", "the query has 2 columns"),
        ("INSERT INTO t VALUES ('no number', 'a', 1.0, 1, 'x')", "does not fit"),
        ("INSERT INTO t VALUES (3000000000L, 'a', 1.0, 1, 'x')", "does not fit"),
        ("INSERT INTO t (id, nothing) VALUES (1, 2)", "no column nothing"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS other", "no column other"),
        ("UPDATE t SET id = 5", "record key columns"),
        ("UPDATE t SET nothing = 5", "no column nothing"),
        ("UPDATE t SET name = nothing", "nothing"),
        ("DELETE FROM t WHERE nothing = 1", "nothing"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1", "no column nothing"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name", "Several source rows"),
    ],
)
def test_bad_statements_change_nothing(fast, statement, message):
    fast.sql(f"CREATE TABLE t {COLUMNS} USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')")
    fast.sql("INSERT INTO t VALUES (1, 'a', 1.5, 1, 'x')")
    fast.createDataFrame([(1, "p"), (1, "q")], "id int, name string").createOrReplaceTempView("s")
    with pytest.raises(hf.HudiError, match=message):
        fast.sql(statement)
    assert listed(fast, ROWS) == [(1, "a", 1.5, 1, "x")]


def test_a_read_optimized_entry_is_not_written(fast, tmp_path):
    from dataclasses import replace

    from hudi_fast.spark.sql.catalog import create_entry

    fast.sql(f"CREATE TABLE t {COLUMNS} USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id')")
    fast.sql("INSERT INTO t VALUES (1, 'a', 1.5, 1, 'x')")
    fast.sql("UPDATE t SET name = 'b'")
    entry = find_entry(fast, ("t",))
    properties = {**entry.properties, "hoodie.query.as.ro.table": "true"}
    create_entry(fast, replace(entry, name=("sql_tests", "t_ro"), properties=properties, managed=False))
    assert listed(fast, "SELECT name FROM t_ro") == [("a",)]
    assert listed(fast, "SELECT name FROM t") == [("b",)]
    with pytest.raises(hf.UnsupportedFeatureError, match=r"change sql_tests\.t instead"):
        fast.sql("DELETE FROM t_ro")
