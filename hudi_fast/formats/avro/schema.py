"""Avro schemas and the names in them.

Avro schemas as JSON text <-> Arrow schemas.

Two recursive walks, one per direction, over a small set of types: the *storable* Arrow types below. Inside hudi_fast a
table's schema is an Arrow schema of storable types; Avro text exists only in files (``schema`` of a commit,
``hoodie.table.create.schema``, headers of log blocks, footers of base files).

=================================  =========================================================
Arrow                              Avro
=================================  =========================================================
bool, int32, int64                 boolean, int, long
float32, float64                   float, double
string, binary                     string (also: enum, uuid on string), bytes
binary(n)                          fixed of n bytes
fixed-size list of numbers         fixed with the logical type vector (:mod:`hudi_fast.formats.logical_types`)
decimal128(p, s)                   decimal on the smallest fixed (also: decimal on bytes)
date32                             int date
time32[ms], time64[us]             int time-millis, long time-micros
timestamp[ms|us, tz=UTC]           long timestamp-millis, timestamp-micros
timestamp[ms|us]                   long local-timestamp-millis, local-timestamp-micros
list<element>, map<string, value>  array, map
struct                             record
struct of member0, member1 ...     union of several types, one per member
nullable field                     ``["null", T]`` with default null (read in either order)
=================================  =========================================================

Names follow the Spark writers of Apache Hudi: record ``<table>_record`` in namespace ``hoodie.<table>``; a nested
record has its column's name, in the namespace of its parent's full name; a decimal (or other fixed) is called
``fixed`` in the namespace of the column's full name. Source: Avro 1.11 specification; HoodieSchemaUtils and Spark's
SchemaConverters as of Hudi 1.2.0; output compared byte for byte with commits of real tables.

A union of several types is stored as Parquet and Spark store it: a struct with at most one non-null member. Members are
called ``member0``, ``member1`` ... in the order of the non-null types. Such a struct (two members or more, all
nullable, of different Avro types) becomes a union again.

The following has no Arrow equivalent and is dropped: ``doc``, aliases, defaults other than null, and enum symbols.

Resolution of names and members in an Avro schema's JSON, shared by ``avro.schema`` and ``avro.types``.

A schema is untrusted. A short text can describe a type of any depth and size, because a definition may refer to others
several times: :meth:`Names.level` bounds both. Source: Avro 1.11 specification, "Names".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.column_limits import MAX_LEVELS, MAX_PARTS, MAX_UNSTORED, check_type_limits
from hudi_fast.formats.logical_types import (
    BLOB,
    MAX_BYTES,
    blob_avro,
    has_form_of_blob,
    is_blob,
    is_vector,
    vector_avro,
    vector_of_avro,
)
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = [
    "META_FIELDS",
    "OPERATION_FIELD",
    "Names",
    "arrow_to_avro",
    "avro_to_arrow",
    "check_column_name",
    "full_name",
    "is_meta_field",
    "malformed",
    "member",
    "named",
    "read_schema",
    "record_name_of",
    "with_meta",
    "without_meta",
]

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


META_FIELDS: tuple[str, ...] = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The five columns that Hudi puts before the table's own columns, all nullable strings (HoodieRecord, 1.2.0)."""

OPERATION_FIELD = "_hoodie_operation"
"""The sixth meta column; only in tables with ``hoodie.allow.operation.metadata.field=true``."""

_AVRO_OF_SIMPLE: Mapping[pa.DataType, str | dict[str, str]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}

_ARROW_OF_PRIMITIVE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}

_ARROW_OF_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    (avro["type"], avro["logicalType"]): arrow for arrow, avro in _AVRO_OF_SIMPLE.items() if isinstance(avro, dict)
}

# Read as their underlying type, these would return wrong values, not merely less precise types.
_REFUSED_LOGICAL = frozenset({"timestamp-nanos", "local-timestamp-nanos", "variant"})

_ONE_NUMBER = ({"int", "long"}, {"float", "double"})

_ILLEGAL_IN_NAME = re.compile(r"[^A-Za-z0-9_]")


# ---- meta columns


def is_meta_field(name: str) -> bool:
    """Whether the column is one of :data:`META_FIELDS` or :data:`OPERATION_FIELD`."""
    return name in META_FIELDS or name == OPERATION_FIELD


def without_meta(schema: pa.Schema) -> pa.Schema:
    """``schema`` without meta columns and without metadata (HoodieAvroUtils.removeMetadataFields)."""
    return pa.schema([each for each in schema if not is_meta_field(each.name)])


def with_meta(schema: pa.Schema, operation_field: bool = False) -> pa.Schema:
    """``schema`` with the five meta columns first, even if it lacked them; the sixth one with ``operation_field``."""
    names = (*META_FIELDS, OPERATION_FIELD) if operation_field else META_FIELDS
    return pa.schema([pa.field(name, pa.string()) for name in names] + list(without_meta(schema)))


# ---- names


def record_name_of(table_name: str) -> tuple[str, str]:
    """Avro record name and namespace of a table, as Hudi's Spark writers choose them.

    Each character that Avro does not allow becomes ``__``; so does a leading digit (HoodieAvroUtils.sanitizeName).
    """
    name = _sanitized(table_name)
    return f"{name}_record", f"hoodie.{name}"


def check_column_name(name: str, where: str) -> None:
    """Reject a column name that Avro, and so Apache Hudi, cannot store.

    As Java's Avro, this allows Unicode letters, digits and ``_``, without a leading digit.

    Raises:
        SchemaMismatchError: the name is not allowed; ``where`` gives its position in the message.
    """
    legal = (
        name != ""
        and not name[0].isdecimal()
        and all(each == "_" or each.isalpha() or each.isdecimal() for each in name)
    )
    if not legal:
        raise SchemaMismatchError(
            f"The column name {name!r} ({where}) cannot be stored: Hudi keeps a table's schema in Avro, where a name "
            "consists of letters, digits and '_' and does not begin with a digit. Rename the column."
        )


def _sanitized(name: str) -> str:
    if name and not (name[0] == "_" or (name[0].isascii() and name[0].isalpha())):
        name = "__" + name[1:]
    return _ILLEGAL_IN_NAME.sub("__", name)


# ---- Arrow to Avro


def arrow_to_avro(schema: pa.Schema, record_name: str, namespace: str, meta_fields: bool = False) -> str:
    """The Avro JSON text of a schema, with the spelling and key order of Hudi's Spark writers.

    Args:
        schema: storable types only (see the module's table); ``schema.normalize`` converts to them.
        record_name: name of the outermost record; illegal characters become ``__``.
        namespace: dotted namespace of the outermost record; illegal characters become ``__``.
        meta_fields: whether to add the five meta columns first, and the sixth one if ``schema`` has it. Otherwise meta
            columns of ``schema`` are ordinary columns.

    Raises:
        SchemaMismatchError: Avro cannot store a column name.
        UnsupportedFeatureError: a type is not storable, or beyond the limits of a table's types; the message names the
            column.
    """
    check_type_limits(schema)
    name = _sanitized(record_name)
    space = ".".join(_sanitized(part) for part in namespace.split(".")) if namespace else ""
    columns = list(without_meta(schema)) if meta_fields else list(schema)
    record = _record_to_avro(columns, name, space, path="")
    if meta_fields:
        names = (*META_FIELDS, OPERATION_FIELD) if OPERATION_FIELD in schema.names else META_FIELDS
        meta = [{"name": each, "type": ["null", "string"], "doc": "", "default": None} for each in names]
        record["fields"] = meta + record["fields"]
    _refer_to_known(record, set())
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _refer_to_known(avro: Any, known: set[str]) -> Any:
    """Replace repeated definitions of Hudi's own types, which have the same name everywhere in a table, by the name."""
    if isinstance(avro, list):
        avro[:] = [_refer_to_known(each, known) for each in avro]
    elif isinstance(avro, dict):
        if avro.get("logicalType") in ("vector", "blob"):
            if avro["name"] in known:
                return avro["name"]
            known.add(avro["name"])
            return avro
        for key in ("type", "items", "values", "fields"):
            if isinstance(avro.get(key), dict | list):
                avro[key] = _refer_to_known(avro[key], known)
    return avro


def _record_to_avro(columns: list[pa.Field], name: str, namespace: str, path: str) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "record", "name": name}
    if namespace:
        record["namespace"] = namespace
    own = f"{namespace}.{name}" if namespace else name
    record["fields"] = fields = []
    for column in columns:
        where = f"{path}.{column.name}" if path else column.name
        check_column_name(column.name, f"column {where}")
        entry: dict[str, Any] = {"name": column.name, "type": _field_to_avro(column, column.name, own, where)}
        if column.nullable:
            entry["default"] = None
        fields.append(entry)
    return record


def _field_to_avro(column: pa.Field, name: str, namespace: str, path: str) -> Any:
    avro = _type_to_avro(column.type, name, namespace, path)
    if isinstance(avro, list):
        return ["null", *avro] if column.nullable else avro
    return ["null", avro] if column.nullable else avro


def _type_to_avro(kind: pa.DataType, name: str, namespace: str, path: str) -> Any:
    """``name`` and ``namespace`` apply to a record or fixed at this position; the elements of a list share them."""
    simple = _AVRO_OF_SIMPLE.get(kind)
    if simple is not None:
        return dict(simple) if isinstance(simple, dict) else simple
    if is_blob(kind):
        return blob_avro()
    if pa.types.is_struct(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        return _union_to_avro(members, name, namespace, path) or _record_to_avro(members, name, namespace, path)
    if pa.types.is_list(kind):
        items = _field_to_avro(kind.value_field, name, namespace, f"{path}.element")
        return {"type": "array", "items": items}
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        values = _field_to_avro(kind.item_field, name, namespace, f"{path}.value")
        return {"type": "map", "values": values}
    if is_vector(kind):
        return vector_avro(kind)
    fixed = {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}" if namespace else name}
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        logical = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {**fixed, "size": _bytes_for_precision(kind.precision), **logical}
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return {**fixed, "size": kind.byte_width}
    raise UnsupportedFeatureError(
        f"Column {path} has type {kind}, which a Hudi table cannot store; "
        "hudi_fast.schema.normalize converts a schema to storable types where possible."
    )


def _union_to_avro(members: list[pa.Field], name: str, namespace: str, path: str) -> list[Any] | None:
    """The union that a struct represents (HoodieSparkSchemaConverters.canBeUnion); None for an ordinary struct."""
    numbered = all(each.name == f"member{place}" and each.nullable for place, each in enumerate(members))
    if not numbered or len(members) < 2:
        return None
    own = f"{namespace}.{name}" if namespace else name
    types = [_type_to_avro(each.type, each.name, own, f"{path}.{each.name}") for each in members]
    # Avro requires branches with distinct names; records and fixeds are named after their members
    kinds = [each["type"] if isinstance(each, dict) else str(each) for each in types]
    plain = [each for each in kinds if each not in ("record", "fixed")]
    within = any(isinstance(each, list) for each in types)
    return None if within or len(set(plain)) < len(plain) or set(kinds) in _ONE_NUMBER else types


def _bytes_for_precision(precision: int) -> int:
    """The minimum bytes of a signed integer that holds ``precision`` decimal digits."""
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1


# ---- Avro to Arrow


def avro_to_arrow(avro_json: str | Mapping[str, Any], where: str) -> pa.Schema:
    """The Arrow schema of an Avro record schema, without metadata.

    Args:
        avro_json: JSON text, or its parsed value.
        where: location of the schema (a file, an instant), for messages.

    Raises:
        CorruptTableError: the schema is not JSON, not a record, or invalid by the Avro specification.
        UnsupportedFeatureError: valid Avro has no storable Arrow type: unions of int and long, recursive records, the
            null type, nanosecond timestamps, Hudi's variant; the message names the column.
    """
    avro = read_schema(avro_json, where) if isinstance(avro_json, str) else avro_json
    if not isinstance(avro, Mapping) or avro.get("type") != "record":
        raise CorruptTableError(f"Expected an Avro record schema in {where}, found {str(avro)[:120]!r}.")
    record = _type_to_arrow(avro, "", "", Names(where))
    return pa.schema([record.field(i) for i in range(record.num_fields)])


def _field_to_arrow(name: str, avro: Any, namespace: str, path: str, names: Names[pa.DataType]) -> pa.Field:
    if not isinstance(avro, list):
        return pa.field(name, _type_to_arrow(avro, namespace, path, names), nullable=False)
    branches = [branch for branch in avro if branch != "null" and branch != {"type": "null"}]
    nullable = len(branches) != len(avro)
    if len(branches) == 1:
        return pa.field(name, _type_to_arrow(branches[0], namespace, path, names), nullable)
    if not branches or set(map(str, branches)) in _ONE_NUMBER:
        # Spark treats int and long, or float and double, as one type and then cannot read the base files.
        listed = ", ".join(map(str, avro))
        raise UnsupportedFeatureError(f"Column {path} in {names.where} is a union of {listed}.")
    members = [
        pa.field(f"member{place}", _type_to_arrow(each, namespace, f"{path}.member{place}", names))
        for place, each in enumerate(branches)
    ]
    return pa.field(name, pa.struct(members), nullable)


def _type_to_arrow(avro: Any, namespace: str, path: str, names: Names[pa.DataType]) -> pa.DataType:
    with names.level(path):
        return _described_to_arrow(avro, namespace, path, names)


def _described_to_arrow(avro: Any, namespace: str, path: str, names: Names[pa.DataType]) -> pa.DataType:
    if isinstance(avro, str):
        return _ARROW_OF_PRIMITIVE.get(avro) or _named(avro, namespace, path, names)
    if not isinstance(avro, Mapping):
        raise malformed(f"a type {str(avro)[:80]!r}", path, names)
    kind, logical = avro.get("type"), str(avro.get("logicalType"))
    if not isinstance(kind, str):
        # {"type": {"type": ...}} nests a type; unwrap it
        return _type_to_arrow(kind, namespace, path, names)
    if logical in _REFUSED_LOGICAL:
        raise UnsupportedFeatureError(f"Column {path} in {names.where} has the logical type {logical}.")
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(avro, kind, namespace, path, names)
    if kind == "array":
        element = _field_to_arrow("element", member(avro, "items", path, names), namespace, f"{path}.element", names)
        return pa.list_(element)
    if kind == "map":
        value = _field_to_arrow("value", member(avro, "values", path, names), namespace, f"{path}.value", names)
        return pa.map_(pa.string(), value)
    if logical == "decimal" and kind == "bytes":
        return _decimal(avro, path, names)
    # A logical type that does not fit its underlying type is ignored: Avro specification, "Logical Types".
    simple = _ARROW_OF_LOGICAL.get((kind, logical)) or _ARROW_OF_PRIMITIVE.get(kind)
    return simple or _named(kind, namespace, path, names)


def _definition(
    avro: Mapping[str, Any], kind: str, namespace: str, path: str, names: Names[pa.DataType]
) -> pa.DataType:
    """A record, enum or fixed; it defines a name that later positions may refer to."""
    name = member(avro, "name", path, names)
    space = name.rpartition(".")[0] if "." in name else str(avro.get("namespace", namespace) or "")
    full = full_name(name, space)
    if kind == "enum":
        result = pa.string()
    elif kind == "fixed":
        result = _fixed(avro, path, names)
    else:
        inner = full.rpartition(".")[0]
        entries = member(avro, "fields", path, names)
        with names.definition(full):
            result = pa.struct([_record_field(each, inner, path, names) for each in entries])
        if avro.get("logicalType") == "blob":
            if not has_form_of_blob(result):
                raise UnsupportedFeatureError(f"Column {path} in {names.where} is a blob with the members {result}.")
            result = BLOB
    names.known[full] = result
    return result


def _record_field(entry: Any, namespace: str, path: str, names: Names[pa.DataType]) -> pa.Field:
    if not isinstance(entry, Mapping):
        raise malformed(f"a field {str(entry)[:80]!r}", path, names)
    name = member(entry, "name", path, names)
    where = f"{path}.{name}" if path else name
    return _field_to_arrow(name, member(entry, "type", where, names), namespace, where, names)


def _fixed(avro: Mapping[str, Any], path: str, names: Names[pa.DataType]) -> pa.DataType:
    size = member(avro, "size", path, names)
    if avro.get("logicalType") == "decimal":
        return _decimal(avro, path, names)
    if not isinstance(size, int) or size < 1:
        raise malformed(f"a fixed of {size!r} bytes", path, names)
    if avro.get("logicalType") == "vector":
        vector = vector_of_avro(avro)
        if vector is None:
            raise UnsupportedFeatureError(
                f"Column {path} in {names.where} has the logical type vector, whose members contradict each other: "
                f"{str(dict(avro))[:200]}."
            )
        if size > MAX_BYTES:
            raise UnsupportedFeatureError(
                f"Column {path} in {names.where} has vectors of {size} bytes; at most {MAX_BYTES} are supported."
            )
        return vector
    if size > MAX_UNSTORED:
        raise UnsupportedFeatureError(
            f"Column {path} in {names.where} is a fixed of {size} bytes, which each null takes, too; at most "
            f"{MAX_UNSTORED} are supported."
        )
    return pa.binary(size)


def _decimal(avro: Mapping[str, Any], path: str, names: Names[pa.DataType]) -> pa.DataType:
    precision, scale = member(avro, "precision", path, names), avro.get("scale", 0)
    if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision > 0):
        raise malformed(f"a decimal of precision {precision!r} and scale {scale!r}", path, names)
    if precision > 38:
        raise UnsupportedFeatureError(f"Column {path} in {names.where} is a decimal of {precision} digits; most: 38.")
    return pa.decimal128(precision, scale)


def _named(name: str, namespace: str, path: str, names: Names[pa.DataType]) -> pa.DataType:
    if name == "null":
        raise UnsupportedFeatureError(f"Column {path} in {names.where} has the type null.")
    return named(name, namespace, path, names)
