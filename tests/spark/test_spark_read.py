"""Reading with Spark: the rows of the local reader, through Spark's own scan wherever that reads them right.

Modules: hudi_fast.spark.reading.column_function, hudi_fast.spark.reading.native_scan, hudi_fast.spark.reading.reader.
"""

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.spark.query_plans import files_scanned
from tests.spark.spark_writes import batch
from tests.support.golden import golden_names
from tests.support.rows import assert_same_rows

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
COW = [name for name in golden_names() if name.rpartition("/")[2].startswith(("cow_", "h015_cow"))]
LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def plan_text(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.smoke("cow_v9_clustered")
@pytest.mark.parametrize("name", COW)
def test_tables_of_real_hudi(spark, golden, name):
    found = golden(name)
    read = hf.read(spark, found.table)
    expected = hf.HudiTable.open(found.table).to_arrow()
    assert read.columns == expected.column_names
    assert_same_rows(collect(read), expected, ignore=())


@pytest.mark.smoke
def test_columns_and_filters_reach_the_scan(spark, tmp_path):
    hf.write(batch(range(100)), tmp_path / "t", OPTIONS)
    read = hf.read(spark, tmp_path / "t").filter("number > 90 and part = 'p1'").select("id")
    text = plan_text(read)
    assert re.search(r"PushedFilters: \[.*GreaterThan\(number,90\)", text)
    assert re.search(r"PartitionFilters: \[.*\(part#\d+ = p1\)", text)
    assert re.search(r"ReadSchema: struct<id:string,number:int>", text)
    assert sorted(row["id"] for row in read.collect()) == ["k0093", "k0097"]


@pytest.mark.smoke
def test_time_travel(spark, tmp_path):
    first = hf.write(batch(range(10)), tmp_path / "t", OPTIONS)
    hf.write(batch(range(5, 20), ts=200), tmp_path / "t", OPTIONS)
    assert hf.read(spark, tmp_path / "t").count() == 20
    before = hf.read(spark, tmp_path / "t", {"as.of.instant": first.instant})
    assert_same_rows(collect(before), hf.HudiTable.open(tmp_path / "t").to_arrow(as_of=first.instant))
    assert before.count() == 10


def test_a_table_without_rows(spark, tmp_path):
    schema = pa.schema({"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "day": pa.date32()})
    hf.HudiTable.create(tmp_path / "t", schema, OPTIONS)
    read = hf.read(spark, tmp_path / "t")
    assert read.count() == 0
    assert read.schema["day"].dataType.simpleString() == "date"
    assert read.columns[:5] == hf.HudiTable.open(tmp_path / "t").to_arrow().column_names[:5]


def test_a_frame_keeps_the_state_that_it_was_made_from(spark, tmp_path):
    hf.write(batch(range(10)), tmp_path / "t", OPTIONS)
    read = hf.read(spark, tmp_path / "t")
    hf.write(read.drop(*read.columns[:5]).withColumn("ts", F.lit(200)), tmp_path / "t", OPTIONS)
    assert {row["ts"] for row in read.collect()} == {100}
    assert {row["ts"] for row in hf.read(spark, tmp_path / "t").collect()} == {200}


def test_a_table_can_be_overwritten_from_itself(spark, tmp_path):
    hf.write(batch(range(30)), tmp_path / "t", OPTIONS)
    read = hf.read(spark, tmp_path / "t").drop(*hf.read(spark, tmp_path / "t").columns[:5])
    for plan in ("driver", "fused"):
        rows = read.filter("number < 10").withColumn("v", F.lit(1.0))
        hf.write(rows, tmp_path / "t", {**OPTIONS, "hudi_fast.plan": plan}, mode="overwrite")
        read = hf.read(spark, tmp_path / "t").drop(*hf.read(spark, tmp_path / "t").columns[:5])
        assert {row["v"] for row in read.collect()} == {1.0}
        assert read.count() == 10


@pytest.mark.parametrize("folder", ["t [x]*", pytest.param("t", marks=pytest.mark.long)])
def test_names_that_look_like_patterns(spark, tmp_path, folder):
    names = ["a*", "[bc]", "{d,e}", "f?", "a b", "50%", "b", "g\\h", "é:1"]
    rows = batch(range(16)).set_column(2, "part", pa.array([names[n % 9] for n in range(16)]))
    hf.write(rows, tmp_path / folder, OPTIONS)
    assert_same_rows(collect(hf.read(spark, tmp_path / folder)), hf.HudiTable.open(tmp_path / folder).to_arrow())
    settings = {**OPTIONS, "hoodie.index.type": "GLOBAL_SIMPLE", "hudi_fast.plan": "routed"}
    assert hf.write(spark.createDataFrame(rows), tmp_path / folder, settings).updates == 16


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.string()),
        (pa.int64(), pa.float32()),
        (pa.float32(), pa.float64()),
        (pa.float64(), pa.string()),
        (pa.string(), pa.binary()),
        (pa.decimal128(9, 2), pa.decimal128(20, 4)),
    ],
    ids=str,
)
def test_a_column_that_changed_its_type_between_files(spark, tmp_path, old, new):
    def rows(part, kind, **more):
        values = pa.array(["1", "22", None]).cast(kind)
        inner = {"x": values, **more}
        structs = pa.StructArray.from_arrays(list(inner.values()), list(inner))
        ids = pa.array([f"{part}{n}" for n in range(3)])
        return pa.table({"id": ids, "part": [part] * 3, "ts": [1, 2, 3], "x": values, "inner": structs})

    hf.write(rows("a", old), tmp_path / "t", OPTIONS)
    rounding = {"hudi_fast.allow.rounding": "true"}
    hf.write(rows("b", new, added=pa.array(["p", "q", "r"])), tmp_path / "t", OPTIONS | rounding)
    expected = hf.HudiTable.open(tmp_path / "t").to_arrow()
    assert expected.schema.field("x").type == (new if new != pa.binary() else old)
    assert_same_rows(collect(hf.read(spark, tmp_path / "t")), expected, ignore=())


def test_ordering_values_of_files_from_before_a_change_of_type(spark, tmp_path):
    options = {**OPTIONS, "hoodie.index.type": "GLOBAL_SIMPLE"}
    ids = ["k0", "k1", "k2"]
    old = pa.table({"id": ids, "part": ["a"] * 3, "ts": pa.array([1, 20, 3], pa.int32())})
    new = pa.table({"id": ids, "part": ["b"] * 3, "ts": pa.array([10.5, 10.5, 10.5], pa.float64())})
    for path, plan in ((tmp_path / "local", "driver"), (tmp_path / "spark", "routed")):
        hf.write(old, path, options)
        result = hf.write(spark.createDataFrame(new), path, {**options, "hudi_fast.plan": plan})
        assert (result.plan, result.inserts, result.deletes) == (plan, 2, 2)
    tables = [hf.HudiTable.open(tmp_path / side).to_arrow() for side in ("spark", "local")]
    assert_same_rows(*tables)


def test_types_that_spark_has_not(spark, tmp_path):
    rows = pa.table(
        {
            "id": ["a", "b"],
            "part": ["p", "p"],
            "ts": [1, 2],
            "fixed": pa.array([b"1234", None], pa.binary(4)),
            "millis": pa.array([1, None], pa.time32("ms")),
            "micros": pa.array([[2], None], pa.list_(pa.time64("us"))),
        }
    )
    hf.write(rows, tmp_path / "t", OPTIONS)
    found = hf.read(spark, tmp_path / "t").orderBy("id").select("fixed", "millis", "micros").collect()
    assert [tuple(row) for row in found] == [(b"1234", 1, [2]), (None, None, None)]


@pytest.mark.parametrize(
    "styles",
    [
        {},
        pytest.param(HIVE, marks=pytest.mark.long),
        {**HIVE, "hoodie.datasource.write.partitionpath.urlencode": "true"},
    ],
)
@pytest.mark.parametrize(
    "field", ["part,number", pytest.param("part", marks=pytest.mark.long), pytest.param("day", marks=pytest.mark.long)]
)
def test_partition_columns_that_are_in_paths_alone(spark, tmp_path, styles, field):
    options = {
        **OPTIONS,
        **styles,
        "hoodie.datasource.write.partitionpath.field": field,
        "hoodie.datasource.write.drop.partition.columns": "true",
    }
    rows = batch([0, 1, 2, 3, 1, 2])
    rows = rows.set_column(2, "part", pa.array(["x", "a b", "50%" if styles else "y", "ä", "a b", "x"]))
    local, remote = tmp_path / "local", tmp_path / "spark"
    for plan in ("fused", "routed"):
        hf.write(rows, local, options)
        hf.write(spark.createDataFrame(rows), remote, {**options, "hudi_fast.plan": plan})
        expected = hf.HudiTable.open(local).to_arrow()
        assert_same_rows(hf.HudiTable.open(remote).to_arrow(), expected)
    read = hf.read(spark, remote)
    assert read.columns == expected.column_names
    assert_same_rows(collect(read), expected)
    if styles and field == "part":
        assert files_scanned(read.filter("part = 'a b'")) < files_scanned(read)
        assert read.filter("part = 'a b'").count() == 1


def test_null_partitions_that_are_in_paths_alone(spark, tmp_path):
    options = {**OPTIONS, **HIVE, "hoodie.datasource.write.drop.partition.columns": "true"}
    rows = batch(range(3)).set_column(2, "part", pa.array(["x", None, None]))
    hf.write(rows, tmp_path / "t", options)
    found = hf.read(spark, tmp_path / "t").select("part").collect()
    assert sorted(row["part"] or "" for row in found) == ["", "", "x"]


def test_the_session_is_left_as_it_was(spark, tmp_path):
    spark.conf.unset(LISTING)
    before = spark.conf.get(LISTING)
    hf.write(batch(range(100)), tmp_path / "t", OPTIONS)
    hf.read(spark, tmp_path / "t")
    assert spark.conf.get(LISTING) == before


def test_partition_columns_from_paths_and_folders_are_those_of_the_local_reader(spark, tmp_path):
    path = tmp_path / "t"
    moved = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    hf.write(batch(range(8)), path, {**OPTIONS, **HIVE, **moved})
    changed = batch(range(1, 2), ts=200)
    at = changed.column_names.index("part")
    hf.write(changed.set_column(at, "part", pa.array(["elsewhere"])), path, {**OPTIONS, **moved})
    from_path = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
    for place in (path, path / "part=p1"):
        for options in ({}, from_path):
            for asked in ({}, {"columns": ["id", "part"], "filter": "part <> 'p0'"}):
                found = collect(hf.read(place, options, spark=spark, **asked))
                expected = hf.read(place, options, **asked)
                if not options:  # Spark itself reads the stored value of the row that stayed in its folder
                    found, expected = (rows.filter(pc.field("id") != "k0001") for rows in (found, expected))
                assert_same_rows(found, expected, key=["id"])
    values = {row["id"]: row["part"] for row in hf.read(path, from_path, spark=spark).where("part = 'p1'").collect()}
    assert set(values.values()) == {"p1"}
    assert "k0001" in values


def test_a_time_with_a_zone_is_that_of_the_timeline(spark, tmp_path):
    before = datetime.now(UTC)
    hf.write(batch(range(3)), tmp_path / "t", {**OPTIONS, "hoodie.table.timeline.timezone": "UTC"})
    assert hf.read(tmp_path / "t", {"as.of.instant": before}, spark=spark).count() == 0
    later = datetime.now().astimezone() + timedelta(seconds=1)
    assert hf.read(tmp_path / "t", {"as.of.instant": later.isoformat()}, spark=spark).count() == 3
