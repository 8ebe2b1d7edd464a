"""Decode instants into the columns of a history row."""

from __future__ import annotations

from collections.abc import Callable

from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.index_plans import decode_index_metadata
from hudi_fast.timeline.instant import WRITE_ACTIONS
from hudi_fast.timeline.plans import decode_clean_metadata, decode_rollback_metadata, decode_savepoint
from hudi_fast.timeline.restore_plans import decode_restore_metadata
from hudi_fast.timeline.service_plans import decode_compaction_plan, decode_requested_replace

__all__ = ["describe_completed", "describe_pending"]

Details = dict[str, object]


def describe_completed(action: str, body: bytes, path: str | None) -> Details:
    """History columns from the body of a completed instant.

    ``body`` is empty for a commit without content; ``path`` is None for the archive.

    Raises:
        CorruptTableError: it is invalid.
    """
    if action in WRITE_ACTIONS:
        return _commit(decode_commit_metadata(body, path))
    describe = _BODIES.get(action)
    return {} if describe is None else describe(body, path)


def describe_pending(action: str, plan: bytes) -> Details:
    """History columns from the plan of a pending instant.

    ``plan`` is empty for actions without a plan.

    Raises:
        CorruptTableError: it is invalid.
    """
    if action in ("compaction", "logcompaction"):
        return {"groups_read": len(decode_compaction_plan(plan).operations)}
    if action in ("clustering", "replacecommit") and plan:
        clustering = decode_requested_replace(plan).clustering
        if clustering is not None:
            return {"operation": "CLUSTER", "groups_read": sum(len(group.slices) for group in clustering.groups)}
    return {}


def _commit(commit: CommitMetadata) -> Details:
    stats = list(commit.write_stats())
    touched = {stat.partition_path for stat in stats} | set(commit.partition_to_replace_file_ids or {})
    groups = {(stat.partition_path, stat.file_id) for stat in stats}
    replaced = sum(len(set(ids)) for ids in (commit.partition_to_replace_file_ids or {}).values())
    details: Details = {
        "operation": commit.operation_type,
        "inserts": sum(stat.num_inserts for stat in stats),
        "updates": sum(stat.num_update_writes for stat in stats),
        "deletes": sum(stat.num_deletes for stat in stats),
        "files": len(stats),
        "bytes": sum(stat.total_write_bytes for stat in stats),
        "partitions": len(touched),
    }
    if commit.operation_type in ("COMPACT", "LOG_COMPACT", "CLUSTER"):
        read = replaced if commit.operation_type == "CLUSTER" else len(groups)
        details |= {"groups_read": read, "groups_written": len(groups)}
    return details


def _clean(body: bytes, path: str | None) -> Details:
    parts = decode_clean_metadata(body, path).partitions
    touched = sum(1 for part in parts if part.deleted or part.failed or part.partition_deleted)
    failed = sum(len(part.failed) for part in parts)
    note = f"{failed} files could not be deleted" if failed else None
    return {"files_deleted": sum(len(part.deleted) for part in parts), "partitions": touched, "note": note}


def _rollback(body: bytes, path: str | None) -> Details:
    done = decode_rollback_metadata(body, path)
    return {
        "files_deleted": sum(len(part.deleted) for part in done.partitions),
        "partitions": len(done.partitions),
        "rolled_back": [done.instant],
    }


def _restore(body: bytes, path: str | None) -> Details:
    done = decode_restore_metadata(body, path)
    parts = [part for rollback in done.rollbacks.values() for part in rollback.partitions]
    return {
        "files_deleted": sum(len(part.deleted) for part in parts),
        "partitions": len({part.partition_path for part in parts}),
        "rolled_back": [requested for requested, _ in done.instants],
    }


def _savepoint(body: bytes, path: str | None) -> Details:
    saved = decode_savepoint(body, path)
    return {"partitions": len(saved.files), "comment": saved.comments}


def _indexing(body: bytes, path: str | None) -> Details:
    return {"comment": ", ".join(part.partition for part in decode_index_metadata(body, path))}


_BODIES: dict[str, Callable[[bytes, str | None], Details]] = {
    "clean": _clean,
    "rollback": _rollback,
    "restore": _restore,
    "savepoint": _savepoint,
    "indexing": _indexing,
}
