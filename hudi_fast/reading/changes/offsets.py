"""How far a stream of a table's commits goes with its next batch."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.view.table_state import TableState

__all__ = ["BatchLimits", "next_offset"]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a batch may take; at least one commit in any case.

    Attributes:
        max_commits: commits; None for all.
        max_bytes: bytes that they wrote; None for all.
    """

    max_commits: int | None = None
    max_bytes: int | None = None


def next_offset(state: TableState, start: str, limits: BatchLimits) -> str:
    """Where the batch after ``start`` ends; ``start`` when there is nothing new."""
    raise NotImplementedError
