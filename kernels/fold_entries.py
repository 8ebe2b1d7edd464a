"""Fold the entries of a log, in their order, into one state per key.

A state is the entry that won last and, where merged rows are made of several, the list of the rows that survive, best
first: a winner goes to its front, a loser to its back, a delete that wins ends it.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int32s, Int64s
from ._jit import kernel

__all__ = ["BARE", "BARE_YIELDS", "COMMIT_TIME", "DELETE", "NO_KIND", "UNLIKE_YIELDS", "fold_entries"]

DELETE = 1
COMMIT_TIME = 2
BARE = 4

UNLIKE_YIELDS = 1
BARE_YIELDS = 2

NO_KIND = 255


@kernel("void(ri4, ri8, ru1, ru1, i8, wi4, wi4, wi4, wi4)")
def _fold(
    keys: Int32s,
    rank: Int64s,
    flags: Bytes,
    kinds: Bytes,
    rules: Int,
    winner: Int32s,
    since: Int32s,
    place: Int32s,
    ends: Int32s,
) -> None:
    for i in range(keys.size):
        key = np.int64(keys[i])
        old = np.int64(winner[key])
        if old < 0:
            winner[key] = np.int32(i)
            since[key] = np.int32(i)
            continue
        new_flags, old_flags = np.int64(flags[i]), np.int64(flags[old])
        unlike = kinds[i] != kinds[old]
        if old_flags & COMMIT_TIME:
            wins = not (new_flags & BARE)
        elif new_flags & COMMIT_TIME or kinds[i] == NO_KIND or kinds[old] == NO_KIND:
            wins = True
        elif unlike and (new_flags & BARE or rules & UNLIKE_YIELDS):
            wins = True
        elif old_flags & BARE and rules & BARE_YIELDS:
            wins = True
        else:
            wins = rank[i] >= rank[old]
        if wins:
            winner[key] = np.int32(i)
        if new_flags & DELETE:
            continue
        if old_flags & DELETE:
            if wins:
                since[key] = np.int32(i)
                ends[key] = 0
        elif wins:
            place[i] = place[old] - 1
        else:
            ends[key] += 1
            place[i] = ends[key]


def fold_entries(keys: Int32s, rank: Int64s, flags: Bytes, kinds: Bytes, rules: int) -> tuple[Int32s, Int32s, Int32s]:
    """Fold entries by ``BufferedRecordMergerFactory`` (Hudi 1.2.0).

    Args:
        keys: int32[n], a number below n per entry, the same for the same key.
        rank: int64[n], compares as the ordering values do.
        flags: uint8[n], bits: ``DELETE`` for an entry that deletes its key, ``COMMIT_TIME`` for one that does so
            without an ordering value, ``BARE`` for a key without a row (of a delete block).
        kinds: uint8[n], what kind of ordering value it is; ``NO_KIND`` for one that does not compare with any.
        rules: bits: ``UNLIKE_YIELDS``, an earlier entry whose value is of another kind loses to rows as it does to
            bare deletes; ``BARE_YIELDS``, an earlier bare delete loses to every row.

    Returns:
        int32[n] by key, the entry that won, or -1; int32[n] by key, the first entry whose row may survive; int32[n]
        by entry, its place among the surviving rows of its key, ascending from the best. Rows of a key survive from
        that first entry on, if the one that won is not a delete.

    Raises:
        ValueError: the lengths differ.
    """
    rows = keys.size
    if not rank.size == flags.size == kinds.size == rows:
        raise ValueError(f"lengths differ: {rows} keys, {rank.size} ranks, {flags.size} flags, {kinds.size} kinds")
    if rows and not (0 <= int(keys.min()) and int(keys.max()) < rows):
        raise ValueError(f"key numbers have to be in 0..{rows - 1}")
    winner, since, place = np.full(rows, -1, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    _fold(keys, rank, flags, kinds, rules, winner, since, place, np.zeros(rows, np.int32))
    return winner, since, place
