"""Which of two rows with one key stays: Hudi's merge modes as vectorised rules.

Three questions, each answered for whole columns (``BufferedRecordMergerFactory``, ``OrderingValues``; Hudi 1.2.0):

* :func:`delete_mask`: which incoming rows are deletes?
* :func:`ordering_rank`: how do the rows of one batch compare?  A number per row, for picking winners.
* :func:`at_least`: is an incoming row's ordering value at least the stored one's?

A null ordering value stands for Hudi's default, the integer 0: beside numbers it counts as 0, beside other types it is
the lowest. A delete whose ordering value is that default is a *commit-time delete* and beats whatever came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, SchemaMismatchError

__all__ = ["COMMIT_TIME", "EVENT_TIME", "MergeRules", "at_least", "delete_mask", "ordering_columns", "ordering_rank"]

COMMIT_TIME = "COMMIT_TIME_ORDERING"
EVENT_TIME = "EVENT_TIME_ORDERING"

DELETED_FLAG = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How rows with one key are merged.

    Attributes:
        mode: :data:`COMMIT_TIME` or :data:`EVENT_TIME`.
        ordering_fields: columns of the ordering value, possibly nested (``a.b``); empty for none.
        delete_field: column whose text marks a delete; None for none.
        delete_marker: the text that does.
    """

    mode: str
    ordering_fields: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None

    @property
    def compares(self) -> bool:
        """Whether ordering values decide at all."""
        return self.mode == EVENT_TIME and bool(self.ordering_fields)


def ordering_columns(rules: MergeRules, rows: pa.Table) -> tuple[pa.ChunkedArray, ...]:
    """The ordering columns of ``rows``; empty when the mode does not compare.

    Raises:
        InvalidDataError: an ordering field is not among the columns.
    """
    return tuple(_column(rows, name) for name in rules.ordering_fields) if rules.compares else ()


def delete_mask(rules: MergeRules, rows: pa.Table) -> npt.NDArray[np.bool_] | None:
    """One flag per row, or None when no row is a delete.

    Raises:
        SchemaMismatchError: ``_hoodie_is_deleted`` is not boolean.
    """
    masks = []
    if DELETED_FLAG in rows.column_names:
        flag = rows.column(DELETED_FLAG)
        if not pa.types.is_boolean(flag.type):
            raise SchemaMismatchError(f"{DELETED_FLAG} has to be a boolean column; the incoming rows have {flag.type}.")
        masks.append(flag)
    if rules.delete_field is not None and rules.delete_field in rows.column_names:
        text = pc.cast(rows.column(rules.delete_field), pa.string())
        masks.append(pc.equal(text, rules.delete_marker))
    if not masks:
        return None
    combined = masks[0] if len(masks) == 1 else pc.or_kleene(masks[0], masks[1])
    flags = pc.fill_null(combined, False).to_numpy()
    return np.asarray(flags, dtype=np.bool_) if flags.any() else None


def ordering_rank(columns: Sequence[pa.ChunkedArray | pa.Array], count: int) -> npt.NDArray[np.int64]:
    """A number per row that compares as the ordering values do; all zero when there are none."""
    if not columns:
        return np.zeros(count, dtype=np.int64)
    if len(columns) == 1:
        direct = _as_int64(columns[0])
        return direct if direct is not None else _dense_rank(_default_filled(columns[0]))
    return _lexicographic_rank([_dense_rank(_default_filled(column)) for column in columns])


def at_least(
    incoming: Sequence[pa.ChunkedArray | pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array]
) -> npt.NDArray[np.bool_]:
    """For each row, whether the incoming ordering value is equal to or greater than the stored one.

    Args:
        incoming: ordering columns, all of one length.
        stored: as many columns of the same types and length.
    """
    result: npt.NDArray[np.bool_] | None = None
    for new, old in zip(reversed(incoming), reversed(stored), strict=True):
        new_rank, old_rank = _as_int64(new), _as_int64(old)
        if new_rank is None or old_rank is None:
            joined = _dense_rank(_default_filled(pa.chunked_array([*_chunks(new), *_chunks(old)])))
            new_rank, old_rank = joined[: len(new)], joined[len(new) :]
        greater, equal = new_rank > old_rank, new_rank == old_rank
        result = greater | equal if result is None else greater | (equal & result)
    if result is None:
        raise ValueError("at_least needs at least one ordering column")
    return result


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    first, *inner = name.split(".")
    if name in rows.column_names:
        return rows.column(name)
    if first not in rows.column_names:
        raise InvalidDataError(
            f"The ordering field {name!r} is not among the incoming columns {rows.column_names}. Add the column, or "
            "create the table without hoodie.table.ordering.fields."
        )
    return pc.struct_field(rows.column(first), inner) if inner else rows.column(first)


def _as_int64(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64] | None:
    """Integer-like values themselves, with null as 0; None for types that are not integers inside."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None  # for times and dates null is the lowest, not the epoch
    return np.asarray(pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(), dtype=np.int64)


def _default_filled(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column, pa.scalar(0).cast(kind))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pc.fill_null(column, pa.scalar(0 if pa.types.is_floating(kind) else Decimal(0), kind))
    return column


def _dense_rank(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64]:
    """Null lowest, NaN highest (as ``Double.compare`` has it)."""
    kind = column.type
    if pa.types.is_temporal(kind):
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        lowest = np.iinfo(np.int64).min
        return np.asarray(pc.fill_null(whole.cast(pa.int64()), int(lowest)).to_numpy(), dtype=np.int64)
    if pa.types.is_floating(kind):
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        _, ranks = np.unique(values, return_inverse=True)
        return ranks.astype(np.int64)
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    ranks = np.array(pc.rank(flat, "ascending", tiebreaker="dense"), dtype=np.int64)
    if flat.null_count:
        ranks[flat.is_null().to_numpy(zero_copy_only=False)] = 0  # all others begin at 1
    return ranks


def _lexicographic_rank(ranks: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    order = np.lexsort(tuple(reversed(ranks)))
    changed = np.zeros(len(order), dtype=bool)
    for rank in ranks:
        ordered = rank[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.cumsum(changed)
    return result


def _chunks(column: pa.ChunkedArray | pa.Array) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]
