"""Splits the rows of a write by file group where record keys are unique in the whole table.

Rows come split by a hash of their key. All rows with one key are combined, looked up in all partitions and compared
with the stored row in one part, as in a write of rows in memory. A row whose key moves to another partition is sent to
two file groups: the old one deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.index.tagging import SliceMatches
from hudi_fast.kernels.key_table import first_equal
from hudi_fast.merging.gather import gather
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import Runner
from hudi_fast.writing.global_index import TableTags, tag_table
from hudi_fast.writing.key_places import KeyPlaces, places_of_matches, slice_numbers
from hudi_fast.writing.plan import Incoming, WritePlan
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.routed_rows import MOVED, STORED_ROW
from hudi_fast.writing.spilling.buckets import Bucket, Buckets
from hudi_fast.writing.spilling.large_partition import cut_inserts, deal_inserts
from hudi_fast.writing.spilling.spill_file import Piece, SpillFile, SpillSettings
from hudi_fast.writing.spilling.spilled_rows import SpilledRows, hashed

__all__ = ["split_table"]

Numbers = npt.NDArray[np.int64]

_PARTS = 64
"""Parts of the new rows of a partition where rows with one key blend, so that such rows stay together."""


def split_table(
    plan: WritePlan, spilled: SpilledRows, settings: SpillSettings, stack: ExitStack, run: Runner = map
) -> Buckets:
    """The file groups of all rows.

    Args:
        plan: the write, whose index is global.
        spilled: the rows, split by key.
        settings: memory and folder.
        stack: closes the second temporary file.
        run: runs the lookups of keys: ``map``, or the ``map`` of a pool.

    Raises:
        HudiError: of the key lookup.
        CommitError: the temporary file cannot be written.
    """
    slices = [one for name in plan.view.lister.partitions() for one in latest_slices(plan.view, name)]
    numbers = slice_numbers(slices)
    names = list(spilled.partitions)
    parts = _PARTS if plan.rules.blends else 1
    file = stack.enter_context(SpillFile(settings, plan.storage.uri))
    for group in spilled.groups(settings.part_bytes):
        rows = spilled.table(group).combine_chunks()
        incoming = prepare_rows(plan, rows)
        for part, chosen in _placed(plan, rows, incoming, tag_table(plan, incoming, run), numbers, names, parts):
            file.add(part, chosen)
        del rows, incoming
    file.finish()
    found = {number: [Piece(file, number)] for number in file.numbers() if number < len(slices)}
    places = {number: one.partition for number, one in enumerate(slices)}
    first_new = len(slices)
    for code, name in enumerate(names):
        first = len(slices) + code * parts
        new = [Piece(file, number) for number in range(first, first + parts) if file.count(number)]
        own = [(number, one) for number, one in enumerate(slices) if one.partition == name]
        count = sum(file.count(piece.number) for piece in new)
        if not count:
            continue
        dealt = (
            deal_inserts(plan, name, own, new, first_new)
            if parts > 1
            else cut_inserts(plan, name, own, new, count, first_new)
        )
        for bucket in dealt:
            places[bucket.number] = name
            found.setdefault(bucket.number, []).extend(bucket.pieces)
        first_new = max([first_new, *(bucket.number + 1 for bucket in dealt)])
    return Buckets(slices, [Bucket(places[number], number, tuple(pieces)) for number, pieces in found.items()])


def _placed(
    plan: WritePlan,
    rows: pa.Table,
    incoming: Incoming,
    tags: TableTags,
    numbers: dict[tuple[str, str], int],
    names: Sequence[str],
    parts: int,
) -> Iterator[tuple[pa.Table, Numbers]]:
    """Rows with the columns :data:`STORED_ROW` and :data:`MOVED`, and the numbers of their slices or parts."""
    codes = np.asarray(incoming.partitions.indices)
    first = _first_equal(incoming) if plan.rules.blends else None
    for match, moved in tags.matches:
        for leaves in (False,) if moved is None else (False, True):
            flags = slice(None) if moved is None else moved == leaves
            some = SliceMatches(match.slice, match.base_rows[flags], match.incoming_rows[flags])
            places = _with_equal(places_of_matches([some], numbers), first)
            yield _routed(rows, places.rows, pa.array(places.stored), leaves), places.slices
    if plan.operation == "delete":
        return
    inserts = tags.inserts
    if first is not None:
        winner = np.full(incoming.count, -1, dtype=np.int64)
        winner[first[inserts]] = inserts
        winner = winner[first]
        inserts = np.flatnonzero((winner >= 0) & (codes == codes[winner]))
    known = {name: code for code, name in enumerate(names)}
    of_code = np.array([known[name] for name in incoming.partitions.dictionary.to_pylist()], dtype=np.int64)
    chosen = len(numbers) + of_code[codes[inserts]] * parts
    if parts > 1:
        chosen += hashed(incoming.key_array(), parts)[inserts]
    yield _routed(rows, inserts, pa.nulls(len(inserts), pa.int64()), False), chosen


def _first_equal(incoming: Incoming) -> Numbers:
    buffers = varlen_buffers(incoming.key_array())
    return first_equal(buffers.offsets, buffers.data).astype(np.int64)


def _with_equal(places: KeyPlaces, first: Numbers | None) -> KeyPlaces:
    """The places of all rows with the keys of ``places``."""
    if first is None:
        return places
    known = KeyPlaces(first[places.rows], places.slices, places.stored)
    return known.take(np.argsort(known.rows, kind="stable")).spread(first)


def _routed(rows: pa.Table, chosen: Numbers, stored: pa.Array, moved: bool) -> pa.Table:
    flags = pa.array(np.full(len(chosen), moved))
    return gather(rows, chosen).append_column(STORED_ROW, stored).append_column(MOVED, flags)
