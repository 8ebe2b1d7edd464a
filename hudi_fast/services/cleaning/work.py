"""The values that a clean is made of.

::

    ScheduledClean    a plan on the timeline (or, of a dry run, in memory alone), with what its files weigh
    CleanResult       what a caller gets to see
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_fast.timeline.plans import CleanMetadata, CleanPlan

__all__ = ["CleanResult", "FinishedClean", "ScheduledClean", "combined_result"]


@dataclass(frozen=True, slots=True)
class ScheduledClean:
    """A clean that stands on the timeline and waits to be carried out.

    Attributes:
        instant: its requested time; empty for one that was only looked at.
        plan: what it deletes.
        sizes: bytes of its files, by their absolute paths; files that are gone are left out.
    """

    instant: str
    plan: CleanPlan
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def files(self) -> int:
        """How many files it deletes."""
        return sum(map(len, self.plan.files.values()))

    @property
    def bytes(self) -> int:
        """What they weigh together."""
        return sum(self.sizes.values())

    def to_arrow(self) -> pa.Table:
        """One row for each file: ``partition``, ``file`` (name), ``bytes`` (null for one that is gone)."""
        rows = [(partition, path) for partition, paths in sorted(self.plan.files.items()) for path in paths]
        return pa.table(
            {
                "partition": pa.array([partition for partition, _ in rows], pa.string()),
                "file": pa.array([path.rpartition("/")[2] for _, path in rows], pa.string()),
                "bytes": pa.array([self.sizes.get(path) for _, path in rows], pa.int64()),
            }
        )


@dataclass(frozen=True, slots=True)
class FinishedClean:
    """One clean that was completed.

    Attributes:
        instant: its requested time.
        metadata: what it did.
        bytes_deleted: what the files weighed that it deleted.
    """

    instant: str
    metadata: CleanMetadata
    bytes_deleted: int = 0


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What a call deleted.

    Attributes:
        instant: requested time of the newest clean that was completed; empty when there was nothing to do.
        files_deleted: files that are gone.
        files_failed: files that could not be deleted; the next clean tries again.
        bytes_deleted: what the deleted files weighed.
        partitions_deleted: paths of partitions that are wholly gone.
        earliest_retained: the newest clean's earliest retained commit: no state of the table before it can be read any
            more; empty where the policy has none.
        instants: requested times of all cleans that were completed, oldest first.
        seconds: from call to return.
    """

    instant: str
    files_deleted: int = 0
    files_failed: int = 0
    bytes_deleted: int = 0
    partitions_deleted: tuple[str, ...] = ()
    earliest_retained: str = ""
    instants: tuple[str, ...] = ()
    seconds: float = 0.0


def combined_result(done: Iterable[FinishedClean], seconds: float) -> CleanResult:
    """The result of a call that completed several cleans, or none.

    Args:
        done: oldest first.
        seconds: what the call took.
    """
    finished = list(done)
    parts = [part for one in finished for part in one.metadata.partitions]
    return CleanResult(
        instant=finished[-1].instant if finished else "",
        files_deleted=sum(len(part.deleted) for part in parts),
        files_failed=sum(len(part.failed) for part in parts),
        bytes_deleted=sum(one.bytes_deleted for one in finished),
        partitions_deleted=tuple(dict.fromkeys(part.partition_path for part in parts if part.partition_deleted)),
        earliest_retained=finished[-1].metadata.earliest_instant_to_retain if finished else "",
        instants=tuple(one.instant for one in finished),
        seconds=seconds,
    )
