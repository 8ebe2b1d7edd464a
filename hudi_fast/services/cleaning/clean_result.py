"""The values of a clean.

::

    ScheduledClean    a plan on the timeline (of a dry run: in memory only), with the sizes of its files
    CleanResult       the result of a call
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.timeline.plans import CleanMetadata, CleanPlan

__all__ = ["CleanResult", "FinishedClean", "ScheduledClean", "combined_result"]


@dataclass(frozen=True, slots=True)
class ScheduledClean:
    """A planned clean.

    Attributes:
        instant: its requested time; empty for a plan that is not on the timeline.
        plan: the files that it deletes.
        sizes: bytes of its existing files, by absolute path.
    """

    instant: str
    plan: CleanPlan
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def files(self) -> int:
        """Number of files that it deletes."""
        return sum(map(len, self.plan.files.values()))

    @property
    def bytes(self) -> int:
        """Their total size."""
        return sum(self.sizes.values())

    def to_arrow(self) -> pa.Table:
        """One row for each file: ``partition``, ``file`` (name), ``bytes`` (null for a missing file)."""
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
    """One completed clean.

    Attributes:
        instant: its requested time.
        metadata: its clean metadata.
        bytes_deleted: size of the files that it deleted.
    """

    instant: str
    metadata: CleanMetadata
    bytes_deleted: int = 0


@dataclass(frozen=True, slots=True)
class CleanResult(ShownResult):
    """The result of a call that cleaned.

    Attributes:
        instant: requested time of the newest completed clean; empty when there was nothing to do.
        files_deleted: number of deleted files.
        files_failed: files that could not be deleted; the next clean tries again.
        bytes_deleted: size of the deleted files.
        partitions_deleted: paths of partitions that were deleted as a whole.
        earliest_retained: the newest clean's earliest retained commit: earlier states of the table can no longer be
            read; empty for a policy without one.
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
        seconds: duration of the call.
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
