"""Groups the file slices of a partition that are rewritten together, by their sizes.

The options set the order of slices, largest first by default. A group is closed when the next slice would make it too
large. A slice without a base file counts with the size of a full one.

Sources: ``PartitionAwareClusteringPlanStrategy``, ``SparkSingleFileSortPlanStrategy``,
``SparkStreamCopyClusteringPlanStrategy``, ``ClusteringFileSliceComparator``, ``FileSliceMetricUtils`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.slices import FileSlice

__all__ = ["PartitionGroups", "group_slices", "one_to_a_group", "planned_group"]

_MIB = 1 << 20

Kind = Callable[[FileSlice], object]
"""Slices of different kinds never share a group."""


@dataclass(frozen=True, slots=True)
class PartitionGroups:
    """The groups of one partition: slices with the number of file groups that they become.

    Attributes:
        groups: in the order of the plan.
        partial: whether slices were left over because there were enough groups.
    """

    groups: tuple[tuple[tuple[FileSlice, ...], int], ...]
    partial: bool = False


def group_slices(
    slices: Sequence[FileSlice], options: ClusteringOptions, max_file_size: int, kind: Kind | None = None
) -> PartitionGroups:
    """Put the slices of a partition into groups of limited size.

    Args:
        slices: those that may be clustered.
        options: limits and order.
        max_file_size: bytes reckoned for a slice without base file.
        kind: slices of different kinds never share a group; None when any may.
    """
    groups: list[tuple[tuple[FileSlice, ...], int]] = []
    current: list[FileSlice] = []
    total, partial = 0, False
    for slice_ in _ordered(slices, options, max_file_size):
        size = _size(slice_, max_file_size)
        full = total + size > options.max_group_bytes
        if current and (full or (kind is not None and kind(slice_) != kind(current[0]))):
            groups.append((tuple(current), _outputs(total, options)))
            current, total = [], 0
            if len(groups) >= options.max_groups:
                partial = True
                break
        current.append(slice_)
        total += size
    if current:
        groups.append((tuple(current), _outputs(total, options)))
    singles = options.single_groups or bool(options.sort_columns)
    kept = tuple(one for one in groups if len(one[0]) > 1 or one[1] > 1 or singles)
    return PartitionGroups(kept, partial)


def one_to_a_group(slices: Sequence[FileSlice], options: ClusteringOptions) -> PartitionGroups:
    """Each slice becomes one file."""
    groups = tuple(((one,), 1) for one in slices)
    return PartitionGroups(groups[: options.max_groups], len(groups) > options.max_groups)


def planned_group(storage: Storage, slices: Sequence[FileSlice], outputs: int, max_file_size: int) -> ClusteringGroup:
    """A group in the form of a plan: absolute paths, and metrics for other engines."""
    log_bytes = sum(log.size for one in slices for log in one.log_files)
    base_bytes = sum(one.base_file.weight for one in slices if one.base_file is not None)
    read = (base_bytes + log_bytes) // _MIB
    write = sum(_size(one, max_file_size) for one in slices) // _MIB
    metrics = {
        "TOTAL_LOG_FILES": float(sum(len(one.log_files) for one in slices)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(write),
    }
    planned = tuple(
        ClusteringSlice(
            one.partition,
            one.file_id,
            "" if one.base_file is None else storage.absolute(one.base_file.path),
            tuple(storage.absolute(log.path) for log in one.log_files),
            "" if one.base_file is None or one.base_file.source is None else one.base_file.source.uri,
        )
        for one in slices
    )
    return ClusteringGroup(planned, outputs, metrics)


def _ordered(slices: Sequence[FileSlice], options: ClusteringOptions, max_file_size: int) -> list[FileSlice]:
    def key(slice_: FileSlice) -> tuple[tuple[int, str], ...]:
        began = "" if slice_.base_file is None else slice_.base_file.instant
        values = {"SIZE": (-_size(slice_, max_file_size), ""), "INSTANT_TIME": (0, began)}
        return tuple(values[name] for name in options.slice_order)

    return sorted(slices, key=key)


def _size(slice_: FileSlice, max_file_size: int) -> int:
    return max_file_size if slice_.base_file is None else slice_.base_file.weight


def _outputs(total: int, options: ClusteringOptions) -> int:
    return max(1, -(-total // options.target_bytes))
