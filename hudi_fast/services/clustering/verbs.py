"""``HudiTable.services``: clustering."""

from __future__ import annotations

import time
from typing import Any

from hudi_fast.services.clustering.plan import ScheduledClustering, schedule_clustering
from hudi_fast.services.clustering.run import cluster, run_clustering
from hudi_fast.services.clustering.work import ClusteringResult, combined_result
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["ClusteringVerbs"]


class ClusteringVerbs(ServiceVerbs):
    """Rewriting file groups into larger or sorted ones."""

    def plan_cluster(self, options: Options | None = None, dry_run: bool = False) -> ScheduledClustering | None:
        """Put a clustering plan on the timeline. :meth:`cluster` or Apache Hudi can execute it.

        Writers continue. Inserts use other file groups. A write that changes rows of a planned file group is refused,
        or makes the clustering fail: see ``hoodie.clustering.updates.strategy``.

        Args:
            options: which file groups to rewrite, and how. Without ``hoodie.clustering.inline``, ``.schedule.inline``
                and ``.async.enabled`` clustering is due now, else after the number of commits that they configure.
            dry_run: only return the plan: nothing is written, and the instant of the result is empty.

        Returns:
            The plan, to inspect or to pass to :meth:`cluster`; None when there is nothing to cluster.

        Raises:
            ConfigError: an option is wrong, or does not fit the table.
            UnsupportedFeatureError: an unknown strategy, or a table with a bucket index.
        """
        return schedule_clustering(self._session(options), dry_run)

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
            options: as for :meth:`plan_cluster`, and options for base files; for consistent hashing
                ``hoodie.bucket.index.min.num.buckets``, ``.max.num.buckets``, ``.split.threshold``,
                ``.merge.threshold`` and ``.hash.field``.
            spark: a Spark session: its tasks rewrite the groups. Without, threads of this process do.
            plan: execute only this plan.
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
        """
        started = time.monotonic()
        check_plan(plan, ScheduledClustering)
        session = self._session(options, spark)
        if plan is not None:
            done = [run_clustering(session, plan)]
        else:
            done = cluster(session, pending_only)
        return combined_result(done, time.monotonic() - started)
