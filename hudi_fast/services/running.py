"""The steps of a table service that writes files while writers continue.

::

    put_plan         the table's lock: requested ─► was the lock held until then?        -> services may be executed
    begin_service    the table's lock: heartbeat ─► requested ─► inflight ─► marker folder      -> files may be made
    (the work)       no lock; a failure rolls the service back                  (rolled_back_on_failure)
    commit_service   the table's lock: reconcile markers ─► metadata table ─► completed         -> visible, atomically

Source: ``BaseHoodieTableServiceClient`` (Hudi 1.2.0).

Whether another process runs a pending service, by its heartbeat.

Files that pending rollbacks will delete. A plan that named them could never be executed.

::

    pending rollbacks          ─► the files that their plans delete
    before table version 8     ─► log files on top of a rolled back slice, while writes are pending: a write that
                                  is still pending made them, and its rollback will delete them

No rollback runs under the table's lock, but an abandoned one stays pending until its heartbeat expires. Apache Hudi
includes such files in plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from hudi_fast.errors import ServiceTakenError
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.heartbeat import Heartbeat, heartbeat_path, is_alive
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.values import cached_property, dataclass
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE
from hudi_fast.view.planned_files import relative_path
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.markers import make_marker_folder
from hudi_fast.writing.metadata_commit import columns_with_stats, ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.rollback_plan import pending_rollbacks, taken_back
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import Transaction, publish, recover, require_not_undone, undone_on_failure
from hudi_fast.writing.unseen_writes import confirm_plan
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "PendingDeletes",
    "begin_service",
    "bytes_read",
    "commit_service",
    "figures_of",
    "file_plan",
    "is_abandoned_indexing",
    "put_plan",
    "recover_with_metadata",
    "require_abandoned",
    "stats_by_partition",
]


def file_plan(session: TableSession, planned: str | None = None) -> FilePlan:
    """The file settings of a service; see :func:`hudi_fast.writing.draft.draft_files`.

    Args:
        session: the call.
        planned: requested time of the service, if it is on the timeline: the result then has that instant, the columns
            of that time, and the columns whose ranges are recorded.
    """
    settings, state = session.settings, session.state
    plan = draft_files(state, settings.write, settings.merger, planned)
    if planned is None:
        return plan
    measured = columns_with_stats(state, plan, settings.write.metadata)
    return replace(plan, files=replace(plan.files, stats_columns=measured), instant=planned)


def put_plan(
    session: TableSession, seen: TableState, plan: Instant, body: bytes, files: Iterable[tuple[str, str, Iterable[str]]]
) -> None:
    """Put the plan of a compaction or clustering on the timeline; under the table's lock.

    Args:
        session: the call.
        seen: the table that the plan was made from.
        plan: the requested instant.
        body: the content of its file.
        files: partition path, file id and names of the log files of each file slice of the plan.

    Raises:
        CommitConflictError: the lock was lost meanwhile, and a write changed file groups of the plan. It is removed.
        CommitStateUnknownError: the lock was lost and cannot be acquired again.
        LockError: the lock was lost before; nothing is on the timeline.
    """
    slices = list(files)
    _sync_logs(seen, ((partition, name) for partition, _, names in slices for name in names))
    session.require_lock()  # planning may outlast the lock
    create_requested(session.storage, seen.config, plan, body)
    session.changed()
    confirm_plan(session, plan, {(partition, group) for partition, group, _ in slices}, seen)


def _sync_logs(state: TableState, logs: Iterable[tuple[str, str]]) -> None:
    """Put log files that a plan names on the disk, before the plan is there.

    Before version 8, names do not tell whose blocks a log file has: a plan may name one of a write under way, which its
    writer has not put there. A loss of power would leave a plan that nobody can execute.

    Args:
        state: the table.
        logs: partition paths and names of the files.
    """
    if state.config.version < LOGS_NAMED_BY_WRITE and state.timeline.pending_writes:
        state.storage.sync(f"{partition}/{name}" if partition else name for partition, name in logs)


def recover_with_metadata(session: TableSession) -> TableState:
    """Roll failed writes back and adapt the metadata table to the options; returns the table.

    Under the table's lock.
    """
    recover(session)
    return ensure_metadata(session, file_plan(session))


def begin_service(session: TableSession, instant: Instant, operation: str) -> Transaction:
    """Move a requested service to inflight; files may be made from now on. Under the table's lock.

    Args:
        session: the call.
        instant: the service.
        operation: as commit metadata names it.

    Raises:
        CommitError: storage failed; the service has not begun.
    """
    storage, config = session.storage, session.state.config
    heartbeat = Heartbeat(storage, instant.requested, session.heartbeat_rule)
    heartbeat.start()
    try:
        to_inflight(storage, config, instant, durable=True)
        transaction = Transaction(
            session=session,
            instant=replace(instant, state=State.INFLIGHT),
            operation=operation,
            heartbeat=heartbeat,
        )
        with undone_on_failure(transaction):
            make_marker_folder(storage, instant.requested)
    except BaseException:
        heartbeat.stop()
        raise
    return transaction


def commit_service(transaction: Transaction, plan: FilePlan, metadata: CommitMetadata) -> None:
    """Make a service visible, in the metadata table too; under the table's lock.

    Args:
        transaction: the service.
        plan: file settings of the service.
        metadata: its commit metadata.

    Raises:
        CommitConflictError: another process rolls it back, or may have taken it over because its heartbeat expired.
    """
    session, before = transaction.session, transaction.session.state
    if transaction.heartbeat is not None:
        transaction.heartbeat.require_alive()
    require_not_undone(before, transaction.instant)
    publish(transaction, metadata, lambda: _record(session, plan, metadata))
    session.changed()
    maintain_metadata(session, before)


def _record(session: TableSession, plan: FilePlan, metadata: CommitMetadata) -> None:
    record_in_metadata(session, plan, metadata)


def stats_by_partition(stats: Iterable[WriteStat]) -> dict[str, list[WriteStat]]:
    """Write statistics by partition path, in the order of the paths of their files."""
    found: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        found.setdefault(stat.partition_path, []).append(stat)
    return found


def figures_of(stats: Iterable[WriteStat]) -> dict[str, int]:
    """Figures of a phase: rows, files and bytes that were written."""
    some = list(stats)
    return {
        "rows": sum(stat.num_writes for stat in some),
        "files": len(some),
        "bytes": sum(stat.file_size for stat in some),
    }


# ---- the cost of the units of a service plan


def bytes_read(metrics: Mapping[str, float]) -> float:
    """Bytes that a unit reads, as its plan estimates them (``CompactionStrategy``, Hudi 1.2.0)."""
    return metrics.get("TOTAL_IO_READ_MB", 0.0) * (1 << 20) + metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)


def require_abandoned(session: TableSession, instant: Instant) -> None:
    """Refuse to take over a service that another process runs.

    Args:
        session: the call, under the lock that running the service takes.
        instant: the pending service.

    Raises:
        ServiceTakenError: its heartbeat is live.
    """
    storage, rule = session.storage, session.heartbeat_rule
    if is_alive(storage, instant.requested, rule):
        raise ServiceTakenError(
            f"The {instant.action} {instant.requested} of {storage.uri} is run by another process, which sent a "
            f"heartbeat in the last {rule.lasts_ms / 1000:g} s ({heartbeat_path(instant.requested)}). Wait for it to "
            "end."
        )


def is_abandoned_indexing(session: TableSession, instant: Instant) -> bool:
    """Whether the build of an inflight index was abandoned.

    Apache Hudi's indexer sends no heartbeat that lasts until its end (``RunIndexActionExecutor``, 1.2.0), and runs only
    where concurrent writers are configured. There an indexing without a heartbeat file may be alive. An indexer that
    died before its end has left its file.

    Args:
        session: the call.
        instant: the inflight indexing.
    """
    storage, rule = session.storage, session.heartbeat_rule
    if is_alive(storage, instant.requested, rule):
        return False
    return not rule.shared or storage.exists(heartbeat_path(instant.requested))


@dataclass(frozen=True)
class PendingDeletes:
    """The files of a table that pending rollbacks will delete, computed on first use.

    Attributes:
        state: the table, under its lock.
    """

    state: TableState = field(repr=False)

    def has(self, slice_: FileSlice) -> bool:
        """Whether a pending rollback will delete a file of the slice.

        Args:
            slice_: a newest slice of the state.

        Raises:
            CorruptTableError: the plan of a rollback names files outside the table.
        """
        if any(file.path in self._files for file in slice_.files):
            return True
        return slice_.base_file is None and self._has_no_base(slice_.base_instant)

    def _has_no_base(self, begin: str) -> bool:
        timeline = self.state.timeline
        if self.state.config.layout_version > 1 or not timeline.pending_writes or timeline.find(begin) is not None:
            return False
        return begin in self._taken_back

    @cached_property
    def _files(self) -> frozenset[str]:
        storage = self.state.storage
        plans = pending_rollbacks(storage, self.state.config, self.state.timeline)
        requests = (one for _, plan in plans for one in plan.requests)
        return frozenset(relative_path(storage, path) for one in requests for path in one.files_to_be_deleted)

    @cached_property
    def _taken_back(self) -> set[str]:
        return taken_back(self.state.storage, self.state.config, self.state.timeline)
