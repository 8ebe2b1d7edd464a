"""Carrying the groups of a clustering out in the threads of this process."""

from __future__ import annotations

from functools import partial

from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.work import ClusteringWork
from hudi_fast.services.units import bytes_read, largest_first
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["in_threads", "weights_of"]


def in_threads(work: ClusteringWork) -> list[WriteStat]:
    """Rewrite all groups in this process, the largest first."""
    return largest_first(weights_of(work), work.plan.threads, partial(rewrite_group, work))


def weights_of(work: ClusteringWork) -> list[float]:
    """About how many bytes each group reads."""
    return [bytes_read(group.metrics) for group in work.groups]
