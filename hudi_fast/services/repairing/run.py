"""Removing what does not belong in a table."""

from __future__ import annotations

from hudi_fast.services.repairing.findings import RepairPlan, RepairResult
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage

__all__ = ["run_repair"]


def run_repair(storage: Storage, settings: ServiceSettings, plan: RepairPlan | None = None) -> RepairResult:
    """Carry a plan out, or what is found now."""
    raise NotImplementedError
