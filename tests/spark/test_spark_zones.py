"""Timestamps with and without zone meet in a session of New York: the table has what Spark's CAST makes.

Modules: hudi_fast.spark.writing.columns.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.spark.sql_sessions import fast, listed
from tests.support.rows import assert_same_rows
from tests.support.small_tables import listing

__all__ = ["fast"]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
OPERATION = "hoodie.datasource.write.operation"
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
TABLE = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("at", INSTANT),
        ("wall", LOCAL),
        ("deep", pa.struct([("at", INSTANT), ("walls", pa.list_(LOCAL))])),
        ("named", pa.map_(pa.string(), INSTANT)),
    ]
)
SWAPPED = (
    "id string, part string, ts bigint, at timestamp_ntz, wall timestamp, "
    "deep struct<at: timestamp_ntz, walls: array<timestamp>>, named map<string, timestamp_ntz>"
)
CASTS = (
    "id",
    "part",
    "ts",
    "cast(at as timestamp) at",
    "cast(wall as timestamp_ntz) wall",
    "named_struct('at', cast(deep.at as timestamp), 'walls', transform(deep.walls, w -> cast(w as timestamp_ntz)))"
    " deep",
    "transform_values(named, (k, v) -> cast(v as timestamp)) named",
)
PLANS = [
    ("driver", "upsert"),
    ("broadcast", "insert_overwrite"),
    ("fused", "upsert"),
    ("routed", "insert"),
    ("direct", "bulk_insert"),
]


@pytest.fixture
def new_york(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def old(count: int = 3) -> pa.Table:
    moments = [dt.datetime(2024, 7, 1, n, tzinfo=dt.UTC) for n in range(count)]
    walls = [one.replace(tzinfo=None) for one in moments]
    deep = [{"at": one, "walls": [wall]} for one, wall in zip(moments, walls, strict=True)]
    named = [[("k", one)] for one in moments]
    ids, parts = [f"k{n}" for n in range(count)], [f"p{n % 2}" for n in range(count)]
    return pa.table([ids, parts, [1] * count, moments, walls, deep, named], schema=TABLE)


def swapped(spark: Any) -> Any:
    """Rows of the other kinds: in winter, in summer, in the hour that New York skips, in the one that comes twice."""
    walls = ["2024-01-15 10:00:00", "2024-07-15 10:00:00.123456", "2024-03-10 02:30:00", "2024-11-03 01:30:00"]
    values = ", ".join(
        f"('k{n}', 'p{n % 2}', 2L, timestamp_ntz'{one}', timestamp'{one}', "
        f"named_struct('at', timestamp_ntz'{one}', 'walls', array(timestamp'{one}', null)), "
        f"map('k', timestamp_ntz'{one}'))"
        for n, one in enumerate(walls)
    )
    frame = spark.sql(f"select * from values {values} as t(id, part, ts, at, wall, deep, named)")
    assert frame.schema.simpleString().count("timestamp_ntz") == 3
    return frame


def test_every_plan_stores_what_sparks_cast_makes(new_york, tmp_path: Path) -> None:
    frame = swapped(new_york)
    wanted = collect(frame.selectExpr(*CASTS))
    assert wanted.schema.field("at").type.tz is not None
    assert wanted.schema.field("wall").type.tz is None
    for plan, operation in PLANS:
        path = tmp_path / plan
        hf.write(old(), path, OPTIONS)
        forced = {**OPTIONS, OPERATION: operation, "hudi_fast.plan": plan.replace("direct", "fused")}
        result = hf.write(frame, path, forced)
        assert (result.plan, result.schema_changes) == (plan, ())
        table = hf.HudiTable.open(path)
        assert table.schema.equals(TABLE)
        found = table.to_arrow(TABLE.names, filter="ts = 2")
        assert_same_rows(found, wanted.cast(TABLE), ignore=())


def test_keys_and_partitions_are_cast_before_they_are_looked_up(new_york, tmp_path: Path) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "wall"}
    rows = collect(swapped(new_york).selectExpr(*CASTS)).cast(TABLE).slice(0, 2)
    for plan in ("driver", "fused"):
        hf.write(rows, tmp_path / plan, options)
        forced = {**options, "hudi_fast.plan": plan, OPERATION: "upsert"}
        same = swapped(new_york).filter("id in ('k0', 'k1')")
        assert hf.write(same, tmp_path / plan, forced).updates == 2
        gone = same.select("wall", "part").limit(1)
        assert hf.write(gone, tmp_path / plan, {**forced, OPERATION: "delete"}).deletes == 1
        assert hf.HudiTable.open(tmp_path / plan).count() == 1


def test_numbers_never_become_moments_without_their_unit(fast, tmp_path: Path) -> None:
    before = fast.conf.get("spark.sql.session.timeZone")
    fast.conf.set("spark.sql.session.timeZone", "America/New_York")
    fast.sql(
        "CREATE TABLE t (id int, ts bigint, at timestamp, wall timestamp_ntz, flag boolean) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    fast.sql("INSERT INTO t SELECT 1, 1L, timestamp_ntz'2024-07-15 10:00:00', timestamp'2024-07-15 10:00:00', true")
    moments = "SELECT unix_millis(at), date_format(wall, 'yyyy-MM-dd HH:mm') FROM t WHERE id = 1"
    wanted = [(1721052000000, "2024-07-15 10:00")]
    assert listed(fast, moments) == wanted
    fast.sql("UPDATE t SET at = timestamp_ntz'2024-01-15 10:00:00' WHERE id = 1")
    assert listed(fast, moments) == [(1705330800000, "2024-07-15 10:00")]
    (location,) = [
        row["data_type"] for row in fast.sql("DESCRIBE EXTENDED t").collect() if row["col_name"] == "Location"
    ]
    path = location.removeprefix("file:")
    held = listing(path)
    source = "(SELECT 1 AS id, 1721052000000L AS at) s"
    for statement in (
        "INSERT INTO t SELECT 2, 1L, 1721052000000L, timestamp_ntz'2024-07-15 10:00:00', true",
        "INSERT INTO t SELECT 2, 1L, null, 1721052000000L, true",
        "INSERT INTO t SELECT 2, timestamp'2024-07-15 10:00:00', null, null, true",
        "INSERT INTO t SELECT 2, 1L, null, null, 5",
        "UPDATE t SET at = 1721052000000L",
        "UPDATE t SET ts = at",
        f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET at = s.at",
    ):
        with pytest.raises(hf.SchemaMismatchError, match=r"column '\w+' is .* in the table and the value is"):
            fast.sql(statement)
    for number, frame in enumerate((
        fast.sql("SELECT 2 AS id, 1L AS ts, 1721052000000L AS at, null AS wall, true AS flag"),
        fast.sql("SELECT 2 AS id, current_timestamp() AS ts, null AS at, null AS wall, true AS flag"),
    )):  # fmt: skip
        with pytest.raises(hf.SchemaMismatchError, match=f"column '{('at', 'ts')[number]}' is .*unit of the numbers"):
            hf.write(frame, path, {**OPTIONS, "hoodie.datasource.write.partitionpath.field": ""})
    assert listing(path) == held
    fast.conf.set("spark.sql.session.timeZone", before)
