"""Ordering values of deleted keys: each has its own type, where rows have typed columns.

Hudi compares a delete's ordering value with a row's only if both have the same Java class; otherwise the delete wins
(``BufferedRecordMergerFactory``, 1.2.0). Dates and times of day compare by their integer value, since engines pass
different classes to the writer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.log.delete_block import DeleteRecords

__all__ = ["DeleteOrdering", "convert_delete_ordering"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DeleteOrdering:
    """Ordering values of n deleted keys in the types of the table's columns.

    Attributes:
        columns: n values each; null where ``default`` or ``mismatched``.
        default: bool[n], entries with Hudi's default.
        mismatched: bool[n], entries whose value has another type than the column.
    """

    columns: tuple[pa.Array, ...]
    default: Flags
    mismatched: Flags


def convert_delete_ordering(records: DeleteRecords, kinds: tuple[pa.DataType, ...]) -> DeleteOrdering:
    """Convert ordering values of a delete block to the types of the ordering columns."""
    count = len(records.keys)
    default = np.asarray(records.is_default, dtype=np.bool_)
    if not kinds:
        return DeleteOrdering((), default, np.zeros(count, np.bool_))
    absent = tuple(pa.nulls(count, kind) for kind in kinds)
    if default.all():
        return DeleteOrdering(absent, default, np.zeros(count, np.bool_))
    if len(records.ordering) != len(kinds):
        return DeleteOrdering(absent, default, ~default)
    columns, mismatched = [], np.zeros(count, np.bool_)
    for stored, kind in zip(records.ordering, kinds, strict=True):
        column = _as_kind(stored, kind)
        if column is None:
            column = pa.nulls(count, kind)
            mismatched |= ~default & stored.is_valid().to_numpy(zero_copy_only=False)
        columns.append(column)
    blank = default | mismatched
    if blank.any():
        columns = [_blanked(column, blank) for column in columns]
    return DeleteOrdering(tuple(columns), default, mismatched)


def _blanked(column: pa.Array, mask: Flags) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)


def _as_kind(stored: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values in the column's type if Hudi compares them with the column's values, else None."""
    if stored.type == kind:
        return stored
    if pa.types.is_null(stored.type):
        return pa.nulls(len(stored), kind)
    if not _comparable(stored.type, kind):
        return None
    try:
        if pa.types.is_temporal(kind) and pa.types.is_integer(stored.type):
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return stored.cast(width).view(kind)
        return stored.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _comparable(stored: pa.DataType, kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        (types.is_timestamp(kind) and (types.is_timestamp(stored) or stored == pa.int64()))
        or (types.is_time(kind) and (types.is_time(stored) or types.is_integer(stored)))
        or (types.is_date(kind) and stored == pa.int32())
        or (types.is_decimal(kind) and types.is_decimal(stored))
        or (types.is_fixed_size_binary(kind) and stored == pa.binary())
    )
