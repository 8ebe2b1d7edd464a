"""What changing the table version will do, decided before anything is done."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["UpgradePlan", "UpgradeResult"]


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """What a change of the table version will do.

    Attributes:
        before: the table version now.
        after: the version asked for: 6, 8 or 9.
        steps: what will happen, in order, in words; empty when the table has that version already.
    """

    before: int
    after: int
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """What a change of the table version did.

    Attributes:
        before: the table version before.
        after: the version now.
        steps: what was done, in order, in words; empty when the table had that version already.
        seconds: how long it took.
    """

    before: int
    after: int
    steps: tuple[str, ...]
    seconds: float
