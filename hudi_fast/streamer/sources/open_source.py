"""What class names of Apache Hudi stand for: sources, transformers, and options that a source needs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.messages import (
    OFFSET_COLUMNS,
    AvroMessages,
    Decoder,
    JsonMessages,
    Message,
    Take,
    warn_of_rejected,
)
from hudi_fast.streamer.settings import StreamSettings, open_place
from hudi_fast.streamer.sources.source import Source
from hudi_fast.streamer.transform import (
    MYSQL,
    POSTGRES,
    Transform,
    flattened,
    of_changes,
    of_schema,
    of_sql,
    with_operation,
    with_payload,
    without_untyped,
)
from hudi_fast.values import dataclass

if TYPE_CHECKING:
    from hudi_fast.streamer.sources.folder import FolderSource

__all__ = ["Decoding", "open_source", "open_transforms", "options_for"]

_FOLDERS = {
    "ParquetDFSSource": "parquet",
    "JsonDFSSource": "json",
    "CsvDFSSource": "csv",
    "AvroDFSSource": "avro",
    "ORCDFSSource": "orc",
}
_CHANGES = {"PostgresDebeziumSource": POSTGRES, "MysqlDebeziumSource": MYSQL}
_PROTO, _REGISTRY_PROVIDER = "ProtoKafkaSource", "SchemaRegistryProvider"
_TOPICS = ("JsonKafkaSource", "AvroKafkaSource", _PROTO, *_CHANGES)
_TABLE, _DATABASE = "HoodieIncrSource", "JdbcSource"
_QUEUE = "s3.source.queue."
_OF_EVENTS = ("S3EventsSource", "S3EventsHoodieIncrSource")
_FILE_KEY, _TARGET_KEY = "schemaprovider.source.schema.file", "schemaprovider.target.schema.file"
_PLAIN = {"FlatteningTransformer": flattened, "AWSDmsTransformer": with_operation}
_TEXT_DESERIALIZERS = ("StringDeserializer", "KafkaJsonSchemaDeserializer")
_PROTO_PREFIX = "schemaprovider.proto."
_CLASS_KEY, _PROTO_PROVIDER = f"{_PROTO_PREFIX}class.name", "ProtoClassBasedSchemaProvider"
_DESERIALIZER_KEY = "source.kafka.proto.value.deserializer.class"
_PLAIN_BYTES, _WITH_HEADER = "ByteArrayDeserializer", "KafkaProtobufDeserializer"
_MISSING_KEY = "hoodie.write.set.null.for.missing.columns"


def open_source(
    settings: StreamSettings,
    version: int,
    storage_options: Mapping[str, Any] | None,
    takes: Take | None = None,
    spark: Any = None,
) -> Source:
    """The source of a streamer.

    Args:
        settings: of the streamer.
        version: of the table that it feeds.
        storage_options: how to reach its folders and tables.
        takes: takes messages that cannot be read; None: the settings say whether they are errors.
        spark: a session whose tasks read the rows; None to read them in this process.

    Raises:
        ConfigError: a property that the source needs is missing or wrong.
        UnsupportedFeatureError: the class is another one.
    """
    name = settings.source_class
    if name in _FOLDERS:
        files = _folder(settings, storage_options, takes, spark)
        if not any(key.startswith(_QUEUE) for key in settings.stream):
            return files
        from hudi_fast.streamer.sources.s3_events import S3EventSource

        return S3EventSource(settings, files, takes)
    if name == _TABLE:
        if spark is not None:
            from hudi_fast.streamer.on_spark.sources import SparkHudiTableSource

            return SparkHudiTableSource(spark, settings, version, storage_options)
        from hudi_fast.streamer.sources.hudi_table import HudiTableSource

        return HudiTableSource(settings, version, storage_options)
    if name in _TOPICS:
        decoding = _decoding(settings, storage_options, spark)
        if spark is not None:
            from hudi_fast.streamer.on_spark.sources import SparkKafkaSource

            return SparkKafkaSource(spark, settings, decoding, _take(settings, takes) if _is_json(settings) else takes)
        from hudi_fast.streamer.sources.kafka import KafkaSource

        return KafkaSource(settings, decoding.decoder(takes))
    if name == _DATABASE:
        if spark is not None:
            raise UnsupportedFeatureError(
                f"{_DATABASE} is not supported on Spark: one process reads a table of a database. Leave the engine "
                "out, or follow the database with Debezium."
            )
        from hudi_fast.streamer.sources.database import DatabaseSource

        return DatabaseSource(settings)
    if name in _OF_EVENTS:
        raise UnsupportedFeatureError(
            f"The source class {name} is not supported: no table of events is needed here. Give the class of the "
            f"files, such as JsonDFSSource, with hoodie.streamer.source.dfs.root and hoodie.streamer.{_QUEUE}url."
        )
    known = *_FOLDERS, *_TOPICS, _TABLE, _DATABASE
    close = difflib.get_close_matches(name, known, 1, 0.8)
    raise UnsupportedFeatureError(
        f"The source class {name} is not supported{f'; did you mean {close[0]}?' if close else '.'} Supported are "
        f"{', '.join(known)}. A source of your own is an object with the methods of "
        "hudi_fast.streamer.sources.source.Source: hf.Streamer(..., source=it)."
    )


def _take(settings: StreamSettings, takes: Take | None) -> Take | None:
    """What takes messages that cannot be read; None if they are errors."""
    skips = takes is None and settings.flag("source.json.skip.invalid.records")
    return warn_of_rejected if skips else takes


def _folder(
    settings: StreamSettings, storage_options: Mapping[str, Any] | None, takes: Take | None, spark: Any
) -> FolderSource:
    """The source of the files of a folder."""
    from hudi_fast.streamer.sources.folder import FolderSource

    root = open_place(spark, settings.required("source.dfs.root"), storage_options)
    csv = {key.removeprefix("csv."): value for key, value in settings.stream.items() if key.startswith("csv.")}
    kind, schema = _FOLDERS[settings.source_class], _schema(settings, storage_options, spark)
    if spark is None:
        return FolderSource(root, kind, schema, csv, takes=_take(settings, takes))
    from hudi_fast.streamer.on_spark.sources import SparkFolderSource

    return SparkFolderSource(root, kind, schema, csv, takes=_take(settings, takes), spark=spark)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages of a topic become rows. It is picklable, so that tasks can make a decoder of it.

    Attributes:
        settings: of the streamer.
        schema: of the rows; None for that of the messages or of the registry.
        descriptor: content of the descriptor file of Protobuf, and its path; None without one.
    """

    settings: StreamSettings
    schema: pa.Schema | None
    descriptor: tuple[bytes, str] | None

    @property
    def infers(self) -> bool:
        """Whether the columns are known from the messages alone."""
        return self.schema is None and _is_json(self.settings)

    def decoder(self, takes: Take | None) -> Decoder:
        """Makes rows of messages.

        Args:
            takes: takes messages that cannot be read; None: the settings say whether they are errors.

        Raises:
            ConfigError: as :func:`open_source`.
            UnsupportedFeatureError: as :func:`open_source`.
        """
        settings, schema = self.settings, self.schema
        topic, tells = settings.required("source.kafka.topic"), settings.flag("source.kafka.append.offsets")
        if settings.source_class == _PROTO:
            return _proto_decoder(settings, self.descriptor, takes, schema)
        if _is_json(settings):
            return JsonMessages(topic, schema, _take(settings, takes), tells)
        from hudi_fast.streamer.sources.registry import Registry

        registry = Registry(settings)
        newest = partial(registry.newest, topic) if schema is None else lambda: schema
        return AvroMessages(topic, newest, registry.schema_of, takes, tells)


def _decoding(settings: StreamSettings, storage_options: Mapping[str, Any] | None, spark: Any) -> Decoding:
    """How the messages of a topic become rows; files that say so are read now."""
    file = settings.arguments.get("proto-descriptor-file", "") if settings.source_class == _PROTO else ""
    if file and not settings.arguments.get("proto-message"):
        raise ConfigError("--proto-descriptor-file needs --proto-message, the full name of the message type.")
    stored = _file(file, storage_options, spark) if file else None
    descriptor = None if stored is None else (_bytes_of(stored), stored.uri)
    return Decoding(settings, _schema(settings, storage_options, spark), descriptor)


def _proto_decoder(
    settings: StreamSettings, descriptor: tuple[bytes, str] | None, takes: Take | None, schema: pa.Schema | None
) -> Decoder:
    """Makes rows of Protobuf messages.

    Args:
        settings: of the streamer.
        descriptor: content of the descriptor file, and its path; None without one.
        takes: takes messages that cannot be read.
        schema: chooses columns and their types; None: all of the message type.
    """
    from hudi_fast.streamer.protobuf import ProtoForm, ProtoMessages, ProtoType
    from hudi_fast.streamer.sources.registry import files_of, message_name, read_descriptor_file, type_of

    form = ProtoForm(
        settings.flag(f"{_PROTO_PREFIX}flatten.wrappers"),
        settings.flag(f"{_PROTO_PREFIX}timestamps.as.records"),
        settings.count(f"{_PROTO_PREFIX}max.recursion.depth", ProtoForm().depth),
    )
    topic, tells = settings.required("source.kafka.topic"), settings.flag("source.kafka.append.offsets")
    name = settings.arguments.get("proto-message", "")
    deserializer = settings.stream.get(_DESERIALIZER_KEY, _PLAIN_BYTES).rpartition(".")[2]
    if deserializer not in (_PLAIN_BYTES, _WITH_HEADER):
        raise UnsupportedFeatureError(
            f"hoodie.streamer.{_DESERIALIZER_KEY} is {_PLAIN_BYTES} or {_WITH_HEADER}; got {deserializer!r}."
        )
    described: ProtoType | None = None
    if descriptor is not None:
        data, place = descriptor
        described = type_of(read_descriptor_file(data, place), name, form, place)
    if deserializer == _PLAIN_BYTES:
        if settings.arguments.get("schemaprovider-class", "").endswith(_REGISTRY_PROVIDER):
            raise UnsupportedFeatureError(
                f"{_REGISTRY_PROVIDER} needs messages with the header of a registry: set "
                f"hoodie.streamer.{_DESERIALIZER_KEY} to {_WITH_HEADER}, or leave the provider out."
            )
        if described is None:
            raise _no_proto_type(settings.stream.get(_CLASS_KEY))
        messages = ProtoMessages(topic, lambda: described, None, takes, tells)
        return messages if schema is None else _of_columns(messages, schema)
    from hudi_fast.streamer.sources.registry import Registry

    registry = Registry(settings)

    def name_of(schema_id: int, indexes: tuple[int, ...]) -> str:
        found = registry.proto_of(schema_id)
        return message_name(files_of(found), indexes, found.where)

    def newest() -> ProtoType:
        if described is not None:
            return described
        found = registry.newest_proto(topic)
        files = files_of(found)
        return type_of(files, name or message_name(files, (0,), found.where), form, found.where)

    messages = ProtoMessages(topic, newest, name_of, takes, tells)
    return messages if schema is None else _of_columns(messages, schema)


def _no_proto_type(java_class: str | None) -> HudiError:
    way_out = (
        "Make a descriptor file (protoc --include_imports --descriptor_set_out=FILE shop.proto) and give "
        "--proto-descriptor-file and --proto-message. For messages with the header of a schema registry, set "
        f"hoodie.streamer.{_DESERIALIZER_KEY}=io.confluent.kafka.serializers.protobuf.{_WITH_HEADER}."
    )
    if java_class:
        return UnsupportedFeatureError(
            f"hoodie.streamer.{_CLASS_KEY}={java_class} is a Java class, which cannot be loaded here. {way_out}"
        )
    return ConfigError(f"{_PROTO} needs the type of the messages. {way_out}")


def _of_columns(messages: Decoder, schema: pa.Schema) -> Decoder:
    """Makes rows with the columns of a schema, and those that tell where messages are."""

    def decode(found: Sequence[Message]) -> pa.Table:
        rows = messages(found)
        kept = [name for name in rows.column_names if name in OFFSET_COLUMNS and name not in schema.names]
        wanted = pa.schema([*schema, *(rows.schema.field(name) for name in kept)])
        return plan_conform(rows.schema, wanted).apply(rows)

    return decode


def _is_json(settings: StreamSettings) -> bool:
    """Whether the values of a topic, or of the files of a folder, are JSON."""
    name = settings.source_class
    if name in _CHANGES:
        deserializer = settings.stream.get("source.kafka.value.deserializer.class", "").rpartition(".")[2]
        return deserializer in _TEXT_DESERIALIZERS
    return name in ("JsonKafkaSource", "JsonDFSSource")


def options_for(settings: StreamSettings, version: int) -> dict[str, str]:
    """The options of the write: those of the settings, and what the source needs.

    Args:
        settings: of the streamer.
        version: of the table that it feeds.
    """
    options = dict(settings.options)
    options.setdefault("hoodie.table.name", settings.path.rstrip("/").rpartition("/")[2])
    if settings.source_class in _CHANGES:
        options = with_payload(options, _CHANGES[settings.source_class], version)
    if _is_json(settings) and _FILE_KEY not in settings.stream:  # a turn has the fields of its own messages only
        options.setdefault(_MISSING_KEY, "true")
    return options


def open_transforms(
    settings: StreamSettings, storage_options: Mapping[str, Any] | None, spark: Any = None
) -> tuple[Transform, ...]:
    """The transformers of a streamer, in their order.

    Args:
        settings: of the streamer.
        storage_options: how to reach files of SQL and of schemas.
        spark: a session whose tasks work on the rows; None for this process.

    Raises:
        ConfigError: a property that one needs is missing, or an SQL text is wrong.
        UnsupportedFeatureError: a class is another one.
    """
    by_batches, by_sql = _plain, of_sql
    if spark is not None:
        from hudi_fast.streamer.on_spark import sources as on_spark

        by_batches, by_sql = partial(on_spark.by_batches, spark), partial(on_spark.by_sql, spark)
    names = [one.strip() for one in settings.arguments.get("transformer-class", "").split(",") if one.strip()]
    transforms = [_transform(one, settings, storage_options, spark, by_batches, by_sql) for one in names]
    if settings.source_class in _CHANGES:
        transforms.insert(0, by_batches(of_changes(_CHANGES[settings.source_class])))
        if _is_json(settings):
            transforms.append(by_batches(without_untyped))
    if _TARGET_KEY in settings.stream:
        transforms.append(by_batches(of_schema(_columns_of(settings.stream[_TARGET_KEY], storage_options, spark))))
    return tuple(transforms)


def _plain(transform: Transform) -> Any:
    return transform


def _transform(
    given: str,
    settings: StreamSettings,
    storage_options: Mapping[str, Any] | None,
    spark: Any,
    by_batches: Callable[[Transform], Any],
    by_sql: Callable[[str], Any],
) -> Any:
    label, _, path = given.rpartition(":")
    name, suffix = path.rpartition(".")[2], f".{label}" if label else ""
    if name == "SqlQueryBasedTransformer":
        return by_sql(settings.required(f"transformer.sql{suffix}"))
    if name == "SqlFileBasedTransformer":
        file = _file(settings.required(f"transformer.sql.file{suffix}"), storage_options, spark)
        return by_sql(_text_of(file))
    if name in _PLAIN:
        return by_batches(_PLAIN[name])
    raise UnsupportedFeatureError(
        f"The transformer class {name} is not supported; supported are SqlQueryBasedTransformer, "
        f"SqlFileBasedTransformer, {', '.join(_PLAIN)}. hf.Streamer(..., transforms=[...]) takes functions."
    )


def _schema(settings: StreamSettings, storage_options: Mapping[str, Any] | None, spark: Any) -> pa.Schema | None:
    """The schema of the rows, from the provider that the settings name; None without one."""
    provider = settings.arguments.get("schemaprovider-class", "").rpartition(".")[2]
    if settings.source_class == _PROTO and provider in (_PROTO_PROVIDER, _REGISTRY_PROVIDER):
        return None  # the columns are those of the message type
    if provider == _REGISTRY_PROVIDER:
        from hudi_fast.streamer.sources.registry import Registry

        return Registry(settings).provided()
    if provider not in ("", "FilebasedSchemaProvider"):
        raise UnsupportedFeatureError(
            f"The schema provider {provider} is not supported; supported are FilebasedSchemaProvider and "
            "SchemaRegistryProvider."
        )
    if _FILE_KEY not in settings.stream:
        if provider:
            settings.required(_FILE_KEY)
        return None
    return _columns_of(settings.stream[_FILE_KEY], storage_options, spark)


def _columns_of(file: str, storage_options: Mapping[str, Any] | None, spark: Any) -> pa.Schema:
    """The columns that an Avro schema in a file describes."""
    return avro_to_arrow(_text_of(_file(file, storage_options, spark)), file)


def _file(path: str, storage_options: Mapping[str, Any] | None, spark: Any) -> Storage:
    """A file that describes the stream. A path without a scheme is on this machine, whatever the engine is."""
    return open_place(spark if "://" in path else None, path, storage_options)


def _text_of(file: Storage) -> str:
    return _bytes_of(file).decode()


def _bytes_of(file: Storage) -> bytes:
    try:
        return file.read_bytes("")
    except FileNotFoundError as error:
        raise ConfigError(f"The file {file.uri} does not exist.") from error
