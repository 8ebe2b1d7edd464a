"""Assigns inserts to files by size (``UpsertPartitioner``, ``AverageRecordSizeEstimator``; Hudi 1.2.0).

First the small files of the partition are filled up to the maximum file size, in listing order; the remaining records
form new file groups of as many records as fit one file.

Apache Hudi limits only the size. Here a file of narrow records ends at a number of records, because the task that
changes a file group has all its record keys in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from hudi_fast.config.file_options import SizingOptions
from hudi_fast.timeline.commit_metadata import CommitMetadata

__all__ = [
    "InsertAssignment",
    "SmallFile",
    "assign_inserts",
    "average_record_size",
    "files_of_parts",
    "max_files",
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
