"""Rows of Parquet files that Python reads are the rows that Spark reads, exactly; all others are left to Spark.

Modules: hudi_fast.spark.incoming.chosen_scan, hudi_fast.spark.incoming.file_scan, hudi_fast.spark.incoming.expressions.
"""

import datetime as dt
import os
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import hudi_fast as hf
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.spark.arrow import arrow_schema, collect, session_conf
from hudi_fast.spark.incoming.chosen_scan import chosen_scan, first_rows_of_scan, rows_by_footers, rows_of_scan
from hudi_fast.spark.incoming.expressions import ScanRefusedError
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy

INNER = pa.struct([("p", pa.int64()), ("q", pa.list_(pa.timestamp("us", "UTC"))), ("r", pa.string())])
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "tiny": pa.int8(),
        "small": pa.int16(),
        "whole": pa.int32(),
        "float": pa.float32(),
        "double": pa.float64(),
        "flag": pa.bool_(),
        "text": pa.string(),
        "money": pa.decimal128(9, 2),
        "longer": pa.decimal128(18, 4),
        "longest": pa.decimal128(38, 9),
        "bytes": pa.binary(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "wall": pa.timestamp("us"),
        "list": pa.list_(pa.int32()),
        "map": pa.map_(pa.string(), pa.float64()),
        "inner": INNER,
        "deep": pa.list_(pa.struct([("day", pa.date32()), ("n", pa.decimal128(5, 1))])),
    }
)
ROWS = 700


def value(chance, kind):
    """A random value of an Arrow type, often null or at an end of its range."""
    if chance.random() < 0.15:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(chance, field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(f"k{at}", value(chance, kind.item_type)) for at in range(chance.randrange(3))]
    if pa.types.is_list(kind):
        return [value(chance, kind.value_type) for _ in range(chance.randrange(4))]
    if pa.types.is_integer(kind):
        maximum = 2 ** (kind.bit_width - 1)
        return chance.choice([-maximum, maximum - 1, 0, 1, 2, 3, chance.randrange(-maximum, maximum)])
    if pa.types.is_floating(kind):
        return chance.choice([float("nan"), -0.0, 0.0, float("inf"), -1.5, chance.randrange(1000) / 8])
    if pa.types.is_decimal(kind):
        digits = chance.randrange(10 ** chance.randrange(1, kind.precision + 1))
        return Decimal(chance.choice([-1, 1]) * digits).scaleb(-kind.scale)
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_string(kind):
        return chance.choice(
            ["", "a", "B", "z\u0301\u00e9", "\U0001f600", "\uffff", "a\x00b", str(chance.randrange(99))]
        )
    if pa.types.is_binary(kind):
        return chance.randbytes(chance.randrange(5))
    if pa.types.is_date(kind):
        return dt.date(1, 1, 1) + dt.timedelta(days=chance.randrange(3_650_000))
    moment = dt.datetime(1, 1, 1) + dt.timedelta(
        days=chance.randrange(3_650_000), microseconds=chance.randrange(10**11)
    )
    return moment.replace(tzinfo=dt.UTC) if kind.tz else moment


def generated(seed):
    """Random rows of all types; ``id`` numbers them."""
    chance = random.Random(seed)
    columns = {field.name: [value(chance, field.type) for _ in range(ROWS)] for field in SCHEMA}
    columns["id"] = list(range(ROWS))
    return pa.table(columns, schema=SCHEMA)


def exact(table):
    """Rows as text, which tells NaN, -0.0 and null apart."""
    return sorted(map(repr, table.to_pylist()))


def assert_read_alike(df):
    """Python reads the rows of a DataFrame, and they are Spark's."""
    scan = chosen_scan(df, "files").files
    found = rows_of_scan(scan)
    expected = collect(df).cast(found.schema)  # PySpark 3.5 shows times in the zone of the session
    assert found.schema == arrow_schema(df)
    assert exact(found) == exact(expected)
    assert exact(pa.Table.from_batches([batch for task in scan.tasks for batch in scan.read(task)], found.schema)) == (
        exact(expected)
    )
    return scan


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Generated rows in files of pyarrow with small row groups, two of them with another order of columns."""
    path = tmp_path_factory.mktemp("rows")
    for seed in range(3):
        rows = generated(seed)
        order = rows.column_names if seed != 1 else rows.column_names[::-1]
        pairs = {"org.apache.spark.version": "4.0.0"}  # Spark 3.5 does not trust the dates of other writers
        rows = rows.select(order).replace_schema_metadata(pairs)
        pq.write_table(rows, path / f"{seed}.parquet", row_group_size=50, store_decimal_as_integer=seed == 2)
    return path


@pytest.fixture(scope="module")
def partitioned(spark, folder, tmp_path_factory):
    """The same rows in files of Spark, by typed, escaped and null partition values."""
    path = tmp_path_factory.mktemp("partitioned") / "rows"
    rows = spark.read.parquet(str(folder)).withColumn(
        "place", F.when(F.col("id") % 3 == 0, "a b/=c,%\u00e9:").when(F.col("id") % 3 == 1, "x")
    )
    rows = rows.withColumn("number", F.when(F.col("id") % 2 == 0, F.col("id") % 5)).withColumn(
        "when", F.lit("2024-02-29").cast("date")
    )
    present = {f"spark.sql.parquet.{one}RebaseModeInWrite": "CORRECTED" for one in ("datetime", "int96")}
    with session_conf(spark, present):
        rows.repartition(1).write.partitionBy("place", "number", "when").parquet(str(path))
    return path


def test_all_types_are_read_alike(spark, folder, partitioned):
    for size in ("128m", "9000b", "1500b"):
        with session_conf(spark, {"spark.sql.files.maxPartitionBytes": size, "spark.sql.files.openCostInBytes": "0"}):
            scan = assert_read_alike(spark.read.parquet(str(folder)))
            assert sum(map(len, scan.tasks)) >= {"128m": 3, "9000b": 12, "1500b": 60}[size]
            assert_read_alike(spark.read.parquet(str(partitioned)))
    scan = chosen_scan(spark.read.parquet(str(folder)), "auto").files
    assert rows_by_footers(scan) == 3 * ROWS
    assert first_rows_of_scan(scan, 5).num_rows == 5


LOSSLESS = ["tiny as smallint", "small as int", "whole as bigint", "whole as string", "id as string", "flag as string"]
LOSSLESS += ["float as double", "whole as double", "money as decimal(12,4)", "tiny as decimal(5,1)"]
ALIKE = {
    "order": lambda df: df.select("text", "id", "inner", "deep"),
    "names": lambda df: df.withColumnRenamed("text", "words").select("words", "tiny", F.col("id").alias("key")),
    "constants": lambda df: df.selectExpr(
        "id", "1 as a", "'x' as b", "cast(null as int) as c", "1.50 as d", "true as e", "date'2024-02-29' as f",
        "1.5D as g", "cast(2 as bigint) as h", "cast(null as string) as i", "'null' as j",
    ),
    "casts": lambda df: df.selectExpr("id", *[f"cast({one}) as c{at}" for at, one in enumerate(LOSSLESS)]),
    "a field": lambda df: df.select("id", "inner.p", F.col("inner.q").alias("times")),
    "a part of a list": lambda df: df.select("id", F.col("inner.r"), "list"),
    "nothing but constants": lambda df: df.selectExpr("1 as a"),
    "several steps": lambda df: df.select("id", F.col("whole").alias("w")).where("w > 0").select(F.col("w").alias("v")),
}  # fmt: skip
CONDITIONS = [
    "whole > 1", "whole <= 0 and id >= 20", "whole = 1 or whole is null", "not (whole > 1)", "tiny <> 2", "flag",
    "not flag", "flag = true or small < 3", "text > 'a'", "text < '\U0001f600'", "text >= '\uffff'", "text = ''",
    "text is not null", "text in ('a', 'B', null)", "text not in ('a', 'B')", "not (text in ('a', null))",
    "whole <=> null", "text <=> 'a'", "whole <=> tiny", "money > 1.00", "money = longer", "longer <= 0",
    "day > date'2000-01-01'", "day between date'0100-01-01' and date'1600-01-01'", "inner.p > 2", "inner is null",
    "list is not null", "tiny < small", "text > inner.r", "at is null", "whole in (1, 2, 3)", "money in (0, 1.5)",
    "(whole > 1) <=> (tiny > 1)", "whole > 1 = flag",
]  # fmt: skip
PLACES = [
    "place = 'x'",
    "place is null and number = 1",
    "number in (1, 3) and whole > 0",
    "number is null",
    "number < 0",
]


def test_projections_casts_and_filters_are_read_alike(spark, folder, partitioned):
    df = spark.read.parquet(str(folder))
    for change in ALIKE.values():
        assert_read_alike(change(df))
    kept = set()
    for condition in CONDITIONS:
        scan = chosen_scan(df.where(condition), "auto")
        if scan.files is not None:
            assert_read_alike(df.where(condition).select("id", "text", "whole"))
            kept.add(condition)
    assert len(kept) >= len(CONDITIONS) - 3, set(CONDITIONS) - kept
    stored = spark.read.parquet(str(partitioned))
    for condition in PLACES:
        assert_read_alike(stored.where(condition).select("number", "id", "place", "when"))


LEFT_TO_SPARK = {
    "narrower": (lambda df: df.selectExpr("cast(id as int) as v"), "casts int64 to int32"),
    "text of a fraction": (lambda df: df.selectExpr("cast(double as string) as v"), "casts double to string"),
    "text of a time": (lambda df: df.selectExpr("cast(at as string) as v"), "casts timestamp"),
    "a zone": (lambda df: df.selectExpr("cast(wall as timestamp) as v"), "casts timestamp"),
    "a number of a text": (lambda df: df.selectExpr("try_cast(text as int) as v"), "casts string to int32"),
    "fractions": (lambda df: df.where("double > 0.5"), "compares double"),
    "functions": (lambda df: df.select(F.upper("text")), "Spark evaluates"),
    "arithmetic": (lambda df: df.selectExpr("id + 1 as v"), "Spark evaluates"),
    "chance": (lambda df: df.withColumn("r", F.rand()), "Rand"),
    "numbers of rows": (lambda df: df.withColumn("r", F.monotonically_increasing_id()), "Monotonically"),
    "files": (lambda df: df.withColumn("f", F.input_file_name()), "InputFileName"),
    "metadata": (lambda df: df.select("id", "_metadata.file_name"), "metadata|Spark evaluates|the column"),
    "limits": (lambda df: df.limit(3), "Limit"),
    "order": (lambda df: df.orderBy("id"), "Sort"),
    "groups": (lambda df: df.groupBy("whole").count(), "Aggregate"),
    "tasks": (lambda df: df.repartition(2), "Repartition"),
    "samples": (lambda df: df.sample(0.5, seed=1), "Sample"),
    "now": (lambda df: df.withColumn("now", F.current_timestamp()), "a constant of the type timestamp"),
}


def test_other_plans_are_left_to_spark(spark, folder):
    df = spark.read.parquet(str(folder))
    for name, (change, reason) in LEFT_TO_SPARK.items():
        with pytest.raises(ConfigError, match=f"hudi_fast.scan=files cannot read the rows: .*({reason})"):
            chosen_scan(change(df), "files")
        assert chosen_scan(change(df), "auto").remark.startswith("; Spark reads the Parquet files: "), name
    for other in (spark.range(3), df.union(df), df.join(df.select("id"), "id")):
        assert chosen_scan(other, "auto") == chosen_scan(df, "spark")
        with pytest.raises(ConfigError, match="are not read from Parquet files alone"):
            chosen_scan(other, "files")
    cached = df.select("id").cache()
    assert chosen_scan(cached, "auto").files is None
    cached.unpersist()


def test_settings_and_options_that_change_values_are_left_to_spark(spark, folder, tmp_path):
    for name in ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"):
        with session_conf(spark, {name: "true"}):
            assert name in chosen_scan(spark.read.parquet(str(folder)), "auto").reason
    schema = spark.read.parquet(str(folder)).schema
    for key in ("ignoreCorruptFiles", "parquet.crypto.factory.class"):
        df = spark.read.schema(schema).option(key, "true").parquet(str(folder))
        assert f"the option {key.lower()}" in chosen_scan(df, "auto").reason
    spark.read.parquet(str(folder)).select("id", "text").write.format("orc").save(str(tmp_path / "orc"))
    assert "OrcFileFormat" in chosen_scan(spark.read.orc(str(tmp_path / "orc")), "auto").reason
    assert chosen_scan(spark.read.schema("id bigint, more int").parquet(str(folder)), "auto").reason.endswith(
        "it has no column more"
    )
    assert "stored as" in chosen_scan(spark.read.schema("id string").parquet(str(folder)), "auto").reason
    assert "no column ID" in chosen_scan(spark.read.schema("ID bigint").parquet(str(folder)), "auto").reason
    field = T.StructField("text", T.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(9)"})
    assert "CHAR" in chosen_scan(spark.read.schema(T.StructType([field])).parquet(str(folder)), "auto").reason


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_timestamps_of_the_present_calendar_are_read_alike_and_others_left_to_spark(spark, folder, tmp_path, kind):
    rows = spark.read.parquet(str(folder)).select("id", "day", "at", "wall", "inner")
    for mode in ("CORRECTED", "LEGACY"):
        settings = {f"spark.sql.parquet.{one}RebaseModeInWrite": mode for one in ("datetime", "int96")}
        with session_conf(spark, {"spark.sql.parquet.outputTimestampType": kind, **settings}):
            rows.write.parquet(str(tmp_path / mode))
        written = spark.read.parquet(str(tmp_path / mode))
        if mode == "CORRECTED":
            assert_read_alike(written)
            with session_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
                assert_read_alike(spark.read.parquet(str(tmp_path / mode)))
        else:
            assert "old calendar" in chosen_scan(written.select("at"), "auto").reason
            assert_read_alike(written.select("id"))


def test_dates_of_other_writers_are_read_alike_from_the_present_calendar_on(spark, tmp_path):
    days = pa.array([dt.date(1582, 10, 15), dt.date(2024, 2, 29), None])
    times = pa.array([dt.datetime(1905, 1, 1), None, dt.datetime(9999, 12, 31)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2, 3], "day": days, "at": times, "deep": pa.array([[one] for one in days.to_pylist()])})
    old = rows.set_column(1, "day", pa.array([dt.date(1582, 10, 4), None, None]))
    older = rows.set_column(2, "at", pa.array([None, dt.datetime(1899, 1, 1), None], pa.timestamp("us", "UTC")))
    for name, table in {"new": rows, "old": old, "older": older}.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "a.parquet")
    flat = ["id", "day", "at"]
    for mode in ("EXCEPTION", "CORRECTED", "LEGACY"):
        with session_conf(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": mode}):
            new = spark.read.parquet(str(tmp_path / "new"))
            if mode == "LEGACY":
                assert "old calendar" in chosen_scan(new.select(flat), "auto").reason
                continue
            assert_read_alike(new.select(flat))
            assert (chosen_scan(new, "auto").files is None) == (mode == "EXCEPTION")
            for name in ("old", "older"):
                df = spark.read.parquet(str(tmp_path / name)).select(flat)
                if mode == "CORRECTED":
                    assert_read_alike(df)
                    continue
                with pytest.raises(ScanRefusedError, match="before"):
                    rows_of_scan(chosen_scan(df, "auto").files)
                with pytest.raises(Exception, match=r"DATETIME_VALUES|1582|1900|calendar"):
                    collect(df)


OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "whole",
    "hoodie.datasource.write.operation": "bulk_insert",
}


@pytest.mark.parametrize("plan", [{"hudi_fast.driver.max.bytes": "1"}, {}])
def test_a_table_is_the_same_whoever_reads_the_files(spark, folder, tmp_path, plan):
    df = spark.read.parquet(str(folder)).selectExpr("*", "cast(id as string) as name", "'p' as part")
    tables = {}
    for scan in ("spark", "files"):
        made = tmp_path / scan
        result = hf.write(df, made, {**OPTIONS, **plan, "hudi_fast.scan": scan})
        assert result.plan == ("direct" if plan else "driver")
        assert result.reason.endswith("; Python reads the Parquet files") == (scan == "files")
        tables[scan] = hf.HudiTable.open(made).to_arrow(df.columns)
    assert tables["spark"].num_rows == 3 * ROWS
    assert exact(tables["files"]) == exact(tables["spark"])


def files_of(folder, count, odd=None):
    """Files of rows, Spark's order: the largest first; ``odd`` writes another file of the number 1."""
    folder.mkdir()
    for number in range(count):
        ids = range(1000 * number, 1000 * number + 600 - 10 * number)
        rows = pa.table({"id": pa.array([str(one) for one in ids]), "whole": ids, "part": ["p"] * len(ids)})
        path = folder / f"{number:02}.parquet"
        pq.write_table(rows, path)
        if number == 1 and odd is not None:
            odd(path, rows)
    return folder


DIRECT = {**OPTIONS, "hudi_fast.driver.max.bytes": "1"}


def test_a_file_that_tasks_find_to_be_different_is_left_to_spark(spark, tmp_path, monkeypatch):
    def narrower(path, rows):  # Spark 4 reads it as the wider number
        pq.write_table(rows.set_column(1, "whole", rows["whole"].cast(pa.int32())), path)

    folder = files_of(tmp_path / "rows", 9, narrower)
    df = spark.read.schema("id string, whole bigint, part string").parquet(str(folder))
    monkeypatch.setattr("hudi_fast.spark.incoming.chosen_scan._check_samples", lambda scan: None)
    if int(spark.version.split(".")[0]) >= 4:
        result = hf.write(df, tmp_path / "t", DIRECT)
        assert "Spark reads the Parquet files: " in result.reason
        assert "01.parquet: its column whole is stored as INT32" in result.reason
        assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(df.columns), collect(df), key=["id"])
        assert_tidy(tmp_path / "t")
    with pytest.raises(ConfigError, match=r"hudi_fast\.scan=files cannot read the rows: .*stored as INT32"):
        hf.write(df, tmp_path / "u", {**DIRECT, "hudi_fast.scan": "files"})


def test_a_file_that_changes_meanwhile_ends_the_write(spark, tmp_path):
    folder = files_of(tmp_path / "rows", 9)
    df = spark.read.parquet(str(folder))
    changed = folder / "01.parquet"
    whole = changed.read_bytes()
    changed.unlink()
    with pytest.raises(InvalidDataError, match=r"01\.parquet, which the DataFrame reads, is gone"):
        hf.write(df, tmp_path / "t", DIRECT)
    changed.write_bytes(whole[:-8])
    with pytest.raises(InvalidDataError, match=r"01\.parquet, which the DataFrame reads, has"):
        hf.write(df, tmp_path / "t", DIRECT)
    changed.write_bytes(whole)
    with pytest.raises(InvalidDataError, match=r"01\.parquet, which the DataFrame reads, has"):
        hf.write(df, tmp_path / "t", {**OPTIONS})
    listed = spark.read.parquet(str(folder))
    times = changed.stat()
    changed.write_bytes(whole[:50] + bytes(len(whole) - 400) + whole[-350:])
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(Exception, match=r"(?i)corrupt|decompress|decode|01\.parquet"):
        hf.write(listed, tmp_path / "t", DIRECT)
    assert not list((tmp_path / "t").rglob("*.commit"))


def test_a_table_may_be_written_from_its_own_files(spark, tmp_path):
    folder = files_of(tmp_path / "rows", 2)
    rows = spark.read.parquet(str(folder))
    hf.write(rows, tmp_path / "t", DIRECT)
    own = spark.read.parquet(str(tmp_path / "t" / "p")).select(*rows.columns)
    again = {**DIRECT, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    hf.write(own, tmp_path / "t", again)
    assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(rows.columns), collect(rows), key=["id"])
