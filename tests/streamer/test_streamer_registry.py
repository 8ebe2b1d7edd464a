"""Avro messages with a real schema registry: each schema of a topic, new and old."""

from __future__ import annotations

import io
import itertools
import json

import fastavro
import pytest

import hudi_fast as hf
from tests.streamer.topics import rows_of, trip, turn_of
from tests.support.small_tables import options

_numbers = itertools.count()
FIELDS = [{"name": "id", "type": "string"}, {"name": "part", "type": "string"}, {"name": "ts", "type": "long"}]
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
COST = {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}}


def record(*more, numbers="long"):
    fields = [{**each, "type": numbers} if each["name"] == "ts" else each for each in FIELDS]
    return {"type": "record", "name": "trip", "fields": [*fields, *more]}


class Topic:
    """A topic and its subject in the registry."""

    def __init__(self, kafka, registry, partitions=2):
        from confluent_kafka.schema_registry import SchemaRegistryClient

        self.kafka, self.registry, self.name = kafka, registry, f"avro.{next(_numbers)}"
        kafka.create_topic(self.name, partitions)
        self._client = SchemaRegistryClient({"url": registry})

    def register(self, schema):
        from confluent_kafka.schema_registry import Schema

        return self._client.register_schema(f"{self.name}-value", Schema(json.dumps(schema), "AVRO"))

    def send(self, schema, rows, partition=None):
        number, values = self.register(schema), []
        for row in rows:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, row)
            values.append(b"\0" + number.to_bytes(4, "big") + out.getvalue())
        self.kafka.send(self.name, values, partition)

    def feed(self, path, more=None, **arguments):
        given = options(operation="insert") | {"schema.registry.url": self.registry} | (more or {})
        return turn_of(self.kafka, self.name, path, "AvroKafkaSource", given, **arguments)


@pytest.fixture
def topic(kafka, schema_registry):
    """A topic of two partitions."""
    return Topic(kafka, schema_registry)


def test_records_of_all_schemas_of_a_topic_are_rows_of_its_newest_one(topic, tmp_path):
    path = tmp_path / "t"
    topic.send(record(numbers="int"), [trip(0), trip(1)], 0)
    topic.send(record(NOTE), [trip(2, note="x"), trip(3, note=None)], 0)
    topic.send(record(numbers="int"), [trip(4)], 1)
    topic.register(record(NOTE))
    assert topic.feed(path).inserts == 5
    assert rows_of(path, "ts", "note") == [
        ("k00000", 0, None), ("k00001", 1, None), ("k00002", 2, "x"), ("k00003", 3, None), ("k00004", 4, None)
    ]  # fmt: skip


def test_a_column_of_a_later_schema_is_added_to_the_table(topic, tmp_path):
    path = tmp_path / "t"
    topic.send(record(), [trip(0)])
    topic.feed(path)
    topic.send(record(NOTE), [trip(1, note="new")])
    topic.feed(path)
    assert rows_of(path, "note") == [("k00000", None), ("k00001", "new")]


def test_times_and_decimals_keep_their_types(topic, tmp_path):
    import datetime
    import decimal

    at = datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, datetime.UTC)
    topic.send(record(AT, COST), [trip(0, at=at, cost=decimal.Decimal("-12.34"))])
    topic.feed(tmp_path / "t")
    assert rows_of(tmp_path / "t", "at", "cost") == [("k00000", at, decimal.Decimal("-12.34"))]


def test_the_address_of_one_schema_decides_the_columns(topic, tmp_path):
    topic.send(record(), [trip(0)])
    topic.send(record(NOTE), [trip(1, note="left out")])
    address = f"{topic.registry}/subjects/{topic.name}-value/versions/1"
    topic.feed(
        tmp_path / "t",
        {"hoodie.deltastreamer.schemaprovider.registry.url": address},
        schemaprovider_class="a.SchemaRegistryProvider",
    )
    assert "note" not in hf.read(tmp_path / "t").column_names
    assert rows_of(tmp_path / "t", "ts") == [("k00000", 0), ("k00001", 1)]


def test_a_message_that_is_no_record_is_named(topic, tmp_path):
    topic.send(record(), [trip(0)], 1)
    topic.kafka.send(topic.name, [b"{}"], 1)
    with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic.name}, partition 1, offset 1: expected an Avro rec"):
        topic.feed(tmp_path / "t")


def test_a_record_that_is_cut_off_is_named(topic, tmp_path):
    number = topic.register(record())
    topic.kafka.send(topic.name, [b"\0" + number.to_bytes(4, "big") + b"\x04a"], 0)
    with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic.name}, partition 0, offset 0"):
        topic.feed(tmp_path / "t")


def test_a_schema_or_registry_that_is_not_there_is_told(kafka, schema_registry, topic, tmp_path):
    number = Topic(kafka, schema_registry).register(record())  # of another topic
    topic.kafka.send(topic.name, [b"\0" + number.to_bytes(4, "big") + b"x"], 0)
    with pytest.raises(hf.SourceError, match=rf"The registry .* has no version latest of {topic.name}-value"):
        topic.feed(tmp_path / "t")
    topic.kafka.send(topic.name, [b"\0" + (9999).to_bytes(4, "big") + b"x"], 0)
    with pytest.raises(hf.SourceError, match=r"has no schema 9999"):
        topic.feed(tmp_path / "t")
    with pytest.raises(hf.SourceError, match=r"The registry http://127\.0\.0\.1:9 does not answer"):
        topic.feed(tmp_path / "t", {"schema.registry.url": "http://127.0.0.1:9"})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schema.registry.url": ""}, r"needs the property schema\.registry\.url"),
        ({"hoodie.streamer.schemaprovider.registry.url": "http://x/schemas/1"}, r"is the address of a schema, such as"),
    ],
)
def test_wrong_addresses_are_refused(topic, tmp_path, more, message):
    with pytest.raises(hf.ConfigError, match=message):
        topic.feed(tmp_path / "t", more)
