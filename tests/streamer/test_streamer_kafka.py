"""A stream from a real Kafka broker: each message once, whatever happens to topic and broker."""

from __future__ import annotations

import itertools
import json
import time

import pytest

import hudi_fast as hf
from tests.servers.kafka import KafkaBroker
from tests.support.small_tables import options

_numbers = itertools.count()
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    """A topic of three partitions."""
    name = f"topic.{next(_numbers)}"
    kafka.create_topic(name, 3)
    return name


def message(number, **more):
    return json.dumps({"id": f"k{number:05}", "part": f"p{number % 2}", "ts": number, **more}).encode()


def stream(kafka, topic, path, more=None, **arguments):
    given = options(operation="insert") | {
        "bootstrap.servers": kafka.servers,
        "hoodie.deltastreamer.source.kafka.topic": topic,
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        **EARLIEST,
        **(more or {}),
    }
    source = "org.apache.hudi.utilities.sources.JsonKafkaSource"
    return hf.Streamer(given, source_class=source, target_base_path=str(path), op="INSERT", **arguments)


def feed(kafka, topic, path, more=None, **arguments):
    """One turn."""
    streamer = stream(kafka, topic, path, more, **arguments)
    try:
        return next(streamer.run())
    finally:
        streamer.close()


def ids(path):
    return sorted(int(text[1:]) for text in hf.read(path, columns=["id"])["id"].to_pylist())


@pytest.mark.smoke
def test_each_message_is_written_once_in_turns_of_any_size(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(number) for number in range(50)])
    turns = [feed(kafka, topic, path, source_limit=limit) for limit in (1, 7, 30)]
    assert [turn.inserts for turn in turns] == [1, 7, 30]
    assert turns[-1].position.startswith(f"{topic},0:")
    assert sum(turns[-1].lag.values()) == 12
    kafka.send(topic, [message(number) for number in range(50, 60)])
    assert feed(kafka, topic, path).inserts == 22
    assert feed(kafka, topic, path).instant == ""
    assert ids(path) == list(range(60))


def test_messages_without_a_value_are_left_out(kafka, topic, tmp_path):
    kafka.send(topic, [message(1), None, b"", b"  ", message(2)], 0)
    assert feed(kafka, topic, tmp_path / "t").position == f"{topic},0:5,1:0,2:0"
    assert ids(tmp_path / "t") == [1, 2]
    kafka.send(topic, [None], 0)
    assert feed(kafka, topic, tmp_path / "t").position == f"{topic},0:6,1:0,2:0"


def test_columns_without_a_schema_do_not_follow_the_order_of_a_brokers_answers(kafka, topic, tmp_path):
    for number, partition in enumerate([2, 0, 1]):
        kafka.send(topic, [message(number, **{f"of_{partition}": 1.5})], partition)
    for turn in range(3):
        feed(kafka, topic, tmp_path / str(turn))
        names = hf.read(tmp_path / str(turn)).column_names
        assert [name for name in names if name.startswith("of_")] == ["of_0", "of_1", "of_2"]


def test_partitions_that_are_added_are_read_from_their_first_message(kafka, tmp_path):
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic, path = f"topic.{next(_numbers)}", tmp_path / "t"
    kafka.create_topic(topic)
    kafka.send(topic, [message(0)])
    feed(kafka, topic, path)
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    kafka.send(topic, [message(1)], 1)
    assert feed(kafka, topic, path).position == f"{topic},0:1,1:1"
    assert ids(path) == [0, 1]


def expired(kafka, topic, partition, before):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": kafka.servers})
    place = TopicPartition(topic, partition, before)
    admin.delete_records([place])[place].result(30)


def test_messages_that_expired_before_they_were_read_are_told(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(number) for number in range(10)], 1)
    feed(kafka, topic, path, source_limit=2)
    expired(kafka, topic, 1, 6)
    strict = {"hoodie.streamer.source.kafka.enable.failOnDataLoss": "true"}
    with pytest.raises(
        hf.SourceError, match=r"partition 1: messages 2 to 5 are gone.*--?ignore.checkpoint|partition 1"
    ):
        feed(kafka, topic, path, strict)
    assert ids(path) == [0, 1]
    with pytest.warns(hf.HudiWarning, match=r"lost messages .*partition 1: messages 2 to 5 are gone"):
        feed(kafka, topic, path)
    assert ids(path) == [0, 1, 6, 7, 8, 9]


def test_a_topic_that_was_made_anew_is_told(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(number) for number in range(9)], 0)
    feed(kafka, topic, path)
    kafka.delete_topic(topic)
    with pytest.raises(hf.ConfigError, match=rf"The Kafka topic '{topic}' does not exist at 127\.0\.0\.1"):
        feed(kafka, topic, path)
    kafka.create_topic(topic, 3)
    kafka.send(topic, [message(number) for number in range(9, 12)], 0)
    strict = {"hoodie.streamer.source.kafka.enable.failOnDataLoss": "true"}
    with pytest.raises(hf.SourceError, match=r"at 9, the partition ends at 3: the topic was made anew"):
        feed(kafka, topic, path, strict)
    with pytest.warns(hf.HudiWarning, match="the topic was made anew"):
        feed(kafka, topic, path)
    assert ids(path) == list(range(12))


def test_aborted_messages_are_not_read_and_committed_ones_end_a_turn(kafka, topic, tmp_path):
    kafka.send_transactions(topic, [*map(message, range(5))], [*map(message, range(5, 10))])
    deadline = time.monotonic() + 30
    while feed(kafka, topic, tmp_path / "t").position != f"{topic},0:12,1:0,2:0":  # with two marks of transactions
        assert time.monotonic() < deadline
    assert ids(tmp_path / "t") == list(range(5))


def test_a_stream_that_begins_with_the_newest_messages_reads_those_that_come_after_its_start(kafka, topic, tmp_path):
    path, latest = tmp_path / "t", {"auto.offset.reset": "latest"}
    kafka.send(topic, [message(number) for number in range(5)])
    streamer = stream(kafka, topic, path, latest)
    assert [turn.instant for turn in streamer.run()] == [""]
    kafka.send(topic, [message(5)])
    assert [turn.inserts for turn in streamer.run()] == [1]
    streamer.close()
    assert ids(path) == [5]


def test_a_stream_may_begin_at_a_time_an_offset_or_where_its_group_is(kafka, topic, tmp_path):
    kafka.send(topic, [message(0), message(1)], 0)
    time.sleep(0.01)
    at = str(int(time.time() * 1000))
    time.sleep(0.01)
    kafka.send(topic, [message(2)], 0)
    by_time = {"hoodie.streamer.source.kafka.checkpoint.type": "timestamp"}
    feed(kafka, topic, tmp_path / "a", by_time, checkpoint=at)
    assert ids(tmp_path / "a") == [2]
    feed(kafka, topic, tmp_path / "b", checkpoint=f"{topic},0:1")
    assert ids(tmp_path / "b") == [1, 2]
    single = {"hoodie.streamer.source.kafka.checkpoint.type": "single_offset"}
    with pytest.raises(hf.ConfigError, match=r"has 3 partitions; checkpoint\.type=single_offset needs one"):
        feed(kafka, topic, tmp_path / "c", single, checkpoint="1")
    group = {"group.id": f"group-{topic}", "hoodie.streamer.source.kafka.enable.commit.offset": "true"}
    feed(kafka, topic, tmp_path / "d", group, source_limit=2)
    feed(kafka, topic, tmp_path / "e", group | {"auto.offset.reset": "group"})
    assert ids(tmp_path / "e") == [2] or ids(tmp_path / "e") == []


def test_a_bad_message_is_named_and_holds_the_stream(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(0), b'{"id": "k', message(2)], 2)
    with pytest.raises(hf.InvalidDataError, match=rf"Topic {topic}, partition 2, offset 1: expected a JSON object"):
        feed(kafka, topic, path)
    assert not hf.is_table(path)
    skipping = {"hoodie.streamer.source.json.skip.invalid.records": "true"}
    with pytest.warns(hf.HudiWarning, match=rf"Left out .*: 1; the first: Topic {topic}, partition 2, offset 1"):
        feed(kafka, topic, path, skipping)
    assert ids(path) == [0, 2]


def test_rows_can_tell_which_message_they_come_from(kafka, topic, tmp_path):
    kafka.send(topic, [message(0), None, message(1)], 1)
    feed(kafka, topic, tmp_path / "t", {"hoodie.streamer.source.kafka.append.offsets": "true"})
    names = ["id", "_hoodie_kafka_source_partition", "_hoodie_kafka_source_offset", "_hoodie_kafka_source_key"]
    rows = hf.read(tmp_path / "t", columns=names).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("k00000", 1, 0, None), ("k00001", 1, 2, None)]


def test_a_column_that_appears_later_is_added(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(0)])
    feed(kafka, topic, path)
    kafka.send(topic, [message(1, tip=2.5)])
    feed(kafka, topic, path)
    assert hf.read(path, columns=["id", "tip"]).sort_by("id")["tip"].to_pylist() == [None, 2.5]


def test_a_broker_that_is_away_is_told_and_the_stream_goes_on_later(kafka, topic, tmp_path):
    path = tmp_path / "t"
    kafka.send(topic, [message(0)])
    feed(kafka, topic, path)
    kafka.stop()
    try:
        started = time.monotonic()
        with pytest.raises(
            hf.SourceError, match=rf"Kafka at {kafka.servers} cannot be read: .*continues from its posi"
        ):
            feed(kafka, topic, path, {"default.api.timeout.ms": "2000"})
        assert time.monotonic() - started < 30
    finally:
        kafka.start()
    kafka.send(topic, [message(1)])
    assert feed(kafka, topic, path).inserts == 1
    assert ids(path) == [0, 1]


@pytest.mark.parametrize(
    ("more", "message_"),
    [
        ({"auto.offset.reset": "newest"}, r"auto\.offset\.reset is one of latest, earliest, group; got 'newest'"),
        ({"auto.offset.reset": "group"}, r"need the property group\.id"),
        ({"bootstrap.servers": ""}, r"needs the property bootstrap\.servers"),
        ({"no.such.property": "1"}, r"Kafka's client refuses its properties: No such configuration property"),
        ({"hoodie.streamer.kafka.source.maxEvents": "0"}, r"maxEvents is a number, 1 or more; got '0'"),
        ({"ssl.truststore.location": "/etc/kafka.jks"}, r"names a keystore of Java\..*ssl\.ca\.location"),
        ({"sasl.jaas.config": "Krb5LoginModule required;"}, r"understood with a username and a password only"),
    ],
)
def test_wrong_properties_are_refused(kafka, topic, tmp_path, more, message_):
    with pytest.raises(hf.HudiError, match=message_):
        feed(kafka, topic, tmp_path / "t", more)
    assert not hf.is_table(tmp_path / "t")
