"""INSERT, UPDATE, DELETE and MERGE INTO by name."""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.sql.catalog import find_entry
from hudi_fast.spark_api.sql.changes import write_settings
from tests.spark.sql_sessions import fast, listed, switched_on
from tests.support.tiers import is_long

__all__ = ["fast"]

COLUMNS = "(id int, name string, price double, ts bigint, city string)"
ROWS = "SELECT id, name, price, ts, city FROM t"


@pytest.fixture
def goods(fast, request):
    fast.sql(
        f"CREATE TABLE t {COLUMNS} USING hudi PARTITIONED BY (city) "
        f"TBLPROPERTIES (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts')"
    )
    fast.sql("INSERT INTO t VALUES (1, 'a', 1.5, 1, 'x'), (2, 'b', 2.5, 1, 'y'), (3, 'c', 3.5, 1, 'y')")
    return fast


@pytest.mark.smoke("cow")
@pytest.mark.parametrize("goods", ["cow", pytest.param("mor", marks=pytest.mark.long)], indirect=True)
def test_rows_are_inserted_by_position_by_column_and_by_name(goods):
    goods.sql("INSERT INTO t (ts, ID, city) VALUES (5, 4, 'x')")
    goods.sql("INSERT INTO t BY NAME SELECT 'z' AS city, 5 AS id, 6L AS ts")
    goods.sql("INSERT INTO t PARTITION (city = 'w') SELECT 6, 'f', 6.5, 1")
    found = listed(goods, "SELECT id, name, ts, city FROM t WHERE id > 3")
    assert found == [(4, None, 5, "x"), (5, None, 6, "z"), (6, "f", 1, "w")]


@pytest.mark.parametrize("goods", ["cow", pytest.param("mor", marks=pytest.mark.long)], indirect=True)
def test_the_operation_of_an_insert_is_a_setting(goods):
    goods.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    goods.sql("INSERT INTO t VALUES (1, 'later', 9.0, 2, 'x'), (2, 'earlier', 9.0, 0, 'y')")
    assert listed(goods, "SELECT name FROM t WHERE id < 3") == [("b",), ("later",)]
    entry = find_entry(goods, ("t",))
    assert write_settings(goods, entry)["hoodie.spark.sql.insert.into.operation"] == "upsert"
    goods.sql("RESET hoodie.spark.sql.insert.into.operation")


@pytest.mark.parametrize("goods", [pytest.param("cow", marks=pytest.mark.long), "mor"], indirect=True)
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
@pytest.mark.parametrize("goods", [pytest.param("cow", marks=pytest.mark.long), "mor"], indirect=True)
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


@pytest.mark.smoke("mor")
@pytest.mark.parametrize("goods", [pytest.param("cow", marks=pytest.mark.long), "mor"], indirect=True)
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


@pytest.mark.parametrize("goods", ["cow", pytest.param("mor", marks=pytest.mark.long)], indirect=True)
def test_a_merge_of_whole_rows_from_a_hudi_table(goods):
    query = "SELECT id + 1 AS id, 'm' AS name, price, 5L AS ts, city FROM t"
    goods.sql(f"CREATE TABLE s USING hudi TBLPROPERTIES (primaryKey = 'id') AS {query}")
    goods.sql(
        "MERGE INTO t USING s ON s.id = t.id AND t.city = s.city "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert listed(goods, "SELECT id, name, ts FROM t WHERE ts = 5") == [(2, "m", 5), (3, "m", 5), (4, "m", 5)]


@pytest.fixture(scope="module")
def unchanged(spark):
    """A session with a table ``t`` of one row, and two source rows ``s``."""
    with switched_on(spark, "bad_statements") as session:
        session.sql(f"CREATE TABLE t {COLUMNS} USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')")
        session.sql("INSERT INTO t VALUES (1, 'a', 1.5, 1, 'x')")
        session.createDataFrame([(1, "p"), (1, "q")], "id int, name string").createOrReplaceTempView("s")
        yield session


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO t VALUES (1, 'a')", "the query has 2 columns"),
        ("INSERT INTO t VALUES ('no number', 'a', 1.0, 1, 'x')", "does not fit"),
        ("INSERT INTO t VALUES (3000000000L, 'a', 1.0, 1, 'x')", "does not fit"),
        ("INSERT INTO t (id, nothing) VALUES (1, 2)", "no column nothing"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS other", "no column other"),
        ("UPDATE t SET id = 5", "record key columns"),
        ("UPDATE t SET nothing = 5", r"no columns \['nothing'\]"),
        ("UPDATE t SET name = nothing", "nothing"),
        ("DELETE FROM t WHERE nothing = 1", "nothing"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1", r"no columns \['nothing'\]"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name", "Several source rows"),
    ],
)
def test_bad_statements_change_nothing(unchanged, statement, message):
    with pytest.raises(hf.HudiError, match=message):
        unchanged.sql(statement)
    assert listed(unchanged, ROWS) == [(1, "a", 1.5, 1, "x")]


def test_a_read_optimized_entry_is_not_written(fast, tmp_path):
    from dataclasses import replace

    from hudi_fast.spark_api.sql.catalog import create_entry

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


# ---- names in upper and lower case

NAMED = "(id int, userName string, ts bigint, info struct<x: int, Y: string>, Day string)"
GIVEN = (
    "SELECT 1 ID, 'new' username, 5L TS, named_struct('X', 7, 'y', 'b') INFO, 'mon' DAY UNION ALL "
    "SELECT 3, 'ins', 5L, named_struct('X', 8, 'y', 'c'), 'tue'"
)
BY_CONDITION = "MERGE INTO t USING s ON T.ID = S.id AND t.DAY = s.day "
BY_COLUMNS = (
    "WHEN MATCHED AND S.Info.x = 7 THEN UPDATE SET t.USERNAME = upper(s.userNAME), Ts = s.ts "
    "WHEN NOT MATCHED THEN INSERT (ID, USERNAME, ts, DAY) VALUES (s.id, s.username, s.Ts, s.Day)"
)


def test_names_in_any_case_mean_the_columns_of_the_table(fast, tmp_path, request):
    """Spark itself is the oracle: the rows that it makes of the same names, by SELECT."""
    from pyspark.sql import functions as F

    fast.sql(GIVEN).createOrReplaceTempView("s")
    all_columns = listed(fast, "SELECT Id, UserName, tS, iNfo.x, Info.Y, Day FROM s")
    some = listed(fast, "SELECT id, if(info.X = 7, upper(username), USERNAME), TS, null, null, DAY FROM s")
    source = fast.table("s")

    def api(names):
        merge = hf.merge(fast_path(), source, spark=fast).on(["iD", "DAY"])
        return merge.when_matched_update(names).when_not_matched_insert("*")

    def fast_path():
        return find_entry(fast, ("t",)).path

    copied = {"USERNAME": "source.UserName", "TS": "source.ts", "INFO": F.col("source.info")}
    doors = [
        (
            lambda: fast.sql(f"{BY_CONDITION} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
            all_columns,
        ),
        (lambda: api("*").execute(), all_columns),
        (lambda: api(copied).execute(), all_columns),
        (lambda: fast.sql(f"{BY_CONDITION} {BY_COLUMNS}"), [(*some[0][:3], 1, "a", "mon"), some[1]]),
        (lambda: source.writeTo("t").append(), [all_columns[0], (1, "old", 1, 1, "a", "mon"), all_columns[1]]),
        (
            lambda: hf.update(fast_path(), "INFO.X = 1 AND iD < 2", {"USERNAME": "upper(UserName)"}, spark=fast),
            [(1, "OLD", 1, 1, "a", "mon")],
        ),
        (lambda: hf.delete(fast_path(), "USERNAME = 'old' AND dAy = 'mon'", spark=fast), []),
    ]
    for number, (door, expected) in enumerate(doors):
        if number in (1, 6) and not is_long(request.config):  # much like the others by hf.merge and by a condition
            continue
        kind = "cow" if number % 2 else "mor"
        fast.sql(
            f"CREATE TABLE t {NAMED} USING hudi PARTITIONED BY (Day) LOCATION '{tmp_path / str(number)}' "
            f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        fast.sql("INSERT INTO t VALUES (1, 'old', 1, named_struct('x', 1, 'Y', 'a'), 'mon')")
        door()
        assert listed(fast, "SELECT id, userName, ts, info.x, info.Y, Day FROM t") == expected, number
        if number in (2, 3):  # a table of each type
            read = hf.read(fast_path(), columns=["ID", "Info.y", "USERNAME"], filter="tS > 0", spark=fast)
            assert read.columns == ["ID", "y", "USERNAME"]
            assert sorted(map(tuple, read.collect())) == listed(fast, "SELECT ID, info.y, USERNAME FROM t")
        fast.sql("DROP TABLE t")


@pytest.mark.parametrize("goods", ["cow", pytest.param("mor", marks=pytest.mark.long)], indirect=True)
def test_exact_names_and_names_of_two_columns_are_refused(goods):
    goods.sql("SELECT 1 id, 'm' name, 'n' NAME, 9L TS").createOrReplaceTempView("twins")
    path = find_entry(goods, ("t",)).path
    before = listed(goods, ROWS)
    for merge in (
        lambda: goods.sql("MERGE INTO t USING twins s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"),
        lambda: hf.merge(path, goods.table("twins"), spark=goods).on("id").when_matched_update().execute(),
        lambda: goods.sql("MERGE INTO t USING twins s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"),
    ):
        with pytest.raises(hf.HudiError, match=r"(?i)ambiguous|differs from column"):
            merge()
    goods.sql("SET spark.sql.caseSensitive = true")
    try:
        given = goods.sql("SELECT 1 id, 'm' NAME, 9L TS, 'x' city, 7.5D price")
        hf.merge(path, given, spark=goods).on("id").when_matched_update({"price": "source.price"}).execute()
        for names in ({"NAME": "'x'"}, {"name": "source.name"}):
            with pytest.raises(hf.ConfigError):
                hf.merge(path, given, spark=goods).on("id").when_matched_update(names).execute()
        with pytest.raises(hf.ConfigError, match="no column 'ID'"):
            hf.read(path, columns=["ID"], spark=goods)
    finally:
        goods.sql("RESET spark.sql.caseSensitive")
    assert listed(goods, ROWS) == [(1, "a", 7.5, 1, "x"), *before[1:]]


@pytest.mark.parametrize("goods", ["cow", pytest.param("mor", marks=pytest.mark.long)], indirect=True)
def test_of_several_source_rows_that_with_the_greatest_ordering_value_counts(goods):
    rows = "SELECT 1 id, 'd1' name, 0D price, 15L ts, 'x' city UNION ALL SELECT 1, 'd2', 0D, 16L, 'x' UNION ALL "
    rows += "SELECT 1, 'd0', 0D, 14L, 'x' UNION ALL SELECT 7, 'e1', 0D, 15L, 'y' UNION ALL SELECT 7, 'e2', 0D, 16L, 'y'"
    merge = f"MERGE INTO t USING ({rows}) s ON t.id = s.id AND t.city = s.city"
    goods.sql(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert listed(goods, "SELECT id, name, ts FROM t WHERE id IN (1, 7)") == [(1, "d2", 16), (7, "e2", 16)]
    goods.sql(f"{merge} WHEN MATCHED AND s.name > 'd0' THEN UPDATE SET name = concat('n', s.name)")
    assert listed(goods, "SELECT id, name FROM t WHERE id IN (1, 7)") == [(1, "nd2"), (7, "ne2")]
    tied = "SELECT 2 id, name, 9L ts FROM VALUES ('p'), ('q') AS v(name)"
    with pytest.raises(hf.InvalidDataError, match="same ordering values: 1 rows, with the keys '2' with ts = 9"):
        goods.sql(f"MERGE INTO t USING ({tied}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts")


COLLECTIONS = [("array()", "map()"), ("array(1, 2)", "map('z', null)"), ("array('q', null)", "map('z', 3, 'y', 4)")]
"""Arrays and maps whose elements have no type, the column's type, or one that Spark casts to it."""


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.long), "mor"])
def test_arrays_and_maps_are_assigned_as_spark_casts_them(fast, kind):
    types = ("array<string>", "map<string, int>")
    fast.sql(
        f"CREATE TABLE t (id int, tags {types[0]}, sizes {types[1]}, ts bigint) USING hudi "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )
    fast.sql("INSERT INTO t SELECT id, array('x') tags, map('k', 1) sizes, 1L ts FROM range(6)")
    wanted = {}
    for number, (tags, sizes) in enumerate(COLLECTIONS):
        updated, merged, inserted = number, number + 3, number + 6
        fast.sql(f"INSERT INTO t VALUES ({inserted}, {tags}, {sizes}, 1)")
        fast.sql(f"UPDATE t SET tags = {tags}, sizes = {sizes} WHERE id = {updated}")
        fast.sql(
            f"MERGE INTO t USING (SELECT {merged} id) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET tags = {tags}, sizes = {sizes}"
        )
        (cast,) = fast.sql(f"SELECT CAST({tags} AS {types[0]}), CAST({sizes} AS {types[1]})").collect()
        wanted |= dict.fromkeys((updated, merged, inserted), tuple(cast))
    found = fast.sql("SELECT id, tags, sizes FROM t ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(key, *wanted[key]) for key in range(9)]
    for untyped, name in (("array() tags", "array<void>"), ("map() sizes", "map<void,void>")):
        with pytest.raises(
            hf.UnsupportedFeatureError, match=rf"{untyped[-4:]}.*{name}.*cast\(array\(\) as array<int>\)"
        ):
            fast.sql(f"MERGE INTO t USING (SELECT 1 id, {untyped}) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert fast.table("t").count() == 9
