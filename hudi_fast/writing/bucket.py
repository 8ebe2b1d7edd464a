"""Assign rows to buckets, and write new ranges of consistent hashing.

Assigns rows to buckets: the file group follows from the key, and most writes need no lookup.

::

    rows of a partition ─► bucket of each key ─► per bucket: its slice, or a new file group

    ==========================  ==================================  =============================================
    bucket                      COPY_ON_WRITE                       MERGE_ON_READ
    ==========================  ==================================  =============================================
    with a slice                keys are looked up in that slice    all rows are logged without lookup
    without a slice             a base file                         a base file; consistent hashing: a log
    ==========================  ==================================  =============================================

Rows of an ``insert`` are written like those of an ``upsert``, without lookup, as in Apache Hudi's releases. An
``insert_overwrite`` creates new file groups for the same buckets, as base files; with consistent hashing also new
ranges, see :mod:`hudi_fast.writing.bucket`. Bucket files are neither split nor filled.

Sources: ``HoodieBucketIndex``, ``SparkBucketIndexPartitioner``, ``HoodieConsistentBucketIndex`` (Hudi 1.2.0).

New ranges of consistent hashing and new bucket counts, written with the replace commit that needs them.

::

    a resize, or an overwrite and the partitions whose groups it replaces
        ─► save_ranges: <instant>.hashing_meta with a marker, before the commit completes
        ─► confirm_ranges: <instant>.commit, after it

A replaced file group is never visible again, whatever is written to it. The ranges of an emptied partition therefore
get new file groups: :func:`renewed_ranges`. A rollback deletes the files, as it deletes data files.

Sources: ``ConsistentBucketIndexUtils``, ``HoodieSparkConsistentBucketIndex.updateLocation`` (Hudi 1.2.0). Releases of
Apache Hudi keep the ranges when they delete or overwrite a partition, and lose the rows that are written to it later.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitConflictError, ConfigError
from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.buckets import (
    BucketCounts,
    HashingMetadata,
    bucket_count,
    bucket_counts_path,
    bucket_file_id,
    bucket_number,
    bucket_of_keys,
    encode_hashing,
    first_hashing,
    has_hashing,
    hashing_path,
    load_bucket_counts,
    load_hashing,
    load_or_make_hashing,
    marker_path,
    node_of_keys,
    renewed_hashing,
    save_bucket_counts,
    shared_bucket_file_id,
    slices_by_bucket,
)
from hudi_fast.index.tagging import (
    BucketSettings,
    IncomingKeys,
    IndexSettings,
    SliceMatches,
    rows_with_new_keys,
    untagged_rows,
)
from hudi_fast.kernels.hashes import ANY_COLON, COMMA_AND_COLON
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.lookup import look_up
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import Incoming, WritePlan

__all__ = [
    "BucketShare",
    "assign_to_buckets",
    "bucket_numbers",
    "change_counts",
    "confirm_ranges",
    "overwritten_ranges",
    "renewed_ranges",
    "resolve_buckets",
    "save_ranges",
]


def overwritten_ranges(storage: Storage, timeline: Timeline, partition: str, instant: str) -> HashingMetadata | None:
    """The ranges that an overwrite writes a partition's rows to; None if the partition has none yet.

    Raises:
        CorruptTableError: the stored ranges are damaged.
    """
    before = load_hashing(storage, timeline, partition)
    return None if before is None else renewed_hashing(before, instant, storage.uri)


def renewed_ranges(
    storage: Storage,
    timeline: Timeline,
    instant: str,
    replaced: Iterable[str],
    written: Mapping[str, Iterable[str]],
    count: int,
) -> list[HashingMetadata]:
    """The new ranges of an overwrite or a deletion of partitions; none for tables without ranges.

    Creates the first ranges of partitions that the write begins.

    Args:
        storage: of the table.
        timeline: of the table, under its lock.
        instant: of the write.
        replaced: partitions whose file groups it replaces.
        written: file ids that it wrote by consistent hashing, by partition.
        count: buckets of a new partition.

    Raises:
        CommitConflictError: the ranges of a partition were changed since the write began.
        CorruptTableError: the stored ranges are damaged.
    """
    if not written and not has_hashing(storage):
        return []
    found = []
    for partition in sorted({*replaced, *written}):
        ranges = overwritten_ranges(storage, timeline, partition, instant)
        if ranges is None:
            if partition in written:
                load_or_make_hashing(storage, timeline, partition, count)
            continue
        others = set(written.get(partition, ())) - {node.file_id for node in ranges.nodes}
        if others:
            raise CommitConflictError(
                f"The buckets of partition {partition!r} of {storage.uri} were split or merged while the write "
                f"{instant} ran: it wrote the file groups {sorted(others)[:5]}. Run the write again."
            )
        found.append(ranges)
    return found


def save_ranges(storage: Storage, instant: str, ranges: Sequence[HashingMetadata]) -> None:
    """Write new ranges, with a marker as for a data file, so that a rollback deletes them."""
    for one in ranges:
        path = hashing_path(one.partition, instant)
        create_marker(storage, instant, path, "CREATE")
        storage.write_bytes(path, encode_hashing(one))


def change_counts(storage: Storage, instant: str, expressions: str, default: int) -> None:
    """Write bucket counts by partition for a write that replaces all rows, with a marker as for a data file."""
    create_marker(storage, instant, bucket_counts_path(instant), "CREATE")
    save_bucket_counts(storage, expressions, default, instant)


def confirm_ranges(storage: Storage, instant: str, partitions: Iterable[str]) -> None:
    """Mark new ranges as valid, once their commit is complete."""
    for partition in partitions:
        with contextlib.suppress(OSError):  # the completed instant also shows it
            storage.write_bytes(marker_path(partition, instant), b"")


Rows = npt.NDArray[np.int64]
Runner = Callable[..., Iterable[Any]]

_CONSISTENT = "CONSISTENT_HASHING"
_LOGGED = frozenset({"upsert", "insert", "delete"})
_OVERWRITES = frozenset({"insert_overwrite", "insert_overwrite_table"})
_ANY_INDEX = frozenset({"delete_partition", "insert_overwrite_table"})
"""Operations that replace every file group, or touch none."""

_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)

_SAMPLED_FILES = 3
_OLD_TABLE = 6
"""Two releases that hash keys differently write tables of this version."""


@dataclass(frozen=True, slots=True)
class BucketShare:
    """The rows of one bucket.

    Attributes:
        file_id: its file group, existing or new.
        slice: its newest slice; an empty slice for a group that begins with a log; None for one that begins with a
            base file.
        match: rows that change stored ones, or that are logged; None without such rows.
        inserts: int64[k], incoming rows that are appended to a base file.
        known: incoming rows of an ``insert`` whose keys are stored; None where duplicates are not checked.
    """

    file_id: str
    slice: FileSlice | None
    match: SliceMatches | None
    inserts: Rows
    known: SliceMatches | None = None


@dataclass(frozen=True, slots=True)
class _Bucket:
    file_id: str
    slice: FileSlice | None
    rows: Rows


def assign_to_buckets(
    plan: WritePlan, partition: str, incoming: Incoming, rows: Rows, slices: Sequence[FileSlice], run: Runner = map
) -> list[BucketShare]:
    """The rows of each bucket of a partition; skips empty buckets.

    Args:
        plan: the write, which uses a bucket index.
        partition: partition path.
        incoming: rows of the write.
        rows: int64[n], rows of the partition.
        slices: the partition's newest slices.
        run: runs the work of buckets: ``map``, or the ``map`` of a pool.

    Raises:
        ConfigError: file groups of the partition are not buckets.
        CorruptTableError: two file groups for one bucket, or unreadable ranges of consistent hashing.
    """
    settings = _settings(plan)
    slices = [] if plan.committed_as in _OVERWRITES else slices
    buckets = _consistent if settings.engine == _CONSISTENT else _fixed
    dealt = run(
        lambda one: _share(plan, incoming, one), buckets(plan, settings, partition, _Keyed(incoming, rows), slices)
    )
    return [share for share in dealt if share is not None]


def bucket_numbers(plan: WritePlan, partition: str, keys: pa.Array) -> npt.NDArray[np.int32]:
    """The bucket of each key of a partition, int32[n].

    Args:
        plan: the write, which uses a bucket index.
        partition: partition path.
        keys: record keys.

    Raises:
        CorruptTableError: unreadable ranges of consistent hashing.
    """
    settings = _settings(plan)
    if settings.engine == _CONSISTENT:
        return node_of_keys(keys, settings, _ranges(plan, settings, partition))
    return bucket_of_keys(keys, settings, partition)


# ---- buckets of rows


@dataclass(frozen=True, slots=True)
class _Keyed:
    incoming: Incoming
    rows: Rows

    def split(self, numbers: npt.NDArray[np.int32], count: int) -> Iterator[tuple[int, Rows]]:
        """Rows by bucket number, in order."""
        order, bounds = group_rows(numbers, count)
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            yield number, self.rows[order[bounds[number] : bounds[number + 1]]]


def _fixed(
    plan: WritePlan, settings: BucketSettings, partition: str, keyed: _Keyed, slices: Sequence[FileSlice]
) -> Iterator[_Bucket]:
    count = bucket_count(settings, partition)
    by_number = slices_by_bucket(slices, count, plan.storage.uri)
    numbers = bucket_of_keys(gather_array(keyed.incoming.key_array(), keyed.rows), settings, partition)
    for number, rows in keyed.split(numbers, count):
        slice_ = by_number.get(number)
        made = bucket_file_id(number, plan.storage.uri, plan.instant, partition)
        if slice_ is None and settings.shared_buckets and plan.operation in _LOGGED:
            made = shared_bucket_file_id(number)
            slice_ = FileSlice(partition, made, None, (), plan.instant)
            rows = _without_deletes(keyed.incoming, rows)
        yield _Bucket(made if slice_ is None else slice_.file_id, slice_, rows)


def _consistent(
    plan: WritePlan, settings: BucketSettings, partition: str, keyed: _Keyed, slices: Sequence[FileSlice]
) -> Iterator[_Bucket]:
    hashing = _ranges(plan, settings, partition)
    by_id = {one.file_id: one for one in slices}
    strange = sorted(by_id.keys() - {node.file_id for node in hashing.nodes})
    if strange:
        raise ConfigError(
            f"The partition {partition!r} of {plan.storage.uri} has file groups outside the ranges of its consistent "
            f"hashing: {strange[:5]}. The table was written with another index; give its hoodie.index.type "
            "and hoodie.index.bucket.engine."
        )
    numbers = node_of_keys(gather_array(keyed.incoming.key_array(), keyed.rows), settings, hashing)
    for number, rows in keyed.split(numbers, len(hashing.nodes)):
        file_id = hashing.nodes[number].file_id
        slice_ = by_id.get(file_id)
        if (partition, file_id) in plan.view.replaced:
            raise ConfigError(
                f"The partition {partition!r} of {plan.storage.uri} was deleted or overwritten by a writer that kept "
                f"its bucket ranges: rows in the replaced file group {file_id} would not be visible. Write its rows "
                "with insert_overwrite, which gives it new file groups."
            )
        if slice_ is None and plan.operation != "bulk_insert" and plan.committed_as not in _OVERWRITES:
            slice_ = FileSlice(partition, file_id, None, (), plan.instant)
            rows = _without_deletes(keyed.incoming, rows)
        yield _Bucket(file_id, slice_, rows)


def _ranges(plan: WritePlan, settings: BucketSettings, partition: str) -> HashingMetadata:
    """The ranges of a partition that the write's rows belong to."""
    if plan.committed_as in _OVERWRITES:
        found = overwritten_ranges(plan.storage, plan.view.timeline, partition, plan.instant)
        return found or first_hashing(partition, settings.count)
    return load_or_make_hashing(plan.storage, plan.view.timeline, partition, settings.count)


# ---- rows of a bucket


def _share(plan: WritePlan, incoming: Incoming, bucket: _Bucket) -> BucketShare | None:
    slice_, rows = bucket.slice, bucket.rows
    if slice_ is None:
        inserts = _without_deletes(incoming, rows)
        return BucketShare(bucket.file_id, None, None, inserts) if len(inserts) else None
    match, known = None, None
    if _looks_up(plan) and (slice_.base_file is not None or slice_.log_files):
        keys = gather_array(incoming.key_array(), rows)
        match = look_up(plan, slice_, IncomingKeys.of(keys, rows))
        matches = [] if match is None else [match]
        if plan.operation == "insert" and not plan.merges_inserts:
            rows = rows_with_new_keys(keys, rows, matches, incoming.count)
            match, known = None, match
        else:
            rows = untagged_rows(rows, matches, incoming.count)
    inserts = _NO_ROWS
    if plan.config.is_mor and plan.partial is None:
        match = SliceMatches(slice_, np.full(len(rows), -1, dtype=np.int64), rows) if len(rows) else None
    else:
        inserts = _without_deletes(incoming, rows)
    if match is None and known is None and not len(inserts):
        return None
    return BucketShare(bucket.file_id, slice_, match, inserts, known)


def _looks_up(plan: WritePlan) -> bool:
    """Whether keys must be looked up."""
    if plan.operation == "insert":
        return plan.duplicates != "none" or (plan.merges_inserts and not plan.config.is_mor)
    return plan.operation in ("upsert", "delete") and (plan.partial is not None or not plan.config.is_mor)


def _without_deletes(incoming: Incoming, rows: Rows) -> Rows:
    """Drop deletes of unknown keys."""
    return rows if incoming.deletes is None else rows[~incoming.deletes[rows]]


def _settings(plan: WritePlan) -> BucketSettings:
    if plan.index.bucket is None:
        raise ValueError(f"the index {plan.index.kind} has no buckets")
    return plan.index.bucket


# ---- before the write


def resolve_buckets(index: IndexSettings, state: TableState, operation: str) -> IndexSettings:
    """Complete the settings of a bucket index from the table; return other index kinds unchanged.

    Raises for another index kind where file groups are buckets: it would add file groups that are not buckets, and miss
    keys in logs.

    Args:
        index: settings from the options.
        state: the pinned table state.
        operation: of the write.

    Raises:
        ConfigError: settings that the table does not support, or that contradict its file groups.
        CorruptTableError: a file with the table's bucket ranges is damaged.
        UnsupportedFeatureError: the table has bucket counts by partition that hudi_fast does not support.
    """
    settings = index.bucket
    if settings is None:
        if operation not in _ANY_INDEX and (options := _bucket_options(state)) is not None:
            raise ConfigError(
                f"The file groups of {state.storage.uri} are buckets: the index {index.kind} would add others and miss "
                f"rows in their logs. Write with {options} as before."
            )
        return index
    config, uri = state.config, state.storage.uri
    if settings.engine == _CONSISTENT:
        if not config.is_mor:
            raise ConfigError(
                f"Consistent hashing needs a MERGE_ON_READ table; {uri} is COPY_ON_WRITE. Use "
                "hoodie.index.bucket.engine=SIMPLE."
            )
        return index
    return replace(index, bucket=_with_counts(settings, state, operation == "insert_overwrite_table"))


def _with_counts(settings: BucketSettings, state: TableState, rewrites: bool) -> BucketSettings:
    """The settings with the bucket counts of the table; a write that replaces all rows may set other counts.

    Raises:
        ConfigError: any other write sets other counts.
    """
    stored = load_bucket_counts(state.storage, state.view.timeline)
    before = settings if stored is None else replace(settings, count=stored.default, overrides=stored.overrides)
    if rewrites and settings.overrides:
        before = before if stored else replace(settings, overrides=())
        return replace(_resolve_rule(before, state), count=settings.count, overrides=settings.overrides)
    if stored is not None:
        _check_counts(settings, stored, state)
    return _resolve_rule(before, state)


def _check_counts(settings: BucketSettings, stored: BucketCounts, state: TableState) -> None:
    if settings.overrides and settings.overrides != stored.overrides:
        raise ConfigError(
            f"{state.storage.uri} has the bucket counts {stored.expressions!r}; found "
            f"hoodie.bucket.index.partition.expressions with {settings.overrides}. Leave the option out: "
            "only insert_overwrite_table changes the counts of a table."
        )
    if settings.is_count_given and settings.count != stored.default:
        raise ConfigError(
            f"{state.storage.uri} has {stored.default} buckets in partitions without a count of their own; found "
            f"hoodie.bucket.index.num.buckets={settings.count}. Leave the option out, or give {stored.default}."
        )


def _bucket_options(state: TableState) -> str | None:
    """The known options of the bucket index that a table was written with; None for another index."""
    if state.config.is_mor and has_hashing(state.storage):  # a request, and Hudi hashes so in MERGE_ON_READ only
        return "hoodie.index.type=BUCKET and hoodie.index.bucket.engine=CONSISTENT_HASHING"
    some = list(itertools.islice(_slices(state), _SAMPLED_FILES))
    if some and all(one.file_id.startswith("0000") and bucket_number(one.file_id) is not None for one in some):
        return "hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets"
    return None


def _resolve_rule(settings: BucketSettings, state: TableState) -> BucketSettings:
    """Check some stored keys against their buckets; in older tables this also determines the hash."""
    rules = (COMMA_AND_COLON, ANY_COLON) if state.config.version <= _OLD_TABLE else (COMMA_AND_COLON,)
    candidates = [replace(settings, key_rule=rule) for rule in rules]
    if not state.config.populate_meta_fields:
        return candidates[0]
    based = (one for one in _slices(state) if one.base_file is not None)
    for slice_ in itertools.islice(based, _SAMPLED_FILES):
        candidates = [one for one in candidates if _fits(one, state, slice_)]
        if not candidates:
            raise ConfigError(
                f"The keys in {slice_.file_id} of {state.storage.uri}, partition {slice_.partition!r}, do not belong "
                f"to that bucket if there are {bucket_count(settings, slice_.partition)} buckets and "
                f"{list(settings.hash_fields)} are hashed. Give hoodie.bucket.index.num.buckets, "
                "hoodie.bucket.index.hash.field and hoodie.index.type as the table was written with."
            )
    return candidates[0]


def _slices(state: TableState) -> Iterator[FileSlice]:
    for partition in state.view.lister.partitions():
        yield from latest_slices(state.view, partition)


def _fits(settings: BucketSettings, state: TableState, slice_: FileSlice) -> bool:
    """Whether the smallest and the largest key of a base file, where known, belong to its bucket."""
    assert slice_.base_file is not None
    number = bucket_number(slice_.file_id)
    with open_base(state.storage, slice_.base_file) as reader:
        footer = reader.footer()
    keys = [key for key in (footer.min_key, footer.max_key) if key is not None]
    if not keys:
        return number is not None and number < bucket_count(settings, slice_.partition)
    return bool((bucket_of_keys(pa.array(keys, pa.string()), settings, slice_.partition) == number).all())
