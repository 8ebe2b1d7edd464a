"""Carrying the operations of a compaction or log compaction out: one by one, or in the threads of this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hudi_fast.services.compaction.log_slices import compact_log
from hudi_fast.services.compaction.slices import compact_slice
from hudi_fast.services.compaction.work import CompactionWork
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["bytes_of", "carry_out", "in_threads"]


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
    order = sorted(range(len(work.operations)), key=lambda number: bytes_of(work, number), reverse=True)
    with ThreadPoolExecutor(work.plan.threads, thread_name_prefix="hudi_fast") as pool:
        written = pool.map(lambda number: carry_out(work, number, TaskToken(number)), order)
        return [stat for stats in written for stat in stats]


def bytes_of(work: CompactionWork, number: int) -> float:
    """About how many bytes an operation reads."""
    metrics = work.operations[number].metrics
    return metrics.get("TOTAL_IO_READ_MB", 0.0) * (1 << 20) + metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)
