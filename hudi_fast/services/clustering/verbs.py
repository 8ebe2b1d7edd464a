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
    """Rewriting file groups into others."""

    def plan_cluster(self, options: Options | None = None, dry_run: bool = False) -> ScheduledClustering | None:
        """Put a clustering on the timeline for somebody to carry out: :meth:`cluster`, or Apache Hudi.

        Writers go on meanwhile. Inserts go to other file groups; what changes rows of a planned one is refused, or has
        the clustering fail: ``hoodie.clustering.updates.strategy``.

        Args:
            options: which file groups, and how they are to be rewritten. Without ``hoodie.clustering.inline``,
                ``.schedule.inline`` and ``.async.enabled`` it is due now, else after as many commits as they say.
            dry_run: only say what would be planned: nothing is written, and the instant of the result is empty.

        Returns:
            The plan, to look at or to pass to :meth:`cluster`; None when there is nothing to cluster.

        Raises:
            ConfigError: an option is wrong, or does not go with the table.
            UnsupportedFeatureError: an unknown strategy, or a table with a bucket index.
        """
        return schedule_clustering(self._session(options), dry_run)

    def cluster(
        self,
        options: Options | None = None,
        spark: Any = None,
        plan: ScheduledClustering | None = None,
        pending_only: bool = False,
    ) -> ClusteringResult:
        """Rewrite small file groups into larger ones, sorted if that is asked for; rows keep their commit time.

        Clusterings that wait on the timeline are carried out first, then a new one is planned and carried out. Those
        that writers have made untrue are rolled back. Of a table of consistent hashing the large buckets are split and
        neighbouring small ones merged, without a plan and in threads of this process; writers wait meanwhile.

        Args:
            options: as for :meth:`plan_cluster`, and those that say how base files are written; for consistent hashing
                ``hoodie.bucket.index.min.num.buckets``, ``.max.num.buckets``, ``.split.threshold``,
                ``.merge.threshold`` and ``.hash.field``.
            spark: a Spark session: groups are rewritten by its tasks. Without, in threads.
            plan: carry out this one alone.
            pending_only: plan nothing new.

        Raises:
            CommitConflictError: ``plan`` is no longer pending, or writers changed its file groups: then it is rolled
                back.
            CommitError: it failed, and waits on the timeline again.
            ConfigError: an option is wrong, or does not go with the table.
            CorruptTableError: a file of a plan is gone.
            UnsupportedFeatureError: an unknown strategy, or a table that is not supported.

        Warns:
            HudiWarning: a clustering that waited was rolled back, because writers had changed its file groups.
        """
        started = time.monotonic()
        check_plan(plan, ScheduledClustering)
        session = self._session(options, spark)
        if plan is not None:
            done = [run_clustering(session, plan)]
        else:
            done = cluster(session, pending_only)
        return combined_result(done, time.monotonic() - started)
