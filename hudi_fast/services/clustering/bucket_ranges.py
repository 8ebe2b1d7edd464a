"""Decides which buckets of consistent hashing split and merge, by hash ranges and group sizes.

A bucket that is too large splits in the middle of its range. Neighbours whose total size is small enough become one,
from the smallest hash on. A bucket without files has size 0. Groups that neither split nor merge keep their range and
their files.

Source: ``BaseConsistentHashingBucketClusteringPlanStrategy``, ``ConsistentBucketIdentifier`` (Hudi 1.2.0). There the
last bucket of a run of small buckets may exceed the threshold.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.index.consistent import HASH_RANGE, HashingMetadata, HashingNode
from hudi_fast.view.slices import FileSlice

__all__ = ["PartitionResize", "ResizeBounds", "ResizeGroup", "plan_partition"]


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
