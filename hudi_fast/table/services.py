"""``HudiTable.services``: the services of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_fast.catalogs.sync import SyncedTable
from hudi_fast.config.words import checked_options
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.inspecting.results import Shown, html_table, text_block
from hudi_fast.services.archive import ArchivePlan, ArchiveResult, archive, plan_archive
from hudi_fast.services.clean import clean
from hudi_fast.services.clean_plan import schedule_clean
from hudi_fast.services.clustering.cluster import cluster
from hudi_fast.services.clustering.cluster_plan import ScheduledClustering, schedule_clustering
from hudi_fast.services.clustering.cluster_work import ClusteringResult
from hudi_fast.services.compact import compact, compact_logs, schedule_log_compaction
from hudi_fast.services.compact_plan import ScheduledCompaction, schedule_compaction
from hudi_fast.services.expiry import TtlPlan, TtlResult, delete_expired, plan_expired, require_retention
from hudi_fast.services.index_build import IndexResult, build_index, drop_index, run_scheduled_index
from hudi_fast.services.index_plan import IndexRequest, ScheduledIndex, indexes_table, schedule_index, scheduled_indexes
from hudi_fast.services.inline import sync_catalogs
from hudi_fast.services.merge_slices import CompactionResult
from hudi_fast.services.pending import PendingResult, pending_services, pending_table, run_pending_services
from hudi_fast.services.retention import CleanResult, ScheduledClean
from hudi_fast.table.recovery import Options, RecoveryServices, check_plan
from hudi_fast.view.table_state import load_state

__all__ = ["TableServices"]


class TableServices(Shown, RecoveryServices):
    """The services of one table. Each call opens the table again.

    Args:
        storage: the table's storage.
        merger: merges rows of a table with the merge mode CUSTOM; else None.

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

    def __repr__(self) -> str:
        return f"HudiTable({self._storage.uri!r}).services"

    def __str__(self) -> str:
        """The calls, and what they do."""
        return text_block(repr(self), self._calls())

    def _repr_html_(self) -> str:
        """HTML for notebooks: the calls, and what they do."""
        calls = html_table(("", ""), self._calls(), "")
        return f"<div><b>services</b> <code>{escape(self._storage.uri)}</code>{calls}</div>"

    @classmethod
    def _calls(cls) -> list[tuple[str, str]]:
        named = [(name, getattr(cls, name)) for name in sorted(dir(cls)) if not name.startswith("_")]
        return [(f"{name}()", (call.__doc__ or "").partition("\n")[0]) for name, call in named]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from hudi_fast.config.words import SERVICE_GUESSES, missing, new_name

            known = dir(type(self))
            present = new_name("services", name, known)
            if present is None:
                raise missing("services", name, SERVICE_GUESSES, known)
            return getattr(self, present)

    # ---- Compaction

    def plan_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """The file slices that :meth:`compact` would merge now, as :meth:`schedule_compact`; nothing is written."""
        session = self._session(options)
        return schedule_compaction(session, session.settings.compaction.has_trigger, dry_run=True)

    def schedule_compact(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a compaction plan on the timeline. :meth:`compact` or Apache Hudi can execute it.

        Writers continue; their log files belong to the file slice that begins at the compaction.

        Args:
            options: strategy, bounds and trigger. Without a trigger option compaction is due now.

        Returns:
            The plan, to inspect or to pass to :meth:`compact`; None when there is nothing to compact.

        Raises:
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.

        Example:
            >>> result = hf.write(pa.table({"id": [1], "fare": [5.0]}), path, options)
            >>> plan = services.schedule_compact()
            >>> services.compact(plan=plan).instant == plan.instant
            True
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
            options: as for :meth:`schedule_compact`, and options for base files.
            spark: a Spark session: one task merges each file slice. None for threads of this process.
            plan: execute only this plan, of :meth:`schedule_compact`.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending, or another process runs a compaction.
            CommitError: it failed, and is pending again.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table or the strategy is not supported.

        Example:
            >>> services.compact().instant  # nothing is left to compact
            ''
        """
        check_plan(plan, ScheduledCompaction)
        return compact(self._session(options, spark), plan, pending_only)

    def plan_compact_logs(self, options: Options | None = None) -> ScheduledCompaction | None:
        """The file slices whose log files :meth:`compact_logs` would merge now; nothing is written."""
        session = self._session(options)
        return schedule_log_compaction(session, session.settings.compaction.has_log_trigger, dry_run=True)

    def schedule_compact_logs(self, options: Options | None = None) -> ScheduledCompaction | None:
        """Put a log compaction plan on the timeline; see :meth:`schedule_compact`."""
        session = self._session(options)
        return schedule_log_compaction(session, session.settings.compaction.has_log_trigger)

    def compact_logs(
        self, options: Options | None = None, *, spark: Any = None, plan: ScheduledCompaction | None = None
    ) -> CompactionResult:
        """Merge the log files of each file slice into one; base files stay.

        Pending log compactions are executed first, unless their slices were compacted in the meantime; then a new one
        is planned and executed. It includes slices with at least ``hoodie.log.compaction.blocks.threshold`` log files
        or blocks.

        Args:
            options: the threshold, and options for log files.
            spark: a Spark session: one task merges each file slice. None for threads of this process.
            plan: execute only this plan, one that was scheduled.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending, or out of date.
            CommitError: it failed; the table is as before.
            ConfigError: the table is not MERGE_ON_READ, or an option is wrong.
            UnsupportedFeatureError: the table is not supported.
        """
        check_plan(plan, ScheduledCompaction)
        return compact_logs(self._session(options, spark), plan)

    # ---- Clustering

    def plan_cluster(self, options: Options | None = None) -> ScheduledClustering | None:
        """The file groups that :meth:`cluster` would rewrite now, as :meth:`schedule_cluster`; nothing is written."""
        return schedule_clustering(self._session(options), dry_run=True)

    def schedule_cluster(self, options: Options | None = None) -> ScheduledClustering | None:
        """Put a clustering plan on the timeline. :meth:`cluster` or Apache Hudi can execute it.

        Writers continue. Inserts use other file groups. A write that changes rows of a planned file group is refused,
        or makes the clustering fail: see ``hoodie.clustering.updates.strategy``.

        Args:
            options: which file groups to rewrite, and how. Without ``hoodie.clustering.inline``, ``.schedule.inline``
                and ``.async.enabled`` clustering is due now, else after the number of commits that they configure.

        Returns:
            The plan, to inspect or to pass to :meth:`cluster`; None when there is nothing to cluster.

        Raises:
            ConfigError: an option is wrong, or does not fit the table.
            UnsupportedFeatureError: an unknown strategy, or a table with a bucket index.
        """
        return schedule_clustering(self._session(options))

    def cluster(
        self,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: ScheduledClustering | None = None,
        pending_only: bool = False,
    ) -> ClusteringResult:
        """Rewrite small file groups into larger ones, sorted if the options ask for it; rows keep their commit time.

        Pending clusterings are executed first, then a new one is planned and executed. A pending clustering whose file
        groups writers have changed is rolled back. With consistent hashing, large buckets are split and neighbouring
        small ones merged, without a plan; writers wait until that is done.

        Args:
            options: as for :meth:`schedule_cluster`, and options for base files; for consistent hashing
                ``hoodie.bucket.index.min.num.buckets``, ``.max.num.buckets``, ``.split.threshold``,
                ``.merge.threshold`` and ``.hash.field``.
            spark: a Spark session: its tasks rewrite the groups. None for threads of this process.
            plan: execute only this plan, one that was scheduled.
            pending_only: plan nothing new.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or writers changed its file groups: then it is rolled
                back.
            CommitError: it failed, and is pending again.
            ConfigError: an option is wrong, or does not fit the table.
            CorruptTableError: a file of a plan is missing.
            UnsupportedFeatureError: an unknown strategy, or a table that is not supported.

        Warns:
            HudiWarning: a pending clustering was rolled back, because writers had changed its file groups.

        Example:
            >>> services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "fare"}).instant != ""
            True
        """
        check_plan(plan, ScheduledClustering)
        return cluster(self._session(options, spark), plan, pending_only)

    # ---- Cleaning

    def plan_clean(self, options: Options | None = None) -> ScheduledClean | None:
        """The files that :meth:`clean` would delete now, as :meth:`schedule_clean`; nothing is written."""
        session = self._session(options)
        return schedule_clean(session, session.settings.clean.has_trigger, dry_run=True)

    def schedule_clean(self, options: Options | None = None) -> ScheduledClean | None:
        """Put a clean plan on the timeline. :meth:`clean` or Apache Hudi can execute it.

        Args:
            options: policy, retention and trigger. Without a trigger option a clean is due now.

        Returns:
            The plan, to inspect or to pass to :meth:`clean`: a pending one if there is one, else a new one. None when
            there is nothing to delete.

        Raises:
            CommitConflictError: the table is being restored.
            ConfigError: an option is wrong.
        """
        session = self._session(options)
        return schedule_clean(session, session.settings.clean.has_trigger)

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
            options: as for :meth:`schedule_clean`.
            spark: a Spark session: its tasks delete files when there are many. None for threads of this process.
            plan: execute only this plan, of :meth:`schedule_clean`.
            pending_only: plan nothing new.

        Raises:
            ServiceTakenError: ``plan`` is no longer pending.
            CommitConflictError: a file of ``plan`` must stay now: a savepoint, a service or a query needs it. Nothing
                was deleted.
            CommitError: storage failed; the clean stays pending, and the next one executes it.
            ConfigError: an option is wrong.
            CorruptTableError: a pending plan names a file that is not a data file of the table. Nothing was deleted.

        Example:
            >>> services.clean({"hoodie.clean.commits.retained": 1}).files_deleted
            0
        """
        check_plan(plan, ScheduledClean)
        return clean(self._session(options, spark), plan, pending_only)

    # ---- Archiving

    def plan_archive(self, options: Options | None = None) -> ArchivePlan:
        """List the instants that :meth:`archive` would archive now, and the reason for the limit; nothing is written.

        Args:
            options: ``hoodie.keep.min.commits`` and ``.max.commits``, ``hoodie.archive.beyond.savepoint``, retention of
                cleaning, and trigger of compaction: instants that cleaning or compaction needs stay.

        Raises:
            ConfigError: an option is wrong.
        """
        return plan_archive(self._session(options))

    def archive(self, options: Options | None = None, plan: ArchivePlan | None = None) -> ArchiveResult:
        """Move the oldest instants from the active timeline to the archived one.

        With more than ``hoodie.keep.max.commits`` complete writes, the oldest are archived until
        ``hoodie.keep.min.commits`` remain. Cleans and rollbacks between them are archived, too, and then instants of
        the metadata table. No row changes. Writers wait until the archiving ends.

        Args:
            options: as for :meth:`plan_archive`, and options for the files of the archive.
            plan: archive exactly these instants.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table. Nothing was changed.
            CommitError: storage failed; no instant is lost, and the next run continues.
            ConfigError: an option is wrong.
            LockTimeoutError: other processes held the table's lock.
        """
        check_plan(plan, ArchivePlan)
        return archive(self._session(options), plan)

    # ---- Time to live of partitions

    def plan_expire_partitions(self, options: Options | None = None) -> TtlPlan:
        """The partitions that :meth:`expire_partitions` would delete now; nothing is written.

        Args:
            options: ``hoodie.partition.ttl.*``; ``hoodie.partition.ttl.strategy.days.retain`` is required.

        Raises:
            ConfigError: an option is wrong, or the number of days is missing.
        """
        session = self._session(options)
        require_retention(session.settings.ttl)
        return plan_expired(session)

    def expire_partitions(self, options: Options | None = None) -> TtlResult:
        """Delete the partitions that have expired, in one replace commit.

        Partitions on which a compaction or clustering is pending stay until the next call. A clean removes the files
        later; until then time travel still reads them.

        Args:
            options: as for :meth:`plan_expire_partitions`.

        Raises:
            ConfigError: an option is wrong, or the number of days is missing.
            CommitConflictError: another writer changed an expired partition in the meantime. Nothing was deleted.
            HudiError: as for a write.
        """
        session = self._session(options)
        require_retention(session.settings.ttl)
        return delete_expired(session)

    # ---- Indexes

    def index(
        self,
        kind: str = "",
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
        *,
        spark: Any = None,
        plan: ScheduledIndex | None = None,
    ) -> IndexResult:
        """Build an index and the indexes that it requires, while readers and writers continue.

        Nothing happens when the index exists. A missing metadata table is built first. A pending plan for the index is
        executed as planned.

        Args:
            kind: ``column_stats``, ``partition_stats``, ``bloom_filters``, ``record_index``, ``secondary_index``,
                ``expr_index``, or ``files`` for the metadata table alone.
            columns: columns of ``column_stats`` (default: the first 32 that can have statistics), or the one column of
                a secondary or expression index.
            name: of a secondary or expression index; default: the name of its column.
            function: of an expression index: ``lower``, ``year``, ``from_unixtime`` ...
            function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``; of bloom filters ``numentries``,
                ``fpp``, ``filtertype`` and ``maxentries``.
            options: numbers of file groups, ``hoodie.metadata.record.level.index.enable`` for a record index whose
                keys are unique in their partition, ``hoodie.expression.index.type=bloom_filters`` for an expression
                index of bloom filters, locks.
            spark: a Spark session: its tasks read the table and write the index. None for threads of this process.
            plan: execute this plan; leave out ``kind`` and the arguments that describe an index.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or another process builds an index.
            CommitError: it failed; the table is as before.
            ConfigError: the table cannot have that index.
            InvalidDataError: the table's rows cannot be indexed, such as two rows with one key.
            UnsupportedFeatureError: the form of the index is not supported.

        Example:
            >>> services.index("record_index").partitions
            ('record_index',)
        """
        check_plan(plan, ScheduledIndex)
        session = self._session(options, spark)
        if plan is not None:
            return run_scheduled_index(session, plan)
        return build_index(session, _request(kind, columns, name, function, function_options))

    def plan_index(
        self,
        kind: str,
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> ScheduledIndex | None:
        """The partitions of the metadata table that :meth:`index` would build; nothing is written."""
        request = _request(kind, columns, name, function, function_options)
        return schedule_index(self._session(options), request, dry_run=True)

    def schedule_index(
        self,
        kind: str,
        columns: Sequence[str] = (),
        name: str | None = None,
        function: str | None = None,
        function_options: Mapping[str, str] | None = None,
        options: Options | None = None,
    ) -> ScheduledIndex | None:
        """Put an indexing plan on the timeline; arguments and errors as for :meth:`index`.

        Returns:
            The plan, to inspect or to pass to :meth:`index`; None when the index exists.
        """
        request = _request(kind, columns, name, function, function_options)
        return schedule_index(self._session(options), request)

    def drop_index(self, name: str, options: Options | None = None) -> tuple[str, ...]:
        """Drop an index; returns the dropped partitions of the metadata table.

        Dropping ``column_stats`` drops ``partition_stats``; dropping ``files`` drops all. A later write whose options
        ask for the index builds it again.

        Args:
            name: ``column_stats``, ``record_index`` ..., or the name of a secondary or expression index.
            options: locks.

        Raises:
            ConfigError: there is no such index, or another index requires it.
        """
        return drop_index(self._session(options), name)

    def indexes(self) -> pa.Table:
        """One row per partition of the metadata table, including partitions that are planned or being built."""
        return indexes_table(open_state(self._storage))

    def pending_indexes(self) -> list[ScheduledIndex]:
        """Pending indexings, oldest first."""
        return scheduled_indexes(open_state(self._storage))

    # ---- Pending services

    def pending(self, options: Options | None = None) -> pa.Table:
        """List pending services, oldest first, one row each.

        Columns: ``instant``, ``action`` and ``state`` as on the timeline; ``service``, the verb that executes it
        (``compact``, ``compact_logs``, ``cluster``, ``clean``, ``index``, ``rollback``, ``restore``); ``file_groups``,
        the number of file groups in its plan (null for plans without file groups); ``alive``, whether a live process
        runs it; ``seconds`` since it was requested. An INFLIGHT service that is not alive is abandoned: the next call
        of its verb, or :meth:`run_pending`, executes it.

        Args:
            options: ``hoodie.client.heartbeat.interval_in_ms`` and ``.tolerable.misses``.

        Raises:
            CorruptTableError: a plan is damaged.

        Example:
            >>> services.pending().num_rows
            0
        """
        return pending_table(pending_services(load_state(self._storage), self._session(options).settings))

    def run_pending(self, options: Options | None = None, *, spark: Any = None) -> list[PendingResult]:
        """Execute pending services, oldest first, abandoned ones included; nothing new is planned.

        Services that another process runs or has completed are skipped. Abandoned rollbacks are finished, too. An
        abandoned restore comes first.

        Args:
            options: as for the services.
            spark: a Spark session: its tasks do the work. None for threads of this process.

        Returns:
            The result of each executed service, as its verb returns it.

        Raises:
            ConfigError: an abandoned restore does not name its savepoint.
            HudiError: a service failed, and is pending again. A note says how many were executed before it; their
                results stay.
        """
        return run_pending_services(self._session(options, spark))

    # ---- Catalogs

    def sync(self, options: Options | None = None, *, spark: Any = None) -> list[SyncedTable]:
        """Bring the table's entries in a Hive metastore up to date; the table itself is not changed.

        Args:
            options: ``hoodie.datasource.hive_sync.*``, ``hoodie.datasource.meta.sync.*``, ``hoodie.meta.sync.*``. The
                catalogs need not be enabled.
            spark: a Spark session: its metastore is the default one.

        Returns:
            The result for each table of the catalog.

        Raises:
            CatalogError: the catalog refuses or does not answer.
            ConfigError: no metastore is named, or a partition path does not fit the partition columns.
            UnsupportedFeatureError: a column has a type that catalogs do not have.
        """
        given = {"hoodie.datasource.meta.sync.enable": "true", **(checked_options(options) or {})}
        session = self._session(given, spark)
        return sync_catalogs(session, session.settings.sync.named_catalogs)


def _request(
    kind: str,
    columns: Sequence[str],
    name: str | None,
    function: str | None,
    function_options: Mapping[str, str] | None,
) -> IndexRequest:
    named = (columns,) if isinstance(columns, str) else tuple(columns)
    return IndexRequest(kind, named, name, function, dict(function_options or {}))
