"""Resolution of names and members in an Avro schema's JSON, shared by ``avro.schema`` and ``avro.types``.

A schema is untrusted. A short text can describe a type of any depth and size, because a definition may refer to others
several times: :meth:`Names.level` bounds both. Source: Avro 1.11 specification, "Names".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.type_limits import MAX_LEVELS, MAX_PARTS
from hudi_fast.storage.stored_json import stored_json

__all__ = ["Names", "full_name", "malformed", "member", "named", "read_schema"]

_KINDS: Mapping[str, type] = {"name": str, "fields": list, "symbols": list}

_Type = TypeVar("_Type")


@dataclass(slots=True)
class Names(Generic[_Type]):
    """Named types found so far in a schema.

    Attributes:
        where: file or instant that holds the schema, for messages.
        known: complete types by full name.
        open: full names of the records that are being parsed.
        limit: maximum levels of nested types.
        max_parts: maximum number of types in total.
    """

    where: str
    known: dict[str, _Type] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    limit: int = MAX_LEVELS
    max_parts: int = MAX_PARTS
    _shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    _level: int = 0
    _deepest: int = 0
    _parts: int = 0

    @contextmanager
    def level(self, path: str) -> Iterator[None]:
        """Parse a type one level deeper.

        Raises:
            UnsupportedFeatureError: the whole type has too many levels or parts.
        """
        self._level += 1
        self._grow(1, 0, path)
        yield
        self._level -= 1

    @contextmanager
    def definition(self, full: str) -> Iterator[None]:
        """Parse the definition of a name; :func:`named` then counts its levels and parts for each reference to it."""
        outer, parts, self._deepest = self._deepest, self._parts, self._level
        self.open.add(full)
        yield
        self.open.discard(full)
        self._shapes[full] = self._parts - parts, self._deepest - self._level
        self._deepest = max(outer, self._deepest)

    def refer(self, full: str, path: str) -> None:
        """Count a reference to a complete type."""
        self._grow(*self._shapes.get(full, (0, 0)), path)

    def _grow(self, parts: int, height: int, path: str) -> None:
        self._parts += parts
        self._deepest = max(self._deepest, self._level + height)
        if self._deepest > self.limit or self._parts > self.max_parts:
            raise UnsupportedFeatureError(
                f"The Avro schema in {self.where} has a type of more than {self.limit} levels or {self.max_parts} "
                f"parts (at column {path[:100]}). No valid table has one; restore the file."
            )


def read_schema(avro_json: str, where: str) -> Any:
    """The JSON value of a schema's text; ``where`` names its location in messages.

    Raises:
        CorruptTableError: the text is not JSON, or nests too deeply.
    """
    try:
        return stored_json(avro_json)
    except ValueError as error:
        raise CorruptTableError(f"Expected an Avro schema in {where}, found text that is not JSON: {error}.") from error


def full_name(name: str, namespace: str) -> str:
    """A name with its namespace, unless it already has one."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def named(name: str, namespace: str, path: str, names: Names[_Type]) -> _Type:
    """Resolve a reference to a named type: within ``namespace``, else without one, as Java's Avro does.

    Raises:
        UnsupportedFeatureError: a record contains itself.
        CorruptTableError: the name is unknown.
    """
    full = full_name(name, namespace)
    if full not in names.known and full not in names.open and "." not in name:
        full = name
    if full in names.open:
        raise UnsupportedFeatureError(f"Column {path} in {names.where} makes the record {full} contain itself.")
    if full not in names.known:
        raise malformed(f"the unknown type {name!r}", path, names)
    names.refer(full, path)
    return names.known[full]


def member(avro: Mapping[str, Any], key: str, path: str, names: Names[Any]) -> Any:
    """A required member of a JSON object; raises CorruptTableError if it is missing or has another type."""
    if key not in avro:
        raise malformed(f"{str(dict(avro))[:80]!r} without {key!r}", path, names)
    kind = _KINDS.get(key, object)
    if not isinstance(avro[key], kind):
        raise malformed(f"{str(avro[key])[:80]!r} as {key!r}", path, names)
    return avro[key]


def malformed(found: str, path: str, names: Names[Any]) -> CorruptTableError:
    """The error for an invalid Avro schema."""
    at = f" at column {path}" if path else ""
    return CorruptTableError(f"Expected a valid Avro schema in {names.where}, found {found}{at}.")
