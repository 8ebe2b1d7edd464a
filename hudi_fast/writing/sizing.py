"""Assigns inserts to files by size (``UpsertPartitioner``, ``AverageRecordSizeEstimator``; Hudi 1.2.0).

First the small files of the partition are filled up to the maximum file size, in listing order; the remaining records
form new file groups of as many records as fit one file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hudi_fast.timeline.commit_metadata import CommitMetadata

__all__ = ["InsertAssignment", "SizingSettings", "SmallFile", "assign_inserts", "average_record_size"]


@dataclass(frozen=True, slots=True)
class SizingSettings:
    """File sizing options; sizes in bytes.

    Attributes:
        max_file_size: ``hoodie.parquet.max.file.size``.
        small_file_limit: smaller files are filled; 0 or less disables this.
        auto_split: whether sizes decide the number of records per new file, rather than ``split_size``.
        split_size: records per new file otherwise.
        record_size_estimate: bytes per record while there is no history.
        estimation_threshold: share of the small file limit that a commit must have written to be used.
        estimator_max_commits: number of examined commits, newest first.
        estimator_file_metadata: bytes subtracted per file.
        compression_slack: share above ``max_file_size`` at which a file is full.
        small_file_candidates: MERGE_ON_READ: number of files of a partition that one write fills.
    """

    max_file_size: int = 125829120
    small_file_limit: int = 104857600
    auto_split: bool = True
    split_size: int = 500000
    record_size_estimate: int = 1024
    estimation_threshold: float = 1.0
    estimator_max_commits: int = 5
    estimator_file_metadata: int = 0
    compression_slack: float = 0.1
    small_file_candidates: int = 1

    def records_per_new_file(self, average: int) -> int:
        """Number of records of ``average`` bytes in a new file."""
        return max(1, math.ceil(self.max_file_size / average)) if self.auto_split else self.split_size


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


def average_record_size(commits: Iterable[CommitMetadata], settings: SizingSettings) -> int:
    """Bytes per record, from the newest commit that wrote enough.

    Args:
        commits: newest first, without replace commits; read lazily. Only base files of a delta commit count.
        settings: thresholds and the fallback estimate.
    """
    threshold = settings.estimation_threshold * settings.small_file_limit
    for seen, commit in enumerate(commits):
        if seen >= settings.estimator_max_commits:
            break
        stats = [stat for group in commit.partition_to_write_stats.values() for stat in group]
        stats = [stat for stat in stats if ".log." not in (stat.path or "")]
        size = sum(stat.total_write_bytes - settings.estimator_file_metadata for stat in stats)
        records = sum(stat.num_writes for stat in stats)
        if size > threshold and records > 0:
            return math.ceil(size / records)
    return settings.record_size_estimate


def assign_inserts(
    inserts: int, small_files: Sequence[SmallFile], average: int, settings: SizingSettings
) -> list[InsertAssignment]:
    """Assign ``inserts`` records of one partition to files, in order.

    Args:
        inserts: number of records.
        small_files: files below the limit, in listing order.
        average: bytes per record.
        settings: sizes.
    """
    left = inserts
    assigned: list[InsertAssignment] = []
    for small in small_files:
        count = min((settings.max_file_size - small.size) // average, left)
        if count > 0:
            assigned.append(InsertAssignment(small.file_id, count))
            left -= count
        if left <= 0:
            return assigned
    per_file = settings.records_per_new_file(average)
    while left > 0:
        count = min(per_file, left)
        assigned.append(InsertAssignment(None, count))
        left -= count
    return assigned
