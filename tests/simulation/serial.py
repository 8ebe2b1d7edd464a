"""Is there a serial order that explains what was told?

An order of operations, one after the other, explains a history if what was acknowledged is in it, what was refused is
not, what ended before something else began comes first, and each reader sees the rows of its moment. Operations whose
outcome nobody knows may be in it or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LATER", "Step", "explained", "explained_around_loss"]

LATER = "later"
"""The process that looks at the table after a history."""


@dataclass(eq=False)
class Step:
    """An operation and what came of it.

    Attributes:
        process: who did it.
        op: what.
        begin: when it began.
        end: when it ended; None if its process died.
        outcome: ``done``, ``refused`` or ``unknown``.
        rows: what a reader saw.
        error: what was said.
    """

    process: str
    op: Any
    begin: int
    end: int | None = None
    outcome: str = "unknown"
    rows: Mapping[str, int] | None = None
    error: str = ""


def explained(rows: Mapping[str, int], steps: Sequence[Step]) -> list[str]:
    """What is wrong; nothing if there is such an order."""
    certain = [one for one in steps if one.outcome != "refused"]
    told = [one for one in certain if (one.rows is not None if one.op.verb == "read" else one.op.changes_rows)]
    seen: set[tuple[frozenset[int], tuple[tuple[str, int], ...]]] = set()

    def fits(left: frozenset[int], state: Mapping[str, int]) -> bool:
        if all(told[n].outcome == "unknown" for n in left):
            return True
        key = left, tuple(sorted(state.items()))
        if key in seen:
            return False
        seen.add(key)
        for n in left:
            one = told[n]
            if any(_is_before(told[other], one) for other in left if other != n):
                continue
            if one.rows is not None:
                if dict(one.rows) == dict(state) and fits(left - {n}, state):
                    return True
            elif fits(left - {n}, one.op.applied(state)):
                return True
        return False

    if fits(frozenset(range(len(told))), rows):
        return []
    return ["NO SERIAL ORDER explains what was acknowledged and read"]


def explained_around_loss(rows: Mapping[str, int], steps: Sequence[Step]) -> list[str]:
    """The same for a history that ended in a loss of power.

    A write is visible from its completed file on, and acknowledged once that file's folder is on the disk. Readers in
    between may have seen rows that the loss took away.
    """
    if not explained(rows, steps):
        return []
    before = [one for one in steps if one.process != LATER]
    after = [one for one in steps if one.process == LATER or one.op.verb != "read"]
    return explained(rows, before) or explained(rows, after)


def _is_before(one: Step, other: Step) -> bool:
    """Whether an operation must come first: it ended before the other began, and it was certain."""
    return one.outcome == "done" and one.end is not None and one.end < other.begin
