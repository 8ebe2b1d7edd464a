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
        """What :meth:`upgrade` would do, step by step; nothing is written.

        Args:
            version: 6, 8 or 9; a lower one than the table's is a downgrade.
            options: as of :meth:`upgrade`.

        Raises:
            ConfigError: something must be settled first, such as a pending clustering.
            UnsupportedFeatureError: a version or feature that cannot be carried over.
        """
        return plan_upgrade(self._session(options), version)

    def upgrade(
        self, version: int, options: Options | None = None, spark: Any = None, plan: UpgradePlan | None = None
    ) -> UpgradeResult:
        """Let the table have another version: up to 8 or 9, or down to 8 or 6. Its rows and history stay.

        Failed writes are rolled back and log files compacted on the way. A crash leaves a table of the one version or
        the other; run it again then. Stop writers on other machines first. Going down to 6, a MERGE_ON_READ table
        loses time travel to before the change: version 6 looks for older log files under other names.

        Args:
            version: 6, 8 or 9; nothing happens when the table has it.
            options: how files are written, locks; ``hoodie.datasource.write.partitionpath.field`` with types for a
                custom key generator that leaves version 6, ``hoodie.payload.delete.field`` and ``.marker`` for a table
                that comes to version 9, ``hoodie.write.complex.keygen.validation.enable``.
            spark: a Spark session: log files are compacted in tasks there. Without, in threads.
            plan: what :meth:`plan_upgrade` gave; the call is refused if something else would happen now.

        Raises:
            CommitConflictError: the table is no longer as planned, or writers log faster than is compacted.
            ConfigError: something must be settled first; nothing has changed.
            LockTimeoutError: others held the lock of the table or of a service.
            UnsupportedFeatureError: a version or feature that cannot be carried over; nothing has changed.
        """
        check_plan(plan, UpgradePlan)
        return run_upgrade(self._session(options, spark), version, plan)
