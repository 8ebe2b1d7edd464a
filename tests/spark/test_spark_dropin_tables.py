"""Tables by name: saveAsTable writes to a path, and the name shows the table's present rows for the session's life.

Modules: hudi_fast.spark.dropin.views.
"""

import threading
import warnings
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.spark.programs import run_program

TABLE = {"hoodie.datasource.write.recordkey.field": "id"}
ANSWERS = [
    "1",
    "saved a=1 b=2",
    "appended a=1 b=20 c=3",
    "saved to the path a=1 b=20 c=3 d=4",
    "['b', 'd', 'e']",
    "deleted without Spark b=20 c=3 d=4 e=5",
    "1.5",
    "overwritten z=26",
    "False",
]


@pytest.fixture
def fast(spark):
    """A session of its own, switched on, and off again."""
    session = spark.newSession()
    hf.accelerate(session)
    yield session
    hf.accelerate(session, False)


def writer(session, *rows):
    frame = session.createDataFrame(rows or [("a", 1), ("b", 2)], "id string, v int")
    return frame.write.format("hudi").options(**TABLE)


def named(writer, name, mode="errorifexists", **options):
    """Save, where the session says that names end with it."""
    with pytest.warns(hf.HudiWarning, match="lives as long as this session"):
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
    with pytest.raises(hf.TableExistsError, match=f"a table rides in this session \\({path}\\)"):
        more.saveAsTable("rides")
    more.mode("ignore").saveAsTable("rides")
    assert values(fast, "rides") == [("a", 1), ("b", 2)]
    with pytest.raises(hf.ConfigError, match=f"rides of this session is {path}, not {other}"):
        writer(fast).option("path", other).mode("append").saveAsTable("rides")
    writer(fast, ("z", 9)).option("path", other).mode("overwrite").saveAsTable("rides")
    assert values(fast, "rides") == [("z", 9)]
    assert hf.HudiTable.open(path).to_arrow().num_rows == 2


def test_a_table_that_is_there_is_named_by_a_later_session(spark, fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    later = spark.newSession()
    hf.accelerate(later)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        later.table("rides")
    with pytest.raises(hf.TableExistsError, match="already exists"):
        writer(later).option("path", path).saveAsTable("rides")
    named(writer(later, ("z", 9)), "daily", "ignore", path=path)
    assert values(later, "daily") == [("a", 1), ("b", 2)]
    writer(later, ("c", 3)).mode("append").saveAsTable("daily")
    assert values(fast, "rides") == [("a", 1), ("b", 2), ("c", 3)]


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


def test_a_view_that_somebody_puts_in_its_place_is_theirs(fast, tmp_path):
    path = str(tmp_path / "t")
    named(writer(fast), "rides", path=path)
    fast.table("rides").filter("id = 'a'").createOrReplaceTempView("rides")
    hf.delete(None, path, pc.field("id") == "b")
    hf.write(fast.createDataFrame([("c", 3)], "id string, v int"), path, {"hoodie.table.name": "rides"})
    assert values(fast, "rides") == [("a", 1)]
    with pytest.raises(hf.ConfigError, match="there is a temporary view of that name"):
        writer(fast).mode("append").option("path", path).saveAsTable("rides")
    fast.catalog.dropTempView("rides")
    named(writer(fast), "rides", "append", path=path)
    fast.sql("DROP VIEW rides")
    hf.delete(None, path, pc.field("id") == "b")
    assert fast.sql("SHOW VIEWS").filter("viewName = 'rides'").count() == 0


def test_names_of_the_catalogue_stay_there(fast, tmp_path):
    fast.range(3).write.format("parquet").mode("overwrite").saveAsTable("plain")
    for mode in ("append", "overwrite", "errorifexists"):
        with pytest.raises(hf.ConfigError, match="in the session's catalogue of that name"):
            writer(fast).option("path", str(tmp_path / "t")).mode(mode).saveAsTable("plain")
    writer(fast).option("path", str(tmp_path / "t")).mode("ignore").saveAsTable("plain")
    assert fast.table("plain").count() == 3
    assert not (tmp_path / "t").exists()
    fast.sql("DROP TABLE plain")


def test_names_that_are_none_are_refused_before_anything_is_written(fast, tmp_path):
    given = writer(fast).option("path", str(tmp_path / "t"))
    for name in ("default.rides", "spark_catalog.default.rides", "`a`.`b`"):
        with pytest.raises(hf.UnsupportedFeatureError, match="names with a database or a catalogue"):
            given.saveAsTable(name)
    for name in ("", "two words", "`a-b`", "12"):
        with pytest.raises(hf.ConfigError, match="not a table name"):
            given.saveAsTable(name)
    assert not (tmp_path / "t").exists()


def test_a_table_that_is_gone_has_no_rows_and_no_name_until_it_is_back(fast, tmp_path):
    path = tmp_path / "t"
    named(writer(fast), "rides", path=str(path))
    path.rename(tmp_path / "away")
    with pytest.warns(hf.HudiWarning, match=f"The name rides is unknown until {path} can be read"):
        assert fast.sql("SELECT 1").collect()[0][0] == 1
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
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


def test_the_warning_names_the_line_of_the_program(fast, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer(fast).option("path", str(tmp_path / "t")).saveAsTable("rides")
        writer(fast).option("path", str(tmp_path / "t2")).saveAsTable("rides2")
    (found,) = [one for one in caught if issubclass(one.category, hf.HudiWarning)]
    assert found.filename == __file__
