"""One row for each key: of a log, or of an incoming batch.

Fold the log of a file slice: merge the entries of each key into one.

::

    keys ─► a number per key ─┐
    ordering values ─► ranks ─┼─► winning entry, surviving rows ─► per column: the row that its value is taken from
    deletes ─► flags ─────────┘

If whole rows win and no delete interferes, one pass over the keys is enough. If a merged row has values of several
rows, each key has a list of surviving rows, best first, and a column takes its value from the first row with an
effective value. So folding takes a fixed number of passes over columns, however often a key occurs. Only a user
function runs in rounds: round i merges the i-th row of every key.

Combine the rows of one batch that share a key, before the batch is written.

The rules are the same as for log records (:mod:`hudi_fast.merging.rules`): the row with the greatest ordering value is
kept, the later one of equals, and a commit-time delete beats every row before it. Where a merged row may have values of
several rows, :func:`blend_duplicates` replaces each of these rows by the merged row before :func:`combine` keeps one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import VarlenBuffers, gather, replace_rows, varlen_buffers
from hudi_fast.kernels.fold_entries import (
    COMMIT_TIME,
    DELETE,
    KEY_ONLY,
    KEY_ONLY_LOSES,
    NO_KIND,
    OTHER_KIND_LOSES,
    first_flagged,
    fold_entries,
    several_survivors,
)
from hudi_fast.kernels.key_table import first_equal, pick_winners
from hudi_fast.merging.blend import effective_values, provides, run_merger
from hudi_fast.merging.log_entries import LogEntries, select_entries
from hudi_fast.merging.rules import META_COLUMNS, Merger, MergeRules, default_ordering, ordering_rank
from hudi_fast.values import dataclass

__all__ = ["blend_duplicates", "combine", "commit_time_deletes", "fold", "fold_by_merger", "fold_keyed"]

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_PART_ROWS = 65536
"""Rows whose values are examined at a time; the rows may be in a mapped file."""


def fold(rules: MergeRules, entries: LogEntries) -> LogEntries:
    """One entry per key, in the order of the winning entries.

    The row of a delete may be dropped. A delete whose ordering value does not compare becomes a commit-time delete.
    """
    folded = _folded(rules, entries)
    if folded.mismatched is None:
        return folded
    return replace(folded, default_ordering=folded.default_ordering | folded.mismatched, mismatched=None)


def _folded(rules: MergeRules, entries: LogEntries) -> LogEntries:
    if entries.count < 2:
        return entries
    ordered = rules.orders and bool(entries.ordering)
    if not rules.blends and entries.column_set is None and not (ordered and entries.deletes.any()):
        buffers = varlen_buffers(entries.keys)
        rank = ordering_rank(entries.ordering if ordered else (), entries.count)
        winners = pick_winners(buffers.offsets, buffers.data, rank)
        return entries if len(winners) == entries.count else select_entries(entries, winners)
    return fold_keyed(rules, entries, first_equal(*varlen_buffers(entries.keys)))[1]


def fold_keyed(rules: MergeRules, entries: LogEntries, numbers: Numbers) -> tuple[Rows, LogEntries]:
    """Fold entries whose keys are numbered.

    ``numbers`` is int32[n], a number below n per entry, equal for equal keys.

    Returns:
        int64[k], ascending: the winning entries; and the folded entries in their order.
    """
    if rules.merger is not None:
        return fold_by_merger(rules.merger, entries, numbers)
    ordered = rules.orders and bool(entries.ordering)
    winner, since, place = fold_entries(
        numbers,
        ordering_rank(entries.ordering if ordered else (), entries.count),
        _flags(rules, entries),
        _kinds(entries) if ordered else np.zeros(entries.count, dtype=np.uint8),
        OTHER_KIND_LOSES * rules.partial_payload + KEY_ONLY_LOSES * rules.log_ordering,
    )
    winners = np.sort(winner[winner >= 0]).astype(np.int64)
    if entries.column_set is None and rules.partial_mode is None:
        return winners, select_entries(entries, winners)
    survivors = _survivors(entries, numbers, winners, winner, since, place)
    del numbers, winner, since, place  # of millions of entries each
    if not len(survivors.starts):  # no row is blended, so the rows may stay in a mapped file
        return winners, select_entries(entries, winners)
    return winners, _blended(rules, entries, winners, survivors)


def _flags(rules: MergeRules, entries: LogEntries) -> npt.NDArray[np.uint8]:
    commit_time = entries.deletes if rules.partial_payload else entries.commit_time_deletes
    bits = DELETE * entries.deletes.astype(np.uint8)
    bits |= COMMIT_TIME * commit_time.astype(np.uint8)
    bits |= KEY_ONLY * (entries.row < 0).astype(np.uint8)
    return bits


def _kinds(entries: LogEntries) -> npt.NDArray[np.uint8]:
    """Bit i is set where ordering value i is null: null counts as the integer 0 in columns of any type."""
    kinds = np.zeros(entries.count, dtype=np.uint8)
    for position, column in enumerate(entries.ordering[:7]):
        if column.null_count and not pa.types.is_int32(column.type):
            kinds |= (column.is_null().to_numpy(zero_copy_only=False) << position).astype(np.uint8)
    if entries.mismatched is not None:
        kinds[entries.mismatched] = NO_KIND
    return kinds


# ---- blended rows


@dataclass(frozen=True, slots=True)
class _Survivors:
    """Keys with more than one surviving row.

    Attributes:
        entries: int32[s], the surviving entries, grouped by key, best first: the first is the winner.
        starts: int32[g], the first position of each key.
        targets: int64[g], the key's row number in the result.
    """

    entries: Numbers
    starts: Numbers
    targets: Rows


def _survivors(
    entries: LogEntries, numbers: Numbers, winners: Rows, winner: Numbers, since: Numbers, place: Numbers
) -> _Survivors:
    found, starts = several_survivors(numbers, entries.deletes, winner, since, place)
    rows = winners[~entries.deletes[winners]]
    return _Survivors(found, starts, np.searchsorted(rows, found[starts]))


def _blended(rules: MergeRules, entries: LogEntries, winners: Rows, survivors: _Survivors) -> LogEntries:
    """Entries with a row number per column; taking a row blends it."""
    is_row = ~entries.deletes[winners]
    kind: type[np.signedinteger[Any]] = np.int32 if entries.rows.num_rows < 2**31 else np.int64
    plain = entries.row[winners[is_row]].astype(kind)

    def with_rows_of(chosen: Numbers) -> npt.NDArray[np.integer[Any]]:
        sources = plain.copy()
        sources[survivors.targets] = entries.row[chosen]
        return sources

    best = with_rows_of(survivors.entries[survivors.starts])
    by_provider: dict[bytes, npt.NDArray[np.integer[Any]]] = {}
    blended: dict[str, npt.NDArray[np.integer[Any]]] = {}
    for name in entries.rows.column_names:
        if name in META_COLUMNS:
            newest = rules.partial_payload and entries.column_set is None
            blended[name] = with_rows_of(np.maximum.reduceat(survivors.entries, survivors.starts)) if newest else best
        elif entries.column_set is not None:
            provided = provides(entries.column_sets, name)
            if provided.tobytes() not in by_provider:
                chosen = _first(provided[entries.column_set[survivors.entries]], survivors)
                by_provider[provided.tobytes()] = with_rows_of(chosen)
            blended[name] = by_provider[provided.tobytes()]
        else:
            effective = _effective(rules, entries, survivors, name)
            blended[name] = best if effective is None else with_rows_of(_first(effective, survivors))
    row = np.full(len(winners), -1, dtype=np.int64)
    row[is_row] = np.arange(len(plain))
    folded = replace(select_entries(entries, winners), row=row, blended=blended)
    return folded if entries.column_set is None else _with_united_sets(rules, entries, folded, is_row, survivors)


def _effective(rules: MergeRules, entries: LogEntries, survivors: _Survivors, name: str) -> Flags | None:
    """bool[s], the survivors whose value a partial update mode keeps; None for all."""
    found = np.ones(len(survivors.entries), dtype=np.bool_)
    for start in range(0, len(found), _PART_ROWS):
        part = slice(start, start + _PART_ROWS)
        column = entries.take(entries.row[survivors.entries[part]], [name]).column(0)
        kept = effective_values(rules, name, column)
        if kept is not None:
            found[part] = kept
    return None if found.all() else found


def _first(effective: Flags, survivors: _Survivors) -> Numbers:
    """For each key, the first entry with an effective value, else the best."""
    chosen: Numbers = survivors.entries[first_flagged(effective, survivors.starts)]
    return chosen


def _with_united_sets(
    rules: MergeRules, entries: LogEntries, blended: LogEntries, is_row: npt.NDArray[np.bool_], survivors: _Survivors
) -> LogEntries:
    """Set the columns that each blended row provides: all columns that any of its rows provides."""
    assert entries.column_set is not None
    assert blended.column_set is not None
    names = sorted(frozenset().union(*entries.column_sets))
    # a bit per column, and a last one for the set of all columns
    known = [[name in one for name in names] + [False] for one in entries.column_sets]
    provided = np.packbits(np.array([*known, [True] * (len(names) + 1)]), axis=1)
    united = provided[blended.column_set]
    together = np.bitwise_or.reduceat(provided[entries.column_set[survivors.entries]], survivors.starts)
    united[np.flatnonzero(is_row)[survivors.targets]] = together
    bits = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(united.shape[1]), len(united), [None, pa.py_buffer(united)]
    ).dictionary_encode()  # hashes: sorting millions of rows takes far longer
    distinct = [np.unpackbits(np.frombuffer(one.as_py(), np.uint8)) for one in bits.dictionary]
    sets = [frozenset(name for name, there in zip(names, one, strict=False) if there) for one in distinct]
    whole = np.array([bool(one[len(names)]) for one in distinct], dtype=np.bool_)
    indices = bits.indices.to_numpy()
    numbers = np.where(whole[indices], -1, indices).astype(np.int32)
    if (numbers < 0).all() and rules.partial_mode is None:
        return replace(blended, column_sets=(), column_set=None)
    return replace(blended, column_sets=tuple(sets), column_set=numbers)


# ---- fold entries by a user function, in rounds: round i merges the i-th row of every key
#
# A round merges the next entry of each remaining key into the key's state. Complete keys are removed from the state,
# so all rounds together touch each row once.


def fold_by_merger(merger: Merger, entries: LogEntries, numbers: npt.NDArray[np.int32]) -> tuple[Rows, LogEntries]:
    """One entry per key.

    ``numbers`` is int32[n], a number per entry, equal for equal keys.

    Returns:
        int64[k], ascending: the last entry of each key; and the folded entries in their order.

    Raises:
        InvalidDataError: the merger does not return a table of the rows that it received.
    """
    order = np.lexsort((np.arange(entries.count), numbers))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    counts = np.diff(starts, append=entries.count)
    by_count = np.argsort(-counts, kind="stable")  # remaining keys stay a prefix
    starts, counts = starts[by_count], counts[by_count]
    first = order[starts]
    state, deleted = _rows_of(entries, first), entries.deletes[first]
    done: list[tuple[pa.Table, Flags]] = []
    for nth in range(1, int(counts[0]) if len(counts) else 0):
        remaining = int(np.searchsorted(-counts, -nth))  # keys with more than nth entries
        done.append((state.slice(remaining), deleted[remaining:]))
        state, deleted = _merged(
            merger, entries, state.slice(0, remaining), deleted[:remaining], order[starts[:remaining] + nth]
        )
    done.append((state, deleted))
    last = order[starts + counts - 1]
    back = np.argsort(last)
    rows = pa.concat_tables([table for table, _ in reversed(done)]).combine_chunks()
    deleted = np.concatenate([flags for _, flags in reversed(done)])[back]
    folded = select_entries(entries, last[back])
    return last[back], replace(
        folded,
        rows=rows,
        row=np.where(deleted, -1, back),
        deletes=deleted,
        default_ordering=folded.default_ordering | deleted,
        column_sets=(),
        column_set=None,
        batched=None,
        blended=None,
    )


def _rows_of(entries: LogEntries, which: Rows) -> pa.Table:
    """Rows of entries; an entry without a row gets an arbitrary row, which is not used."""
    if not entries.rows.num_rows:
        nothing = [pa.nulls(len(which), field.type) for field in entries.rows.schema]
        return pa.Table.from_arrays(nothing, schema=entries.rows.schema)
    return entries.take(np.maximum(entries.row[which], 0), entries.rows.column_names)


def _merged(
    merger: Merger, entries: LogEntries, state: pa.Table, deleted: Flags, which: Rows
) -> tuple[pa.Table, Flags]:
    """The state after merging one more entry of each key."""
    new, deletes = _rows_of(entries, which), entries.deletes[which]
    both = np.flatnonzero(~deleted & ~deletes)
    merged, removed = run_merger(merger, gather(state, both), gather(new, both))
    after = deletes.copy()
    if removed is not None:
        after[both] |= removed
    sources = np.arange(len(which), dtype=np.int64)
    sources[both] = len(which) + np.arange(len(both))
    return gather(pa.concat_tables([new, merged]).combine_chunks(), sources), after


def combine(
    keys: pa.Array,
    rank: npt.NDArray[np.int64],
    commit_time_deletes: Flags | None,
) -> npt.NDArray[np.int64]:
    """Row numbers to keep, ascending.

    Args:
        keys: record keys, no nulls; string, n rows.
        rank: int64[n], see :func:`hudi_fast.merging.rules.ordering_rank`.
        commit_time_deletes: bool[n], deletes with the default ordering value; None for none.
    """
    buffers = varlen_buffers(keys)
    if commit_time_deletes is None or not commit_time_deletes.any():
        return pick_winners(buffers.offsets, buffers.data, rank)
    return _combine_with_deletes(buffers, keys, rank, commit_time_deletes)


def commit_time_deletes(rules: MergeRules, deletes: Flags | None, ordering: Sequence[pa.Array]) -> Flags | None:
    """The rows of a batch that are deletes and win over every row before them.

    ``deletes`` is bool[n], None for none. ``ordering`` is empty when ordering values are not compared.

    Returns:
        bool[n]; None where it makes no difference.
    """
    if deletes is None or not ordering or not deletes.any():
        return None
    return deletes if rules.partial_payload else deletes & default_ordering(ordering, len(deletes))


def blend_duplicates(
    rules: MergeRules,
    keys: pa.Array,
    groups: npt.NDArray[np.int32],
    rows: pa.Table,
    deletes: Flags | None,
    ordering: Sequence[pa.Array],
) -> tuple[pa.Table, Flags | None, tuple[pa.Array, ...]]:
    """Replace each row by the merge of all rows with its key, so any one of them may be kept.

    Args:
        rules: merge rules that blend.
        keys: record keys, no nulls; string, n rows.
        groups: int32[n], the row's table partition, part of its identity.
        rows: n rows.
        deletes: bool[n]; None for none.
        ordering: ordering columns, n values each; empty when ordering values are not compared.

    Returns:
        n rows; the deletes, bool[n] or None for none; and the ordering columns, with the winner's values in all rows of
        a key.
    """
    numbers = _numbers(keys, groups)
    count = len(numbers)
    shared = np.bincount(numbers, minlength=count)[numbers] > 1
    if not shared.any():
        return rows, deletes, tuple(ordering)
    which = np.flatnonzero(shared)
    flags = np.zeros(count, dtype=np.bool_) if deletes is None else deletes
    entries = LogEntries(
        keys=keys.take(pa.array(which)),
        rows=rows,
        row=which,
        deletes=flags[which],
        default_ordering=default_ordering(ordering, count)[which],
        ordering=tuple(column.take(pa.array(which)) for column in ordering),
    )
    _, key = np.unique(numbers[which], return_inverse=True)
    winners, folded = fold_keyed(rules, entries, key.astype(np.int32))
    of_key = np.empty(len(winners), dtype=np.int64)
    of_key[key[winners]] = np.arange(len(winners))
    merged = of_key[key]
    flags = flags.copy()
    flags[which] = folded.deletes[merged]
    stays = ~folded.deletes[merged]
    made = folded.take(folded.row[merged[stays]], rows.column_names)
    rows = replace_rows(rows, made, which[stays], np.zeros(0, dtype=np.int64))
    sources = np.arange(count)
    sources[which] = which[winners[merged]]
    taken = tuple(column.take(pa.array(sources)) for column in ordering)
    return rows, flags if flags.any() else None, taken


def _numbers(keys: pa.Array, groups: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """A number per row, equal for equal keys of one group."""
    first = first_equal(*varlen_buffers(keys))
    if not groups.any():
        return first
    pairs = first.astype(np.int64) << 32 | groups
    numbers: npt.NDArray[np.int32] = np.unique(pairs, return_inverse=True)[1].astype(np.int32)
    return numbers


def _combine_with_deletes(
    buffers: VarlenBuffers, keys: pa.Array, rank: npt.NDArray[np.int64], deletes: Flags
) -> npt.NDArray[np.int64]:
    """Drop the rows before a key's last commit-time delete. That delete then loses to any later row."""
    codes = keys.dictionary_encode().indices.to_numpy()
    last_delete = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    positions = np.flatnonzero(deletes)
    last_delete[codes[positions]] = positions  # ascending, so the last one is kept
    rows = np.arange(len(codes), dtype=np.int64)
    after = np.flatnonzero(rows >= last_delete[codes])
    adjusted = rank.copy()
    adjusted[positions] = np.iinfo(np.int64).min
    kept = varlen_buffers(keys.take(pa.array(after)))
    winners: npt.NDArray[np.int64] = after[pick_winners(kept.offsets, kept.data, adjusted[after])]
    return winners
