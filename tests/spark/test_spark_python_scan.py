"""Scans whose rows Python reads: the columns and filters of a query reach it, and Spark's rows are the same.

Module: hudi_fast.spark.reading.python_scan.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.errors import HudiWarning, InvalidDataError
from hudi_fast.expressions.conditions import Anything
from hudi_fast.spark.arrow import collect, spark_arrow
from hudi_fast.spark.jvm import java_class
from hudi_fast.spark.reading import file_index, python_scan, reader, scan
from hudi_fast.spark.reading.python_scan import Query, UnitRows, prunes_columns, python_frame
from tests.spark.query_plans import without_python_scan
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([
    ("id", pa.int64()), ("text", pa.string()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")),
    ("price", pa.decimal128(9, 2)), ("share", pa.float64()), ("yes", pa.bool_()), ("small", pa.int16()),
    ("inner", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("tags", pa.list_(pa.string())),
])  # fmt: skip
ONLY_FOR_STREAMS = {"toMicroBatchStream", "toContinuousStream"}

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "at",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.index.column.stats.enable": "true",
}
FILTERS = [
    "id > 40", "id >= 20 AND id < 60 AND text <> 'b'", "text = 'a' OR text IS NULL", "text IN ('a', 'c', NULL)",
    "NOT (text = 'a')", "NOT (text IN ('a', 'b'))", "day > DATE'2020-01-10'", "at < TIMESTAMP'2020-01-01 00:00:30Z'",
    "price >= 2.50", "price = 3", "share > 1", "share = double('NaN')", "share < 0.5 AND id % 3 = 1", "yes",
    "NOT yes", "yes <=> NULL", "text <=> 'a'", "small <=> 3S", "inner.a > 2", "inner.b = 'y' AND small > 1",
    "inner IS NULL", "size(tags) > 1", "upper(text) = 'A'", "part = 'p1'", "part > 'p1' AND id IS NOT NULL",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", "text LIKE 'a%'", "id = 5 AND id = 6",
    "cast(small AS bigint) = id", "1 < small", "_hoodie_record_key = '7'",
]  # fmt: skip


def rows(seed: int, ids: range) -> pa.Table:
    """Values with nulls, NaN and infinities."""
    chosen = random.Random(seed)

    def some(values: list[Any]) -> list[Any]:
        return [chosen.choice([None, *values]) for _ in ids]

    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    columns = {
        "id": list(ids),
        "text": some(["a", "b", "ab", "", "ä"]),
        "day": some([datetime.date(2020, 1, day) for day in range(1, 20)]),
        "at": [start + datetime.timedelta(seconds=seed + number) for number in range(len(ids))],
        "price": some([decimal.Decimal(text) for text in ("0.00", "2.50", "3.00", "-7.25")]),
        "share": some([0.0, -0.0, 0.25, 1.5, float("nan"), float("inf"), float("-inf")]),
        "yes": some([True, False]),
        "small": some([1, 2, 3]),
        "inner": some([{"a": 1, "b": "x"}, {"a": 3, "b": "y"}, {"a": None, "b": None}]),
        "tags": some([[], ["q"], ["q", None, "r"]]),
    }
    return pa.table(columns, SCHEMA).append_column("part", pa.array([f"p{one % 3}" for one in ids]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with log files in most of its file groups, and deleted rows."""
    path = str(tmp_path_factory.mktemp("python_scan") / "t")
    hf.write(rows(1, range(90)), path, OPTIONS)
    hf.write(rows(100, range(30, 50)), path, OPTIONS)
    hf.write(rows(200, range(85, 95)), path, OPTIONS)
    hf.HudiTable.open(path).delete_keys(pa.table({"id": [3, 33, 90], "part": ["p0", "p0", "p0"]}))
    return path


@pytest.fixture
def without_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    without_python_scan(monkeypatch)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


class Numbers:
    """Rows of two columns, which note the queries that reach them."""

    name, size = "numbers", 1 << 20
    schema = filterable = pa.schema([("number", pa.int64()), ("text", pa.string())])

    def __init__(self, count: int = 8) -> None:
        self.count = count
        self.queries: list[Query] = []

    def rows(self, query: Query) -> UnitRows:
        self.queries.append(query)
        target = spark_arrow(pa.schema([self.schema.field(name) for name in query.columns]))

        def read(unit: int) -> Iterator[pa.RecordBatch]:
            every = {"number": [unit, unit + 100], "text": [f"t{unit}", None]}
            yield pa.record_batch([pa.array(every[name], target.field(name).type) for name in query.columns], target)

        return UnitRows(range(self.count), [10] * self.count, 1 << 20, read)


@pytest.mark.smoke
def test_a_query_asks_for_the_columns_and_filters_that_it_has(spark: Any) -> None:
    source = Numbers()
    frame = python_frame(spark, source)
    assert frame.filter("number > 100").select("text").collect() == [(None,)] * 7
    (query,) = source.queries
    assert set(query.columns) == {"number", "text"}
    assert query.condition != Anything()
    assert "(number > 100)" in str(query.filter)
    assert frame.select("text").distinct().count() == 9
    assert source.queries[-1].columns == ("text",)


def test_a_count_reads_the_cheapest_column(spark: Any) -> None:
    source = Numbers()
    assert python_frame(spark, source).count() == 16
    assert [query.columns for query in source.queries] == [("number",)]


def test_tasks_have_neighbouring_units_of_about_equal_weight() -> None:
    made = UnitRows(range(6), [100, 1, 1, 1, 1, 96], 50, iter)
    assert made.shares(2) == made.shares(1) == [[0], [1], [2, 3, 4], [5]]
    assert made.shares(64) == [[0], [1], [2, 3], [4], [5]]
    light = UnitRows(range(20), [10] * 20, 1 << 20, iter)
    assert [len(share) for share in light.shares(4)] == [5, 5, 5, 5]
    weights = [random.Random(3).randint(0, 100) for _ in range(500)]
    shares = UnitRows(range(500), weights, 10_000, iter).shares(2)
    assert [number for share in shares for number in share] == list(range(500))
    sizes = [sum(weights[number] + 1 for number in share) for share in shares]
    assert max(sizes) - min(sizes) < 2 * 101


def test_no_units(spark: Any, without_scan: None) -> None:
    assert python_frame(spark, Numbers(0)).collect() == []


def test_no_units_of_a_scan(spark: Any) -> None:
    assert python_frame(spark, Numbers(0)).collect() == []


def test_a_scan_that_is_known_to_need_all_columns_is_spared_the_copy(spark: Any) -> None:
    assert "MapInArrow" in plan_of(python_frame(spark, Numbers(), needs_all=True))
    assert "BatchScan" in plan_of(python_frame(spark, Numbers()))


def test_joins_views_caches_and_unions_of_one_scan(spark: Any) -> None:
    frame = python_frame(spark, Numbers())
    joined = frame.alias("a").join(frame.alias("b"), F.expr("a.number = b.number + 100"))
    assert joined.count() == 8
    frame.createOrReplaceTempView("numbers_of_python")
    inside = spark.sql("SELECT * FROM numbers_of_python WHERE number IN (SELECT max(number) FROM numbers_of_python)")
    assert inside.collect() == [(107, None)]
    cached = frame.cache()
    assert (cached.count(), frame.select("number").distinct().count()) == (16, 16)
    cached.unpersist()
    assert frame.union(frame).count() == 32


def test_spark_estimates_the_columns_that_are_read(spark: Any) -> None:
    frame = python_frame(spark, Numbers())

    def size(one: Any) -> int:
        return int(str(one._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert size(frame) == 1 << 20
    assert size(frame.select("number")) < 1 << 19


def test_an_internal_class_that_is_missing_is_found_out_before_a_query(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_scan, "_SOURCES", "org.apache.spark.sql.elsewhere")
    monkeypatch.setattr(python_scan, "_prunes", {})
    assert not prunes_columns(spark)
    assert python_frame(spark, Numbers()).count() == 16


@pytest.mark.parametrize("kind", ["_Table", "_Builder", "_Scan", "_Statistics", "_Batch", "_FileIndex"])
def test_python_answers_every_method_that_the_jvm_may_call(spark: Any, kind: str) -> None:
    made = getattr(python_scan, kind, None) or getattr(file_index, kind)
    for name in made.Java.implements:
        methods = java_class(spark._jvm, "java.lang.Class").forName(name).getMethods()
        asked = {str(one.getName()) for one in methods}
        missing = {one for one in asked if "$" not in one and not hasattr(made, one)} - ONLY_FOR_STREAMS
        assert not missing, f"{kind}, {name}: {missing}"
    assert all(callable(getattr(made, one, None)) for one in ("toString", "hashCode", "equals"))


def test_an_error_in_a_task_keeps_its_text(spark: Any) -> None:
    class Failing(Numbers):
        def rows(self, query: Query) -> UnitRows:
            def read(unit: int) -> Iterator[pa.RecordBatch]:
                raise InvalidDataError("A row that cannot be read.")
                yield

            return UnitRows(range(2), [1, 1], 1, read)

    with pytest.raises(PySparkException, match="A row that cannot be read"):
        python_frame(spark, Failing()).collect()


def test_a_filter_of_many_parts_is_left_to_spark(spark: Any) -> None:
    source = Numbers()
    text = " OR ".join(f"(number = {at} AND text = 't{at}')" for at in range(100))
    assert python_frame(spark, source).filter(text).count() == 8
    assert source.queries[0].filter is None


def test_a_filter_that_cannot_be_translated_is_left_to_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(node: Any) -> Any:
        raise ValueError("another form")

    monkeypatch.setattr(python_scan, "spark_condition", fail)
    with pytest.warns(HudiWarning, match="Spark alone applies the filters: ValueError: another form"):
        assert python_frame(spark, Numbers()).filter("number > 100").count() == 7


def test_an_index_that_cannot_be_read_skips_nothing(spark: Any, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(plan: Any, condition: Any) -> Any:
        raise OSError("the store is away")

    monkeypatch.setattr(scan, "WORTH_NARROWING", 1)
    monkeypatch.setattr(reader, "narrowed", fail)
    with pytest.warns(HudiWarning, match="no file slice is skipped: the store is away"):
        assert hf.read(spark, table).filter("id = 7").count() == 1


@pytest.mark.parametrize("text", FILTERS)
def test_filters_keep_the_rows_that_spark_keeps(spark: Any, table: str, text: str) -> None:
    every = hf.HudiTable.open(table).to_arrow()
    expected = spark.createDataFrame(every.cast(spark_arrow(every.schema))).filter(text)
    found = hf.read(spark, table).filter(text)
    assert "BatchScan" in plan_of(found) or "LocalTableScan" in plan_of(found)
    assert_same_rows(collect(found), collect(expected), ignore=())


@pytest.mark.parametrize("seed", range(12))
def test_any_columns_with_any_filter(spark: Any, table: str, seed: int) -> None:
    chosen = random.Random(seed)
    every = hf.HudiTable.open(table).to_arrow()
    wanted = chosen.sample([*every.column_names, "inner.a", "inner.b"], chosen.randint(1, 5))
    text = " AND ".join(f"({one})" for one in chosen.sample(FILTERS, 2))
    expected = spark.createDataFrame(every.cast(spark_arrow(every.schema))).filter(text).select(*wanted)
    found = hf.read(spark, table).filter(text).select(*wanted)
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


def test_rows_do_not_depend_on_the_scan(spark: Any, table: str, without_scan: None) -> None:
    assert_same_rows(collect(hf.read(spark, table)), hf.HudiTable.open(table).to_arrow(), ignore=())


def test_slices_that_a_filter_rules_out_are_not_opened(spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "t")
    some = [rows(1, range(1000 * part, 1000 * part + 5)) for part in range(10)]
    parts = [each.set_column(10, "part", pa.array([f"p{at}"] * 5)) for at, each in enumerate(some)]
    hf.write(pa.concat_tables(parts), path, OPTIONS)
    hf.write(pa.concat_tables(parts), path, OPTIONS)
    for file in (tmp_path / "t").glob("p[0-8]/*.parquet"):
        file.unlink()
    assert hf.read(spark, path).filter("id >= 9000 AND id < 9003").count() == 3
