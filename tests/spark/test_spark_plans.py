"""Whatever moves the rows, the table is the same: every plan against the local engine, for every kind of table.

Modules: hudi_fast.spark.writing.broadcast, hudi_fast.spark.writing.columns, hudi_fast.spark.writing.engine,
hudi_fast.spark.writing.unrouted_plans, hudi_fast.spark.writing.stored.
"""

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark import arrow
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
PARTITIONED = {**TABLE, "hoodie.datasource.write.partitionpath.field": "part"}
SMALL_FILES = {  # several file groups in each partition, and inserts that fill small files
    "hoodie.parquet.max.file.size": "20000",
    "hoodie.parquet.small.file.limit": "18000",
    "hoodie.copyonwrite.record.size.estimate": "300",
}
HIVE = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd HH",
    "hoodie.keygen.timebased.timezone": "UTC",
}
CHANGES = batch(
    # updates, inserts, late rows, rows that are in there twice, deletes of stored and of unknown keys
    [*range(150, 260), *range(20), *range(150, 170), 170],
    ts=[*[200] * 110, *[50] * 20, *[300] * 20, 10],
    deletes=[3, 155, 180, 185, 190, 250, 255],
    seed=1,
)
UPSERTS = [Step("upsert", batch(range(200))), Step("upsert", CHANGES), Step("upsert", batch(range(0, 300, 7), ts=400))]
DELETES = [Step("delete", batch([*range(100, 140), 5000], shift=0))]


@pytest.mark.smoke("driver", "broadcast", "fused", "routed")
@pytest.mark.parametrize("plan", ["driver", "broadcast", "fused", "routed"])
def test_every_operation_in_turn(spark, tmp_path, plan):
    """The two plans of tables without partitions insert and overwrite in the test of those."""
    more = [Step("insert", batch(range(300, 340))), Step("insert_overwrite", batch([400, 404, 408, 401], ts=7))]
    steps = [
        *UPSERTS[:2],
        *DELETES,
        *(more if plan in ("driver", "broadcast") else []),
        Step("insert_overwrite_table", batch(range(500, 520))),
        Step("upsert", batch([500, 501, 502], ts=800, deletes=[501])),
    ]
    assert_same_writes(spark, tmp_path, plan, {**PARTITIONED, **SMALL_FILES}, steps)


@pytest.mark.parametrize("plan", ["fused", pytest.param("auto", marks=pytest.mark.long)])
def test_partitions_are_deleted_by_the_driver(spark, tmp_path, plan):
    named = {"hoodie.datasource.write.partitions.to.delete": "p3,p0"}
    steps = [Step("delete_partition", batch([1, 5, 2])), Step("delete_partition", batch([]), named)]
    hf.write(batch(range(20)), tmp_path / "local", PARTITIONED)
    hf.write(batch(range(20)), tmp_path / f"spark_{plan}", PARTITIONED)
    path = assert_same_writes(spark, tmp_path, plan, PARTITIONED, steps[:1], ran="driver")
    assert hf.HudiTable.open(path).to_arrow(["part"])["part"].unique().to_pylist() == ["p0", "p3"]
    assert_same_writes(spark, tmp_path, plan, PARTITIONED, steps[1:], ran="driver")
    assert hf.HudiTable.open(path).to_arrow().num_rows == 0


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("plan", "version"),
    [
        ("fused", "6"),
        pytest.param("broadcast", "8", marks=pytest.mark.long),
        pytest.param("routed", "8", marks=pytest.mark.long),
    ],
)
def test_older_table_versions(spark, tmp_path, plan, version):
    assert_same_writes(
        spark, tmp_path, plan, {**PARTITIONED, "hoodie.write.table.version": version}, [*UPSERTS[:2], *DELETES], given=1
    )


@pytest.mark.parametrize(
    "plan", ["routed", *(pytest.param(plan, marks=pytest.mark.long) for plan in ("fused", "broadcast"))]
)
def test_without_partitions(spark, tmp_path, plan):
    steps = [
        *UPSERTS[:2],
        Step("insert", batch(range(300, 330))),
        *DELETES,
        Step("insert_overwrite", batch(range(30))),
        Step("upsert", UPSERTS[2].rows),
    ]
    assert_same_writes(spark, tmp_path, plan, {**TABLE, **SMALL_FILES}, steps, given=1)


@pytest.mark.parametrize(
    ("plan", "keys", "styles"),
    [
        pytest.param("broadcast", "id", {}, marks=pytest.mark.long),
        ("fused", "id", HIVE),
        pytest.param(
            "routed",
            "id,number",
            {"hoodie.datasource.write.hive_style_partitioning": "true"},
            marks=pytest.mark.long,
        ),
    ],
)
def test_partition_values_that_paths_have_trouble_with(spark, tmp_path, plan, keys, styles):
    values = ["plain", None, "", "ä ö", "100%", "%2F", "a-b", "[x]*"]
    if styles == HIVE:
        values += ["a/b", "c=d", 'q"', "x:y", "\x01"]
    rows = [
        batch(range(40), seed=1),
        batch(range(20, 60), ts=200, deletes=[21, 22], seed=2),
        batch(range(0, 60, 3), ts=300, seed=3),
    ]
    placed = [
        table.set_column(
            2, "part", pa.array([values[number % len(values)] for number in table["number"].to_pylist()], pa.string())
        )
        for table in rows
    ]
    options = {
        **TABLE,
        **styles,
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    steps = [Step("upsert", placed[0]), Step("upsert", placed[1]), Step("delete", placed[2])]
    assert_same_writes(spark, tmp_path, plan, options, steps, given=1)


@pytest.mark.parametrize(
    ("plan", "styles"),
    [
        ("fused", HIVE),
        pytest.param("routed", {"hoodie.datasource.write.hive_style_partitioning": "true"}, marks=pytest.mark.long),
    ],
)
def test_paths_that_differ_though_their_values_run_together(spark, tmp_path, plan, styles):
    # ("a/b", "c") and ("a", "b/c"), rows of both in turn: a task must still see each partition in one piece
    base = batch(range(60))
    rows = base.set_column(2, "part", pa.array(["a/b" if n % 2 else "a" for n in range(60)]))
    rows = rows.append_column("sub", pa.array(["c" if n % 2 else "b/c" for n in range(60)]))
    options = {**TABLE, **styles, "hoodie.datasource.write.partitionpath.field": "part,sub"}
    steps = [Step("upsert", rows), Step("upsert", rows.slice(10, 30))]
    assert_same_writes(spark, tmp_path, plan, options, steps)


@pytest.mark.parametrize(
    ("plan", "field", "generator"),
    [
        pytest.param("broadcast", "at", "TIMESTAMP", marks=pytest.mark.long),
        ("fused", "part:SIMPLE,at:TIMESTAMP", "CUSTOM"),
        pytest.param("fused", "day", "SIMPLE", marks=pytest.mark.long),
        pytest.param("routed", "at", "TIMESTAMP", marks=pytest.mark.long),
        pytest.param("routed", "v", "SIMPLE", marks=pytest.mark.long),
    ],
)
def test_partitions_that_are_computed(spark, tmp_path, plan, field, generator):
    options = {
        **TABLE,
        **(TIMEBASED if generator != "SIMPLE" else {}),
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.keygenerator.type": generator,
        "hoodie.datasource.write.partitionpath.field": field,
    }
    few = pa.array([0.5, None, 1e300, float("nan")])
    base, changes = (
        table.set_column(6, "v", few.take(pa.compute.cast(table["number"], pa.int64()).combine_chunks().to_numpy() % 4))
        for table in (batch(range(40)), batch(range(20, 50), ts=200, deletes=[20]))
    )
    assert_same_writes(
        spark,
        tmp_path,
        plan,
        options,
        [Step("upsert", base), Step("upsert", changes), Step("delete", base.slice(0, 8))],
        given=1,
    )


@pytest.fixture
def collected(monkeypatch):
    """The tables that the engine collects on the driver."""
    tables, collect_rows = [], arrow.collect

    def collect(df):
        tables.append(collect_rows(df))
        return tables[-1]

    monkeypatch.setattr(arrow, "collect", collect)
    monkeypatch.setattr("hudi_fast.spark.writing.engine.collect", collect)
    return tables


def test_the_driver_collects_few_rows_that_are_wider_than_spark_expects(spark, tmp_path, collected):
    wide = spark.range(40_000).selectExpr("id", "1L AS ts", "repeat('x', int(2000 + id % 2)) AS text")
    result = hf.write(wide, tmp_path / "t", {**TABLE, "hudi_fast.driver.max.bytes": str(16 << 20)})
    assert result.plan != "driver"
    assert result.inserts == 40_000
    assert max(each.nbytes for each in collected) < 40 << 20


def test_the_driver_collects_few_wide_rows_of_a_source_of_unknown_size(spark, tmp_path, collected):
    rows = spark.sparkContext.parallelize(range(6000), 3).map(lambda number: (number, 1, "x" * 2000))
    wide = spark.createDataFrame(rows, "id long, ts long, text string")
    result = hf.write(wide, tmp_path / "t", {**TABLE, "hudi_fast.driver.max.bytes": str(1 << 20)})
    assert result.plan != "driver"
    assert result.inserts == 6000
    assert max(each.nbytes for each in collected) < 6 << 20


@pytest.mark.parametrize(("more", "plan"), [([1000], "fused"), (range(1000, 9000, 4), "routed")])
def test_partitions_with_uneven_files_are_shared_by_file_group(spark, tmp_path, monkeypatch, more, plan):
    """All partitions have as many rows to change; one of them may have nearly all that must be rewritten."""
    monkeypatch.setattr("hudi_fast.spark.writing.engine._EVEN_FROM", 0)
    monkeypatch.setattr("hudi_fast.spark.writing.engine.parallelism", lambda _: 4)
    stored = pa.concat_tables([batch(range(80)), batch(more)])
    hf.write(stored, tmp_path / "t", PARTITIONED)
    changes = frame(spark, batch(range(80), ts=500))
    result = hf.write(changes, tmp_path / "t", {**PARTITIONED, "hudi_fast.driver.max.bytes": "1"})
    assert (result.plan, result.updates) == (plan, 80), result.reason
