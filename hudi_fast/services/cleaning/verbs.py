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
    """Deleting files that no query needs any more."""

    def plan_clean(self, options: Options | None = None, dry_run: bool = False) -> ScheduledClean | None:
        """Put a clean on the timeline for somebody to carry out: :meth:`clean`, or Apache Hudi.

        Args:
            options: policy, what it retains, and trigger. Without any option that says when a clean is due, it is due
                now.
            dry_run: write nothing: only tell what would be deleted.

        Returns:
            The plan, to look at or to pass to :meth:`clean`; one that waits already comes before a new one. None when
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
        spark: Any = None,
        plan: ScheduledClean | None = None,
        pending_only: bool = False,
    ) -> CleanResult:
        """Delete the files that no query needs any more.

        Cleans that wait on the timeline are carried out first, then a new one is planned and carried out. What cannot
        be deleted is left to the next clean.

        Args:
            options: as for :meth:`plan_clean`.
            spark: a Spark session: many files are deleted as tasks there. Without, in threads.
            plan: carry out this one alone, as it was planned or not at all.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending.
            CommitConflictError: a file of ``plan`` must stay now: a savepoint, a service or a query needs it. Nothing
                was deleted.
            CommitError: storage failed; the clean stays pending, and the next one carries it out.
            ConfigError: an option is wrong.
            CorruptTableError: a waiting plan names what is no data file of the table. Nothing was deleted.
        """
        started = time.monotonic()
        check_plan(plan, ScheduledClean)
        session = self._session(options, spark)
        if plan is not None:
            done = [run_clean(session, plan)]
        else:
            done = clean(session, session.settings.clean.has_trigger, pending_only)
        return combined_result(done, time.monotonic() - started)
