"""``HudiTable.services``: what keeps a table in shape, as calls. It delegates and holds no logic of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.merge.rules import Merger
from hudi_fast.services.bucket_resize import resize_buckets
from hudi_fast.services.compaction import run_compaction, run_pending_compactions
from hudi_fast.services.compaction_plan import ScheduledCompaction, schedule_compaction
from hudi_fast.services.execute import in_threads
from hudi_fast.services.log_compaction import (
    run_log_compaction,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work import CompactionResult, Executor, combined_result
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["TableServices"]

Options = Mapping[str, Any]


class TableServices:
    """The services of one table. Every call sees the table as it is then.

    Args:
        storage: the table's storage.
        on_spark: makes of a Spark session what carries a compaction out there.
        merger: merges rows of a table whose merge mode is CUSTOM; None for none.

    Example:
        >>> import pyarrow as pa, tempfile, hudi_fast as hf
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> options = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id",
        ...            "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        >>> for fare in (9.5, 4.0):
        ...     result = hf.write(pa.table({"id": [1], "fare": [fare]}), path, options)
        >>> services = hf.HudiTable.open(path).services
        >>> services.compact().updates
        1
        >>> services.compact().instant  # there is nothing left to compact
        ''
    """

    def __init__(self, storage: Storage, on_spark: Callable[[Any], Executor], merger: Merger | None = None) -> None:
        self._storage = storage
        self._on_spark = on_spark
        self._merger = merger

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
        settings = self._settings(options)
        return schedule_compaction(self._storage, settings, settings.compaction.has_trigger)

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
            CommitConflictError: ``plan`` is no longer pending.
            CommitError: it failed, and waits on the timeline again.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.
        """
        started = time.monotonic()
        settings = self._settings(options)
        execute = in_threads if spark is None else self._on_spark(spark)
        if plan is not None:
            done = [(plan.instant, run_compaction(self._storage, plan, settings, execute))]
        else:
            done = run_pending_compactions(self._storage, settings, execute)
        if plan is None and not pending_only:
            planned = schedule_compaction(self._storage, settings, settings.compaction.has_trigger)
            if planned is not None:
                done.append((planned.instant, run_compaction(self._storage, planned, settings, execute)))
        return combined_result("compact", done, time.monotonic() - started)

    def plan_log_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a log compaction on the timeline; see :meth:`plan_compact`."""
        settings = self._settings(options)
        return schedule_log_compaction(self._storage, settings, settings.compaction.has_log_trigger)

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
            CommitConflictError: ``plan`` is no longer pending, or out of date.
            CommitError: it failed; the table is as before.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table is not supported.
        """
        started = time.monotonic()
        settings = self._settings(options)
        execute = in_threads if spark is None else self._on_spark(spark)
        done: list[tuple[str, list[WriteStat]]] = []
        if plan is None:
            done = run_pending_log_compactions(self._storage, settings, execute)
            plan = schedule_log_compaction(self._storage, settings, settings.compaction.has_log_trigger)
        if plan is not None:
            done.append((plan.instant, run_log_compaction(self._storage, plan, settings, execute)))
        return combined_result("log_compact", done, time.monotonic() - started)

    def cluster(self, options: Options | None = None, spark: Any = None) -> CompactionResult:
        """Split the large buckets of a table of consistent hashing, and merge neighbouring small ones.

        Other clustering is not supported yet. Writers wait meanwhile; rows keep their commit time.

        Args:
            options: ``hoodie.bucket.index.min.num.buckets``, ``.max.num.buckets``, ``.split.threshold``,
                ``.merge.threshold``, ``.hash.field``, and those that say how base files are written.
            spark: not supported yet; buckets are rewritten in threads.

        Raises:
            CommitError: it failed; the table is as before.
            ConfigError: the table is not MERGE_ON_READ, or other fields were hashed than the options say.
            UnsupportedFeatureError: no table of consistent hashing, or a Spark session.
        """
        if spark is not None:
            raise _unsupported("Clustering on Spark")
        started = time.monotonic()
        done = resize_buckets(self._storage, self._settings(options))
        return combined_result("cluster", done, time.monotonic() - started)

    def clean(self, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Cleaning")

    def archive(self, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Archiving the timeline")

    def rollback(self, instant: str, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Rolling back a completed commit")

    def savepoint(self, instant: str | None = None, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Making a savepoint")

    def restore(self, savepoint: str, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Restoring to a savepoint")

    def index(self, *columns: str, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Building an index")

    def upgrade(self, version: int, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Changing the table version")

    def _settings(self, options: Options | None) -> ServiceSettings:
        settings = ServiceSettings.from_options(options, self._merger)
        settings.check_storage(self._storage)
        return settings


def _unsupported(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} is not supported yet. Use Apache Hudi for it.")
