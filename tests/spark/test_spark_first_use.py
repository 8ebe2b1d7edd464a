"""What someone who tries the library on Spark does first, and does wrong first."""

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StructType, VariantType

import hudi_fast as hf
from tests.support.small_tables import OPTIONS, plain_rows, rows_of


def frame(spark, *numbers):
    return spark.createDataFrame(plain_rows(numbers).to_pandas())


def test_rows_of_python_are_few_though_spark_does_not_know_it(spark, tmp_path):
    rows = [row.asDict() for row in frame(spark, 1, 2, 3).collect()]
    made = spark.createDataFrame(spark.sparkContext.parallelize(rows), "id string, part string, ts long, text string")
    result = hf.write(made, tmp_path / "t", OPTIONS)
    assert (result.plan, result.inserts) == ("driver", 3)
    assert result.reason.startswith("3 rows, ")
    found = hf.read(spark, tmp_path / "t").select("id", "part", "ts", "text").collect()
    assert {row["id"]: tuple(row)[1:] for row in found} == rows_of(plain_rows([1, 2, 3]))


def test_more_than_the_driver_takes_is_said_with_numbers(spark, tmp_path):
    result = hf.write(frame(spark, *range(50)), tmp_path / "t", {**OPTIONS, "hudi_fast.driver.max.bytes": "100"})
    assert result.plan == "fused"
    assert "100" in result.reason


def test_a_first_write_that_fails_in_a_task_leaves_nothing(spark, tmp_path):
    bad = frame(spark, 1, 2).selectExpr("if(part = 'p0', null, id) as id", "part", "ts", "text")
    with pytest.raises(hf.InvalidDataError, match="Record key field 'id'"):
        hf.write(bad, tmp_path / "t", {**OPTIONS, "hudi_fast.plan": "fused"})
    assert list(tmp_path.iterdir()) == []


def test_a_stream_is_refused_with_the_way_to_do_it(spark, tmp_path):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(hf.UnsupportedFeatureError, match="foreachBatch"):
        hf.write(stream, tmp_path / "t", OPTIONS)


def test_of_pyspark_only_a_data_frame_can_be_written(spark, tmp_path):
    with pytest.raises(hf.InvalidDataError, match="RDD"):
        hf.write(frame(spark, 1).rdd, tmp_path / "t", OPTIONS)


def test_a_type_that_would_come_back_as_another_is_refused_by_name(spark, tmp_path):
    schema = StructType().add("id", LongType()).add("deep", ArrayType(StructType().add("any", VariantType())))
    with pytest.raises(hf.UnsupportedFeatureError, match=r"Column 'deep\.any' has Spark's type variant"):
        hf.write(spark.createDataFrame([], schema), tmp_path / "t", {"hoodie.table.name": "t"})


def test_reading_wants_a_session(spark, tmp_path):
    with pytest.raises(
        hf.ConfigError, match="A read takes the path of a table, and a Spark session as spark=; got Table"
    ):
        hf.read(pa.table({}), tmp_path / "t")
    with pytest.raises(hf.TableNotFoundError, match="No Hudi table at"):
        hf.read(spark, tmp_path / "t")
