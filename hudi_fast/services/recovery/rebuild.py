"""Builds partitions of the metadata table again that a rollback or restore had to drop.

::

    dropped names ─► those still missing ─► built from the table as it is now, with their former definitions
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_fast.errors import HudiError
from hudi_fast.events import warn
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.updates.build import build_partitions
from hudi_fast.metadata_table.updates.rollback import open_for_recovery
from hudi_fast.services.running import file_plan
from hudi_fast.writing.metadata_commit import metadata_without_pending, producer_context
from hudi_fast.writing.session import TableSession

__all__ = ["finish_pending_rollbacks", "rebuild_partitions"]

_FIRST_WITH_LAYOUT_2 = 8


def finish_pending_rollbacks(session: TableSession) -> None:
    """Finish rollbacks that an abandoned attempt left pending in the metadata table; under the table's lock."""
    opened = open_for_recovery(session.storage) if session.state.config.metadata_partitions else None
    if opened is not None and opened[2].pending():
        session.reload()
        metadata_without_pending(session)
        session.changed()


def rebuild_partitions(session: TableSession, names: Iterable[str]) -> tuple[str, ...]:
    """Build partitions of the metadata table that had to be dropped; under the table's lock.

    Before table version 8 nothing is built while anything is pending, as in Apache Hudi.

    Args:
        session: the call; nothing is built without ``hoodie.metadata.enable``.
        names: partitions that existed before.

    Returns:
        The partitions that were built.

    Warns:
        HudiWarning: they could not be built; the table is read and written without them.
    """
    wanted = set(names)
    if not wanted or not session.settings.write.metadata.enabled:
        return ()
    try:
        state = session.reload()
        table = metadata_of(state)
        missing = wanted - set(() if table is None else (*table.partitions, *table.building))
        if state.config.version < _FIRST_WITH_LAYOUT_2 and state.timeline.pending():
            missing = set()
        if missing:
            _build(session, sorted(missing))
        return tuple(sorted(missing))
    except (HudiError, OSError) as error:
        warn(
            f"The indexes {', '.join(sorted(wanted))} of {session.storage.uri} held records of the rolled-back "
            f"instants and were dropped; they could not be built again: {error} Build them with services.index."
        )
        return ()
    finally:
        session.changed()


def _build(session: TableSession, missing: list[str]) -> None:
    state, options = session.state, session.settings.write.metadata
    context = producer_context(state, file_plan(session), options, metadata_of(state), missing)
    stats = context.definitions.get(PartitionKind.COLUMN_STATS)
    stored = load_definitions(state.storage, state.config).get(PartitionKind.COLUMN_STATS)
    if stats is not None and stored is not None:
        context = replace(context, indexed_columns=tuple(stored.source_fields))
        context = replace(context, definitions={**context.definitions, PartitionKind.COLUMN_STATS.value: stored})
    last = max((one.requested for one in state.timeline.completed()), default=None)
    build_partitions(context, missing, options, last, session.clock, session.backend.write_records)
