"""``HudiTable.services``: cleaning."""

from __future__ import annotations

import time
from typing import Any

from hudi_fast.services.cleaning.plan import schedule_clean
from hudi_fast.services.cleaning.run import clean, run_clean
from hudi_fast.services.cleaning.work import CleanResult, ScheduledClean, combined_result
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["CleaningVerbs"]


class CleaningVerbs(ServiceVerbs):
    """Deleting files that no query within the retention window needs."""

    def plan_clean(self, options: Options | None = None, dry_run: bool = False) -> ScheduledClean | None:
        """Put a clean plan on the timeline. :meth:`clean` or Apache Hudi can execute it.

        Args:
            options: policy, retention and trigger. Without a trigger option a clean is due now.
            dry_run: only return the plan; nothing is written.

        Returns:
            The plan, to inspect or to pass to :meth:`clean`: a pending one if there is one, else a new one. None when
            there is nothing to delete.

        Raises:
            CommitConflictError: the table is being restored.
            ConfigError: an option is wrong.
        """
        session = self._session(options)
        return schedule_clean(session, session.settings.clean.has_trigger, dry_run)

    def clean(
        self,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: ScheduledClean | None = None,
        pending_only: bool = False,
    ) -> CleanResult:
        """Delete files that no query within the retention window needs.

        Pending cleans are executed first, then a new one is planned and executed. The next clean tries files again that
        could not be deleted.

        Args:
            options: as for :meth:`plan_clean`.
            spark: a Spark session: its tasks delete files when there are many. Without, threads of this process do.
            plan: execute only this plan, exactly as planned.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending.
            CommitConflictError: a file of ``plan`` must stay now: a savepoint, a service or a query needs it. Nothing
                was deleted.
            CommitError: storage failed; the clean stays pending, and the next one executes it.
            ConfigError: an option is wrong.
            CorruptTableError: a pending plan names a file that is not a data file of the table. Nothing was deleted.
        """
        started = time.monotonic()
        check_plan(plan, ScheduledClean)
        session = self._session(options, spark)
        if plan is not None:
            done = [run_clean(session, plan)]
        else:
            done = clean(session, session.settings.clean.has_trigger, pending_only)
        return combined_result(done, time.monotonic() - started)
