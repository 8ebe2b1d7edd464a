"""Protobuf messages become rows: the columns of a message type, and the values of parsed messages in them.

::

    descriptor of a message type ─► columns: a name, an Arrow type and a function of messages each
    bytes ─► parsed by the type ──► values of each column ─► a table

Types, as Apache Hudi maps them:

=======================================  ===============================================================
Protobuf                                 Arrow
=======================================  ===============================================================
bool, float, double, string, bytes       the same
int32, sint32, fixed32, sfixed32         int32; a fixed32 above 2**31 - 1 becomes negative
uint32, int64, sint64, fixed64, sfixed64 int64; a fixed64 above 2**63 - 1 becomes negative
uint64                                   decimal128(20, 0)
enum                                     string: the name of the value
message                                  struct; null if it is not set
repeated                                 list
map                                      list of structs with ``key`` and ``value``, in the order of the keys
google.protobuf.Int64Value and the like  the wrapped value; null if it is not set
google.protobuf.Timestamp                timestamp in microseconds, UTC; null if it is not set
=======================================  ===============================================================

A field that is not set has its default: that of proto2, else 0 or an empty text. A field of a ``oneof`` and an
``optional`` one of proto3 is null then. A message type that contains itself is followed so many times; deeper messages
are kept as bytes: ``descriptor_full_name`` and ``proto_bytes``.

All columns may be null, unlike Apache Hudi's: so a field that is added to the message type later becomes a column of a
table that has rows.

Source: ``ProtoConversionUtil`` (1.2.0). There a uint32 above 2**31 - 1 becomes negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.streamer.messages import Message, Take, decoded, place_of
from hudi_fast.values import dataclass

__all__ = ["ProtoForm", "ProtoMessages", "ProtoType", "header_of"]

_INT, _LONG, _UNSIGNED = pa.int32(), pa.int64(), pa.decimal128(20, 0)
_KINDS = {1: pa.float64(), 2: pa.float32(), 3: _LONG, 4: _UNSIGNED, 5: _INT, 6: _LONG, 7: _INT, 8: pa.bool_()}
_KINDS |= {9: pa.string(), 12: pa.binary(), 13: _LONG, 14: pa.string(), 15: _INT, 16: _LONG, 17: _INT, 18: _LONG}
"""Arrow types by the number of a type in ``FieldDescriptorProto.Type``."""
_UINT64, _FIXED64, _FIXED32, _GROUP, _MESSAGE, _ENUM = 4, 6, 7, 10, 11, 14

_TIMESTAMP, _TIME = "google.protobuf.Timestamp", pa.timestamp("us", "UTC")
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("String", "Int32", "UInt32", "Int64", "UInt64", "Bool", "Bytes", "Double", "Float")
)
_OVERFLOW = pa.struct([("descriptor_full_name", pa.string()), ("proto_bytes", pa.binary())])
_HEADER = 5

Convert = Callable[[Sequence[Any]], pa.Array]


@dataclass(frozen=True, slots=True)
class ProtoForm:
    """How message types become columns.

    Attributes:
        wrappers_as_records: whether ``google.protobuf.Int64Value`` and the like become a struct with a field ``value``.
        timestamps_as_records: whether a timestamp becomes a struct with ``seconds`` and ``nanos``.
        depth: how often a message type may occur on the way to a column; 1 or more.
    """

    wrappers_as_records: bool = False
    timestamps_as_records: bool = False
    depth: int = 5


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type, and a function that makes an array of values, each of which may be None."""

    type: pa.DataType
    convert: Convert


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its field, and a function that makes it of messages."""

    field: pa.Field
    convert: Convert


class ProtoType:
    """A message type.

    Args:
        descriptor: of the type.
        message_class: parses its bytes.
        form: how it becomes columns.

    Raises:
        UnsupportedFeatureError: it has a group, or contains a message type without fields.
    """

    def __init__(self, descriptor: Any, message_class: Any, form: ProtoForm) -> None:
        self.name: str = descriptor.full_name
        self._class = message_class
        self._columns = _columns(descriptor, {}, form)
        self.schema = pa.schema([one.field for one in self._columns])

    def rows(self, values: Sequence[bytes], place: Callable[[int], str]) -> pa.Table:
        """The rows of messages.

        Args:
            values: bytes of a message each.
            place: tells where a message is by its number, for errors.

        Raises:
            InvalidDataError: bytes are not a message of this type, or a value does not fit its column.
        """
        messages = [self._parsed(value, place, at) for at, value in enumerate(values)]
        try:
            return pa.Table.from_arrays([one.convert(messages) for one in self._columns], schema=self.schema)
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidDataError(
                f"{place(0)} and the messages after it: a value does not fit its column: {error}."
            ) from error

    def _parsed(self, value: bytes, place: Callable[[int], str], at: int) -> Any:
        try:
            made = self._class.FromString(value)
        except Exception as error:  # DecodeError, whose module belongs to an extra
            raise InvalidDataError(f"{place(at)}: not a message of the Protobuf type {self.name}: {error}.") from error
        if not made.IsInitialized():
            missing = ", ".join(made.FindInitializationErrors())
            raise InvalidDataError(
                f"{place(at)}: not a message of the Protobuf type {self.name}: it lacks the required {missing}."
            )
        return made


@dataclass(slots=True)
class ProtoMessages:
    """Makes rows of Protobuf messages.

    Attributes:
        topic: for errors.
        newest: the type of the rows. It is asked for again when a message has a schema id that is new.
        name_of: the full name of the message type of a schema id and a list of indexes; None: messages have no header,
            and all are of the type of the rows.
        takes: takes messages that cannot be read; None: they are errors.
        tells_offsets: whether rows tell which message they come from.
    """

    topic: str
    newest: Callable[[], ProtoType]
    name_of: Callable[[int, tuple[int, ...]], str] | None = None
    takes: Take | None = None
    tells_offsets: bool = False
    _names: dict[tuple[int, tuple[int, ...]], str] = field(default_factory=dict, repr=False)
    _type: ProtoType | None = field(default=None, repr=False)

    def __call__(self, messages: Sequence[Message]) -> pa.Table:
        """The rows; where messages have a header, empty ones, which stand for deleted keys, give none.

        Raises:
            InvalidDataError: a message cannot be read, or is of another type.
            SourceError: the registry does not answer.
        """
        filled = messages if self.name_of is None else [one for one in messages if one.value]
        return decoded(filled, self._rows, self.topic, self.takes, self.tells_offsets)

    def _rows(self, messages: Sequence[Message]) -> pa.Table:
        if self.name_of is None:
            known, values = self._known(set()), [one.value for one in messages]
        else:
            heads = [self._head(one) for one in messages]
            distinct = {(schema_id, indexes) for schema_id, indexes, _ in heads}
            known = self._known(distinct)
            others = {one for one in distinct if self._names[one] != known.name}
            if others:
                at = next(at for at, head in enumerate(heads) if head[:2] in others)
                raise self._of_another_type(messages[at], heads[at][:2], known)
            values = [one.value[end:] for one, (_, _, end) in zip(messages, heads, strict=True)]
        return known.rows(values, lambda at: place_of(self.topic, messages[at]))

    def _of_another_type(self, one: Message, found: tuple[int, tuple[int, ...]], known: ProtoType) -> InvalidDataError:
        return InvalidDataError(
            f"{place_of(self.topic, one)}: expected a message of the type {known.name}; found one of "
            f"{self._names[found]} (schema {found[0]} of the registry). A stream reads one type: name it with "
            "--proto-message, and keep the others in an error table."
        )

    def _known(self, types: set[tuple[int, tuple[int, ...]]]) -> ProtoType:
        """The type of the rows, which is asked for again after a type that is new."""
        unknown = types - self._names.keys()
        if self.name_of is not None:
            self._names.update({one: self.name_of(*one) for one in sorted(unknown)})
        if self._type is None or unknown:
            self._type = self.newest()
        return self._type

    def _head(self, one: Message) -> tuple[int, tuple[int, ...], int]:
        try:
            return header_of(one.value)
        except ValueError as error:
            raise InvalidDataError(
                f"{place_of(self.topic, one)}: expected a Protobuf message with the header of a schema registry (a "
                f"zero, four bytes and the indexes of the type); found {one.value[:20]!r}. For messages without a "
                "header, remove hoodie.streamer.source.kafka.proto.value.deserializer.class."
            ) from error


def header_of(value: bytes) -> tuple[int, tuple[int, ...], int]:
    """The header that Confluent's serializers write before a Protobuf message.

    It is a zero byte, four bytes of the schema's id, the number of indexes and the indexes. These are zigzag varints; a
    single zero stands for the list ``[0]``.

    Args:
        value: of a message.

    Returns:
        The id of the schema; the indexes, which lead to the message type: first among those of the file, then among
        those of the type before; the place where the message begins.

    Raises:
        ValueError: it has no such header.
    """
    if len(value) <= _HEADER or value[0]:
        raise ValueError("no header")
    schema_id = int.from_bytes(value[1:_HEADER], "big")
    if not value[_HEADER]:  # the first type of the file, as in most topics
        return schema_id, (0,), _HEADER + 1
    number, at = _zigzag(value, _HEADER)
    indexes = []
    for _ in range(number):
        index, at = _zigzag(value, at)
        if index < 0:
            raise ValueError("a negative index")
        indexes.append(index)
    if number < 1:
        raise ValueError("no indexes")
    return schema_id, tuple(indexes), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(value) and shift < 35:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError("a number is cut off")


# ---- columns of a message type


def _columns(descriptor: Any, seen: Mapping[str, int], form: ProtoForm) -> list[_Column]:
    """The columns of a message type.

    Args:
        descriptor: of the type.
        seen: how often each message type occurs on the way to it.
        form: how it becomes columns.
    """
    inner = {**seen, descriptor.full_name: seen.get(descriptor.full_name, 0) + 1}
    if not descriptor.fields:
        raise UnsupportedFeatureError(
            f"The Protobuf message type {descriptor.full_name} has no fields, and a column needs one. Write the "
            "messages with a type that leaves it out."
        )
    return [_column(one, inner, form) for one in descriptor.fields]


def _column(one: Any, seen: Mapping[str, int], form: ProtoForm) -> _Column:
    name, kind = one.name, _kind(one, seen, form)
    if one.is_repeated:
        listed = _listed(kind)
        is_map = one.type == _MESSAGE and one.message_type.GetOptions().map_entry
        read = _entries(one) if is_map else (lambda message: getattr(message, name))
        return _Column(pa.field(name, listed.type), lambda messages: listed.convert([read(m) for m in messages]))
    if one.type == _MESSAGE or one.containing_oneof is not None:  # a proto3 field that is `optional` has a oneof
        return _Column(
            pa.field(name, kind.type),
            lambda messages: kind.convert([getattr(m, name) if m.HasField(name) else None for m in messages]),
        )
    return _Column(pa.field(name, kind.type), lambda messages: kind.convert([getattr(m, name) for m in messages]))


def _kind(one: Any, seen: Mapping[str, int], form: ProtoForm) -> _Kind:
    """The type of a field, or of its elements if it is repeated."""
    if one.type == _GROUP:
        raise UnsupportedFeatureError(
            f"The Protobuf field {one.full_name} is a group, which is not supported. Write the messages with a nested "
            "message type instead."
        )
    if one.type != _MESSAGE:
        return _scalar(one)
    inner = one.message_type
    if inner.full_name in _WRAPPERS and not form.wrappers_as_records:
        kind = _scalar(inner.fields[0])
        return _Kind(kind.type, lambda values: kind.convert([None if v is None else v.value for v in values]))
    if inner.full_name == _TIMESTAMP and not form.timestamps_as_records:
        return _Kind(_TIME, _times)
    if seen.get(inner.full_name, 0) >= form.depth:
        return _Kind(_OVERFLOW, _as_bytes)
    return _record(_columns(inner, seen, form))


def _scalar(one: Any) -> _Kind:
    kind = _KINDS[one.type]
    if one.type == _ENUM:
        names = {each.number: each.name for each in reversed(one.enum_type.values)}  # the first of two with one number
        unknown = f"UNKNOWN_ENUM_VALUE_{one.enum_type.name}_"  # as Java's library names it
        return _mapped(kind, lambda value: names.get(value) or f"{unknown}{value}")
    if one.type == _UINT64:
        return _mapped(kind, Decimal)
    if one.type in (_FIXED32, _FIXED64):
        bits = 32 if one.type == _FIXED32 else 64
        return _mapped(kind, lambda value: value - (1 << bits) if value >> (bits - 1) else value)
    return _Kind(kind, lambda values: pa.array(values, kind))


def _mapped(kind: pa.DataType, function: Callable[[Any], Any]) -> _Kind:
    return _Kind(kind, lambda values: pa.array([None if v is None else function(v) for v in values], kind))


def _times(values: Sequence[Any]) -> pa.Array:
    micros = [None if one is None else one.seconds * 1_000_000 + one.nanos // 1000 for one in values]
    return pa.array(micros, _LONG).cast(_TIME)


def _as_bytes(values: Sequence[Any]) -> pa.Array:
    rows = [None if one is None else (one.DESCRIPTOR.full_name, one.SerializeToString()) for one in values]
    return pa.array([None if one is None else dict(zip(_OVERFLOW.names, one, strict=True)) for one in rows], _OVERFLOW)


def _record(columns: Sequence[_Column]) -> _Kind:
    kind = pa.struct([one.field for one in columns])

    def convert(values: Sequence[Any]) -> pa.Array:
        present = [one for one in values if one is not None]
        made = pa.StructArray.from_arrays([one.convert(present) for one in columns], fields=list(kind))
        if len(present) == len(values):
            return made
        is_set = np.array([one is not None for one in values], np.bool_)
        places = np.cumsum(is_set) - 1
        return made.take(pa.array(places, pa.int64(), mask=~is_set))

    return _Kind(kind, convert)


def _listed(kind: _Kind) -> _Kind:
    listed = pa.list_(pa.field("element", kind.type))

    def convert(values: Sequence[Any]) -> pa.Array:
        ends = np.cumsum([len(one) for one in values], dtype=np.int64)
        offsets = pa.array(np.concatenate((np.zeros(1, np.int64), ends)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, kind.convert([one for each in values for one in each]), listed)

    return _Kind(listed, convert)


class _Entry:
    """An entry of a map, read like a message."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = key, value

    def HasField(self, name: str) -> bool:
        """Whether a field is set: an entry always has both."""
        return True


def _entries(one: Any) -> Callable[[Any], list[_Entry]]:
    """Reads a map, whose order is not that of its bytes: the same position gives the same rows."""
    name = one.name

    def read(message: Any) -> list[_Entry]:
        found = getattr(message, name)
        return [_Entry(key, found[key]) for key in sorted(found)]

    return read
