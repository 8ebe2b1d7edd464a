"""``HudiTable.services``: partition TTL."""

from __future__ import annotations

from hudi_fast.services.ttl.plan import TtlPlan
from hudi_fast.services.ttl.run import TtlResult, delete_expired, plan_expired, require_retention
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["TtlVerbs"]


class TtlVerbs(ServiceVerbs):
    """Deleting partitions that have expired."""

    def plan_ttl(self, options: Options | None = None) -> TtlPlan:
        """The partitions that :meth:`ttl` would delete now; nothing is written.

        Args:
            options: ``hoodie.partition.ttl.*``; ``hoodie.partition.ttl.strategy.days.retain`` is required.

        Raises:
            ConfigError: an option is wrong, or the number of days is missing.
        """
        session = self._session(options)
        require_retention(session.settings.ttl)
        return plan_expired(session)

    def ttl(self, options: Options | None = None) -> TtlResult:
        """Delete the partitions that have expired, in one replace commit.

        Partitions on which a compaction or clustering is pending stay until the next call. A clean removes the files
        later; until then time travel still reads them.

        Args:
            options: as for :meth:`plan_ttl`.

        Raises:
            ConfigError: an option is wrong, or the number of days is missing.
            CommitConflictError: another writer changed an expired partition in the meantime. Nothing was deleted.
            HudiError: as for a write.
        """
        session = self._session(options)
        require_retention(session.settings.ttl)
        return delete_expired(session)
