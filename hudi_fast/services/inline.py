"""Services beside a write: what its options ask for, before it begins and once it is committed.

::

    before   hoodie.prewrite.cleaner.policy: clean, or roll failed writes back
    write
    after    clean ─► archive ─► compaction ─► log compaction ─► clustering

The write is visible by then and stays, whatever becomes of the services. They run outside the write's lock, each taking
it as it needs. What is due is decided from one listing of the timeline; it is listed again only once a service has
changed it. Cleaning and archiving "beside the write" (``hoodie.clean.async.enabled``, ``hoodie.archive.async``) run
after it like the others: Apache Hudi waits for them after the commit, too.

A service that somebody else is carrying out is theirs: it is passed over without a word.

Sources: ``BaseHoodieWriteClient.commitStats``, ``#mayBeCleanAndArchive``, ``#preWrite``,
``BaseHoodieTableServiceClient.runTableServicesInline`` (1.2.0).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError, HudiWarning, LockTimeoutError, ServiceTakenError
from hudi_fast.locking.machine import is_held, service_lock_path
from hudi_fast.services.archiving.run import archive_after_write
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.cleaning.run import clean_after_write, clean_before_write, clean_has_work
from hudi_fast.services.clustering.run import cluster_after_write
from hudi_fast.services.clustering.strategies import plan_strategy_of
from hudi_fast.services.compaction.log_run import (
    run_log_compaction,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.compaction.plan import schedule_compaction
from hudi_fast.services.compaction.run import run_compaction, run_pending_compactions
from hudi_fast.services.compaction.strategies import strategies_of
from hudi_fast.services.compaction.triggers import compaction_is_due, log_compaction_is_due
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.instant import instant_from_ms

__all__ = ["check_inline", "inline_by_default", "serve", "serve_before"]

_WHO_COMPACTS = (
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.compaction.async.enable",
)


@dataclass(frozen=True, slots=True)
class _Table:
    """The table after the write, and what it is to be served with."""

    storage: Storage
    settings: ServiceSettings
    carriers: Carriers
    config: TableConfig
    timeline: Timeline


def check_inline(settings: ServiceSettings) -> None:
    """Refuse services after the write that could not be planned, before anything is written.

    Raises:
        ConfigError: an option of the strategy is wrong.
        UnsupportedFeatureError: an unknown strategy.
    """
    options = settings.compaction
    if options.inline or options.schedule_inline or settings.write.table_type == "MERGE_ON_READ":
        strategies_of(options)
    if settings.clustering.inline or settings.clustering.schedule_inline:
        plan_strategy_of(settings.clustering)


def inline_by_default(settings: ServiceSettings) -> ServiceSettings:
    """As Apache Hudi's data source has it: compact after a write unless the options say who does."""
    options = settings.compaction
    if not options.explicit.isdisjoint(_WHO_COMPACTS):
        return settings
    return replace(settings, compaction=replace(options, inline=True))


def serve_before(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> None:
    """Run what the options of a write ask for before it begins.

    Args:
        storage: the table's storage; there need not be a table.
        settings: the options of the write.
        carriers: who does the work.

    Raises:
        HudiError: it failed; the write must not begin.
    """
    if settings.services.enabled and settings.clean.before_write != "NONE":
        clean_before_write(storage, replace(settings, waits=False), carriers)


def serve(storage: Storage, settings: ServiceSettings, instant: str, carriers: Carriers) -> None:
    """Run the services that the options of a write ask for and that are due.

    Args:
        storage: the table's storage.
        settings: the options of the write.
        instant: the write; empty when nothing was committed.
        carriers: who does the work.

    Raises:
        HudiError: a service failed, and the options do not say to go on; the write itself is committed.
        OSError: likewise, because of storage.
    """
    steps = [run for run, wanted in _STEPS if wanted(settings)]
    if not instant or not settings.services.enabled or not steps:
        return
    settings, table = replace(settings, waits=False), None
    for step in steps:
        try:
            table = table or _look(storage, settings, carriers)
            if step(table):
                table = None
        except (LockTimeoutError, ServiceTakenError):  # somebody else is at it
            table = None
        except (HudiError, OSError) as error:
            table = None
            note = f"The write {instant} of {storage.uri} is committed; what failed is a service after it."
            if settings.services.failures_raise:
                error.add_note(note)
                raise
            warnings.warn(f"{note} {error}", HudiWarning, stacklevel=3)


def _look(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> _Table:
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return _Table(storage, settings, carriers, config, load_timeline(storage, config))


# ---- the steps: each says whether it may have changed the timeline


def _clean(table: _Table) -> bool:
    if not clean_has_work(table.config, table.timeline, table.settings):
        return False
    clean_after_write(table.storage, table.settings, table.carriers)
    return True


def _archive(table: _Table) -> bool:
    if len(table.timeline.instants) <= table.settings.archive.max_commits:
        return False
    return archive_after_write(table.storage, table.settings) is not None


def _compact(table: _Table) -> bool:
    """What waits goes first; whether there is anything to do is looked up without the lock."""
    storage, settings, options = table.storage, table.settings, table.settings.compaction
    waiting = bool(table.timeline.pending_compactions)
    if not table.config.is_mor or (waiting and not options.inline):
        return False
    if waiting:
        run_pending_compactions(storage, settings, table.carriers.compact)
    now = instant_from_ms(time.time_ns() // 1_000_000, table.config.timezone)
    if not waiting and not compaction_is_due(table.config, table.timeline, now, options):
        return False
    if options.inline and _is_running(table, "compaction"):
        return waiting
    planned = schedule_compaction(storage, settings, if_due=True)
    if planned is not None and options.inline:
        run_compaction(storage, planned, settings, table.carriers.compact)
    return waiting or planned is not None


def _compact_logs(table: _Table) -> bool:
    storage, settings = table.storage, table.settings
    if not table.config.is_mor:
        return False
    waiting = bool(table.timeline.pending_log_compactions)
    if waiting:
        run_pending_log_compactions(storage, settings, table.carriers.compact)
    if not log_compaction_is_due(storage, table.config, table.timeline, settings.compaction.log_blocks_threshold):
        return waiting
    planned = schedule_log_compaction(storage, settings, if_due=True)
    if planned is not None:
        run_log_compaction(storage, planned, settings, table.carriers.compact)
    return waiting or planned is not None


def _cluster(table: _Table) -> bool:
    if table.settings.clustering.inline and _is_running(table, "clustering"):
        return False
    return bool(cluster_after_write(table.storage, table.settings, table.carriers))


def _is_running(table: _Table, service: str) -> bool:
    """Whether somebody else is at it: a plan that is left to wait would be in the way of writers."""
    return is_held(table.storage, service_lock_path(service))


_STEPS: tuple[tuple[Callable[[_Table], bool], Callable[[ServiceSettings], bool]], ...] = (
    (_clean, lambda settings: settings.clean.automatic),
    (_archive, lambda settings: settings.archive.automatic),
    (_compact, lambda settings: settings.compaction.inline or settings.compaction.schedule_inline),
    (_compact_logs, lambda settings: settings.compaction.log_inline),
    (_cluster, lambda settings: settings.clustering.inline or settings.clustering.schedule_inline),
)
"""Each with whether the options of a write ask for it, in the order in which they run."""
