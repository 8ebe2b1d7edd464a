"""``HudiTable.services``: rollback, savepoints and restore."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.services.recovery.restore import plan_of_restore, run_restore
from hudi_fast.services.recovery.rollback import plan_of_rollback, run_rollback
from hudi_fast.services.recovery.savepoints import delete_savepoint, make_savepoint, savepoints_table
from hudi_fast.services.recovery.values import (
    PlannedRestore,
    PlannedRollback,
    RestoreResult,
    RollbackResult,
    SavepointResult,
)
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan
from hudi_fast.writing.session import TableSession

__all__ = ["RecoveryVerbs"]


class RecoveryVerbs(ServiceVerbs):
    """Rollback, savepoints and restore."""

    def plan_rollback(self, instant: str | None = None, options: Options | None = None) -> PlannedRollback:
        """Plan a :meth:`rollback`; nothing is written.

        Args:
            instant: as for :meth:`rollback`.
            options: as for :meth:`rollback`.

        Raises:
            CommitConflictError: the table is being restored.
            ConfigError: the instant cannot be rolled back.
        """
        return plan_of_rollback(self._undoing_session(options), instant)

    def rollback(
        self,
        instant: str | None = None,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: PlannedRollback | None = None,
    ) -> RollbackResult:
        """Roll an instant back: delete its files and remove it from the timeline.

        A pending write can always be rolled back. Of completed writes only the newest can, if no savepoint, service or
        clean depends on it. An inflight compaction becomes requested again; a requested one, like other pending
        services, is removed with its plan.

        Args:
            instant: requested time; None: all failed writes and abandoned rollbacks.
            options: locks; indexes of the metadata table.
            spark: a Spark session: its tasks delete files, and build partitions of the metadata table again that cannot
                be rolled back. Without, threads of this process do.
            plan: a plan of :meth:`plan_rollback`, executed exactly as planned.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table, another process writes the instant, or the table is
                being restored.
            CommitError: a file could not be deleted; the next write finishes the rollback.
            ConfigError: the instant cannot be rolled back; the message says why, and what to do instead. Nothing has
                changed.
            LockTimeoutError: another process runs the service.
        """
        check_plan(plan, PlannedRollback)
        return run_rollback(self._undoing_session(options, spark), instant, plan)

    def savepoint(
        self, instant: str | None = None, user: str = "", comment: str = "", options: Options | None = None
    ) -> SavepointResult:
        """Protect the files of a commit from cleaning. The table can be restored to it.

        Args:
            instant: requested time of the commit; None: the newest completed one.
            user: noted in the savepoint.
            comment: noted in the savepoint.
            options: locks.

        Raises:
            ConfigError: there is no such completed commit, it has a savepoint already, or cleans do not retain its
                files.
        """
        return make_savepoint(self._session(options), instant, user, comment)

    def delete_savepoint(self, instant: str, options: Options | None = None) -> None:
        """Delete a savepoint. Cleans may delete its files from now on.

        Args:
            instant: requested time of its commit.
            options: locks.

        Raises:
            ConfigError: the commit has no savepoint, or a restore is pending.
        """
        delete_savepoint(self._session(options), instant)

    def savepoints(self) -> pa.Table:
        """One row per savepoint, oldest first: ``instant, completion, made, user, comment, partitions, files``."""
        return savepoints_table(self._storage)

    def plan_restore(self, savepoint: str, options: Options | None = None) -> PlannedRestore:
        """Plan a :meth:`restore`; nothing is written.

        Args:
            savepoint: as for :meth:`restore`.
            options: as for :meth:`restore`.

        Raises:
            HudiError: as for :meth:`restore`.
        """
        return plan_of_restore(self._undoing_session(options), savepoint)

    def restore(
        self,
        savepoint: str,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: PlannedRestore | None = None,
    ) -> RestoreResult:
        """Return the table to a savepoint: roll back every later commit and delete its files.

        No write may run during a restore, and none begins before it completes. The next call with the same savepoint
        continues an abandoned restore. The savepoint stays.

        Args:
            savepoint: requested time of the savepointed commit.
            options: locks; indexes of the metadata table.
            spark: as for :meth:`rollback`.
            plan: a plan of :meth:`plan_restore`, executed exactly as planned.

        Raises:
            CommitConflictError: another restore is pending, another process writes or runs a service, or ``plan`` no
                longer fits the table.
            CommitError: a file could not be deleted: restore again.
            ConfigError: there is no such savepoint, there is a later one, or ``hoodie.archive.beyond.savepoint`` is on.
                Nothing has changed.
            CorruptTableError: files of the savepoint are missing. Nothing has changed.
            LockTimeoutError: another process writes or runs a service.
        """
        check_plan(plan, PlannedRestore)
        return run_restore(self._undoing_session(options, spark), savepoint, plan)

    def _undoing_session(self, options: Options | None, spark: Any = None) -> TableSession:
        """A session that opens tables whose writes have lost their bodies."""
        session = self._session(options, spark)
        session.may_lack_bodies = True
        return session
