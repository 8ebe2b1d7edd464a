"""Filters given to a read with Spark: files are left out before Spark plans its scan, and no row is lost."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.errors import ConfigError
from hudi_fast.expressions.conditions import (
    And,
    Anything,
    Cast,
    Column,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
)
from hudi_fast.spark.arrow import spark_schema
from hudi_fast.spark.reading.filters import understand_filter

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "small": pa.int32(),
        "name": pa.string(),
        "ratio": pa.float64(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "paid": pa.bool_(),
        "price": pa.decimal128(9, 2),
        "place": pa.struct({"city": pa.string()}),
    }
)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.bloom.num_entries": "100",
}


def column(*path: str) -> Column:
    return Column(path)


def constant(value: Any, kind: pa.DataType | None = None) -> Constant:
    return Constant(pa.scalar(value, kind))


CASES: list[tuple[Any, Condition]] = [
    ("id = 5", Compare("==", column("id"), constant(5))),
    ("5 < small", Compare(">", column("small"), constant(5, pa.int32()))),
    ("small >= 5000000000", Compare(">=", Cast(column("small"), pa.int64()), constant(5_000_000_000))),
    ("not (name <=> null)", Not(Anything())),
    ("not (name <=> small)", Not(Anything())),
    ("name like 'ab%'", StartsWith(column("name"), "ab")),
    ("startswith(name, 'ab')", StartsWith(column("name"), "ab")),
    ("name is not null", Not(IsNull(column("name")))),
    ("place.city = 'Oslo'", Compare("==", column("place", "city"), constant("Oslo"))),
    ("day >= '2024-02-29'", Compare(">=", column("day"), constant(dt.date(2024, 2, 29)))),
    ("price < 1.50", Compare("<", column("price"), constant(1.5))),
    ("paid or not paid", Or((Compare("==", column("paid"), constant(True)),) * 2)),
    ("upper(name) = 'X'", Compare("==", Function("spark.upper", column("name")), constant("X"))),
    ("trim(name) = 'X'", Compare("==", Function("spark.trim", column("name")), constant("X"))),
    (
        "substring(name, 2, 3) = 'X'",
        Compare("==", Function("spark.substring", column("name"), {"pos": "2", "len": "3"}), constant("X")),
    ),
    (
        "regexp_extract(name, 'a(b)', 1) = 'X'",
        Compare("==", Function("spark.regexp_extract", column("name"), {"pattern": "a(b)", "idx": "1"}), constant("X")),
    ),
    (
        "regexp_replace(name, 'a', '') = 'X'",
        Compare(
            "==", Function("spark.regexp_replace", column("name"), {"pattern": "a", "replacement": ""}), constant("X")
        ),
    ),
    (
        "date_add(day, 3) >= '2024-02-29'",
        Compare(">=", Function("spark.date_add", column("day"), {"days": "3"}), constant(dt.date(2024, 2, 29))),
    ),
    ("substring(name, small, 3) = 'X'", Anything()),
    ("ratio > 1.5D", Compare(">", column("ratio"), constant(1.5))),
    (
        "id between 1 and 3",
        And((Compare(">=", column("id"), constant(1)), Compare("<=", column("id"), constant(3)))),
    ),
    ("ratio = double('NaN')", Anything()),
    ("day < current_date()", Anything()),
    ("cast(day as timestamp) > timestamp '2024-01-01 00:00:00'", Anything()),
    ("reverse(name) > 'x'", Anything()),
    ("small in (1, 2)", In(column("small"), pa.array([1, 2], pa.int32()), None)),
]


@pytest.mark.parametrize(("text", "condition"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_filter_is_understood_as_spark_means_it(spark: Any, text: str, condition: Condition) -> None:
    found = understand_filter(spark, spark_schema(SCHEMA), text).condition
    if "price" in text:  # Spark chooses the decimal type that both sides are brought to
        assert isinstance(found, Compare)
        assert (found.sign, float(found.right.value.as_py())) == ("<", 1.5)
    elif isinstance(condition, In):
        assert isinstance(found, In)
        assert (found.value, found.null_is, found.values.equals(condition.values)) == (condition.value, None, True)
    elif "paid" in text:
        assert found == Or((condition.parts[0], Not(condition.parts[1])))
    else:
        assert found == condition


def test_the_columns_of_a_filter_are_named(spark: Any) -> None:
    found = understand_filter(spark, spark_schema(SCHEMA), (F.col("name") == "x") | (F.col("place.city") == "y"))
    assert found.columns == ("name", "place")


def test_a_filter_that_does_not_fit_is_refused(spark: Any) -> None:
    with pytest.raises(ConfigError, match="nothing_like_this"):
        understand_filter(spark, spark_schema(SCHEMA), "nothing_like_this > 1")


def table_of_six_files(path: Path, options: dict[str, str] | None = None) -> None:
    for first in (0, 10, 20):
        ids = range(first, first + 10)
        rows = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "part": [f"p{one % 2}" for one in ids],
                "ts": pa.array(ids, pa.int64()),
                "ratio": [math.nan if one == 13 else one + 0.5 for one in ids],
                "name": [f"n{one:03d}" for one in ids],
            }
        )
        hf.write(rows, path, {**OPTIONS, **(options or {})})


def scanned(frame: Any) -> int:
    return len(frame.inputFiles())


FILTERS = [
    ("id = 17", [17], 1),
    (lambda: F.col("id").isin(3, 28), [3, 28], 2),
    ("name like 'n02%' and part = 'p0'", [20, 22, 24, 26, 28], 1),
    ("ratio between 4 and 9", [4, 5, 6, 7, 8], 3),
    ("name > 'n999'", [], 0),
    ("id + 1 = 4", [3], 6),
]


@pytest.fixture(scope="module")
def cow_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("skipping") / "t"
    table_of_six_files(path)
    return path


@pytest.mark.smoke("id = 17")
@pytest.mark.parametrize(
    ("filter_", "ids", "files"), FILTERS, ids=[one[0] if isinstance(one[0], str) else "a column" for one in FILTERS]
)
def test_only_files_that_may_match_are_scanned(
    spark: Any, cow_table: Path, filter_: Any, ids: list[int], files: int
) -> None:
    frame = hf.read(spark, cow_table, filter=filter_ if isinstance(filter_, str) else filter_(), columns=["id"])
    assert frame.columns == ["id"]
    assert sorted(row["id"] for row in frame.collect()) == ids
    assert scanned(frame) == files


def test_a_file_with_nan_is_kept_by_what_nan_is_greater_than(cow_table: Path, spark: Any) -> None:
    assert scanned(hf.read(spark, cow_table, filter="ratio > 100")) == 1
    assert scanned(hf.read(spark, cow_table, filter="ratio < 0")) == 1


def test_data_skipping_can_be_switched_off(spark: Any, cow_table: Path) -> None:
    for key in ("hoodie.enable.data.skipping", "hoodie.metadata.enable"):
        frame = hf.read(spark, cow_table, {key: "false"}, filter="name = 'n017'")
        assert [row["id"] for row in frame.collect()] == [17]
        assert scanned(frame) == 6


def test_expressions_of_arrow_leave_files_out_too(spark: Any, cow_table: Path) -> None:
    frame = hf.read(spark, cow_table, filter=pc.field("name") == "n017")
    assert [row["id"] for row in frame.collect()] == [17]
    nothing = hf.read(spark, cow_table, filter=pc.field("name") == "x")
    assert nothing.count() == 0


def test_a_slice_is_kept_when_its_log_may_match(spark: Any, tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    table_of_six_files(tmp_path / "t", options)
    changed = pa.table(
        {"id": [4, 5], "part": ["p0", "p1"], "ts": [100, 100], "ratio": [1.0, 1.0], "name": ["z4", "z5"]}
    )
    update = {**OPTIONS, **options, "hoodie.datasource.write.operation": "upsert"}
    hf.write(changed, tmp_path / "t", update)
    assert [row["id"] for row in hf.read(spark, tmp_path / "t", filter="name = 'z4'").collect()] == [4]
    assert hf.read(spark, tmp_path / "t", filter="name = 'n004'").collect() == []
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    assert [row["id"] for row in hf.read(spark, tmp_path / "t", optimized, filter="name = 'n004'").collect()] == [4]
