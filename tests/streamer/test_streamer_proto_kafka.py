"""Protobuf messages of a real Kafka broker: with a real schema registry, and plain ones with a descriptor file."""

from __future__ import annotations

import itertools
import sys

import pytest

import hudi_fast as hf
from tests.streamer.proto_files import class_of, descriptor_set
from tests.streamer.topics import rows_of, trip, turn_of
from tests.support.small_tables import options

_numbers = itertools.count()
HEADER = {
    "hoodie.streamer.source.kafka.proto.value.deserializer.class": "io.confluent.kafka.serializers.protobuf."
    "KafkaProtobufDeserializer"
}
FIELDS = "string id = 1; string part = 2; int64 ts = 3;"
TRIP = f'syntax = "proto3"; package trips; message Trip {{ {FIELDS} }}'
NOTED = f'syntax = "proto3"; package trips; message Trip {{ {FIELDS} optional string note = 4; }}'
IMPORTING = (
    'syntax = "proto3"; package trips; import "cities.proto"; import "google/protobuf/timestamp.proto"; '
    f"message Trip {{ {FIELDS} cities.City city = 4; google.protobuf.Timestamp at = 5; }}"
)
CITIES = 'syntax = "proto3"; package cities; message City { string name = 1; }'


class Topic:
    """A topic, and its subject in the registry."""

    def __init__(self, kafka, registry):
        from confluent_kafka.schema_registry import SchemaRegistryClient

        self.kafka, self.registry, self.name = kafka, registry, f"proto.{next(_numbers)}"
        kafka.create_topic(self.name, 1)
        self.client = SchemaRegistryClient({"url": registry}) if registry else None

    def serialize(self, text, row, name="trips.Trip", **files):
        """A message with its header, as Confluent's serializer writes it, which registers the schema."""
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
        from confluent_kafka.serialization import MessageField, SerializationContext

        cls = class_of(descriptor_set(text, **files), name)
        serializer = ProtobufSerializer(cls, self.client, {"use.deprecated.format": False})
        return serializer(cls(**row), SerializationContext(self.name, MessageField.VALUE))

    def register_text(self, text, subject=None, references=()):
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, "PROTOBUF", list(references))
        return self.client.register_schema(subject or f"{self.name}-value", schema)

    def send(self, *values):
        self.kafka.send(self.name, values, 0)

    def feed(self, path, more=None, **arguments):
        registry = {"schema.registry.url": self.registry} if self.registry else {}
        given = options(operation="insert") | registry | (more or {})
        source = "org.apache.hudi.utilities.sources.ProtoKafkaSource"
        return turn_of(self.kafka, self.name, path, source, given, **arguments)


@pytest.fixture
def topic(kafka, schema_registry):
    """A topic, and a registry."""
    return Topic(kafka, schema_registry)


def framed(number, text, row, indexes=b"\0", name="trips.Trip", **files):
    """A message with the header of a schema that is registered already."""
    message = class_of(descriptor_set(text, **files), name)(**row)
    return b"\0" + number.to_bytes(4, "big") + indexes + message.SerializeToString()


def test_messages_of_the_serializer_are_rows_and_a_new_field_becomes_a_column(topic, tmp_path):
    path = tmp_path / "t"
    topic.send(topic.serialize(TRIP, trip(0)), topic.serialize(TRIP, trip(1)))
    assert topic.feed(path, HEADER).inserts == 2
    topic.send(topic.serialize(TRIP, trip(2)), topic.serialize(NOTED, trip(3, note="new")))
    turn = topic.feed(path, HEADER)
    assert (turn.inserts, turn.position) == (2, f"{topic.name},0:4")
    assert rows_of(path, "ts", "note") == [
        ("k00000", 0, None), ("k00001", 1, None), ("k00002", 2, None), ("k00003", 3, "new")
    ]  # fmt: skip


def test_a_schema_that_the_registry_gives_as_text_is_compiled(topic, tmp_path):
    number = topic.register_text(TRIP)
    topic.send(framed(number, TRIP, trip(0)))
    topic.feed(tmp_path / "t", HEADER)
    assert rows_of(tmp_path / "t", "ts") == [("k00000", 0)]


@pytest.mark.parametrize("kind", ["descriptor", "text"])
def test_imports_of_a_schema_are_fetched_from_the_registry(topic, tmp_path, kind):
    row = trip(0, city={"name": "Oslo"}, at={"seconds": 5})
    if kind == "descriptor":
        value = topic.serialize(IMPORTING, row, cities=CITIES)
    else:
        from confluent_kafka.schema_registry import SchemaReference

        subject = f"cities.{topic.name}"
        topic.register_text(CITIES, subject)
        number = topic.register_text(IMPORTING, None, [SchemaReference("cities.proto", subject, 1)])
        value = framed(number, IMPORTING, row, cities=CITIES)
    topic.send(value)
    topic.feed(tmp_path / "t", HEADER)
    ((_, city, at),) = rows_of(tmp_path / "t", "city", "at")
    assert (city, at.timestamp()) == ({"name": "Oslo"}, 5.0)


def test_a_stream_reads_the_first_type_of_the_schema_or_the_one_that_is_named(topic, tmp_path):
    text = f"{TRIP} message Other {{ {FIELDS} int32 extra = 4; message Inner {{ {FIELDS} }} }}"
    number = topic.register_text(text)
    topic.send(framed(number, text, trip(0, extra=5), b"\2\2", "trips.Other"))
    with pytest.raises(hf.InvalidDataError, match=r"offset 0: expected .*type trips\.Trip; found one of trips\.Other"):
        topic.feed(tmp_path / "t", HEADER)
    topic.feed(tmp_path / "t", HEADER, proto_message="trips.Other")
    assert rows_of(tmp_path / "t", "extra") == [("k00000", 5)]


def test_a_version_of_the_schema_can_be_chosen(topic, tmp_path):
    topic.send(topic.serialize(TRIP, trip(0)), topic.serialize(NOTED, trip(1, note="left out")))
    address = f"{topic.registry}/subjects/{topic.name}-value/versions/1"
    more = {**HEADER, "hoodie.streamer.schemaprovider.registry.url": address}
    topic.feed(tmp_path / "t", more, schemaprovider_class="a.SchemaRegistryProvider")
    assert "note" not in hf.read(tmp_path / "t").column_names
    assert rows_of(tmp_path / "t", "ts") == [("k00000", 0), ("k00001", 1)]


def test_plain_messages_are_read_with_a_descriptor_file_and_an_empty_one_has_defaults(kafka, tmp_path):
    topic, file = Topic(kafka, ""), tmp_path / "trips.desc"
    data = descriptor_set(NOTED)
    file.write_bytes(data)
    cls = class_of(data, "trips.Trip")
    topic.send(cls(**trip(0, note="x")).SerializeToString(), None, cls(**trip(1)).SerializeToString(), b"")
    more = {
        "hoodie.streamer.schemaprovider.proto.class.name": "com.shop.Trips$Trip",
        "hudi_fast.streamer.proto-descriptor-file": str(file),
        "hudi_fast.streamer.proto-message": "trips.Trip",
        "hoodie.streamer.source.kafka.append.offsets": "true",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.datasource.write.recordkey.field": "id,ts",
    }
    provider = "org.apache.hudi.utilities.schema.ProtoClassBasedSchemaProvider"
    turn = topic.feed(tmp_path / "t", more, schemaprovider_class=provider)
    assert (turn.inserts, turn.position) == (3, f"{topic.name},0:4")
    found = rows_of(tmp_path / "t", "part", "ts", "note", "_hoodie_kafka_source_offset")
    assert found == [("", "", 0, None, 3), ("k00000", "p0", 0, "x", 0), ("k00001", "p0", 1, None, 2)]


def test_a_schema_in_a_file_chooses_columns_and_what_cannot_be_read_is_in_the_error_table(kafka, tmp_path):
    topic, file = Topic(kafka, ""), tmp_path / "trips.desc"
    data = descriptor_set(NOTED)
    file.write_bytes(data)
    fields = '{"name": "id", "type": "string"}, {"name": "part", "type": "string"}, {"name": "ts", "type": "long"}'
    (tmp_path / "trips.avsc").write_text(f'{{"type": "record", "name": "trip", "fields": [{fields}]}}')
    topic.send(class_of(data, "trips.Trip")(**trip(0, note="x")).SerializeToString(), b"\xff")
    more = {
        "hudi_fast.streamer.proto-descriptor-file": str(file),
        "hudi_fast.streamer.proto-message": "trips.Trip",
        "hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "trips.avsc"),
        "hoodie.errortable.enable": "true",
        "hoodie.errortable.base.path": str(tmp_path / "errors"),
    }
    assert topic.feed(tmp_path / "t", more).inserts == 1
    assert "note" not in hf.read(tmp_path / "t").column_names
    (bad,) = hf.read(tmp_path / "errors", columns=["place", "value"]).to_pylist()
    assert bad == {"place": f"Topic {topic.name}, partition 0, offset 1", "value": b"\xff"}


def test_messages_of_another_kind_are_named(topic, tmp_path):
    topic.send(b'{"id": 1}')
    with pytest.raises(hf.InvalidDataError, match=r"offset 0: expected a Protobuf message with the header of a schema"):
        topic.feed(tmp_path / "t", HEADER)


def test_a_schema_of_another_kind_is_told(topic, tmp_path):
    from confluent_kafka.schema_registry import Schema

    number = topic.client.register_schema(f"{topic.name}-value", Schema('"string"', "AVRO"))
    topic.send(b"\0" + number.to_bytes(4, "big") + b"\0")
    with pytest.raises(hf.InvalidDataError, match=r"schema \d+ of the registry .* is AVRO; expected PROTOBUF"):
        topic.feed(tmp_path / "t", HEADER)


def wrong(more, **arguments):
    given = options() | {"bootstrap.servers": "127.0.0.1:9", "hoodie.streamer.source.kafka.topic": "t", **more}
    hf.Streamer(given, source_class="ProtoKafkaSource", target_base_path="/no/table", **arguments)


@pytest.mark.parametrize(
    ("more", "arguments", "error", "message"),
    [
        ({}, {}, hf.ConfigError, r"ProtoKafkaSource needs the type of the messages\. Make a descriptor file"),
        (
            {"schemaprovider.proto.class.name": "com.shop.Trips$Trip"},
            {},
            hf.UnsupportedFeatureError,
            r"class\.name=com\.shop\.Trips\$Trip is a Java class.*--proto-descriptor-file and --proto-message",
        ),
        ({}, {"proto_descriptor_file": "/no/file", "proto_message": "a.B"}, hf.ConfigError, r"/no/file does not exist"),
        ({}, {"proto_descriptor_file": "/no/file"}, hf.ConfigError, r"needs --proto-message"),
        ({"source.kafka.proto.value.deserializer.class": "a.Own"}, {}, hf.UnsupportedFeatureError, r"got 'Own'"),
        ({"schemaprovider.proto.max.recursion.depth": "0"}, {}, hf.ConfigError, r"is a number, 1 or more; got '0'"),
        ({"schemaprovider.proto.flatten.wrappers": "1"}, {}, hf.ConfigError, r"flatten\.wrappers is true or false"),
        (
            {},
            {"schemaprovider_class": "SchemaRegistryProvider"},
            hf.UnsupportedFeatureError,
            r"SchemaRegistryProvider needs messages with the header of a registry",
        ),
    ],
)
def test_wrong_settings_are_refused(more, arguments, error, message):
    with pytest.raises(error, match=message):
        wrong({f"hoodie.streamer.{key}": value for key, value in more.items()}, **arguments)


def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path):
    (tmp_path / "f").write_bytes(descriptor_set(TRIP))
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[protobuf\]'"):
        wrong({}, proto_descriptor_file=str(tmp_path / "f"), proto_message="trips.Trip")
