"""Writes spilled rows whose file groups are known, several file groups at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hudi_fast.merging.freed_memory import return_freed_bytes
from hudi_fast.merging.row_buffer import CollectedRows, RowBuffer
from hudi_fast.storage.concurrency import heaviest_first
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.partial import refuse_unknown
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys
from hudi_fast.writing.routed_rows import BucketWriter
from hudi_fast.writing.spilling.spill_file import Piece, SpillSettings
from hudi_fast.writing.write_plan import TaskToken, WritePlan

__all__ = ["MAX_THREADS", "Bucket", "Buckets", "write_buckets"]

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
