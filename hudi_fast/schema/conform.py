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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError, InvalidDataError, SchemaMismatchError
from hudi_fast.formats.required_fields import (
    BadValueError,
    clear_hidden_nulls,
    has_required_part,
    null_array,
    null_error,
)
from hudi_fast.formats.vectors import is_vector, unpacked, vector_width
from hudi_fast.schema.cast import Convert, LeafCast, file_cast, leaf_cast
from hudi_fast.schema.nested import (
    Column,
    all_null,
    convert_encoded,
    convert_list,
    convert_map,
    convert_struct,
    convert_vectors,
    fill_column,
)
from hudi_fast.schema.normalize import bare_schema, bare_type
from hudi_fast.schema.promotion import sources_of
from hudi_fast.schema.sql_cast import sql_cast

__all__ = ["ConformPlan", "assigned_values", "conform", "plan_conform", "plan_file"]

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
