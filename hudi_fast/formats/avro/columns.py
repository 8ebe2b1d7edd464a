"""Execute a plan of ``avro.program`` on records: one pass over each column produces Arrow arrays.

::

    Rows(data, pos, ends)  ── step by step; each step moves all cursors past its column ──►  arrays, one per step
        Leaf    one kernel: n values
        Record  branches of the union, then its own steps on the non-null rows
        Items   cursors of all items, then the item's plan on them: the next level of rows
        Union   branches, then the plan of each branch on its rows

Arrays are allocated at their exact size: a column of strings is measured before its bytes are copied. A fault in the
bytes names the column, the file and the byte.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.avro.program import Fill, Items, Leaf, Node, Record, Skip, Union
from hudi_fast.formats.avro.types import WalkProgram
from hudi_fast.formats.column_limits import clear_hidden_nulls, null_array
from hudi_fast.kernels import avro_decode, avro_structure
from hudi_fast.kernels._arrays import Int
from hudi_fast.values import dataclass

__all__ = ["BatchTooLargeError", "Rows", "corrupt", "read_record_columns"]

_LOW_HALF = 2**64 - 1
# Maximum bytes of a column whose values take few or no bytes in records: nulls, defaults, symbols of enums.
_MAX_MADE = 256 << 20
_DAY = {"ms": 86_400_000, "us": 86_400_000_000}
_NO_BYTES = np.empty(0, np.uint8)
_NO_OFFSETS = np.empty(0, np.int32)
_NO_PLACES = np.empty(0, np.int64)
_REASONS = {
    avro_structure.CUT_OFF: "a value that fits into its record",
    avro_structure.BAD_VARINT: "a whole number of at most ten bytes",
    avro_structure.BAD_LENGTH: "a non-negative length within the record",
    avro_structure.BAD_BRANCH: "a branch of the union",
    avro_structure.BAD_BOOLEAN: "a boolean, 0 or 1",
    avro_structure.BAD_NUMBER: "a number in the type's range",
    avro_structure.BAD_BLOCK: "a block of items of its declared size",
    avro_structure.BAD_DECIMAL: "a decimal with no more digits than its type",
    avro_structure.TOO_DEEP: f"at most {avro_structure.MAX_CALLS} records inside each other",
}


class BatchTooLargeError(Exception):
    """A column of the batch does not fit 32-bit offsets: take fewer rows."""


@dataclass(slots=True, eq=False)
class Rows:
    """Records, or items of lists, during decoding.

    Attributes:
        data: uint8[], the bytes.
        pos: int64[n], cursors.
        ends: int64[n], the end of each record or item.
        path: the file, for messages.
        offset: position of ``data`` in the file.
    """

    data: npt.NDArray[np.uint8]
    pos: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    path: str | None
    offset: int


def read_record_columns(plan: Record, rows: Rows) -> list[pa.Array]:
    """Decode the columns of n records, in the order of ``plan.kind``; moves all cursors past the columns.

    Raises:
        CorruptTableError: the bytes do not match the writer's schema.
        InvalidDataError: the reader's schema does not allow a value.
        UnsupportedFeatureError: a union branch has no member in the reader's schema.
        BatchTooLargeError: too many bytes or items for one batch.
    """
    made: list[pa.Array | None] = []
    for step in plan.steps:
        if isinstance(step, Skip):
            done = _walk(step.program, rows)
            _checked(done, rows, f"columns besides {plan.path}" if plan.path else "unrequested columns")
            made.append(None)
        else:
            made.append(_read(step, rows))
    count = len(rows.pos)
    fills = [place for place in plan.places if isinstance(place, Fill)]
    if fills and count * sum(map(_fill_bytes, fills)) > _MAX_MADE:
        raise BatchTooLargeError(f"columns of {plan.path or 'the row'} that the records lack")
    return [_filled(place, count) if isinstance(place, Fill) else made[place] for place in plan.places]


def corrupt(expected: str, column: str, rows: Rows, at: int) -> CorruptTableError:
    """The error for unexpected bytes at position ``at`` of the data."""
    return CorruptTableError(f"Avro records: expected {expected} in {column}.", rows.path, rows.offset + at)


def _checked(result: Int, rows: Rows, column: str) -> int:
    if result >= 0:
        return int(result)
    row, reason = divmod(-int(result), 16)
    if reason == avro_structure.TOO_LARGE:
        raise BatchTooLargeError(column)
    raise corrupt(_REASONS[reason], column, rows, int(rows.pos[row]))


def _fill_bytes(fill: Fill) -> int:
    return _null_bytes(fill.kind) if fill.value is None else int(fill.value.nbytes)


@lru_cache(1024)
def _null_bytes(kind: pa.DataType) -> int:
    """Bytes of a null in Arrow."""
    if pa.types.is_struct(kind):
        return sum(_null_bytes(kind.field(at).type) for at in range(kind.num_fields))
    return 4 if pa.types.is_nested(kind) or kind in (pa.string(), pa.binary()) else int(kind.bit_width + 7) // 8


def _filled(fill: Fill, count: int) -> pa.Array:
    if fill.value is None:
        return null_array(count, fill.kind)
    return fill.value.take(pa.array(np.zeros(count, np.int64)))


def _walk(
    program: WalkProgram,
    rows: Rows,
    valid: npt.NDArray[np.uint8] = _NO_BYTES,
    offsets: npt.NDArray[np.int32] = _NO_OFFSETS,
    starts: npt.NDArray[np.int64] = _NO_PLACES,
    ends: npt.NDArray[np.int64] = _NO_PLACES,
) -> Int:
    return avro_structure.walk_values(
        rows.data, rows.pos, rows.ends, valid, program.steps, program.depth, offsets, starts, ends
    )


def _read(node: Node, rows: Rows) -> pa.Array:
    if isinstance(node, Leaf):
        return _read_leaf(node, rows)
    if isinstance(node, Union):
        return _read_union(node, rows)
    return _read_items(node, rows) if isinstance(node, Items) else _read_record(node, rows)


def _bits(flags: npt.NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _valid_flags(node: Leaf | Items | Record, count: int) -> npt.NDArray[np.uint8]:
    return np.empty(count, np.uint8) if node.null >= 0 else _NO_BYTES


def _validity(node: Node, valid: npt.NDArray[np.uint8], nulls: int) -> pa.Buffer | None:
    if nulls and node.required:
        row = int(np.flatnonzero(valid == 0)[0])
        raise InvalidDataError(
            f"Column {node.path!r} holds a null (row {row}), but the requested schema does not allow nulls there."
        )
    return _bits(valid) if nulls else None


# ---- scalar columns


def _read_leaf(leaf: Leaf, rows: Rows) -> pa.Array:
    count = len(rows.pos)
    valid = _valid_flags(leaf, count)
    if leaf.code == "bytes":
        return _converted(leaf, _read_bytes(leaf, rows, valid))
    if leaf.code == "long":
        longs = np.empty(count, np.int64)
        values = pa.py_buffer(longs)
        low, high = _range(leaf)
        nulls = avro_decode.read_longs(rows.data, rows.pos, rows.ends, leaf.null, valid, low, high, longs)
    elif leaf.code == "int":
        ints = np.empty(count, np.int32)
        values = pa.py_buffer(ints)
        low, high = _range(leaf)
        nulls = avro_decode.read_ints(rows.data, rows.pos, rows.ends, leaf.null, valid, low, high, ints)
    elif leaf.code == "boolean":
        flags = np.empty(count, np.uint8)
        nulls = avro_decode.read_booleans(rows.data, rows.pos, rows.ends, leaf.null, valid, flags)
        values = _bits(flags) if nulls >= 0 else None
    elif leaf.code == "decimal":
        halves = np.empty(2 * count, np.uint64)
        values = pa.py_buffer(halves)
        limit = 10**leaf.kind.precision - 1
        max_high, max_low = np.uint64(limit >> 64), np.uint64(limit & _LOW_HALF)
        nulls = avro_decode.read_decimals(
            rows.data, rows.pos, rows.ends, leaf.null, valid, leaf.width, max_high, max_low, halves
        )
    elif count * leaf.width > _MAX_MADE:
        raise BatchTooLargeError(f"column {leaf.path}")
    else:
        items = np.empty(count * leaf.width, np.uint8)
        values = pa.py_buffer(items)
        nulls = avro_decode.read_fixed(rows.data, rows.pos, rows.ends, leaf.null, valid, leaf.width, items)
    nulls = _checked(nulls, rows, f"column {leaf.path}")
    array = pa.Array.from_buffers(leaf.kind, count, [_validity(leaf, valid, nulls), values], nulls)
    if leaf.symbols:
        array = _of_symbols(leaf, array)
    return _converted(leaf, array)


def _range(leaf: Leaf) -> tuple[int, int]:
    """The smallest and the largest number of a type."""
    if leaf.symbols:
        return 0, len(leaf.symbols) - 1
    if pa.types.is_time(leaf.kind):
        return 0, _DAY[leaf.kind.unit] - 1
    return (-(2**31), 2**31 - 1) if leaf.code == "int" else (-(2**63), 2**63 - 1)


def _read_bytes(leaf: Leaf, rows: Rows, valid: npt.NDArray[np.uint8]) -> pa.Array:
    count = len(rows.pos)
    starts, offsets = np.empty(count, np.int64), np.empty(count + 1, np.int32)
    nulls = avro_decode.measure_bytes(rows.data, rows.pos, rows.ends, leaf.null, valid, starts, offsets)
    nulls = _checked(nulls, rows, f"column {leaf.path}")
    total = int(offsets[-1])
    out = np.empty(total + avro_decode.COPY_SLACK, np.uint8)
    avro_decode.copy_values(rows.data, starts, offsets, out)
    if leaf.kind == pa.string():
        bad = avro_structure.find_invalid_utf8(offsets, out)
        if bad >= 0:
            raise corrupt("UTF-8", f"column {leaf.path}", rows, int(starts[bad]))
    buffers = [_validity(leaf, valid, nulls), pa.py_buffer(offsets), pa.py_buffer(out[:total])]
    return pa.Array.from_buffers(leaf.kind, count, buffers, nulls)


def _of_symbols(leaf: Leaf, indices: pa.Array) -> pa.Array:
    longest = max(len(each.encode()) for each in leaf.symbols)
    if longest * len(indices) > _MAX_MADE:
        raise BatchTooLargeError(leaf.path)
    return pa.array(leaf.symbols, pa.string()).take(indices)


def _converted(leaf: Leaf, values: pa.Array) -> pa.Array:
    if leaf.convert is None:
        return values
    try:
        return leaf.convert(values)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(f"Column {leaf.path!r} holds a value that does not fit: {error}.") from error


# ---- nested columns


def _read_record(plan: Record, rows: Rows) -> pa.Array:
    count = len(rows.pos)
    if plan.null < 0:
        return pa.Array.from_buffers(plan.kind, count, [None], 0, 0, read_record_columns(plan, rows))
    valid = _valid_flags(plan, count)
    nulls = avro_structure.read_branches(rows.data, rows.pos, rows.ends, plan.null, valid)
    nulls = _checked(nulls, rows, f"column {plan.path}")
    _validity(plan, valid, nulls)
    if nulls == 0:
        return pa.Array.from_buffers(plan.kind, count, [None], 0, 0, read_record_columns(plan, rows))
    present = np.flatnonzero(valid)
    inner = Rows(rows.data, rows.pos[present], rows.ends[present], rows.path, rows.offset)
    made = pa.Array.from_buffers(plan.kind, len(present), [None], 0, 0, read_record_columns(plan, inner))
    rows.pos[present] = inner.pos
    places = np.cumsum(valid, dtype=np.int64) - 1
    return clear_hidden_nulls(made.take(pa.array(places, mask=valid == 0)), plan.path)


def _read_items(plan: Items, rows: Rows) -> pa.Array:
    count = len(rows.pos)
    valid = _valid_flags(plan, count)
    offsets = np.empty(count + 1, np.int32)
    before = rows.pos.copy()
    room = 4 * count
    while True:
        starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        nulls = _checked(_walk(plan.program, rows, valid, offsets, starts, ends), rows, f"column {plan.path}")
        total = int(offsets[-1])
        if total <= room:
            break
        room = total
        rows.pos[:] = before
    items = _read(plan.item, Rows(rows.data, starts[:total], ends[:total], rows.path, rows.offset))
    buffers = [_validity(plan, valid, nulls), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(plan.kind, count, buffers, nulls, 0, [items])


def _read_union(plan: Union, rows: Rows) -> pa.Array:
    count = len(rows.pos)
    branches = np.empty(count, np.int32)
    done = avro_decode.read_ints(rows.data, rows.pos, rows.ends, -1, _NO_BYTES, 0, len(plan.names) - 1, branches)
    if done < 0 and -int(done) % 16 == avro_structure.BAD_NUMBER:
        done += avro_structure.BAD_NUMBER - avro_structure.BAD_BRANCH
    _checked(done, rows, f"column {plan.path}")
    found = {int(branch): np.flatnonzero(branches == branch) for branch in np.unique(branches)}
    made = {}
    for branch, present in found.items():
        if branch == plan.null:
            continue
        node = plan.members[branch]
        if node is None:
            raise UnsupportedFeatureError(
                f"Column {plan.path!r} holds a {plan.names[branch]} (row {present[0]}), but the requested columns have "
                f"no member for that type [file {rows.path}]."
            )
        made[branch] = _read_branch(node, present, rows)
    valid = (branches != plan.null).astype(np.uint8)
    validity = _validity(plan, valid, len(found.get(plan.null, ())))
    nulls = 0 if validity is None else count - int(valid.sum())
    members = [
        made[branch] if branch in made else pa.nulls(count, plan.kind.field(at).type)
        for at, branch in enumerate(plan.places)
    ]
    return pa.Array.from_buffers(plan.kind, count, [validity], nulls, 0, members)


def _read_branch(node: Node, present: npt.NDArray[np.int64], rows: Rows) -> pa.Array:
    """The values of one branch at the rows ``present``."""
    count = len(rows.pos)
    if len(present) == count:
        return _read(node, rows)
    inner = Rows(rows.data, rows.pos[present], rows.ends[present], rows.path, rows.offset)
    made = _read(node, inner)
    rows.pos[present] = inner.pos
    places = np.zeros(count, np.int64)
    places[present] = np.arange(len(present))
    absent = np.ones(count, np.bool_)
    absent[present] = False
    return made.take(pa.array(places, mask=absent))
