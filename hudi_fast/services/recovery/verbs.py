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

__all__ = ["RecoveryVerbs"]


class RecoveryVerbs(ServiceVerbs):
    """Rollback, savepoints and restore."""

    def plan_rollback(self, instant: str | None = None, options: Options | None = None) -> PlannedRollback:
        """What :meth:`rollback` would do; nothing is written.

        Args:
            instant: as for :meth:`rollback`.
            options: likewise.

        Raises:
            CommitConflictError: the table is being restored.
            ConfigError: the instant cannot be rolled back.
        """
        return plan_of_rollback(self._session(options), instant)

    def rollback(
        self,
        instant: str | None = None,
        options: Options | None = None,
        spark: Any = None,
        plan: PlannedRollback | None = None,
    ) -> RollbackResult:
        """Undo an instant: its files are deleted, and it goes off the timeline.

        A pending write can be undone at any time, a completed one only while nothing rests on it: the newest. A pending
        compaction that was being carried out waits again, one that was not goes; other pending services go.

        Args:
            instant: requested time; None: all writes that failed, and rollbacks that died.
            options: locks; what the metadata table is to hold.
            spark: a Spark session: files are deleted in tasks there, and partitions of the metadata table that cannot
                be taken back are built there. Without, in threads.
            plan: what :meth:`plan_rollback` gave; it is carried out as it is, or not at all.

        Raises:
            CommitConflictError: ``plan`` does not fit the table any more, another program is at work on the instant, or
                the table is being restored.
            CommitError: a file could not be deleted; the next write finishes the rollback.
            ConfigError: the instant cannot be rolled back; why, and what to do instead. Nothing has changed.
            LockTimeoutError: the service is being carried out.
        """
        check_plan(plan, PlannedRollback)
        return run_rollback(self._session(options, spark), instant, plan)

    def savepoint(
        self, instant: str | None = None, user: str = "", comment: str = "", options: Options | None = None
    ) -> SavepointResult:
        """Keep the files of a commit from the cleaner, so that the table can be restored to it.

        Args:
            instant: requested time of the commit; None: the newest completed one.
            user: noted in the savepoint.
            comment: likewise.
            options: locks.

        Raises:
            ConfigError: there is no such completed commit, it has a savepoint, or cleans do not retain its files.
        """
        return make_savepoint(self._session(options), instant, user, comment)

    def delete_savepoint(self, instant: str, options: Options | None = None) -> None:
        """Take a savepoint away; the cleaner may have its files from now on.

        Args:
            instant: requested time of its commit.
            options: locks.

        Raises:
            ConfigError: there is none, or a restore is pending.
        """
        delete_savepoint(self._session(options), instant)

    def savepoints(self) -> pa.Table:
        """One row per savepoint, oldest first: ``instant, completion, made, user, comment, partitions, files``."""
        return savepoints_table(self._storage)

    def plan_restore(self, savepoint: str, options: Options | None = None) -> PlannedRestore:
        """What :meth:`restore` would do; nothing is written.

        Args:
            savepoint: as for :meth:`restore`.
            options: likewise.

        Raises:
            HudiError: as :meth:`restore` where it refuses.
        """
        return plan_of_restore(self._session(options), savepoint)

    def restore(
        self,
        savepoint: str,
        options: Options | None = None,
        spark: Any = None,
        plan: PlannedRestore | None = None,
    ) -> RestoreResult:
        """Take the table back to a savepoint: every commit since is undone, its files are deleted.

        No write may go on meanwhile, and none begins before the restore is done. One that died is gone on with by the
        next call with the same savepoint. The savepoint stays.

        Args:
            savepoint: requested time of the savepointed commit.
            options: locks; what the metadata table is to hold.
            spark: as for :meth:`rollback`.
            plan: what :meth:`plan_restore` gave; it is carried out as it is, or not at all.

        Raises:
            CommitConflictError: another restore is pending, a writer or service is at work, or ``plan`` does not fit
                the table any more.
            CommitError: a file could not be deleted: restore again.
            ConfigError: there is no such savepoint, a later one is in the way, or
                ``hoodie.archive.beyond.savepoint`` is on. Nothing has changed.
            CorruptTableError: files that the savepoint keeps are gone. Nothing has changed.
            LockTimeoutError: a writer or service is at work.
        """
        check_plan(plan, PlannedRestore)
        return run_restore(self._session(options, spark), savepoint, plan)
