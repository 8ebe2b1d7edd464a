"""Messages become rows; an error table keeps what could not be read.

Messages become rows: JSON objects, and Avro records with the header of a schema registry.

::

    JSON    messages ─► one text, a message a line ─► Arrow's parser ─► types of the schema, if one is given
    Avro    messages ─► one buffer, with the bounds of each record ─► AvroDecoder, once for each schema id

A message that cannot be read is found by halving, so that the others pay nothing for it.

Sources: ``JsonKafkaSource``, ``AvroKafkaSource``, ``KafkaOffsetPostProcessor``, ``MercifulJsonConverter``, which does
not round decimals (1.2.0); the wire format of Confluent's schema registry: a zero, four bytes of the schema's id, the
record.

The error table of a stream: what could not be read, with its place and the reason, in a table of its own.

It is written before the turn that leaves these messages out. A turn that is repeated replaces its errors, whose key is
the place of the message, so each is there once.

Source: ``HoodieErrorTableConfig``, ``BaseErrorTableWriter`` (1.2.0), whose keys these are. There the writer is a class
of the user; the columns here are this library's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.api import write
from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError
from hudi_fast.events import warn
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.streamer.settings import ERRORS_PREFIX, StreamSettings, open_place, truth
from hudi_fast.values import dataclass

__all__ = [
    "GIVE_SCHEMA",
    "OFFSET_COLUMNS",
    "AvroMessages",
    "Decoder",
    "ErrorTable",
    "JsonMessages",
    "Message",
    "Rejected",
    "Take",
    "decoded",
    "json_rows",
    "open_error_table",
    "place_of",
    "readable",
    "warn_of_rejected",
]

_BLOCK = 1 << 20
_HEADER = 5
_AROUND = b" \t\r\n\xef\xbb\xbf"
"""White space, and the mark that some programs write before a text in UTF-8."""

GIVE_SCHEMA = "Give a schema: hoodie.streamer.schemaprovider.source.schema.file."
"""What to do where messages do not say the types of their fields."""

_UNREADABLE = CorruptTableError, InvalidDataError

_ISO_FORMS = (
    (r"^(\d+-\d\d-\d\d)$", r"\1T00:00:00Z"),
    (r"^(\d+-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?)$", r"\1Z"),
)
"""Texts of a date, and of a time without a zone; and the same as a time in UTC."""

_ISO_TIME = r"^(\d\d:\d\d(:\d\d(\.\d+)?)?)$", r"1970-01-01T\1Z"
"""The text of a time of the day; and the same as a time in UTC."""

_OFFSETS = (
    ("_hoodie_kafka_source_offset", pa.int64(), lambda one: one.offset),
    ("_hoodie_kafka_source_partition", pa.int32(), lambda one: one.partition),
    ("_hoodie_kafka_source_timestamp", pa.int64(), lambda one: one.timestamp),
    (
        "_hoodie_kafka_source_key",
        pa.string(),
        lambda one: None if one.key is None else one.key.decode("utf-8", "replace"),
    ),
)
OFFSET_COLUMNS = tuple(name for name, _, _ in _OFFSETS)
"""Columns that tell where a row comes from, as Apache Hudi names them."""

Where = Callable[[int], str]
One = TypeVar("One")


class Message(NamedTuple):
    """A message of a topic.

    Attributes:
        partition: of the topic.
        offset: in the partition.
        timestamp: milliseconds since 1970.
        key: its key; None without one.
        value: its bytes.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


class Rejected(NamedTuple):
    """A message that cannot be read.

    Attributes:
        place: where it is.
        reason: why it cannot be read.
        value: its bytes.
    """

    place: str
    reason: str
    value: bytes


Take = Callable[[Sequence[Rejected]], None]
"""Takes messages that cannot be read; the others are rows."""

Decoder = Callable[[Sequence[Message]], pa.Table]
"""Makes rows of messages, in their order."""


@dataclass(frozen=True, slots=True)
class JsonMessages:
    """Makes rows of JSON objects.

    Attributes:
        topic: for errors.
        schema: of the rows; None: Arrow infers the types.
        takes: takes messages that cannot be read; None: they are errors.
        tells_offsets: whether rows tell which message they come from.
    """

    topic: str
    schema: pa.Schema | None = None
    takes: Take | None = None
    tells_offsets: bool = False

    def __call__(self, messages: Sequence[Message]) -> pa.Table:
        """The rows; blank messages give none.

        Raises:
            InvalidDataError: a message cannot be read.
        """
        filled = [one for one in messages if one.value.strip()]
        return decoded(filled, self._rows, self.topic, self.takes, self.tells_offsets)

    def _rows(self, messages: Sequence[Message]) -> pa.Table:
        return json_rows([one.value for one in messages], self.schema, lambda at: place_of(self.topic, messages[at]))


@dataclass(slots=True)
class AvroMessages:
    """Makes rows of Avro records.

    Attributes:
        topic: for errors.
        newest: the schema of the rows. It is asked for again when a message has a schema id that is new.
        schema_of: the Avro JSON text of a schema id.
        takes: takes messages that cannot be read; None: they are errors.
        tells_offsets: whether rows tell which message they come from.
    """

    topic: str
    newest: Callable[[], pa.Schema]
    schema_of: Callable[[int], str]
    takes: Take | None = None
    tells_offsets: bool = False
    _writers: dict[int, str] = field(default_factory=dict, repr=False)
    _decoders: dict[int, AvroDecoder] = field(default_factory=dict, repr=False)
    _schema: pa.Schema | None = field(default=None, repr=False)

    def __call__(self, messages: Sequence[Message]) -> pa.Table:
        """The rows; empty messages, as producers write them for deleted keys, give none.

        Raises:
            InvalidDataError: a message cannot be read.
            SchemaMismatchError: the schema of a message does not fit that of the rows.
            SourceError: the registry does not answer.
        """
        filled = [one for one in messages if one.value]
        return decoded(filled, self._rows, self.topic, self.takes, self.tells_offsets)

    def _rows(self, messages: Sequence[Message]) -> pa.Table:
        if not messages:
            return (self.newest() if self._schema is None else self._schema).empty_table()
        bad = next((one for one in messages if len(one.value) < _HEADER or one.value[0]), None)
        if bad is not None:
            raise InvalidDataError(
                f"{place_of(self.topic, bad)}: expected an Avro record with the header of a schema registry (a zero "
                f"and four bytes); found {bad.value[:20]!r}."
            )
        ids = np.array([int.from_bytes(one.value[1:_HEADER], "big") for one in messages], np.int64)
        distinct = np.unique(ids).tolist()
        schema = self._known(distinct)
        parts, order = [], []
        for schema_id in distinct:
            chosen = np.flatnonzero(ids == schema_id)
            parts.append(self._of_schema(schema_id, schema, [messages[at] for at in chosen.tolist()]))
            order.append(chosen)
        if len(parts) == 1:
            return pa.Table.from_batches(parts)
        return pa.Table.from_batches(parts).take(np.argsort(np.concatenate(order), kind="stable"))

    def _known(self, ids: Sequence[int]) -> pa.Schema:
        """The schema of the rows, which is asked for again after schemas that are new."""
        unknown = [one for one in ids if one not in self._writers]
        self._writers.update({one: self.schema_of(one) for one in unknown})
        if self._schema is None or unknown:
            schema = self.newest()
            if self._schema is None or not schema.equals(self._schema):
                self._schema = schema
                self._decoders.clear()
        return self._schema

    def _of_schema(self, schema_id: int, schema: pa.Schema, messages: Sequence[Message]) -> pa.RecordBatch:
        decoder = self._decoders.get(schema_id)
        if decoder is None:
            where = f"schema {schema_id} of the registry"
            decoder = AvroDecoder.compile(self._writers[schema_id], schema, where)
            self._decoders[schema_id] = decoder
        ends = np.cumsum([len(one.value) for one in messages], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) + _HEADER
        data = np.frombuffer(b"".join(one.value for one in messages), np.uint8)
        read = partial(decoder.decode_records, data)
        try:
            return read(starts, ends)
        except _UNREADABLE as error:
            at = _first_bad(
                len(messages), lambda first, last: _fault(lambda: read(starts[first:last], ends[first:last]))
            )
            place = place_of(self.topic, messages[at or 0])
            raise InvalidDataError(f"{place}: not a record of schema {schema_id} of the registry: {error}") from error


def place_of(topic: str, one: Message) -> str:
    """Where a message is, for errors."""
    return f"Topic {topic}, partition {one.partition}, offset {one.offset}"


def warn_of_rejected(rejected: Sequence[Rejected]) -> None:
    """Warn of messages that are left out."""
    warn(f"Left out messages that cannot be read: {len(rejected)}; the first: {rejected[0].place}.")


def decoded(
    messages: Sequence[Message], decode: Decoder, topic: str, takes: Take | None, tells_offsets: bool
) -> pa.Table:
    """The rows of messages.

    Args:
        messages: of a topic.
        decode: makes rows of messages.
        topic: for errors.
        takes: takes messages that cannot be read; None: they are errors.
        tells_offsets: whether rows tell which message they come from.

    Raises:
        HudiError: as ``decode``.
    """
    bad: list[tuple[Message, str]] = []
    rows = decode(messages) if takes is None else readable(messages, decode, bad, f"Topic {topic}")
    if takes is not None and bad:
        takes([Rejected(place_of(topic, one), reason, one.value) for one, reason in bad])
    if not tells_offsets:
        return rows
    left_out = {id(one) for one, _ in bad}
    kept = [one for one in messages if id(one) not in left_out]
    for name, kind, value_of in _OFFSETS:
        rows = rows.append_column(name, pa.array(map(value_of, kept), kind))
    return rows


def readable(
    messages: Sequence[One], decode: Callable[[Sequence[One]], pa.Table], bad: list[tuple[One, str]], what: str
) -> pa.Table:
    """The rows of the messages that can be read.

    Args:
        messages: all of them.
        decode: makes rows of messages.
        bad: gets the messages that cannot be read, and the reasons.
        what: where they come from, for errors.

    Raises:
        InvalidDataError: each message can be read, but their types do not fit together.
    """
    try:
        return decode(messages)
    except InvalidDataError as error:
        if len(messages) == 1:
            bad.append((messages[0], str(error)))
            return decode([])
    middle = len(messages) // 2
    halves = [readable(part, decode, bad, what) for part in (messages[:middle], messages[middle:])]
    try:
        return pa.concat_tables(halves, promote_options="permissive")
    except pa.ArrowException as error:
        raise InvalidDataError(
            f"{what}: the types of a field differ from message to message: {error}. {GIVE_SCHEMA}"
        ) from error


def json_rows(messages: Sequence[bytes], schema: pa.Schema | None, where: Where) -> pa.Table:
    """The rows of JSON objects.

    Args:
        messages: one object each; none is blank.
        schema: of the rows: fields that it lacks are dropped, fields that a message lacks are null. Numbers become
            dates and times by its unit, texts by ISO 8601 (without a zone: UTC), and both become decimals. None: Arrow
            infers the types, but texts stay texts, whatever they look like.
        where: tells the place of a message by its number, for errors.

    Raises:
        InvalidDataError: a message is no object, or a value does not fit its column.
    """
    if not messages:
        return pa.schema([] if schema is None else schema).empty_table()
    try:
        return _made(messages, schema)
    except pa.ArrowException as error:
        at = _first_bad(len(messages), lambda first, last: _fault(lambda: _made(messages[first:last], schema)))
        if at is None:
            raise InvalidDataError(
                f"{where(0)} and the messages after it: the types of a field differ from message to message: "
                f"{_line_of(error)}." + (f" {GIVE_SCHEMA}" if schema is None else "")
            ) from error
        raise InvalidDataError(
            f"{where(at)}: expected a JSON object{'' if schema is None else ' that fits the schema'}; found "
            f"{messages[at][:200].decode('utf-8', 'replace')!r}: {_fault(lambda: _made([messages[at]], schema))}."
        ) from error


def _made(messages: Sequence[bytes], schema: pa.Schema | None) -> pa.Table:
    """The rows; an error of Arrow if a message cannot be read."""
    objects = [one.strip(_AROUND) for one in messages]
    if not all(one[:1] == b"{" and one[-1:] == b"}" for one in objects):  # Arrow's parser crashes at a null
        raise pa.ArrowInvalid("it is no object")
    found = _parsed(objects, None if schema is None else _wire(schema))
    if found.num_rows != len(objects):  # an object in two messages, or two in one
        raise pa.ArrowInvalid(f"{len(objects)} messages hold {found.num_rows} objects")
    if schema is None:  # a field that is null in all messages has no type yet
        return found.drop_columns([each.name for each in found.schema if pa.types.is_null(each.type)])
    return pa.Table.from_arrays([_column(found, each) for each in schema], schema=schema)


def _parsed(objects: Sequence[bytes], wire: pa.Schema | None) -> pa.Table:
    """What Arrow's parser makes of objects, which it parses again where it did not infer types as it should.

    Whether texts become times depends on all texts of a turn. And an inferred list that begins with null lacks values
    (Arrow 0.14 to 26).
    """
    found = _read(objects, wire)
    texts = pa.schema([each.with_type(_explicit(each.type, pa.null())) for each in found.schema])
    if _is_sound(found) and (wire is not None or texts.equals(found.schema)):
        return found
    explicit = pa.schema([each.with_type(_explicit(each.type, pa.string())) for each in texts])
    found = _read(objects, explicit)
    return pa.Table.from_arrays([_column(found, each) for each in texts], schema=texts)


def _read(objects: Sequence[bytes], wire: pa.Schema | None) -> pa.Table:
    import pyarrow.json as pa_json

    text = b"\n".join(objects)
    try:
        _ = text.isascii() or text.decode()
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it is not UTF-8: {error}") from error
    has_breaks = text.count(b"\n") >= len(objects) or b"\r" in text  # between the tokens of an object
    parsing = pa_json.ParseOptions(explicit_schema=wire, newlines_in_values=has_breaks)
    reading = pa_json.ReadOptions(block_size=max(_BLOCK, max(map(len, objects)) + 2))
    return pa_json.read_json(pa.BufferReader(text), reading, parsing)


def _is_sound(found: pa.Table) -> bool:
    try:
        for column in found.columns:
            if pa.types.is_nested(column.type):
                column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _explicit(kind: pa.DataType, nothing: pa.DataType) -> pa.DataType:
    """An inferred type with texts in place of times, and another type for nulls."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_null(kind):
        return nothing
    if pa.types.is_list(kind):
        return pa.list_(_explicit(kind.value_type, nothing))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_explicit(each.type, nothing)) for each in kind])
    return kind


def _first_bad(number: int, fault: Callable[[int, int], str]) -> int | None:
    """The number of a message that cannot be read; None if each can be read alone."""
    start, end = 0, number
    while end - start > 1:
        middle = (start + end) // 2
        if fault(start, middle):
            end = middle
        elif fault(middle, end):
            start = middle
        else:
            return None
    return start if fault(start, end) else None


def _fault(read: Callable[[], object]) -> str:
    """Why messages cannot be read; empty if they can be."""
    try:
        read()
    except (pa.ArrowException, *_UNREADABLE) as error:
        return _line_of(error)
    return ""


def _line_of(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _wire(schema: pa.Schema) -> pa.Schema:
    """What Arrow's parser shall make of the fields; it infers those that it lacks: numbers or texts."""
    return pa.schema(_wire_fields(schema))


def _wire_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    kinds = ((each.name, _wire_type(each.type)) for each in fields)
    return [pa.field(name, kind) for name, kind in kinds if kind is not None]


def _wire_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        return pa.struct(_wire_fields(kind))
    if pa.types.is_list(kind):
        inner = _wire_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.string()
    tests = pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_decimal
    return kind if any(test(kind) for test in tests) else None


# ---- values that Arrow's parser made, in the types of the schema


def _column(found: pa.Table, target: pa.Field) -> pa.ChunkedArray:
    if target.name in found.column_names:
        column = found[target.name]
        made = pa.chunked_array([_cast(one, target.type, target.name) for one in column.chunks], target.type)
    else:
        made = pa.chunked_array([pa.nulls(found.num_rows, target.type)])
    if made.null_count and not target.nullable:
        raise pa.ArrowInvalid(f"the field {target.name!r} is required, and null or missing")
    return made


def _cast(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if values.type.equals(kind):
        if pa.types.is_decimal(kind) or pa.types.is_nested(kind):
            values.validate(full=True)  # Arrow's parser does not count the digits of whole numbers
        return values
    if pa.types.is_null(values.type) or pa.types.is_null(kind):
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        given = {each.name: values.field(at) for at, each in enumerate(values.type)}
        columns = [
            _cast(given[each.name], each.type, f"{name}.{each.name}")
            if each.name in given
            else pa.nulls(len(values), each.type)
            for each in kind
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(values.type):
        inner = _cast(values.values, kind.value_type, f"{name}.element")
        return pa.ListArray.from_arrays(values.offsets, inner, kind, mask=values.is_null())
    try:
        return _leaf(values, kind)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"{name!r} does not fit {kind}: {_line_of(error)}") from error


def _leaf(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind) and pa.types.is_integer(values.type):
        return values.cast(pa.decimal128(19, 0)).cast(kind)
    if pa.types.is_integer(values.type) and (pa.types.is_date32(kind) or pa.types.is_time32(kind)):
        return values.cast(pa.int32()).cast(kind)
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary()).cast(kind)
    if not pa.types.is_string(values.type) or not pa.types.is_temporal(kind):
        return values.cast(kind)
    for form, complete in (*_ISO_FORMS, _ISO_TIME) if pa.types.is_time(kind) else _ISO_FORMS:
        values = pc.replace_substring_regex(values, form, complete)
    times = values.cast(pa.timestamp("us" if pa.types.is_date(kind) else kind.unit, "UTC"))
    local = times.cast(pa.timestamp(times.type.unit))
    return (times if pa.types.is_timestamp(kind) and kind.tz else local).cast(kind)


_PATH, _NAME, _ENABLE = "base.path", "target.table.name", "enable"
_SCHEMA = pa.schema(
    [
        pa.field("place", pa.string(), False),
        ("reason", pa.string()),
        ("value", pa.binary()),
        ("seen", pa.timestamp("us", "UTC")),
    ]
)


class ErrorTable:
    """Collects what one turn leaves out, and writes it.

    Args:
        path: of the table; it is created when there is something to write.
        name: of the table.
        storage_options: how to reach it.
    """

    def __init__(self, path: str, name: str, storage_options: Mapping[str, Any] | None) -> None:
        self._path, self._storage_options = path, storage_options
        self._options = {"hoodie.table.name": name, "hoodie.datasource.write.precombine.field": "seen"}
        self._rejected: list[Rejected] = []

    def begin(self) -> None:
        """Forget what a turn that was given up left out."""
        self._rejected = []

    def add(self, rejected: Sequence[Rejected]) -> None:
        """Note messages that a turn leaves out."""
        self._rejected += rejected

    def write(self) -> int:
        """Write the messages of the turn, each once; their number.

        Raises:
            HudiError: the table cannot be written.
        """
        rejected, self._rejected = self._rejected, []
        if rejected:
            rows = [{**one._asdict(), "seen": datetime.now(UTC)} for one in rejected]
            table = pa.Table.from_pylist(rows, _SCHEMA)
            write(table, self._path, self._options, storage_options=self._storage_options, key="place")
        return len(rejected)


def open_error_table(
    settings: StreamSettings, storage_options: Mapping[str, Any] | None, spark: Any = None
) -> ErrorTable | None:
    """The error table of a stream; None if it has none.

    Args:
        settings: of the streamer.
        storage_options: how to reach it.
        spark: the session of the stream, whose settings count without storage options; None without one.

    Raises:
        ConfigError: ``hoodie.errortable.enable`` is neither true nor false, or the table has no path.
    """
    if not truth(f"{ERRORS_PREFIX}{_ENABLE}", settings.errors.get(_ENABLE, "false")):
        return None
    path = settings.errors.get(_PATH, "")
    if not path:
        raise ConfigError(f"The error table needs the property {ERRORS_PREFIX}{_PATH}.")
    name = settings.errors.get(_NAME) or path.rstrip("/").rpartition("/")[2]
    return ErrorTable(path, name, open_place(spark, path, storage_options).options)
