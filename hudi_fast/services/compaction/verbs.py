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
        """Put a compaction plan on the timeline. :meth:`compact` or Apache Hudi can execute it.

        Writers continue; their log files belong to the file slice that begins at the compaction.

        Args:
            options: strategy, bounds and trigger. Without a trigger option compaction is due now.

        Returns:
            The plan, to inspect or to pass to :meth:`compact`; None when there is nothing to compact.

        Raises:
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.
        """
        session = self._session(options)
        return schedule_compaction(session, session.settings.compaction.has_trigger)

    def compact(
        self,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: ScheduledCompaction | None = None,
        pending_only: bool = False,
    ) -> CompactionResult:
        """Merge the log files of the table's file slices into new base files.

        Pending compactions are executed first, then a new one is planned and executed.

        Args:
            options: as for :meth:`plan_compact`, and options for base files.
            spark: a Spark session: one task merges each file slice. Without, threads of this process do.
            plan: execute only this plan.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending, or another process runs a compaction.
            CommitError: it failed, and is pending again.
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
                with contextlib.suppress(ServiceTakenError):  # another process completed it first
                    done.append((planned.instant, run_compaction(session, planned)))
        return combined_result("compact", done, time.monotonic() - started)

    def plan_log_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a log compaction plan on the timeline; see :meth:`plan_compact`."""
        session = self._session(options)
        return schedule_log_compaction(session, session.settings.compaction.has_log_trigger)

    def log_compact(
        self, options: Options | None = None, *, spark: Any = None, plan: ScheduledCompaction | None = None
    ) -> CompactionResult:
        """Merge the log files of each file slice into one; base files stay.

        Pending log compactions are executed first, unless their slices were compacted in the meantime; then a new one
        is planned and executed. It includes slices with at least ``hoodie.log.compaction.blocks.threshold`` log files
        or blocks.

        Args:
            options: the threshold, and options for log files.
            spark: a Spark session: one task merges each file slice. Without, threads of this process do.
            plan: execute only this plan.

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
                with contextlib.suppress(ServiceTakenError):  # another process completed it first
                    done.append((planned.instant, run_log_compaction(session, planned)))
        return combined_result("log_compact", done, time.monotonic() - started)
