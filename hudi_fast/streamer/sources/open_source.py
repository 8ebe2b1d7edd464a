"""What class names of Apache Hudi stand for: sources, transformers, and options that a source needs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.debezium import MYSQL, POSTGRES, of_changes, with_payload, without_untyped
from hudi_fast.streamer.messages import (
    OFFSET_COLUMNS,
    AvroMessages,
    Decoder,
    JsonMessages,
    Message,
    Take,
    warn_of_rejected,
)
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.source import Source
from hudi_fast.streamer.transform import Transform, flattened, of_schema, of_sql, with_operation

__all__ = ["open_source", "open_transforms", "options_for"]

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
    settings: StreamSettings, version: int, storage_options: Mapping[str, Any] | None, takes: Take | None = None
) -> Source:
    """The source of a streamer.

    Args:
        settings: of the streamer.
        version: of the table that it feeds.
        storage_options: how to reach its folders and tables.
        takes: takes messages that cannot be read; None: the settings say whether they are errors.

    Raises:
        ConfigError: a property that the source needs is missing or wrong.
        UnsupportedFeatureError: the class is another one.
    """
    name = settings.source_class
    if name in _FOLDERS:
        from hudi_fast.streamer.sources.folder import FolderSource

        root = Storage(settings.required("source.dfs.root"), storage_options)
        csv = {key.removeprefix("csv."): value for key, value in settings.stream.items() if key.startswith("csv.")}
        files = FolderSource(
            root, _FOLDERS[name], _schema(settings, storage_options), csv, takes=_take(settings, takes)
        )
        if not any(key.startswith(_QUEUE) for key in settings.stream):
            return files
        from hudi_fast.streamer.sources.s3_events import S3EventSource

        return S3EventSource(settings, files, takes)
    if name == _TABLE:
        from hudi_fast.streamer.sources.hudi_table import HudiTableSource

        return HudiTableSource(settings, version, storage_options)
    if name in _TOPICS:
        from hudi_fast.streamer.sources.kafka import KafkaSource

        return KafkaSource(settings, _decoder(settings, storage_options, takes))
    if name == _DATABASE:
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


def _decoder(settings: StreamSettings, storage_options: Mapping[str, Any] | None, takes: Take | None) -> Decoder:
    """Makes rows of the messages of a topic."""
    topic, tells = settings.required("source.kafka.topic"), settings.flag("source.kafka.append.offsets")
    schema = _schema(settings, storage_options)
    if settings.source_class == _PROTO:
        return _proto_decoder(settings, storage_options, takes, schema)
    if _is_json(settings):
        return JsonMessages(topic, schema, _take(settings, takes), tells)
    from hudi_fast.streamer.sources.registry import Registry

    registry = Registry(settings)
    newest = partial(registry.newest, topic) if schema is None else lambda: schema
    return AvroMessages(topic, newest, registry.schema_of, takes, tells)


def _proto_decoder(
    settings: StreamSettings, storage_options: Mapping[str, Any] | None, takes: Take | None, schema: pa.Schema | None
) -> Decoder:
    """Makes rows of Protobuf messages.

    Args:
        settings: of the streamer.
        storage_options: how to reach the descriptor file.
        takes: takes messages that cannot be read.
        schema: chooses columns and their types; None: all of the message type.
    """
    from hudi_fast.streamer.protobuf import ProtoForm, ProtoMessages, ProtoType
    from hudi_fast.streamer.sources.proto_schemas import files_of, message_name, read_descriptor_file, type_of

    form = ProtoForm(
        settings.flag(f"{_PROTO_PREFIX}flatten.wrappers"),
        settings.flag(f"{_PROTO_PREFIX}timestamps.as.records"),
        settings.count(f"{_PROTO_PREFIX}max.recursion.depth", ProtoForm().depth),
    )
    topic, tells = settings.required("source.kafka.topic"), settings.flag("source.kafka.append.offsets")
    file, name = (settings.arguments.get(f"proto-{part}", "") for part in ("descriptor-file", "message"))
    deserializer = settings.stream.get(_DESERIALIZER_KEY, _PLAIN_BYTES).rpartition(".")[2]
    if deserializer not in (_PLAIN_BYTES, _WITH_HEADER):
        raise UnsupportedFeatureError(
            f"hoodie.streamer.{_DESERIALIZER_KEY} is {_PLAIN_BYTES} or {_WITH_HEADER}; got {deserializer!r}."
        )
    described: ProtoType | None = None
    if file:
        if not name:
            raise ConfigError("--proto-descriptor-file needs --proto-message, the full name of the message type.")
        stored = Storage(file, storage_options)
        described = type_of(read_descriptor_file(_bytes_of(stored), stored.uri), name, form, stored.uri)
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
        told = [name for name in rows.column_names if name in OFFSET_COLUMNS and name not in schema.names]
        wanted = pa.schema([*schema, *(rows.schema.field(name) for name in told)])
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


def open_transforms(settings: StreamSettings, storage_options: Mapping[str, Any] | None) -> tuple[Transform, ...]:
    """The transformers of a streamer, in their order.

    Raises:
        ConfigError: a property that one needs is missing, or an SQL text is wrong.
        UnsupportedFeatureError: a class is another one.
    """
    names = [one.strip() for one in settings.arguments.get("transformer-class", "").split(",") if one.strip()]
    transforms = [_transform(one, settings, storage_options) for one in names]
    if settings.source_class in _CHANGES:
        transforms.insert(0, of_changes(_CHANGES[settings.source_class]))
        if _is_json(settings):
            transforms.append(without_untyped)
    if _TARGET_KEY in settings.stream:
        transforms.append(of_schema(_columns_of(settings.stream[_TARGET_KEY], storage_options)))
    return tuple(transforms)


def _transform(given: str, settings: StreamSettings, storage_options: Mapping[str, Any] | None) -> Transform:
    label, _, path = given.rpartition(":")
    name, suffix = path.rpartition(".")[2], f".{label}" if label else ""
    if name == "SqlQueryBasedTransformer":
        return of_sql(settings.required(f"transformer.sql{suffix}"))
    if name == "SqlFileBasedTransformer":
        file = Storage(settings.required(f"transformer.sql.file{suffix}"), storage_options)
        return of_sql(_text_of(file))
    if name in _PLAIN:
        return _PLAIN[name]
    raise UnsupportedFeatureError(
        f"The transformer class {name} is not supported; supported are SqlQueryBasedTransformer, "
        f"SqlFileBasedTransformer, {', '.join(_PLAIN)}. hf.Streamer(..., transforms=[...]) takes functions."
    )


def _schema(settings: StreamSettings, storage_options: Mapping[str, Any] | None) -> pa.Schema | None:
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
    return _columns_of(settings.stream[_FILE_KEY], storage_options)


def _columns_of(file: str, storage_options: Mapping[str, Any] | None) -> pa.Schema:
    """The columns that an Avro schema in a file describes."""
    return avro_to_arrow(_text_of(Storage(file, storage_options)), file)


def _text_of(file: Storage) -> str:
    return _bytes_of(file).decode()


def _bytes_of(file: Storage) -> bytes:
    try:
        return file.read_bytes("")
    except FileNotFoundError as error:
        raise ConfigError(f"The file {file.uri} does not exist.") from error
