"""``HudiTable.services``: compaction and log compaction."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from hudi_fast.errors import ServiceTakenError
from hudi_fast.services.compaction.log_run import (
    run_log_compaction,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.compaction.plan import ScheduledCompaction, schedule_compaction
from hudi_fast.services.compaction.run import run_compaction, run_pending_compactions
from hudi_fast.services.compaction.work import CompactionResult, combined_result
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["CompactionVerbs"]


class CompactionVerbs(ServiceVerbs):
    """Merging log files."""

    def plan_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a compaction on the timeline for somebody to carry out: :meth:`compact`, or Apache Hudi.

        Writers go on meanwhile; what they log belongs to the slice after it.

        Args:
            options: strategy, bounds and trigger. Without any option that says when compaction is due, it is due now.

        Returns:
            The plan, to look at or to pass to :meth:`compact`; None when there is nothing to compact.

        Raises:
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.
        """
        session = self._session(options)
        return schedule_compaction(session, session.settings.compaction.has_trigger)

    def compact(
        self,
        options: Options | None = None,
        spark: Any = None,
        plan: ScheduledCompaction | None = None,
        pending_only: bool = False,
    ) -> CompactionResult:
        """Merge the log files of the table's file slices into new base files.

        Compactions that wait on the timeline are carried out first, then a new one is planned and carried out.

        Args:
            options: as for :meth:`plan_compact`, and those that say how base files are written.
            spark: a Spark session: each file slice is a task there. Without, slices are merged in threads.
            plan: carry out this one alone.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending, or another program is carrying one out.
            CommitError: it failed, and waits on the timeline again.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.
        """
        started = time.monotonic()
        check_plan(plan, ScheduledCompaction)
        session = self._session(options, spark)
        if plan is not None:
            done = [(plan.instant, run_compaction(session, plan))]
        else:
            done = run_pending_compactions(session)
        if plan is None and not pending_only:
            planned = schedule_compaction(session, session.settings.compaction.has_trigger)
            if planned is not None:
                with contextlib.suppress(ServiceTakenError):  # another process was faster
                    done.append((planned.instant, run_compaction(session, planned)))
        return combined_result("compact", done, time.monotonic() - started)

    def plan_log_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a log compaction on the timeline; see :meth:`plan_compact`."""
        session = self._session(options)
        return schedule_log_compaction(session, session.settings.compaction.has_log_trigger)

    def log_compact(
        self, options: Options | None = None, spark: Any = None, plan: ScheduledCompaction | None = None
    ) -> CompactionResult:
        """Merge the log files of file slices into one each; base files stay.

        Log compactions that wait on the timeline are carried out first, unless compaction came before them; then a new
        one is planned and carried out. Slices take part that have at least ``hoodie.log.compaction.blocks.threshold``
        log files or blocks.

        Args:
            options: the threshold, and those that say how log files are written.
            spark: a Spark session: each file slice is a task there.
            plan: carry out this one alone.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending, or out of date.
            CommitError: it failed; the table is as before.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table is not supported.
        """
        started = time.monotonic()
        check_plan(plan, ScheduledCompaction)
        session = self._session(options, spark)
        if plan is not None:
            done = [(plan.instant, run_log_compaction(session, plan))]
        else:
            done = run_pending_log_compactions(session)
            planned = schedule_log_compaction(session, session.settings.compaction.has_log_trigger)
            if planned is not None:
                with contextlib.suppress(ServiceTakenError):  # another process was faster
                    done.append((planned.instant, run_log_compaction(session, planned)))
        return combined_result("log_compact", done, time.monotonic() - started)
