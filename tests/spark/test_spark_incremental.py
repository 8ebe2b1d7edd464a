"""Incremental queries on Spark: the rows of the local reader, with columns and filters in Spark's own terms."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.spark.query_plans import without_python_scan
from tests.support.golden import golden_names
from tests.support.mor_tables import mor_options
from tests.support.rows import assert_same_rows
from tests.support.small_tables import options, plain_rows

QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
FILTERS = "hoodie.datasource.read.incr.filters"
END = "hoodie.datasource.read.end.instanttime"
ONE_OF_EACH = ("cow_v9_mixed", "mor_v9_compacted", "mor_v9_partial_update_logs")
GOLDEN = [
    pytest.param(name, marks=() if name in ONE_OF_EACH else pytest.mark.long)
    for name in golden_names()
    if not name.startswith("hudi_rs/") and name != "cow_v9_nometa"
]


def since(begin, end=None, **more):
    return {QUERY: "incremental", BEGIN: begin, **({} if end is None else {END: end}), **more}


def completions(path):
    return sorted(str(one.completion) for one in load_state(Storage(path)).timeline.writes())


@pytest.mark.smoke("mor_v9_compacted")
@pytest.mark.parametrize("name", GOLDEN)
def test_tables_of_real_hudi(spark, golden, name):
    found = golden(name)
    begin = found.expected["incremental_after"]
    expected = hf.HudiTable.open(found.table).incremental(begin)
    read = hf.read(spark, found.table, since(begin))
    assert read.columns == expected.column_names
    assert expected.num_rows
    assert_same_rows(collect(read), expected, ignore=())


@pytest.mark.smoke("COW")
@pytest.mark.parametrize("made", [options, mor_options], ids=["COW", "MOR"])
def test_columns_and_filters(spark, tmp_path, made):
    path = tmp_path / "t"
    hf.write(plain_rows(range(40)), path, made())
    hf.write(plain_rows(range(5, 15), ts=2, text="b"), path, made())
    hf.write(plain_rows(range(38, 42), ts=3, text="c"), path, made())
    first, second, third = completions(path)
    ids = [f"k{number:05d}" for number in range(6, 15, 2)]
    for chosen in ("part = 'p0'", F.col("part") == "p0", pc.field("part") == "p0"):
        rows = hf.read(spark, path, since(first, second), columns=["text", "id"], filter=chosen)
        assert rows.columns == ["text", "id"]
        assert sorted(row["id"] for row in rows.collect()) == ids
        conditions = {FILTERS: "ts = 2, substring(text, 1, 1) in ('a', 'b')"}
        rows = hf.read(spark, path, since(first, **conditions), columns=["text", "id"], filter=chosen)
        assert sorted(row["id"] for row in rows.collect()) == ids
    assert hf.read(spark, path, since(first, **{FILTERS: "ts = 2"})).count() == 10
    assert hf.read(spark, path, since("earliest", **{FILTERS: "ts > 1"})).count() == 14
    assert hf.read(spark, path, since(first)).count() == 14
    assert hf.read(spark, path, since(third)).count() == 0
    assert hf.read(spark, path, since("earliest")).count() == hf.read(spark, path).count() == 42
    with pytest.raises(hf.ConfigError, match="Specify the start completion time"):
        hf.read(spark, path, {QUERY: "incremental"})


def test_commit_times_are_pushed_into_the_scan_of_base_files(spark, tmp_path):
    hf.write(plain_rows(range(40)), tmp_path, options())
    last = hf.write(plain_rows(range(5), ts=2), tmp_path, options()).instant
    read = hf.read(spark, tmp_path, since(completions(tmp_path)[0])).select("id")
    text = read._jdf.queryExecution().executedPlan().toString()
    assert re.search(rf"PushedFilters: \[.*_hoodie_commit_time,{last}", text)
    assert read.count() == 5


def test_few_rows_are_read_by_the_core(spark, tmp_path, monkeypatch):
    hf.write(plain_rows(range(400)), tmp_path, options())
    hf.write(plain_rows(range(30), ts=2, text="b"), tmp_path, options())
    begin = since(completions(tmp_path)[0], completions(tmp_path)[1])
    named = hf.read(spark, tmp_path, begin, columns=["id", "text"], filter="text like 'b%' and ts = 2")
    assert "BatchScan" in named._jdf.queryExecution().executedPlan().toString()
    lazy = hf.read(spark, tmp_path, begin).select("id", "text")
    assert "BatchScan" in lazy._jdf.queryExecution().executedPlan().toString()
    half = hf.write(plain_rows(range(300), ts=3, text="c"), tmp_path, options())
    many = hf.read(spark, tmp_path, since(completions(tmp_path)[1]), columns=["id"])
    assert "BatchScan" not in many._jdf.queryExecution().executedPlan().toString()
    assert many.count() == half.updates == 300
    without_python_scan(monkeypatch)  # the columns of a query are not known, so Spark has to scan
    scanned = hf.read(spark, tmp_path, begin).select("id", "text")
    assert "FileScan" in scanned._jdf.queryExecution().executedPlan().toString()
    for read in (named, lazy):
        assert_same_rows(collect(read), collect(scanned), ignore=())
    assert named.count() == 30


def test_time_travel_takes_every_form_of_a_time(spark, tmp_path):
    first = hf.write(plain_rows(range(10)), tmp_path, options()).instant
    hf.write(plain_rows(range(5, 20), ts=2), tmp_path, options())
    moment = dt.datetime.strptime(first, "%Y%m%d%H%M%S%f")
    text = f"{moment:%Y-%m-%d %H:%M:%S}.{first[14:]}"
    for time in (first, text, moment, text.replace(" ", "T"), moment.astimezone(dt.UTC)):
        assert hf.read(spark, tmp_path, {"as.of.instant": time}).count() == 10
        assert hf.HudiTable.open(tmp_path).to_arrow(as_of=time).num_rows == 10
    later = moment + dt.timedelta(seconds=2)
    for time in (f"{later:%Y-%m-%d %H:%M:%S}", f"{later:%Y%m%d%H%M%S}", f"{later + dt.timedelta(days=1):%Y-%m-%d}"):
        assert hf.read(spark, tmp_path, {"as.of.instant": time}).count() == 20
    assert hf.read(spark, tmp_path, {"as.of.instant": f"{moment:%Y-%m-%d}"}).count() == 0
    with pytest.raises(hf.ConfigError, match="Unsupported query instant time format"):
        hf.read(spark, tmp_path, {"as.of.instant": "2024-01-01T00:00"})
