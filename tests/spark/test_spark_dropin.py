"""A session that is switched on: its own calls, done by hudi_fast; other sessions and other sources as they were.

Modules: hudi_fast.spark_api.dropin.install, hudi_fast.spark_api.dropin.tables.
"""

import threading
import warnings

import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.support.sessions import hadoop_settings

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
}
NAME = {"hoodie.table.name": "t"}


@pytest.fixture(scope="module")
def fast(spark):
    """A session of its own, switched on."""
    session = spark.newSession()
    hf.accelerate(session)
    return session


@pytest.fixture(scope="module")
def saved(fast, tmp_path_factory):
    """A table that nobody changes."""
    path = str(tmp_path_factory.mktemp("saved") / "t")
    rows(fast).write.format("hudi").options(**TABLE).save(path)
    return path


def rows(session, *given):
    return session.createDataFrame(given or [("a", 1, "x"), ("b", 2, "y")], "id string, v int, part string")


def values(session, path, **options):
    found = session.read.format("hudi").options(**options).load(path)
    return {row["id"]: row["v"] for row in found.select("id", "v").collect()}


@pytest.mark.smoke
def test_a_table_is_saved_and_loaded(fast, tmp_path):
    path = str(tmp_path / "t")
    rows(fast).write.format("HUDI").options(**NAME).option("hoodie.datasource.write.recordkey.field", "id").partitionBy(
        "part"
    ).save(path)
    assert values(fast, path) == {"a": 1, "b": 2}
    assert hf.HudiTable.open(path).config.partition_fields == ("part",)
    more = rows(fast, ("b", 20, "y"), ("c", 3, "x"))
    more.write.save(f"file://{path}", format="org.apache.hudi", mode="append", partitionBy="part", **NAME)
    assert values(fast, path) == {"a": 1, "b": 20, "c": 3}
    assert len(hf.HudiTable.open(path).history()) == 2


def test_rows_that_were_read_are_written_back_with_the_table_name_alone(fast, tmp_path):
    path = str(tmp_path / "t")
    rows(fast).write.format("hudi").options(**NAME).partitionBy("part").save(path)
    found = fast.read.format("hudi").load(path)
    changed = found.filter("id = 'a'").withColumn("v", F.col("v") * 10)
    changed.write.format("hudi").options(**NAME).mode("append").save(path)
    assert values(fast, path) == {"a": 10, "b": 2}
    gone = fast.read.format("hudi").load(path).filter("id = 'b'")
    operation = {"hoodie.datasource.write.operation": "delete"}
    gone.write.format("hudi").options(**NAME, **operation).mode("append").save(path)
    assert values(fast, path) == {"a": 10}


@pytest.mark.parametrize("plan", [pytest.param("fused", marks=pytest.mark.long), "routed"])
def test_every_plan_finds_rows_that_were_read(fast, tmp_path, plan):
    path = str(tmp_path / "t")
    rows(fast).write.format("hudi").options(**NAME).partitionBy("part").save(path)
    found = fast.read.format("hudi").load(path).withColumn("v", F.col("v") + 1)
    new_key = F.when(F.col("id") == "b", "a key of no row").otherwise(F.col("_hoodie_record_key"))
    written = {**NAME, "hudi_fast.plan": plan}
    found.withColumn("_hoodie_record_key", new_key).write.format("hudi").options(**written).mode("append").save(path)
    kept = fast.read.format("hudi").load(path).select("id", "v").collect()
    assert sorted(map(tuple, kept)) == [("a", 2), ("b", 2), ("b", 3)]


@pytest.mark.smoke
def test_save_modes_are_sparks(fast, tmp_path):
    path = str(tmp_path / "t")
    writer = rows(fast).write.format("hudi").options(**TABLE)
    writer.save(path)
    other = rows(fast, ("z", 9, "x")).write.format("hudi").options(**TABLE)
    with pytest.raises(hf.TableExistsError, match="already exists"):
        other.save(path)
    other.mode("ignore").save(path)
    assert values(fast, path) == {"a": 1, "b": 2}
    other.mode("overwrite").save(path)
    assert values(fast, path) == {"z": 9}


def test_paths_may_be_options_and_lists_of_one(fast, saved):
    assert fast.read.format("hudi").option("path", saved).load().count() == 2
    assert fast.read.load([saved], format="hudi").count() == 2
    with pytest.raises(hf.ConfigError, match="The option 'path' is set"):
        fast.read.format("hudi").option("path", saved).load(saved)
    with pytest.raises(hf.ConfigError, match="'path' must be set"):
        rows(fast).write.format("hudi").options(**TABLE).save()


def test_a_folder_of_partitions_is_read_as_apache_hudi_does(fast, saved):
    assert values(fast, f"{saved}/x") == {"a": 1}
    assert values(fast, f"{saved}/x/", **{"as.of.instant": "2999-01-01"}) == {"a": 1}
    changes = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "earliest"}
    with pytest.raises(hf.ConfigError, match="An incremental query reads a whole table"):
        values(fast, f"{saved}/x", **changes)
    for nothing in (f"{saved}-other", f"{saved}/nothing"):
        with pytest.raises(hf.TableNotFoundError, match="No Hudi table at"):
            fast.read.format("hudi").load(nothing)


def test_a_schema_selects_renames_and_widens_columns(fast, saved):
    read = fast.read.format("hudi").schema("V bigint, more double, id string").load(saved)
    assert read.schema.simpleString() == "struct<V:bigint,more:double,id:string>"
    assert sorted(map(tuple, read.collect())) == [(1, None, "a"), (2, None, "b")]
    assert read.where("V > 1").count() == 1
    with pytest.raises(hf.SchemaMismatchError, match=f"asks for v as smallint; {saved} has int"):
        fast.read.format("hudi").schema("v smallint").load(saved)


def test_the_default_source_may_be_hudi(fast, saved):
    fast.conf.set("spark.sql.sources.default", "hudi")
    try:
        assert fast.read.load(saved).count() == 2
    finally:
        fast.conf.unset("spark.sql.sources.default")


def test_sql_sees_what_was_loaded_as_a_view(fast, saved):
    fast.read.format("hudi").load(saved).createOrReplaceTempView("saved")
    assert fast.sql("SELECT max(v) FROM saved").collect()[0][0] == 2


def test_settings_of_the_session_are_defaults_of_its_reads(fast, saved):
    fast.conf.set("spark.hoodie.datasource.query.type", "nonsense")
    try:
        with pytest.raises(hf.ConfigError, match=r"query\.type=.nonsense."):
            fast.read.format("hudi").load(saved)
        assert values(fast, saved, **{"hoodie.datasource.query.type": "snapshot"}) == {"a": 1, "b": 2}
    finally:
        fast.conf.unset("spark.hoodie.datasource.query.type")


def test_a_table_by_name_that_is_not_there_is_named(fast):
    for method in ("create", "createOrReplace"):
        with pytest.raises(hf.UnsupportedFeatureError, match=rf"{method}\(\) is not supported"):
            getattr(rows(fast).writeTo("t").using("hudi"), method)()
    with pytest.raises(hf.TableNotFoundError, match="no such Hudi table"):
        rows(fast).writeTo("t").using("hudi").append()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows(fast).write.insertInto("no_such_table")


@pytest.mark.smoke
def test_what_is_not_hudi_stays_sparks(fast, saved, tmp_path):
    rows(fast).write.mode("overwrite").option("compression", "gzip").save(str(tmp_path / "p"), format="parquet")
    assert fast.read.schema("id string").parquet(str(tmp_path / "p")).columns == ["id"]
    assert fast.read.format("parquet").load(str(tmp_path / "p")).count() == 2
    rows(fast).write.format("json").save(str(tmp_path / "j"))
    assert fast.read.json(str(tmp_path / "j")).count() == 2
    with pytest.raises(TypeError, match=r"unexpected keyword|got multiple|positional"):
        fast.read.format("hudi").load(saved, "hudi", None, "too much")


def test_other_sessions_stay_as_they_are(spark, fast, saved):
    for session in (spark, spark.newSession()):
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            session.read.format("hudi").load(saved)
    assert fast.read.format("hudi").load(saved).count() == 2


def test_switching_on_twice_and_off_again(spark, saved):
    session = spark.newSession()
    hf.accelerate(session)
    load = type(session.read).load
    hf.accelerate(session)
    assert type(session.read).load is load
    reader = session.read.format("hudi")
    assert reader.load(saved).count() == 2
    hf.accelerate(session, False)
    for one in (reader, session.read.format("hudi")):
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            one.load(saved)
    hf.accelerate(session, False)


def test_without_hudi_on_the_class_path_the_first_error_stands(spark, saved):
    session = spark.newSession()
    hf.accelerate(session, fallback=True)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"query\.as\.ro\.table=true is not supported") as caught:
        session.read.format("hudi").option("hoodie.query.as.ro.table", True).load(saved)
    assert "no Apache Hudi on the class path" in caught.value.__notes__[0]
    with pytest.raises(hf.ConfigError, match="'path' must be set"):
        session.read.format("hudi").load()
    assert session.read.format("hudi").load(saved).count() == 2


@pytest.mark.long
def test_batches_of_a_stream_are_written_by_the_clone_of_the_session(fast, tmp_path):
    rows(fast).write.parquet(str(tmp_path / "in"))
    stream = fast.readStream.schema("id string, v int, part string").parquet(str(tmp_path / "in"))
    path, seen = str(tmp_path / "t"), []

    def write(batch, number):
        seen.append(batch.sparkSession)
        batch.write.format("hudi").options(**TABLE).mode("append").save(path)

    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert values(fast, path) == {"a": 1, "b": 2}
    assert seen[0] is not fast


def test_threads_do_not_meet(fast, saved, tmp_path):
    rows(fast).write.parquet(str(tmp_path / "p"))
    counted = []

    def read(number):
        for _ in range(5):
            source, path = ("hudi", saved) if number % 2 else ("parquet", str(tmp_path / "p"))
            counted.append((number, fast.read.format(source).load(path).columns[0]))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(counted)) == [(number, "_hoodie_commit_time" if number % 2 else "id") for number in range(4)]
    assert len(counted) == 20


def test_errors_come_as_they_are(fast, tmp_path):
    path = str(tmp_path / "t")
    rows(fast).write.format("hudi").options(**TABLE).save(path)
    another = {"hoodie.datasource.write.recordkey.field": "v"}
    for given, changes, error, said in (
        (rows(fast), another, hf.ConfigError, "RecordKey:\tv\tid"),
        (rows(fast, (None, 1, "x")), {}, hf.InvalidDataError, "Record key field 'id' cannot be null or empty"),
        (rows(fast).drop("v"), {}, hf.SchemaMismatchError, "column 'v' (int32) of the table is missing"),
    ):
        with pytest.raises(error) as caught:
            given.write.format("hudi").options(**TABLE | changes).mode("append").save(path)
        assert said in str(caught.value)
    with pytest.raises(hf.ConfigError, match=r"'hoodie.table.name' must be set"):
        rows(fast).write.format("hudi").save(f"{path}-new")
    assert values(fast, path) == {"a": 1, "b": 2}


def test_a_path_of_another_file_system_is_not_taken_for_a_local_one(fast, saved):
    with hadoop_settings(fast, {"fs.defaultFS": "hdfs://127.0.0.1:1"}):
        with pytest.raises(OSError, match=r"HDFS cannot be used: no answer came from http://127\.0\.0\.1:1"):
            fast.read.format("hudi").load(saved)
        assert hf.read(fast, f"file://{saved}").count() == 2


def test_the_warning_names_the_line_of_the_program(fast, saved):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast.read.format("hudi").option("header", "true").load(saved)
    (found,) = [one for one in caught if issubclass(one.category, hf.HudiWarning)]
    assert found.filename == __file__


def test_only_a_session_can_be_switched_on(spark):
    with pytest.raises(hf.ConfigError, match="needs a SparkSession, got str"):
        hf.accelerate("spark")
    with pytest.raises(hf.ConfigError, match="needs a SparkSession, got DataFrame"):
        hf.accelerate(spark.range(1))
