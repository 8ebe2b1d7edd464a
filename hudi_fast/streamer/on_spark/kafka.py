"""Messages of a Kafka topic that tasks of Spark read.

::

    driver   position ─► offsets of the turn ─► ranges of a partition, one a task
    tasks    range ─► the client of the one-process engine ─► its decoder ─► batches of rows

Tasks use the same client, properties and decoders as the one-process engine. So a property file is valid for both, and
both make the same rows and refuse the same messages. Spark's own Kafka reader takes the properties of Java's client,
and rows would pass the JVM before Python decodes them.

The offsets of a turn are fixed before it is read, so a task that is repeated reads the same messages.

Source: ``KafkaOffsetGen`` (1.2.0), whose ``source.kafka.minPartitions`` splits partitions alike.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.schema.conform import plan_conform
from hudi_fast.streamer.messages import GIVE_SCHEMA, OFFSET_COLUMNS, Rejected, Take
from hudi_fast.streamer.on_spark.sources import pass_over
from hudi_fast.streamer.on_spark.transforms import UnitRows
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.kafka import KafkaSource
from hudi_fast.streamer.sources.kafka_offsets import Ranges
from hudi_fast.streamer.sources.open_source import Decoding
from hudi_fast.streamer.sources.source import Fetched

__all__ = ["MessageRange", "SparkKafkaSource", "ranges_of", "require_client"]


class MessageRange(NamedTuple):
    """Messages that one task reads.

    Attributes:
        partition: of the topic.
        first: offset of the first message.
        last: offset after the last message.
    """

    partition: int
    first: int
    last: int


class _Looked(NamedTuple):
    """What a task found in a range: the columns of its rows, their number, and what cannot be read."""

    schema: pa.Schema
    rows: int
    rejected: list[Rejected]


class SparkKafkaSource(KafkaSource):
    """A source of messages that tasks read.

    Args:
        spark: the session.
        settings: of the streamer.
        decoding: how messages become rows.
        takes: takes messages that cannot be read; None: they are errors.

    Raises:
        ConfigError: a property is missing or wrong, or confluent-kafka is not installed.
        UnsupportedFeatureError: a property of Java's client that has no counterpart.
    """

    def __init__(self, spark: Any, settings: StreamSettings, decoding: Decoding, takes: Take | None) -> None:
        super().__init__(settings, decoding.decoder(takes))
        self._spark, self._settings, self._decoding, self._takes = spark, settings, decoding, takes
        self._least = settings.count("source.kafka.minPartitions", 0, 0)

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is a number of messages.

        Raises:
            ConfigError: the topic does not exist, or the position is another topic's.
            InvalidDataError: a message cannot be read, where tasks read messages to know the columns.
            SourceError: the broker or the registry does not answer; or messages were lost, and that is to be an error.
        """
        newest, ranges = self.planned(position, limit)
        ended = {one: last for one, (_, last) in ranges.items()}
        units = ranges_of(ranges, self._least)
        rows = self._rows(units) if units else None
        return self.fetched(rows, position, newest, ranges, ended)

    def _rows(self, units: list[MessageRange]) -> UnitRows | None:
        """The rows of ranges. Tasks read them first where columns or unreadable messages are not known otherwise."""
        decoding, takes = self._decoding, self._takes
        looked = self._looked_at(units) if decoding.infers or takes is not None else None
        if looked is not None:
            rejected = [one for found in looked for one in found.rejected]
            if takes is not None and rejected:
                takes(rejected)
            if not any(found.rows for found in looked):
                return None
        if looked is not None and decoding.infers:
            full = _unified([found.schema for found in looked if found.rows], f"Topic {self._topic}")
        else:
            full = decoding.decoder(None)([]).schema
        known = pa.schema([one for one in full if one.name not in OFFSET_COLUMNS])
        fixed = Decoding(decoding.settings, known, decoding.descriptor)  # all tasks have the same columns
        read = partial(_rows, self._settings, fixed, None if takes is None else pass_over, full)
        return UnitRows(units, read, full, f"The topic {self._topic}")

    def _looked_at(self, units: Sequence[MessageRange]) -> list[_Looked]:
        from hudi_fast.spark.turn_rows import answers_of

        return answers_of(
            self._spark, units, partial(_look_at, self._settings, self._decoding, self._takes is not None)
        )


def ranges_of(ranges: Ranges, least: int) -> list[MessageRange]:
    """The ranges of tasks: one for each partition that has messages, or more where so many are wanted.

    Args:
        ranges: of a turn.
        least: fewest ranges; partitions with more messages are split more often.
    """
    sizes = {one: last - first for one, (first, last) in sorted(ranges.items()) if first < last}
    total, made = sum(sizes.values()), list[MessageRange]()
    for one, size in sizes.items():
        parts = min(size, max(1, -(-least * size // total)))
        first = ranges[one][0]
        bounds = [first + size * at // parts for at in range(parts + 1)]
        made += [MessageRange(one, *pair) for pair in pairwise(bounds)]
    return made


def require_client() -> None:
    """Check that a worker has Kafka's client: the driver has it.

    Raises:
        ConfigError: it has not.
    """
    if find_spec("confluent_kafka") is None:
        raise ConfigError(
            f"Spark's Python workers run {sys.executable}, which has no module 'confluent_kafka'. Install "
            "'hudi-fast[kafka]' on every worker, or ship it with spark.archives."
        )


def _look_at(settings: StreamSettings, decoding: Decoding, takes: bool, unit: MessageRange) -> _Looked:
    require_client()
    rejected: list[Rejected] = []
    decode = decoding.decoder(rejected.extend if takes else None)
    schemas, number = list[pa.Schema](), 0
    with closing(KafkaSource(settings, decode)) as source:
        for messages in source.messages_of(*unit):
            rows = decode(messages)
            number += rows.num_rows
            if rows.num_rows:
                schemas.append(rows.schema)
    where = f"Topic {settings.required('source.kafka.topic')}, partition {unit.partition}"
    return _Looked(_unified(schemas or [pa.schema([])], where), number, rejected)


def _unified(schemas: Sequence[pa.Schema], where: str) -> pa.Schema:
    """The columns of all messages."""
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidDataError(
            f"{where}: the types of a field differ from message to message: {str(error).rstrip('.')}. {GIVE_SCHEMA}"
        ) from error


def _rows(
    settings: StreamSettings, decoding: Decoding, takes: Take | None, schema: pa.Schema, unit: MessageRange
) -> Iterator[pa.RecordBatch]:
    require_client()
    decode = decoding.decoder(takes)
    with closing(KafkaSource(settings, decode)) as source:
        for messages in source.messages_of(*unit):
            rows = decode(messages)
            yield from (
                rows if rows.schema.equals(schema) else plan_conform(rows.schema, schema).apply(rows)
            ).to_batches()
