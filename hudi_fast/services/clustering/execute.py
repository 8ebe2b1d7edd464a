"""Carrying the groups of a clustering out: one by one, or in the threads of this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.work import ClusteringWork
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["bytes_of", "in_threads"]


def in_threads(work: ClusteringWork) -> list[WriteStat]:
    """Rewrite all groups in this process, the largest first."""
    order = sorted(range(len(work.groups)), key=lambda number: bytes_of(work, number), reverse=True)
    with ThreadPoolExecutor(work.plan.threads, thread_name_prefix="hudi_fast") as pool:
        written = pool.map(lambda number: rewrite_group(work, number, TaskToken(number)), order)
        return [stat for stats in written for stat in stats]


def bytes_of(work: ClusteringWork, number: int) -> float:
    """About how many bytes a group reads."""
    metrics = work.groups[number].metrics
    return metrics.get("TOTAL_IO_READ_MB", 0.0) * (1 << 20) + metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)
