"""``HudiTable.services``: what keeps a table in shape, as calls. It delegates and holds no logic of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.merge.rules import Merger
from hudi_fast.metadata.state import open_state
from hudi_fast.metadata_writer.runner import Runner
from hudi_fast.metadata_writer.runner import in_threads as index_threads
from hudi_fast.services.clustering.bucket_resize import resize_buckets
from hudi_fast.services.compaction.execute import in_threads
from hudi_fast.services.compaction.log_run import (
    run_log_compaction,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.compaction.plan import ScheduledCompaction, schedule_compaction
from hudi_fast.services.compaction.run import run_compaction, run_pending_compactions
from hudi_fast.services.compaction.work import CompactionResult, Executor, combined_result
from hudi_fast.services.indexing.drop import drop_index
from hudi_fast.services.indexing.listing import indexes_table
from hudi_fast.services.indexing.plan import ScheduledIndex, schedule_index, scheduled_indexes
from hudi_fast.services.indexing.request import IndexRequest
from hudi_fast.services.indexing.run import IndexResult, build_index, run_scheduled_index
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.validation.run import ValidationResult, validate_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["TableServices"]

_MOST_THREADS = 8

Options = Mapping[str, Any]


class TableServices:
    """The services of one table. Every call sees the table as it is then.

    Args:
        storage: the table's storage.
        on_spark: makes of a Spark session what carries a compaction out there.
        index_on_spark: makes of a Spark session what makes the records of the metadata table there.
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

    def __init__(
        self,
        storage: Storage,
        on_spark: Callable[[Any], Executor],
        index_on_spark: Callable[[Any], Runner],
        merger: Merger | None = None,
    ) -> None:
        self._storage = storage
        self._on_spark = on_spark
        self._index_on_spark = index_on_spark
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

    def index(
        self,
        kind: str = "",
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
        spark: Any = None,
        plan: ScheduledIndex | None = None,
    ) -> IndexResult:
        """Build an index, and the indexes that it rests on, while the table goes on being read and written.

        Nothing happens when the index is there. On a table without a metadata table that is made first. A plan for the
        index that waits on the timeline is carried out as it was planned.

        Args:
            kind: ``column_stats``, ``partition_stats``, ``bloom_filters``, ``record_index``, ``secondary_index``,
                ``expr_index``, or ``files`` for the metadata table alone.
            columns: those of ``column_stats`` (default: the first 32 that can have statistics), or the one of a
                secondary or expression index.
            name: of a secondary or expression index; default: its column's.
            function: of an expression index: ``lower``, ``year``, ``from_unixtime`` ...
            function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``.
            options: numbers of file groups, ``hoodie.metadata.record.level.index.enable`` for a record index whose
                keys are unique in their partition, locks.
            spark: a Spark session: the table is read and the index written in tasks there. Without, in threads.
            plan: carry out this one; ``kind`` and what describes it stay away.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or another program builds an index.
            CommitError: it failed; the table is as before.
            ConfigError: the table cannot have that index.
            InvalidDataError: rows that cannot be indexed, such as two with one key.
            UnsupportedFeatureError: the index is of a form that is not supported.
        """
        settings = self._settings(options)
        runner = (
            index_threads(settings.write.threads or min(_MOST_THREADS, os.cpu_count() or 1))
            if spark is None
            else self._index_on_spark(spark)
        )
        if plan is not None:
            return run_scheduled_index(self._storage, plan, settings, runner)
        return build_index(self._storage, _request(kind, columns, name, function, function_options), settings, runner)

    def plan_index(
        self,
        kind: str,
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> ScheduledIndex | None:
        """Put an indexing on the timeline for somebody to carry out; arguments and errors as of :meth:`index`.

        Returns:
            The plan, to look at or to pass to :meth:`index`; None when the index is there.
        """
        request = _request(kind, columns, name, function, function_options)
        return schedule_index(self._storage, request, self._settings(options))

    def drop_index(self, name: str, options: Options | None = None) -> tuple[str, ...]:
        """Take an index away; the partitions of the metadata table that are gone.

        ``partition_stats`` goes with ``column_stats``, all with ``files``. A later write whose options ask for the
        index makes it again.

        Args:
            name: ``column_stats``, ``record_index`` ..., or the name of a secondary or expression index.
            options: locks.

        Raises:
            ConfigError: there is no such index, or another one rests on it.
        """
        return drop_index(self._storage, name, self._settings(options))

    def indexes(self) -> pa.Table:
        """One row per partition of the metadata table, those that are planned or being built among them."""
        return indexes_table(open_state(self._storage))

    def pending_indexes(self) -> list[ScheduledIndex]:
        """Indexings that wait on the timeline, oldest first."""
        return scheduled_indexes(open_state(self._storage))

    def validate(
        self, partitions: Sequence[str] = (), most: int = 1000, options: Options | None = None
    ) -> ValidationResult:
        """Compare the metadata table with the files and rows of the table; nothing is written.

        Args:
            partitions: which partitions of the metadata table; empty for all.
            most: differences that are listed of each; all of them are counted.
            options: how rows merge, ``hudi_fast.threads``.

        Raises:
            ConfigError: there is no such partition.
            CorruptTableError: a file of the table itself cannot be understood.
            UnsupportedFeatureError: the table merges its rows in a way that is not supported.
        """
        return validate_metadata(self._storage, self._settings(options), tuple(partitions), most)

    def upgrade(self, version: int, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise _unsupported("Changing the table version")

    def _settings(self, options: Options | None) -> ServiceSettings:
        settings = ServiceSettings.from_options(options, self._merger)
        settings.check_storage(self._storage)
        return settings


def _request(
    kind: str,
    columns: Sequence[str],
    name: str | None,
    function: str | None,
    function_options: Mapping[str, str] | None,
) -> IndexRequest:
    named = (columns,) if isinstance(columns, str) else tuple(columns)
    return IndexRequest(kind, named, name, function, dict(function_options or {}))


def _unsupported(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} is not supported yet. Use Apache Hudi for it.")
