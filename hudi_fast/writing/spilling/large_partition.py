"""Split the rows of a table partition that is larger than memory.

Splits the rows of a table partition that is larger than memory by file group.

=========================================  ==========================================================================
write                                      file group of a row
=========================================  ==========================================================================
bucket index                               the bucket of its key
keys are looked up                         the slice that holds its key; others: as the next line
rows with one key become one               a hash of its key selects one of the files that take inserts
bulk insert in an order                    a range of the sort columns
all others                                 consecutive rows, so no second temporary file
=========================================  ==========================================================================

The key lookup takes the keys of some rows at a time, without the rows. Rows with one key meet in one file group, in the
order of the input; there they are merged as in any other write.

Writes spilled rows whose file groups are known, several file groups at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import gather, varlen_buffers
from hudi_fast.index.tagging import rows_with_new_keys
from hudi_fast.kernels.key_table import first_equal
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.merging.row_buffer import CollectedRows, RowBuffer, return_freed_bytes
from hudi_fast.storage.concurrency import heaviest_first
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.assign import (
    Runner,
    ascending_order,
    assign_partition,
    refuse_duplicates,
    sort_values,
    stored_matches,
)
from hudi_fast.writing.bucket import bucket_numbers
from hudi_fast.writing.file_group import STORED_ROW, BucketWriter, write_file_group
from hudi_fast.writing.located import KeyPlaces, places_of_matches, slice_numbers
from hudi_fast.writing.prepare import check_rows, prepare_rows, with_auto_keys
from hudi_fast.writing.profile import insert_files
from hudi_fast.writing.spilling.spill_file import Piece, SpillFile, SpillSettings, chunks_of, hashed
from hudi_fast.writing.whole_rows import refuse_unknown
from hudi_fast.writing.write_plan import Incoming, TaskToken, WritePlan

__all__ = ["MAX_THREADS", "Bucket", "Buckets", "cut_inserts", "deal_inserts", "split_partition", "write_buckets"]

MAX_THREADS = 4
"""Threads that write, or look keys up: each has rows, keys and encoded columns of a file group in memory."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The rows of one file group.

    Attributes:
        partition: partition path.
        number: position of the slice, or a larger number for a new file group.
        pieces: the rows.
    """

    partition: str
    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Buckets:
    """Rows of one table partition, or of a whole table, by file group.

    Attributes:
        slices: of the partition or the table.
        buckets: the file groups that change.
    """

    slices: Sequence[FileSlice]
    buckets: Sequence[Bucket]


def write_buckets(plan: WritePlan, rows: Buckets, settings: SpillSettings, first_task: int) -> list[WriteStat]:
    """Write all buckets.

    Args:
        plan: the write.
        rows: the rows by file group.
        settings: memory and folder.
        first_task: number of the task of the first bucket.
    """

    def write(number: int) -> list[WriteStat]:
        bucket = rows.buckets[number]
        collected = _collect(plan, bucket, settings, threads)
        token = TaskToken(first_task + number)
        if plan.index.bucket is None:
            writer = BucketWriter(plan, rows.slices, None, token)
            writer.write(bucket.number, collected)
            stats = writer.stats
        else:
            stats = _write_hashed(plan, bucket, collected, token)
        del collected  # free these rows before the next bucket is collected
        return_freed_bytes(sizes[number])
        return stats

    threads = min(plan.files.threads, MAX_THREADS)
    sizes = [sum(piece.size for piece in one.pieces) for one in rows.buckets]
    return [stat for stats in heaviest_first(sizes, write, threads) for stat in stats]


def _write_hashed(plan: WritePlan, bucket: Bucket, collected: CollectedRows, token: TaskToken) -> list[WriteStat]:
    """Write the rows of one bucket of a bucket index."""
    incoming = with_auto_keys(plan, prepare_rows(plan, collected.table, collected.release), token.task)
    works = assign_partition(plan, bucket.partition, incoming, np.arange(incoming.count, dtype=np.int64), token)
    refuse_unknown(plan, incoming, works)
    return [stat for work in works for stat in write_file_group(plan, work, incoming)]


def _collect(plan: WritePlan, bucket: Bucket, settings: SpillSettings, threads: int) -> CollectedRows:
    budget = settings.chunk_bytes * 2 // max(2, threads)
    failure = settings.failure(plan.storage.uri)
    with RowBuffer(failure, budget=budget, folder=settings.folder) as buffer:
        for piece in bucket.pieces:
            for batch in piece.batches():
                buffer.add(batch)
        collected = buffer.take()
    assert collected is not None, "a bucket has rows"
    return collected


Numbers = npt.NDArray[np.int64]

_SHARES = 16
"""Approximate number of parts, by the hash of the key, in a file with new rows. Files differ in size by one part."""

_MAX_PARTS = 2048
_KEY_BYTES = 64
"""Bytes of memory per key that is looked up, in addition to its text: hash table, numbers of rows."""

_SAMPLED = 1000
"""Sampled rows of each range of a sorted bulk insert."""


def split_partition(
    plan: WritePlan, partition: str, rows: Piece, settings: SpillSettings, stack: ExitStack, run: Runner = map
) -> Buckets:
    """The file groups of a partition's rows.

    Args:
        plan: the write.
        partition: partition path.
        rows: the partition's rows.
        settings: memory and folder.
        stack: closes a second temporary file.
        run: runs the lookups of keys: ``map``, or the ``map`` of a pool.

    Raises:
        HudiError: of the key lookup, or for a key that must not be stored.
        CommitError: the temporary file cannot be written.
    """
    slices = [] if plan.operation == "bulk_insert" else latest_slices(plan.view, partition)
    count = rows.file.count(rows.number)
    if plan.index.bucket is not None:
        file = stack.enter_context(SpillFile(settings, plan.storage.uri))
        for chunk in chunks_of([rows], settings.chunk_bytes):
            file.add(chunk, bucket_numbers(plan, partition, record_keys(plan.key_config, chunk)))
        file.finish()
        return Buckets((), [Bucket(partition, number, (Piece(file, number),)) for number in file.numbers()])
    looks_up = plan.operation in ("upsert", "delete") or (plan.operation == "insert" and plan.duplicates != "none")
    keyed = bool(plan.key_config.record_key_fields)
    if not looks_up and not (keyed and plan.combines):
        sorts = plan.sort_columns or (keyed and plan.sort_mode in ("GLOBAL_SORT", "PARTITION_SORT"))
        if plan.operation == "bulk_insert" and sorts:
            ranges = _by_ranges(plan, partition, rows, count, settings, stack)
            if ranges is not None:
                return ranges
        return Buckets(slices, cut_inserts(plan, partition, list(enumerate(slices)), [rows], count, len(slices)))
    file = stack.enter_context(SpillFile(settings, plan.storage.uri))
    files = insert_files(plan, partition, list(enumerate(slices)), count)
    parts = min(_MAX_PARTS, _SHARES * (len(files.filled) + files.new_files))
    for start, end in _lookups(plan, rows, count, settings):
        some, row = Piece(rows.file, rows.number, start, end), 0
        known = _find(plan, partition, some, slices if looks_up else [], run)
        for chunk in chunks_of([some], settings.run_bytes):
            for part, numbers in _placed(plan, chunk, known, row, len(slices), parts):
                file.add(part, numbers)
            row += chunk.num_rows
    file.finish()
    found = {number: [Piece(file, number)] for number in file.numbers() if number < len(slices)}
    new = [Piece(file, number) for number in file.numbers() if number >= len(slices)]
    for bucket in deal_inserts(plan, partition, list(enumerate(slices)), new, len(slices)):
        found.setdefault(bucket.number, []).extend(bucket.pieces)
    return Buckets(slices, [Bucket(partition, number, tuple(pieces)) for number, pieces in found.items()])


@dataclass(frozen=True, slots=True)
class _Known:
    """Where the keys of n rows are stored.

    Attributes:
        new: bool[n], rows to insert, if they are no deletes.
        places: of the rows that change stored ones, ascending by row.
    """

    new: npt.NDArray[np.bool_]
    places: KeyPlaces


def _lookups(plan: WritePlan, rows: Piece, count: int, settings: SpillSettings) -> Iterator[tuple[int, int]]:
    """The first row of each lookup, and the row after its last: its keys and hash table fit into ``part_bytes``."""
    sample = next(iter(rows.file.read(rows.number, columns=_key_columns(plan))))
    keys = record_keys(plan.key_config, sample)
    limit = max(1, int(settings.part_bytes / (_KEY_BYTES + keys.nbytes / len(keys))))
    for start in range(0, count, limit):
        yield start, min(count, start + limit)


def _key_columns(plan: WritePlan) -> list[str]:
    return sorted({name.split(".")[0] for name in plan.key_config.record_key_fields})


def _find(plan: WritePlan, partition: str, rows: Piece, slices: Sequence[FileSlice], run: Runner) -> _Known:
    """Look up the keys of some rows; only these are in memory."""
    batches = rows.file.read(rows.number, rows.start, rows.end, _key_columns(plan))
    keys = pa.concat_arrays([record_keys(plan.key_config, batch) for batch in batches])
    every, none = np.ones(len(keys), dtype=np.bool_), KeyPlaces.joined([])
    if not slices:
        return _Known(every, none)
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(keys), dtype=np.int32)), pa.array([partition]))
    incoming = Incoming(pa.table({}), keys, paths, None, ())
    buffers = varlen_buffers(keys)
    first = first_equal(buffers.offsets, buffers.data)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    matches = stored_matches(plan, partition, incoming, distinct, slices, run)
    if plan.operation == "insert":
        refuse_duplicates(plan, incoming, matches)
        new = np.zeros(len(keys), dtype=np.bool_)
        new[rows_with_new_keys(keys, np.arange(len(keys)), matches, len(keys))] = True
        return _Known(new, none)
    places = places_of_matches(matches, slice_numbers(slices)).spread(first)
    every[places.rows] = False
    return _Known(every, places)


def _placed(
    plan: WritePlan, chunk: pa.Table, known: _Known, row: int, slices: int, parts: int
) -> Iterator[tuple[pa.Table, Numbers]]:
    """Rows with the column :data:`STORED_ROW` and the numbers of their slices or parts; stored ones, then new ones.

    ``row`` is the number of the chunk's first row in ``known``.
    """
    bounds = np.searchsorted(known.places.rows, (row, row + chunk.num_rows))
    places = known.places.take(slice(*bounds))
    yield _with_stored_row(gather(chunk, places.rows - row), pa.array(places.stored)), places.slices
    if plan.operation == "delete":
        return
    rows = np.flatnonzero(known.new[row : row + chunk.num_rows])
    new = gather(chunk, rows)
    numbers = slices + hashed(record_keys(plan.key_config, new), parts)
    yield _with_stored_row(new, pa.nulls(len(rows), pa.int64())), numbers


def _with_stored_row(rows: pa.Table, stored: pa.Array) -> pa.Table:
    return rows.append_column(STORED_ROW, stored)


def deal_inserts(
    plan: WritePlan, partition: str, slices: Sequence[tuple[int, FileSlice]], parts: Sequence[Piece], first_new: int
) -> list[Bucket]:
    """Share parts of new rows among the files that take them: small files, then new ones.

    Args:
        plan: the write.
        partition: partition path.
        slices: (number, slice) of the partition.
        parts: pieces that stay whole.
        first_new: number of the first new file group.
    """
    sizes = np.array([piece.file.count(piece.number) for piece in parts], dtype=np.int64)
    if not sizes.sum():
        return []
    targets, ends = _targets(plan, partition, slices, int(sizes.sum()), first_new)
    middles = np.cumsum(sizes) - sizes / 2
    chosen = np.minimum(np.searchsorted(ends, middles, side="right"), len(targets) - 1)
    return [
        Bucket(partition, target, tuple(piece for piece, one in zip(parts, chosen, strict=True) if one == number))
        for number, target in enumerate(targets)
        if (chosen == number).any()
    ]


def cut_inserts(
    plan: WritePlan,
    partition: str,
    slices: Sequence[tuple[int, FileSlice]],
    pieces: Sequence[Piece],
    count: int,
    first_new: int,
) -> list[Bucket]:
    """Cut new rows where a file is full: small files take the first rows, new ones the others.

    Args:
        plan: the write.
        partition: partition path.
        slices: (number, slice) of the partition.
        pieces: whole pieces.
        count: number of their rows.
        first_new: number of the first new file group.
    """
    targets, ends = _targets(plan, partition, slices, count, first_new)
    made: list[Bucket] = []
    for target, start, end in zip(targets, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        cut, first = list[Piece](), 0
        for piece in pieces:
            rows = piece.file.count(piece.number)
            low, high = max(start - first, 0), min(end - first, rows)
            if low < high:
                cut.append(Piece(piece.file, piece.number, low, high))
            first += rows
        if cut:
            made.append(Bucket(partition, target, tuple(cut)))
    return made


def _targets(
    plan: WritePlan, partition: str, slices: Sequence[tuple[int, FileSlice]], count: int, first_new: int
) -> tuple[list[int], Numbers]:
    """Numbers of the files that take ``count`` new rows, and after how many rows each of them ends."""
    files = insert_files(plan, partition, slices, count)
    filled = [rows for _, rows in files.filled]
    targets = [number for number, _ in files.filled] + [first_new + number for number in range(files.new_files)]
    return targets, np.cumsum([*filled, *files.new], dtype=np.int64)


# ---- bulk inserts in an order


def _by_ranges(
    plan: WritePlan, partition: str, rows: Piece, count: int, settings: SpillSettings, stack: ExitStack
) -> Buckets | None:
    """One file for each range of the sort columns, which sorts its own rows; None for a single range."""
    sizes = insert_files(plan, partition, [], count).new
    ranges = len(sizes)
    if ranges < 2:
        return None
    step = max(1, count // (ranges * _SAMPLED))
    samples, row = list[pa.Table](), 0
    for chunk in chunks_of([rows], settings.chunk_bytes):
        samples.append(_values(plan, chunk, np.arange(-row % step, chunk.num_rows, step)))
        row += chunk.num_rows
    sample = pa.concat_tables(samples).combine_chunks()
    chosen = np.cumsum(sizes)[:-1] * sample.num_rows // count
    bounds = gather(sample, ascending_order(sample)[chosen])
    file = stack.enter_context(SpillFile(settings, plan.storage.uri))
    for chunk in chunks_of([rows], settings.chunk_bytes):
        file.add(chunk, _range_numbers(bounds, _values(plan, chunk, np.arange(chunk.num_rows))))
    file.finish()
    return Buckets((), [Bucket(partition, number, (Piece(file, number),)) for number in file.numbers()])


def _values(plan: WritePlan, chunk: pa.Table, rows: Numbers) -> pa.Table:
    incoming: Incoming = with_auto_keys(plan, check_rows(plan, chunk), task=0)
    values = sort_values(plan, incoming, rows)
    assert values is not None, "the plan sorts its rows"
    return values


def _range_numbers(bounds: pa.Table, values: pa.Table) -> Numbers:
    """The number of bounds that are not after each row, int64[n]."""
    order = ascending_order(pa.concat_tables([bounds, values]).combine_chunks())
    is_bound = order < bounds.num_rows
    numbers = np.empty(values.num_rows, dtype=np.int64)
    numbers[order[~is_bound] - bounds.num_rows] = np.cumsum(is_bound)[~is_bound]
    return numbers
