"""The values that a running clustering is made of. They travel, pickled, to whoever rewrites groups.

::

    ClusteringWork        what is true for the whole clustering: how rows merge, how files are written, which groups
    ClusteringExecutor    rewrites each of its groups, in threads or as Spark tasks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hudi_fast.merge.slice_merge import SliceMerge
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup
from hudi_fast.writing.plan import WritePlan

__all__ = ["ClusteringExecutor", "ClusteringWork", "Ordering"]


@dataclass(frozen=True, slots=True)
class Ordering:
    """How rows are ordered in the files that a clustering writes.

    Attributes:
        columns: to sort by, dotted for nested ones; empty: rows keep the order that they have.
        curve: ``LINEAR`` (by the first column, then the second ...), ``ZORDER`` or ``HILBERT``.
        build: what a curve is made of: ``DIRECT`` values, or ``SAMPLE``: their ranks in a sample.
        sample_rows: size of that sample.
    """

    columns: tuple[str, ...] = ()
    curve: str = "LINEAR"
    build: str = "DIRECT"
    sample_rows: int = 200_000


@dataclass(frozen=True)
class ClusteringWork:
    """What rewriting the groups of a plan needs.

    Attributes:
        plan: how files are written; its instant is the clustering's.
        merge: how slices merge.
        groups: of the clustering plan.
        ordering: of the rows.
        target_bytes: size of a file after which the next one begins.
    """

    plan: WritePlan
    merge: SliceMerge
    groups: tuple[ClusteringGroup, ...]
    ordering: Ordering
    target_bytes: int


ClusteringExecutor = Callable[[ClusteringWork], list[WriteStat]]
"""Rewrites all groups of the work; one stat for each file that was written."""
