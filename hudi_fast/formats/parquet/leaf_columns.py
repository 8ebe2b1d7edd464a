"""Leaf columns of Parquet files: those of a table, constant ones, repetitive ones.

Leaf columns, as Parquet stores them, of tables in memory: their names, their values, and whether they hold NaN.

Columns have Parquet's dotted paths: ``a.b`` within a struct, ``a.list.element`` for the elements of a list,
``a.key_value.key`` and ``a.key_value.value`` for the keys and values of a map.

Find columns of a Parquet file with a single text, by the statistics of their chunks: their pages need not be read.

Some of Hudi's meta columns are such columns: a base file has one partition path, one file name, and one commit time
until an update adds another. All batches share the memory of one repeated text.

Truncated bounds differ from each other, so equal bounds are the text itself.

Select the columns to dictionary-encode, by a sample of the first rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ConstantColumns", "dictionary_columns", "leaf_columns", "leaf_values", "nan_columns"]

_ELEMENT, _KEY, _VALUE = ".list.element", ".key_value.key", ".key_value.value"


def leaf_columns(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Dotted names and types of all leaf columns, in the order of Parquet's columns."""
    found: dict[str, pa.DataType] = {}
    for field in schema:
        _leaves(field.name, field.type, found)
    return found


def leaf_values(rows: pa.Table | pa.RecordBatch, path: str) -> pa.Array | pa.ChunkedArray:
    """The values of a column of :func:`leaf_columns`. An empty list has no value, a null parent has one null."""
    name = next(one for one in rows.schema.names if path == one or path.startswith(f"{one}."))
    values, rest = rows.column(name), path[len(name) :]
    while rest:
        kind = values.type
        if _is_list(kind) and rest.startswith(_ELEMENT):
            values, rest = pc.list_flatten(values), rest[len(_ELEMENT) :]
        elif pa.types.is_map(kind) and rest.startswith((_KEY, _VALUE)):
            part, rest = (0, rest[len(_KEY) :]) if rest.startswith(_KEY) else (1, rest[len(_VALUE) :])
            entries = values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
            values = pc.struct_field(pc.list_flatten(entries), [part])
        else:
            member = next(one for one in kind if rest == f".{one.name}" or rest.startswith(f".{one.name}."))
            values, rest = pc.struct_field(values, member.name), rest[len(member.name) + 1 :]
    return values


def nan_columns(rows: pa.Table) -> set[str]:
    """Dotted names of the floating-point columns that hold NaN; columns may be dictionary-encoded."""
    return {
        name
        for name, kind in leaf_columns(rows.schema).items()
        if _is_floating(kind) and _has_nan(leaf_values(rows, name))
    }


def _leaves(path: str, kind: pa.DataType, found: dict[str, pa.DataType]) -> None:
    if pa.types.is_struct(kind):
        for member in kind:
            _leaves(f"{path}.{member.name}", member.type, found)
    elif _is_list(kind):
        _leaves(path + _ELEMENT, kind.value_type, found)
    elif pa.types.is_map(kind):
        _leaves(path + _KEY, kind.key_type, found)
        _leaves(path + _VALUE, kind.item_type, found)
    else:
        found[path] = kind


def _is_floating(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _has_nan(values: pa.Array | pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return bool(pc.any(pc.is_nan(values)).as_py())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


Statistics = Callable[[int, int], Any]


class ConstantColumns:
    """The constant text columns among some columns, and their arrays.

    Args:
        statistics: returns the statistics of a row group and a leaf column; None if they are unknown.
        numbers: numbers of the leaf columns, by dotted path.
        schema: schema of the file.
        columns: top-level columns, in the order of the batches.
        groups: row groups that are read.
    """

    def __init__(
        self,
        statistics: Statistics,
        numbers: Mapping[str, int],
        schema: pa.Schema,
        columns: Sequence[str],
        groups: Sequence[int],
    ) -> None:
        self._names = list(columns)
        self._rows = 0
        self._values: dict[str, pa.Scalar] = {}
        self._arrays: dict[str, pa.Array] = {}
        if not set(schema.names).issuperset(columns):  # leaves of nested columns have dotted names
            return
        self._schema = pa.schema([schema.field(name) for name in columns])
        for field in self._schema:
            number = numbers.get(field.name)  # None if a damaged footer has chunks with other names
            value = None if number is None or field.type != pa.string() else _value(statistics, number, groups)
            if value is not None:
                self._values[field.name] = value

    @property
    def others(self) -> list[str]:
        """The columns to read."""
        return [name for name in self._names if name not in self._values]

    def added_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """All columns in their order; ``batch`` has :attr:`others`."""
        if not self._values:
            return batch
        rows = batch.num_rows
        if rows > self._rows:
            self._rows = rows
            self._arrays = {name: pa.repeat(value, rows) for name, value in self._values.items()}
        arrays = [
            self._arrays[name].slice(0, rows) if name in self._arrays else batch.column(name) for name in self._names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _value(statistics: Statistics, column: int, groups: Sequence[int]) -> pa.Scalar | None:
    """The text of all rows in some row groups; None for several texts, for nulls, or without statistics."""
    found = None
    for group in groups:
        bounds = statistics(group, column)
        if bounds is None or not bounds.has_min_max or not bounds.has_null_count or bounds.null_count:
            return None
        if bounds.min_raw != bounds.max_raw or (found is not None and found != bounds.min_raw):
            return None
        found = bounds.min_raw
    try:
        return None if found is None else pa.scalar(found.decode(), pa.string())
    except UnicodeDecodeError:
        return None


_SAMPLE_ROWS = 8192
_DICTIONARY_SHARE = 0.25


def dictionary_columns(table: pa.Table, always: Sequence[str], never: Sequence[str]) -> list[str]:
    """Top-level columns whose values repeat enough for a dictionary, judged by the first rows of ``table``.

    Args:
        table: rows to write.
        always: columns that always get a dictionary (constant meta columns).
        never: columns that never get a dictionary (keys).
    """
    chosen = list(always)
    sample = table.slice(0, _SAMPLE_ROWS)
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        if name in chosen or name in never or pa.types.is_nested(column.type):
            continue
        if pa.types.is_boolean(column.type) or sample.num_rows == 0:
            continue
        distinct = len(column.unique())
        if distinct <= max(1, int(sample.num_rows * _DICTIONARY_SHARE)):
            chosen.append(name)
    return chosen
