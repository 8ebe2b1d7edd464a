"""``HudiTable.services``: changing the table version."""

from __future__ import annotations

from typing import Any

from hudi_fast.services.upgrading.plan import UpgradePlan, UpgradeResult
from hudi_fast.services.upgrading.run import plan_upgrade, run_upgrade
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["UpgradeVerbs"]


class UpgradeVerbs(ServiceVerbs):
    """Changing the table version."""

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
            options: how files are written, locks; for a table of version 2 what its properties lack
                (``hoodie.datasource.write.partitionpath.urlencode``, ``hoodie.datasource.write.keygenerator.class``);
                ``hoodie.skip.default.partition.validation``; ``hoodie.datasource.write.partitionpath.field`` with types
                to upgrade a table with a custom key generator from version 6; ``hoodie.payload.delete.field`` and
                ``.marker`` to upgrade to version 9; ``hoodie.write.complex.keygen.validation.enable``.
            spark: a Spark session: its tasks compact log files. Without, threads of this process do.
            plan: a plan of :meth:`plan_upgrade`; the call is refused if it no longer fits the table.

        Raises:
            CommitConflictError: the table is no longer as planned, or writers log faster than this process compacts.
            ConfigError: something must be resolved first; nothing has changed.
            LockTimeoutError: other processes held the lock of the table or of a service.
            UnsupportedFeatureError: an unsupported version or feature; nothing has changed.
        """
        check_plan(plan, UpgradePlan)
        return run_upgrade(self._session(options, spark), version, plan)
