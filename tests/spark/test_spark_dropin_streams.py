"""Streams of a session that is switched on, through Spark's own calls."""

import pytest

import hudi_fast as hf

TABLE = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
SCHEMA = "id string, v int, part string"


@pytest.fixture(scope="module")
def fast(spark):
    session = spark.newSession()
    hf.accelerate(session)
    return session


def add(session, folder, *given):
    session.createDataFrame(given, SCHEMA).coalesce(1).write.mode("append").parquet(str(folder))


@pytest.mark.smoke
def test_a_stream_from_table_to_table(fast, tmp_path):
    source, first, second = tmp_path / "in", str(tmp_path / "first"), str(tmp_path / "second")
    add(fast, source, ("a", 1, "x"), ("b", 2, "y"))

    files = fast.readStream.schema(SCHEMA).parquet(str(source))
    writer = files.writeStream.format("hudi").options(**TABLE).option("checkpointLocation", str(tmp_path / "c1"))
    query = writer.partitionBy("part").queryName("files").trigger(availableNow=True).start(first)
    assert query.name == "files"
    query.awaitTermination()
    rows = fast.readStream.format("hudi").load(first).select("id", "v", "part")
    writer = rows.writeStream.outputMode("append").trigger(availableNow=True).options(**TABLE)
    writer.start(second, "hudi", checkpointLocation=str(tmp_path / "c2")).awaitTermination()
    for path in (first, second):
        found = fast.read.format("hudi").load(path).select("id", "v").collect()
        assert sorted(map(tuple, found)) == [("a", 1), ("b", 2)]
        assert len(hf.HudiTable.open(path).history()) == 1
    assert hf.HudiTable.open(first).config.partition_fields == ("part",)


def test_a_stream_into_a_table_by_name(fast, tmp_path):
    add(fast, tmp_path / "in", ("a", 1, "x"))
    fast.sql(f"CREATE TABLE streamed ({SCHEMA}) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{tmp_path}/t'")
    try:
        writer = fast.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")).writeStream.format("hudi")
        writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        writer.toTable("streamed").awaitTermination()
        assert fast.table("streamed").count() == 1
    finally:
        fast.sql("DROP TABLE streamed")
    with pytest.raises(hf.ConfigError, match="'path' must be set: give start"):
        writer.start()
    assert not fast.streams.active


def test_streams_of_other_sources_stay_sparks(fast, tmp_path):
    add(fast, tmp_path / "in", ("a", 1, "x"))
    rows = fast.readStream.schema(SCHEMA).load(str(tmp_path / "in"), "parquet")
    query = rows.writeStream.format("memory").queryName("kept").trigger(availableNow=True).start()
    query.awaitTermination()
    assert fast.table("kept").count() == 1
