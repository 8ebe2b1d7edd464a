"""Resolution of names and members in an Avro schema's JSON, shared by ``avro.schema`` and ``avro.types``.

Source: Avro 1.11 specification, "Names".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError

__all__ = ["Names", "full_name", "malformed", "member", "named"]

_Type = TypeVar("_Type")


@dataclass(frozen=True, slots=True)
class Names(Generic[_Type]):
    """Named types found so far in a schema.

    Attributes:
        where: file or instant that holds the schema, for messages.
        known: complete types by full name.
        open: full names of the records that are being parsed.
    """

    where: str
    known: dict[str, _Type] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)


def full_name(name: str, namespace: str) -> str:
    """A name with its namespace, unless it already has one."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def named(name: str, namespace: str, path: str, names: Names[_Type]) -> _Type:
    """Resolve a reference to a named type.

    Raises:
        UnsupportedFeatureError: a record contains itself.
        CorruptTableError: the name is unknown.
    """
    full = full_name(name, namespace)
    if full in names.open:
        raise UnsupportedFeatureError(f"Column {path} in {names.where} makes the record {full} contain itself.")
    if full not in names.known:
        raise malformed(f"the unknown type {name!r}", path, names)
    return names.known[full]


def member(avro: Mapping[str, Any], key: str, path: str, names: Names[Any]) -> Any:
    """A required member of a JSON object; CorruptTableError if it is missing."""
    if key not in avro:
        raise malformed(f"{str(dict(avro))[:80]!r} without {key!r}", path, names)
    return avro[key]


def malformed(found: str, path: str, names: Names[Any]) -> CorruptTableError:
    """The error for an invalid Avro schema."""
    at = f" at column {path}" if path else ""
    return CorruptTableError(f"Expected a valid Avro schema in {names.where}, found {found}{at}.")
