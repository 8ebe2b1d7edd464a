"""The file groups that an instant changed or plans to change.

=======================================  ====================================================
instant                                  its file groups
=======================================  ====================================================
completed write, compaction, clustering  groups in its write stats, and replaced groups
pending compaction or clustering         groups in the plan of its requested file, inflight or not
pending replace commit without a plan    groups in its inflight file, if it names any
=======================================  ====================================================

Source: ``ConcurrentOperation`` (Hudi 1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import read_instant_body
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.view.pending import read_clustering_plan, read_compaction_plan
from hudi_fast.view.table_state import read_commit

__all__ = ["FileGroup", "groups_of_commit", "touched_groups"]

FileGroup = tuple[str, str]
"""Partition path and file id."""


def groups_of_commit(metadata: CommitMetadata) -> frozenset[FileGroup]:
    """The file groups that a commit wrote to or replaced."""
    written = {(stat.partition_path, stat.file_id) for stat in metadata.write_stats()}
    ended = metadata.partition_to_replace_file_ids or {}
    return frozenset(written | {(partition, one) for partition, file_ids in ended.items() for one in file_ids})


def touched_groups(storage: Storage, config: TableConfig, instant: Instant) -> frozenset[FileGroup]:
    """The file groups of an instant.

    Args:
        storage: the table's storage.
        config: its configuration.
        instant: a write, compaction or clustering, completed or pending.

    Raises:
        CorruptTableError: its metadata or plan cannot be parsed.
    """
    if instant.state is State.COMPLETED:
        return groups_of_commit(read_commit(storage, config, instant))
    if instant.action in ("compaction", "logcompaction"):
        operations = read_compaction_plan(storage, config, instant).operations
        return frozenset((one.partition_path, one.file_id) for one in operations)
    if instant.action in ("clustering", "replacecommit"):
        plan = read_clustering_plan(storage, config, instant)
        if plan is not None:
            return frozenset((one.partition_path, one.file_id) for group in plan.groups for one in group.slices)
    return _profiled_groups(storage, config, instant)


def _profiled_groups(storage: Storage, config: TableConfig, instant: Instant) -> frozenset[FileGroup]:
    """The file groups that the inflight file announces; the file is empty where it announces none."""
    if instant.state is not State.INFLIGHT:
        return frozenset()
    body = read_instant_body(storage, config, instant)
    if not body:
        return frozenset()
    stats = decode_commit_metadata(body, f"{config.timeline_folder}/{instant.file_name}").write_stats()
    return frozenset((stat.partition_path, stat.file_id) for stat in stats if stat.file_id)
