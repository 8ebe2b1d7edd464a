"""One group of a clustering becomes new file groups: the unit of work."""

from __future__ import annotations

from hudi_fast.services.clustering.work import ClusteringWork
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken

__all__ = ["rewrite_group"]


def rewrite_group(work: ClusteringWork, number: int, token: TaskToken) -> list[WriteStat]:
    """Rewrite the slices of one group.

    Args:
        work: the clustering.
        number: which of its groups.
        token: who writes.
    """
    raise NotImplementedError
