"""Fold the entries of a log file, in their order, into one state per key.

A state is the winning entry and, if payloads combine rows, the list of surviving rows, best first: a winner is put at
the front, a loser at the back, and a winning delete clears the list.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bools, Bytes, Int, Int32s, Int64s
from ._kernel import kernel

__all__ = [
    "COMMIT_TIME",
    "DELETE",
    "KEY_ONLY",
    "KEY_ONLY_LOSES",
    "NO_KIND",
    "OTHER_KIND_LOSES",
    "first_flagged",
    "fold_entries",
    "several_survivors",
]

DELETE = 1
COMMIT_TIME = 2
KEY_ONLY = 4
"""Bits of ``flags``; see :func:`fold_entries`."""

OTHER_KIND_LOSES = 1
KEY_ONLY_LOSES = 2
"""Bits of ``rules``."""

NO_KIND = 255
"""Value of ``kinds`` for an entry whose ordering value does not compare."""


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
            wins = not (new_flags & KEY_ONLY)
        elif new_flags & COMMIT_TIME or kinds[i] == NO_KIND or kinds[old] == NO_KIND:
            wins = True
        elif unlike and (new_flags & KEY_ONLY or rules & OTHER_KIND_LOSES):
            wins = True
        elif old_flags & KEY_ONLY and rules & KEY_ONLY_LOSES:
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
        keys: int32[n], a number below n per entry; equal keys have equal numbers.
        rank: int64[n], sorts as the ordering values do.
        flags: uint8[n], bits: ``DELETE`` for an entry that deletes its key, ``COMMIT_TIME`` for a delete without an
            ordering value, ``KEY_ONLY`` for a key without a row (from a delete block).
        kinds: uint8[n], kind of the ordering value; ``NO_KIND`` for a value that cannot be compared.
        rules: bits: with ``OTHER_KIND_LOSES`` an earlier entry with a value of another kind loses to rows, as it always
            loses to key-only deletes; with ``KEY_ONLY_LOSES`` an earlier key-only delete loses to every row.

    Returns:
        int32[n] by key, the winning entry, or -1; int32[n] by key, the first entry whose row may survive; int32[n]
        by entry, its position among the surviving rows of its key, ascending from the best. Unless the winner is a
        delete, the rows of a key survive from that first entry on.

    Raises:
        ValueError: the lengths differ.
    """
    rows = keys.size
    if not rank.size == flags.size == kinds.size == rows:
        raise ValueError(f"lengths differ: {rows} keys, {rank.size} ranks, {flags.size} flags, {kinds.size} kinds")
    if rows and not (0 <= int(keys.min()) and int(keys.max()) < rows):
        raise ValueError(f"key numbers must be in 0..{rows - 1}")
    winner, since, place = np.full(rows, -1, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    _fold(keys, rank, flags, kinds, rules, winner, since, place, np.zeros(rows, np.int32))
    return winner, since, place


@kernel("void(ri4, rb1, ri4, ri4, wi4)")
def _count_survivors(keys: Int32s, deletes: Bools, winner: Int32s, since: Int32s, counts: Int32s) -> None:
    for i in range(keys.size):
        key = np.int64(keys[i])
        if not deletes[i] and not deletes[winner[key]] and i >= since[key]:
            counts[key] += 1


@kernel("void(ri4, rb1, ri4, ri4, ri4, wi4, wi4, wi4)")
def _place_survivors(
    keys: Int32s,
    deletes: Bools,
    winner: Int32s,
    since: Int32s,
    place: Int32s,
    counts: Int32s,
    entries: Int32s,
    starts: Int32s,
) -> None:
    """Fill ``entries`` and ``starts``; ``counts`` becomes the position of each key's winner, or -1."""
    at = 0
    group = 0
    for key in range(counts.size):
        count = int(counts[key])
        if count < 2:
            counts[key] = -1
            continue
        counts[key] = np.int32(at)
        starts[group] = np.int32(at)
        group += 1
        at += count
    for i in range(keys.size):
        number = np.int64(keys[i])
        first = np.int64(counts[number])
        if first >= 0 and not deletes[i] and i >= since[number]:
            entries[first + np.int64(place[i]) - np.int64(place[winner[number]])] = np.int32(i)


def several_survivors(
    keys: Int32s, deletes: Bools, winner: Int32s, since: Int32s, place: Int32s
) -> tuple[Int32s, Int32s]:
    """The surviving entries of keys that have several surviving entries.

    Args:
        keys: int32[n], the key numbers that :func:`fold_entries` received.
        deletes: bool[n], entries that delete their key.
        winner: int32[n], the first result of :func:`fold_entries`.
        since: int32[n], the second result.
        place: int32[n], the third result.

    Returns:
        int32[s] entries, grouped by key, best first; int32[g], the first position of each key.
    """
    counts = np.zeros(keys.size, np.int32)
    _count_survivors(keys, deletes, winner, since, counts)
    several = counts > 1
    entries = np.empty(int(counts[several].sum()), np.int32)
    starts = np.empty(int(np.count_nonzero(several)), np.int32)
    _place_survivors(keys, deletes, winner, since, place, counts, entries, starts)
    return entries, starts


@kernel("void(rb1, ri4, wi4)")
def _first_flagged(flags: Bools, starts: Int32s, first: Int32s) -> None:
    groups = starts.size
    for group in range(groups):
        start = np.int64(starts[group])
        end = np.int64(flags.size)
        if group + 1 < groups:
            end = np.int64(starts[group + 1])
        first[group] = np.int32(start)
        for i in range(start, end):
            if flags[i]:
                first[group] = np.int32(i)
                break


def first_flagged(flags: Bools, starts: Int32s) -> Int32s:
    """int32[g], the first position of each group whose flag is set; without such a position, the group's first one.

    Args:
        flags: bool[s].
        starts: int32[g], ascending from 0: the first position of each group.
    """
    first = np.empty(starts.size, np.int32)
    _first_flagged(flags, starts, first)
    return first
