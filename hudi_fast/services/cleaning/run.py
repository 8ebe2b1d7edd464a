"""Carrying a planned clean out."""

from __future__ import annotations

from hudi_fast.services.carriers import Carriers
from hudi_fast.services.cleaning.work import CleanResult, FinishedClean, ScheduledClean
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage

__all__ = ["clean_after_write", "clean_before_write", "run_clean", "run_pending_cleans"]


def run_clean(
    storage: Storage, scheduled: ScheduledClean, settings: ServiceSettings, carriers: Carriers
) -> FinishedClean:
    """Carry out a clean that stands on the timeline."""
    raise NotImplementedError


def run_pending_cleans(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> list[FinishedClean]:
    """Carry out the cleans that wait on the timeline, oldest first."""
    raise NotImplementedError


def clean_after_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> CleanResult | None:
    """Clean once a write is visible, if that is wanted and due; None when it is not."""
    raise NotImplementedError


def clean_before_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> CleanResult | None:
    """What ``hoodie.prewrite.cleaner.policy`` asks for before a write; None for nothing."""
    raise NotImplementedError
