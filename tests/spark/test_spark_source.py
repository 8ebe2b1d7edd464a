"""``format("hudi_fast")``: reads and writes, and streams from one table to another.

Modules: hudi_fast.spark_api.source.readers, hudi_fast.spark_api.source.data_source, hudi_fast.spark_api.source.entry,
hudi_fast.spark_api.source.writer.
"""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import uuid
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from hudi_fast.spark_api.streaming.sink import stream_reader
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.spark.stream_files import numbered, to_the_end
from tests.support.small_tables import options, rows_of, table_rows
from tests.support.tiers import is_long

PUSHDOWN = {"hudi_fast.source.pushdown": "true"}
CDC = {"hoodie.table.cdc.enabled": "true"}
MOR = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture(scope="module")
def session(spark):
    hf.register_data_source(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return spark


def load(session, path, columns=None, **given):
    reader = session.read.format("hudi_fast").options(**given)
    return (reader if columns is None else reader.schema(columns)).load(str(path))


def newest_completion(path):
    return load_state(Storage(path)).timeline.writes()[-1].completion


def batches(query):
    """Batches that brought rows: how many, and where each ended."""
    done = [one for one in query.recentProgress if one["numInputRows"]]
    return [one["numInputRows"] for one in done], [json.loads(one["sources"][0]["endOffset"]) for one in done]


def drain(session, path, folder, settings=None):
    """What is new to the stream whose checkpoint is in ``folder``: rows, sizes and ends of its batches."""
    found = []

    def keep(rows, _):
        found.extend(one.asDict() for one in rows.collect())

    writer = stream_reader(session, path, settings).writeStream.foreachBatch(keep)
    query = to_the_end(writer.option("checkpointLocation", str(folder)))
    return sorted(one["number"] for one in found), *batches(query)


@pytest.mark.smoke
def test_a_read_gives_the_rows_of_the_table_whichever_its_type(session, tmp_path):
    for name, settings in (("cow", options()), ("mor", MOR)):
        path = tmp_path / name
        hf.write(numbered(range(20), 1), path, settings)
        first = load_state(Storage(path)).timeline.writes()[-1].requested
        hf.write(numbered(range(10, 30), 2), path, settings)
        frame = load(session, path)
        assert frame.schema == hf.read(session, path).schema
        assert rows_of(collect(frame)) == table_rows(path)
        assert rows_of(collect(load(session, path, **{"as.of.instant": first}))).keys() == {
            f"k{number:06d}" for number in range(20)
        }
        kind = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "earliest"}
        assert rows_of(collect(load(session, path, **kind))) == table_rows(path)
        assert [tuple(one) for one in load(session, path, "number long, ts long").filter("number = 12").collect()] == [
            (12, 2)
        ]


def test_a_schema_that_the_table_does_not_have_is_refused(session, tmp_path):
    hf.write(numbered(range(3), 1), tmp_path / "t", options())
    for columns, said in (("nothing long", "has no such column"), ("number int", "number int; .* has bigint")):
        with pytest.raises(Exception, match=said):
            load(session, tmp_path / "t", columns).collect()


def test_what_is_not_there_or_not_known_is_refused(session, tmp_path):
    with pytest.raises(Exception, match="TableNotFoundError"):
        load(session, tmp_path / "t").collect()
    hf.write(numbered(range(3), 1), tmp_path / "t", options())
    with pytest.raises(Exception, match=r"hudi_fast\.thread"):
        load(session, tmp_path / "t", **{"hudi_fast.thread": "1"}).collect()


def typed_rows():
    floats = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, None, 5.0]
    return pa.table(
        {
            "id": [f"k{number}" for number in range(8)],
            "part": ["p0"] * 8,
            "ts": [1] * 8,
            "x": pa.array(floats, pa.float64()),
            "y": pa.array(floats, pa.float32()),
            "n": pa.array([1, 2, None, 4, 5, -6, 7, 8], pa.int32()),
            "s": ["a", "ab", None, "b", "", "å", "abc", "B"],
            "b": [True, False, None, True, False, True, None, False],
            "d": pa.array([datetime.date(2024, 1, day) for day in range(1, 8)] + [None], pa.date32()),
            "t": pa.array([datetime.datetime(2024, 1, day) for day in range(1, 8)] + [None], pa.timestamp("us", "UTC")),
            "m": pa.array([Decimal(number) / 4 for number in range(7)] + [None], pa.decimal128(10, 2)),
            "z": pa.array([{"a": number} for number in range(7)] + [None], pa.struct({"a": pa.int64()})),
        }
    )


FILTERS = [
    "x > 1", "x = double('nan')", "not (x > 1)", "n not in (1, 8)", "n <=> null", "n = 99999999999", "s like 'a%'",
    "not s like 'a%'", "not b", "t < timestamp'2024-01-03 00:00:00'", "m in (0.25, 0.75)", "z.a > 4",
    "n > 1 and s < 'b' or d is null",
]  # fmt: skip
MORE_FILTERS = [
    "x = 0", "x < 1", "y > 1", "x is null", "n > 4", "not (n > 4)", "n in (1, null)", "not (n <=> 5)", "s like '%b%'",
    "s > 'a'", "d >= date'2024-01-05'", "m > 0.5", "n is not null and n <> 5 and x <> 5",
]  # fmt: skip


def test_filters_that_are_handed_down_leave_what_spark_leaves(session, tmp_path, request):
    filters = FILTERS + MORE_FILTERS if is_long(request.config) else FILTERS
    hf.write(typed_rows(), tmp_path / "t", options())
    plain = load(session, tmp_path / "t")
    passed = plain.selectExpr("id", *(f"({text}) as f{number}" for number, text in enumerate(filters))).collect()
    frames = [
        load(session, tmp_path / "t", **PUSHDOWN).filter(text).select("id", F.lit(number).alias("number"))
        for number, text in enumerate(filters)
    ]
    found = reduce(lambda one, other: one.union(other), frames).collect()
    for number, text in enumerate(filters):
        wanted = sorted(one.id for one in passed if one[f"f{number}"])
        assert sorted(one.id for one in found if one.number == number) == wanted, text


def test_filters_leave_out_files_before_they_are_opened(session, tmp_path):
    hf.write(numbered(range(20), 1), tmp_path / "t", options())
    for file in (tmp_path / "t" / "p1").glob("*.parquet"):
        file.write_bytes(b"")
    assert load(session, tmp_path / "t", **PUSHDOWN).filter("part = 'p0' and number < 5").count() == 3


def test_a_frame_may_be_filtered_again_and_again(session, tmp_path):
    hf.write(numbered(range(20), 1), tmp_path / "t", options())
    frame = load(session, tmp_path / "t")
    assert [frame.filter("number < 5").count(), frame.count(), frame.filter("number < 5 or ts = 9").count()] == [
        5,
        20,
        5,
    ]


def test_writes_append_and_overwrite_and_leave_nothing_beside_the_table(session, tmp_path):
    path = tmp_path / "tables" / "t"
    rows = session.createDataFrame(numbered(range(50), 1).to_pandas()).repartition(3)
    rows.write.format("hudi_fast").options(**options()).mode("append").save(str(path))
    assert len(table_rows(path)) == 50
    changes = session.createDataFrame(numbered(range(40, 60), 2).to_pandas())
    changes.write.format("hudi_fast").options(**options()).mode("append").save(str(path))
    assert sorted(one[-1] for one in table_rows(path).values()) == list(range(60))
    assert sum(one[1] == 2 for one in table_rows(path).values()) == 20
    changes.limit(0).write.format("hudi_fast").options(**options()).mode("append").save(str(path))
    changes.write.format("hudi_fast").options(**options()).mode("overwrite").save(str(path))
    assert len(table_rows(path)) == 20
    with pytest.raises(Exception, match=r"more than 10 \(hudi_fast\.spool\.max\.bytes\)"):
        rows.write.format("hudi_fast").options(**options(), **{"hudi_fast.spool.max.bytes": "10"}).mode("append").save(
            str(path)
        )
    bad = changes.withColumn("id", F.lit(None).cast("string"))
    with pytest.raises(Exception, match="InvalidDataError"):
        bad.write.format("hudi_fast").options(**options()).mode("append").save(str(path))
    assert len(table_rows(path)) == 20
    assert [entry.name for entry in path.parent.iterdir()] == ["t"]


def test_a_stream_brings_every_commit_once_in_batches_as_large_as_allowed(session, tmp_path):
    path, log = tmp_path / "t", tmp_path / "checkpoint"
    for number in range(3):
        hf.write(numbered(range(10 * number, 10 * number + 10), number), path, options())
    settings = {"hudi_fast.stream.max.commits": "2"}
    numbers, sizes, ends = drain(session, path, log, settings)
    assert (numbers, sizes) == (list(range(30)), [20, 10])
    newest = newest_completion(path)
    assert ends[-1] == {"offsetCommitTime": newest}
    assert drain(session, path, log, settings)[:2] == ([], [])
    hf.write(numbered(range(25, 35), 7), path, options())
    assert drain(session, path, log, settings)[:2] == (list(range(25, 35)), [10])


@pytest.mark.long
def test_a_stream_begins_where_it_is_told(session, tmp_path):
    path, key = tmp_path / "t", "hoodie.datasource.streaming.startOffset"
    hf.write(numbered(range(10), 0), path, options())
    middle = newest_completion(path)
    hf.write(numbered(range(10, 20), 1), path, options())
    assert drain(session, path, tmp_path / "1", {key: middle})[0] == list(range(10, 20))
    assert drain(session, path, tmp_path / "2", {key: "latest"})[0] == []
    hf.write(numbered(range(20, 30), 2), path, options())
    assert drain(session, path, tmp_path / "3", {key: "earliest"})[0] == list(range(30))


def test_the_first_batch_of_a_stream_from_the_latest_is_the_same_when_it_is_run_again(session, tmp_path):
    path, log = tmp_path / "t", tmp_path / "checkpoint"
    hf.write(numbered(range(10), 0), path, options())
    began = newest_completion(path)
    hf.write(numbered(range(10, 20), 1), path, options())
    end = newest_completion(path)
    hf.write(numbered(range(20, 30), 2), path, options())
    (log / "offsets").mkdir(parents=True)
    (log / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    said = json.dumps({"offsetCommitTime": end, "begin": began})
    (log / "offsets" / "0").write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{said}')
    found = drain(session, path, log, {"hoodie.datasource.streaming.startOffset": "latest"})
    assert found[0] == list(range(10, 30))


@pytest.mark.long
def test_a_stream_from_table_to_table_loses_and_doubles_nothing(session, tmp_path):
    """Both have logs; other tests here stream from tables without, and tests of the sink into such tables."""
    settings = {**options(operation="insert"), "hoodie.compact.inline.max.delta.commits": "2"}
    settings["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
    source, target, log = tmp_path / "a", tmp_path / "b", tmp_path / "checkpoint"
    for number in range(4):
        hf.write(numbered(range(10 * number, 10 * number + 10), number), source, settings)
        if number % 2:
            rows = stream_reader(session, source, {"hudi_fast.stream.max.commits": "1"})
            rows = rows.select("id", "part", "ts", "number").writeStream.format("hudi_fast").options(**settings)
            to_the_end(rows.option("checkpointLocation", str(log)), str(target))
    copied = hf.HudiTable.open(target).to_arrow()
    assert sorted(copied["number"].to_pylist()) == list(range(40))
    assert table_rows(target) == table_rows(source)


@pytest.mark.long
def test_a_stream_of_changes(session, tmp_path):
    path, found = tmp_path / "t", []
    asked = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}

    def keep(rows, _):
        found.extend((one.op, json.loads(one.after)["number"]) for one in rows.collect())

    for number in range(2):
        hf.write(numbered(range(2 * number, 2 * number + 3), number), path, {**options(), **CDC})
    one_commit = {"hudi_fast.stream.max.commits": "1"}
    writer = stream_reader(session, path, {**asked, **one_commit}).writeStream.foreachBatch(keep)
    to_the_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    assert sorted(found[:3]) == [("i", 0), ("i", 1), ("i", 2)]
    assert sorted(found[3:]) == [("i", 3), ("i", 4), ("u", 2)]


def test_sessions_made_from_another_one_have_streams_of_their_own(session, tmp_path):
    """Spark looks for a source in the active session of the thread, whichever session registers it."""
    hf.write(numbered(range(5), 1), tmp_path / "t", options())
    session.createDataFrame([(1,)], "a int")  # makes it the active one
    others = [session.newSession(), session.newSession()]
    for one in (*others, others[0], session):
        hf.register_data_source(one)
        assert type(one).getActiveSession() is session
    assert load(session, tmp_path / "t").count() == 5
    for number, one in enumerate(others):
        assert load(one, tmp_path / "t").count() == 5
        assert drain(one, tmp_path / "t", tmp_path / f"c{number}")[0] == list(range(5))


def test_spark_before_version_4_is_refused_by_name(java, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    code = "import hudi_fast; hudi_fast.register_data_source(None)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    said = 'UnsupportedFeatureError: format("hudi_fast") and readStream need PySpark 4; this is 3.5.'
    assert said in done.stderr
