"""Compaction and cleaning of the metadata table, after a commit.

::

    by default      under the lock: compact ─► clean
    without lock    under it: request, begin ─► without it: base files ─► under it: check, complete ─► clean

Without the lock, other writers can commit while the base files are written. A heartbeat in the data table's folder
tells other writers that the compaction is running; a writer that finds a compaction without a heartbeat executes it. If
two writers execute it, both write the same content, and the first to complete it wins.

Apache Hudi 1.2.0 must not write to such a table, hence the option. It executes a pending compaction before its own
delta commit. If that is the first use of a metadata table in its JVM, the delta commit fails where it has column
statistics ("Index 9 out of bounds for length 7"). With a heartbeat in the metadata table's folder every write fails.

A failure is a warning: the commit is visible, and a later writer tries again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_fast.events import warn
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.maintain import (
    Compaction,
    begin_compaction,
    clean_metadata,
    compact_metadata,
    compaction_due,
    schedule_compaction,
)
from hudi_fast.timeline.heartbeat import is_alive, sending_heartbeats
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import compacts_without_lock
from hudi_fast.writing.session import TableSession

__all__ = ["maintain_metadata"]


def maintain_metadata(session: TableSession, before: TableState) -> None:
    """Compact and clean the metadata table if that is due, after a commit; under the table's lock.

    With ``hudi_fast.metadata.compact.without.lock`` the compaction runs after the lock is released.

    Args:
        session: the call.
        before: the table before the commit. Storage is read only if one more commit can make a compaction due, or if a
            compaction is pending.

    Warns:
        HudiWarning: it failed; the next write tries again.
    """
    options, known = session.settings.write.metadata, metadata_of(before)
    if known is None:
        return
    unlocked = compacts_without_lock(session, known)
    if not (unlocked and known.timeline.pending_compactions) and not compaction_due(known, options.compact_after - 1):
        return
    with _failing_softly(session):
        table = metadata_of(session.state)
        if table is None:
            return
        if unlocked:
            compaction = _begun(session, table)
            if compaction is not None:
                session.once_unlocked(lambda: _execute_unlocked(session, compaction))
        elif compaction_due(table, options.compact_after):
            compact_metadata(table, session.clock, session.backend.map_groups)
            session.changed()
            _clean(session)


def _begun(session: TableSession, table: MetadataTable) -> Compaction | None:
    """A compaction to execute: a new one if it is due, or an abandoned one; None for neither."""
    pending = table.timeline.pending_compactions
    if pending:
        instant = None if is_alive(table.data_storage, pending[0].requested, session.heartbeat_rule) else pending[0]
    elif compaction_due(table, session.settings.write.metadata.compact_after):
        instant = schedule_compaction(table, session.clock)
    else:
        instant = None
    if instant is None:
        return None
    session.changed()
    return begin_compaction(table, instant)


def _execute_unlocked(session: TableSession, compaction: Compaction) -> None:
    requested = compaction.instant.requested
    with _failing_softly(session), sending_heartbeats(session.storage, requested, session.heartbeat_rule):
        stats = compaction.execute(session.backend.map_groups)
        with session.locked() as state:
            table = metadata_of(state)
            if table is None or table.timeline.find(requested) is None:  # dropped, and perhaps built again
                compaction.table.storage.delete_files([stat.path for stat in stats])
            elif compaction.is_intact(table, stats):  # otherwise a later writer executes it, or has done so
                compaction.complete(stats, session.clock)
                session.changed()
                _clean(session)


def _clean(session: TableSession) -> None:
    table = metadata_of(session.state)
    if table is not None and clean_metadata(table, session.clock) is not None:
        session.changed()


@contextmanager
def _failing_softly(session: TableSession) -> Iterator[None]:
    """Turn a failure into a warning, because the commit is complete."""
    try:
        yield
    except Exception as error:
        session.changed()
        warn(
            f"The metadata table of {session.storage.uri} could not be compacted or cleaned: {error} The commit before "
            "it is complete; the next write tries again."
        )
