"""``HudiTable.services``: finding and removing what does not belong in a table."""

from __future__ import annotations

from hudi_fast.services.repairing.findings import RepairPlan, RepairResult
from hudi_fast.services.repairing.plan import plan_repair
from hudi_fast.services.repairing.run import run_repair
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["RepairVerbs"]


class RepairVerbs(ServiceVerbs):
    """Finding and removing what does not belong."""

    def plan_repair(self, options: Options | None = None) -> RepairPlan:
        """Look for what does not belong in the table; nothing is written.

        That is: data files that no commit counts, files that a clean could not delete, writes and plans that nobody
        carries out, leftover markers, temporary files, heartbeats and locks. Whether the metadata table says the truth
        is what :meth:`validate` finds out.

        Args:
            options: for how long the signs of life of others count: ``hoodie.client.heartbeat.interval_in_ms``,
                ``hoodie.client.heartbeat.tolerable.misses``.

        Raises:
            CorruptTableError: ``hoodie.properties`` cannot be understood.
        """
        return plan_repair(self._storage, self._session(options).heartbeat_rule)

    def repair(self, options: Options | None = None, plan: RepairPlan | None = None) -> RepairResult:
        """Remove what can be removed without harm; never a file that a query, a savepoint or a pending service needs.

        Args:
            options: as for :meth:`plan_repair`, and how long to wait for the table's lock.
            plan: do this and nothing else; None for what :meth:`plan_repair` finds now.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table; nothing was done.
            CommitError: storage failed; what is left can be repaired again.
            LockTimeoutError: others write to the table.
        """
        check_plan(plan, RepairPlan)
        return run_repair(self._session(options), plan)
