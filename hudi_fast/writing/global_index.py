"""Tags rows by indexes whose record keys are unique in the whole table (``GLOBAL_SIMPLE``, ``GLOBAL_BLOOM``,
``GLOBAL_RECORD_LEVEL_INDEX``; Hudi 1.2.0).

Every key is looked up in every partition, or in the file group that the record index names. A row whose key is stored
in another partition either moves (the stored row is deleted, the incoming one inserted into its new partition) or, with
``update.partition.path`` off, changes the stored row in its old partition. On a merge-on-read table the old base file
still holds a moved key, and the log deletes it. Where ordering values decide whether a row moves, they are compared
with the row that a reader sees, so such a key counts as not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.tagging import IncomingKeys, SliceMatches, untagged_rows
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.assign import PartitionMatches, assign_rows, combined_rows
from hudi_fast.writing.located import locate_rows, match_slices
from hudi_fast.writing.lookup import Runner, beats_stored, living, look_up_all
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WritePlan

__all__ = ["TableTags", "assign_table", "tag_table"]

Rows = npt.NDArray[np.int64]
_Slices = dict[str, list[FileSlice]]


@dataclass(frozen=True)
class TableTags:
    """Result of tagging rows of a whole table.

    Attributes:
        slices: slices by partition path, of the whole table or of touched partitions only.
        matches: stored rows that are updated or deleted, with their incoming rows; and for each match bool[m], rows
            only deleted here, because they move to another partition, or None.
        inserts: int64[k], ascending: incoming rows that are added to their partitions.
    """

    slices: Mapping[str, list[FileSlice]]
    matches: Sequence[tuple[SliceMatches, npt.NDArray[np.bool_] | None]]
    inserts: Rows


def assign_table(plan: WritePlan, incoming: Incoming, run: Runner = map) -> list[FileGroupWork]:
    """The work of all partitions.

    Args:
        plan: the write.
        incoming: all rows.
        run: runs the lookups in slices: ``map``, or the ``map`` of a pool.
    """
    tags = tag_table(plan, incoming, run)
    codes, names = _codes(incoming)
    return _assign_all(plan, incoming, tags, codes, names)


def tag_table(plan: WritePlan, incoming: Incoming, run: Runner = map) -> TableTags:
    """Find the stored rows of all rows with different keys.

    Args:
        plan: the write.
        incoming: all rows, or all rows with some of the keys.
        run: runs the lookups in slices: ``map``, or the ``map`` of a pool.
    """
    rows = combined_rows(plan, incoming, np.arange(incoming.count, dtype=np.int64))
    codes, names = _codes(incoming)
    tag = _tag_by_index if plan.index.uses_records else _tag_by_files
    slices, matches = tag(plan, incoming, rows, run)
    unknown = untagged_rows(rows, matches, incoming.count)
    reads = run if plan.index.update_partition_path and incoming.ordering else map
    resolved = [*reads(lambda match: _moves_to_stored_rows(plan, incoming, match, codes, names), matches)]
    stays, moves = np.zeros((2, incoming.count), dtype=np.bool_)
    for match, moved in resolved:
        stays[match.incoming_rows if moved is None else match.incoming_rows[~moved]] = True
        if moved is not None:
            moves[match.incoming_rows[moved]] = True
    moves &= ~stays  # a key that is also stored in the partition of the row is changed there
    return TableTags(slices, resolved, np.sort(np.concatenate([unknown, np.flatnonzero(moves)])))


def _tag_by_files(plan: WritePlan, incoming: Incoming, rows: Rows, run: Runner) -> tuple[_Slices, list[SliceMatches]]:
    """Look every key up in every slice."""
    slices = {name: latest_slices(plan.view, name) for name in plan.view.lister.partitions()}
    keys = IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)
    flat = [one for found in slices.values() for one in found]
    matches = look_up_all(plan, flat, keys, run)
    if plan.index.update_partition_path and incoming.ordering and plan.operation != "delete":
        reads = run if any(match.slice.log_files for match in matches) else map
        seen = reads(lambda one: living(plan, incoming, one), matches)
        matches = [match for match in seen if match is not None]
    return slices, matches


def _tag_by_index(plan: WritePlan, incoming: Incoming, rows: Rows, run: Runner) -> tuple[_Slices, list[SliceMatches]]:
    """Look each key up in the file group that the record index names; returns the slices of touched partitions too."""
    found = locate_rows(plan, incoming, rows)
    codes, names = _codes(incoming)
    touched = {*(names[code] for code in np.unique(codes)), *(partition for partition, _ in found.groups)}
    slices = {name: latest_slices(plan.view, name) for name in sorted(touched)}
    moves = None
    if plan.index.update_partition_path and plan.operation != "delete" and found.groups:
        places = {name: code for code, name in enumerate(names)}
        stored = np.array([places.get(partition, -1) for partition, _ in found.groups], dtype=np.int64)
        moves = (found.numbers >= 0) & (stored[found.numbers] != codes[rows])
        if incoming.deletes is not None:
            moves &= ~incoming.deletes[rows]
    flat = [one for here in slices.values() for one in here]
    return slices, match_slices(plan, incoming, rows, found, flat, run, moves)


def _moves_to_stored_rows(
    plan: WritePlan, incoming: Incoming, match: SliceMatches, codes: npt.NDArray[np.int32], names: list[str]
) -> tuple[SliceMatches, npt.NDArray[np.bool_] | None]:
    """Matched rows that leave this partition; drops rows that lose to the stored row, unless rows blend."""
    if not plan.index.update_partition_path:
        return match, None
    here = names.index(match.slice.partition) if match.slice.partition in names else -1
    moved = codes[match.incoming_rows] != here
    if incoming.deletes is not None:
        moved &= ~incoming.deletes[match.incoming_rows]
    if not moved.any():
        return match, None
    if incoming.ordering:
        wins = beats_stored(plan, incoming, match, moved)
        if plan.rules.blends:  # a row that loses may still fill gaps of the stored one
            moved[moved] = wins
            return match, moved if moved.any() else None
        kept = ~moved
        kept[moved] = wins
        match, moved = SliceMatches(match.slice, match.base_rows[kept], match.incoming_rows[kept]), moved[kept]
    return match, moved


def _assign_all(
    plan: WritePlan, incoming: Incoming, tags: TableTags, codes: npt.NDArray[np.int32], names: list[str]
) -> list[FileGroupWork]:
    slices, inserts = tags.slices, tags.inserts
    by_partition: dict[str, list[tuple[SliceMatches, npt.NDArray[np.bool_] | None]]] = {}
    for match, moved in tags.matches:
        by_partition.setdefault(match.slice.partition, []).append((match, moved))
    works: list[FileGroupWork] = []
    for number, name in enumerate(sorted({*by_partition, *(names[code] for code in np.unique(codes[inserts]))})):
        own = inserts[codes[inserts] == names.index(name)] if name in names else inserts[:0]
        here = by_partition.get(name, [])
        found = PartitionMatches(slices.get(name, []), [m for m, _ in here], [moved for _, moved in here], own)
        works += assign_rows(plan, name, incoming, found, TaskToken(number))
    return _with_origins(works, tags, incoming.count) if plan.needs_origins else works


def _with_origins(works: Sequence[FileGroupWork], tags: TableTags, count: int) -> list[FileGroupWork]:
    """The works, with the stored rows of incoming rows that move to their partitions.

    Args:
        works: of the write.
        tags: its matches.
        count: number of incoming rows.
    """
    number, base_row = np.full((2, count), -1, dtype=np.int64)
    for at, (match, moved) in enumerate(tags.matches):
        if moved is not None:
            rows = match.incoming_rows[moved]
            number[rows], base_row[rows] = at, match.base_rows[moved]
    found = []
    for work in works:
        matches = number[work.inserts]
        origins = []
        for at in np.unique(matches[matches >= 0]).tolist():
            rows = work.inserts[matches == at]
            rows = rows[np.argsort(base_row[rows], kind="stable")]
            origins.append(SliceMatches(tags.matches[at][0].slice, base_row[rows], rows))
        found.append(replace(work, origins=tuple(origins)))
    return found


def _codes(incoming: Incoming) -> tuple[npt.NDArray[np.int32], list[str]]:
    return np.asarray(incoming.partitions.indices, dtype=np.int32), incoming.partitions.dictionary.to_pylist()
