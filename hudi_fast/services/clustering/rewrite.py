"""Rewrites one group of a clustering into new file groups: the unit of work.

::

    nothing to sort or merge, files can be copied ── row groups, as bytes ────────────────────┐
    else: slices ─► merged rows ─► sorted, if required (in memory, or with local disk) ───────┴─► new file groups

Rows keep commit time, sequence number, key and partition path; only their file name changes. Old file groups are not
modified. Buckets of a simple bucket index are rewritten one by one.

Source: ``MultipleSparkJobExecutionStrategy``, ``SparkStreamCopyClusteringExecutionStrategy`` (Hudi 1.2.0).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from hudi_fast.services.clustering.ahead import ahead
from hudi_fast.services.clustering.copying import copy_row_groups
from hudi_fast.services.clustering.new_files import NewFiles
from hudi_fast.services.clustering.ordered_rows import ordered_rows
from hudi_fast.services.clustering.rows import GroupInput, group_input, known_keys
from hudi_fast.services.clustering.work import ClusteringWork
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup
from hudi_fast.writing.plan import TaskToken

__all__ = ["ROWS_MEMORY", "rewrite_group", "rewrite_rows"]

ROWS_MEMORY = 1 << 30
"""Arrow bytes of rows that all groups together hold while they are sorted."""


def rewrite_group(work: ClusteringWork, group: ClusteringGroup, token: TaskToken) -> list[WriteStat]:
    """Rewrite the file slices of one group.

    Args:
        work: the clustering.
        group: of its plan.
        token: the task that writes.

    Returns:
        One stat for each new file group; ``copied_row_groups`` counts row groups copied as bytes, or
        ``decoded_because`` says why none could be.

    Raises:
        CommitError: the clustering has ended, and this task is outdated.
        ConfigError: a sort column does not exist.
        CorruptTableError: a file of the group is missing or damaged.
        UnsupportedFeatureError: the type of a sort column is not sortable, or the group has several partitions.
    """
    if work.keeps_buckets and (len(group.slices) > 1 or group.output_groups > 1):
        buckets = [replace(group, slices=(one,), output_groups=1) for one in group.slices]
        return [stat for one in buckets for stat in rewrite_group(work, one, token)]
    source = group_input(work, group)
    copied = copy_row_groups(source, token)
    if not isinstance(copied, str):
        return copied
    at_once = min(work.plan.files.threads, work.group_count)
    stats = rewrite_rows(source, token, ROWS_MEMORY // max(at_once, 1))
    return [replace(stat, decoded_because=copied) for stat in stats]


def rewrite_rows(source: GroupInput, token: TaskToken, memory: int) -> list[WriteStat]:
    """Read the rows of a group, and write them into new file groups.

    Args:
        source: the group.
        token: the task that writes.
        memory: Arrow bytes of rows that may be held for sorting.
    """
    known = known_keys(source)
    rows = ordered_rows(source, known.rows, memory)
    with (
        closing(ahead(rows.tables, source.threads)) as tables,
        NewFiles(source, token, rows.count, known.filter) as files,
    ):
        for table in tables:
            files.write(table)
        return files.finish()
