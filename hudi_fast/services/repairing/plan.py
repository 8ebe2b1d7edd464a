"""What does not belong in a table: looked for, named, left alone."""

from __future__ import annotations

from hudi_fast.services.repairing.findings import RepairPlan
from hudi_fast.storage.base import Storage

__all__ = ["plan_repair"]


def plan_repair(storage: Storage) -> RepairPlan:
    """Look at everything below the table's folder; nothing is written."""
    raise NotImplementedError
