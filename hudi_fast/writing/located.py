"""Tagging by the record index, and the values that lookups exchange.

Tagging by the record index: opens only file groups that hold incoming keys, and only where needed.

::

    keys ─► record index ─► file group of each ─┬─ COPY_ON_WRITE: its key column ─► row numbers (needed by a rewrite)
                                                └─ MERGE_ON_READ: no file is opened             (a log needs none)

An index entry is stale when the file group is no longer part of the table, or does not hold the key; the row is then an
insert. A log append trusts the index: a row whose key the group does not hold is an independent row to every reader,
and the index entry is correct afterwards. Rows that may leave their group are compared with the stored row, so they are
always looked up; so are rows of a group that is rewritten to take inserts (:func:`with_row_numbers`).

The result of key lookups, and the values that lookups by any index share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_fast.errors import ConfigError
from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.metadata_lookup import KeyLocations, is_by_partition, locate_keys, missing_index, usable_index
from hudi_fast.index.tagging import IncomingKeys, SliceMatches
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.lookup import Runner, living, look_up, look_up_logged
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, WritePlan

__all__ = [
    "KEYS_AT_ONCE",
    "UNKNOWN_ROW",
    "UNREADABLE",
    "KeyPlaces",
    "locate_rows",
    "looks_keys_up",
    "match_located",
    "match_slices",
    "metadata_for",
    "places_of_matches",
    "refuse_large_scan",
    "slice_numbers",
    "with_row_numbers",
    "with_usable_index",
]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LOOKS_UP = frozenset({"upsert", "delete"})


def with_usable_index(plan: WritePlan) -> WritePlan:
    """The plan, with another index if the requested record index is missing.

    Warns:
        HudiWarning: see :func:`hudi_fast.index.metadata_lookup.usable_index`.
    """
    if not looks_keys_up(plan):
        return plan
    index = usable_index(plan.index, metadata_of(plan.view), plan.storage.uri)
    return plan if index is plan.index else replace(plan, index=index)


def refuse_large_scan(plan: WritePlan, state: TableState, limit: int) -> None:
    """Refuse a write that would look keys up in all files of a large table because its record index is missing.

    Args:
        plan: the write, not begun.
        state: the table, after its metadata table was built or repaired.
        limit: bytes of data files that may be read instead of the index (``hudi_fast.index.fallback.max.bytes``).

    Raises:
        ConfigError: the data files have more bytes.
    """
    problem = missing_index(plan.index, metadata_of(state.view)) if looks_keys_up(plan) else None
    if problem is None:
        return
    size = 0
    for partition in state.view.lister.partitions():
        size += sum(one.weight for one in latest_slices(state.view, partition))
        if size > limit:
            raise ConfigError(
                f"The record index of {state.storage.uri} cannot be used: {problem}. Without it this {plan.operation} "
                f"would look keys up in data files of {size} bytes or more; hudi_fast.index.fallback.max.bytes={limit} "
                "is the limit. No row was written. Build the index: HudiTable.services.index('record_index'), or "
                "write with hoodie.metadata.enable=true; drop one that does not fit first "
                "(HudiTable.services.drop_index). To read all keys in this write, raise the limit."
            )


def looks_keys_up(plan: WritePlan) -> bool:
    """Whether a write asks which of its keys are stored."""
    return plan.operation in _LOOKS_UP or (plan.operation == "insert" and plan.duplicates != "none")


def metadata_for(plan: WritePlan) -> MetadataTable:
    """The metadata table with the plan's record index."""
    table = metadata_of(plan.view)
    if table is None:
        raise ValueError("the plan is pinned to no metadata table, and uses its record index")
    return table


def locate_rows(plan: WritePlan, incoming: Incoming, rows: Rows, partition: str | None = None) -> KeyLocations:
    """The file groups of some incoming rows, for keys that the record index has.

    Args:
        plan: the write, which uses the record index.
        incoming: rows of the write.
        rows: int64[n], positions in ``incoming``.
        partition: their partition; used by a partitioned record index.
    """
    table = metadata_for(plan)
    keys = gather_array(incoming.key_array(), rows)
    return locate_keys(table, keys, partition if is_by_partition(table) else None)


def match_slices(
    plan: WritePlan,
    incoming: Incoming,
    rows: Rows,
    found: KeyLocations,
    slices: Iterable[FileSlice],
    run: Runner = map,
    moves: Flags | None = None,
) -> list[SliceMatches]:
    """The matches of incoming rows in the file groups that were found for them.

    Args:
        plan: the write.
        incoming: rows of the write.
        rows: int64[n], ascending.
        found: file groups of their n keys.
        slices: slices of the table or of one partition; a group without a slice here holds no keys.
        run: runs the lookups: ``map``, or the ``map`` of a pool.
        moves: bool[n], rows that may leave the partition where their key is stored; None for no rows.
    """
    by_group = {(one.partition, one.file_id): one for one in slices}
    leaving = [None] * len(found.groups) if moves is None else found.split(moves)
    live = [
        (by_group[group], here, gone)
        for group, here, gone in zip(found.groups, found.split(rows), leaving, strict=True)
        if group in by_group
    ]

    def match(one: tuple[FileSlice, Rows, Flags | None]) -> SliceMatches | None:
        return match_located(plan, incoming, *one)

    return [one for one in run(match, live) if one is not None]


def match_located(
    plan: WritePlan, incoming: Incoming, slice_: FileSlice, rows: Rows, moves: Flags | None = None
) -> SliceMatches | None:
    """The ``rows`` whose key the slice holds, verified or trusted; None for no rows.

    Args:
        plan: the write.
        incoming: rows of the write.
        slice_: the slice that the record index names.
        rows: int64[n], ascending.
        moves: bool[n], rows that may leave the slice's partition; None for no rows.
    """
    if not plan.config.is_mor or plan.partial is not None:  # a partial update must change a stored row
        return look_up(plan, slice_, _keys(incoming, rows))
    staying, leaving = (rows, rows[:0]) if moves is None else (rows[~moves], rows[moves])
    matches = [SliceMatches(slice_, np.full(len(staying), -1, dtype=np.int64), staying)]
    if len(leaving):
        found = look_up_logged(plan, slice_, _keys(incoming, leaving))
        if found is not None:
            matches.append(living(plan, incoming, found))
    return _joined(slice_, matches)


def with_row_numbers(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> FileGroupWork:
    """The work with base file row numbers, for a file group that is rewritten.

    A row whose key the file does not hold is inserted, unless it is a delete.
    """
    if work.slice is None or (work.base_rows >= 0).all():
        return work
    rows = work.incoming_rows
    found = look_up(plan, work.slice, _keys(incoming, rows))
    base_rows, sources = (rows[:0], rows[:0]) if found is None else (found.base_rows, found.incoming_rows)
    gone = np.zeros(len(rows), dtype=np.bool_) if work.moved is None else work.moved
    stale = ~np.isin(rows, sources)
    lost = stale & ~gone
    if incoming.deletes is not None:
        lost &= ~incoming.deletes[rows]
    moved = None if work.moved is None else np.isin(sources, rows[gone])
    inserts = np.concatenate([rows[lost], work.inserts])
    return replace(work, base_rows=base_rows, incoming_rows=sources, moved=moved, inserts=inserts)


def _keys(incoming: Incoming, rows: Rows) -> IncomingKeys:
    return IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)


def _joined(slice_: FileSlice, parts: Sequence[SliceMatches]) -> SliceMatches | None:
    if not sum(len(one.incoming_rows) for one in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    return SliceMatches(
        slice_,
        np.concatenate([one.base_rows for one in parts]),
        np.concatenate([one.incoming_rows for one in parts]),
    )


KEYS_AT_ONCE = 1 << 20
"""Keys per lookup. Each lookup may read all keys of the slices, or every block of a file group of the index."""

UNREADABLE = -2
"""The slice of rows whose index or partition could not be read."""

UNKNOWN_ROW = -2
"""Replaces an unknown row number in a base file: the task that writes the row looks its key up in the file."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """The slices that hold the keys of rows. The arrays have one element per pair of a row and a slice with its key.

    Attributes:
        rows: int64[m], numbers of rows.
        slices: int64[m], numbers of slices, or :data:`UNREADABLE`.
        stored: int64[m], numbers of rows in the base file of the slice; -1 if only its log has the key, or
            :data:`UNKNOWN_ROW`.
    """

    rows: Ints
    slices: Ints
    stored: Ints

    def take(self, chosen: slice | npt.NDArray[Any]) -> KeyPlaces:
        """The chosen elements: a slice, their positions, or a flag for each."""
        return KeyPlaces(self.rows[chosen], self.slices[chosen], self.stored[chosen])

    def spread(self, first_equal: npt.NDArray[np.integer[Any]]) -> KeyPlaces:
        """The places of all rows, from the places of the first row with each key, which ascend by row.

        Args:
            first_equal: int[n], for each row the first one with its key.
        """
        held = np.bincount(self.rows, minlength=len(first_equal))
        first = np.cumsum(held) - held
        lengths = held[first_equal]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = self.take(np.repeat(first[first_equal], lengths) + within)
        return KeyPlaces(np.repeat(np.arange(len(first_equal)), lengths), found.slices, found.stored)

    @classmethod
    def in_slices(cls, rows: Ints, slices: Ints) -> KeyPlaces:
        """Places with unknown row numbers in the base file."""
        return cls(rows, slices, np.full(len(rows), UNKNOWN_ROW, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[KeyPlaces]) -> KeyPlaces:
        """All elements of ``parts``."""
        none = [np.zeros(0, dtype=np.int64)]
        return cls(
            np.concatenate(none + [one.rows for one in parts]),
            np.concatenate(none + [one.slices for one in parts]),
            np.concatenate(none + [one.stored for one in parts]),
        )


def slice_numbers(slices: Sequence[FileSlice]) -> dict[tuple[str, str], int]:
    """The position of each slice, by its partition path and file id."""
    return {(one.partition, one.file_id): number for number, one in enumerate(slices)}


def places_of_matches(matches: Sequence[SliceMatches], numbers: Mapping[tuple[str, str], int]) -> KeyPlaces:
    """The matches as places, ascending by incoming row, with one place for a key that a file has several times."""
    places = KeyPlaces.joined(
        [
            KeyPlaces(
                one.incoming_rows,
                np.full(len(one.incoming_rows), numbers[one.slice.partition, one.slice.file_id], dtype=np.int64),
                one.base_rows,
            )
            for one in matches
        ]
    )
    places = places.take(np.argsort(places.rows, kind="stable"))
    again = np.zeros(len(places.rows), dtype=np.bool_)
    again[1:] = (places.rows[1:] == places.rows[:-1]) & (places.slices[1:] == places.slices[:-1])
    if not again.any():
        return places
    places.stored[np.flatnonzero(again) - 1] = UNKNOWN_ROW
    return places.take(~again)
