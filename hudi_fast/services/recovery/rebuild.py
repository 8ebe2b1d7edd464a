"""Partitions of the metadata table that could not be taken back, built anew once what they told of is undone.

::

    names that went ─► those that are still missing ─► built of the table as it is now, with the definitions they had
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError, HudiWarning
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.build import build_partitions
from hudi_fast.metadata_table.updates.rollback import open_for_recovery
from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import metadata_without_pending, producer_context

__all__ = ["finish_pending_rollbacks", "rebuild_partitions"]

_FIRST_WITH_LAYOUT_2 = 8


def finish_pending_rollbacks(storage: Storage, config: TableConfig, clock: InstantClock) -> None:
    """Leave nothing pending in the metadata table that an attempt which died began; under the table's lock.

    Args:
        storage: the table's storage.
        config: its configuration.
        clock: gives times.
    """
    opened = open_for_recovery(storage) if config.metadata_partitions else None
    if opened is not None and opened[2].pending():
        metadata_without_pending(open_state(storage), clock)


def rebuild_partitions(
    storage: Storage, names: Iterable[str], settings: ServiceSettings, clock: InstantClock, runner: Runner
) -> tuple[str, ...]:
    """Build partitions of the metadata table that had to go; under the table's lock.

    Before table version 8 nothing is built while anything is pending, as Apache Hudi has it.

    Args:
        storage: the table's storage.
        names: partitions that there were.
        settings: of the metadata table; nothing is built without ``hoodie.metadata.enable``.
        clock: gives times.
        runner: reads the sources and has their records written.

    Returns:
        The partitions that were built.

    Warns:
        HudiWarning: they could not be built; the table is read and written without them.
    """
    wanted = set(names)
    if not wanted or not settings.write.metadata.enabled:
        return ()
    try:
        state = open_state(storage)
        table = metadata_of(state)
        missing = wanted - set(() if table is None else (*table.partitions, *table.building))
        if state.config.version < _FIRST_WITH_LAYOUT_2 and state.timeline.pending():
            missing = set()
        if missing:
            _build(state, sorted(missing), settings, clock, runner)
        return tuple(sorted(missing))
    except (HudiError, OSError) as error:
        warnings.warn(
            f"The indexes {', '.join(sorted(wanted))} of {storage.uri} told of what was undone and are gone; they "
            f"could not be built anew: {error} Build them with services.index.",
            HudiWarning,
            stacklevel=2,
        )
        return ()


def _build(
    state: TableState, missing: list[str], settings: ServiceSettings, clock: InstantClock, runner: Runner
) -> None:
    options = settings.write.metadata
    context = producer_context(state, service_plan(state, settings), options, metadata_of(state), missing)
    stats = context.definitions.get(PartitionKind.COLUMN_STATS)
    stored = load_definitions(state.storage, state.config).get(PartitionKind.COLUMN_STATS)
    if stats is not None and stored is not None:
        context = replace(context, indexed_columns=tuple(stored.source_fields))
        context = replace(context, definitions={**context.definitions, PartitionKind.COLUMN_STATS.value: stored})
    last = max((one.requested for one in state.timeline.completed()), default=None)
    build_partitions(context, missing, options, last, clock, runner)
