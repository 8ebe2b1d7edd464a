"""Sources and transformers of a streamer on Spark.

Folders and Hudi tables as sources of a streamer on Spark.

The driver chooses files and commits as the one-process engine does. Tasks read the files with its functions, so columns
and refusals are the same. Commits are read as ``hf.read`` reads them on Spark.

Messages of a Kafka topic that tasks of Spark read.

::

    driver   position ─► offsets of the turn ─► ranges of a partition, one a task
    tasks    range ─► the client of the one-process engine ─► its decoder ─► batches of rows

Tasks use the same client, properties and decoders as the one-process engine. So a property file is valid for both, and
both make the same rows and refuse the same messages. Spark's own Kafka reader takes the properties of Java's client,
and rows would pass the JVM before Python decodes them.

The offsets of a turn are fixed before it is read, so a task that is repeated reads the same messages.

Source: ``KafkaOffsetGen`` (1.2.0), whose ``source.kafka.minPartitions`` splits partitions alike.

Transformers of a turn on Spark: the functions of the one-process engine in tasks, and SQL by Spark.

::

    UnitRows: units, and how a task reads one ─► functions of batches are called where the unit is read
        └─► frame_of ─► DataFrame ─► Spark SQL ─► functions of batches by mapInArrow

So the rows that a function makes are those of the one-process engine. The columns that it makes are known from a call
without rows.

Source: ``SqlQueryBasedTransformer`` and ``ChainedTransformer`` (1.2.0).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_fast.errors import ConfigError, HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.reading.incremental.commit_range import StreamQuery
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.messages import GIVE_SCHEMA, OFFSET_COLUMNS, Rejected, Take
from hudi_fast.streamer.settings import StreamSettings, open_place
from hudi_fast.streamer.sources.folder import FolderSource, common_schema
from hudi_fast.streamer.sources.hudi_table import HudiTableSource
from hudi_fast.streamer.sources.kafka import KafkaSource, Ranges
from hudi_fast.streamer.sources.open_source import Decoding
from hudi_fast.streamer.sources.source import Fetched
from hudi_fast.streamer.transform import Transform, of_function, require_placeholder
from hudi_fast.values import dataclass

__all__ = [
    "MessageRange",
    "SparkFolderSource",
    "SparkHudiTableSource",
    "SparkKafkaSource",
    "SparkTransform",
    "UnitRows",
    "by_batches",
    "by_function",
    "by_sql",
    "frame_of",
    "pass_over",
    "ranges_of",
    "require_client",
]

SparkTransform = Callable[[Any], Any]
"""Takes and returns :class:`UnitRows` or a DataFrame."""


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows that tasks read, which no task has read yet.

    Attributes:
        units: what tasks read, such as files; picklable, one at least.
        read: the batches of a unit, in ``schema``; picklable.
        schema: of the rows.
        what: names the source, for errors.
    """

    units: Sequence[Any]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    what: str


def frame_of(spark: Any, rows: Any) -> Any:
    """A lazy DataFrame of rows.

    Args:
        spark: the session.
        rows: :class:`UnitRows`, or a DataFrame.

    Raises:
        ConfigError: they are something else.
        UnsupportedFeatureError: Spark does not have the type of a column.
    """
    if isinstance(rows, UnitRows):
        from hudi_fast.spark.turn_rows import rows_of

        return rows_of(spark, rows.units, rows.read, rows.schema, rows.what)
    if not hasattr(rows, "sparkSession"):
        raise ConfigError(
            f"With Spark as the engine, a source gives a DataFrame of Spark; got {type(rows).__name__}. Return one, "
            "or leave the session out."
        )
    return rows


def by_batches(spark: Any, transform: Transform) -> SparkTransform:
    """A function of a stream of batches, which tasks call.

    Args:
        spark: the session.
        transform: each batch that it returns depends on one batch; picklable.
    """
    return _in_tasks(spark, transform, lambda schema: transform(_empty(schema)).schema, "A transformer")


def by_function(spark: Any, function: Callable[[pa.RecordBatch], Any]) -> SparkTransform:
    """A function of the caller, which tasks call for each batch of rows.

    It is called on the driver without rows first, so that its columns are known.

    Args:
        spark: the session.
        function: as for :func:`~hudi_fast.streamer.transform.of_function`; picklable.

    Raises:
        ConfigError: it is not a function.
    """
    transform, name = of_function(function), getattr(function, "__name__", repr(function))

    def columns_of(schema: pa.Schema) -> pa.Schema:
        return _columns_of_function(function, name, schema)

    return _in_tasks(spark, transform, columns_of, f"The transformer {name}")


def by_sql(spark: Any, text: str) -> SparkTransform:
    """A query of Spark SQL over the rows of the turn.

    Args:
        spark: the session.
        text: a query, in which ``<SRC>`` stands for the rows.

    Raises:
        ConfigError: the text is not one query, or does not name the rows.
    """
    from hudi_fast.spark.turn_rows import queried, require_query

    placeholder = require_placeholder(text)
    query = text.strip().rstrip(";")
    require_query(spark, query.replace(placeholder, "hudi_fast_source"))
    return lambda rows: queried(frame_of(spark, rows), query, placeholder)


def _in_tasks(
    spark: Any, transform: Transform, columns_of: Callable[[pa.Schema], pa.Schema], what: str
) -> SparkTransform:
    def apply(rows: Any) -> Any:
        if isinstance(rows, UnitRows):
            given, made, read = rows.schema, columns_of(rows.schema), rows.read

            def read_and_transform(unit: Any) -> Iterator[pa.RecordBatch]:
                batches = pa.RecordBatchReader.from_batches(given, _plain(read(unit)))
                return _checked(transform(batches), made, what)

            return replace(rows, read=read_and_transform, schema=made)
        from hudi_fast.spark.arrow import arrow_schema
        from hudi_fast.spark.turn_rows import mapped

        frame = frame_of(spark, rows)
        made = columns_of(arrow_schema(frame))
        return mapped(frame, lambda batches: _checked_reader(transform(batches), made, what), made, what)

    return apply


def _plain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.replace_schema_metadata(None) for batch in batches)


def _checked(batches: Any, schema: pa.Schema, what: str) -> Iterator[pa.RecordBatch]:
    """The batches, which have the columns that are known."""
    for batch in batches:
        if not batch.schema.equals(schema):
            raise InvalidDataError(
                f"{what} returned other columns than for a batch without rows: expected {_shown(schema)}; found "
                f"{_shown(batch.schema)}. Give its columns the same types for every batch."
            )
        yield batch


def _checked_reader(batches: Any, schema: pa.Schema, what: str) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, _checked(batches, schema, what))


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)


def _columns_of_function(function: Callable[[pa.RecordBatch], Any], name: str, schema: pa.Schema) -> pa.Schema:
    way_out = "Let it return a batch without rows for one, or use a SQL transformer in its place."
    try:
        made = function(_no_batch(schema))
    except HudiError:
        raise
    except Exception as error:
        raise UnsupportedFeatureError(
            f"On Spark the transformer {name} gets a batch without rows first, so that its columns are known. It "
            f"failed: {type(error).__name__}: {error}. {way_out}"
        ) from error
    if not isinstance(made, pa.RecordBatch | pa.Table):
        raise UnsupportedFeatureError(
            f"On Spark the transformer {name} gets a batch without rows first, so that its columns are known. It "
            f"returned {type(made).__name__}. {way_out}"
        )
    return made.schema.remove_metadata()


def _no_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, [])


def pass_over(rejected: Sequence[Rejected]) -> None:
    """Leave messages out, which the driver has noted already."""


@dataclass(frozen=True, slots=True)
class SparkFolderSource(FolderSource):
    """A source of files that tasks read.

    Attributes:
        spark: the session.
    """

    spark: Any = field(default=None, repr=False)

    def rows(self, paths: Sequence[str]) -> Any:
        """The rows of files. Without a schema, tasks read the columns of all files first.

        Args:
            paths: of files in the folder, one at least.

        Raises:
            InvalidDataError: as :meth:`FolderSource.fetch`.
            SourceError: as :meth:`FolderSource.fetch`.
        """
        files = FolderSource(self.storage, self.format, self.schema, self.csv, self.settle_seconds)
        schema = self.schema
        if schema is None or self.takes is not None:
            found = self._looked_at(files, paths)
            schema = schema or common_schema(self.storage, found)
        if self.takes is not None:
            files = replace(files, takes=pass_over)
        return UnitRows(list(paths), partial(_rows, files, schema), schema, f"The folder {self.storage.uri}")

    def _looked_at(self, files: FolderSource, paths: Sequence[str]) -> list[tuple[str, pa.Schema]]:
        """The columns of files; what cannot be read in them is taken."""
        from hudi_fast.spark.turn_rows import answers_of

        answers = answers_of(self.spark, list(paths), partial(_look_at, files, self.takes is not None))
        rejected = [one for _, found in answers for one in found]
        if self.takes is not None and rejected:
            self.takes(rejected)
        return [(path, schema) for path, (schema, _) in zip(paths, answers, strict=True)]


def _look_at(files: FolderSource, takes: bool, path: str) -> tuple[pa.Schema, list[Rejected]]:
    rejected: list[Rejected] = []
    return (replace(files, takes=rejected.extend) if takes else files).schema_of(path), rejected


def _rows(files: FolderSource, schema: pa.Schema, path: str) -> Iterator[pa.RecordBatch]:
    return iter(files.rows_as([path], schema))


class SparkHudiTableSource(HudiTableSource):
    """A source of commits that Spark reads.

    Args:
        spark: the session.
        settings: of the streamer.
        version: of the fed table; it decides what positions are.
        storage_options: how to reach the other table.

    Raises:
        ConfigError: a property is missing or wrong.
    """

    def __init__(
        self, spark: Any, settings: StreamSettings, version: int, storage_options: Mapping[str, Any] | None
    ) -> None:
        self._spark = spark
        super().__init__(settings, version, storage_options)

    def _opened(self, path: str, storage_options: Mapping[str, Any] | None) -> Storage:
        return open_place(self._spark, path, storage_options)

    def _rows(self, begin: str, end: str) -> Any:
        from hudi_fast.spark.reading.reader import read

        rows = read(self._storage, self._spark, StreamQuery.batch_options(self._options, begin, end), None, None)
        return rows.drop(*(name for name in rows.columns if is_meta_field(name)))


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
        read = partial(_message_rows, self._settings, fixed, None if takes is None else pass_over, full)
        return UnitRows(units, read, full, f"The topic {self._topic}")

    def _looked_at(self, units: Sequence[MessageRange]) -> list[_Looked]:
        from hudi_fast.spark.turn_rows import answers_of

        return answers_of(
            self._spark, units, partial(_look_at_messages, self._settings, self._decoding, self._takes is not None)
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


def _look_at_messages(settings: StreamSettings, decoding: Decoding, takes: bool, unit: MessageRange) -> _Looked:
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


def _message_rows(
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
