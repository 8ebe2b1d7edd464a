"""Changes of incoming rows, or folded log entries, to the base rows with their keys.

Expects rows already matched by key. :func:`incoming_beats_stored` compares ordering values where the rules require it,
and :func:`resolve_matches` applies the result. A losing row leaves the stored row unchanged, unless its columns may
fill gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.merging.rules import MergeRules, at_least, greater

__all__ = ["BaseRowUpdates", "incoming_beats_stored", "resolve_matches"]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BaseRowUpdates:
    """Changes to the rows of a base file.

    Attributes:
        replaced: int64[u], ascending rows of the base file that get new values.
        sources: int64[u], the incoming row or log entry of each.
        dropped: int64[d], ascending rows of the base file that are deleted.
        source_wins: bool[u], whether the source wins; None when each does. A losing source is listed only because its
            columns may fill gaps of the stored row.
        blended: whether new rows combine both rows, so that the stored rows have to be read.
    """

    replaced: Rows
    sources: Rows
    dropped: Rows
    source_wins: Flags | None = None
    blended: bool = False


def resolve_matches(
    rules: MergeRules, base_rows: Rows, sources: Rows, deletes: Flags, wins: Flags, partial: bool = False
) -> BaseRowUpdates:
    """Resolve pairs of a stored and an incoming row with one key.

    Args:
        rules: merge rules.
        base_rows: int64[m], ascending rows of the base file.
        sources: int64[m], the incoming row (or log entry) of each pair; passed on.
        deletes: bool[m], whether the incoming row is a delete.
        wins: bool[m], whether the incoming row wins, see :func:`incoming_beats_stored`.
        partial: whether incoming rows may lack columns (partial log blocks). They then replace stored rows in part, and
            the table's partial update mode is ignored.
    """
    fills = rules.partial_mode is not None and not partial
    blended = partial or rules.blends
    all_win = bool(wins.all())
    if all_win and not deletes.any():  # without a copy of the rows, which may be many
        return BaseRowUpdates(base_rows, sources, base_rows[:0], None, blended)
    replaced = ~deletes if all_win else ~deletes & (wins | fills)
    return BaseRowUpdates(
        base_rows[replaced],
        sources[replaced],
        base_rows[deletes & wins],
        wins[replaced] if fills and not all_win else None,
        blended,
    )


def incoming_beats_stored(
    rules: MergeRules,
    deletes: Flags,
    default_ordering: Flags,
    incoming: Sequence[pa.Array],
    stored: Sequence[pa.ChunkedArray | pa.Array],
) -> Flags:
    """bool[m], for each pair of a stored and an incoming row with one key: whether the incoming row wins.

    Args:
        rules: merge rules.
        deletes: bool[m], whether the incoming row is a delete.
        default_ordering: bool[m], whether its ordering value is Hudi's default.
        incoming: ordering columns of the incoming rows, m values each; ignored where the rules do not compare.
        stored: ordering columns of the stored rows, m values each, of the same types.
    """
    if not rules.compares or not incoming or not len(deletes):
        return np.ones(len(deletes), dtype=np.bool_)
    if rules.partial_payload:
        return deletes | ~greater(stored, incoming) | _of_unlike_kinds(incoming, stored)
    compare = at_least if rules.same_ordering_updates else greater
    return compare(incoming, stored) | (deletes & default_ordering)


def _of_unlike_kinds(incoming: Sequence[pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array]) -> Flags:
    """Where one side has a value and the other is null, which means the integer 0."""
    unlike = np.zeros(len(incoming[0]), dtype=np.bool_)
    for new, old in zip(incoming, stored, strict=True):
        if not pa.types.is_int32(new.type):
            unlike |= np.asarray(new.is_null()) != np.asarray(old.is_null())
    return unlike
