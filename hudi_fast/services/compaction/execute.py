"""Carrying the operations of a compaction or log compaction out: one by one, or in the threads of this process."""

from __future__ import annotations

from functools import partial

from hudi_fast.services.compaction.log_slices import compact_log
from hudi_fast.services.compaction.slices import compact_slice
from hudi_fast.services.compaction.work import CompactionWork
from hudi_fast.services.units import bytes_read, largest_first
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["carry_out", "in_threads", "weights_of"]


def carry_out(work: CompactionWork, number: int, token: TaskToken) -> list[WriteStat]:
    """Merge one slice of the plan; what was written.

    Args:
        work: the compaction or log compaction.
        number: which of its operations.
        token: who writes.
    """
    if work.action == "compaction":
        return [compact_slice(work, number, token)]
    return compact_log(work, number, token)


def in_threads(work: CompactionWork) -> list[WriteStat]:
    """Merge all slices in this process, the largest first."""
    return largest_first(weights_of(work), work.plan.threads, partial(carry_out, work))


def weights_of(work: CompactionWork) -> list[float]:
    """About how many bytes each operation reads."""
    return [bytes_read(operation.metrics) for operation in work.operations]
