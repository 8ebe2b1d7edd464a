"""

``HudiTable.services``: undoing, checking and repairing, and changing the version of a table.

Shared parts of the services of a table: a session for each call, and checks of plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.merging.rules import Merger
from hudi_fast.services.clustering.cluster_plan import ScheduledClustering
from hudi_fast.services.compact_plan import ScheduledCompaction
from hudi_fast.services.index_plan import ScheduledIndex
from hudi_fast.services.repairing.findings import RepairPlan, RepairResult
from hudi_fast.services.repairing.repair import plan_repair, run_repair
from hudi_fast.services.restore import plan_of_restore, run_restore
from hudi_fast.services.retention import ScheduledClean
from hudi_fast.services.rollback import plan_of_rollback, run_rollback
from hudi_fast.services.savepoints import delete_savepoint, make_savepoint, savepoints_table
from hudi_fast.services.undoing import PlannedRestore, PlannedRollback, RestoreResult, RollbackResult, SavepointResult
from hudi_fast.services.upgrading.upgrade import plan_upgrade, run_upgrade
from hudi_fast.services.upgrading.upgrade_plan import UpgradePlan, UpgradeResult
from hudi_fast.services.validate import ValidationResult, validate_metadata
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["Options", "RecoveryServices", "ServiceCalls", "check_plan", "checked_instant"]

Options = Mapping[str, Any]
"""Apache Hudi's own ``hoodie.*`` keys, in old or new spelling."""


_ON_TIMELINE = (ScheduledClean, ScheduledClustering, ScheduledCompaction, ScheduledIndex)


def check_plan(plan: object, kind: type) -> None:
    """Check that a plan, if the caller passes one, belongs to this service and can be executed.

    Args:
        plan: None, or a plan.
        kind: its expected type.

    Raises:
        TypeError: it has another type.
        ConfigError: it is only a preview, which is not on the timeline.
    """
    if plan is not None and not isinstance(plan, kind):
        raise TypeError(f"plan must be a {kind.__name__}, not a {type(plan).__name__}: pass a plan of this service.")
    if isinstance(plan, _ON_TIMELINE) and not plan.instant:
        raise ConfigError(
            "This plan is not on the timeline: plan_compact(), plan_cluster(), ... only look. Pass a plan of "
            "schedule_compact(), schedule_cluster(), ..., or no plan."
        )


def checked_instant(instant: str | None) -> str | None:
    """The requested time of an instant, as a caller gives it.

    Raises:
        ConfigError: it is not a text.
    """
    if instant is not None and not isinstance(instant, str):
        raise ConfigError(
            f"An instant is the text that history() shows, such as '20240131120000000'; got {instant!r}, of the type "
            f"{type(instant).__name__}."
        )
    return instant


class ServiceCalls:
    """The services of one table. Each call opens the table again; all verbs report failures of storage in the same way.

    Args:
        storage: the table's storage.
        merger: merges rows of a table with the merge mode CUSTOM; else None.
    """

    def __init__(self, storage: Storage, merger: Merger | None = None) -> None:
        self._storage = storage
        self._merger = merger

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tells_failures(cls)

    def _session(self, options: Options | None = None, spark: Any = None, undoes: bool = False) -> TableSession:
        """The session of a call: on Spark if a Spark session is given, else in this process."""
        settings = Settings.from_options(options, self._merger)
        settings.check_storage(self._storage)
        return open_session(self._storage, settings, spark, small_on_driver=False, undoes=undoes)


class RecoveryServices(ServiceCalls):
    """Rollback, savepoints and restore; validation and repair; upgrades."""

    # ---- Undoing

    def plan_rollback(self, instant: str | None = None, options: Options | None = None) -> PlannedRollback:
        """Plan a :meth:`rollback`; nothing is written.

        Args:
            instant: as for :meth:`rollback`.
            options: as for :meth:`rollback`.

        Raises:
            CommitConflictError: the table is being restored.
            ConfigError: the instant cannot be rolled back.
        """
        return plan_of_rollback(self._undoing_session(options), checked_instant(instant))

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
                be rolled back. None for threads of this process.
            plan: a plan of :meth:`plan_rollback`, executed exactly as planned.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table, another process writes the instant, or the table is
                being restored.
            CommitError: a file could not be deleted; the next write finishes the rollback.
            ConfigError: the instant cannot be rolled back; the message says why, and what to do instead. Nothing has
                changed.
            LockTimeoutError: another process runs the service.

        Example:
            >>> result = hf.write(pa.table({"id": [2], "fare": [5.0]}), path, options)
            >>> services.rollback(result.instant).rolled_back == (result.instant,)
            True
        """
        check_plan(plan, PlannedRollback)
        return run_rollback(self._undoing_session(options, spark), checked_instant(instant), plan)

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

        Example:
            >>> saved = services.savepoint().instant
            >>> services.restore(saved).savepoint == saved
            True
        """
        return make_savepoint(self._session(options), checked_instant(instant), user, comment)

    def delete_savepoint(self, instant: str, options: Options | None = None) -> None:
        """Delete a savepoint. Cleans may delete its files from now on.

        Args:
            instant: requested time of its commit.
            options: locks.

        Raises:
            ConfigError: the commit has no savepoint, or a restore is pending.
        """
        delete_savepoint(self._session(options), checked_instant(instant) or "")

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
        return plan_of_restore(self._undoing_session(options), checked_instant(savepoint) or "")

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
        return run_restore(self._undoing_session(options, spark), checked_instant(savepoint) or "", plan)

    def _undoing_session(self, options: Options | None, spark: Any = None) -> TableSession:
        """A session that opens tables whose writes have lost their bodies."""
        return self._session(options, spark, undoes=True)

    # ---- Checking and repairing

    def plan_repair(self, options: Options | None = None) -> RepairPlan:
        """Find files and instants that do not belong to the table; nothing is written.

        These are data files that no commit lists, files that a clean could not delete, abandoned writes, lost plans,
        and leftover markers, temporary files, heartbeats and locks. :meth:`validate` checks the contents of the
        metadata table.

        Args:
            options: when a heartbeat expires: ``hoodie.client.heartbeat.interval_in_ms``,
                ``hoodie.client.heartbeat.tolerable.misses``.

        Raises:
            CorruptTableError: ``hoodie.properties`` is damaged.
        """
        return plan_repair(self._storage, self._session(options).heartbeat_rule)

    def repair(self, options: Options | None = None, plan: RepairPlan | None = None) -> RepairResult:
        """Remove repairable findings; never a file that a query, a savepoint or a pending service needs.

        Args:
            options: as for :meth:`plan_repair`, and how long to wait for the table's lock.
            plan: execute only this plan; None for the findings of :meth:`plan_repair` now.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table; nothing was done.
            CommitError: storage failed; the rest can be repaired again.
            LockTimeoutError: other processes write to the table.
        """
        check_plan(plan, RepairPlan)
        return run_repair(self._session(options), plan)

    def validate(
        self,
        partitions: Sequence[str] = (),
        limit: int = 1000,
        options: Options | None = None,
        *,
        spark: Any = None,
    ) -> ValidationResult:
        """Compare the metadata table with the files and rows of the table; nothing is written.

        Args:
            partitions: partitions of the metadata table to compare; empty for all.
            limit: maximum number of listed differences per partition; all of them are counted.
            options: how rows merge, ``hudi_fast.threads``.
            spark: a Spark session: its tasks read the table and compare the file groups. None for this process.

        Raises:
            ConfigError: the metadata table has no such partition.
            CorruptTableError: a file of the table itself is damaged.
            UnsupportedFeatureError: the table merges its rows in a way that is not supported.

        Example:
            >>> services.validate().ok
            True
        """
        return validate_metadata(self._session(options, spark), tuple(partitions), limit)

    # ---- Versions

    def plan_upgrade(self, version: int, options: Options | None = None) -> UpgradePlan:
        """List the steps of :meth:`upgrade`; nothing is written.

        Args:
            version: 5, 6, 8 or 9; a lower one than the table's is a downgrade.
            options: as for :meth:`upgrade`.

        Raises:
            ConfigError: something must be resolved first, such as a pending clustering.
            UnsupportedFeatureError: an unsupported version, or a feature that the other version does not have.
        """
        return plan_upgrade(self._session(options), version)

    def upgrade(
        self, version: int, options: Options | None = None, *, spark: Any = None, plan: UpgradePlan | None = None
    ) -> UpgradeResult:
        """Change the table version: from 2 or later up to 5, 6, 8 or 9, or down to 8, 6 or 5. Rows and history stay.

        Failed writes are rolled back; from version 6 on, and to version 5, log files are compacted. After a crash the
        table has the old or the new version, or 6 if that is between them; run the upgrade again. Stop writers on other
        machines first. A downgrade to version 6 ends time travel of a MERGE_ON_READ table to before the change: version
        6 expects other names of log files.

        Args:
            version: 5, 6, 8 or 9; nothing happens when the table has it.
            options: how files are written, locks; for a table of version 2 options that its properties lack
                (``hoodie.datasource.write.partitionpath.urlencode``, ``hoodie.datasource.write.keygenerator.class``);
                ``hoodie.skip.default.partition.validation``; ``hoodie.datasource.write.partitionpath.field`` with types
                to upgrade a table with a custom key generator from version 6; ``hoodie.payload.delete.field`` and
                ``.marker`` to upgrade to version 9; ``hoodie.write.complex.keygen.validation.enable``.
            spark: a Spark session: its tasks compact log files. None for threads of this process.
            plan: a plan of :meth:`plan_upgrade`; the call is refused if it no longer fits the table.

        Raises:
            CommitConflictError: the table is no longer as planned, or writers log faster than this process compacts.
            ConfigError: something must be resolved first; nothing has changed.
            LockTimeoutError: other processes held the lock of the table or of a service.
            UnsupportedFeatureError: an unsupported version or feature; nothing has changed.
        """
        check_plan(plan, UpgradePlan)
        return run_upgrade(self._session(options, spark), version, plan)
