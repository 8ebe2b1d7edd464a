"""``HudiTable.services``: changing the table version."""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.upgrading.plan import UpgradePlan, UpgradeResult
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["UpgradeVerbs"]


class UpgradeVerbs(ServiceVerbs):
    """Changing the table version."""

    def plan_upgrade(self, version: int, options: Options | None = None) -> UpgradePlan:
        """What :meth:`upgrade` would do; nothing is written."""
        raise UnsupportedFeatureError("Changing the table version is not supported yet. Use Apache Hudi for it.")

    def upgrade(
        self, version: int, options: Options | None = None, spark: Any = None, plan: UpgradePlan | None = None
    ) -> UpgradeResult:
        """Change the table version."""
        raise UnsupportedFeatureError("Changing the table version is not supported yet. Use Apache Hudi for it.")
