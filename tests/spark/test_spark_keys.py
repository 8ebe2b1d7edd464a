"""Keys on Spark: every index, keys in several places, keys that are made, keys that are refused."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame, numbers_of
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
MOVING = batch(
    [*range(60, 140), *range(10), *range(60, 70), 62],
    ts=[*[200] * 80, *[50] * 10, *[300] * 10, 10],
    deletes=[70, 75, 130],
    seed=1,
    shift=1,  # stored in the partition before
)


def without_order(table):
    """Two rows of a key, the later one without ordering value."""
    ts = pa.array([None if n % 3 == 0 else 5 for n in range(table.num_rows)], pa.int64())
    return table.set_column(table.column_names.index("ts"), "ts", ts)


@pytest.mark.parametrize(("plan", "index"), [("fused", "BLOOM"), ("routed", "SIMPLE")])
def test_indexes_of_a_partition(spark, tmp_path, plan, index):
    steps = [Step("upsert", batch(range(100))), Step("upsert", MOVING), Step("delete", batch(range(0, 90, 2)))]
    assert_same_writes(spark, tmp_path, plan, {**TABLE, "hoodie.index.type": index}, steps, given=1)


@pytest.mark.parametrize(("index", "moves"), [("GLOBAL_SIMPLE", "true"), ("GLOBAL_BLOOM", "false")])
def test_global_indexes(spark, tmp_path, index, moves):
    options = {
        **TABLE,
        "hoodie.index.type": index,
        "hoodie.simple.index.update.partition.path": moves,
        "hoodie.bloom.index.update.partition.path": moves,
    }
    steps = [
        Step("upsert", batch(range(100))),
        Step("upsert", MOVING),
        Step("upsert", batch(range(0, 150, 5), ts=[0, 1000] * 15, shift=2)),
        Step("delete", batch(range(0, 90, 2), shift=3)),
    ]
    if moves == "false":  # rows that stay need no third place
        del steps[2]
    assert_same_writes(spark, tmp_path, "routed", options, steps, given=1)


def test_a_global_index_and_rows_without_ordering_values(spark, tmp_path):
    twice = pa.concat_tables([batch(range(30), deletes=[3, 4, 6]), batch(range(10, 40), deletes=[9, 12, 15], shift=1)])
    options = {**TABLE, "hoodie.index.type": "GLOBAL_SIMPLE"}
    local, remote = tmp_path / "local", tmp_path / "spark"
    for rows in (batch(range(35), ts=-1), without_order(twice)):
        expected = hf.write(rows, local, options)
        # In one task: among rows that compare as equal the later one stays.
        result = hf.write(spark.createDataFrame(rows).coalesce(1), remote, {**options, "hudi_fast.plan": "routed"})
        assert numbers_of(result) == numbers_of(expected)
    tables = [hf.HudiTable.open(path).to_arrow() for path in (remote, local)]
    assert_same_rows(*tables)


@pytest.mark.parametrize("plan", ["fused", pytest.param("broadcast", marks=pytest.mark.long)])
def test_tables_without_meta_columns(spark, tmp_path, plan):
    options = {**TABLE, "hoodie.populate.meta.fields": "false"}
    steps = [Step("upsert", batch(range(100))), Step("upsert", MOVING), Step("delete", batch(range(0, 90, 2)))]
    assert_same_writes(spark, tmp_path, plan, options, steps, given=1)


@pytest.mark.parametrize(
    ("plan", "keys"),
    [
        ("broadcast", ["big,text,number"]),
        ("routed", ["inner.name"]),
        pytest.param("broadcast", ["inner.name"], marks=pytest.mark.long),
        pytest.param("routed", ["big,text,number", "big,ratio"], marks=pytest.mark.long),
    ],
    ids=["broadcast", "routed", "broadcast nested", "routed text"],
)
def test_keys_of_several_fields_some_of_them_null(spark, tmp_path, plan, keys):
    def rows(ids, ts, deletes=()):
        table = batch(ids, ts=ts, deletes=deletes)
        numbers = table["number"].to_pylist()
        big = pa.array([None if n % 5 == 0 else (1 << 60) + n for n in numbers], pa.int64())
        text = pa.array(["" if n % 7 == 0 else None if n % 3 == 0 else f"t{n}" for n in numbers])
        ratio = pa.array([n / 8 for n in numbers])
        inner = pa.StructArray.from_arrays([pa.array([f"in{n}" for n in numbers])], ["name"])
        return (
            table.append_column("big", big)
            .append_column("text", text)
            .append_column("ratio", ratio)
            .append_column("inner", inner)
        )

    steps = [
        Step("upsert", rows(range(60), 1)),
        Step("upsert", rows(range(40, 80), 2, deletes=[41])),
        Step("delete", rows(range(50, 55), 3)),
    ]
    for number, fields in enumerate(keys):
        options = {**TABLE, "hoodie.datasource.write.recordkey.field": fields}
        assert_same_writes(spark, tmp_path / str(number), plan, options, steps, given=1)


def nested(rows):
    """The key and what partitions come from, in structs, too; some structs are null."""
    place = pa.StructArray.from_arrays(
        [rows["part"].combine_chunks(), rows["day"].combine_chunks()],
        ["city", "day"],
        mask=pa.array([number % 7 == 3 for number in rows["number"].to_pylist()]),
    )
    key = pa.StructArray.from_arrays([rows["id"].combine_chunks(), rows["number"].combine_chunks()], ["id", "n"])
    return rows.drop_columns(["id"]).append_column("place", place).append_column("k", key)


HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
NESTED = {
    "one field": ("k.id", "place.city", {}),
    "hive style": ("k.id", "place.city", {**HIVE, **MOR}),
    "several fields": ("k.id,number", "place.day,part", {**HIVE, "hoodie.write.table.version": "6"}),
    "fields of one name": ("k.id", "place.day,day", {**MOR, "hoodie.write.table.version": "8"}),
    "bucket": ("k.id", "place.city", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
    "record index": (
        "k.id",
        "place.city",
        {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    ),
}


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ("driver", "one field"),
        ("broadcast", "hive style"),
        ("fused", "several fields"),
        ("routed", "fields of one name"),
        pytest.param("fused", "one field", marks=pytest.mark.long),
        pytest.param("routed", "bucket", marks=pytest.mark.long),
        pytest.param("routed", "record index", marks=pytest.mark.long),
    ],
)
def test_keys_and_partitions_of_nested_fields(spark, tmp_path, plan, name):
    keys, partitions, more = NESTED[name]
    fields = {
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": partitions,
    }
    steps = [Step("upsert", nested(batch(range(100)))), Step("upsert", nested(MOVING))]
    if plan in ("fused", "routed"):
        steps += [Step("delete", nested(batch(range(0, 90, 2)))), Step("insert_overwrite", nested(batch([0, 4], ts=7)))]
    if name == "fields of one name":
        steps = steps[:3]
    ran = "bucketed" if name == "bucket" else None
    path = assert_same_writes(spark, tmp_path, plan, {**TABLE, **fields, **more}, steps, ran, given=1)
    rows, found = hf.HudiTable.open(path).to_arrow(), hf.read(spark, path)
    assert_same_rows(collect(found), rows, ignore=())
    field = partitions.partition(",")[0]
    value = max(row[0] for row in found.select(field).distinct().collect() if row[0] is not None)
    wanted = sorted(
        row["number"] for row in rows.to_pylist() if (row["place"] or {}).get(field.partition(".")[2]) == value
    )
    for chosen in (found.where(F.col(field) == value), hf.read(spark, path, filter=f"{field} = '{value}'")):
        assert sorted(row.number for row in chosen.select("number").collect()) == wanted


@pytest.mark.parametrize(
    ("plan", "partition"), [pytest.param("broadcast", "", marks=pytest.mark.long), ("fused", "part"), ("routed", "")]
)
def test_keys_that_are_made(spark, tmp_path, plan, partition):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.index.bloom.num_entries": "500",
    }
    steps = [Step("insert", batch(range(50))), Step("insert", batch(range(20), seed=9))]
    path = assert_same_writes(spark, tmp_path, plan, options, steps, ignore=["_hoodie_record_key"])
    keys = hf.HudiTable.open(path).to_arrow(["_hoodie_record_key"])["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == len(keys) == 70


@pytest.mark.parametrize(
    ("plan", "partition"), [pytest.param("broadcast", "", marks=pytest.mark.long), ("fused", "part")]
)
def test_inserts_of_stored_keys(spark, tmp_path, plan, partition):
    options = {**TABLE, "hoodie.datasource.write.partitionpath.field": partition}
    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    fail = {"hoodie.datasource.insert.dup.policy": "fail"}
    steps = [
        Step("insert", batch(range(50))),
        Step("insert", batch(range(40, 60))),  # keeps both
        Step("insert", batch(range(30, 70)), drop),
    ]
    path = assert_same_writes(spark, tmp_path, plan, options, steps)
    before = hf.HudiTable.open(path).to_arrow()
    settings = {**options, **fail, "hoodie.datasource.write.operation": "insert", "hudi_fast.plan": plan}
    with pytest.raises(hf.DuplicateKeyError, match="k0049"):
        hf.write(frame(spark, batch([49])), path, settings)
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), before, ignore=())
    assert_tidy(path)


@pytest.mark.parametrize(
    ("operation", "partition"),
    [
        ("insert", "part"),
        ("bulk_insert", ""),
        pytest.param("insert", "", marks=pytest.mark.long),
        pytest.param("bulk_insert", "part", marks=pytest.mark.long),
    ],
)
def test_rows_of_one_key_in_different_tasks_are_combined_before_an_insert(spark, tmp_path, operation, partition):
    twice = pa.concat_tables([batch(range(40), ts=2), batch(range(40), ts=1)])
    options = {
        **TABLE,
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.combine.before.insert": "true",
        "hudi_fast.driver.max.bytes": "0",
    }
    rows = spark.createDataFrame(twice).repartition(4, "ts")
    assert hf.write(rows, tmp_path / "t", options).inserts == 40
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["ts"])["ts"].unique().to_pylist() == [2]


@pytest.mark.smoke("driver-upsert-id")
@pytest.mark.parametrize(
    ("plan", "operation", "key"),  # v: text by the core
    [
        ("driver", "upsert", "id"),
        ("routed", "delete", "id"),
        pytest.param("broadcast", "delete", "v", marks=pytest.mark.long),
        pytest.param("fused", "upsert", "v", marks=pytest.mark.long),
    ],
)
def test_a_null_key_is_refused_as_itself(spark, tmp_path, plan, operation, key):
    options = {**TABLE, "hoodie.datasource.write.recordkey.field": key, "hudi_fast.plan": plan}
    path = tmp_path / "t"
    hf.write(batch(range(20)), path, options | {"hudi_fast.plan": "auto"})
    before = hf.HudiTable.open(path).to_arrow()
    bad = frame(spark, batch(range(30))).withColumn(key, F.when(F.col("number") != 7, F.col(key)))
    with pytest.raises(hf.InvalidDataError, match=f"Record key field '{key}'") as caught:
        hf.write(bad, path, {**options, "hoodie.datasource.write.operation": operation})
    assert type(caught.value) is hf.InvalidDataError
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), before, ignore=())
    assert_tidy(path)


@pytest.mark.parametrize(
    "plan",
    [
        "fused",
        pytest.param("broadcast", marks=pytest.mark.long),
        pytest.param("driver", marks=pytest.mark.long),
        pytest.param("routed", marks=pytest.mark.long),
    ],
)
def test_a_first_write_that_is_refused_leaves_no_table(spark, tmp_path, plan):
    bad = frame(spark, batch(range(30))).withColumn("part", F.when(F.col("number") == 7, F.lit("../up")).otherwise("a"))
    with pytest.raises(hf.InvalidDataError, match=r"'\.\./up'"):
        hf.write(bad, tmp_path / "t", {**TABLE, "hudi_fast.plan": plan})
    assert list(tmp_path.iterdir()) == []
