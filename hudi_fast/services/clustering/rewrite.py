"""One group of a clustering becomes new file groups: the unit of work.

::

    nothing to sort, nothing to merge, files that allow it ── row groups, as bytes ───────────┐
    else: slices ─► rows, merged ─► put in order, if asked for (in memory, or over local disk) ┴─► new file groups

Rows stay as they are: commit time, sequence number, key and partition path; only the column that names their file is
new. Old file groups are not touched.

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
"""Arrow bytes of rows that all groups together hold while they are put in order."""


def rewrite_group(work: ClusteringWork, group: ClusteringGroup, token: TaskToken) -> list[WriteStat]:
    """Rewrite the file slices of one group.

    Args:
        work: the clustering.
        group: of its plan.
        token: who writes.

    Returns:
        One stat for each new file group; ``copied_row_groups`` says how many row groups came as bytes, or
        ``decoded_because`` why none could.

    Raises:
        CorruptTableError: a file of the group is gone.
        CommitError: the clustering is over; this task was left behind.
        ConfigError: there is no column of the name of a sort column.
        CorruptTableError: a file cannot be understood.
        UnsupportedFeatureError: rows have no order by a sort column, or the group has several partitions.
    """
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
        token: who writes.
        memory: Arrow bytes of rows that may be held to put them in order.
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
