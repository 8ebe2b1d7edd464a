"""CREATE, ALTER, DROP, TRUNCATE, DESCRIBE, SHOW and indexes of Hudi tables.

Modules: hudi_fast.spark_api.sql.definitions, hudi_fast.spark_api.sql.descriptions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.sql.catalog import find_entry
from tests.spark.sql_sessions import fast, listed

__all__ = ["fast"]

COLUMNS = "(id int COMMENT 'the key', name string, part struct<a:int,b:string>, city string, day date)"


def table_of(session, name="t"):
    return hf.HudiTable.open(find_entry(session, (name,)).path)


@pytest.mark.smoke
def test_a_table_is_made_as_it_is_defined(fast):
    fast.sql(
        f"CREATE TABLE IF NOT EXISTS t {COLUMNS} USING hudi PARTITIONED BY (day, city) COMMENT 'goods' "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'day', hoodie.write.table.version = 8, "
        "note = 'x')"
    )
    config = table_of(fast).config
    assert (config.name, config.table_type, config.version) == ("t", "MERGE_ON_READ", 8)
    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == (
        ("id",),
        ("day", "city"),
        ("day",),
    )
    assert config.hive_style
    assert table_of(fast).schema.names == ["id", "name", "part", "day", "city"]
    assert fast.table("t").schema["part"].dataType.simpleString() == "struct<a:int,b:string>"
    fast.sql("CREATE TABLE IF NOT EXISTS t (other int) USING hudi")
    described = {row[0]: row[1] for row in fast.sql("DESCRIBE EXTENDED t").collect()}
    assert (described["id"], described["Provider"], described["Comment"]) == ("int", "hudi", "goods")
    assert described["Type"] == "MANAGED"
    assert listed(fast, "SHOW TBLPROPERTIES t ('note')") == [("note", "x")]
    assert "does not have property" in listed(fast, "SHOW TBLPROPERTIES t (nothing)")[0][1]


def test_what_is_shown_makes_the_same_table_again(fast):
    fast.sql(f"CREATE TABLE t {COLUMNS} USING hudi PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'id')")
    shown = fast.sql("SHOW CREATE TABLE t").first()[0]
    fast.sql(shown.replace("sql_tests.t", "sql_tests.u"))
    assert table_of(fast, "u").schema.names == table_of(fast).schema.names
    assert table_of(fast, "u").config.partition_fields == ("city",)


def test_a_table_of_a_query_and_one_like_another(fast, tmp_path):
    place = f"LOCATION '{tmp_path}/t'"
    fast.sql(f"CREATE TABLE t USING hudi PARTITIONED BY (p) {place} AS SELECT 'x' AS p, id AS n FROM range(3)")
    assert listed(fast, "SELECT n, p FROM t") == [(0, "x"), (1, "x"), (2, "x")]
    assert fast.sql("SELECT * FROM t").columns[-2:] == ["n", "p"]
    fast.sql("CREATE TABLE u LIKE t")
    assert table_of(fast, "u").schema.names == ["n", "p"]
    fast.range(1).write.format("parquet").saveAsTable("plain")
    fast.sql("CREATE TABLE w LIKE plain USING hudi")
    assert table_of(fast, "w").schema.names == ["id"]
    with pytest.raises(hf.TableExistsError, match="holds a Hudi table"):
        fast.sql(f"CREATE TABLE again USING hudi {place} AS SELECT 1 AS a")


def test_a_table_that_is_there_is_entered_with_its_own_definition(fast, tmp_path):
    fast.sql(f"CREATE TABLE t (id int, city string) USING hudi PARTITIONED BY (city) LOCATION '{tmp_path}/t'")
    fast.sql("INSERT INTO t VALUES (1, 'x')")
    fast.sql("DROP TABLE t")
    assert (tmp_path / "t" / ".hoodie").is_dir()
    fast.sql(f"CREATE TABLE u USING hudi LOCATION '{tmp_path}/t'")
    assert listed(fast, "SELECT id, city FROM u") == [(1, "x")]
    assert [row[0] for row in fast.sql("DESCRIBE u").collect()][-3:] == [
        "# Partition Information",
        "# col_name",
        "city",
    ]
    with pytest.raises(hf.ConfigError, match=r"other columns; \['id'\] differ"):
        fast.sql(f"CREATE TABLE w (id string, city string) USING hudi LOCATION '{tmp_path}/t'")
    fast.sql("DROP TABLE u PURGE")
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_location_may_have_spaces_and_percent_signs(fast, tmp_path):
    place = tmp_path / "a b%20ü"
    fast.sql(f"CREATE TABLE t (id int) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{place}'")
    fast.sql("INSERT INTO t VALUES (1)")
    assert listed(fast, "SELECT id FROM t") == [(1,)]
    assert hf.HudiTable.open(place).to_arrow(["id"]).num_rows == 1


def test_dropping_a_managed_table_deletes_its_files(fast):
    fast.sql("CREATE TABLE t (id int) USING hudi")
    path = Path(table_of(fast).path)
    fast.sql("DROP TABLE t")
    assert not path.exists()
    fast.sql("DROP TABLE IF EXISTS t")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        fast.sql("DROP TABLE t")


@pytest.mark.smoke
def test_columns_are_changed_in_table_and_catalog(fast):
    fast.sql("CREATE TABLE t (id int, n int, s struct<a:int>, city string) USING hudi PARTITIONED BY (city)")
    fast.sql("INSERT INTO t SELECT 1, 2, named_struct('a', 3), 'x'")
    fast.sql("ALTER TABLE t ADD COLUMNS (extra decimal(10,2) COMMENT 'money' AFTER id, s.b string)")
    fast.sql("ALTER TABLE t ALTER COLUMN n TYPE bigint COMMENT 'wide'")
    fast.sql("ALTER TABLE t RENAME COLUMN extra TO money")
    fast.sql("ALTER TABLE t ALTER COLUMN money AFTER n")
    fast.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
    rows = {row[0]: row[1:] for row in fast.sql("DESCRIBE t").collect()}
    assert rows["money"] == ("decimal(10,2)", "money")
    assert rows["n"] == ("bigint", "wide")
    assert rows["s"][0] == "struct<a:int,b:string>"
    assert listed(fast, "SELECT money, id, n, s.a, s.b, city FROM t") == [(None, 1, 2, 3, None, "x")]
    fast.sql("ALTER TABLE t DROP COLUMNS (money, s.b)")
    assert fast.sql("SELECT * FROM t").columns[-4:] == ["id", "n", "s", "city"]
    assert listed(fast, "SHOW TBLPROPERTIES t (a)") == [("a", "b")]
    fast.sql("ALTER TABLE t UNSET TBLPROPERTIES (a)")
    assert "does not have" in listed(fast, "SHOW TBLPROPERTIES t (a)")[0][1]
    for text in (
        "ALTER TABLE t DROP COLUMN city",
        "ALTER TABLE t ALTER COLUMN n TYPE int",
        "ALTER TABLE t ALTER COLUMN n SET NOT NULL",
        "ALTER TABLE t SET TBLPROPERTIES (primaryKey = 'n')",
        "ALTER TABLE t RENAME TO elsewhere.t",
    ):
        with pytest.raises(hf.HudiError):
            fast.sql(text)


def test_a_table_is_renamed(fast):
    fast.sql("CREATE TABLE t (id int) USING hudi")
    fast.sql("INSERT INTO t VALUES (1)")
    fast.sql("ALTER TABLE t RENAME TO sql_tests.u")
    assert listed(fast, "SELECT id FROM u") == [(1,)]
    fast.sql("CREATE TABLE t (id int) USING hudi")
    with pytest.raises(hf.ConfigError, match="a table or view of that name"):
        fast.sql("ALTER TABLE t RENAME TO u")


def test_partitions(fast):
    fast.sql("CREATE TABLE t (id int, city string, day int) USING hudi PARTITIONED BY (city, day)")
    fast.sql("INSERT INTO t VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1)")
    assert listed(fast, "SHOW PARTITIONS t") == [("city=x/day=1",), ("city=x/day=2",), ("city=y/day=1",)]
    assert listed(fast, "SHOW PARTITIONS t PARTITION (day = 1)") == [("city=x/day=1",), ("city=y/day=1",)]
    fast.sql("ALTER TABLE t DROP PARTITION (city = 'x', day = 1)")
    assert listed(fast, "SHOW PARTITIONS t") == [("city=x/day=2",), ("city=y/day=1",)]
    fast.sql("TRUNCATE TABLE t PARTITION (city = 'y')")
    assert listed(fast, "SELECT id FROM t") == [(2,)]
    with pytest.raises(hf.ConfigError, match="no partition city='q'"):
        fast.sql("ALTER TABLE t DROP PARTITION (city = 'q')")
    fast.sql("ALTER TABLE t DROP IF EXISTS PARTITION (city = 'q')")
    with pytest.raises(hf.ConfigError, match=r"partitioned by \['city', 'day'\]"):
        fast.sql("SHOW PARTITIONS t PARTITION (name = 'q')")
    fast.sql("TRUNCATE TABLE t")
    assert listed(fast, "SELECT id FROM t") == []
    fast.sql("CREATE TABLE plain (id int) USING hudi")
    with pytest.raises(hf.ConfigError, match="not partitioned"):
        fast.sql("SHOW PARTITIONS plain")


def test_indexes(fast):
    fast.sql("CREATE TABLE t (id int, name string, ts bigint) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    fast.sql("INSERT INTO t VALUES (1, 'a', 1704067200), (2, 'b', 1735689600)")
    fast.sql("CREATE INDEX record_index ON t (id)")
    fast.sql("CREATE INDEX by_name ON t USING secondary_index(name)")
    fast.sql("CREATE INDEX by_day ON t USING column_stats(ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd')")
    names = {row[0] for row in listed(fast, "SHOW INDEXES FROM t")}
    assert {"record_index", "by_name", "by_day", "column_stats"} <= names
    assert listed(fast, "SELECT id FROM t WHERE name = 'b'") == [(2,)]
    fast.sql("CREATE INDEX IF NOT EXISTS by_name ON t USING secondary_index(name)")
    with pytest.raises(hf.ConfigError, match="an index of that name"):
        fast.sql("CREATE INDEX by_name ON t USING secondary_index(name)")
    fast.sql("DROP INDEX by_name ON t")
    fast.sql("DROP INDEX IF EXISTS by_name ON t")
    with pytest.raises(hf.ConfigError, match="no index of that name"):
        fast.sql("DROP INDEX by_name ON t")
    with pytest.raises(hf.ConfigError, match="needs an expression"):
        fast.sql("CREATE INDEX plain ON t USING column_stats(ts)")
    fast.sql("CREATE INDEX heard ON t USING bloom_filters(name) OPTIONS (expr = 'lower', numentries = '100')")
    assert ("heard", "expression_index", "name") in [tuple(row)[:3] for row in listed(fast, "SHOW INDEXES FROM t")]
    assert listed(fast, "SELECT id FROM t WHERE lower(name) = 'b'") == [(2,)]
    with pytest.raises(hf.UnsupportedFeatureError, match="zorder"):
        fast.sql("CREATE INDEX plain ON t USING zorder(name)")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TABLE t USING hudi", hf.ConfigError),
        ("CREATE TABLE t (id int) USING hudi PARTITIONED BY (nothing)", hf.ConfigError),
        ("CREATE TABLE t (id int) USING hudi TBLPROPERTIES (primaryKey = 'nothing')", hf.ConfigError),
        ("CREATE TABLE t (id int) USING hudi TBLPROPERTIES (type = 'heap')", hf.ConfigError),
        ("CREATE OR REPLACE TABLE t (id int) USING hudi", hf.UnsupportedFeatureError),
        ("CREATE TABLE t (id int) USING hudi CLUSTERED BY (id) INTO 4 BUCKETS", hf.UnsupportedFeatureError),
        ("CREATE TABLE a.b.t (id int) USING hudi", hf.UnsupportedFeatureError),
    ],
)
def test_a_definition_that_does_not_fit_leaves_nothing(fast, text, error):
    with pytest.raises(error):
        fast.sql(text)
    assert not fast.catalog.tableExists("t")
    folder = fast.catalog.getDatabase("sql_tests").locationUri.removeprefix("file:")
    assert not Path(folder, "t", ".hoodie").exists()
