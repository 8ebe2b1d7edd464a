"""Convert batches to a table's schema: columns by name, types promoted, absent columns filled with null.

:func:`plan_conform` compares two schemas once and returns a :class:`ConformPlan`: the source and the conversion of each
target column. :meth:`ConformPlan.apply` executes it on any number of batches. A column that already has the target's
type is passed through; the nulls of its required parts are checked. Plans are immutable: they can be pickled and shared
between threads. :func:`plan_file` does the same for rows of a file whose timestamps may have a wrong label
(``mislabelled``).

::

    source schema ─┐
                   ├─► plan_conform ─► ConformPlan ── apply(batch) ─► batch of the target schema
    target schema ─┘                       └ per column: position, conversion, whether nulls are rejected

Conversions are the ones of ``promotion`` and ``normalize``, and between units of timestamps and times if every value
fits.
Source: write-path rules of Hudi 1.2.0 (HoodieAvroUtils.rewriteRecordWithNewSchema).

Convert columns, lists, maps and structs to target types: the execution of a conform plan.

A :class:`Column` describes the source of a target field and its conversion; nested types hold the Columns of their
parts. A list, map or struct is split, its parts are converted, and it is rebuilt around the same validity and offset
buffers, so unchanged parts are not copied. Only visible parts are converted: elements outside a slice or below a null
cannot fail.

A value that does not fit raises :class:`BadValueError` with its row in the current array. Each outer level converts
this to its own row, so the message names the row of the batch.

Convert rows to the types that a table would store, so that a merge or SQL can compute with them before the write.

Dictionaries, run-end encoded columns, views and lists of any layout become plain columns. A column that no table can
store is unchanged: the statement may not write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError, InvalidDataError, SchemaMismatchError
from hudi_fast.formats.column_limits import (
    BadValueError,
    clear_hidden_nulls,
    has_required_part,
    map_entries,
    null_array,
    null_error,
    validity_of,
    visible_elements,
)
from hudi_fast.formats.logical_types import is_vector, unpacked, vector_width
from hudi_fast.schema.cast import Convert, LeafCast, file_cast, leaf_cast, sources_of, sql_cast
from hudi_fast.schema.normalize import bare_schema, bare_type, storable_type
from hudi_fast.values import dataclass

__all__ = [
    "Column",
    "ConformPlan",
    "all_null",
    "assigned_values",
    "conform",
    "convert_encoded",
    "convert_list",
    "convert_map",
    "convert_struct",
    "convert_vectors",
    "fill_column",
    "plan_conform",
    "plan_file",
    "storable_rows",
]


@dataclass(frozen=True, slots=True)
class Column:
    """One target field and its source.

    Attributes:
        path: dotted path of the field, for messages.
        kind: the target type.
        required: whether a null is an error.
        position: position of the source field among its siblings; -1 without source: the field is filled with nulls.
        convert: the conversion; None if the source has the target's type.
    """

    path: str
    kind: pa.DataType
    required: bool
    position: int
    convert: Convert | None


def fill_column(column: Column, values: pa.Array | None, length: int) -> pa.Array:
    """Convert ``values`` to the column's target type; without values (``position`` -1) return ``length`` nulls.

    Ignores ``required``: only the caller knows which nulls are visible.

    Raises:
        BadValueError: a value does not fit the type.
    """
    if values is None:
        return null_array(length, column.kind)
    if column.convert is None:
        return values
    try:
        return column.convert(values)
    except pa.ArrowInvalid as error:
        raise BadValueError(column.path, f"holds a value that does not fit {column.kind}: {error}", None) from error


def all_null(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an array of Arrow's null type to nulls of a type."""
    return null_array(len(values), target)


def convert_encoded(values: pa.Array, inner: Convert | None) -> pa.Array:
    """Decode a dictionary or run-end encoded array, then convert it."""
    plain = _dictionary_decode(values) if pa.types.is_dictionary(values.type) else pc.run_end_decode(values)
    return plain if inner is None else inner(plain)


def _dictionary_decode(values: pa.DictionaryArray) -> pa.Array:
    laid_out = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(values.type.value_type)
    if laid_out is not None:  # Arrow cannot decode dictionaries of views
        values = pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(laid_out))
    return values.dictionary_decode()


def convert_struct(values: pa.Array, columns: Sequence[Column], target: pa.DataType) -> pa.Array:
    """A struct array with the fields that ``columns`` define; n structs in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    children = values.flatten()
    made = []
    for column in columns:
        child = fill_column(column, children[column.position] if column.position >= 0 else None, len(values))
        # a null struct shows as a null in each of its fields
        if column.required and child.null_count > values.null_count:
            hole = pc.and_(pc.is_null(child), pc.is_valid(values))
            raise null_error(column.path, pc.index(hole, True).as_py())
        made.append(child)
    return pa.Array.from_buffers(target, len(values), [validity_of(values)], values.null_count, 0, made)


def convert_list(values: pa.Array, element: Column, target: pa.DataType) -> pa.Array:
    """A list array with converted elements, from any kind of list array; n lists in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    offsets, elements = _visible_elements(values, element.path)
    made = _fill_elements(element, elements, offsets)
    return pa.Array.from_buffers(
        target, len(values), [validity_of(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def convert_vectors(values: pa.Array, path: str, target: pa.DataType) -> pa.Array:
    """Vectors from lists of numbers, of any list layout; n lists in, n vectors out."""
    present = values.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(values), target.list_size).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != target.list_size)
    if len(wrong):
        row = int(wrong[0])
        raise BadValueError(path, f"has a vector of {lengths[row]} numbers; expected {target.list_size}", row)
    flat = values.drop_null().flatten()
    if flat.null_count:
        row = int(np.flatnonzero(present)[pc.index(pc.is_null(flat), True).as_py() // target.list_size])
        raise BadValueError(path, "has a null among the numbers of a vector", row)
    try:
        numbers = pc.cast(flat, target.value_type, safe=not pa.types.is_floating(target.value_type))
    except pa.ArrowInvalid as error:
        raise BadValueError(path, f"has numbers that are no {target.value_type}: {error}", None) from error
    if not present.all():
        filled = np.zeros((len(values), target.list_size), target.value_type.to_pandas_dtype())
        filled[present] = numbers.to_numpy(zero_copy_only=False).reshape(-1, target.list_size)
        numbers = pa.array(filled.reshape(-1))
    return pa.Array.from_buffers(target, len(values), [validity_of(values)], values.null_count, 0, [numbers])


def convert_map(values: pa.Array, key: Column, value: Column, target: pa.DataType) -> pa.Array:
    """A map array with converted keys and values; n maps in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    offsets, entries = _visible_elements(map_entries(values), value.path)
    keys, items = entries.flatten()
    parts = [_fill_elements(key, keys, offsets), _fill_elements(value, items, offsets)]
    made = pa.StructArray.from_arrays(parts, fields=[target.key_field, target.item_field])
    return pa.Array.from_buffers(
        target, len(values), [validity_of(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def _fill_elements(column: Column, elements: pa.Array, offsets: np.ndarray) -> pa.Array:
    """Convert the elements of n lists; errors name the row of the list."""
    try:
        made = fill_column(column, elements, len(elements))
        if column.required and made.null_count:
            raise null_error(column.path, pc.index(pc.is_null(made), True).as_py())
    except BadValueError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise
    return made


def _visible_elements(values: pa.Array, path: str) -> tuple[np.ndarray, pa.Array]:
    """Offsets (int32, n + 1, from 0) and the elements in their range, for n lists of any list layout."""
    offsets, elements = visible_elements(values)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise BadValueError(path, f"has {offsets[-1]} elements in one batch: write smaller batches", None)
    return offsets.astype(np.int32, copy=False), elements


Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class ConformPlan:
    """Conversion of batches from one schema to another; created by :func:`plan_conform`.

    Attributes:
        source: schema of the batches.
        target: schema of the result, without metadata.
        columns: one per field of ``target``.
    """

    source: pa.Schema
    target: pa.Schema
    columns: tuple[Column, ...]

    def apply(self, rows: Rows, first_row: int = 0) -> Rows:
        """Convert rows to the target schema; a table keeps its chunks.

        Args:
            rows: rows of the source schema.
            first_row: number of the first row, for messages.

        Raises:
            InvalidDataError: the target does not allow a null, or a value does not fit; the message names the column
                and, for nulls, the first row, counted from 0.
            SchemaMismatchError: ``rows`` does not have the plan's source schema.
        """
        if rows.schema is not self.source and not rows.schema.equals(self.source):
            raise SchemaMismatchError(
                f"This plan expects rows with the schema\n{self.source}\nand got rows with\n{rows.schema}"
            )
        if not self.columns:
            return rows.select([]).replace_schema_metadata(None)
        if isinstance(rows, pa.RecordBatch):
            arrays = [_array(each, rows, first_row) for each in self.columns]
            return pa.RecordBatch.from_arrays(arrays, schema=self.target)
        return pa.Table.from_arrays([_chunks(each, rows, first_row) for each in self.columns], schema=self.target)


def conform(batch: Rows, target: pa.Schema, first_row: int = 0, rounds: bool = True) -> Rows:
    """Convert ``batch`` to ``target``: :func:`plan_conform` and :meth:`ConformPlan.apply` in one.

    Raises:
        SchemaMismatchError: see :func:`plan_conform`.
        InvalidDataError: see :meth:`ConformPlan.apply`.
    """
    return plan_conform(batch.schema, target, rounds).apply(batch, first_row)


def plan_conform(source: pa.Schema, target: pa.Schema, rounds: bool = True) -> ConformPlan:
    """Compare two schemas and plan the conversion.

    Columns are matched by exact name. Source columns that the target does not have are dropped. Target columns that
    the source does not have become nulls.

    Args:
        source: schema of the batches; any Arrow types.
        target: storable types (``normalize``); its metadata is dropped.
        rounds: whether an integer may become the nearest float or double, as stored integers do when they are read.

    Raises:
        SchemaMismatchError: types do not convert, absent columns do not allow nulls, or the source has duplicate names;
            the message lists all of them.
    """
    return _plan(source, target, partial(leaf_cast, rounds=rounds))


def plan_file(source: pa.Schema, target: pa.Schema) -> ConformPlan:
    """:func:`plan_conform` for rows of a Parquet file or HFile, whose timestamps may have a wrong label.

    Raises:
        SchemaMismatchError: as :func:`plan_conform`.
    """
    return _plan(source, target, file_cast)


def assigned_values(values: pa.ChunkedArray, kind: pa.DataType, column: str, where: str) -> pa.ChunkedArray:
    """Values of SQL, of an update or of a merge in the type of a column, as Spark's ``CAST`` makes them.

    Args:
        values: n values, of a type that :func:`hudi_fast.schema.assignment.require_assignable` accepts.
        kind: type of the column.
        column: name of the column.
        where: statement or clause, for the message.

    Raises:
        InvalidDataError: the types do not convert, or a value does not fit.
    """
    if values.type == kind:
        return values
    rows, target = pa.table({column: values}), pa.schema([pa.field(column, kind)])
    try:
        return _plan(rows.schema, target, sql_cast).apply(rows).column(0)
    except HudiError as error:
        raise InvalidDataError(
            f"{where}: a value for {column!r} is of type {values.type} and does not fit {kind}: {error}"
        ) from error


def _plan(source: pa.Schema, target: pa.Schema, leaf: LeafCast) -> ConformPlan:
    planning = _Planning(leaf, [])
    columns = _plan_fields(list(source), list(target), "", planning)
    if planning.problems:
        listed = "\n".join(f"  - {each}" for each in planning.problems)
        count = len(planning.problems)
        raise SchemaMismatchError(f"The rows do not fit the table's schema ({count} problem(s)):\n{listed}")
    return ConformPlan(source, bare_schema(target), columns)


# ---- planning


@dataclass(frozen=True, slots=True)
class _Planning:
    """One comparison of two schemas; ``problems`` collects messages."""

    leaf: LeafCast
    problems: list[str]


def _plan_fields(
    sources: list[pa.Field], targets: list[pa.Field], path: str, planning: _Planning
) -> tuple[Column, ...]:
    positions: dict[str, int] = {}
    twice: set[str] = set()
    for index, source in enumerate(sources):
        if positions.setdefault(source.name, index) != index:
            twice.add(source.name)
    columns = []
    for target in targets:
        where = f"{path}.{target.name}" if path else target.name
        position = positions.get(target.name, -1)
        if target.name in twice:
            planning.problems.append(f"column {where!r} occurs more than once in the rows")
        elif position >= 0:
            columns.append(_plan_field(sources[position], target, position, where, planning))
        elif target.nullable:
            columns.append(Column(where, bare_type(target.type), False, -1, None))
        else:
            planning.problems.append(f"column {where!r} ({target.type}, not null) is absent from the rows")
    return tuple(columns)


def _plan_field(source: pa.Field, target: pa.Field, position: int, path: str, planning: _Planning) -> Column:
    convert = _plan_type(source.type, target.type, path, planning)
    return Column(path, bare_type(target.type), not target.nullable, position, convert)


def _plan_type(source: pa.DataType, target: pa.DataType, path: str, planning: _Planning) -> Convert | None:
    """The conversion; None if no conversion is needed, or if none exists (``planning`` then gets a message)."""
    if source == target:
        return partial(clear_hidden_nulls, path=path) if has_required_part(target) else None
    kind = bare_type(target)
    if pa.types.is_null(source):
        return partial(all_null, target=kind)
    if pa.types.is_dictionary(source) or pa.types.is_run_end_encoded(source):
        return partial(convert_encoded, inner=_plan_type(source.value_type, target, path, planning))
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return partial(convert_struct, columns=_plan_fields(list(source), list(target), path, planning), target=kind)
    if pa.types.is_map(source) and pa.types.is_map(target):
        key = _plan_field(source.key_field, target.key_field, 0, f"{path}.key", planning)
        value = _plan_field(source.item_field, target.item_field, 1, f"{path}.value", planning)
        return partial(convert_map, key=key, value=value, target=kind)
    if is_vector(target):
        return _plan_vector(source, target, path, planning)
    if _is_any_list(source) and pa.types.is_list(target):
        element = _plan_field(source.value_field, target.value_field, 0, f"{path}.element", planning)
        return partial(convert_list, element=element, target=kind)
    return _plan_leaf(source, target, path, planning)


def _plan_vector(source: pa.DataType, target: pa.DataType, path: str, planning: _Planning) -> Convert | None:
    """The conversion of vectors as files store them, or of lists of as many numbers; see :func:`_plan_type`."""
    if source == pa.binary(vector_width(target)):
        return partial(unpacked, target=target)
    numbers = _is_any_list(source) and (
        pa.types.is_integer(source.value_type) or pa.types.is_floating(source.value_type)
    )
    if numbers:
        return partial(convert_vectors, path=path, target=target)
    planning.problems.append(
        f"column {path!r} is {source} in the rows and {target} in the table, which accepts lists of numbers"
    )
    return None


def _plan_leaf(source: pa.DataType, target: pa.DataType, path: str, planning: _Planning) -> Convert | None:
    convert = None
    if not pa.types.is_nested(source) and not pa.types.is_nested(target):
        try:
            convert = planning.leaf(source, target, path)
        except HudiError as error:
            planning.problems.append(str(error))
            return None
    if convert is None:
        taken = ", or ".join((str(target), *sources_of(target)))
        planning.problems.append(
            f"column {path!r} is {source} in the rows and {target} in the table, which accepts {taken}"
        )
    return convert


def _is_any_list(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and hasattr(kind, "value_field")


# ---- execution


def _array(column: Column, batch: pa.RecordBatch, first_row: int) -> pa.Array:
    values = batch.column(column.position) if column.position >= 0 else None
    return _fill_from(column, values, batch.num_rows, first_row)


def _chunks(column: Column, table: pa.Table, first_row: int) -> pa.ChunkedArray:
    if column.position < 0:
        return pa.chunked_array([null_array(table.num_rows, column.kind)])
    chunked = table.column(column.position)
    if column.convert is None and not (column.required and chunked.null_count):
        return chunked
    made = []
    for chunk in chunked.chunks:
        made.append(_fill_from(column, chunk, len(chunk), first_row))
        first_row += len(chunk)
    return pa.chunked_array(made, type=column.kind)


def _fill_from(column: Column, values: pa.Array | None, length: int, first_row: int) -> pa.Array:
    try:
        made = fill_column(column, values, length)
        if column.required and made.null_count:
            raise null_error(column.path, pc.index(pc.is_null(made), True).as_py())
    except BadValueError as error:
        row = "" if error.row is None else f" (first in row {first_row + error.row}, counted from 0)"
        raise InvalidDataError(f"Column {error.path!r} {error.reason}{row}.") from error
    return made


def storable_rows(rows: pa.Table) -> pa.Table:
    """The rows with each column in its storable type, if it has one (:mod:`hudi_fast.schema.normalize`).

    Args:
        rows: rows of any columns; names may repeat.

    Raises:
        InvalidDataError: a value does not fit the storable type.
    """
    columns = [_storable(rows.column(at), rows.schema.field(at)) for at in range(rows.num_columns)]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)) if columns else rows


def _storable(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        kind = storable_type(field.type, field.name)
    except HudiError:
        return column
    if kind == field.type:
        return column
    given = pa.table([column], names=[field.name])
    return conform(given, pa.schema([pa.field(field.name, kind)])).column(0)
