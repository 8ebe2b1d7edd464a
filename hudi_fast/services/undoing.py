"""Plans, results and steps that rollback, savepoints and restore share.

Plans and results are values. A plan is compared with the table before it is executed.

Refuses to make file slices from before a downgrade to version 6 the newest ones again.

From table version 8 on a log file is named after the delta commit that wrote it, before that after its slice. A
downgrade compacts the newest slices and does not change older ones. Nothing reads older slices, unless a rollback or
restore undoes the compaction or the action that ended their file groups. Readers of version 6 would then take such a
log file for a slice of its own, and lose the rows of the base file below it.

Builds partitions of the metadata table again that a rollback or restore had to drop.

::

    dropped names ─► those still missing ─► built from the table as it is now, with their former definitions

Removing pending services from the timeline, or setting them back to requested.

::

    compaction       inflight: its base files are deleted and it is requested again, because writers may have logged to
                     the slices that begin at it; requested: its plan is removed
    log compaction, clustering       their files are deleted, and their plans removed
    indexing         its partitions of the metadata table are dropped, and its plan removed
    clean            requested: its plan is removed; inflight: it can only be finished, because it has deleted files

Each step holds the lock that running the service takes, so no process of this machine runs it. Heartbeats show whether
another machine does.

Source: ``BaseHoodieTableServiceClient#rollback``, ``HoodieTable#rollbackInflightCompaction``, ``CompactionAdminClient``
(Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from hudi_fast.errors import ConfigError, HudiError
from hudi_fast.events import warn
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.metadata_table.layout import PartitionKind, load_definitions
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.updates.build import build_partitions
from hudi_fast.metadata_table.updates.rollback import open_for_recovery
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.index_build import undo_indexing
from hudi_fast.services.index_plan import INDEX_LOCK_PATH, ScheduledIndex, read_index_plan
from hudi_fast.services.running import file_plan, require_abandoned
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.metadata_commit import metadata_without_pending, producer_context
from hudi_fast.writing.session import TableSession

__all__ = [
    "ALL_SERVICES",
    "PlannedRestore",
    "PlannedRollback",
    "RestoreResult",
    "RollbackResult",
    "SavepointResult",
    "TouchedFile",
    "finish_pending_rollbacks",
    "held_locks",
    "rebuild_partitions",
    "require_named_by_slice",
    "service_of",
    "withdraw_plan",
]

_FILES = pa.schema(
    [
        pa.field("instant", pa.string()),
        pa.field("action", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("file", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("what", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that a rollback deletes, or answers with a rollback block.

    Attributes:
        instant: requested time of the rolled-back instant.
        action: its action.
        partition: partition path.
        file: name without folder.
        bytes: size; 0 for a missing file.
        what: ``delete``, or ``answer``: the log file stays, and a rollback block in a new one invalidates its rows.
    """

    instant: str
    action: str
    partition: str
    file: str
    bytes: int
    what: str


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """The steps of a rollback.

    Attributes:
        instants: requested times of the instants that are removed or become requested again, in that order.
        files: the files that it touches.
        rebuilt: partitions of the metadata table that cannot be rolled back, and are built again.
        asked: the requested instant; None for all failed writes.
    """

    instants: tuple[str, ...]
    files: tuple[TouchedFile, ...] = ()
    rebuilt: tuple[str, ...] = ()
    asked: str | None = None

    def to_arrow(self) -> pa.Table:
        """One row per file: ``instant, action, partition, file, bytes, what``."""
        return _files_table(self.files)


@dataclass(frozen=True, slots=True)
class RollbackResult(ShownResult):
    """The result of a rollback.

    Attributes:
        instant: requested time of the rollback, of the last one if there were several; empty when there was nothing to
            roll back, or only a plan to remove from the timeline.
        rolled_back: requested times of the rolled-back instants, in that order.
        files_deleted: number of deleted data files.
        files_failed: number of data files that did not exist.
        log_files_answered: log files that stay, and whose rows a rollback block invalidates (before table version 8).
        seconds: from call to return.
    """

    instant: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    files_failed: int = 0
    log_files_answered: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SavepointResult(ShownResult):
    """The result of making a savepoint.

    Attributes:
        instant: requested time of the commit that it keeps.
        files: number of base and log files that it keeps.
        bytes: their size.
        seconds: from call to return.
    """

    instant: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedRestore:
    """The steps of a restore.

    Attributes:
        savepoint: requested time of the commit that becomes the newest.
        instants: requested time and action of each instant that is rolled back, in that order.
        files: the files that it touches.
        rebuilt: partitions of the metadata table that cannot be rolled back, and are built again.
        resumes: requested time of the abandoned restore that is continued; empty for none.
    """

    savepoint: str
    instants: tuple[tuple[str, str], ...] = ()
    files: tuple[TouchedFile, ...] = ()
    rebuilt: tuple[str, ...] = ()
    resumes: str = ""

    def to_arrow(self) -> pa.Table:
        """One row per file: ``instant, action, partition, file, bytes, what``."""
        return _files_table(self.files)


@dataclass(frozen=True, slots=True)
class RestoreResult(ShownResult):
    """The result of a restore.

    Attributes:
        instant: requested time of the restore.
        savepoint: requested time of the commit that is the newest now.
        rolled_back: requested times of the removed instants, in that order.
        files_deleted: number of deleted data files.
        seconds: from call to return.
    """

    instant: str
    savepoint: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    seconds: float = 0.0


def _files_table(files: tuple[TouchedFile, ...]) -> pa.Table:
    columns = [[getattr(one, name) for one in files] for name in _FILES.names]
    return pa.Table.from_arrays([pa.array(values, _FILES.types[at]) for at, values in enumerate(columns)], _FILES.names)


def require_named_by_slice(state: TableState, undone: Iterable[Instant], what: str) -> None:
    """Refuse to undo instants if older slices whose log files have names of a later table version would be read again.

    Args:
        state: the table.
        undone: the instants to undo.
        what: beginning of the message.

    Raises:
        ConfigError: such slices exist.
    """
    if state.config.version >= LOGS_NAMED_BY_WRITE or not state.config.is_mor:
        return
    by_partition: dict[str, set[str]] = {}
    for instant in undone:
        if instant.is_completed:
            for partition, file_id in _uncovered(state, instant):
                by_partition.setdefault(partition, set()).add(file_id)
    for partition, file_ids in by_partition.items():
        for path in _named_by_write(state, partition, file_ids):
            raise ConfigError(
                f"{what}: the table was downgraded to version {state.config.version} since, which cannot read older "
                f"log files such as {path}. Upgrade the table to version {LOGS_NAMED_BY_WRITE} or later first."
            )


def _uncovered(state: TableState, instant: Instant) -> Iterator[tuple[str, str]]:
    """Partition and file id of the groups that have an older slice, or that an action ended."""
    commit = read_commit(state.storage, state.config, instant)
    if commit.operation_type == "COMPACT":
        yield from ((stat.partition_path, stat.file_id) for stat in commit.write_stats())
    for partition, file_ids in (commit.partition_to_replace_file_ids or {}).items():
        yield from ((partition, file_id) for file_id in file_ids)


def _named_by_write(state: TableState, partition: str, file_ids: set[str]) -> Iterator[str]:
    """Log files above a base file that are not named after a slice."""
    entries = StorageLister(state.storage).files(partition)
    begins: dict[str, set[str]] = {}
    for base in map(parse_base_file, entries):
        if base is not None and base.file_id in file_ids:
            begins.setdefault(base.file_id, set()).add(base.instant)
    planned = {one.requested for one in state.timeline.pending_compactions}
    for log in map(parse_log_file, entries):
        slices = set() if log is None else begins.get(log.file_id, set())
        if log is not None and slices and log.instant > min(slices) and log.instant not in slices | planned:
            yield log.path


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


ALL_SERVICES = ("compaction", "logcompaction", "clustering", "clean", "indexing")
"""Services that must not run during a restore."""

_LOCKS = {
    "compaction": service_lock_path("compaction"),
    "logcompaction": service_lock_path("logcompaction"),
    "clustering": service_lock_path("clustering"),
    "clean": service_lock_path("clean"),
    "indexing": INDEX_LOCK_PATH,
}


def service_of(state: TableState, target: Instant) -> str | None:
    """The service of a pending instant; None for a write or a completed instant."""
    if target.is_completed:
        return None
    if any(one.requested == target.requested for one in state.pending_services):
        return "clustering"  # in layout 1 a replace commit with a plan
    return target.action if target.action in ALL_SERVICES else None


@contextlib.contextmanager
def held_locks(session: TableSession, services: tuple[str, ...]) -> Iterator[TableState]:
    """Hold the locks of some services, then the table's; yields the table.

    Raises:
        LockTimeoutError: another process runs one of them.
    """
    with contextlib.ExitStack() as stack:
        for service in sorted({*services} & _LOCKS.keys()):
            seconds = session.service_lock_seconds
            stack.enter_context(machine_lock(session.storage, seconds, _LOCKS[service]))
        yield stack.enter_context(session.locked())


def withdraw_plan(session: TableSession, target: Instant, service: str) -> bool:
    """Remove a service from the timeline if it has written no files; under its lock and the table's.

    Args:
        session: the call.
        target: pending.
        service: name of the service.

    Returns:
        False when it has files to delete as well.

    Raises:
        CommitConflictError: another process runs it.
        ConfigError: it must be finished.
    """
    state = session.state
    storage, config = state.storage, state.config
    require_abandoned(session, target)
    if service == "indexing":
        parts = read_index_plan(state, target)
        undo_indexing(storage, ScheduledIndex(target.requested, parts))
        session.changed()
        return True
    if target.state is State.INFLIGHT and service == "clean":
        raise ConfigError(
            f"The clean {target.requested} of {storage.uri} has begun to delete files; it can be finished, not rolled "
            "back. Finish it with services.clean(pending_only=True)."
        )
    if target.state is State.INFLIGHT:
        return False
    if service == "compaction" and config.layout_version < 2:
        _require_nothing_on_top(state, target)
    delete_instant_files(storage, config, target)
    session.changed()
    return True


def _require_nothing_on_top(state: TableState, compaction: Instant) -> None:
    """Before table version 8 log files are named after the slice that begins at the compaction: it must be executed."""
    planned = read_compaction_plan(state.storage, state.config, compaction).operations
    for partition in sorted({one.partition_path for one in planned}):
        for log in map(parse_log_file, state.storage.list_dir(partition)):
            if log is not None and log.instant == compaction.requested:
                raise ConfigError(
                    f"The compaction {compaction.requested} of {state.storage.uri} cannot be removed from the "
                    f"timeline: writers have logged to slices that begin at it ({log.path}). Execute it with "
                    "services.compact(pending_only=True)."
                )
