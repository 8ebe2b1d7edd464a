"""Messages of a Kafka topic, and its offsets.

::

    position ─► offsets ─┐
    broker: first and last offsets of each partition ─┴─► ranges ─► consume ─► decode ─► rows
                                                                          └─► position: where reading ended

Offsets live in the commits of the table. The consumer group is for quotas and for
``hoodie.streamer.source.kafka.enable.commit.offset``, which stores them in the broker, too, after each commit. A turn
reads so many bytes of messages at most that memory stays bounded, whatever waits in the topic.

Sources: ``KafkaOffsetGen``, ``KafkaSource`` and its classes (1.2.0). Where messages expired
before they were read, that class begins anew with all partitions; here only those begin anew that lost messages.

Offsets of a topic: their text, and which messages a turn reads.

::

    "topic,0:120,1:98" ─ parse ─► {0: 120, 1: 98} ─ first_offsets ─► where to begin ─ ranges ─► {0: (120, 170), ...}

Source: ``KafkaOffsetGen.CheckpointUtils`` (1.2.0), whose text this is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from operator import attrgetter
from typing import Any

from hudi_fast.errors import ConfigError, SourceError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.messages import Decoder, Message
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.source import Fetched

__all__ = ["KafkaSource", "Ranges", "offsets_of", "position_of", "shared_out"]

Ranges = dict[int, tuple[int, int]]
"""First offset and offset after the last one, by partition."""

_TEXT = re.compile(r"(.+?)((?:,\d+:\d+)+)")


def offsets_of(position: str, topic: str) -> dict[int, int]:
    """Offsets by partition.

    Args:
        position: such as ``trips,0:120,1:98``.
        topic: that the stream reads.

    Raises:
        ConfigError: it is no such text, or of another topic.
    """
    match = _TEXT.fullmatch(position.strip())
    if match is None:
        raise ConfigError(
            f"The position {position!r} is not one of a Kafka topic, such as '{topic},0:120,1:98'. Give the option "
            "ignore.checkpoint if the source has changed."
        )
    if match[1] != topic:
        raise ConfigError(
            f"The position {position!r} is one of the topic {match[1]!r}; the stream reads {topic!r}. Give the option "
            "ignore.checkpoint to begin with the new topic."
        )
    pairs = (pair.split(":") for pair in match[2].strip(",").split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def position_of(topic: str, offsets: Mapping[int, int]) -> str:
    """The text of offsets, in the order of partitions."""
    return ",".join([topic, *(f"{partition}:{offsets[partition]}" for partition in sorted(offsets))])


def shared_out(first: Mapping[int, int], last: Mapping[int, int], limit: int) -> Ranges:
    """The messages of a turn: as many from each partition as possible, until the limit is reached.

    Args:
        first: offset to begin with, by partition.
        last: offset after the newest message, by partition.
        limit: most messages of all partitions together.
    """
    left = {one: max(0, last[one] - first[one]) for one in sorted(last)}
    taken, rest = dict.fromkeys(left, 0), min(limit, sum(left.values()))
    while rest:
        waiting = [one for one in left if taken[one] < left[one]]
        share = max(1, rest // len(waiting))
        for one in waiting:
            more = min(share, left[one] - taken[one], rest)
            taken[one], rest = taken[one] + more, rest - more
    return {one: (first[one], first[one] + taken[one]) for one in left}


_MAX_MESSAGES = 5_000_000
_PLACE = attrgetter("partition", "offset")
"""The order of a turn's messages. Brokers answer in any order of partitions, from which columns without a schema would
take theirs."""
_TURN_BYTES = 24 << 20
_AHEAD = {"queued.max.messages.kbytes": 16_384, "fetch.queue.backoff.ms": 20}
"""What the client fetches ahead, and its pause when that is full: by default four times as much, and a second."""
_CHUNK = 10_000
_SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.05
_TIMEOUT_KEY, _TIMEOUT_MS = "default.api.timeout.ms", "30000"
_RESETS = ("latest", "earliest", "group")
_TYPES = ("string", "timestamp", "single_offset")
_OF_JAVA = frozenset(
    {_TIMEOUT_KEY, "key.deserializer", "value.deserializer", "max.rounds.without.new.data.to.shutdown"}
)
_JAAS = re.compile(r"username\s*=\s*\"([^\"]*)\"\s+password\s*=\s*\"([^\"]*)\"")


class KafkaSource:
    """A source of messages.

    Args:
        settings: of the streamer.
        decoder: makes rows of messages.

    Raises:
        ConfigError: a property is missing or wrong, or confluent-kafka is not installed.
        UnsupportedFeatureError: a property of Java's client that has no counterpart.
    """

    def __init__(self, settings: StreamSettings, decoder: Decoder) -> None:
        self._kafka = import_extra("confluent_kafka", "kafka", "A stream from Kafka")
        self._topic = settings.required("source.kafka.topic")
        self._decoder = decoder
        self._reset = settings.client.get("auto.offset.reset", "latest").lower()
        _require("auto.offset.reset", self._reset, _RESETS)
        self._kind = settings.stream.get("source.kafka.checkpoint.type", "string").lower()
        _require("hoodie.streamer.source.kafka.checkpoint.type", self._kind, _TYPES)
        self._fails_on_loss = settings.flag("source.kafka.enable.failOnDataLoss")
        self._commits = settings.flag("source.kafka.enable.commit.offset")
        if (self._commits or self._reset == "group") and "group.id" not in settings.client:
            raise ConfigError("Offsets in the broker need the property group.id, the name of the consumer group.")
        self._limit = settings.count("kafka.source.maxEvents", _MAX_MESSAGES)
        self._seconds = _milliseconds(_TIMEOUT_KEY, settings.client.get(_TIMEOUT_KEY, _TIMEOUT_MS)) / 1000
        self._client = _client_settings(settings.client, self._topic)
        self._consumer: Any = None

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is a number of messages.

        Raises:
            ConfigError: the topic does not exist, or the position is another topic's.
            InvalidDataError: a message cannot be read.
            SourceError: the broker does not answer; or messages were lost, and that is to be an error.
        """
        newest, ranges = self.planned(position, limit)
        messages, ended = self._consumed(ranges)
        rows = self._decoder(messages) if messages else None
        reader = None if rows is None or not rows.num_rows else rows.to_reader()
        return self.fetched(reader, position, newest, ranges, ended)

    def planned(self, position: str | None, limit: int | None) -> tuple[dict[int, int], Ranges]:
        """The offset after the newest message of each partition, and the messages that a turn may read.

        Args:
            position: as :meth:`fetch`.
            limit: as :meth:`fetch`.

        Raises:
            ConfigError: as :meth:`fetch`.
            SourceError: as :meth:`fetch`.
        """
        oldest, newest = self._bounds()
        first = self._first(position, oldest, newest)
        return newest, shared_out(first, newest, self._limit if limit is None else limit)

    def fetched(
        self, rows: Any, position: str | None, newest: Mapping[int, int], ranges: Ranges, ended: Mapping[int, int]
    ) -> Fetched:
        """What a turn has read.

        Args:
            rows: of the messages; None if there are none.
            position: where the turn began.
            newest: the offset after the newest message, by partition.
            ranges: that the turn could read.
            ended: the offset after the last message that it read, by partition.
        """
        lag = {f"{self._topic}-{one}": newest[one] - ended[one] for one in ended}
        is_still = position is not None and all(ended[one] == first for one, (first, _) in ranges.items())
        return Fetched(rows, position if is_still else position_of(self._topic, ended), lag)

    def messages_of(self, partition: int, first: int, last: int) -> Iterator[list[Message]]:
        """The messages of a partition from an offset to another one, in lists of bounded size.

        Args:
            partition: of the topic.
            first: offset of the first message.
            last: offset after the last message.

        Raises:
            SourceError: the broker does not answer, or no longer has all of these messages.
        """
        ended = {partition: first}
        yield from self._chunks({partition: (first, last)}, ended)
        if ended[partition] < last:
            raise SourceError(
                f"The topic {self._topic} at {self._servers} no longer has the messages {first} to {last - 1} of "
                f"partition {partition}; it ends at {ended[partition]}. The next turn reads what is left."
            )

    def committed(self, position: str | None) -> None:
        """Store the offsets in the broker, too, if the settings want it. The commit does not depend on it."""
        if not self._commits or position is None:
            return
        at = [
            self._kafka.TopicPartition(self._topic, one, offset)
            for one, offset in offsets_of(position, self._topic).items()
        ]
        try:
            self._opened().commit(offsets=at, asynchronous=False)
        except self._kafka.KafkaException as error:
            warn(f"The broker did not store the offsets of {self._topic} ({error}); the table has them.")

    def close(self) -> None:
        """Leave the broker."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # ---- where to begin

    def _opened(self) -> Any:
        if self._consumer is None:
            try:
                self._consumer = self._kafka.Consumer(self._client, logger=_Silent())
            except self._kafka.KafkaException as error:
                raise ConfigError(f"Kafka's client refuses its properties: {error.args[0].str()}.") from error
        return self._consumer

    def _bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        """The oldest offset of each partition, and the one after its newest message."""
        consumer = self._opened()
        with self._answering():
            found = consumer.list_topics(self._topic, timeout=self._seconds).topics.get(self._topic)
            if found is None or found.error is not None or not found.partitions:
                raise ConfigError(f"The Kafka topic {self._topic!r} does not exist at {self._servers}.")
            pairs = {
                one: consumer.get_watermark_offsets(self._kafka.TopicPartition(self._topic, one), self._seconds)
                for one in sorted(found.partitions)
            }
        return {one: low for one, (low, _) in pairs.items()}, {one: high for one, (_, high) in pairs.items()}

    def _first(self, position: str | None, oldest: dict[int, int], newest: dict[int, int]) -> dict[int, int]:
        """The offset to begin with, by partition."""
        if position is None:
            return self._at_the_beginning(oldest, newest)
        if self._kind == "timestamp" and position.isdecimal() and len(position) in (10, 13):
            return self._at_time(int(position), newest)
        if self._kind == "single_offset" and position.isdecimal():
            if len(newest) != 1:
                raise ConfigError(
                    f"The topic {self._topic} has {len(newest)} partitions; checkpoint.type=single_offset needs one."
                )
            position = f"{self._topic},0:{position}"
        known, lost = offsets_of(position, self._topic), dict[int, str]()
        first = {one: known.get(one, oldest[one]) for one in oldest}  # new partitions from their first message
        for one, offset in known.items():
            if one not in oldest:
                lost[one] = "the partition is gone"
            elif offset < oldest[one]:
                lost[one] = f"messages {offset} to {oldest[one] - 1} are gone"
                first[one] = oldest[one]
            elif offset > newest[one]:
                lost[one] = f"the stream was at {offset}, the partition ends at {newest[one]}: the topic was made anew"
                first[one] = oldest[one]
        if lost:
            self._tell_loss(lost)
        return first

    def _tell_loss(self, lost: Mapping[int, str]) -> None:
        listed = "; ".join(f"partition {one}: {text}" for one, text in sorted(lost.items()))
        if self._fails_on_loss:
            raise SourceError(
                f"The topic {self._topic} lost messages before they were read ({listed}). Give the option "
                "ignore.checkpoint to begin anew, or set hoodie.streamer.source.kafka.enable.failOnDataLoss=false to "
                "read what is left."
            )
        warn(
            f"The topic {self._topic} lost messages before they were read ({listed}). The stream reads what is left; "
            "hoodie.streamer.source.kafka.enable.failOnDataLoss=true makes this an error."
        )

    def _at_the_beginning(self, oldest: dict[int, int], newest: dict[int, int]) -> dict[int, int]:
        if self._reset == "earliest":
            return oldest
        if self._reset == "latest":
            return newest
        asked = [self._kafka.TopicPartition(self._topic, one) for one in newest]
        consumer = self._opened()
        with self._answering():
            stored = {one.partition: one.offset for one in consumer.committed(asked, self._seconds)}
        if any(offset < 0 for offset in stored.values()):
            warn(f"The group {self._client['group.id']} has no offsets of {self._topic}; it begins with the newest.")
            return newest
        return stored

    def _at_time(self, time_: int, newest: dict[int, int]) -> dict[int, int]:
        """The first messages at a time or later; the end of a partition that has none."""
        at = time_ * 1000 if time_ < 10**11 else time_
        asked = [self._kafka.TopicPartition(self._topic, one, at) for one in newest]
        consumer = self._opened()
        with self._answering():
            found = {one.partition: one.offset for one in consumer.offsets_for_times(asked, self._seconds)}
        return {one: found[one] if found[one] >= 0 else newest[one] for one in newest}

    # ---- reading

    def _consumed(self, ranges: Ranges) -> tuple[list[Message], dict[int, int]]:
        """The messages of ranges until the turn is large enough, and the offset after the last one by partition."""
        ended = {one: first for one, (first, _) in ranges.items()}
        with closing(self._chunks(ranges, ended)) as chunks:
            return next(chunks, []), ended

    def _chunks(self, ranges: Ranges, ended: dict[int, int]) -> Generator[list[Message], None, None]:
        """The messages of ranges, in lists of about :data:`_TURN_BYTES`; ``ended`` gets the offsets after them."""
        open_ = {one for one, (first, last) in ranges.items() if first < last}
        if not open_:
            return
        consumer, found, size = self._opened(), list[Message](), 0
        consumer.assign([self._kafka.TopicPartition(self._topic, one, ended[one]) for one in sorted(open_)])
        try:
            deadline = time.monotonic() + _SILENT_SECONDS
            while open_:
                if time.monotonic() > deadline:
                    wanted = position_of(self._topic, {one: ranges[one][1] for one in open_})
                    raise SourceError(
                        f"The broker at {self._servers} sent no message of {self._topic} for {_SILENT_SECONDS:.0f} "
                        f"seconds; expected those up to {wanted}."
                    )
                left = sum(ranges[one][1] - ended[one] for one in open_)
                for message in consumer.consume(min(_CHUNK, left), _POLL_SECONDS):
                    one, offset = message.partition(), message.offset()
                    deadline = time.monotonic() + _SILENT_SECONDS
                    if message.error() is not None:
                        if message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                            ended[one] = max(ended[one], min(offset, ranges[one][1]))
                            open_.discard(one)
                            continue
                        raise self._kafka.KafkaException(message.error())
                    if one not in open_ or offset >= ranges[one][1]:
                        ended[one] = ranges[one][1] if one in open_ else ended[one]
                        open_.discard(one)
                        continue
                    ended[one] = offset + 1
                    if ended[one] >= ranges[one][1]:
                        open_.discard(one)
                    value = message.value()
                    if value is not None:
                        size += len(value)
                        found.append(Message(one, offset, message.timestamp()[1], message.key(), value))
                if size >= _TURN_BYTES:
                    yield sorted(found, key=_PLACE)
                    found, size, deadline = [], 0, time.monotonic() + _SILENT_SECONDS
            if found:
                yield sorted(found, key=_PLACE)
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from error
        finally:
            consumer.unassign()

    @property
    def _servers(self) -> str:
        return str(self._client["bootstrap.servers"])

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A call of the broker: its failures are errors of the source."""
        try:
            yield
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Any) -> SourceError:
        return SourceError(
            f"Kafka at {self._servers} cannot be read: {error.args[0].str()}. Check bootstrap.servers, the network and "
            "the rights of this user. The stream continues from its position."
        )


class _Silent:
    """A logger that drops what the client says: errors arrive with its calls."""

    def log(self, *_: Any, **__: Any) -> None:
        """Drop a message."""


def _milliseconds(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{key} is a number of milliseconds; got {text!r}.")
    return int(text)


def _require(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{key} is one of {', '.join(known)}; got {value!r}.")


def _client_settings(given: Mapping[str, str], topic: str) -> dict[str, Any]:
    """The properties of the client; those of Java's are translated where they have another name."""
    if not given.get("bootstrap.servers"):
        raise ConfigError("A stream from Kafka needs the property bootstrap.servers, such as broker:9092.")
    made: dict[str, Any] = {"group.id": f"hudi_fast-{topic}", **_AHEAD}
    for key, value in given.items():
        if key in _OF_JAVA or key.startswith(("schema.registry.", "spark.")):
            continue
        if key == "sasl.jaas.config":
            match = _JAAS.search(value)
            if match is None:
                raise UnsupportedFeatureError(
                    "sasl.jaas.config is understood with a username and a password only; give the client's own "
                    "properties (sasl.mechanisms, sasl.oauthbearer.*, sasl.kerberos.*)."
                )
            made["sasl.username"], made["sasl.password"] = match[1], match[2]
            continue
        if key.startswith(("ssl.truststore.", "ssl.keystore.")) and not value.lower().endswith((".p12", ".pem")):
            raise UnsupportedFeatureError(
                f"{key} names a keystore of Java. Export it, and give ssl.ca.location, ssl.certificate.location and "
                "ssl.key.location."
            )
        made[key] = value
    return made | {
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
    }
