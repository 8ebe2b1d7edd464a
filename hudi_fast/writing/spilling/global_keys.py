"""Splits the rows of a write by file group where record keys are unique in the whole table.

Rows come split by a hash of their key. All rows with one key are combined, looked up in all partitions and compared
with the stored row in one part, as in a write of rows in memory. A row whose key moves to another partition is sent to
two file groups: the old one deletes it. Tables whose rows blend are not written so: one row of each key goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.index.tagging import SliceMatches
from hudi_fast.merging.gather import gather
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import Runner
from hudi_fast.writing.global_index import TableTags, tag_table
from hudi_fast.writing.key_places import places_of_matches, slice_numbers
from hudi_fast.writing.plan import Incoming, WritePlan
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.routed_rows import MOVED, ORIGIN, STORED_ROW
from hudi_fast.writing.spilling.buckets import Bucket, Buckets
from hudi_fast.writing.spilling.large_partition import cut_inserts
from hudi_fast.writing.spilling.spill_file import Piece, SpillFile, SpillSettings
from hudi_fast.writing.spilling.spilled_rows import SpilledRows

__all__ = ["split_table"]

Numbers = npt.NDArray[np.int64]


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
    file = stack.enter_context(SpillFile(settings, plan.storage.uri))
    for group in spilled.groups(settings.part_bytes):
        rows = spilled.table(group).combine_chunks()
        incoming = prepare_rows(plan, rows)
        for part, chosen in _placed(plan, rows, incoming, tag_table(plan, incoming, run), numbers, names):
            file.add(part, chosen)
        del rows, incoming
    file.finish()
    found = {number: [Piece(file, number)] for number in file.numbers() if number < len(slices)}
    places = {number: one.partition for number, one in enumerate(slices)}
    first_new = len(slices)
    for code, name in enumerate(names):
        new = Piece(file, len(slices) + code)
        if not (count := file.count(new.number)):
            continue
        own = [(number, one) for number, one in enumerate(slices) if one.partition == name]
        for bucket in cut_inserts(plan, name, own, [new], count, first_new):
            places[bucket.number] = name
            found.setdefault(bucket.number, []).extend(bucket.pieces)
            first_new = max(first_new, bucket.number + 1)
    return Buckets(slices, [Bucket(places[number], number, tuple(pieces)) for number, pieces in found.items()])


def _placed(
    plan: WritePlan,
    rows: pa.Table,
    incoming: Incoming,
    tags: TableTags,
    numbers: dict[tuple[str, str], int],
    names: Sequence[str],
) -> Iterator[tuple[pa.Table, Numbers]]:
    """Rows with routing columns (:mod:`hudi_fast.writing.routed_rows`), and numbers of their slices or partitions."""
    codes = np.asarray(incoming.partitions.indices)
    origin = np.full(incoming.count, -1, dtype=np.int64)
    for match, moved in tags.matches:
        if moved is not None:
            origin[match.incoming_rows[moved]] = numbers[match.slice.partition, match.slice.file_id]
        for leaves in (False,) if moved is None else (False, True):
            flags = slice(None) if moved is None else moved == leaves
            some = SliceMatches(match.slice, match.base_rows[flags], match.incoming_rows[flags])
            places = places_of_matches([some], numbers)
            yield _routed(plan, rows, places.rows, pa.array(places.stored), leaves), places.slices
    if plan.operation == "delete":
        return
    known = {name: code for code, name in enumerate(names)}
    of_code = np.array([known[name] for name in incoming.partitions.dictionary.to_pylist()], dtype=np.int64)
    inserts = pa.nulls(len(tags.inserts), pa.int64())
    new = _routed(plan, rows, tags.inserts, inserts, False, origin[tags.inserts])
    yield new, len(numbers) + of_code[codes[tags.inserts]]


def _routed(
    plan: WritePlan, rows: pa.Table, chosen: Numbers, stored: pa.Array, moved: bool, origin: Numbers | None = None
) -> pa.Table:
    flags = pa.array(np.full(len(chosen), moved))
    routed = gather(rows, chosen).append_column(STORED_ROW, stored).append_column(MOVED, flags)
    if not plan.needs_origins:
        return routed
    origin = np.full(len(chosen), -1, dtype=np.int64) if origin is None else origin
    return routed.append_column(ORIGIN, pa.array(origin))
