"""Plans that read a writer's Avro records as the columns of a reader's Arrow schema.

Schemas are resolved once, here, into a tree that ``avro.columns`` executes on any number of records. A record is a
sequence of *steps* in the writer's order, the only order in which its bytes can be read: a :class:`Skip` passes
neighbouring unrequested columns; a :class:`Leaf`, :class:`Items`, :class:`Record` or :class:`Union` reads one column.
*Places* list, in the reader's order, the step that reads each column, or the fill for a column that the writer lacks.

::

    writer  a: long | b: string | c: array<int> | d: double        reader  d: float64, a: float64, e: string
    steps   Leaf a  | Skip b, c                 | Leaf d           places  step 2, step 0, Fill(null)

Resolution follows Avro: fields by name (then by the reader's aliases), numbers promoted, absent fields filled with the
reader's default or null. ``schema.promotion`` defines the promotions beyond Avro's. The caller passes conversions of
numbers to text (``promote``), because they belong to a higher layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from hudi_fast.errors import SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.promotion import Convert, Promote, built_in_conversion
from hudi_fast.formats.avro.types import (
    AvroField,
    AvroType,
    WalkProgram,
    branch_names,
    default_array,
    is_general_union,
    member_branches,
    optional_part,
    plain_arrow_type,
    walk_program,
)
from hudi_fast.formats.logical_types import is_vector, unpacked
from hudi_fast.values import dataclass

__all__ = ["Fill", "Items", "Leaf", "Node", "Record", "Skip", "Union", "plan_rows"]

_TEXT = (pa.string(), pa.binary())


@dataclass(frozen=True, slots=True)
class Leaf:
    """Read a scalar column.

    Attributes:
        path: dotted path of the column, for messages.
        code: encoding of the bytes: boolean, int, long, fixed (``width`` bytes), decimal, bytes (with a length prefix).
        null: the branch byte of null, 0 or 2; -1 without union.
        required: whether the reader does not allow nulls.
        kind: Arrow type of the decoded values.
        width: bytes of a fixed or a decimal; -1 for a decimal with a length prefix.
        symbols: symbols of an enum, which is read as ints.
        convert: conversion from ``kind`` (from strings for an enum) to the reader's type; None if they are the same.
    """

    path: str
    code: str
    null: int
    required: bool
    kind: pa.DataType
    width: int = 0
    symbols: tuple[str, ...] = ()
    convert: Convert | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """Move past columns."""

    program: WalkProgram


@dataclass(frozen=True, slots=True)
class Fill:
    """A column that the writer does not have.

    Attributes:
        kind: Arrow type.
        value: an array of one value; None for null.
    """

    kind: pa.DataType
    value: pa.Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Read a record; ``steps``, ``places``: see the module docstring; ``kind``: the reader's struct.

    ``whole``: whether the steps reach the end of the record; columns after the last requested one are not skipped.
    """

    path: str
    null: int
    required: bool
    kind: pa.DataType
    steps: tuple[Leaf | Items | Record | Union | Skip, ...]
    places: tuple[int | Fill, ...]
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Read an array or a map as the reader's ``kind``; ``item`` reads each item or entry, ``program`` finds them."""

    path: str
    null: int
    required: bool
    kind: pa.DataType
    item: Leaf | Items | Record | Union
    program: WalkProgram


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Read a union of several types as the reader's struct ``kind``, which has at most one non-null member.

    Attributes:
        path: dotted path of the column, for messages.
        null: the branch of null; -1 if the union has none.
        required: whether the reader does not allow nulls.
        kind: the reader's struct.
        names: names of the branches, for messages.
        members: plan of each branch; None for null and for branches without a member in the reader.
        places: branch of each member of the reader; -1 for a branch that the writer does not have.
    """

    path: str
    null: int
    required: bool
    kind: pa.DataType
    names: tuple[str, ...]
    members: tuple[Leaf | Items | Record | Union | None, ...]
    places: tuple[int, ...]


Node: TypeAlias = Leaf | Items | Record | Union


@dataclass(frozen=True, slots=True)
class _Resolving:
    where: str
    promote: Promote | None
    problems: list[str]


def plan_rows(
    writer: AvroType, reader: pa.Schema, where: str, reader_avro: AvroType | None, promote: Promote | None
) -> Record:
    """Resolve a writer's record type against a reader's schema.

    Args:
        writer: a record.
        reader: requested columns, of storable types.
        where: location of the writer's schema, for messages.
        reader_avro: the reader's own Avro record, for defaults and aliases; None if there are none.
        promote: conversions that precede the built-in conversions; see :data:`Promote`.

    Raises:
        SchemaMismatchError: columns cannot be converted to the reader's columns; the message lists all of them.
        UnsupportedFeatureError: hudi_fast cannot hold a requested column.
    """
    resolving = _Resolving(where, promote, [])
    target = pa.struct([each.remove_metadata() for each in reader])
    plan = _record(writer, target, -1, True, "", reader_avro, resolving, trailing=False)
    if resolving.problems:
        listed = "\n".join(f"  - {each}" for each in resolving.problems)
        count = len(resolving.problems)
        raise SchemaMismatchError(
            f"The records of {where} do not fit the requested columns ({count} problem(s)):\n{listed}"
        )
    return plan


def _record(
    writer: AvroType,
    target: pa.DataType,
    null: int,
    required: bool,
    path: str,
    own: AvroType | None,
    resolving: _Resolving,
    trailing: bool = True,
) -> Record:
    """``trailing``: also skip unrequested columns at the end, because other values follow the record."""
    fields = [target.field(i) for i in range(target.num_fields)]
    declared = {each.name: each for each in own.fields} if own is not None else {}
    sources = _sources(writer, fields, declared)
    steps: list[Node | Skip] = []
    at: dict[int, int] = {}
    unwanted: list[AvroType] = []
    wanted = {position: index for index, position in enumerate(sources) if position is not None}
    for position, field in enumerate(writer.fields):
        if position not in wanted:
            unwanted.append(field.type)
            continue
        if unwanted:
            steps.append(Skip(walk_program(tuple(unwanted), path or "of the row", resolving.where)))
            unwanted = []
        column = fields[wanted[position]]
        inner = declared[column.name].type if column.name in declared else None
        node = _node(field.type, column, _under(path, column.name), inner, resolving)
        at[wanted[position]] = len(steps)
        if node is not None:
            steps.append(node)
    if unwanted and trailing:
        steps.append(Skip(walk_program(tuple(unwanted), path, resolving.where)))
    places = tuple(
        at[index] if index in at else _fill(column, declared.get(column.name), _under(path, column.name), resolving)
        for index, column in enumerate(fields)
    )
    return Record(path, null, required, target, tuple(steps), places, trailing or not unwanted)


def _sources(writer: AvroType, fields: list[pa.Field], declared: Mapping[str, AvroField]) -> list[int | None]:
    """The position of the writer's field for each field of the reader."""
    positions = {each.name: position for position, each in enumerate(writer.fields)}
    found = []
    taken = {each.name for each in fields}
    for each in fields:
        position = positions.get(each.name)
        if position is None and each.name in declared:
            aliases = (alias.rpartition(".")[2] for alias in declared[each.name].aliases)
            position = next((positions[alias] for alias in aliases if alias in positions and alias not in taken), None)
        found.append(position)
    return found


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _node(writer: AvroType, column: pa.Field, path: str, own: AvroType | None, resolving: _Resolving) -> Node | None:
    """The plan for one value; on failure None, with a message added to ``resolving.problems``."""
    if is_general_union(writer):
        return _union(writer, column, path, own, resolving)
    null, inner = optional_part(writer, path, resolving.where)
    own = _beside_null(own)
    required = not column.nullable and null >= 0
    target = column.type
    if inner.kind == "recursive":
        raise UnsupportedFeatureError(
            f"Column {path} in {resolving.where} makes the record {inner.name} contain itself."
        )
    if inner.kind == "record" and pa.types.is_struct(target):
        return _record(inner, target, null, required, path, _if_kind(own, "record"), resolving)
    if inner.kind == "array" and pa.types.is_list(target):
        part = _part_of(own, "array")
        item = _node(inner.parts[0], target.value_field, f"{path}.element", part, resolving)
        program = walk_program((writer,), path, resolving.where, marked=True)
        return None if item is None else Items(path, null, required, target, item, program)
    if inner.kind == "map" and pa.types.is_map(target):
        return _map(writer, target, null, required, path, _part_of(own, "map"), resolving)
    plain = not pa.types.is_nested(target) or is_vector(target)
    if inner.kind in ("record", "array", "map") or not plain:
        resolving.problems.append(f"column {path!r} is {_article(inner.kind)} in the records, requested as {target}")
        return None
    return _leaf(inner, target, null, required, path, resolving)


def _union(writer: AvroType, column: pa.Field, path: str, own: AvroType | None, resolving: _Resolving) -> Union | None:
    target, names = column.type, tuple(branch_names(writer))
    fields = list(target) if pa.types.is_struct(target) else []
    places = member_branches(writer, [each.name for each in fields])
    if max(places, default=-1) < 0:
        listed = ", ".join(name for name in names if name != "null")
        resolving.problems.append(f"column {path!r} is a union of {listed} in the records, requested as {target}")
        return None
    declared = member_branches(own, [each.name for each in fields]) if own is not None and own.kind == "union" else []
    members: list[Node | None] = [None] * len(names)
    for at, (field, branch) in enumerate(zip(fields, places, strict=True)):
        if branch >= 0:
            inner = own.parts[declared[at]] if own is not None and declared and declared[at] >= 0 else None
            members[branch] = _node(writer.parts[branch], field, _under(path, field.name), inner, resolving)
    null = names.index("null") if "null" in names else -1
    return Union(path, null, not column.nullable and null >= 0, target, names, tuple(members), tuple(places))


def _map(
    writer: AvroType,
    target: pa.DataType,
    null: int,
    required: bool,
    path: str,
    own: AvroType | None,
    resolving: _Resolving,
) -> Items | None:
    _, inner = optional_part(writer, path, resolving.where)
    key = _leaf(AvroType("string", "string"), target.key_type, -1, False, f"{path}.key", resolving)
    value = _node(inner.parts[0], target.item_field, f"{path}.value", own, resolving)
    if key is None or value is None:
        return None
    entries = pa.struct([target.key_field, target.item_field])
    entry = Record(path, -1, False, entries, (key, value), (0, 1), True)
    program = walk_program((writer,), path, resolving.where, marked=True)
    return Items(path, null, required, target, entry, program)


def _beside_null(own: AvroType | None) -> AvroType | None:
    if own is None or own.kind != "union":
        return own
    return next((part for part in own.parts if part.kind != "null"), None)


def _if_kind(own: AvroType | None, kind: str) -> AvroType | None:
    return own if own is not None and own.kind == kind else None


def _part_of(own: AvroType | None, kind: str) -> AvroType | None:
    return own.parts[0] if own is not None and own.kind == kind else None


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


# ---- scalar columns


def _leaf(
    writer: AvroType, target: pa.DataType, null: int, required: bool, path: str, resolving: _Resolving
) -> Leaf | None:
    natural = plain_arrow_type(writer, path, resolving.where)
    if writer.kind == "enum":
        convert = None if target == pa.string() else _conversion(natural, target, path, resolving)
        if convert is None and target != pa.string():
            return None
        return Leaf(path, "int", null, required, pa.int32(), 0, writer.symbols, convert)
    if is_vector(natural) or is_vector(target):
        if natural != target:
            resolving.problems.append(f"column {path!r} is {natural} in the records, requested as {target}")
            return None
        kind = pa.binary(writer.size)
        return Leaf(path, "fixed", null, required, kind, writer.size, (), partial(unpacked, target=target))
    kind = natural
    if (natural in _TEXT and target in _TEXT) or (natural == pa.int64() and pa.types.is_timestamp(target)):
        kind = target  # same bytes, other type
    convert = None
    if kind != target:
        convert = _conversion(kind, target, path, resolving)
        if convert is None:
            return None
    code, width = _code(writer, kind)
    return Leaf(path, code, null, required, kind, width, (), convert)


def _code(writer: AvroType, kind: pa.DataType) -> tuple[str, int]:
    if pa.types.is_decimal(kind):
        return "decimal", writer.size if writer.kind == "fixed" else -1
    if writer.kind in ("float", "double", "fixed"):
        return "fixed", kind.bit_width // 8
    return ("bytes", 0) if writer.kind in ("string", "bytes") else (writer.kind, 0)


def _conversion(source: pa.DataType, target: pa.DataType, path: str, resolving: _Resolving) -> Convert | None:
    found = None if resolving.promote is None else resolving.promote(source, target, path)
    if found is None:
        found = built_in_conversion(source, target)
    if found is None:
        resolving.problems.append(f"column {path!r} is {source} in the records, requested as {target}")
    return found


# ---- columns that the writer lacks


def _fill(column: pa.Field, declared: AvroField | None, path: str, resolving: _Resolving) -> Fill:
    if declared is not None and declared.has_default:
        return Fill(
            column.type, default_array(declared.type, declared.default, column.type, f"{path} in {resolving.where}")
        )
    if not column.nullable:
        resolving.problems.append(f"column {path!r} ({column.type}, not null) is absent from the records")
    return Fill(column.type, None)
