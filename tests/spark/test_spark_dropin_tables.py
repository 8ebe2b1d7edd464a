"""Tables by name: saveAsTable enters them in the session's catalog, and names show the present rows."""

import threading
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.spark.programs import run_program

TABLE = {"hoodie.datasource.write.recordkey.field": "id"}
ANSWERS = [
    "saved a=1 b=2",
    "appended a=1 b=20 c=3",
    "saved to the path a=1 b=20 c=3 d=4",
    "['b', 'd', 'e']",
    "deleted without Spark b=20 c=3 d=4 e=5",
    "1.5",
    "overwritten z=26",
]


@pytest.fixture
def fast(spark):
    """A session of its own, switched on, and off again."""
    session = spark.newSession()
    hf.accelerate(session)
    before = {one.name for one in session.catalog.listTables()}
    yield session
    for one in session.catalog.listTables():
        if one.name not in before and not one.isTemporary:
            session.sql(f"DROP TABLE IF EXISTS {one.name}")
    hf.accelerate(session, False)


def writer(session, *rows):
    frame = session.createDataFrame(rows or [("a", 1), ("b", 2)], "id string, v int")
    return frame.write.format("hudi").options(**TABLE)


def named(writer, name, mode="errorifexists", **options):
    writer.mode(mode).options(**options).saveAsTable(name)


def values(session, name):
    return sorted(tuple(row) for row in session.sql(f"SELECT id, v FROM {name}").collect())


@pytest.mark.parametrize(
    ("kind", "python"),
    [
        pytest.param("classic", ".venv", marks=pytest.mark.long),
        pytest.param("connect", ".venv", marks=pytest.mark.long),
        pytest.param("classic", ".venv-spark35", marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(660)
def test_a_name_shows_the_present_rows_on_every_spark(java, tmp_path, request, kind, python):
    interpreter = request.config.rootpath / python / "bin" / "python"
    assert run_program("named_tables", tmp_path, kind, python=interpreter, seconds=600) == ANSWERS


def test_a_name_shows_what_others_write(fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    held = fast.table("rides")
    hf.write(fast.createDataFrame([("b", 20)], "id string, v int"), path, {"hoodie.table.name": "rides"})
    assert values(fast, "RIDES") == [("a", 1), ("b", 20)]
    assert fast.read.table("rides").filter("v = 20").count() == fast.table("`rides`").filter("v = 20").count() == 1
    assert sorted(row["v"] for row in held.collect()) == [1, 2]
    hf.delete(None, path, pc.field("id") == "b")
    assert values(fast, "rides") == [("a", 1)]


def test_without_a_path_the_table_is_in_the_folder_of_the_database(fast):
    warehouse = Path(fast.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
    named(writer(fast), "In_The_Warehouse")
    assert hf.HudiTable.open(warehouse / "in_the_warehouse").config.name == "in_the_warehouse"
    named_again = writer(fast, ("c", 3)).mode("append")
    named_again.saveAsTable("in_the_warehouse")
    assert values(fast, "in_the_warehouse") == [("a", 1), ("b", 2), ("c", 3)]
    fast.sql("CREATE DATABASE IF NOT EXISTS other")
    fast.sql("USE other")
    try:
        writer(fast).option("path", "below/it").saveAsTable("relative")
    finally:
        fast.sql("USE default")
    assert hf.HudiTable.open(warehouse / "other.db" / "below" / "it").to_arrow().num_rows == 2


def test_save_modes_ask_for_the_name(fast, tmp_path):
    path, other = str(tmp_path / "t"), str(tmp_path / "other")
    named(writer(fast), "rides", path=path)
    more = writer(fast, ("c", 3))
    with pytest.raises(hf.TableExistsError, match=f"a table rides \\({path}\\)"):
        more.saveAsTable("rides")
    more.mode("ignore").saveAsTable("rides")
    assert values(fast, "rides") == [("a", 1), ("b", 2)]
    with pytest.raises(hf.ConfigError, match=f"default.rides is {path}, not {other}"):
        writer(fast).option("path", other).mode("append").saveAsTable("rides")
    writer(fast, ("z", 9)).option("path", other).mode("overwrite").saveAsTable("rides")
    assert values(fast, "rides") == [("z", 9)]
    assert hf.HudiTable.open(path).to_arrow().num_rows == 2


def test_a_name_lasts_beyond_the_session_that_gave_it(spark, fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    later = spark.newSession()
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        later.table("rides").collect()
    hf.accelerate(later)
    assert values(later, "default.rides") == [("a", 1), ("b", 2)]
    writer(later, ("c", 3)).mode("append").saveAsTable("spark_catalog.default.rides")
    assert values(fast, "rides") == [("a", 1), ("b", 2), ("c", 3)]
    with pytest.raises(hf.TableExistsError, match="already exists"):
        writer(later).option("path", path).saveAsTable("other")
    named(writer(later, ("z", 9)), "daily", "ignore", path=path)
    assert values(later, "daily") == [("a", 1), ("b", 2), ("c", 3)]


def test_the_catalog_describes_a_table(fast, tmp_path):
    named(writer(fast).partitionBy("v"), "rides", path=str(tmp_path / "t"))
    assert fast.catalog.tableExists("rides")
    assert fast.catalog.tableExists("rides", "default")
    assert not fast.catalog.tableExists("walks")
    table = fast.catalog.getTable("default.rides")
    assert (table.name, table.namespace, table.tableType, table.isTemporary) == (
        "rides",
        ["default"],
        "EXTERNAL",
        False,
    )
    assert [one.name for one in fast.catalog.listColumns("rides") if one.isPartition] == ["v"]
    assert "rides" in [one.name for one in fast.catalog.listTables()]


@pytest.mark.smoke
def test_rows_are_inserted_by_position_and_written_by_name(fast, tmp_path):
    named(writer(fast).partitionBy("v"), "rides", path=str(tmp_path / "t"))
    fast.createDataFrame([("c", 3)], "x string, y int").write.insertInto("rides")
    fast.createDataFrame([(4, "d")], "v int, id string").writeTo("rides").append()
    assert values(fast, "rides") == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    fast.createDataFrame([(4, "e")], "v int, id string").writeTo("rides").overwritePartitions()
    assert values(fast, "rides") == [("a", 1), ("b", 2), ("c", 3), ("e", 4)]
    fast.createDataFrame([("z", 9)], "id string, v int").write.insertInto("rides", overwrite=True)
    assert values(fast, "rides") == [("z", 9)]
    with pytest.raises(hf.ConfigError, match="the query has 1 columns"):
        fast.range(1).write.insertInto("rides")
    with pytest.raises(hf.ConfigError, match=r"has no column w; it has id, v"):
        fast.createDataFrame([(1, "a")], "w int, id string").writeTo("rides").append()
    with pytest.raises(hf.UnsupportedFeatureError, match=r"replace\(\) is not supported"):
        fast.range(1).writeTo("rides").using("hudi").replace()
    assert values(fast, "rides") == [("z", 9)]


def test_short_names_of_options_are_those_of_create_table(fast, tmp_path):
    path = str(tmp_path / "t")
    frame = fast.createDataFrame([("a", 2), ("a", 1)], "id string, v int")
    short = {"primaryKey": "id", "preCombineField": "v", "type": "MOR"}
    named(frame.write.format("hudi"), "rides", path=path, **short)
    assert values(fast, "rides") == [("a", 2)]
    config = hf.HudiTable.open(path).config
    assert (config.record_key_fields, config.ordering_fields, config.table_type) == (("id",), ("v",), "MERGE_ON_READ")
    long = {"hoodie.datasource.write.recordkey.field": "id", "primaryKey": "v"}
    fast.createDataFrame([("b", 1)], "id string, v int").write.options(**long).format("hudi").mode(
        "append"
    ).saveAsTable("rides")
    assert values(fast, "rides") == [("a", 2), ("b", 1)]


def test_a_temporary_view_hides_a_table_of_its_name(fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    fast.table("rides").filter("id = 'a'").createOrReplaceTempView("rides")
    hf.write(fast.createDataFrame([("c", 3)], "id string, v int"), path, {"hoodie.table.name": "rides"})
    assert values(fast, "rides") == [("a", 1)]
    assert values(fast, "default.rides") == [("a", 1), ("b", 2), ("c", 3)]
    with pytest.raises(hf.ConfigError, match="there is a temporary view of that name"):
        writer(fast).mode("append").option("path", path).saveAsTable("rides")
    fast.catalog.dropTempView("rides")
    assert len(values(fast, "rides")) == 3


def test_a_table_of_another_format_keeps_its_name(fast, tmp_path):
    fast.range(3).write.format("parquet").mode("overwrite").saveAsTable("plain")
    for mode in ("append", "overwrite", "errorifexists"):
        with pytest.raises(hf.ConfigError, match="in the session's catalog of that name"):
            writer(fast).option("path", str(tmp_path / "t")).mode(mode).saveAsTable("plain")
    writer(fast).option("path", str(tmp_path / "t")).mode("ignore").saveAsTable("plain")
    assert fast.table("plain").count() == 3
    assert not (tmp_path / "t").exists()


def test_names_that_are_none_are_refused_before_anything_is_written(fast, tmp_path):
    given = writer(fast).option("path", str(tmp_path / "t"))
    for name in ("", "two words", "12", "elsewhere.default.rides"):
        with pytest.raises(hf.ConfigError, match="expected a name of spark_catalog"):
            given.saveAsTable(name)
    assert not (tmp_path / "t").exists()


def test_a_table_that_is_gone_is_named_with_its_path(fast, tmp_path):
    path = tmp_path / "t"
    named(writer(fast), "rides", path=str(path))
    path.rename(tmp_path / "away")
    with pytest.raises(hf.TableNotFoundError, match=str(path)):
        fast.table("rides")
    (tmp_path / "away").rename(path)
    assert values(fast, "rides") == [("a", 1), ("b", 2)]


def test_settings_of_the_session_count_when_the_name_is_looked_at(fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    first = hf.HudiTable.open(path).history()["completion"][0].as_py()
    writer(fast, ("c", 3)).mode("append").saveAsTable("rides")
    incremental = {"query.type": "incremental", "read.begin.instanttime": first}
    for key, value in incremental.items():
        fast.conf.set(f"hoodie.datasource.{key}", value)
    assert values(fast, "rides") == [("c", 3)]
    for key in incremental:
        fast.conf.unset(f"hoodie.datasource.{key}")
    assert len(values(fast, "rides")) == 3


@pytest.mark.long
def test_threads_of_one_session_keep_all_names(fast, tmp_path):
    named(writer(fast), "t0", path=str(tmp_path / "t0"))

    def save(number):
        writer(fast, ("a", number)).option("path", str(tmp_path / f"t{number}")).saveAsTable(f"t{number}")

    threads = [threading.Thread(target=save, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (1, 2, 3):
        hf.write(
            fast.createDataFrame([("b", 0)], "id string, v int"),
            str(tmp_path / f"t{number}"),
            {"hoodie.table.name": f"t{number}"},
        )
        assert values(fast, f"t{number}") == [("a", number), ("b", 0)]
