"""``HudiTable.services``: clustering."""

from __future__ import annotations

import time
from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.clustering.bucket_resize import resize_buckets
from hudi_fast.services.compaction.work import CompactionResult, combined_result
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["ClusteringVerbs"]


class ClusteringVerbs(ServiceVerbs):
    """Rewriting file groups into others."""

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
            raise UnsupportedFeatureError("Clustering on Spark is not supported yet. Use Apache Hudi for it.")
        started = time.monotonic()
        done = resize_buckets(self._storage, self._settings(options))
        return combined_result("cluster", done, time.monotonic() - started)
