"""Split and merge buckets of consistent hashing.

Resizes buckets of consistent hashing: large file groups are split, neighbouring small ones merged.

::

    the table's lock
      plan     per partition: ranges and sizes of their groups ─► groups to rewrite, the ranges afterwards
      begin    a replace commit: requested ─► inflight
      rewrite  slices, merged ─► a base file for each new range, in threads or Spark tasks; rows keep their commit time
      commit   the new ranges ─► the metadata table ─► completed instant (visible) ─► marks: ranges are valid

Apache Hudi plans such a clustering first: see :mod:`hudi_fast.services.clustering.cluster`. This replace commit
has no plan: if its writer fails, the next one rolls it back like any write, and ranges without a completed instant are
invalid. Groups keep their range unless they are rewritten.

Sources: ``BaseConsistentHashingBucketClusteringPlanStrategy``, ``SingleSparkJobConsistentHashingExecutionStrategy``,
``HoodieSparkConsistentBucketIndex.updateLocation`` (Hudi 1.2.0).

Decides which buckets of consistent hashing split and merge, by hash ranges and group sizes.

A bucket that is too large splits in the middle of its range. Neighbours whose total size is small enough become one,
from the smallest hash on. A bucket without files has size 0. Groups that neither split nor merge keep their range and
their files.

Source: ``BaseConsistentHashingBucketClusteringPlanStrategy``, ``ConsistentBucketIdentifier`` (Hudi 1.2.0). There the
last bucket of a run of small buckets may exceed the threshold.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.formats.varlen import gather, single_chunk
from hudi_fast.index.buckets import (
    FIRST_INSTANT,
    HASH_RANGE,
    HashingMetadata,
    HashingNode,
    has_hashing,
    load_hashing,
    node_of_keys,
)
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.merging.rules import SliceMerge, merge_schema
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.services.clustering.cluster_work import Finished
from hudi_fast.services.compact_plan import require_merge_on_read
from hudi_fast.services.running import file_plan, recover_with_metadata, stats_by_partition
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.bucket import confirm_ranges, save_ranges
from hudi_fast.writing.metadata_commit import maintain_metadata, record_in_metadata
from hudi_fast.writing.output_file import RECORD_KEY, CarriedColumns, KeyFooter, OutputFile, carried_schema
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.table_schema import schema_metadata
from hudi_fast.writing.transaction import Transaction, begin, publish, rolled_back_on_failure
from hudi_fast.writing.write_plan import FileGroupWork, FilePlan, TaskToken

__all__ = ["PartitionResize", "ResizeBounds", "ResizeGroup", "execute_resizes", "plan_partition", "resize_buckets"]


@dataclass(frozen=True, slots=True)
class ResizeBounds:
    """When buckets split and merge.

    Attributes:
        split_bytes: larger ones split.
        merge_bytes: neighbours with at most this total size merge.
        fewest: fewest buckets of a partition after merging.
        maximum: most buckets of a partition after splitting.
    """

    split_bytes: float
    merge_bytes: float
    fewest: int
    maximum: int

    @classmethod
    def of(cls, options: WriteOptions) -> ResizeBounds:
        """From the ``hoodie.bucket.index.*`` options; thresholds are multiples of the size of base files."""
        return cls(
            options.sizing.max_file_size * options.bucket.split_threshold,
            options.sizing.max_file_size * options.bucket.merge_threshold,
            options.bucket.min_count or options.bucket.count,
            options.bucket.max_count or options.bucket.count,
        )


@dataclass(frozen=True, slots=True)
class ResizeGroup:
    """Slices that are rewritten into one new file group for each of the new ranges."""

    slices: tuple[FileSlice, ...]
    nodes: tuple[HashingNode, ...]


@dataclass(frozen=True, slots=True)
class PartitionResize:
    """The bucket changes of a partition.

    Attributes:
        before: its ranges.
        nodes: its ranges afterwards.
        groups: groups to rewrite; at least one.
    """

    before: HashingMetadata
    nodes: tuple[HashingNode, ...]
    groups: tuple[ResizeGroup, ...]


def plan_partition(
    hashing: HashingMetadata, slices: Mapping[str, FileSlice], bounds: ResizeBounds
) -> PartitionResize | None:
    """The buckets of a partition that split and merge; None when no bucket changes.

    Args:
        hashing: its ranges.
        slices: by file id, of groups with files.
        bounds: when buckets split and merge.
    """
    nodes = hashing.nodes
    sizes = [_size(slices.get(node.file_id)) for node in nodes]
    new: dict[int, tuple[int, tuple[HashingNode, ...]]] = {}  # first old node: number of old nodes, their new nodes
    room = bounds.maximum - len(nodes)
    for number, node in enumerate(nodes):
        start = -1 if number == 0 else nodes[number - 1].value
        middle = (start + node.value) // 2
        splits = sizes[number] > bounds.split_bytes and room > 0 and start < middle < node.value
        if splits and (number or nodes[-1].value == HASH_RANGE):  # else the first range wraps around after the last
            new[number] = 1, (_new_node(middle), _new_node(node.value))
            room -= 1
    spare = len(nodes) + len(new) - bounds.fewest
    for first, count in _mergeable(sizes, bounds.merge_bytes, new, spare):
        if any(nodes[number].file_id in slices for number in range(first, first + count)):
            new[first] = count, (_new_node(nodes[first + count - 1].value),)
    if not new:
        return None
    groups: list[ResizeGroup] = []
    after: list[HashingNode] = []
    number = 0
    while number < len(nodes):
        count, made = new.get(number, (1, (nodes[number],)))
        after += made
        if number in new:
            old = (slices.get(node.file_id) for node in nodes[number : number + count])
            groups.append(ResizeGroup(tuple(one for one in old if one is not None), made))
        number += count
    return PartitionResize(hashing, tuple(after), tuple(groups))


def _mergeable(
    sizes: Sequence[int], limit: float, taken: Mapping[int, object], spare: int
) -> Iterator[tuple[int, int]]:
    """First bucket and length of each run of neighbours with a total size of at most ``limit``."""
    first = 0
    while first < len(sizes):
        end, total = first, 0
        while end < len(sizes) and end not in taken and total + sizes[end] <= limit and end - first <= spare:
            total += sizes[end]
            end += 1
        if end - first > 1:
            spare -= end - first - 1
            yield first, end - first
        first = max(end, first + 1)


def _size(slice_: FileSlice | None) -> int:
    if slice_ is None:
        return 0
    base = 0 if slice_.base_file is None else slice_.base_file.size
    return base + sum(log.size for log in slice_.log_files)


def _new_node(value: int) -> HashingNode:
    return HashingNode(value, str(uuid.uuid4()))


_NO_ROWS = np.zeros(0, dtype=np.int64)


def resize_buckets(session: TableSession) -> list[Finished]:
    """Split and merge the buckets of a table, except in partitions that a pending service names.

    Args:
        session: the call; its settings have the bounds.

    Returns:
        The replace commit; none when all buckets have the right size.

    Raises:
        CommitError: it failed; the table is as before.
        ConfigError: the table is not MERGE_ON_READ, or was written with other hash fields than the options name.
        UnsupportedFeatureError: the table does not use consistent hashing.
    """
    with session.service_lock(service_lock_path("clustering")), session.locked():
        _require_consistent_hashing(session.storage)
        require_merge_on_read(session.state)
        state = recover_with_metadata(session)
        resizes = list(_plan(state, ResizeBounds.of(session.settings.write)))
        if not resizes:
            return []
        file_plan(session)  # refuses unsupported tables
        return [execute_resizes(begin(session, "CLUSTER", True), resizes)]


def execute_resizes(transaction: Transaction, resizes: Sequence[PartitionResize]) -> Finished:
    """Rewrite buckets, and complete the replace commit; under the table's lock.

    Args:
        transaction: the replace commit or clustering, begun.
        resizes: the changes, by partition.

    Raises:
        CommitError: it failed, and was rolled back.
        ConfigError: the table was written with other hash fields than the options name.
    """
    session, instant = transaction.session, transaction.instant.requested
    with rolled_back_on_failure(transaction):
        plan = file_plan(session, instant)
        resizing = _Resizing(plan, plan.merge_of(session.state), _hashed(session.settings.write, session.state))
        stats = _execute(transaction, resizing, resizes)
    ended = sum(len(group.slices) for resize in resizes for group in resize.groups)
    return Finished(instant, ended, tuple(stats))


def _plan(state: TableState, bounds: ResizeBounds) -> Iterator[PartitionResize]:
    view = state.view
    busy = {*view.pending_groups, *view.pending_compactions, *view.pending_log_compactions}
    taken = {partition for partition, _ in busy}
    for partition in view.lister.partitions():
        hashing = None if partition in taken else load_hashing(state.storage, state.timeline, partition)
        if hashing is not None:
            slices = {one.file_id: one for one in latest_slices(view, partition)}
            resize = plan_partition(hashing, slices, bounds)
            if resize is not None:
                yield resize


def _require_consistent_hashing(storage: Storage) -> None:
    if not has_hashing(storage):
        raise UnsupportedFeatureError(
            f"{storage.uri} does not use consistent hashing: there are no bucket ranges to split and merge."
        )


# ---- the rewrite


@dataclass(frozen=True)
class _Resizing:
    """The state that all groups share: how files are written, how slices merge, hash fields. Picklable."""

    plan: FilePlan
    merge: SliceMerge
    hashed: BucketSettings


def _hashed(options: WriteOptions, state: TableState) -> BucketSettings:
    fields = options.bucket.hash_fields or state.config.record_key_fields
    return BucketSettings("CONSISTENT_HASHING", options.bucket.count, fields)


def _execute(transaction: Transaction, resizing: _Resizing, resizes: Sequence[PartitionResize]) -> list[WriteStat]:
    session, storage, instant = transaction.session, transaction.storage, transaction.instant.requested
    work = [(resize, group) for resize in resizes for group in resize.groups]
    weights = [sum(one.weight for one in group.slices) for _, group in work]
    stats = session.backend.map_units(resizing.plan, work, weights, partial(_rewrite, resizing))
    metadata = _commit_metadata(resizing, resizes, stats)
    ranges = [HashingMetadata(one.before.partition, instant, one.before.sequence + 1, one.nodes) for one in resizes]

    def record() -> None:
        save_ranges(storage, instant, ranges)
        record_in_metadata(session, resizing.plan, metadata)

    before = session.state
    publish(transaction, metadata, record)
    confirm_ranges(storage, instant, [one.partition for one in ranges])
    session.changed()
    maintain_metadata(session, before)
    return stats


def _commit_metadata(
    resizing: _Resizing, resizes: Sequence[PartitionResize], stats: Iterable[WriteStat]
) -> CommitMetadata:
    replaced = {
        resize.before.partition: [one.file_id for group in resize.groups for one in group.slices] for resize in resizes
    }
    schema = schema_metadata(resizing.plan)
    return CommitMetadata(stats_by_partition(stats), schema, "CLUSTER", partition_to_replace_file_ids=replaced)


def _rewrite(resizing: _Resizing, work: tuple[PartitionResize, ResizeGroup], token: TaskToken) -> list[WriteStat]:
    """Write the rows of a group's slices into one base file for each new range that has rows."""
    resize, group = work
    ranges = HashingMetadata(resize.before.partition, FIRST_INSTANT, 0, group.nodes)
    with contextlib.ExitStack() as stack:
        files: dict[int, _RangeFile] = {}
        for slice_, batch in _rows(resizing, group):
            keys = _keys(resizing.plan, batch)
            _check_keys(resizing, resize, slice_, keys)
            order, bounds = group_rows(node_of_keys(keys, resizing.hashed, ranges), len(group.nodes))
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                if number not in files:
                    files[number] = stack.enter_context(
                        _RangeFile(resizing.plan, resize.before.partition, group.nodes[number], token)
                    )
                rows = order[bounds[number] : bounds[number + 1]]
                files[number].write(gather(pa.Table.from_batches([batch]), rows))
        return [one.finish() for _, one in sorted(files.items())]


def _rows(resizing: _Resizing, group: ResizeGroup) -> Iterator[tuple[FileSlice, pa.RecordBatch]]:
    plan = resizing.plan
    wanted = carried_schema(plan)
    merge = resizing.merge
    columns = merge_schema(merge, wanted, plan.file_schema)
    scan = SliceScan(plan.storage, plan.config, wanted, wanted, None, merge=merge, merge_columns=columns)
    for slice_ in group.slices:
        for batch in read_slice(scan, slice_):
            yield slice_, batch


def _keys(plan: FilePlan, batch: pa.RecordBatch) -> pa.Array:
    if plan.stored_key_config is None:
        return single_chunk(batch.column(RECORD_KEY))
    return single_chunk(record_keys(plan.stored_key_config, pa.Table.from_batches([batch])))


def _check_keys(resizing: _Resizing, resize: PartitionResize, slice_: FileSlice, keys: pa.Array) -> None:
    numbers = np.unique(node_of_keys(keys, resizing.hashed, resize.before))
    found = {resize.before.nodes[number].file_id for number in numbers.tolist()}
    if found - {slice_.file_id}:
        raise ConfigError(
            f"Keys in the file group {slice_.file_id} of {resizing.plan.storage.uri}, partition {slice_.partition!r}, "
            f"are outside its hash range with the hash fields {list(resizing.hashed.hash_fields)}. Set "
            "hoodie.bucket.index.hash.field as the table was written."
        )


class _RangeFile:
    """Writes the base file of one new range; a context manager that deletes the unfinished file after an error."""

    def __init__(self, plan: FilePlan, partition: str, node: HashingNode, token: TaskToken) -> None:
        work = FileGroupWork(partition, node.file_id, None, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
        self._output = OutputFile(plan, work, node.file_id, "CREATE", KeyFooter.for_new_file(plan))
        self._carried = CarriedColumns.of(plan, partition, self._output.name)
        self._plan, self._work = plan, work

    def write(self, rows: pa.Table) -> None:
        """Append rows of the carried columns."""
        self._output.write(self._carried.complete(rows))
        if self._plan.config.populate_meta_fields:
            self._output.footer.add(single_chunk(rows.column(RECORD_KEY)))

    def finish(self) -> WriteStat:
        """Close the file; returns its write statistics."""
        size, output = self._output.close(), self._output
        return WriteStat(
            file_id=self._work.file_id,
            path=output.path,
            prev_commit="null",
            partition_path=self._work.partition,
            num_writes=output.rows,
            num_inserts=output.rows,
            total_write_bytes=size,
            file_size=size,
            column_ranges=output.ranges,
        )

    def __enter__(self) -> _RangeFile:
        self._output.__enter__()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._output.__exit__(kind, *exc)
