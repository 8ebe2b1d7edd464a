"""``HudiTable.services``: rollback, savepoints and restore."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.services.undoing.rollback import look_at_rollback, run_rollback
from hudi_fast.services.undoing.values import (
    PlannedRestore,
    PlannedRollback,
    RestoreResult,
    RollbackResult,
    SavepointResult,
)
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["UndoVerbs"]


class UndoVerbs(ServiceVerbs):
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
        return look_at_rollback(self._storage, instant, self._settings(options))

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
        settings = self._settings(options)
        return run_rollback(self._storage, instant, settings, self._carriers(spark, settings), plan)

    def savepoint(
        self, instant: str | None = None, user: str = "", comment: str = "", options: Options | None = None
    ) -> SavepointResult:
        """Keep the files of a commit."""
        raise NotImplementedError

    def delete_savepoint(self, instant: str, options: Options | None = None) -> None:
        """Let the cleaner have the files of a savepoint again."""
        raise NotImplementedError

    def savepoints(self) -> pa.Table:
        """The table's savepoints."""
        raise NotImplementedError

    def plan_restore(self, savepoint: str, options: Options | None = None) -> PlannedRestore:
        """What :meth:`restore` would do; nothing is written."""
        raise NotImplementedError

    def restore(
        self,
        savepoint: str,
        options: Options | None = None,
        spark: Any = None,
        plan: PlannedRestore | None = None,
    ) -> RestoreResult:
        """Take the table back to a savepoint."""
        raise NotImplementedError
