"""Writes many Avro records of one schema: the bodies of instants, whose unions are all "null or one type".

A schema is compiled once, to nested functions from a value to its bytes. fastavro checks for every value of a union
which branch it fits, which takes most of the time of a commit with many files. The bytes equal those of fastavro's
``schemaless_writer``. Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hudi_fast.formats.varint import zigzag

__all__ = ["compile_writer"]

Writer = Callable[[Any], bytes]

_SMALL = 8192


def compile_writer(schema: Any) -> Writer | None:
    """The function that writes values of a schema; None for a schema with other unions, enums or fixed values.

    Missing fields of a record take the schema's defaults. The function raises ``TypeError``, ``ValueError`` or
    ``KeyError`` for a value that does not fit.
    """
    try:
        return _writer(schema, {})
    except NotImplementedError:
        return None


def _writer(schema: Any, known: dict[str, Writer]) -> Writer:
    if isinstance(schema, list):
        return _union(schema, known)
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if isinstance(schema, str):
        name = next(
            (one for one in known if one == schema or one.rpartition(".")[2] == schema.rpartition(".")[2]), None
        )
        if name is None:
            raise NotImplementedError(schema)
        return known[name]
    if kind == "record":
        return _record(schema, known)
    if kind == "array":
        return _array(_writer(schema["items"], known))
    if kind == "map":
        return _map(_writer(schema["values"], known))
    if isinstance(kind, Mapping | list):
        return _writer(kind, known)
    raise NotImplementedError(kind)


def _record(schema: Mapping[str, Any], known: dict[str, Writer]) -> Writer:
    fields: list[tuple[str, Any, Writer]] = []

    def write(record: Mapping[str, Any]) -> bytes:
        get = record.get
        return b"".join([one(get(name, default)) for name, default, one in fields])

    known[schema["name"]] = write
    fields += [(one["name"], one.get("default"), _writer(one["type"], known)) for one in schema["fields"]]
    return write


def _union(branches: list[Any], known: dict[str, Writer]) -> Writer:
    if len(branches) != 2 or "null" not in branches:
        raise NotImplementedError(branches)
    at = branches.index("null")
    absent, mark = _long(at), _long(1 - at)
    if branches[1 - at] in ("int", "long"):
        marked = _marked(mark)
        return lambda value: absent if value is None else marked[value] if 0 <= value < _SMALL else mark + zigzag(value)
    present = _writer(branches[1 - at], known)
    return lambda value: absent if value is None else mark + present(value)


def _array(item: Writer) -> Writer:
    return lambda values: b"".join([_long(len(values)), *map(item, values), b"\x00"]) if values else b"\x00"


def _map(value_of: Writer) -> Writer:
    def write(values: Mapping[str, Any]) -> bytes:
        if not values:
            return b"\x00"
        parts = [_long(len(values))]
        for key, value in values.items():
            parts.append(_text(key))
            parts.append(value_of(value))
        parts.append(b"\x00")
        return b"".join(parts)

    return write


# ---- primitive types


_LONGS = [zigzag(value) for value in range(_SMALL)]


@cache
def _marked(mark: bytes) -> list[bytes]:
    """The encoded small numbers, each after the mark of its branch; all nullable numbers share two such lists."""
    return [mark + one for one in _LONGS]


def _long(value: int) -> bytes:
    return _LONGS[value] if 0 <= value < _SMALL else zigzag(value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _long(len(data)) + data


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _null(value: None) -> bytes:
    if value is not None:
        raise TypeError(f"expected null, found {value!r}")
    return b""


_PRIMITIVES: Mapping[Any, Writer] = {
    "null": _null,
    "int": _long,
    "long": _long,
    "string": _text,
    "bytes": _bytes,
    "boolean": _boolean,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
}
