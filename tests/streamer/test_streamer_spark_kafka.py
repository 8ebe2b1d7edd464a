"""A stream from a real Kafka broker with Spark as the engine: each message once, and the rows of the other engine."""

from __future__ import annotations

import itertools
import json
import time

import pytest

import hudi_fast as hf
from hudi_fast.streamer.on_spark.sources import MessageRange, ranges_of
from tests.streamer import test_streamer_proto_kafka as proto
from tests.streamer import test_streamer_registry as avro
from tests.streamer.proto_files import class_of, descriptor_set
from tests.streamer.test_streamer_debezium import event
from tests.streamer.test_streamer_kafka import expired, feed, ids, message, stream
from tests.streamer.test_streamer_spark_folder import SCHEMA, rows_of

_numbers = itertools.count()
OFFSETS = {"hoodie.streamer.source.kafka.append.offsets": "true"}


@pytest.fixture
def topic(kafka):
    """A topic of three partitions."""
    name = f"spark.{next(_numbers)}"
    kafka.create_topic(name, 3)
    return name


@pytest.fixture
def schema(tmp_path):
    """The property of a schema."""
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps(SCHEMA))
    return {"hoodie.streamer.schemaprovider.source.schema.file": str(file)}


def same(tmp_path):
    process, on_spark = rows_of(tmp_path / "process"), rows_of(tmp_path / "spark")
    assert on_spark.schema.equals(process.schema), (on_spark.schema, process.schema)
    assert on_spark.equals(process)
    return on_spark


def both(kafka, topic, tmp_path, spark, more=None, **arguments):
    """The tables that each engine makes of a topic in one turn, which must be equal."""
    turns = [
        feed(kafka, topic, tmp_path / name, more, spark=session, **arguments)
        for name, session in (("process", None), ("spark", spark))
    ]
    assert turns[0].position == turns[1].position
    assert turns[0].lag == turns[1].lag
    assert turns[0].inserts == turns[1].inserts
    return same(tmp_path)


@pytest.mark.smoke
def test_a_stream_changes_its_engine_and_writes_each_message_once(kafka, topic, tmp_path, spark):
    path, sent = tmp_path / "t", 0
    for session, limit in ((None, 3), (spark, 7), (None, 5), (spark, None)):
        kafka.send(topic, [message(number) for number in range(sent, sent + 10)])
        sent += 10
        turn = feed(kafka, topic, path, spark=session, **({} if limit is None else {"source_limit": limit}))
        assert turn.inserts == (limit or 25)
    assert feed(kafka, topic, path, spark=spark).instant == ""
    assert feed(kafka, topic, path).instant == ""
    assert ids(path) == list(range(sent))


def test_json_with_a_schema_makes_the_same_table(kafka, topic, tmp_path, spark, schema):
    typed = {"fare": 1.25, "at": 1_700_000_000_123, "day": "2024-02-29", "tags": ["a"], "dropped": 1}
    kafka.send(topic, [*(message(number, **typed) for number in range(20)), None, b"", b" ", message(20)])
    kafka.send(topic, [None], 1)
    more = schema | OFFSETS | {"hoodie.streamer.source.kafka.minPartitions": "8"}
    assert both(kafka, topic, tmp_path, spark, more).num_rows == 21


def test_json_without_a_schema_has_the_columns_of_all_partitions(kafka, topic, tmp_path, spark):
    kafka.send(topic, [message(0, a=1), message(1, a=2, b={"c": [1]})], 0)
    kafka.send(topic, [message(2, a=1.5, d="2024-01-01"), message(3, e=None)], 2)
    found = both(kafka, topic, tmp_path, spark, OFFSETS)
    assert found["a"].to_pylist() == [1.0, 2.0, 1.5, None]
    kafka.send(topic, [message(4, tip=2.5)])
    assert both(kafka, topic, tmp_path, spark, OFFSETS)["tip"].to_pylist() == [None] * 4 + [2.5]


def test_types_that_differ_from_partition_to_partition_are_refused(kafka, topic, tmp_path, spark):
    kafka.send(topic, [message(0, a=1)], 0)
    kafka.send(topic, [message(1, a="x")], 1)
    with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic}: the types of a field differ.*schema\.file"):
        feed(kafka, topic, tmp_path / "t", spark=spark)
    assert not hf.is_table(tmp_path / "t")


def test_a_turn_of_empty_messages_moves_the_position(kafka, topic, tmp_path, spark, schema):
    path = tmp_path / "t"
    kafka.send(topic, [None, b""], 0)
    feed(kafka, topic, path, schema, spark=spark)
    kafka.send(topic, [message(1), None], 0)
    assert feed(kafka, topic, path, spark=spark).position == f"{topic},0:4,1:0,2:0"
    kafka.send(topic, [None], 0)
    assert feed(kafka, topic, path, spark=spark).position == f"{topic},0:5,1:0,2:0"
    assert ids(path) == [1]


@pytest.mark.parametrize("has_schema", [False, True])
def test_a_bad_message_is_named_as_by_one_process(kafka, topic, tmp_path, spark, schema, has_schema):
    more = schema if has_schema else {}
    kafka.send(topic, [message(0), b'{"id": "k', message(2)], 2)
    texts = []
    for session in (None, spark):
        with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic}, partition 2, offset 1: expected a J") as found:
            feed(kafka, topic, tmp_path / "t", more, spark=session)
        texts.append(str(found.value))
    assert texts[0] == texts[1]
    assert not hf.is_table(tmp_path / "t")
    kept = {"hoodie.errortable.enable": "true", "hoodie.errortable.base.path": str(tmp_path / "errors")}
    assert feed(kafka, topic, tmp_path / "t", more | kept, spark=spark).inserts == 2
    assert hf.read(tmp_path / "errors")["value"].to_pylist() == [b'{"id": "k']
    skipping = {"hoodie.streamer.source.json.skip.invalid.records": "true"}
    with pytest.warns(hf.HudiWarning, match=rf"Left out .*: 1; the first: Topic {topic}, partition 2, offset 1"):
        feed(kafka, topic, tmp_path / "u", more | skipping | OFFSETS, spark=spark)
    assert ids(tmp_path / "u") == [0, 2]


def test_messages_that_expire_before_a_task_reads_them_are_an_error_and_then_told(
    kafka, topic, tmp_path, spark, schema
):
    path = tmp_path / "t"
    kafka.send(topic, [message(number) for number in range(10)], 1)
    feed(kafka, topic, path, schema, spark=spark, source_limit=2)
    streamer = stream(kafka, topic, path, schema, spark=spark)
    planned = streamer._source.planned

    def and_expired(position, limit):
        found = planned(position, limit)
        expired(kafka, topic, 1, 6)
        return found

    streamer._source.planned = and_expired
    with pytest.raises(hf.SourceError, match=r"cannot be read|no longer has"):
        streamer.turn()
    assert ids(path) == [0, 1]
    streamer._source.planned = planned
    with pytest.warns(hf.HudiWarning, match=r"lost messages .*partition 1: messages 2 to 5 are gone"):
        streamer.turn()
    streamer.close()
    assert ids(path) == [0, 1, 6, 7, 8, 9]


def test_aborted_messages_are_not_read(kafka, topic, tmp_path, spark, schema):
    kafka.send_transactions(topic, [*map(message, range(5))], [*map(message, range(5, 10))])
    deadline = time.monotonic() + 30
    while feed(kafka, topic, tmp_path / "t", schema, spark=spark).position != f"{topic},0:12,1:0,2:0":
        assert time.monotonic() < deadline
    assert ids(tmp_path / "t") == list(range(5))


def test_a_source_that_fails_is_tried_again(kafka, topic, tmp_path, spark, schema):
    kafka.send(topic, [message(0)])
    streamer = stream(
        kafka, topic, tmp_path / "t", schema, spark=spark, retry_on_source_failures=True, retry_interval_seconds=0
    )
    fetch, calls = streamer._source.fetch, []

    def failing(position, limit):
        calls.append(position)
        if len(calls) < 3:
            raise hf.SourceError("away")
        return fetch(position, limit)

    streamer._source.fetch = failing
    with pytest.warns(hf.HudiWarning, match=r"The source JsonKafkaSource failed, tries left: [23]\. away"):
        assert streamer.turn().inserts == 1
    assert len(calls) == 3


# ---- Avro, Protobuf and change events


def test_avro_messages_of_all_schemas_make_the_same_table(kafka, schema_registry, tmp_path, spark):
    topic = avro.Topic(kafka, schema_registry)
    topic.send(avro.record(numbers="int"), [avro.trip(0), avro.trip(1)], 0)
    topic.send(avro.record(avro.NOTE), [avro.trip(2, note="x"), avro.trip(3, note=None)], 0)
    topic.send(avro.record(numbers="int"), [avro.trip(4)], 1)
    topic.register(avro.record(avro.NOTE))
    for name, session in (("process", None), ("spark", spark)):
        assert topic.feed(tmp_path / name, OFFSETS, spark=session).inserts == 5
    same(tmp_path)
    topic.send(avro.record(avro.NOTE, {**avro.NOTE, "name": "more"}), [avro.trip(5, note="y", more="z")])
    for name, session in (("process", spark), ("spark", None)):  # each continues with the other engine
        assert topic.feed(tmp_path / name, OFFSETS, spark=session).inserts == 1
    assert same(tmp_path)["more"].to_pylist() == [None] * 5 + ["z"]
    kafka.send(topic.name, [b"{}"], 1)
    with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic.name}, partition 1, offset \d: expected an Avro rec"):
        topic.feed(tmp_path / "spark", OFFSETS, spark=spark)


def test_protobuf_messages_of_a_registry_make_the_same_table(kafka, schema_registry, tmp_path, spark):
    topic = proto.Topic(kafka, schema_registry)
    topic.send(topic.serialize(proto.TRIP, proto.trip(0)), topic.serialize(proto.NOTED, proto.trip(1, note="new")))
    for name, session in (("process", None), ("spark", spark)):
        assert topic.feed(tmp_path / name, proto.HEADER | OFFSETS, spark=session).inserts == 2
    assert same(tmp_path)["note"].to_pylist() == [None, "new"]


def test_plain_protobuf_messages_make_the_same_table(kafka, tmp_path, spark):
    topic, file, data = proto.Topic(kafka, ""), tmp_path / "trips.desc", descriptor_set(proto.NOTED)
    file.write_bytes(data)
    cls = class_of(data, "trips.Trip")
    topic.send(*(cls(**proto.trip(number, note="x")).SerializeToString() for number in range(3)), None)
    more = {"hudi_fast.streamer.proto-descriptor-file": str(file), "hudi_fast.streamer.proto-message": "trips.Trip"}
    for name, session in (("process", None), ("spark", spark)):
        assert topic.feed(tmp_path / name, more, spark=session).inserts == 3
    same(tmp_path)


@pytest.mark.parametrize("database", ["postgres", "mysql"])
def test_change_events_make_the_same_table(kafka, topic, tmp_path, spark, database):
    events = [
        event("c", None, {"id": 1, "name": "a", "tip": None}, 1, database),
        event("c", None, {"id": 2, "name": "b", "tip": None}, 2, database),
        event("u", {"id": 1, "name": "a", "tip": None}, {"id": 1, "name": "A", "tip": None}, 3, database),
        event("d", {"id": 2, "name": "b", "tip": None}, None, 4, database),
        event("c", None, {"id": 3, "name": None, "tip": None}, 5, database),
    ]
    kafka.send(topic, [json.dumps(one).encode() for one in events])
    more = {
        "hoodie.datasource.write.recordkey.field": "id",
        "bootstrap.servers": kafka.servers,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": topic,
        "hoodie.streamer.source.kafka.value.deserializer.class": "StringDeserializer",
    }
    source = {"postgres": "PostgresDebeziumSource", "mysql": "MysqlDebeziumSource"}[database]
    for name, session in (("process", None), ("spark", spark)):
        streamer = hf.Streamer(more, source_class=source, target_base_path=str(tmp_path / name), spark=session)
        streamer.turn()
        streamer.close()
    found = same(tmp_path)
    assert found["id"].to_pylist() == [1, 3]
    assert "tip" not in found.column_names


# ---- ranges of tasks


@pytest.mark.parametrize(
    ("ranges", "least", "expected"),
    [
        ({}, 0, []),
        ({0: (5, 5), 1: (3, 9)}, 0, [(1, 3, 9)]),
        ({0: (0, 9), 1: (0, 3)}, 4, [(0, 0, 3), (0, 3, 6), (0, 6, 9), (1, 0, 3)]),
        ({0: (7, 9)}, 5, [(0, 7, 8), (0, 8, 9)]),
    ],
)
def test_partitions_are_split_where_more_tasks_are_wanted(ranges, least, expected):
    assert ranges_of(ranges, least) == [MessageRange(*one) for one in expected]


def test_the_ranges_of_tasks_are_all_messages_of_a_turn_once():
    for least, sizes in itertools.product(range(0, 30, 3), itertools.product(range(0, 40, 13), repeat=3)):
        ranges = {one: (one, one + size) for one, size in enumerate(sizes)}
        found = ranges_of(ranges, least)
        assert len(found) >= min(least, sum(sizes))
        for one, (first, last) in ranges.items():
            offsets = [offset for unit in found if unit.partition == one for offset in range(unit.first, unit.last)]
            assert offsets == list(range(first, last))
