"""Write columns of Arrow batches as Avro records, by a plan: first sizes, then bytes.

::

    measure_record(plan, columns, sizes)    ──►  tree of states: the columns' buffers; adds up the size of each record
    write_record(state, first, after, ...)       writes the bytes of rows first..after at their cursors

Rows are written in spans that stay in the CPU's cache. The items of a list are rows of the next level, with their own
cursors. Null rows of a struct are removed from its children, so deeper levels do not check for them.

Plans that write the columns of Arrow batches as the columns of an Avro schema; resolved once per schema.

A walk over the writer's type and the batch's type gives a tree, in the writer's order, that ``avro.encoding`` executes.
Columns are matched by name and must have the type that ``avro.schema`` assigns to the writer's type (or a dictionary of
it); ``schema.conform`` converts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, SchemaMismatchError
from hudi_fast.formats.avro.types import (
    AvroField,
    AvroType,
    arrow_type,
    branch_names,
    default_array,
    is_general_union,
    member_branches,
    optional_part,
    plain_arrow_type,
)
from hudi_fast.formats.logical_types import is_vector, packed, vector_width
from hudi_fast.kernels import avro_encode
from hudi_fast.values import dataclass

__all__ = [
    "WriteItems",
    "WriteLeaf",
    "WriteNode",
    "WriteRecord",
    "WriteUnion",
    "measure_record",
    "plan_columns",
    "write_record",
]


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


_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Int64s: TypeAlias = npt.NDArray[np.int64]

_NO_BYTES = np.empty(0, np.uint8)
_LOW_HALF = 2**64 - 1


# ---- sizes


@dataclass(frozen=True, slots=True, eq=False)
class _LeafState:
    """``values``: int64[n], uint8[n * width] or uint64[2 * n]; strings also have ``offsets`` int32[n + 1]."""

    node: WriteLeaf
    valid: _Bytes
    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _ItemsState:
    """``offsets`` int32[n + 1] from 0; ``bounds`` int64[m + 1], cumulative sizes of the m items."""

    node: WriteItems
    valid: _Bytes
    offsets: npt.NDArray[np.int32]
    bounds: _Int64s
    item: _State


@dataclass(frozen=True, slots=True, eq=False)
class _RecordState:
    """``present``: int64[k], the non-null rows; the fields have only these. None if no row is null."""

    node: WriteRecord
    valid: _Bytes
    present: _Int64s | None
    fields: tuple[_State, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _UnionState:
    """``branches``: int64[n]; ``members``: per member int64[k], the rows with that branch, and their values."""

    node: WriteUnion
    branches: _Int64s
    members: tuple[tuple[_Int64s, _State], ...]


@dataclass(frozen=True, slots=True)
class _NullState:
    """A column of nulls; ``branch`` is the branch byte of null."""

    branch: int


_State: TypeAlias = _LeafState | _ItemsState | _RecordState | _UnionState | _NullState


def measure_record(plan: WriteRecord, columns: Sequence[pa.Array], sizes: _Int64s) -> _RecordState:
    """Add the size of each record to ``sizes`` int64[n]; return the state that writing needs.

    Raises:
        InvalidDataError: the writer does not allow a null, an enum lacks a text, or a decimal does not fit.
    """
    return _RecordState(plan, _NO_BYTES, None, _measure_fields(plan, columns, sizes))


def _measure_fields(plan: WriteRecord, columns: Sequence[pa.Array], sizes: _Int64s) -> tuple[_State, ...]:
    made: list[_State] = []
    for node, source in zip(plan.fields, plan.sources, strict=True):
        if source is None:
            sizes += 1
            made.append(_NullState(2 * node.null if isinstance(node, WriteUnion) else node.null))
        elif isinstance(source, int):
            made.append(_measure(node, columns[source], sizes))
        else:
            made.append(_measure(node, source.take(pa.array(np.zeros(len(sizes), np.int64))), sizes))
    return tuple(made)


def _measure(node: WriteNode, array: pa.Array, sizes: _Int64s) -> _State:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    valid = _valid_flags(array)
    if isinstance(node, WriteUnion):
        return _measure_union(node, array, valid, sizes)
    if node.null >= 0:
        sizes += 1
    elif valid.size:
        row = int(np.flatnonzero(valid == 0)[0])
        raise InvalidDataError(f"Column {node.path!r} holds a null (row {row}); the Avro schema allows none there.")
    if isinstance(node, WriteLeaf):
        return _measure_leaf(node, array, valid, sizes)
    if isinstance(node, WriteItems):
        return _measure_list(node, array, valid, sizes)
    children = [array.field(i) for i in range(array.type.num_fields)]
    if not valid.size:
        return _RecordState(node, valid, None, _measure_fields(node, children, sizes))
    present = np.flatnonzero(valid)
    kept = pa.array(present)
    inner = np.zeros(len(present), np.int64)
    fields = _measure_fields(node, [child.take(kept) for child in children], inner)
    sizes[present] += inner
    return _RecordState(node, valid, present, fields)


def _measure_leaf(node: WriteLeaf, array: pa.Array, valid: _Bytes, sizes: _Int64s) -> _LeafState:
    if node.code == "bytes":
        offsets, data = _varlen(array)
        avro_encode.measure_texts(offsets, valid, sizes)
        return _LeafState(node, valid, data, offsets)
    if node.code in ("int", "long"):
        longs = _longs(node, array)
        avro_encode.measure_longs(longs, valid, sizes)
        return _LeafState(node, valid, longs)
    if node.code == "decimal" and node.width < 0:
        numbers = _checked_decimals(node, array, valid)
        avro_encode.measure_decimals(numbers, valid, sizes)
        return _LeafState(node, valid, numbers)
    sizes += node.width * valid.astype(np.int64) if valid.size else node.width
    if node.code == "decimal":
        return _LeafState(node, valid, _checked_decimals(node, array, valid))
    if node.code == "boolean":
        return _LeafState(node, valid, _bits(array.buffers()[1], array.offset, len(array)))
    return _LeafState(node, valid, _items(packed(array) if is_vector(node.kind) else array, node.width, np.uint8))


def _measure_list(node: WriteItems, array: pa.Array, valid: _Bytes, sizes: _Int64s) -> _ItemsState:
    offsets, items = _visible_items(array, valid)
    inner = np.zeros(len(items), np.int64)
    item = _measure(node.item, items, inner)
    bounds = _summed(inner)
    avro_encode.measure_items(offsets, bounds, valid, sizes)
    return _ItemsState(node, valid, offsets, bounds, item)


def _measure_union(node: WriteUnion, array: pa.Array, valid: _Bytes, sizes: _Int64s) -> _UnionState:
    branches = np.full(len(array), node.null, np.int64)
    filled = np.zeros(len(array), np.uint8)
    members = []
    for position, (branch, inner) in enumerate(zip(node.branches, node.members, strict=True)):
        child = array.field(position)
        if child.null_count == len(child):
            continue
        own = _valid_flags(child)
        flags = own if own.size else np.ones(len(array), np.uint8)
        flags = flags * valid if valid.size else flags
        filled += flags
        present = np.flatnonzero(flags)
        if not len(present):
            continue
        branches[present] = branch
        taken = np.zeros(len(present), np.int64)
        members.append((present, _measure(inner, child.take(pa.array(present)), taken)))
        sizes[present] += taken
    least = 0 if node.null >= 0 else 1
    wrong = (filled > 1) | (filled < least)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidDataError(
            f"Column {node.path!r} has {filled[row]} values (row {row}); a union holds one"
            + (", and this union allows no null." if least else ", or none.")
        )
    avro_encode.measure_longs(branches, _NO_BYTES, sizes)
    return _UnionState(node, branches, tuple(members))


def _summed(sizes: _Int64s) -> _Int64s:
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


# ---- buffers of arrays


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> _Bytes:
    if buffer is None or count == 0:
        return np.zeros(count, np.uint8)
    packed = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    skipped = offset % 8
    return np.unpackbits(packed, count=skipped + count, bitorder="little")[skipped:]


def _valid_flags(array: pa.Array) -> _Bytes:
    """uint8[n], 0 for null; empty without nulls."""
    if array.null_count == 0:
        return _NO_BYTES
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.uint8)
    return _bits(array.buffers()[0], array.offset, len(array))


def _items(array: pa.Array, width: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """The n values of ``width`` bytes each as an array of ``dtype``."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, np.uint8)[array.offset * width : (array.offset + len(array)) * width].view(dtype)


def _varlen(array: pa.Array) -> tuple[npt.NDArray[np.int32], _Bytes]:
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(1, np.int32), _NO_BYTES
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return bounds, _NO_BYTES if data is None else np.frombuffer(data, np.uint8)


def _longs(node: WriteLeaf, array: pa.Array) -> _Int64s:
    if not node.symbols:
        return _items(array, 8, np.int64) if node.code == "long" else _items(array, 4, np.int32).astype(np.int64)
    found = pc.index_in(array, pa.array(node.symbols, pa.string()))
    if found.null_count > array.null_count:
        row = pc.index(pc.and_(pc.is_null(found), pc.is_valid(array)), True).as_py()
        raise InvalidDataError(f"Column {node.path!r} holds {array[row].as_py()!r} (row {row}), not in its enum.")
    indices: _Int64s = found.fill_null(0).to_numpy().astype(np.int64)
    return indices


def _checked_decimals(node: WriteLeaf, array: pa.Array, valid: _Bytes) -> npt.NDArray[np.uint64]:
    numbers = _items(array, 16, np.uint64)
    limit = 10**node.kind.precision - 1
    width = 16 if node.width < 0 else node.width
    bad = avro_encode.find_wide_decimal(numbers, valid, width, np.uint64(limit >> 64), np.uint64(limit & _LOW_HALF))
    if bad >= 0:
        raise InvalidDataError(
            f"Column {node.path!r} holds {array[int(bad)].as_py()} (row {bad}), which does not fit {node.kind} "
            f"on {width} bytes."
        )
    return numbers


def _visible_items(array: pa.Array, valid: _Bytes) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Offsets int32[n + 1] from 0, and the items in their range; entries for maps."""
    if pa.types.is_map(array.type):
        entries = pa.field("entries", pa.struct([array.type.key_field, array.type.item_field]), nullable=False)
        array = pa.Array.from_buffers(
            pa.list_(entries), len(array), array.buffers()[:2], array.null_count, array.offset, [array.values]
        )
    if len(array) == 0:
        return np.zeros(1, np.int32), array.values.slice(0, 0)
    offsets = _items(array, 4, np.int32) if array.buffers()[1] is None else _list_offsets(array)
    lengths = np.diff(offsets)
    if valid.size and lengths[valid == 0].any():
        lengths = lengths * valid
        bounds = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=bounds[1:])
        return bounds, array.flatten()
    first = int(offsets[0])
    return offsets - offsets[0], array.values.slice(first, int(offsets[-1]) - first)


def _list_offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


# ---- writing


def write_record(state: _RecordState, first: int, after: int, pos: _Int64s, ends: _Int64s, out: _Bytes) -> None:
    """Write the records of rows ``first`` up to ``after``, excluded, from a state of :func:`measure_record`.

    ``pos`` int64[after - first], the starts of the records, moves to their ``ends`` int64[after - first]; ``out``
    uint8[] is filled at these positions.
    """
    for field in state.fields:
        _write(field, first, after, pos, ends, out)


def _write(state: _State, first: int, after: int, pos: _Int64s, ends: _Int64s, out: _Bytes) -> None:
    if isinstance(state, _NullState):
        avro_encode.write_branches(np.zeros(after - first, np.uint8), state.branch, pos, out)
        return
    if isinstance(state, _UnionState):
        _write_union(state, first, after, pos, ends, out)
        return
    valid = state.valid[first:after]
    if isinstance(state, _LeafState):
        _write_leaf(state, valid, first, after, pos, ends, out)
    elif isinstance(state, _ItemsState):
        low, high = int(state.offsets[first]), int(state.offsets[after])
        item_pos, item_ends = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        avro_encode.write_items(
            state.offsets[first : after + 1],
            state.bounds[low : high + 1],
            valid,
            state.node.null,
            pos,
            item_pos,
            item_ends,
            out,
        )
        _write(state.item, low, high, item_pos, item_ends, out)
    else:
        _write_struct(state, valid, first, after, pos, ends, out)


def _write_struct(
    state: _RecordState, valid: _Bytes, first: int, after: int, pos: _Int64s, ends: _Int64s, out: _Bytes
) -> None:
    if state.node.null >= 0:
        avro_encode.write_branches(valid, state.node.null, pos, out)
    if state.present is None:
        write_record(state, first, after, pos, ends, out)
        return
    low, high = np.searchsorted(state.present, (first, after))
    rows = state.present[low:high] - first
    inner = pos[rows]
    write_record(state, int(low), int(high), inner, ends[rows], out)
    pos[rows] = inner


def _write_union(state: _UnionState, first: int, after: int, pos: _Int64s, ends: _Int64s, out: _Bytes) -> None:
    avro_encode.write_longs(state.branches[first:after], _NO_BYTES, -1, pos, ends, out)
    for present, member in state.members:
        low, high = np.searchsorted(present, (first, after))
        rows = present[low:high] - first
        inner = pos[rows]
        _write(member, int(low), int(high), inner, ends[rows], out)
        pos[rows] = inner


def _write_leaf(
    state: _LeafState, valid: _Bytes, first: int, after: int, pos: _Int64s, ends: _Int64s, out: _Bytes
) -> None:
    node, values = state.node, state.values
    if state.offsets is not None:
        avro_encode.write_texts(state.offsets[first : after + 1], values, valid, node.null, pos, ends, out)
    elif node.code in ("int", "long"):
        avro_encode.write_longs(values[first:after], valid, node.null, pos, ends, out)
    elif node.code == "decimal":
        avro_encode.write_decimals(values[2 * first : 2 * after], node.width, valid, node.null, pos, ends, out)
    else:
        span = values[first * node.width : after * node.width]
        avro_encode.write_fixed(span, node.width, valid, node.null, pos, out)
