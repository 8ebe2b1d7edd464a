"""Services after a write: what its options ask for, once it is committed.

The write is visible by then and stays, whatever becomes of the services. They run outside the write's lock, each taking
it as it needs. Source: ``BaseHoodieTableServiceClient.runTableServicesInline`` (1.2.0).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError, HudiWarning
from hudi_fast.services.carriers import Carriers
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

__all__ = ["check_inline", "inline_by_default", "serve"]

_WHO_COMPACTS = (
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.compaction.async.enable",
)


def check_inline(settings: ServiceSettings) -> None:
    """Refuse a compaction after the write that could not be planned, before anything is written.

    Raises:
        ConfigError: an option of the strategy is wrong.
        UnsupportedFeatureError: an unknown strategy.
    """
    options = settings.compaction
    if options.inline or options.schedule_inline or settings.write.table_type == "MERGE_ON_READ":
        strategies_of(options)


def inline_by_default(settings: ServiceSettings) -> ServiceSettings:
    """As Apache Hudi's data source has it: compact after a write unless the options say who does."""
    options = settings.compaction
    if not options.explicit.isdisjoint(_WHO_COMPACTS):
        return settings
    return replace(settings, compaction=replace(options, inline=True))


def serve(storage: Storage, settings: ServiceSettings, instant: str, carriers: Carriers) -> None:
    """Run the services that the options of a write ask for and that are due.

    Args:
        storage: the table's storage.
        settings: the options of the write.
        instant: the write; empty when nothing was committed.
        carriers: who does the work.

    Raises:
        HudiError: a service failed, and the options do not say to go on; the write itself is committed.
    """
    options = settings.compaction
    wanted = options.inline or options.schedule_inline or options.log_inline
    if not instant or not options.services_enabled or not wanted:
        return
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    if not config.is_mor:
        return
    try:
        timeline = load_timeline(storage, config)
        if options.inline or options.schedule_inline:
            _compact(storage, config, timeline, settings, carriers)
        if options.log_inline:
            _compact_logs(storage, config, timeline, settings, carriers)
    except HudiError as error:
        note = f"The write {instant} of {storage.uri} is committed; what failed is a service after it."
        if options.fail_writes and not options.ignore_failures:
            error.add_note(note)
            raise
        warnings.warn(f"{note} {error}", HudiWarning, stacklevel=3)


def _compact(
    storage: Storage, config: TableConfig, timeline: Timeline, settings: ServiceSettings, carriers: Carriers
) -> None:
    """What waits goes first; whether there is anything to do is looked up without the lock."""
    options, waiting = settings.compaction, bool(timeline.pending_compactions)
    if not options.inline and waiting:
        return
    if waiting:
        run_pending_compactions(storage, settings, carriers.compact)
    now = instant_from_ms(time.time_ns() // 1_000_000, config.timezone)
    if not waiting and not compaction_is_due(config, timeline, now, options):
        return
    planned = schedule_compaction(storage, settings, if_due=True)
    if planned is not None and options.inline:
        run_compaction(storage, planned, settings, carriers.compact)


def _compact_logs(
    storage: Storage, config: TableConfig, timeline: Timeline, settings: ServiceSettings, carriers: Carriers
) -> None:
    if timeline.pending_log_compactions:
        run_pending_log_compactions(storage, settings, carriers.compact)
    if log_compaction_is_due(storage, config, timeline, settings.compaction.log_blocks_threshold):
        planned = schedule_log_compaction(storage, settings, if_due=True)
        if planned is not None:
            run_log_compaction(storage, planned, settings, carriers.compact)
