"""Findings of a repair: one value per problem, and the results.

Planning makes :class:`Finding` values without changing anything. Executing a plan removes ``repairable`` findings; the
others stay, with advice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

from hudi_fast.reading.inspecting.results import ShownResult

__all__ = ["FINDING_KINDS", "Finding", "RepairPlan", "RepairResult"]

FINDING_KINDS = (
    "lost content",
    "lost body",
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
    """One file, folder or instant that does not belong to the table.

    Attributes:
        kind: one of :data:`FINDING_KINDS`.
        instant: requested time of its instant; empty for none.
        path: file or folder, relative to the table.
        bytes: size of that file; 0 for folders.
        repairable: whether repairing removes it.
        advice: the reason, and what a repair does or the user should do.
    """

    kind: str
    instant: str
    path: str
    bytes: int
    repairable: bool
    advice: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The findings of an inspection.

    Attributes:
        findings: by kind, instant and path.
    """

    findings: tuple[Finding, ...] = ()

    @property
    def repairable(self) -> tuple[Finding, ...]:
        """The findings that repairing removes."""
        return tuple(one for one in self.findings if one.repairable)

    @property
    def bytes(self) -> int:
        """Size of the files that repairing removes."""
        return sum(one.bytes for one in self.repairable)

    def to_arrow(self) -> pa.Table:
        """One row per finding: kind, instant, path, bytes, repairable, advice."""
        return pa.Table.from_pylist([asdict(one) for one in self.findings], _SCHEMA)


@dataclass(frozen=True, slots=True)
class RepairResult(ShownResult):
    """The result of a repair.

    Attributes:
        instant: the newest instant that it put on the timeline (a rollback); empty for none.
        repaired: removed findings.
        left: remaining findings: not repairable, or files that could not be deleted.
        files_deleted: number of data files deleted as orphans or failed deletes.
        bytes_deleted: size of all deleted files, in bytes.
        rolled_back: requested times of failed writes that were rolled back.
        seconds: duration.
    """

    instant: str
    repaired: tuple[Finding, ...]
    left: tuple[Finding, ...]
    files_deleted: int
    bytes_deleted: int
    rolled_back: tuple[str, ...]
    seconds: float

    def to_arrow(self) -> pa.Table:
        """The remaining findings, with the columns of :meth:`RepairPlan.to_arrow`."""
        return RepairPlan(self.left).to_arrow()
