"""Scans whose files the library lists: Spark asks storage about none of them, and a query's filters leave files out.

Modules: hudi_fast.spark.reading.file_index, hudi_fast.spark.reading.native_scan.
"""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.errors import HudiWarning
from hudi_fast.spark.arrow import collect
from hudi_fast.spark.reading import file_index
from tests.spark.query_plans import files_scanned
from tests.support.rows import assert_same_rows

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
PARTITIONS = 12


def rows(partitions=range(PARTITIONS), per_partition=10, ts=1):
    """``value`` grows with the partition, so that each file has a range of its own."""
    pairs = [(part, at) for part in partitions for at in range(per_partition)]
    return pa.table({
        "id": [f"k{part:02d}{at:03d}" for part, at in pairs],
        "part": [f"p{part:02d}" for part, _ in pairs],
        "value": pa.array([100 * part + at for part, at in pairs], pa.int64()),
        "file_name": [f"name {part}" for part, _ in pairs],
        "ts": pa.array([ts] * len(pairs), pa.int64()),
    })  # fmt: skip


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a table"
    hf.write(rows(), path, OPTIONS)
    return path


def base_files(path, partition):
    return sorted((path / partition).glob("*.parquet"))


def delete_files_outside(path, *partitions):
    """Delete the files of all other partitions: a query that succeeds did not open them."""
    for folder in path.glob("p*"):
        if folder.name not in partitions:
            for file in base_files(path, folder.name):
                file.unlink()


def test_no_job_lists_files(spark, table):
    spark.sparkContext.setJobGroup("listing", "listing")
    try:
        hf.read(spark, table)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("listing")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.smoke
def test_rows_files_and_sizes_are_those_of_spark_own_listing(spark, table):
    read = hf.read(spark, table)
    files = [str(file) for partition in range(PARTITIONS) for file in base_files(table, f"p{partition:02d}")]
    listed = spark.read.parquet(*files)
    assert_same_rows(collect(read), collect(listed.select(read.columns)), ignore=())
    assert sorted(read.inputFiles()) == sorted(listed.inputFiles())
    sizes = [frame._jdf.queryExecution().analyzed() for frame in (read, listed)]
    while sizes[0].children().size():
        sizes[0] = sizes[0].children().head()
    assert sizes[0].stats().sizeInBytes() == sizes[1].stats().sizeInBytes() > 0


@pytest.mark.parametrize(
    ("where", "partitions"),
    [
        ("part = 'p03'", ["p03"]),
        ("part in ('p03', 'p05')", ["p03", "p05"]),
        ("value between 310 and 520 and ts is not null", ["p04", "p05"]),
        ("part = 'p00' and value < 5 or part = 'p11' and value >= 1100", ["p00", "p11"]),
        ("id = 'k07003'", ["p07"]),
        ("part = 'p02' and length(file_name) > rand()", ["p02"]),
    ],
)
def test_a_condition_of_the_frame_leaves_files_out(spark, table, where, partitions):
    expected = collect(hf.read(spark, table).where(where))
    assert expected.num_rows > 0
    read = hf.read(spark, table)
    delete_files_outside(table, *partitions)
    frame = read.where(where)
    assert files_scanned(frame) == len(partitions)
    assert_same_rows(collect(read.where(where)), expected, ignore=())


def test_a_condition_that_no_file_meets(spark, table):
    read = hf.read(spark, table)
    delete_files_outside(table)
    assert read.where("value < 0").collect() == []
    assert read.where("value < 0").count() == 0


def test_conditions_through_views_joins_and_renamed_columns(spark, table):
    read = hf.read(spark, table)
    delete_files_outside(table, "p04")
    read.createOrReplaceTempView("planned_files")
    assert spark.sql("SELECT count(*) FROM planned_files WHERE part = 'p04'").first()[0] == 10
    renamed = read.select(F.col("part").alias("p"), (F.col("value") + 1).alias("more"))
    assert renamed.where("p = 'p04'").agg(F.max("more")).first()[0] == 410
    other = spark.createDataFrame([("k04001",)], "id string")
    assert read.where("part = 'p04'").join(other, "id").count() == 1


def test_the_frame_without_a_condition_reads_everything_afterwards(spark, table):
    read = hf.read(spark, table)
    assert read.where("part = 'p01'").count() == 10
    assert read.count() == 10 * PARTITIONS
    assert read.union(read.where("part = 'p02'")).count() == 10 * (PARTITIONS + 1)
    kept = read.where("part = 'p03'").cache()
    assert kept.count() == 10
    assert read.where("part = 'p03'").count() == 10
    kept.unpersist()


def test_frames_of_one_state_are_equal_to_spark(spark, table):
    """So a join of two of them reads and shuffles the files once."""
    one, other = hf.read(spark, table), hf.read(spark, table)
    assert one.sameSemantics(one)
    assert one.semanticHash() == other.semanticHash()
    assert one.sameSemantics(other)
    hf.write(rows(range(1), 1, ts=2), table, OPTIONS)
    assert not one.sameSemantics(hf.read(spark, table))


def test_reads_inside_a_batch_of_a_stream(spark, table, tmp_path):
    """Spark calls the function of the batch, which starts queries, which ask for files: calls inside calls."""
    found = []

    def look(batch, number):
        keys = batch.select("value").distinct()
        found.append(hf.read(spark, table).where("part = 'p05'").join(keys, "value", "left_semi").count())

    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 600).load()
    query = stream.writeStream.foreachBatch(look).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(60)
    assert max(found) == 10


def test_queries_of_several_threads(spark, table):
    read = hf.read(spark, table)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda at: read.where(f"part = 'p{at:02d}'").count(), range(PARTITIONS)))
    assert counts == [10] * PARTITIONS


def test_a_field_of_the_file_metadata_is_not_taken_for_a_column(spark, table):
    """The table has a column of this name, with other values."""
    read = hf.read(spark, table)
    name = base_files(table, "p06")[0].name
    assert read.where(F.col("_metadata.file_name") == name).count() == 10
    assert read.where("file_name = 'name 6'").count() == 10


def test_a_spark_with_other_classes_lists_the_files_itself(spark, table, monkeypatch):
    monkeypatch.setattr(file_index, "_RELATION", "RelationOfAnotherSpark")
    read = hf.read(spark, table)
    assert "RelationOfAnotherSpark" not in read._jdf.queryExecution().toString()
    assert "InMemoryFileIndex" in read._jdf.queryExecution().toString()
    assert read.where("part = 'p02'").count() == 10


def test_an_index_that_cannot_be_read_costs_no_rows(spark, table):
    read = hf.read(spark, table)
    for file in table.glob(".hoodie/metadata/column_stats/*"):
        file.write_bytes(b"damaged")
    with pytest.warns(HudiWarning, match="no file is skipped by the index column_stats"):
        assert read.where("value = 305").count() == 1


@pytest.mark.parametrize("logged", [range(1), range(PARTITIONS)])
def test_merged_slices(spark, tmp_path, logged):
    """Rows of base files are left out by a condition; those of logs are read by the core."""
    options = {**OPTIONS, **MOR}
    hf.write(rows(per_partition=300), tmp_path / "t", options)
    hf.write(rows(logged, per_partition=2, ts=2), tmp_path / "t", options)
    expected = hf.HudiTable.open(tmp_path / "t").to_arrow()
    read = hf.read(spark, tmp_path / "t")
    for where, keep in (
        ("part = 'p00' and ts = 2", expected["part"].to_numpy() == "p00"),
        ("value >= 1100", expected["value"].to_numpy() >= 1100),
    ):
        kept = expected.filter(pa.array(keep))
        if "ts" in where:
            kept = kept.filter(pa.array(kept["ts"].to_numpy() == 2))
        assert_same_rows(collect(read.where(where)), kept, ignore=())


def test_names_of_paths_that_need_quoting(spark, tmp_path):
    odd = ["a b", "50%", "é", "x#y", "q?r", "[z]", "{w}", "*"]
    data = pa.table({"id": odd, "part": odd, "value": [1] * 8, "ts": [1] * 8})
    path = tmp_path / "a b%20c"
    hf.write(data, path, {key: value for key, value in OPTIONS.items() if "column.stats" not in key})
    read = hf.read(spark, path)
    assert sorted(row.part for row in read.collect()) == sorted(odd)
    for part in odd:
        assert [row.id for row in read.where(F.col("part") == part).collect()] == [part]
