"""Folders, Hudi tables and transformers with Spark as the engine: the tables of the one-process engine.

Modules: hudi_fast.streamer.on_spark.sources, hudi_fast.spark.turn_rows.
"""

from __future__ import annotations

import json
import os
import time

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.streamer.tables import in_turn, table_streams
from tests.streamer.test_streamer_streamer import Numbers
from tests.support.small_tables import assert_tidy, options, plain_rows

SCHEMA = {
    "type": "record",
    "name": "trip",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "part", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    ],
}


def row(number, **more):
    return {"id": f"k{number:05}", "part": f"p{number % 2}", "ts": number, **more}


def typed(number):
    return row(number, fare=number / 4, at=1_700_000_000_123 + number, day=f"2024-01-{number + 1:02}", tags=["a", "b"])


def put(folder, name, rows, age=10.0):
    """A file of JSON lines, some seconds old."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows))
    aged(file, age)


def aged(file, age):
    at = time.time() - age
    os.utime(file, (at, at))


def feed(path, root, more=None, source="JsonDFSSource", **arguments):
    """One turn."""
    given = options(operation="upsert") | {"hoodie.streamer.source.dfs.root": str(root), **(more or {})}
    streamer = hf.Streamer(given, source_class=source, target_base_path=str(path), **arguments)
    try:
        return streamer.turn()
    finally:
        streamer.close()


def rows_of(path):
    """The rows of a table, and its columns."""
    rows = hf.read(path).sort_by("id")
    return rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")])


def both(tmp_path, spark, root, more=None, source="JsonDFSSource", **arguments):
    """The tables that each engine makes of a folder in one turn, which must be equal."""
    turns = [
        feed(tmp_path / name, root, more, source, spark=session, **arguments)
        for name, session in (("process", None), ("spark", spark))
    ]
    assert [(turns[0].inserts, turns[0].position, turns[0].lag)] == [
        (turns[1].inserts, turns[1].position, turns[1].lag)
    ]
    process, on_spark = rows_of(tmp_path / "process"), rows_of(tmp_path / "spark")
    assert on_spark.schema.equals(process.schema), (on_spark.schema, process.schema)
    assert on_spark.equals(process)
    return on_spark


@pytest.mark.smoke
def test_a_stream_moves_from_one_process_to_spark_and_back(tmp_path, spark):
    path, root, found = tmp_path / "t", tmp_path / "in", []
    for number, session in enumerate((None, spark, None)):
        put(root, f"{number}.json", [row(one) for one in range(number, number + 3)], 30 - number)
        found.append(feed(path, root, spark=session))
    assert [(turn.inserts, turn.updates) for turn in found] == [(3, 0), (1, 2), (1, 2)]
    assert feed(path, root, spark=spark).instant == ""
    assert rows_of(path)["ts"].to_pylist() == list(range(5))
    assert_tidy(path)


def test_json_without_a_schema_has_the_columns_of_all_files(tmp_path, spark):
    put(tmp_path / "in", "1.json", [row(0, a=1, b={"c": "x"}), row(1, a=2)], 20)
    put(tmp_path / "in", "2.json", [row(2, a=1.5, d=[1, 2])])
    assert both(tmp_path, spark, tmp_path / "in")["a"].to_pylist() == [1.0, 2.0, 1.5]


def test_json_with_a_schema_has_its_types(tmp_path, spark):
    (tmp_path / "s.avsc").write_text(json.dumps(SCHEMA))
    put(tmp_path / "in", "1.json", [typed(number) for number in range(9)], 20)
    put(tmp_path / "in", "2.json", [row(20), row(21, seen="2024-05-01T10:00:00")])
    key = {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")}
    assert both(tmp_path, spark, tmp_path / "in", key).num_rows == 11


@pytest.mark.parametrize("first", ["process", "spark"])
def test_a_typed_stream_moves_between_the_engines(tmp_path, spark, first):
    (tmp_path / "s.avsc").write_text(json.dumps(SCHEMA))
    key = {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")}
    sessions = [None, spark, None] if first == "process" else [spark, None, spark]
    for number, session in enumerate(sessions):
        put(tmp_path / "in", f"{number}.json", [typed(number), typed(number + 1)], 30 - number)
        feed(tmp_path / "t", tmp_path / "in", key, spark=session)
    for number in range(3):
        put(tmp_path / "all", f"{number}.json", [typed(number), typed(number + 1)], 30 - number)
    feed(tmp_path / "process", tmp_path / "all", key)
    assert rows_of(tmp_path / "t").equals(rows_of(tmp_path / "process"))


def parquet(table, file):
    pq.write_table(table, file)


def csv(table, file):
    pa_csv.write_csv(table, file)


def orc(table, file):
    pa_orc.write_table(table, file)


@pytest.mark.parametrize(
    ("source", "write", "more"),
    [
        ("ParquetDFSSource", parquet, {}),
        ("ORCDFSSource", orc, {}),
        ("CsvDFSSource", csv, {"hoodie.streamer.csv.header": "true", "hoodie.streamer.csv.inferSchema": "true"}),
    ],
)
def test_files_of_other_formats_make_the_same_table(tmp_path, spark, source, write, more):
    (tmp_path / "in").mkdir()
    for number in range(3):
        rows = plain_rows(range(number * 4, number * 4 + 4), ts=number)
        if number:
            rows = rows.append_column("extra", pa.array([number] * 4, pa.int32()))
        write(rows, tmp_path / "in" / str(number))
        aged(tmp_path / "in" / str(number), 30 - number)
    assert both(tmp_path, spark, tmp_path / "in", more, source).num_rows == 12


def test_a_limit_splits_a_folder_into_turns(tmp_path, spark):
    for number in range(3):
        put(tmp_path / "in", f"{number}.json", [row(number)], 30 - number)
    turns = [feed(tmp_path / "t", tmp_path / "in", spark=spark, source_limit=1) for _ in range(4)]
    assert [turn.inserts for turn in turns] == [1, 1, 1, 0]
    assert [sum(turn.lag.values()) for turn in turns] == [2, 1, 0, 0]


def hudi(path, source, strategy="READ_UPTO_LATEST_COMMIT", **arguments):
    more = {
        "hoodie.streamer.source.hoodieincr.path": str(source),
        "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": strategy,
    }
    return feed(path, "unused", more, "HoodieIncrSource", **arguments)


def test_commits_of_a_table_make_the_same_table(tmp_path, spark):
    source = tmp_path / "source"
    for number in range(4):
        hf.write(plain_rows(range(number, number + 3), ts=number), source, options(operation="upsert"))
    for path, sessions in (("process", [None, None]), ("spark", [spark, spark]), ("mixed", [None, spark])):
        turns = [hudi(tmp_path / path, source, spark=session, source_limit=2) for session in sessions]
        assert [turn.inserts for turn in turns] == [4, 2]
    assert rows_of(tmp_path / "spark").equals(rows_of(tmp_path / "process"))
    assert rows_of(tmp_path / "mixed").equals(rows_of(tmp_path / "process"))
    assert hudi(tmp_path / "spark", source, spark=spark).instant == ""


# ---- transformers

NESTED = [row(number, fare=number - 1, rider={"name": f"n{number}", "home": {"city": "Oslo"}}) for number in range(4)]


def test_transformers_make_the_same_table(tmp_path, spark):
    put(tmp_path / "in", "1.json", NESTED)
    (tmp_path / "s.avsc").write_text(
        json.dumps(
            {
                "type": "record",
                "name": "t",
                "fields": [
                    *({"name": name, "type": "string"} for name in ("id", "part")),
                    *({"name": name, "type": ["null", "long"]} for name in ("ts", "fare")),
                    *({"name": name, "type": ["null", "string"]} for name in ("city", "name")),
                ],
            }
        )
    )
    more = {
        "hoodie.streamer.transformer.sql": "SELECT *, upper(rider_home_city) city FROM <SRC> a WHERE fare >= 0",
        "hoodie.streamer.schemaprovider.target.schema.file": str(tmp_path / "s.avsc"),
    }
    classes = "FlatteningTransformer,SqlQueryBasedTransformer,AWSDmsTransformer"
    assert both(tmp_path, spark, tmp_path / "in", more, transformer_class=classes)["city"].to_pylist() == ["OSLO"] * 3


def twice(batch):
    return batch.append_column("twice", pa.array([2 * one for one in batch["ts"].to_pylist()], pa.int64()))


def test_a_function_of_batches_runs_in_tasks_after_sql(tmp_path, spark):
    put(tmp_path / "in", "1.json", [row(number) for number in range(5)])
    more = {"hoodie.streamer.transformer.sql": "SELECT * FROM <SRC> WHERE ts > 1"}
    found = both(
        tmp_path, spark, tmp_path / "in", more, transformer_class="SqlQueryBasedTransformer", transforms=[twice]
    )
    assert found["twice"].to_pylist() == [4, 6, 8]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: None, r"gets a batch without rows first.*returned NoneType.*SQL transformer"),
        (lambda batch: batch.slice(0, 1) if batch["ts"][0].as_py() else batch, r"failed: IndexError.*SQL transformer"),
    ],
)
def test_a_function_whose_columns_are_unknown_is_refused(tmp_path, spark, function, message):
    put(tmp_path / "in", "1.json", [row(1)])
    with pytest.raises(hf.UnsupportedFeatureError, match=message):
        feed(tmp_path / "t", tmp_path / "in", spark=spark, transforms=[function])
    assert not hf.is_table(tmp_path / "t")


def test_a_function_that_changes_its_columns_is_refused(tmp_path, spark):
    def changing(batch):
        return batch.append_column("more", pa.array([1] * batch.num_rows, pa.int64() if batch.num_rows else pa.int32()))

    put(tmp_path / "in", "1.json", [row(1)])
    with pytest.raises(
        hf.InvalidDataError, match=r"changing returned other columns .* more int32; found .* more int64"
    ):
        feed(tmp_path / "t", tmp_path / "in", spark=spark, transforms=[changing])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", r"reads from <SRC>"),
        ("SELEC * FROM <SRC>", r"is one query"),
        ("SELECT * FROM <SRC> WHERE (", r"cannot be parsed"),
        ("SELECT no_column FROM <SRC>", r"failed: .*no_column"),
        ("INSERT INTO t SELECT * FROM <SRC>", r"is one query"),
        ("WITH a AS (SELECT * FROM <SRC>) INSERT INTO t SELECT * FROM a", r"is one query"),
        ("DROP TABLE <SRC>", r"is one query"),
    ],
)
def test_a_wrong_query_is_refused(tmp_path, spark, text, message):
    put(tmp_path / "in", "1.json", [row(1)])
    more = {"hoodie.streamer.transformer.sql": text}
    with pytest.raises(hf.ConfigError, match=message):
        feed(tmp_path / "t", tmp_path / "in", more, spark=spark, transformer_class="SqlQueryBasedTransformer")
    assert not hf.is_table(tmp_path / "t")
    assert not [one for one in spark.catalog.listTables() if one.name.startswith("hudi_fast_source")]


# ---- around a turn


def test_services_of_a_turn_run_in_tasks(tmp_path, spark):
    more = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hudi_fast.driver.max.bytes": "0",
    }
    for number in range(3):
        put(tmp_path / "in", f"{number}.json", [row(one, tip=number) for one in range(4)], 30 - number)
        feed(tmp_path / "t", tmp_path / "in", more, spark=spark)
    history = hf.HudiTable.open(tmp_path / "t").history()
    assert history["action"].to_pylist().count("commit") == 1  # of a compaction
    assert rows_of(tmp_path / "t")["tip"].to_pylist() == [2] * 4
    assert_tidy(tmp_path / "t")


def test_a_check_names_the_engine_and_the_position(tmp_path, spark):
    put(tmp_path / "in", "1.json", [row(1)])
    position = feed(tmp_path / "t", tmp_path / "in", spark=spark).position
    given = options() | {"hoodie.streamer.source.dfs.root": str(tmp_path / "in")}
    names = {"spark_master": "yarn", "engine": "spark", "cluster_scheduling_weight": 1}
    streamer = hf.Streamer(
        given, source_class="JsonDFSSource", target_base_path=str(tmp_path / "t"), spark=spark, **names
    )
    told = streamer.check()
    assert (told["engine"], told["position"]) == ("spark", position)
    assert told["without_effect"] == ["cluster-scheduling-weight"]


def test_streams_of_several_tables_share_a_session(tmp_path, spark):
    (tmp_path / "conf").mkdir()
    for number, name in enumerate(("orders", "customers"), 1):
        put(tmp_path / name, "1.json", [row(one) for one in range(number)])
        file = tmp_path / "conf" / f"shop_{name}_config.properties"
        lines = options() | {"hoodie.streamer.source.dfs.root": str(tmp_path / name)}
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items() if key != "hoodie.table.name"))
    tables = {"hoodie.streamer.ingestion.tablesToBeIngested": "shop.orders,shop.customers"}
    streams = table_streams(
        tables, str(tmp_path / "lake"), str(tmp_path / "conf"), source_class="JsonDFSSource", spark=spark
    )
    turns = [turn.inserts for _, turn in in_turn([one.streamer for one in streams])]
    assert turns == [1, 2]


# ---- wrong input


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_file_that_cannot_be_read_is_named_as_by_one_process(tmp_path, spark, with_schema):
    (tmp_path / "s.avsc").write_text(json.dumps(SCHEMA))
    more = {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")} if with_schema else {}
    put(tmp_path / "in", "1.json", [row(1)], 20)
    feed(tmp_path / "t", tmp_path / "in", more, spark=spark)
    put(tmp_path / "in", "2.json", [row(2), "not JSON"])
    texts = []
    for session in (None, spark):
        with pytest.raises(hf.InvalidDataError, match=r"2\.json, object 2: expected a JSON object") as found:
            feed(tmp_path / "t", tmp_path / "in", more, spark=session)
        texts.append(str(found.value))
    assert texts[0] == texts[1]
    put(tmp_path / "in", "2.json", [row(2)])
    assert feed(tmp_path / "t", tmp_path / "in", more, spark=spark).inserts == 1
    assert rows_of(tmp_path / "t")["ts"].to_pylist() == [1, 2]


@pytest.mark.parametrize("with_schema", [False, True])
def test_objects_that_cannot_be_read_are_kept_or_left_out(tmp_path, spark, with_schema):
    (tmp_path / "s.avsc").write_text(json.dumps(SCHEMA))
    more = {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")} if with_schema else {}
    put(tmp_path / "in", "1.json", [row(1), "{", row(2), "[]"])
    kept = {"hoodie.errortable.enable": "true", "hoodie.errortable.base.path": str(tmp_path / "errors")}
    assert feed(tmp_path / "t", tmp_path / "in", more | kept, spark=spark).inserts == 2
    places = hf.read(tmp_path / "errors")["place"].to_pylist()
    assert sorted(place.rpartition("/")[2] for place in places) == ["1.json, object 2", "1.json, object 4"]
    skipped = {"hoodie.streamer.source.json.skip.invalid.records": "true"}
    with pytest.warns(hf.HudiWarning, match=r"Left out messages that cannot be read: 2; the first: .*object 2"):
        feed(tmp_path / "u", tmp_path / "in", more | skipped, spark=spark)
    assert rows_of(tmp_path / "u").equals(rows_of(tmp_path / "t"))


def test_a_type_that_spark_lacks_is_refused_by_name(tmp_path, spark):
    (tmp_path / "in").mkdir()
    table = plain_rows(range(2), ts=1).append_column("clock", pa.array([1, 2], pa.time64("us")))
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    aged(tmp_path / "in" / "1.parquet", 9)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"column 'clock' has the type time64\[us\].*schema\.file"):
        feed(tmp_path / "t", tmp_path / "in", source="ParquetDFSSource", spark=spark)
    assert not hf.is_table(tmp_path / "t")


def test_sources_of_one_process_are_refused_on_spark(tmp_path, spark):
    with pytest.raises(hf.UnsupportedFeatureError, match=r"JdbcSource is not supported on Spark.*engine out"):
        feed(tmp_path / "t", "", source="JdbcSource", spark=spark)
    streamer = hf.Streamer(options(), source=Numbers(3), target_base_path=str(tmp_path / "t"), spark=spark)
    with pytest.raises(hf.ConfigError, match=r"gives a DataFrame of Spark; got RecordBatchReader"):
        streamer.turn()


def test_a_source_of_dataframes_is_a_source_on_spark(tmp_path, spark):
    class Frames(Numbers):
        def fetch(self, position, limit):
            found = super().fetch(position, limit)
            rows = None if found.rows is None else spark.createDataFrame(found.rows.read_pandas())
            return hf.Fetched(rows, found.position, found.lag)

    streamer = hf.Streamer(options(), source=Frames(4), target_base_path=str(tmp_path / "t"), spark=spark)
    assert [turn.inserts for turn in streamer.run()] == [3, 1]


@pytest.mark.parametrize(
    ("arguments", "session", "message"),
    [
        ({"engine": "spark"}, False, r"engine spark needs a session"),
        ({"engine": "process"}, True, r"name the engine process, and the caller gives a Spark session"),
        ({"engine": "flink"}, False, r"--engine is one of process, spark; got 'flink'"),
    ],
)
def test_an_engine_that_contradicts_the_session_is_refused(tmp_path, spark, arguments, session, message):
    with pytest.raises(hf.ConfigError, match=message):
        feed(tmp_path / "t", tmp_path, spark=spark if session else None, **arguments)
    with pytest.raises(hf.ConfigError, match=r"spark is a SparkSession, or None"):
        feed(tmp_path / "t", tmp_path, spark="local[2]")


@pytest.mark.parametrize("plan", ["driver", "fused", "routed", "broadcast"])
def test_of_rows_with_one_key_the_one_of_the_newest_file_wins_without_an_ordering_field(tmp_path, spark, plan):
    keys = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        "hudi_fast.plan": plan,
    }
    for turn in range(2):
        for number in range(6):
            rows = [row(one, tip=[turn, number]) | {"ts": 0} for one in range(20)]
            put(tmp_path / "in", f"{turn}-{5 - number}.json", rows, 90 - turn * 10 - number)
        streamer = hf.Streamer(keys, source_class="JsonDFSSource", target_base_path=str(tmp_path / "t"), spark=spark)
        streamer.turn()
        assert rows_of(tmp_path / "t")["tip"].to_pylist() == [[turn, 5]] * 20
