"""Tag the rows of one partition, and assign them to files.

Steps 2 and 3 of a write, for the rows of one partition: tagging, then assigning to file groups.

::

    rows of a partition ─► combine ─► match against its slices ─► updates: one work per matched slice
                              │                              └─► the rest: small files, then new file groups
                              └─ bucket index ─► the bucket of each key: :mod:`hudi_fast.writing.bucket`

:func:`assign_partition` composes this for one partition and is what a task runs. :func:`assign_rows` is its second
half, used alone where matching was done for the whole table first (global indexes).

Assigns inserts to files by size (``UpsertPartitioner``, ``AverageRecordSizeEstimator``; Hudi 1.2.0).

First the small files of the partition are filled up to the maximum file size, in listing order; the remaining records
form new file groups of as many records as fit one file.

Apache Hudi limits only the size. Here a file of narrow records ends at a number of records, because the task that
changes a file group has all its record keys in memory.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.file_options import SizingOptions
from hudi_fast.errors import CommitConflictError, DuplicateKeyError
from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.tagging import IncomingKeys, SliceMatches, rows_with_new_keys, untagged_rows
from hudi_fast.merging.fold import combine, commit_time_deletes
from hudi_fast.merging.rules import ordering_rank
from hudi_fast.schema.names import dotted_values, find_dotted
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.bucket import BucketShare, assign_to_buckets
from hudi_fast.writing.dml_rows import match_dml_rows, one_change_per_row
from hudi_fast.writing.located import locate_rows, looks_keys_up, match_slices
from hudi_fast.writing.lookup import Runner, look_up, look_up_all
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WritePlan

__all__ = [
    "InsertAssignment",
    "PartitionMatches",
    "Runner",
    "SmallFile",
    "ascending_order",
    "assign_inserts",
    "assign_partition",
    "assign_rows",
    "average_record_size",
    "combined_rows",
    "files_of_parts",
    "files_to_fill",
    "keys_of_partition",
    "max_files",
    "new_file_id",
    "refuse_duplicates",
    "sort_values",
    "stored_matches",
]

_LARGE_FILE = 8 << 20
"""In a file of this size or more, rows outweigh the footer and the bloom filter."""

_MORE_FILES = 10
"""One file in this many may be smaller than the sizes allow, if that avoids a shuffle or keeps cores busy."""


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file below the size limit: its file group and current size in bytes."""

    file_id: str
    size: int


@dataclass(frozen=True, slots=True)
class InsertAssignment:
    """``count`` inserts for an existing file group, or for a new one when ``file_id`` is None."""

    file_id: str | None
    count: int


def average_record_size(commits: Iterable[CommitMetadata], sizing: SizingOptions, is_given: bool = False) -> int:
    """Bytes per record, from the newest commit that wrote enough.

    Apache Hudi ignores commits below the threshold. Here they count if no other commit does, their files are large on
    average, and the user set no estimate: a measured size is closer than the default of 1024 bytes.

    Args:
        commits: newest first, without replace commits; read lazily. Only base files of a delta commit count.
        sizing: thresholds and the fallback estimate.
        is_given: whether the user set the fallback estimate.
    """
    threshold = sizing.estimation_threshold * sizing.small_file_limit
    measured = None
    for commit in islice(commits, sizing.estimator_max_commits):
        stats = [stat for group in commit.partition_to_write_stats.values() for stat in group]
        stats = [stat for stat in stats if ".log." not in (stat.path or "")]
        size = sum(stat.total_write_bytes - sizing.estimator_file_metadata for stat in stats)
        records = sum(stat.num_writes for stat in stats)
        if records > 0 and size > threshold:
            return math.ceil(size / records)
        if records > 0 and measured is None and size >= _LARGE_FILE * len(stats):
            measured = math.ceil(size / records)
    return sizing.record_size_estimate if measured is None or is_given else measured


def assign_inserts(
    inserts: int, small_files: Sequence[SmallFile], average: int, sizing: SizingOptions
) -> list[InsertAssignment]:
    """Assign ``inserts`` records of one partition to files, in order.

    Args:
        inserts: number of records.
        small_files: files below the limit, in listing order.
        average: bytes per record.
        sizing: sizes.
    """
    left = inserts
    assigned: list[InsertAssignment] = []
    for small in small_files:
        count = min(sizing.records_to_fill(small.size, average), left)
        if count > 0:
            assigned.append(InsertAssignment(small.file_id, count))
            left -= count
        if left <= 0:
            return assigned
    per_file = sizing.records_per_new_file(average)
    while left > 0:
        count = min(per_file, left)
        assigned.append(InsertAssignment(None, count))
        left -= count
    return assigned


def max_files(asked: int, partitions: int) -> int:
    """The number of files that a bulk_insert may write: slightly more than its size requires.

    Args:
        asked: files of the maximum size that hold the rows, each partition by itself.
        partitions: number of table partitions, each of which may have one more.
    """
    return asked + asked // _MORE_FILES + partitions


def files_of_parts(parts: Iterable[int], before_full: int) -> int:
    """The number of files if each part starts a new one, and a file ends when it is full.

    Args:
        parts: numbers of records that follow each other in one partition.
        before_full: number of records after which a file is full.
    """
    return sum(-(-count // before_full) for count in parts)


Rows = npt.NDArray[np.int64]

_KEY = "__hudi_fast_key"
_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class PartitionMatches:
    """Result of tagging one partition.

    Attributes:
        slices: the partition's slices.
        matches: stored rows that are updated or deleted, with their incoming rows.
        moved: for each match, bool[m]: rows only deleted here, because they move to another partition; or None.
        inserts: incoming rows without a file group.
    """

    slices: Sequence[FileSlice]
    matches: Sequence[SliceMatches]
    moved: Sequence[npt.NDArray[np.bool_] | None]
    inserts: Rows


def assign_partition(
    plan: WritePlan,
    partition: str,
    incoming: Incoming,
    rows: Rows,
    token: TaskToken,
    run: Runner = map,
    first_sequence: int = 0,
    matches: Sequence[SliceMatches] | None = None,
) -> list[FileGroupWork]:
    """Tag the rows of a partition and assign them to file groups.

    Args:
        plan: the write.
        partition: partition path.
        incoming: rows of the write.
        rows: int64[n], ascending: rows of the partition.
        token: write token; its file groups share a range of sequence numbers.
        run: runs the lookups in slices: ``map``, or the ``map`` of a pool.
        first_sequence: start of that range.
        matches: of :func:`keys_of_partition` in the partition's slices; None to look the keys up here.

    Raises:
        DuplicateKeyError: the key of an insert is stored and the duplicate policy is ``fail``.
        CommitConflictError: a row's file group is in a pending clustering.
    """
    rows = combined_rows(plan, incoming, rows)
    if plan.index.bucket is not None:
        shares = assign_to_buckets(plan, partition, incoming, rows, latest_slices(plan.view, partition), run)
        return _bucket_works(plan, partition, incoming, shares, token, first_sequence)
    slices = [] if plan.operation == "bulk_insert" else latest_slices(plan.view, partition)
    if matches is None:
        matches = _matches(plan, partition, incoming, rows, slices, run)
    if plan.operation == "insert":
        refuse_duplicates(plan, incoming, matches)
        inserts = rows if not matches else _with_new_keys(incoming, rows, matches)
        matches = []
    else:
        inserts = untagged_rows(rows, matches, incoming.count)
    found_here = PartitionMatches(slices, matches, _gone(plan, incoming, matches), inserts)
    return assign_rows(plan, partition, incoming, found_here, token, first_sequence)


def keys_of_partition(plan: WritePlan, incoming: Incoming, rows: Rows) -> IncomingKeys | None:
    """The keys to look up in all slices of a partition; None if the write looks none up, or knows where they are.

    Args:
        plan: the write.
        incoming: rows of the write.
        rows: int64[n], ascending: rows of the partition.
    """
    knows = plan.index.bucket is not None or plan.index.uses_records or incoming.groups is not None
    if knows or not looks_keys_up(plan):
        return None
    rows = combined_rows(plan, incoming, rows)
    return IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)


def _matches(
    plan: WritePlan, partition: str, incoming: Incoming, rows: Rows, slices: Sequence[FileSlice], run: Runner
) -> Sequence[SliceMatches]:
    if incoming.groups is not None:
        return match_dml_rows(plan, incoming, rows, slices, run)
    return stored_matches(plan, partition, incoming, rows, slices, run) if looks_keys_up(plan) else []


def _with_new_keys(incoming: Incoming, rows: Rows, matches: Sequence[SliceMatches]) -> Rows:
    return rows_with_new_keys(gather_array(incoming.key_array(), rows), rows, matches, incoming.count)


def stored_matches(
    plan: WritePlan, partition: str, incoming: Incoming, rows: Rows, slices: Sequence[FileSlice], run: Runner
) -> list[SliceMatches]:
    """The stored rows with the keys of incoming rows, by the plan's index.

    Args:
        plan: the write; its index has no buckets.
        partition: partition path of the rows.
        incoming: rows of the write.
        rows: int64[n], positions in ``incoming``; of equal keys only the first one is found.
        slices: slices of the partition. The record index may name others.
        run: runs the lookups in slices.
    """
    if plan.index.uses_records:
        found = locate_rows(plan, incoming, rows, partition)
        elsewhere = sorted({name for name, _ in found.groups} - {partition})  # a global index knows all partitions
        others = [one for name in elsewhere for one in latest_slices(plan.view, name)]
        return match_slices(plan, incoming, rows, found, [*slices, *others], run)
    keys = IncomingKeys.of(gather_array(incoming.key_array(), rows), rows)
    return look_up_all(plan, slices, keys, run)


def _gone(plan: WritePlan, incoming: Incoming, matches: Sequence[SliceMatches]) -> list[npt.NDArray[np.bool_] | None]:
    """Flags of rows that are deleted at any ordering value, because a DML condition selected them."""
    if incoming.groups is None or incoming.deletes is None:
        return [None] * len(matches)
    return [incoming.deletes[match.incoming_rows] for match in matches]


def combined_rows(plan: WritePlan, incoming: Incoming, rows: Rows) -> Rows:
    """``rows`` without rows that lose to another row with the same key."""
    if plan.is_dml:
        return one_change_per_row(incoming, rows)
    return one_row_per_key(plan, incoming, rows) if plan.combines else rows


def one_row_per_key(plan: WritePlan, incoming: Incoming, rows: Rows) -> Rows:
    """``rows`` without rows that lose to another row with the same key, whatever the options say about combining."""
    if len(rows) < 2:
        return rows
    ordering = [gather_array(column, rows) for column in incoming.ordering]
    deletes = None if incoming.deletes is None else commit_time_deletes(plan.rules, incoming.deletes[rows], ordering)
    keys = gather_array(incoming.key_array(), rows)
    winners = combine(keys, ordering_rank(ordering, len(rows)), deletes)
    return rows if len(winners) == len(rows) else rows[winners]


def assign_rows(
    plan: WritePlan,
    partition: str,
    incoming: Incoming,
    found: PartitionMatches,
    token: TaskToken,
    first_sequence: int = 0,
    inserts_into: str | None = None,
) -> list[FileGroupWork]:
    """Turn matches and inserts into work, one per file group.

    Args:
        plan: the write.
        partition: partition path.
        incoming: rows of the write.
        found: matches and inserts of the partition.
        token: write token.
        first_sequence: first sequence number to assign.
        inserts_into: file id that takes all inserts; None to assign them by file size.

    Raises:
        CommitConflictError: a row's file group is in a pending clustering.
    """
    updates = {match.slice.file_id: (match, moved) for match, moved in zip(found.matches, found.moved, strict=True)}
    _refuse_pending(plan, partition, updates)
    inserts = found.inserts
    if incoming.deletes is not None:
        inserts = inserts[~incoming.deletes[inserts]]  # nothing to delete where the key is unknown
    inserts = _in_writing_order(plan, incoming, inserts)
    by_id = {one.file_id: one for one in found.slices}
    dealt: dict[str, tuple[FileSlice | None, Rows]] = {}
    start, new = 0, 0
    if inserts_into is None:
        assignments = _assignments(plan, partition, found.slices, len(inserts))
    else:
        assignments = [InsertAssignment(inserts_into, len(inserts))] if len(inserts) else []
    for assignment in assignments:
        file_id = assignment.file_id
        if file_id is None:
            file_id, new = new_file_id(plan, partition, token.stage, token.task, new), new + 1
        dealt[file_id] = by_id.get(file_id), inserts[start : start + assignment.count]
        start += assignment.count
    if plan.merges_inserts:
        for file_id, (slice_, rows) in dealt.items():
            if slice_ is not None:
                match, dealt[file_id] = _known_in(plan, incoming, slice_, rows)
                if match is not None:
                    updates[file_id] = match, None
    works: list[FileGroupWork] = []
    sequence = first_sequence
    for file_id in [*updates, *(one for one in dealt if one not in updates)]:
        match, moved = updates.get(file_id, (None, None))
        slice_, appended = dealt.get(file_id, (None if match is None else match.slice, _NO_ROWS))
        base_rows = _NO_ROWS if match is None else match.base_rows
        sources = _NO_ROWS if match is None else match.incoming_rows
        works.append(FileGroupWork(partition, file_id, slice_, base_rows, sources, moved, appended, token, sequence))
        sequence += len(base_rows) + len(appended)
    return works


def _known_in(
    plan: WritePlan, incoming: Incoming, slice_: FileSlice, rows: Rows
) -> tuple[SliceMatches | None, tuple[FileSlice, Rows]]:
    """The inserts of a small file whose keys it holds, and the slice with the others (``HoodieMergeHandleFactory``)."""
    rows = one_row_per_key(plan, incoming, rows)
    match = look_up(plan, slice_, IncomingKeys.of(gather_array(incoming.key_array(), rows), rows))
    return match, (slice_, rows if match is None else untagged_rows(rows, [match], incoming.count))


def _bucket_works(
    plan: WritePlan,
    partition: str,
    incoming: Incoming,
    shares: Sequence[BucketShare],
    token: TaskToken,
    first_sequence: int,
) -> list[FileGroupWork]:
    """Work for each bucket."""
    refuse_duplicates(plan, incoming, [share.known for share in shares if share.known is not None])
    _refuse_pending(plan, partition, [share.file_id for share in shares if share.slice is not None])
    works: list[FileGroupWork] = []
    sequence = first_sequence
    for share in shares:
        inserts = _in_writing_order(plan, incoming, share.inserts)
        base_rows, sources = _NO_ROWS, _NO_ROWS
        if share.match is not None:
            base_rows, sources = share.match.base_rows, share.match.incoming_rows
        if not len(sources) and not len(inserts):
            continue  # duplicates that are dropped
        works.append(
            FileGroupWork(partition, share.file_id, share.slice, base_rows, sources, None, inserts, token, sequence)
        )
        sequence += len(sources) + len(inserts)
    return works


def _assignments(plan: WritePlan, partition: str, slices: Sequence[FileSlice], inserts: int) -> list[InsertAssignment]:
    if plan.operation == "bulk_insert":  # files roll by size while they are written
        return [InsertAssignment(None, inserts)] if inserts else []
    fill = files_to_fill(plan, partition, slices) if inserts and plan.operation in ("upsert", "insert") else []
    small = [SmallFile(one.file_id, one.base_file.size) for one in fill if one.base_file is not None]
    return assign_inserts(inserts, small, plan.files.average_record_size, plan.files.sizing)


def files_to_fill(plan: WritePlan, partition: str, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Small files of a partition that take inserts, in filling order.

    On a MERGE_ON_READ table the smallest few slices without log files: inserts create a new base file, and the indexes
    do not find keys in logs (``SparkUpsertDeltaCommitPartitioner``, Hudi 1.2.0).
    """
    group = [(partition, one.file_id) for one in slices]
    busy = {*plan.view.pending_groups, *plan.view.pending_compactions}
    small = [
        (one.base_file.size, one)
        for one, key in zip(slices, group, strict=True)
        if one.base_file is not None and one.base_file.size < plan.files.sizing.small_file_limit and key not in busy
        if not one.base_file.is_skeleton  # its rows are in the source file
    ]
    if not plan.config.is_mor:
        return [one for _, one in small]
    small = sorted((each for each in small if not each[1].log_files), key=lambda each: each[0])
    return [one for _, one in small[: plan.files.sizing.small_file_candidates]]


def _in_writing_order(plan: WritePlan, incoming: Incoming, rows: Rows) -> Rows:
    """Rows of a bulk insert in the order of the sort mode; other rows in input order."""
    values = sort_values(plan, incoming, rows) if len(rows) > 1 else None
    if values is None:
        return rows
    ordered: Rows = rows[ascending_order(values)]
    return ordered


def sort_values(plan: WritePlan, incoming: Incoming, rows: Rows) -> pa.Table | None:
    """The columns by which a bulk insert sorts its rows, the first one most significant; None if it does not sort.

    Args:
        plan: the write.
        incoming: rows of the write.
        rows: int64[n], positions in ``incoming``.
    """
    if plan.operation != "bulk_insert":
        return None
    if plan.sort_columns:
        found = (find_dotted(incoming.rows.schema, name) for name in plan.sort_columns)
        stored = incoming.take(rows, list(dict.fromkeys(one[0] for one in found if one is not None)))
        values = [dotted_values(stored, name) for name in plan.sort_columns]
        table = pa.table(values, names=[str(number) for number in range(len(values))])
        return table.append_column(_KEY, gather_array(incoming.key_array(), rows)) if plan.sorts_by_key else table
    if plan.sort_mode in ("GLOBAL_SORT", "PARTITION_SORT"):
        return pa.table({_KEY: gather_array(incoming.key_array(), rows)})
    return None


def ascending_order(values: pa.Table) -> Rows:
    """The order of rows by :func:`sort_values`, int64[n]; equal rows keep their order."""
    if values.num_columns == 1:
        order = pc.sort_indices(values.column(0))
    else:
        order = pc.sort_indices(values, sort_keys=[(name, "ascending") for name in values.column_names])
    return np.asarray(order).astype(np.int64)


def new_file_id(plan: WritePlan, partition: str, *numbers: int) -> str:
    """The id of a new file group: the same for each attempt of a task, so that files of failed attempts are recognised.

    Args:
        plan: the write.
        partition: partition path.
        numbers: identify the file group within the write.
    """
    seed = "\n".join([plan.storage.uri, plan.instant, partition, *map(str, numbers)])
    return f"{uuid.UUID(bytes=hashlib.md5(seed.encode()).digest(), version=4)}-0"


def refuse_duplicates(plan: WritePlan, incoming: Incoming, matches: Sequence[SliceMatches]) -> None:
    """Fail if rows to insert have stored keys and the duplicate policy is ``fail``.

    Raises:
        DuplicateKeyError: there are such rows; names their number and an example.
    """
    if plan.duplicates != "fail" or not matches:
        return
    match = matches[0]
    key = incoming.key_array()[int(match.incoming_rows[0])].as_py()
    count = sum(len(np.unique(one.incoming_rows)) for one in matches)
    raise DuplicateKeyError(
        f"{count} rows to insert have a record key that {plan.storage.uri} already holds, for example {key!r} in "
        f"partition {match.slice.partition!r}, file group {match.slice.file_id}. Use upsert, or "
        "hoodie.datasource.insert.dup.policy=drop to leave such rows out."
    )


def _refuse_pending(plan: WritePlan, partition: str, updates: Iterable[str]) -> None:
    blocked = [file_id for file_id in updates if (partition, file_id) in plan.view.pending_groups]
    bucket = plan.index.bucket
    # Apache Hudi moves buckets of consistent hashing without checking for writes since the plan.
    may_change = plan.allows_clustering_updates and (bucket is None or bucket.engine != "CONSISTENT_HASHING")
    if blocked and not may_change:
        raise CommitConflictError(
            f"The write changes rows of {plan.storage.uri} in file groups {blocked} of partition {partition!r}, "
            "which a pending clustering is rewriting. Run or roll back the clustering, then write again; or let the "
            "clustering fail, with hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy."
        )
