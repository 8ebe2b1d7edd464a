"""What is wrong with a table outside its rows: one value per thing, and what became of it.

Planning makes :class:`Finding` values without changing anything; carrying a plan out removes what is ``repairable``
and leaves the rest, each with advice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

__all__ = ["FINDING_KINDS", "Finding", "RepairPlan", "RepairResult"]

FINDING_KINDS = (
    "orphan file",
    "failed delete",
    "failed write",
    "dangling instant",
    "markers",
    "temporary file",
    "properties backup",
    "heartbeat",
    "other timeline",
    "lock",
    "metadata table",
)
"""All kinds of findings, in the order in which they are listed."""

_SCHEMA = pa.schema(
    {
        "kind": pa.string(),
        "instant": pa.string(),
        "path": pa.string(),
        "bytes": pa.int64(),
        "repairable": pa.bool_(),
        "advice": pa.string(),
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not belong.

    Attributes:
        kind: one of :data:`FINDING_KINDS`.
        instant: requested time of the instant that it comes from; empty where there is none.
        path: file or folder, relative to the table.
        bytes: size of that file; 0 for folders.
        repairable: whether repairing removes it.
        advice: why it is one, and what becomes of it or what a person should do.
    """

    kind: str
    instant: str
    path: str
    bytes: int
    repairable: bool
    advice: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What was found.

    Attributes:
        findings: by kind, instant and path.
    """

    findings: tuple[Finding, ...] = ()

    @property
    def repairable(self) -> tuple[Finding, ...]:
        """Those that repairing removes."""
        return tuple(one for one in self.findings if one.repairable)

    @property
    def bytes(self) -> int:
        """Size of the files that repairing removes."""
        return sum(one.bytes for one in self.repairable)

    def to_arrow(self) -> pa.Table:
        """One row per finding: kind, instant, path, bytes, repairable, advice."""
        return pa.Table.from_pylist([asdict(one) for one in self.findings], _SCHEMA)


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What repairing did.

    Attributes:
        instant: the newest instant that it put on the timeline (a rollback); empty when there was no need for one.
        repaired: findings that are gone.
        left: findings that are still there: those that cannot be repaired, and files that could not be deleted.
        files_deleted: how many data files were deleted as orphans or failed deletes.
        bytes_deleted: size of what was deleted, in bytes.
        rolled_back: requested times of failed writes that were rolled back.
        seconds: how long it took.
    """

    instant: str
    repaired: tuple[Finding, ...]
    left: tuple[Finding, ...]
    files_deleted: int
    bytes_deleted: int
    rolled_back: tuple[str, ...]
    seconds: float

    def to_arrow(self) -> pa.Table:
        """What is left, as :meth:`RepairPlan.to_arrow` shows it."""
        return RepairPlan(self.left).to_arrow()
