"""Plans that write the columns of Arrow batches as the columns of an Avro schema; resolved once per schema.

A walk over the writer's type and the batch's type gives a tree, in the writer's order, that ``avro.encoding`` executes.
Columns are matched by name and must have the type that ``avro.schema`` assigns to the writer's type (or a dictionary of
it); ``schema.conform`` converts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.avro.defaults import default_array
from hudi_fast.formats.avro.types import (
    AvroField,
    AvroType,
    arrow_type,
    branch_names,
    is_general_union,
    member_branches,
    optional_part,
    plain_arrow_type,
)
from hudi_fast.formats.vectors import is_vector, vector_width

__all__ = ["WriteItems", "WriteLeaf", "WriteNode", "WriteRecord", "WriteUnion", "plan_columns"]


@dataclass(frozen=True, slots=True)
class WriteLeaf:
    """Write a scalar column.

    Attributes:
        path: dotted path of the column, for messages.
        code: boolean, int, long, fixed (bytes unchanged), decimal, bytes (with a length prefix).
        null: the branch byte of null, 0 or 2; -1 without union.
        kind: Arrow type of the values.
        width: bytes of a fixed, boolean or decimal; -1 for a decimal with a length prefix.
        symbols: symbols of an enum, whose values are strings.
    """

    path: str
    code: str
    null: int
    kind: pa.DataType
    width: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteItems:
    """Write an array or a map; ``item`` writes each item or entry."""

    path: str
    null: int
    kind: pa.DataType
    item: WriteNode


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write a record.

    Attributes:
        path: dotted path of the column, for messages.
        null: the branch byte of null; -1 without union.
        fields: one plan per field of the writer.
        sources: source of each field: a column position, an array of one value to repeat (the default), or None (null).
    """

    path: str
    null: int
    fields: tuple[WriteNode, ...]
    sources: tuple[int | pa.Array | None, ...]


@dataclass(frozen=True, slots=True)
class WriteUnion:
    """Write a struct with at most one non-null member as a union of several types.

    Attributes:
        path: dotted path of the column, for messages.
        null: the branch of null; -1 if the union has none.
        branches: branch of each member of the struct.
        members: plan of each member's values.
    """

    path: str
    null: int
    branches: tuple[int, ...]
    members: tuple[WriteNode, ...]


WriteNode: TypeAlias = WriteLeaf | WriteItems | WriteRecord | WriteUnion


def plan_columns(schema: pa.Schema, writer: AvroType, where: str) -> WriteRecord:
    """Resolve the columns of batches against a writer's record.

    ``schema`` is the schema of the batches: storable types, or dictionaries of them. ``where`` names it in messages.

    Raises:
        SchemaMismatchError: columns are unknown, missing or of a wrong type; the message lists all of them.
        UnsupportedFeatureError: the writer has a type that hudi_fast cannot hold.
    """
    problems: list[str] = []
    plan = _record(list(schema), writer, -1, "", where, problems)
    if problems:
        listed = "\n".join(f"  - {each}" for each in problems)
        raise SchemaMismatchError(f"The columns do not fit {where} ({len(problems)} problem(s)):\n{listed}")
    return plan


def _record(
    columns: list[pa.Field], writer: AvroType, null: int, path: str, where: str, problems: list[str]
) -> WriteRecord:
    positions = {each.name: position for position, each in enumerate(columns)}
    known = {each.name for each in writer.fields}
    problems += (f"column {_under(path, each)!r} is not in the Avro schema" for each in positions if each not in known)
    if len(positions) != len(columns):
        problems.append(f"several columns of {path or 'the rows'} have the same name")
    fields: list[WriteNode] = []
    sources: list[int | pa.Array | None] = []
    for each in writer.fields:
        inner = _under(path, each.name)
        at = positions.get(each.name)
        kind = columns[at].type if at is not None else arrow_type(each.type, inner, where)
        node = _node(kind, each.type, inner, where, problems)
        if node is not None:
            fields.append(node)
            sources.append(at if at is not None else _absent(each, kind, inner, problems))
    return WriteRecord(path, null, tuple(fields), tuple(sources))


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _absent(field: AvroField, kind: pa.DataType, path: str, problems: list[str]) -> pa.Array | None:
    value = default_array(field.type, field.default, kind, path) if field.has_default else None
    nullable = field.type.kind == "union" and any(part.kind == "null" for part in field.type.parts)
    if value is None and not nullable:
        problems.append(f"column {path!r} is absent, does not allow nulls and has no default")
    return value


def _node(kind: pa.DataType, avro: AvroType, path: str, where: str, problems: list[str]) -> WriteNode | None:
    """The plan for one value; on failure None, with a message added to ``problems``."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_general_union(avro):
        return _union(kind, avro, path, where, problems)
    null, inner = optional_part(avro, path, where)
    if inner.kind == "record" and pa.types.is_struct(kind):
        return _record([kind.field(i) for i in range(kind.num_fields)], inner, null, path, where, problems)
    if inner.kind == "array" and pa.types.is_list(kind):
        item = _node(kind.value_type, inner.parts[0], f"{path}.element", where, problems)
        return None if item is None else WriteItems(path, null, kind, item)
    if inner.kind == "map" and pa.types.is_map(kind):
        key = _node(kind.key_type, AvroType("string", "string"), f"{path}.key", where, problems)
        value = _node(kind.item_type, inner.parts[0], f"{path}.value", where, problems)
        if key is None or value is None:
            return None
        return WriteItems(path, null, kind, WriteRecord(path, -1, (key, value), (0, 1)))
    if inner.kind not in ("record", "array", "map"):
        natural = plain_arrow_type(inner, path, where)
        if natural == kind:
            return _leaf(inner, kind, null, path)
        problems.append(f"column {path!r} is {kind}, but the Avro schema has {inner.json or inner.kind}")
    return None


def _union(kind: pa.DataType, avro: AvroType, path: str, where: str, problems: list[str]) -> WriteUnion | None:
    names = branch_names(avro)
    branches = member_branches(avro, [each.name for each in kind]) if pa.types.is_struct(kind) else []
    if min(branches, default=-1) < 0:
        listed = ", ".join(name for name in names if name != "null")
        problems.append(f"column {path!r} is {kind}, but the Avro schema has a union of {listed}")
        return None
    members = [
        _node(each.type, avro.parts[branch], _under(path, each.name), where, problems)
        for each, branch in zip(kind, branches, strict=True)
    ]
    null = names.index("null") if "null" in names else -1
    return WriteUnion(path, null, tuple(branches), tuple(each for each in members if each is not None))


def _leaf(avro: AvroType, kind: pa.DataType, null: int, path: str) -> WriteLeaf:
    if avro.kind == "enum":
        return WriteLeaf(path, "int", null, kind, 0, avro.symbols)
    if pa.types.is_decimal(kind):
        return WriteLeaf(path, "decimal", null, kind, avro.size if avro.kind == "fixed" else -1)
    if is_vector(kind):
        return WriteLeaf(path, "fixed", null, kind, vector_width(kind))
    if avro.kind in ("float", "double", "fixed"):
        return WriteLeaf(path, "fixed", null, kind, kind.bit_width // 8)
    if avro.kind == "boolean":
        return WriteLeaf(path, "boolean", null, kind, 1)
    return WriteLeaf(path, "bytes" if avro.kind in ("string", "bytes") else avro.kind, null, kind)
