"""Shared parts of the services of a table: a session for each call, and checks of plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.errors import ConfigError
from hudi_fast.merging.rules import Merger
from hudi_fast.services.cleaning.clean_result import ScheduledClean
from hudi_fast.services.clustering.cluster_plan import ScheduledClustering
from hudi_fast.services.compaction.compact_plan import ScheduledCompaction
from hudi_fast.services.indexing.index_plan import ScheduledIndex
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Options", "ServiceCalls", "check_plan", "checked_instant"]

Options = Mapping[str, Any]
"""Apache Hudi's own ``hoodie.*`` keys, in old or new spelling."""


_ON_TIMELINE = (ScheduledClean, ScheduledClustering, ScheduledCompaction, ScheduledIndex)


def check_plan(plan: object, kind: type) -> None:
    """Check that a plan, if the caller passes one, belongs to this service and can be executed.

    Args:
        plan: None, or a plan.
        kind: its expected type.

    Raises:
        TypeError: it has another type.
        ConfigError: it is only a preview, which is not on the timeline.
    """
    if plan is not None and not isinstance(plan, kind):
        raise TypeError(f"plan must be a {kind.__name__}, not a {type(plan).__name__}: pass a plan of this service.")
    if isinstance(plan, _ON_TIMELINE) and not plan.instant:
        raise ConfigError(
            "This plan is not on the timeline: plan_compact(), plan_cluster(), ... only look. Pass a plan of "
            "schedule_compact(), schedule_cluster(), ..., or no plan."
        )


def checked_instant(instant: str | None) -> str | None:
    """The requested time of an instant, as a caller gives it.

    Raises:
        ConfigError: it is not a text.
    """
    if instant is not None and not isinstance(instant, str):
        raise ConfigError(
            f"An instant is the text that history() shows, such as '20240131120000000'; got {instant!r}, of the type "
            f"{type(instant).__name__}."
        )
    return instant


class ServiceCalls:
    """The services of one table. Each call opens the table again; all verbs report failures of storage in the same way.

    Args:
        storage: the table's storage.
        merger: merges rows of a table with the merge mode CUSTOM; else None.
    """

    def __init__(self, storage: Storage, merger: Merger | None = None) -> None:
        self._storage = storage
        self._merger = merger

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tells_failures(cls)

    def _session(self, options: Options | None = None, spark: Any = None) -> TableSession:
        """The session of a call: on Spark if a Spark session is given, else in this process."""
        settings = Settings.from_options(options, self._merger)
        settings.check_storage(self._storage)
        return open_session(self._storage, settings, spark, small_on_driver=False)
