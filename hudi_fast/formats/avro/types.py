"""A writer's Avro types with names resolved, and defaults of its fields.

A writer's Avro schema with its names resolved, with the details that decoding needs and Arrow types do not have.

:func:`parse_record` turns JSON into a tree of :class:`AvroType`, in which a named type is a single object.
:func:`walk_program` flattens types into the int64 array that ``kernels.avro_structure`` executes. ``avro.schema``
returns the Arrow type of a scalar type; it is called only for requested columns, so a column that hudi_fast cannot hold
does not prevent reading the other columns.

A *general union* is any union other than null and one type. It is a struct in Arrow: it has a nullable member for each
non-null branch, and at most one member is not null. Members are named after their branches (primitives by their type;
records, enums and fixeds without namespace unless that is ambiguous), or, in columns of tables, ``member0``,
``member1`` in order.

Source: Avro 1.11 specification, "Schema Declaration" and "Binary Encoding".

Defaults of Avro fields as Arrow values. Source: Avro 1.11 specification, "Complex Types".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import Names, avro_to_arrow, full_name, malformed, member, named, read_schema
from hudi_fast.formats.column_limits import MAX_LEVELS, MAX_PARTS, MAX_UNSTORED
from hudi_fast.kernels.avro_structure import (
    BYTES,
    CALL,
    END,
    FIXED,
    ITEM,
    JUMP,
    LIST,
    MAX_CALLS,
    NEXT,
    NULLABLE,
    RETURN,
    UNION,
    VARINT,
)
from hudi_fast.values import dataclass

__all__ = [
    "AvroField",
    "AvroType",
    "WalkProgram",
    "arrow_type",
    "branch_names",
    "default_array",
    "is_general_union",
    "member_branches",
    "min_bytes",
    "optional_part",
    "parse_record",
    "plain_arrow_type",
    "union_members",
    "walk_program",
]

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes"})
_FIXED_SIZES: Mapping[str, int] = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_MAX_STEPS = 8 * MAX_PARTS
"""Maximum steps of a program; no type within the limits needs this many."""

_NUMBERED = re.compile(r"member\d+")


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record.

    Attributes:
        name: name as declared.
        type: type of its values.
        aliases: other names that a reader accepts.
        has_default: whether the field has a ``default``.
        default: JSON value.
    """

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class AvroType:
    """A resolved type.

    Attributes:
        kind: a primitive's name, or record, enum, fixed, array, map, union; ``recursive`` within a record for that
            record itself.
        json: the declaration, for plain types (primitives, fixed, enum).
        size: bytes of a fixed.
        symbols: symbols of an enum.
        fields: fields of a record.
        parts: branches of a union; the single type of array items or map values.
        name: full name of a record, enum or fixed, or of the record that ``recursive`` refers to.
        whole: for ``recursive``, and for the record that it refers to: that record as the only item, once the schema is
            parsed. Empty for all other types.
    """

    kind: str
    json: Any = None
    size: int = 0
    symbols: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    parts: tuple[AvroType, ...] = ()
    name: str = ""
    whole: list[AvroType] = field(default_factory=list, repr=False, compare=False)


# ---- parsing


@dataclass(slots=True)
class _TypeNames(Names[AvroType]):
    """Names of a schema. ``cycles``: ``whole`` of open records that contain themselves; None: refuse such records."""

    cycles: dict[str, list[AvroType]] | None = None


def parse_record(avro_json: str, where: str, recursive: bool = False) -> AvroType:
    """Parse the record type in a schema's JSON text.

    Args:
        avro_json: the text.
        where: location of the text, for messages.
        recursive: whether records may contain themselves; such a type can be skipped, but not read.

    Raises:
        CorruptTableError: the text is not JSON, not a record, or invalid by the Avro specification.
        UnsupportedFeatureError: a record contains itself.
    """
    # here a union is a separate level, and union and null are separate parts; in Arrow they are not
    names = _TypeNames(where, limit=2 * MAX_LEVELS, max_parts=3 * MAX_PARTS, cycles={} if recursive else None)
    parsed = _parse(read_schema(avro_json, where), "", "", names)
    if parsed.kind != "record":
        raise CorruptTableError(f"Expected an Avro record schema in {where}, found {avro_json[:120]!r}.")
    return parsed


def _parse(avro: Any, namespace: str, path: str, names: _TypeNames) -> AvroType:
    with names.level(path):
        return _described(avro, namespace, path, names)


def _described(avro: Any, namespace: str, path: str, names: _TypeNames) -> AvroType:
    if isinstance(avro, str):
        return AvroType(avro, avro) if avro in _PRIMITIVES else _named(avro, namespace, path, names)
    if isinstance(avro, list):
        if not avro:
            raise malformed("a union of no types", path, names)
        return AvroType("union", parts=tuple(_parse(each, namespace, path, names) for each in avro))
    if not isinstance(avro, Mapping):
        raise malformed(f"a type {str(avro)[:80]!r}", path, names)
    kind = avro.get("type")
    if not isinstance(kind, str):
        return _parse(kind, namespace, path, names)
    if kind in _PRIMITIVES:
        return AvroType(kind, dict(avro))
    if kind == "array":
        return AvroType(kind, parts=(_parse(member(avro, "items", path, names), namespace, path, names),))
    if kind == "map":
        return AvroType(kind, parts=(_parse(member(avro, "values", path, names), namespace, path, names),))
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(avro, kind, namespace, path, names)
    return _named(kind, namespace, path, names)


def _named(name: str, namespace: str, path: str, names: _TypeNames) -> AvroType:
    full = full_name(name, namespace)
    if full in names.open and names.cycles is not None:
        return AvroType("recursive", name=full, whole=names.cycles.setdefault(full, []))
    return named(name, namespace, path, names)


def _definition(avro: Mapping[str, Any], kind: str, namespace: str, path: str, names: _TypeNames) -> AvroType:
    name = member(avro, "name", path, names)
    space = name.rpartition(".")[0] if "." in name else str(avro.get("namespace", namespace) or "")
    full = full_name(name, space)
    if kind == "enum":
        symbols = member(avro, "symbols", path, names)
        if not all(isinstance(each, str) for each in symbols):
            raise malformed(f"an enum of {str(symbols)[:80]!r}", path, names)
        result = AvroType("enum", dict(avro), symbols=tuple(symbols), name=full)
    elif kind == "fixed":
        size = member(avro, "size", path, names)
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**31:
            raise malformed(f"a fixed of {size!r} bytes", path, names)
        result = AvroType("fixed", dict(avro), size=size, name=full)
    else:
        entries = member(avro, "fields", path, names)
        inner = full.rpartition(".")[0]
        with names.definition(full):
            fields = tuple(_field(each, inner, path, names) for each in entries)
        whole = None if names.cycles is None else names.cycles.pop(full, None)
        result = AvroType("record", fields=fields, name=full, whole=[] if whole is None else whole)
        if whole is not None:
            whole.append(result)
    names.known[full] = result
    return result


def _field(entry: Any, namespace: str, path: str, names: _TypeNames) -> AvroField:
    if not isinstance(entry, Mapping):
        raise malformed(f"a field {str(entry)[:80]!r}", path, names)
    name = member(entry, "name", path, names)
    where = f"{path}.{name}" if path else name
    kind = _parse(member(entry, "type", where, names), namespace, where, names)
    aliases = tuple(str(each) for each in _listed(entry.get("aliases")))
    return AvroField(name, kind, aliases, "default" in entry, entry.get("default"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# ---- reading types


def is_general_union(avro: AvroType) -> bool:
    """Whether the type is a union other than null and one type."""
    return avro.kind == "union" and sum(part.kind != "null" for part in avro.parts) > 1


def optional_part(avro: AvroType, path: str, where: str) -> tuple[int, AvroType]:
    """The branch byte of null (0 or 2, -1 without union), and the non-null type.

    Raises:
        UnsupportedFeatureError: the type is a union other than null and one type; the message names the column.
    """
    if avro.kind != "union":
        return -1, avro
    kinds = [part.kind for part in avro.parts]
    if len(kinds) != 2 or kinds.count("null") != 1:
        raise UnsupportedFeatureError(f"Column {path} in {where} is a union of {', '.join(kinds)}.")
    null = kinds.index("null")
    return 2 * null, avro.parts[1 - null]


def branch_names(union: AvroType) -> list[str]:
    """The names of the branches of a union, including null, in order."""
    short = [(part.name or part.kind).rpartition(".")[2] for part in union.parts]
    return [
        part.name if part.name and short.count(name) > 1 else name
        for part, name in zip(union.parts, short, strict=True)
    ]


def union_members(union: AvroType) -> list[tuple[str, AvroType]]:
    """Names and types of the non-null branches, in order."""
    named_parts = zip(branch_names(union), union.parts, strict=True)
    return [(name, part) for name, part in named_parts if part.kind != "null"]


def member_branches(union: AvroType, members: Sequence[str]) -> list[int]:
    """The branch of each member of a struct, -1 for none: by number if all names are numbered, else by name."""
    called = branch_names(union)
    # Spark also names records within a union member0 ..., by position.
    if all(_NUMBERED.fullmatch(name) for name in members):
        numbers = itertools.count()
        called = ["null" if part.kind == "null" else f"member{next(numbers)}" for part in union.parts]
    return [called.index(name) if name != "null" and name in called else -1 for name in members]


def arrow_type(avro: AvroType, path: str, where: str) -> pa.DataType:
    """The Arrow type of any type but null, or of its union with null; members of unions have the names of branches.

    Raises:
        UnsupportedFeatureError, CorruptTableError: see :func:`~hudi_fast.formats.avro.schema.avro_to_arrow`.
    """
    if is_general_union(avro):
        return pa.struct([pa.field(name, arrow_type(part, path, where)) for name, part in union_members(avro)])
    _, inner = optional_part(avro, path, where)
    if inner.kind == "record":
        return pa.struct([_arrow_field(each.name, each.type, path, where) for each in inner.fields])
    if inner.kind == "array":
        return pa.list_(_arrow_field("element", inner.parts[0], path, where))
    if inner.kind == "map":
        return pa.map_(pa.string(), _arrow_field("value", inner.parts[0], path, where))
    return plain_arrow_type(inner, path, where)


def _arrow_field(name: str, avro: AvroType, path: str, where: str) -> pa.Field:
    nullable = avro.kind == "union" and any(part.kind == "null" for part in avro.parts)
    return pa.field(name, arrow_type(avro, f"{path}.{name}" if path else name, where), nullable)


def plain_arrow_type(avro: AvroType, path: str, where: str) -> pa.DataType:
    """The storable Arrow type of a primitive, fixed or enum (``avro.schema``).

    Raises:
        UnsupportedFeatureError, CorruptTableError: see :func:`~hudi_fast.formats.avro.schema.avro_to_arrow`.
    """
    record = {"type": "record", "name": "column", "fields": [{"name": path, "type": avro.json}]}
    return avro_to_arrow(record, where).field(0).type


def min_bytes(avro: AvroType, within: bool = False) -> int:
    """The minimum bytes of a value of the type, or fewer if records contain each other.

    ``within``: whether the type is part of a record that contains itself; such a record counts as no byte there.
    """
    if avro.kind == "recursive":
        return 0 if within else min_bytes(avro.whole[0], True)
    if avro.kind == "union":
        return 1 + min(min_bytes(part, within) for part in avro.parts)
    if avro.kind == "record":
        return sum(min_bytes(each.type, within) for each in avro.fields)
    if avro.kind == "fixed":
        return avro.size
    return _FIXED_SIZES.get(avro.kind, 1)


# ---- walk programs


@dataclass(frozen=True, slots=True, eq=False)
class WalkProgram:
    """A program that skips values, see ``kernels.avro_structure``.

    Attributes:
        steps: int64[].
        depth: maximum levels of nested lists.
    """

    steps: npt.NDArray[np.int64]
    depth: int


def walk_program(types: tuple[AvroType, ...], path: str, where: str, marked: bool = False) -> WalkProgram:
    """The program that moves past one value of each type in turn.

    ``path`` and ``where`` name the column and the schema in messages. ``marked`` records the positions of the items,
    for a single array or map, or its union with null.

    Raises:
        UnsupportedFeatureError: items of an array take no bytes, or a type has too many parts.
    """
    emitting = _Emitting(f"Column {path} in {where}")
    depth = 0
    for each in types:
        depth = max(depth, _emit(each, emitting, marked))
    if emitting.bodies:
        depth *= MAX_CALLS + 1
    return WalkProgram(np.array([*emitting.steps, END], np.int64), depth)


@dataclass(frozen=True, slots=True)
class _Emitting:
    """A program so far.

    Attributes:
        column: name of the column, for messages.
        steps: steps of the program so far.
        bodies: first step of each record that contains itself, by the identity of its ``whole``.
    """

    column: str
    steps: list[int] = field(default_factory=list)
    bodies: dict[int, int] = field(default_factory=dict)


def _emit(avro: AvroType, emitting: _Emitting, marked: bool = False) -> int:
    """Append the steps for one value; return the depth of nested lists in it."""
    steps = emitting.steps
    if len(steps) > _MAX_STEPS:
        raise UnsupportedFeatureError(f"{emitting.column} has a type of more than {_MAX_STEPS} parts.")
    if avro.kind in ("int", "long", "enum"):
        steps.append(VARINT)
    elif avro.kind in ("string", "bytes"):
        steps.append(BYTES)
    elif avro.kind in _FIXED_SIZES or avro.kind == "fixed":
        _emit_fixed(_FIXED_SIZES.get(avro.kind, avro.size), steps)
    elif avro.kind == "recursive" or avro.whole:
        return _emit_recursive(avro.whole[0], emitting)
    elif avro.kind == "record":
        return max((_emit(each.type, emitting) for each in avro.fields), default=0)
    elif avro.kind == "union":
        return _emit_union(avro, emitting, marked)
    else:
        return _emit_list(avro, emitting, marked)
    return 0


def _emit_fixed(size: int, steps: list[int]) -> None:
    if size:
        steps += (FIXED, size)


def _emit_recursive(record: AvroType, emitting: _Emitting) -> int:
    """Append a call of the record's steps; the first call also appends these steps, after itself."""
    steps, known = emitting.steps, emitting.bodies.get(id(record.whole))
    if known is not None:
        steps += (CALL, known)
        return 0
    start = len(steps)
    steps += (CALL, start + 4, JUMP, 0)
    emitting.bodies[id(record.whole)] = start + 4
    depth = max((_emit(each.type, emitting) for each in record.fields), default=0)
    steps.append(RETURN)
    steps[start + 3] = len(steps)
    return depth


def _emit_union(avro: AvroType, emitting: _Emitting, marked: bool) -> int:
    kinds, steps = [part.kind for part in avro.parts], emitting.steps
    if len(kinds) == 2 and kinds.count("null") == 1:
        null = kinds.index("null")
        start = len(steps)
        steps += (NULLABLE, 2 * null, 0)
        depth = _emit(avro.parts[1 - null], emitting, marked)
        steps[start + 2] = len(steps)
        return depth
    start = len(steps)
    steps += (UNION, len(kinds), *([0] * len(kinds)))
    depth, jumps = 0, []
    for branch, inner in enumerate(avro.parts):
        steps[start + 2 + branch] = len(steps)
        depth = max(depth, _emit(inner, emitting))
        jumps.append(len(steps) + 1)
        steps += (JUMP, 0)
    for jump in jumps:
        steps[jump] = len(steps)
    return depth


def _emit_list(avro: AvroType, emitting: _Emitting, marked: bool) -> int:
    steps = emitting.steps
    if avro.kind == "array" and min_bytes(avro.parts[0]) == 0:
        # a damaged item count could not be detected
        raise UnsupportedFeatureError(f"{emitting.column} is an array whose items take no bytes.")
    start = len(steps)
    steps += (LIST, 0, ITEM) if marked else (LIST, 0)
    if avro.kind == "map":
        steps.append(BYTES)
    depth = _emit(avro.parts[0], emitting)
    steps[start + 1] = len(steps)
    steps += (NEXT, start + 2, int(marked))
    return depth + 1


def default_array(avro: AvroType, default: Any, kind: pa.DataType, path: str) -> pa.Array | None:
    """The default of a field as an array of one value of type ``kind``; None for null.

    ``default`` is a JSON value or null; for a union it is a value of the first branch. ``path`` names the column in
    messages.

    Raises:
        CorruptTableError: the default does not have the type.
        UnsupportedFeatureError: the default takes more than 64 KiB, in every row that lacks the column.
    """
    if default is None:
        return None
    try:
        made = pa.array([_default(avro, default)], kind)
    except (pa.ArrowException, ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        shown = repr(default)[:100]
        raise CorruptTableError(f"The default {shown} of column {path} does not have its type, {kind}.") from error
    if made.nbytes > MAX_UNSTORED:
        raise UnsupportedFeatureError(
            f"The default of column {path} takes {made.nbytes} bytes in each row that lacks it; at most {MAX_UNSTORED} "
            "are supported."
        )
    return made


def _default(avro: AvroType, value: Any) -> Any:
    if value is None:
        return None
    if is_general_union(avro):
        name, part = union_members(avro)[0]
        return dict.fromkeys((name, "member0"), _default(part, value))  # the struct has one of the names
    if avro.kind == "union":
        return _default(next(part for part in avro.parts if part.kind != "null"), value)
    if avro.kind == "record":
        return {each.name: _default(each.type, value.get(each.name, each.default)) for each in avro.fields}
    if avro.kind == "array":
        return [_default(avro.parts[0], each) for each in value]
    if avro.kind == "map":
        return [(key, _default(avro.parts[0], each)) for key, each in value.items()]
    if avro.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        declared = avro.json if isinstance(avro.json, Mapping) else {}
        if declared.get("logicalType") == "decimal":
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-int(declared.get("scale", 0)))
        return raw
    return value
