"""``HudiTable.services``: finding and removing files and instants that do not belong to a table."""

from __future__ import annotations

from hudi_fast.services.repairing.findings import RepairPlan, RepairResult
from hudi_fast.services.repairing.plan import plan_repair
from hudi_fast.services.repairing.run import run_repair
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["RepairVerbs"]


class RepairVerbs(ServiceVerbs):
    """Finding and removing orphan files, dangling instants and leftovers."""

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
