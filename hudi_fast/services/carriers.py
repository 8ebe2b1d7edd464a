"""Who does the work of services: threads of this process, or tasks of a Spark session.

Services plan and commit; what touches rows and files in number is handed to these functions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.metadata_table.updates.runner import in_threads as index_in_threads
from hudi_fast.services.clustering import execute as clustering
from hudi_fast.services.clustering.work import ClusteringExecutor
from hudi_fast.services.compaction import execute as compaction
from hudi_fast.services.compaction.work import Executor
from hudi_fast.services.deleting import Deleter
from hudi_fast.services.deleting import in_threads as delete_in_threads

__all__ = ["Carriers", "in_process"]

_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class Carriers:
    """Who does the work.

    Attributes:
        compact: merges the slices of a compaction or log compaction.
        cluster: rewrites the groups of a clustering.
        index: makes the records of the metadata table.
        delete: deletes files.
    """

    compact: Executor
    cluster: ClusteringExecutor
    index: Runner
    delete: Deleter


def in_process(threads: int | None = None) -> Carriers:
    """Threads of this process.

    Args:
        threads: that make records of the metadata table; None: as many as there are cores, eight at most. How many
            merge and rewrite files is up to the plan of the service.
    """
    index = index_in_threads(threads or min(_MOST_THREADS, os.cpu_count() or 1))
    return Carriers(compaction.in_threads, clustering.in_threads, index, delete_in_threads)
