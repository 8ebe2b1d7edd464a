"""Carrying the groups of a clustering out in the threads of this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.work import ClusteringWork
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["in_threads"]


def in_threads(work: ClusteringWork) -> list[WriteStat]:
    """Rewrite all groups in this process."""
    with ThreadPoolExecutor(work.plan.threads, thread_name_prefix="hudi_fast") as pool:
        written = pool.map(lambda number: rewrite_group(work, number, TaskToken(number)), range(len(work.groups)))
        return [stat for stats in written for stat in stats]
