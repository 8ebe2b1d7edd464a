"""Statements that hudi_fast may execute, read from their text.

Modules: hudi_fast.sql_text.grammar, hudi_fast.sql_text.cursor.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_fast.errors import ConfigError
from hudi_fast.sql_text.cursor import StatementError
from hudi_fast.sql_text.grammar import parse_statement
from hudi_fast.sql_text.statements import (
    AddColumns,
    AlterColumn,
    CacheQuery,
    Call,
    CreateIndex,
    CreateTable,
    CreateView,
    Delete,
    DescribeTable,
    DropColumns,
    DropIndex,
    DropPartition,
    DropTable,
    Insert,
    MergeInto,
    NotNeeded,
    NotSupported,
    RefreshTable,
    RenameColumn,
    RenameTable,
    SetProperties,
    ShowCreateTable,
    ShowIndexes,
    ShowPartitions,
    ShowProperties,
    TruncateTable,
    UnsetProperties,
    Update,
)


def parsed(text: str, kind: type) -> Any:
    found = parse_statement(text)
    assert isinstance(found, kind)
    return found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("TRUNCATE TABLE `a b`.t", TruncateTable),
        ("ALTER VIEW t AS SELECT 1", CreateView),
        ("CACHE LAZY TABLE t OPTIONS ('a' 'b')", NotSupported),
        ("CACHE TABLE t AS SELECT 1", CacheQuery),
        ("CACHE TABLE t SELECT 1", CacheQuery),
        ("UNCACHE TABLE IF EXISTS t", NotSupported),
        ("ALTER TABLE t ADD PARTITION (a = 1)", NotSupported),
        ("LOAD DATA INPATH 'a' OVERWRITE INTO TABLE t PARTITION (a = 1)", NotSupported),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", NotNeeded),
        ("MSCK REPAIR TABLE t", NotNeeded),
        ("REFRESH TABLE t", RefreshTable),
        ("SHOW INDEXES FROM t", ShowIndexes),
        ("SHOW CREATE TABLE t", ShowCreateTable),
        ("SHOW TBLPROPERTIES t ('type')", ShowProperties),
        ("DESC EXTENDED t", DescribeTable),
        ("DROP INDEX i ON t", DropIndex),
        ("ALTER TABLE t RENAME TO d.u", RenameTable),
        ("ALTER TABLE t RENAME COLUMN a.b TO c", RenameColumn),
        ("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", UnsetProperties),
        ("ALTER TABLE t DROP COLUMNS (a, b.c)", DropColumns),
        ("alter table t drop column a", DropColumns),
        ("describe t", DescribeTable),
        ("DELETE FROM t;", Delete),
    ],
)
def test_the_kind_of_a_statement(text: str, kind: type) -> None:
    assert parsed(text, kind).table.parts[-1] == "t"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SET hoodie.x = 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT 1",
        "DROP VIEW v",
        "SHOW TABLES",
        "ALTER VIEW v RENAME TO w",
        "DESCRIBE FUNCTION f",
        "DESCRIBE t PARTITION (a = 1)",
        "CREATE DATABASE d",
        "REFRESH FUNCTION f",
        "CLEAR CACHE",
        "",
    ],
)
def test_other_statements_are_sparks(text: str) -> None:
    assert parse_statement(text) is None


def test_an_insert() -> None:
    found = parsed(
        "INSERT OVERWRITE TABLE d.t PARTITION (day = DATE '2024-01-01', city) SELECT a -- note\n FROM x ORDER BY a",
        Insert,
    )
    assert found.table.parts == ("d", "t")
    assert found.partition == {"day": "DATE '2024-01-01'", "city": None}
    assert (found.overwrite, found.by_name, found.columns) == (True, False, ())
    assert found.source == "SELECT a -- note\n FROM x ORDER BY a"
    assert parsed("INSERT INTO t (b, t.a) VALUES (1, '(')", Insert).columns == ("b", "a")
    assert parsed("INSERT INTO t (SELECT 1)", Insert).source == "(SELECT 1)"
    assert parsed("INSERT INTO t BY NAME SELECT 1 AS a", Insert).by_name
    assert parsed("WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q", Insert).source == (
        "WITH q AS (SELECT 1) SELECT * FROM q"
    )


def test_an_update_keeps_its_expressions_as_text() -> None:
    found = parsed(
        "UPDATE t AS x SET x.a = case when b then 1 end, `b c` = f(1, 2) WHERE id IN (SELECT id FROM s)", Update
    )
    assert (found.alias, found.where) == ("x", "id IN (SELECT id FROM s)")
    assert found.values == {"a": "case when b then 1 end", "b c": "f(1, 2)"}
    assert parsed("UPDATE t SET a = 1", Update).where is None
    assert parsed("DELETE FROM t x WHERE x.a = 'WHERE'", Delete).where == "x.a = 'WHERE'"


def test_a_merge() -> None:
    found = parsed(
        "MERGE INTO d.t AS x USING (SELECT * FROM s) y ON x.id = y.id "
        "WHEN MATCHED AND CASE WHEN y.gone THEN true ELSE false END THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET x.a = y.a + 1, b = y.b "
        "WHEN NOT MATCHED BY TARGET THEN INSERT (id, a) VALUES (y.id, f(y.a, 1)) "
        "WHEN NOT MATCHED BY SOURCE AND x.a > 1 THEN UPDATE SET a = 0",
        MergeInto,
    )
    assert (found.alias, found.source_alias, found.condition) == ("x", "y", "x.id = y.id")
    assert found.source == "SELECT * FROM (SELECT * FROM s)"
    kinds = [(one.kind, one.effect) for one in found.clauses]
    assert kinds == [
        ("matched", "delete"),
        ("matched", "update"),
        ("not matched", "insert"),
        ("not matched by source", "update"),
    ]
    assert found.clauses[0].condition == "CASE WHEN y.gone THEN true ELSE false END"
    assert found.clauses[1].values == {"a": "y.a + 1", "b": "y.b"}
    assert found.clauses[2].values == {"id": "y.id", "a": "f(y.a, 1)"}
    star = parsed(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", MergeInto
    )
    assert [one.values for one in star.clauses] == [None, None]
    assert (star.alias, star.source_alias, star.source) == (None, "s", "SELECT * FROM s")


def test_a_table() -> None:
    found = parsed(
        "CREATE TABLE IF NOT EXISTS d.t (id int COMMENT 'a, b', s struct<a:int,b:array<string>>) USING hudi "
        "TBLPROPERTIES (type = 'cow', 'a.b' = '1', hoodie.x.y = 3) PARTITIONED BY (p string) LOCATION 's3://x' "
        "COMMENT 'c'",
        CreateTable,
    )
    assert found.columns == "id int COMMENT 'a, b', s struct<a:int,b:array<string>>"
    assert found.properties == {"type": "cow", "a.b": "1", "hoodie.x.y": "3"}
    assert (found.provider, found.partitioned_by, found.location, found.comment) == ("hudi", "p string", "s3://x", "c")
    assert found.if_not_exists
    assert parsed("CREATE TABLE t USING hudi AS SELECT 1 AS id", CreateTable).query == "SELECT 1 AS id"
    assert str(parsed("CREATE TABLE t LIKE d.u USING hudi", CreateTable).like) == "d.u"
    assert parsed("CREATE TABLE t (a int) USING hudi CLUSTERED BY (a) INTO 4 BUCKETS", CreateTable).clauses == (
        "CLUSTERED",
    )


def test_views_and_indexes() -> None:
    view = parsed("CREATE OR REPLACE TEMP VIEW v (a COMMENT 'x', b) COMMENT 'AS' AS SELECT 1, 2", CreateView)
    assert (view.temporary, view.replace, view.query) == ("session", True, "SELECT 1, 2")
    assert view.columns == ("a", "b")
    index = parsed("CREATE INDEX i ON t USING column_stats(ts) OPTIONS (expr = 'year')", CreateIndex)
    assert (index.index, index.using, index.columns, index.options) == ("i", "column_stats", ("ts",), {"expr": "year"})


def test_columns_and_partitions_of_a_table() -> None:
    added = parsed("ALTER TABLE t ADD COLUMNS (a decimal(10,2) COMMENT 'x' AFTER b, s.c string FIRST)", AddColumns)
    assert [(one.name, one.type, one.comment, one.position) for one in added.columns] == [
        ("a", "decimal(10,2)", "x", ("AFTER", "b")),
        ("s.c", "string", None, ("FIRST",)),
    ]
    changed = parsed("ALTER TABLE t ALTER COLUMN a TYPE bigint COMMENT 'y'", AlterColumn)
    assert (changed.column, changed.type, changed.comment) == ("a", "bigint", "y")
    assert parsed("ALTER TABLE t CHANGE COLUMN a a bigint", AlterColumn).type == "bigint"
    assert parsed("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", AlterColumn).nullable is True
    dropped = parsed("ALTER TABLE t DROP IF EXISTS PARTITION (a = 1), PARTITION (a = 2)", DropPartition)
    assert (dropped.partitions, dropped.if_exists) == (({"a": "1"}, {"a": "2"}), True)
    assert parsed("SHOW PARTITIONS t PARTITION (a = 'x')", ShowPartitions).partition == {"a": "'x'"}
    assert parsed("DROP TABLE IF EXISTS t PURGE", DropTable).purge
    assert parsed("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b', c.d = '1')", SetProperties).properties == {
        "a": "b",
        "c.d": "1",
    }


def test_a_call_takes_arguments_by_name_and_by_position() -> None:
    found = parsed("CALL run_compaction(op => 'run', table => concat('a', 'b'))", Call)
    assert found.arguments == (("op", "'run'"), ("table", "concat('a', 'b')"))
    assert parsed("CALL system.show_commits('t', 5)", Call).arguments == ((None, "'t'"), (None, "5"))
    assert parsed("CALL help()", Call).arguments == ()


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("MERGE INTO t USING s ON t.a = s.a", "column 34", "expected WHEN, found the end"),
        ("MERGE INTO t USING s\n ON a = b WHEN MATCHED THEN", "line 2, column 28", "expected INSERT"),
        ("INSERT INTO t", "column 14", "expected an expression"),
        ("DELETE FROM t x y", "column 17", "expected the end of the statement, found 'y'"),
        ("UPDATE t SET a = 1, a = 2", "column 23", "the column a is set twice"),
        ("CREATE TABLE t (a int) USING hudi foo", "column 35", "expected a clause of CREATE TABLE"),
        ("CALL p(1,,2)", "column 3", "expected an expression"),
        (
            "MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
            "column 60",
            "2 columns have 1",
        ),
        ("ALTER TABLE t ADD COLUMNS (a int NOT NULL)", "column 34", "may be null"),
    ],
)
def test_a_statement_half_understood_is_refused_with_the_place(text: str, place: str, expected: str) -> None:
    with pytest.raises(StatementError, match=expected) as caught:
        parse_statement(text)
    assert place in str(caught.value)
    assert isinstance(caught.value, ConfigError)


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(StatementError, match="cannot be read"):
        parse_statement("DELETE FROM t WHERE a = 'x")
