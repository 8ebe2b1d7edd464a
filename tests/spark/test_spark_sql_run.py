"""SQL statements in a switched-on session: names, views, time travel, parameters, and what stays Spark's.

Modules: hudi_fast.spark_api.sql.queries, hudi_fast.spark_api.sql.reading, hudi_fast.spark.session.
"""

from __future__ import annotations

import datetime as dt
import decimal

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.sql.statements import run_sql
from tests.spark.sql_sessions import fast, listed

__all__ = ["fast"]

CREATE = "CREATE TABLE t (id int, name string, day date, city string) USING hudi PARTITIONED BY (city)"
KEY = " TBLPROPERTIES (primaryKey = 'id')"


@pytest.fixture
def rides(fast):
    fast.sql(CREATE + KEY)
    fast.sql("INSERT INTO t VALUES (1, 'a', DATE '2024-01-01', 'x'), (2, 'b', DATE '2024-01-02', 'y')")
    return fast


@pytest.mark.smoke
def test_a_table_is_read_by_every_form_of_its_name(rides):
    for name in ("t", "T", "sql_tests.t", "`sql_tests`.`t`", "spark_catalog.sql_tests.t"):
        assert listed(rides, f"SELECT id, city FROM {name}") == [(1, "x"), (2, "y")]
    assert listed(rides, "SELECT sql_tests.t.id, t.name FROM sql_tests.t WHERE sql_tests.t.id > 1") == [(2, "b")]
    assert listed(rides, "SELECT x.id FROM t x JOIN t AS y ON x.id = y.id + 1") == [(2,)]
    assert rides.table("sql_tests.t").count() == rides.read.table("t").count() == 2
    rides.sql("USE default")
    assert listed(rides, "WITH t AS (SELECT id FROM sql_tests.t) SELECT * FROM t WHERE id < 2") == [(1,)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rides.sql("SELECT * FROM t")


def test_partition_columns_come_last(rides):
    rides.sql("ALTER TABLE t ADD COLUMNS (extra int)")
    assert rides.sql("SELECT * FROM t").columns[-2:] == ["extra", "city"]


def test_views_over_a_table_show_its_present_rows(rides):
    rides.sql("CREATE VIEW v (number, place) AS SELECT id, city FROM t WHERE id > 1")
    rides.sql("CREATE TEMPORARY VIEW w AS SELECT count(*) AS n FROM v")
    assert listed(rides, "SELECT * FROM w") == [(1,)]
    rides.sql("INSERT INTO t VALUES (3, 'c', NULL, 'x')")
    assert listed(rides, "SELECT * FROM w") == [(2,)]
    assert rides.table("w").collect()[0][0] == 2
    rides.sql("USE default")
    assert listed(rides, "SELECT number FROM sql_tests.v") == [(2,), (3,)]
    with pytest.raises(hf.TableExistsError, match="a table or view of that name"):
        rides.sql("CREATE VIEW sql_tests.v AS SELECT * FROM sql_tests.t")
    rides.sql("CREATE OR REPLACE VIEW sql_tests.v AS SELECT id AS number FROM sql_tests.t WHERE id = 1")
    assert listed(rides, "SELECT number FROM sql_tests.v") == [(1,)]
    with pytest.raises(hf.UnsupportedFeatureError, match="global temporary view"):
        rides.sql("CREATE GLOBAL TEMPORARY VIEW g AS SELECT * FROM sql_tests.t")


def test_views_of_the_program_leave_no_trace(rides):
    before = [one.name for one in rides.catalog.listTables()]
    assert listed(rides, "SELECT count(*) FROM t") == [(2,)]
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        rides.sql("SELECT nothing FROM t")
    assert [one.name for one in rides.catalog.listTables()] == before


@pytest.mark.smoke
def test_time_travel(rides):
    first = hf.HudiTable.open(_path(rides)).history()["instant"][0].as_py()
    rides.sql("DELETE FROM t WHERE id = 1")
    assert listed(rides, "SELECT id FROM t") == [(2,)]
    assert listed(rides, f"SELECT id FROM t VERSION AS OF {first}") == [(1,), (2,)]
    assert listed(rides, f"SELECT id FROM t TIMESTAMP AS OF '{first}' WHERE id < 2") == [(1,)]
    assert listed(rides, "SELECT id FROM t TIMESTAMP AS OF current_timestamp()") == [(2,)]
    assert listed(rides, "SELECT id FROM t TIMESTAMP AS OF date_sub(current_date(), 365)") == []
    with pytest.raises(hf.ConfigError, match="the expression is null"):
        rides.sql("SELECT id FROM t TIMESTAMP AS OF cast(NULL AS timestamp)")
    assert rides.read.option("as.of.instant", first).table("t").count() == 2


def test_parameters(rides):
    assert listed(rides, "SELECT 1") == [(1,)]
    assert [tuple(row) for row in rides.sql("SELECT id FROM t WHERE name = :n", {"n": "b"}).collect()] == [(2,)]
    assert rides.sql("SELECT id FROM t WHERE id = {x}", x=1).count() == 1
    values = {"name": "it's \\ ok", "day": dt.date(2024, 5, 6), "id": 2}
    rides.sql("UPDATE t SET name = :name, day = :day WHERE id = :id", values)
    assert listed(rides, "SELECT name, day FROM t WHERE id = 2") == [("it's \\ ok", dt.date(2024, 5, 6))]
    run_sql(rides, "DELETE FROM t WHERE id = ? AND name <> ?", [1, "z"])
    assert listed(rides, "SELECT id FROM t") == [(2,)]
    rides.sql("INSERT INTO t VALUES (:a, :b, :c, :d)", {"a": 5, "b": None, "c": None, "d": "x"})
    assert listed(rides, "SELECT id, name FROM t WHERE city = 'x'") == [(5, None)]
    with pytest.raises(hf.ConfigError, match="more parameters than the 1 values"):
        run_sql(rides, "DELETE FROM t WHERE id = ? AND id = ?", [1])
    with pytest.raises(hf.UnsupportedFeatureError, match="type list"):
        rides.sql("DELETE FROM t WHERE id = :a", {"a": [1]})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (3_000_000_000, 3_000_000_000),
        (1.5, 1.5),
        (decimal.Decimal("1.50"), decimal.Decimal("1.50")),
        (b"\x01\xff", bytearray(b"\x01\xff")),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
        (None, None),
    ],
)
def test_values_of_parameters_keep_their_type(fast, value, expected):
    from hudi_fast.spark_api.sql.statements import _literal

    assert fast.sql(f"SELECT {_literal(value)}").collect()[0][0] == expected


def test_other_tables_stay_sparks(rides, tmp_path):
    rides.sql(f"CREATE TABLE plain USING parquet LOCATION '{tmp_path}/p' AS SELECT id, name FROM t")
    rides.sql("INSERT INTO plain SELECT id + 10, name FROM t")
    assert listed(rides, "SELECT id FROM plain") == [(1,), (11,), (12,), (2,)]
    rides.sql("CREATE VIEW over_plain AS SELECT * FROM plain")
    assert rides.table("over_plain").count() == 4
    with pytest.raises(Exception, match="UPDATE TABLE"):
        rides.sql("UPDATE plain SET id = 1")
    rides.sql("DROP TABLE plain")
    assert rides.sql("EXPLAIN SELECT * FROM t").count() == 1


def test_a_statement_half_understood_is_refused_whole(rides):
    for text, place in (
        ("MERGE INTO t USING (SELECT 1) s ON t.id = s.id", "expected WHEN, found the end"),
        ("INSERT INTO t REPLACE WHERE id = 1 SELECT 1", "REPLACE is not supported"),
        ("ALTER TABLE t ADD COLUMNS (a int NOT NULL)", "column"),
        ("CREATE TABLE u (a int) USING hudi NONSENSE 1", "expected a clause"),
    ):
        with pytest.raises(hf.ConfigError, match=place):
            rides.sql(text)
    assert listed(rides, "SELECT count(*) FROM t") == [(2,)]
    with pytest.raises(Exception, match=r"PARSE_SYNTAX_ERROR|syntax error"):
        rides.sql("DELETE FROM nothing x y z")


def test_switched_off_again_names_are_sparks(rides):
    hf.accelerate(rides, False)
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        rides.sql("SELECT * FROM t").collect()
    hf.accelerate(rides)
    assert listed(rides, "SELECT count(*) FROM t") == [(2,)]


def _path(session):
    from hudi_fast.spark_api.sql.catalog import find_entry

    return find_entry(session, ("t",)).path


def test_a_view_gets_another_query(rides):
    rides.sql("CREATE VIEW v AS SELECT id FROM t")
    rides.sql("ALTER VIEW v AS SELECT name FROM t WHERE id = 2")
    assert listed(rides, "SELECT * FROM v") == [("b",)]
    rides.sql("CREATE TEMPORARY VIEW w AS SELECT id FROM t")
    rides.sql("ALTER VIEW w AS SELECT city FROM t WHERE id = 1")
    assert listed(rides, "SELECT * FROM w") == [("x",)]
    with pytest.raises(hf.TableNotFoundError, match="nothing"):
        rides.sql("ALTER VIEW nothing AS SELECT id FROM t")


@pytest.mark.parametrize(
    "text",
    [
        "CACHE TABLE t",
        "CACHE LAZY TABLE sql_tests.t OPTIONS ('storageLevel' 'DISK_ONLY')",
        "UNCACHE TABLE IF EXISTS t",
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (city = 'z')",
        "LOAD DATA LOCAL INPATH '/nowhere' INTO TABLE t",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_what_hudi_tables_do_not_take_is_refused_by_name(rides, text):
    with pytest.raises(hf.UnsupportedFeatureError, match=r"of the Hudi table .*t is not supported\. \w+"):
        rides.sql(text)


@pytest.mark.parametrize(
    "text", ["ANALYZE TABLE t COMPUTE STATISTICS", "MSCK REPAIR TABLE t", "ALTER TABLE t RECOVER PARTITIONS"]
)
def test_what_hudi_tables_do_not_need_does_nothing(rides, text):
    with pytest.warns(hf.HudiWarning, match="did nothing: "):
        assert rides.sql(text).collect() == []


def test_tables_of_spark_are_cached_and_analyzed(rides, tmp_path):
    rides.sql(f"CREATE TABLE plain (id int) USING parquet LOCATION '{tmp_path}/plain'")
    for text in ("CACHE TABLE plain", "UNCACHE TABLE plain", "ANALYZE TABLE plain COMPUTE STATISTICS"):
        rides.sql(text)
    rides.sql("CACHE TABLE cached AS SELECT id FROM t")
    assert listed(rides, "SELECT * FROM cached") == [(1,), (2,)]
    rides.sql("UNCACHE TABLE cached")
    rides.catalog.dropTempView("cached")
