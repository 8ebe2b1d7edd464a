"""Every Spark type through every plan and back, in a session whose time zone is not UTC."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.support.rows import assert_same_rows

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
NOON = dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC)  # 01:30 in New York, an hour before it is 01:30 again
INNER = pa.struct([pa.field("p", pa.int64()), pa.field("q", pa.list_(pa.timestamp("us", "UTC")))])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("tiny", pa.int8()),
        pa.field("small", pa.int16()),
        pa.field("whole", pa.int32()),
        pa.field("long", pa.int64()),
        pa.field("float", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("money", pa.decimal128(9, 2)),
        pa.field("longer", pa.decimal128(18, 4)),
        pa.field("longest", pa.decimal128(38, 9)),
        pa.field("bytes", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("wall", pa.timestamp("us")),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field("inner", INNER),
        pa.field("deep", pa.list_(pa.struct([pa.field("day", pa.date32()), pa.field("n", pa.decimal128(5, 1))]))),
    ]
)
FULL = {
    "tiny": -128,
    "small": 32767,
    "whole": -(2**31),
    "long": 2**63 - 1,
    "float": 0.1,
    "double": -1e300,
    "flag": True,
    "money": Decimal("-1234567.89"),
    "longer": Decimal("12345678901234.5678"),
    "longest": Decimal("-12345678901234567890123456789.123456789"),
    "bytes": b"\x00\xff",
    "day": dt.date(1500, 2, 28),
    "wall": dt.datetime(2024, 3, 10, 2, 30),  # a time that New York skipped
    "list": [1, None, 3],
    "map": [("a", 1.5), ("b", None)],
    "inner": {"p": 7, "q": [NOON, None]},
    "deep": [{"day": dt.date(1969, 12, 31), "n": Decimal("1.5")}, None],
}
EMPTY = {"list": [], "map": [], "bytes": b"", "deep": [], "inner": {"p": None, "q": []}, "double": float("inf")}
VALUES = [FULL, {}, EMPTY, {**FULL, "day": dt.date(9999, 12, 31), "double": float("nan"), "flag": False}]
SPARK_TYPES = {
    "tiny": T.IntegerType(),
    "small": T.IntegerType(),
    "ts": T.TimestampType(),
    "money": T.DecimalType(9, 2),
    "longest": T.DecimalType(38, 9),
    "bytes": T.BinaryType(),
    "day": T.DateType(),
    "wall": T.TimestampNTZType(),
    "list": T.ArrayType(T.IntegerType()),
    "map": T.MapType(T.StringType(), T.DoubleType()),
    "inner": T.StructType().add("p", T.LongType()).add("q", T.ArrayType(T.TimestampType())),
}


def table_of(ids, minutes):
    rows = [
        {"id": f"k{n}", "part": f"p{n % 3}", "ts": NOON + dt.timedelta(minutes=minutes + n), **VALUES[n % len(VALUES)]}
        for n in ids
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def frame(spark, folder, rows):
    """These rows as Spark reads them from files; ``createDataFrame`` would move times without a zone."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2):
        pq.write_table(rows.slice(number * 10, 10 if number == 0 else None), folder / f"{number}.parquet")
    return spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(folder))


@pytest.fixture
def new_york(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.smoke("fused-ts,longer,wall,bytes,inner.p")
@pytest.mark.parametrize(
    ("plan", "key"),
    [
        ("direct", "id"),
        *(pytest.param(plan, "id", marks=pytest.mark.long) for plan in ("driver", "broadcast", "fused", "routed")),
        *((plan, "ts,longer,wall,bytes,inner.p") for plan in ("fused", "routed")),
    ],
)
def test_every_type_comes_back_as_it_was(new_york, tmp_path, plan, key):
    local, remote = tmp_path / "local", tmp_path / "spark"
    options = {**OPTIONS, "hoodie.datasource.write.recordkey.field": key}
    if plan == "direct":
        options["hoodie.datasource.write.operation"] = "bulk_insert"
    steps = [table_of(range(16), 0)] if plan == "direct" else [table_of(range(16), 0), table_of(range(8, 24), 0)]
    for rows in steps:
        hf.write(rows, local, options)
        result = hf.write(
            frame(new_york, tmp_path / "rows", rows),
            remote,
            {**options, "hudi_fast.plan": plan.replace("direct", "fused")},
        )
        assert result.plan == plan
    assert_same_rows(hf.HudiTable.open(remote).to_arrow(), hf.HudiTable.open(local).to_arrow())
    read = hf.read(new_york, remote)
    assert_same_rows(collect(read), hf.HudiTable.open(local).to_arrow())
    assert {name: read.schema[name].dataType for name in SPARK_TYPES} == SPARK_TYPES


@pytest.mark.parametrize("plan", ["fused", "direct", pytest.param("routed", marks=pytest.mark.long)])
def test_partitions_by_time_do_not_follow_the_session(new_york, tmp_path, plan):
    rows = table_of(range(60), 0)
    hours = pa.array([dt.datetime(2024, 11, 3, n, 15) for n in (0, 4, 5, 6, 7, 19)] * 10, pa.timestamp("us"))
    rows = rows.set_column(rows.column_names.index("wall"), "wall", hours)
    rows = rows.set_column(2, "ts", hours.cast(pa.timestamp("us", "UTC")))
    for field in ("ts", "money") if plan == "direct" else ("ts", "wall", "money", "float"):
        options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": field}
        if field in ("ts", "wall"):
            options |= {
                "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
                "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
                "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd HH",
                "hoodie.keygen.timebased.timezone": "UTC",
            }
        if plan == "direct":
            options["hoodie.datasource.write.operation"] = "bulk_insert"
            options["hoodie.bulkinsert.sort.mode"] = "PARTITION_PATH_REPARTITION"
        local, remote = tmp_path / field / "local", tmp_path / field / "spark"
        forced = {**options, "hudi_fast.plan": plan.replace("direct", "fused")}
        for _ in range(1 if plan == "direct" or field != "wall" else 2):  # the second one changes the same rows
            hf.write(rows, local, options)
            result = hf.write(frame(new_york, tmp_path / "rows", rows), remote, forced)
        assert_same_rows(hf.HudiTable.open(remote).to_arrow(), hf.HudiTable.open(local).to_arrow())
        if plan != "routed":  # which sends a partition's inserts to several tasks
            assert result.files_written == hf.HudiTable.open(local).partitions().num_rows


def test_interval_columns_are_refused_by_name(spark, tmp_path):
    rows = spark.range(3).selectExpr("concat('k', id) as id", "make_dt_interval(id) as span")
    with pytest.raises(hf.UnsupportedFeatureError, match="'span'"):
        hf.write(rows, tmp_path / "t", {**OPTIONS, "hoodie.datasource.write.partitionpath.field": ""})


def test_arrays_and_maps_without_a_type_are_refused_by_name(spark, tmp_path):
    settings = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": ""}
    for made, advice in {
        "array()": "array<int>",
        "map()": "map<string,int>",
        "struct(array() as a)": "array<int>",
    }.items():
        rows = spark.range(3).selectExpr("concat('k', id) as id", "1 as ts", f"{made} as empty")
        with pytest.raises(hf.UnsupportedFeatureError, match=rf"'empty'.*void.*{advice}"):
            hf.write(rows, tmp_path / "t", settings)
    assert not (tmp_path / "t").exists()
