"""Reads the merged rows of a clustering's group, and the key filters of its files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.bloom_union import union_filters
from hudi_fast.merging.slice_merge import merge_schema
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.services.clustering.cluster_work import ClusteringWork, slices_of
from hudi_fast.timeline.service_plans import ClusteringGroup
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.file_columns import carried_schema
from hudi_fast.writing.write_plan import FilePlan

__all__ = ["GroupInput", "KnownKeys", "group_input", "joined_filters", "known_keys", "read_rows"]

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class GroupInput:
    """The input of one group of a clustering.

    Attributes:
        work: the clustering.
        partition: partition path of all its slices.
        slices: file slices, in the order of the plan.
        output_groups: number of new file groups.
    """

    work: ClusteringWork
    partition: str
    slices: tuple[FileSlice, ...]
    output_groups: int

    @property
    def is_merged(self) -> bool:
        """Whether there are logs to merge."""
        return any(one.log_files for one in self.slices)

    @property
    def threads(self) -> int:
        """Threads for this group while other groups run at the same time."""
        return max(self.work.plan.files.threads // max(self.work.group_count, 1), 1)


def group_input(work: ClusteringWork, group: ClusteringGroup) -> GroupInput:
    """Find the files of a group.

    Raises:
        CorruptTableError: one of them is missing.
        UnsupportedFeatureError: the group has slices of several partitions.
    """
    slices = tuple(slices_of(work.plan.storage, group, work.plan.view.history))
    partitions = {one.partition for one in slices}
    if len(partitions) != 1:
        raise UnsupportedFeatureError(
            f"A group of the clustering {work.plan.instant} of {work.plan.storage.uri} has slices of "
            f"{len(partitions)} partitions: {sorted(partitions)}; expected those of one. Use Apache Hudi for it, or "
            "roll it back and plan another one."
        )
    return GroupInput(work, partitions.pop(), slices, max(group.output_groups, 1))


def read_rows(
    source: GroupInput, columns: pa.Schema | None = None, slices: Sequence[int] | None = None
) -> Generator[pa.RecordBatch]:
    """The rows of all slices, merged, slice by slice; their order is deterministic.

    Args:
        source: the group.
        columns: columns to read; None for all columns that a new file takes from stored rows.
        slices: numbers of slices to read; None for all.

    Raises:
        CorruptTableError: one of the files cannot be read.
    """
    plan, merge = source.work.plan, source.work.merge
    wanted = carried_schema(plan) if columns is None else columns
    needed = merge_schema(merge, wanted, plan.file_schema)
    scan = SliceScan(plan.storage, plan.config, wanted, wanted, None, _BATCH_ROWS, merge, needed)
    for number in range(len(source.slices)) if slices is None else slices:
        yield from read_slice(scan, source.slices[number])


@dataclass(frozen=True)
class KnownKeys:
    """The combined footers of a group's base files.

    Attributes:
        rows: total number of rows.
        filter: a bloom filter of all their keys; None when keys must be hashed again.
    """

    rows: int
    filter: BloomFilter | None


def known_keys(source: GroupInput) -> KnownKeys:
    """Read the footers of the base files.

    Their filters are joined if one file gets all rows and there are no log files.

    Raises:
        CorruptTableError: a file or its filter cannot be read.
    """
    plan = source.work.plan
    rows = 0

    def footers() -> Iterator[tuple[str, BaseFileFooter]]:
        nonlocal rows
        for one in source.slices:
            if one.base_file is not None:
                with open_base(plan.storage, one.base_file) as reader:
                    rows += reader.num_rows
                    yield one.base_file.path, reader.footer()

    found = footers()
    joined = None if source.is_merged or source.output_groups > 1 else joined_filters(plan, found)
    for _ in found:
        pass  # rows are counted even if no filter is needed
    return KnownKeys(rows, joined)


def joined_filters(plan: FilePlan, footers: Iterable[tuple[str, BaseFileFooter]]) -> BloomFilter | None:
    """The filters of whole files, joined one by one.

    None when keys must be hashed: filters are disabled, or a file has no filter, or one of another size or kind.

    Args:
        plan: settings of filters.
        footers: of the files, with their paths.
    """
    settings = plan.files.bloom
    if not settings.enabled or not plan.config.populate_meta_fields:
        return None
    like = BloomFilter.create(settings.entries, settings.fpp, settings.max_entries, settings.type)
    all_have_one = True

    def filters() -> Iterator[BloomFilter]:
        nonlocal all_have_one
        for path, footer in footers:
            if footer.bloom_filter is None:
                all_have_one = False
                return
            yield BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type, settings.max_entries, path)

    found = union_filters(filters(), like)
    return found if all_have_one else None
