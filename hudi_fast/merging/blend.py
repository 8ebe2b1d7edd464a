"""Blend two rows with one key: the winner's columns, filled from the loser where the winner has no value.

Three cases (``PartialUpdateHandler``, ``SparkRecordMergingUtils``; Hudi 1.2.0):

* partial log blocks: a row has some columns; the other columns are taken from the row that it changes;
* the table's partial update mode: the column's default (``IGNORE_DEFAULTS``) or the text for "not sent"
  (``FILL_UNAVAILABLE``) is replaced by the loser's value;
* a user function that receives both rows (``CUSTOM``).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.varlen import single_chunk, take_two
from hudi_fast.merging.rules import DELETED_FLAG, FILL_UNAVAILABLE, IGNORE_DEFAULTS, META_COLUMNS, Merger, MergeRules

__all__ = ["blend_provided", "effective_values", "fill_gaps", "provides", "run_merger"]

Flags = npt.NDArray[np.bool_]


def effective_values(rules: MergeRules, name: str, column: pa.ChunkedArray | pa.Array) -> Flags | None:
    """bool[n], the values that a partial update mode keeps; None when it keeps all."""
    if rules.partial_mode == IGNORE_DEFAULTS:
        default = rules.defaults.get(name)
        if default is None:
            return None if column.null_count == 0 else _flags(column.is_valid())
        if pa.types.is_nested(column.type):
            return None  # Hudi compares nested defaults by identity, so no value equals the default
        return ~_flags(pc.fill_null(pc.equal(column, _default(name, default, column.type)), False))
    if rules.partial_mode == FILL_UNAVAILABLE and rules.unavailable_value is not None and _is_text(column.type):
        marker = pa.scalar(rules.unavailable_value.encode(), pa.binary()).cast(column.type)
        return ~_flags(pc.fill_null(pc.equal(column, marker), False))
    return None


def _default(name: str, default: object, kind: pa.DataType) -> pa.Scalar:
    """A default as Avro's JSON encodes it: bytes as Latin-1 text, times as counts of their unit."""
    try:
        raw = default.encode("latin-1") if isinstance(default, str) and not pa.types.is_string(kind) else default
        if pa.types.is_decimal(kind) and isinstance(raw, bytes):
            return pa.scalar(Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale), kind)
        return pa.scalar(raw, kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnsupportedFeatureError(
            f"The default {default!r} of column {name!r} ({kind}) is not of its type ({error}), so the values that "
            f"{IGNORE_DEFAULTS} ignores are unknown. Correct the default in the table's schema."
        ) from error


def fill_gaps(rules: MergeRules, older: pa.Table, newer: pa.Table, newer_wins: Flags | None) -> tuple[pa.Table, Flags]:
    """Blend rows by the table's partial update mode.

    Both tables have the same columns, and row i of both has one key. ``newer_wins`` is bool[n]; None when each newer
    row wins.

    Returns:
        n rows; and bool[n], rows in which some column of the loser replaced the winner's.
    """
    wins = np.ones(older.num_rows, dtype=np.bool_) if newer_wins is None else newer_wins
    filled = np.zeros(older.num_rows, dtype=np.bool_)
    columns = []
    for name, old, new in zip(older.column_names, older.columns, newer.columns, strict=True):
        take_new = wins.copy()
        if rules.partial_payload and name in META_COLUMNS:
            take_new[:] = True
        else:
            for side, column in ((wins, new), (~wins, old)):
                effective = effective_values(rules, name, column)
                if effective is not None:
                    replaced = side & ~effective
                    take_new ^= replaced
                    filled |= replaced
        columns.append(_choose(old, new, take_new))
    return pa.Table.from_arrays(columns, schema=older.schema), filled


def provides(column_sets: Sequence[frozenset[str]], name: str) -> Flags:
    """bool[sets + 1], whether each set has the column. The last flag, reached by set number -1, is for all columns."""
    return np.array([*(name in META_COLUMNS or name in one for one in column_sets), True], dtype=np.bool_)


def blend_provided(
    older: pa.Table, newer: pa.Table, column_sets: Sequence[frozenset[str]], column_set: npt.NDArray[np.int32]
) -> pa.Table:
    """Put rows of partial log blocks over the rows that they change.

    Both tables have the same columns, and row i of both has one key. ``column_set`` is int32[n], the number of the set
    that a newer row provides; -1 for all columns.
    """
    columns = [
        _choose(old, new, provides(column_sets, name)[column_set])
        for name, old, new in zip(older.column_names, older.columns, newer.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=older.schema)


def run_merger(merger: Merger, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, Flags | None]:
    """Call the user's merge function and check its result.

    Both tables have the same columns, and row i of both has one key. The function receives all columns except the meta
    columns, which the result takes from the newer row.

    Returns:
        n rows of the same columns; and bool[n], the deleted rows, None for none.

    Raises:
        InvalidDataError: the function does not return a table with these rows and columns.
    """
    if not older.num_rows:
        return newer, None
    names = [name for name in older.column_names if name not in META_COLUMNS]
    old, new = older.select(names), newer.select(names)
    merged = merger(old, new)
    _check_merged(merged, old)
    deleted = _deleted_rows(merged)
    made = {field.name: _typed(merged, field) for field in old.schema}
    columns = [made.get(name, newer.column(name)) for name in older.column_names]
    return pa.Table.from_arrays(columns, schema=older.schema), deleted


def _check_merged(merged: object, old: pa.Table) -> None:
    if not isinstance(merged, pa.Table):
        raise InvalidDataError(
            f"hudi_fast.merger has to return a pyarrow.Table; it returned {type(merged).__name__}: {merged!r:.200}"
        )
    names, expected = merged.column_names, old.column_names
    fits = set(names) - {DELETED_FLAG} == set(expected) - {DELETED_FLAG} and len(set(names)) == len(names)
    if merged.num_rows != old.num_rows or not fits or (DELETED_FLAG in expected and DELETED_FLAG not in names):
        raise InvalidDataError(
            f"hudi_fast.merger has to return the {old.num_rows} rows that it received, with the columns {expected} "
            f"and, to delete rows, {DELETED_FLAG}; it returned {merged.num_rows} rows with the columns {names}."
        )


def _deleted_rows(merged: pa.Table) -> Flags | None:
    if DELETED_FLAG not in merged.column_names:
        return None
    flag = merged.column(DELETED_FLAG)
    if not pa.types.is_boolean(flag.type):
        raise InvalidDataError(f"hudi_fast.merger returned {DELETED_FLAG} as {flag.type}; it has to be boolean.")
    deleted = _flags(pc.fill_null(flag, False))
    return deleted if deleted.any() else None


def _typed(merged: pa.Table, field: pa.Field) -> pa.Array:
    column = merged.column(field.name)
    if column.type != field.type:
        raise InvalidDataError(
            f"hudi_fast.merger returned column {field.name!r} as {column.type}; expected {field.type}."
        )
    if not field.nullable and column.null_count:
        raise InvalidDataError(f"hudi_fast.merger returned nulls in column {field.name!r}, which is not nullable.")
    return single_chunk(column)


def _choose(old: pa.ChunkedArray, new: pa.ChunkedArray, take_new: Flags) -> pa.Array:
    if take_new.all():
        return single_chunk(new)
    if not take_new.any():
        return single_chunk(old)
    rows = np.arange(len(take_new), dtype=np.int32)
    return take_two(single_chunk(old), single_chunk(new), np.where(take_new, ~rows, rows))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _flags(mask: pa.ChunkedArray | pa.Array) -> Flags:
    return np.asarray(mask.to_numpy() if isinstance(mask, pa.ChunkedArray) else mask.to_numpy(zero_copy_only=False))
