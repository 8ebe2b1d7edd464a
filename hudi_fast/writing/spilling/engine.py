"""The engine of a stream that is larger than memory. Rows go through temporary files, in one or two passes.

::

    stream ─► check, convert ─► temporary file, by partition
                                   ├─ partitions that fit into memory, some at a time ─► as rows in memory
                                   └─ a larger partition ─► file group of each row ─► temporary file, by file group
                                                                                       └─► one file group per thread

All rows are checked before the write begins. They stay in the first file until the write has ended, so that it can be
tried again after a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.arrow_input import RowStream
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.varlen import gather
from hudi_fast.index.tagging import SliceMatches
from hudi_fast.merging.row_buffer import return_freed_bytes
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.assign import Runner
from hudi_fast.writing.backend import WritePreview
from hudi_fast.writing.file_group import MOVED, ORIGIN, STORED_ROW
from hudi_fast.writing.global_index import TableTags, tag_table
from hudi_fast.writing.local import LocalEngine, lookup_threads, write_incoming
from hudi_fast.writing.located import places_of_matches, slice_numbers, with_usable_index
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.profile import needs_row_size, with_measured_row_size
from hudi_fast.writing.spilling.large_partition import (
    MAX_THREADS,
    Bucket,
    Buckets,
    cut_inserts,
    split_partition,
    write_buckets,
)
from hudi_fast.writing.spilling.spill_file import (
    Piece,
    SpilledRows,
    SpillFile,
    SpillSettings,
    spill_rows,
    splits_by_key,
)
from hudi_fast.writing.write_plan import Incoming, WriteOutcome, WritePlan

__all__ = ["SpillingEngine"]

_PLAN = "spilled"


class SpillingEngine:
    """Writes a stream of batches in bounded memory.

    Args:
        rows: the stream; it is read once.
        settings: memory and folder.
    """

    def __init__(self, rows: RowStream, settings: SpillSettings) -> None:
        self._rows = rows
        self._settings = settings
        self._reason = f"a stream with more than {settings.max_bytes:,} bytes"
        self._spilled: SpilledRows | None = None
        self._partitions: LocalEngine | None = None
        self._prepared_for: object = None

    def input_schema(self, state: TableState) -> pa.Schema:
        """Columns of the stream."""
        return self._rows.schema

    def prepare(self, plan: WritePlan) -> None:
        """Check all rows, and move them to the temporary file, before anything is written."""
        if plan.operation == "delete_partition":
            self._prepare_partitions(plan)
            return
        if splits_by_key(plan) and plan.rules.blends:
            raise UnsupportedFeatureError(
                f"Table {plan.config.name} makes one row of two (hoodie.table.partial.update.mode, or a payload class "
                f"that does), which is supported with the global index {plan.index.kind} only for rows that fit into "
                f"memory; the stream has more than {self._settings.max_bytes:,} bytes. Write it in several parts, or "
                "use an index that is not global."
            )
        wanted = plan.operation, plan.schema, plan.key_config, plan.rules, splits_by_key(plan)
        if self._spilled is not None and wanted == self._prepared_for:
            return
        before = self._spilled
        if before is None:
            self._spilled = spill_rows(plan, self._rows.batches, self._settings)
        else:
            rows = (batch for number in before.file.numbers() for batch in before.file.read(number))
            self._spilled = spill_rows(plan, rows, self._settings)
            before.file.close()
        self._prepared_for = wanted

    def preview(self, plan: WritePlan) -> WritePreview:
        """How the prepared rows would be written."""
        if self._partitions is not None:
            return self._partitions.preview(plan)
        spilled = self._spilled
        assert spilled is not None, "preview requires prepare"
        partitions = {name: count for name, count in sorted(spilled.partitions.items()) if count}
        return WritePreview(plan.operation, _PLAN, self._reason, partitions, spilled.size)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the prepared rows."""
        if self._partitions is not None:
            return self._partitions.execute(plan)
        spilled = self._spilled
        assert spilled is not None, "write requires prepare"
        plan = _with_measured_size(with_usable_index(plan), spilled)
        write = _write_by_key if spilled.by_key else _write_by_partition
        partitions = frozenset(name for name, count in spilled.partitions.items() if count)
        return WriteOutcome(write(plan, spilled, self._settings), _PLAN, self._reason, partitions)

    def close(self) -> None:
        """Delete the temporary file."""
        if self._spilled is not None:
            self._spilled.file.close()

    def _prepare_partitions(self, plan: WritePlan) -> None:
        """Prepare the partitions of a write that only needs the distinct values of the partition columns."""
        if self._partitions is None:
            wanted = {name.split(".")[0] for name in plan.key_config.partition_fields}
            names = [name for name in self._rows.schema.names if name in wanted]
            found = [_distinct(pa.Table.from_batches([batch.select(names)])) for batch in self._rows.batches]
            self._partitions = LocalEngine(_distinct(pa.concat_tables(found)))
        self._partitions.prepare(plan)


def _distinct(rows: pa.Table) -> pa.Table:
    plain = rows.num_columns and not any(pa.types.is_nested(field.type) for field in rows.schema)
    return rows.group_by(rows.column_names).aggregate([]) if plain else rows


def _write_by_partition(plan: WritePlan, spilled: SpilledRows, settings: SpillSettings) -> list[WriteStat]:
    stats: list[WriteStat] = []
    task = 0
    for group in spilled.groups(settings.part_bytes):
        if spilled.file.size(group[0]) > settings.part_bytes:
            with ExitStack() as stack:
                pool = stack.enter_context(_lookup_pool(plan))
                name = list(spilled.partitions)[group[0]]
                rows = Piece(spilled.file, group[0])
                split = split_partition(plan, name, rows, settings, stack, pool.map)
                stats += write_buckets(plan, split, settings, task)
            task += max(1, len(split.buckets))
            continue
        incoming = prepare_rows(plan, spilled.table(group))
        stats += write_incoming(plan, incoming, task)
        task += len(group)
        del incoming
        return_freed_bytes(sum(spilled.file.size(number) for number in group))
    return stats


def _write_by_key(plan: WritePlan, spilled: SpilledRows, settings: SpillSettings) -> list[WriteStat]:
    with ExitStack() as stack:
        pool = stack.enter_context(_lookup_pool(plan))
        return write_buckets(plan, _split_table(plan, spilled, settings, stack, pool.map), settings, 0)


def _lookup_pool(plan: WritePlan) -> ThreadPool:
    return ThreadPool(min(lookup_threads(plan), MAX_THREADS), thread_name_prefix="hudi_fast")


def _with_measured_size(plan: WritePlan, spilled: SpilledRows) -> WritePlan:
    """The plan with the size of a stored row, estimated from a sample when unknown."""
    largest = max(spilled.partitions.values(), default=0)
    if not needs_row_size(plan, largest):
        return plan
    number = max(spilled.file.numbers(), key=spilled.file.count)
    return with_measured_row_size(plan, largest, pa.Table.from_batches([next(iter(spilled.file.read(number)))]))


# ---- splits the rows of a write by file group where record keys are unique in the whole table
#
# Rows come split by a hash of their key. All rows with one key are combined, looked up in all partitions and compared
# with the stored row in one part, as in a write of rows in memory. A row whose key moves to another partition is sent
# to two file groups: the old one deletes it. Tables whose rows blend are not written in this way, because only one row
# of each key is kept.


Numbers = npt.NDArray[np.int64]


def _split_table(
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
    """Rows with routing columns (:mod:`hudi_fast.writing.file_group`), and numbers of their slices or partitions."""
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
