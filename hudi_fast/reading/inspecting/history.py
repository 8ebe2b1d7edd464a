"""The history of a table: one row per instant.

::

    the timeline's listing (and the archive) ─► instants from begin to end ─► the body of each ─► one row

A completed instant records its results; the plan of a pending one lists file groups. If a body is invalid, its row
lacks the details and ``note`` holds the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.instants import (
    WRITE_ACTIONS,
    Instant,
    State,
    Timeline,
    comparable_action,
    ms_from_instant,
    parse_instant_file,
    read_instant_body,
    read_requested_body,
)
from hudi_fast.timeline.plans import decode_clean_metadata, decode_rollback_metadata, decode_savepoint
from hudi_fast.timeline.service_plans import (
    decode_compaction_plan,
    decode_index_metadata,
    decode_requested_replace,
    decode_restore_metadata,
)
from hudi_fast.values import dataclass

__all__ = ["HISTORY_SCHEMA", "describe_completed", "describe_pending", "history_table"]

_THREADS = 8

HISTORY_SCHEMA = pa.schema(
    {
        "instant": pa.string(),
        "completion": pa.string(),
        "action": pa.string(),
        "state": pa.string(),
        "operation": pa.string(),
        "duration_ms": pa.int64(),
        "inserts": pa.int64(),
        "updates": pa.int64(),
        "deletes": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "partitions": pa.int64(),
        "groups_read": pa.int64(),
        "groups_written": pa.int64(),
        "files_deleted": pa.int64(),
        "rolled_back": pa.list_(pa.string()),
        "comment": pa.string(),
        "archived": pa.bool_(),
        "note": pa.string(),
    }
)
"""The columns of :func:`history_table`."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Times when the files of an instant were written, in milliseconds since the epoch.

    Attributes:
        begun: time of the first file before completion.
        done: time of the completed file; None while the instant is pending.
    """

    begun: int | None = None
    done: int | None = None


def history_table(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    begin: str | None = None,
    end: str | None = None,
    archived: bool = False,
) -> pa.Table:
    """One row per instant, oldest first; the columns are :data:`HISTORY_SCHEMA`.

    ``duration_ms`` is the time from request to completion; before timeline layout 2 the difference of the modification
    times of its files. Savepoints have none, since they use the time of their commit. ``inserts``, ``updates`` and
    ``deletes`` count rows in the write statistics; ``files`` and ``bytes`` count written files, ``partitions`` changed
    partitions. ``groups_read`` and ``groups_written`` count file groups of compactions and clusterings. ``rolled_back``
    lists the instants that a rollback or restore removed. ``comment`` is a savepoint's, or the names of the indexes
    that were built.

    ``begin`` and ``end`` bound the requested times, inclusive; None for no bound.

    Raises:
        CorruptTableError: the archive cannot be read.
    """
    chosen = [one for one in timeline.instants if _within(one.requested, begin, end)]
    spans = _file_times(storage, config) if config.layout_version < 2 else {}

    def row(instant: Instant) -> dict[str, object]:
        return _active_row(storage, config, instant, spans.get(_key(instant), _Span()))

    with ThreadPool(_THREADS) as pool:
        rows = list(pool.map(row, chosen))
    if archived:
        known = {_key(one) for one in timeline.instants}
        rows = [*_archived_rows(storage, config, begin, end, known), *rows]
        rows.sort(key=lambda one: (str(one["instant"]), str(one["action"])))
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)


def _active_row(storage: Storage, config: TableConfig, instant: Instant, span: _Span) -> dict[str, object]:
    row = _plain_row(instant, config, span)
    try:
        if instant.state is State.COMPLETED:
            body = read_instant_body(storage, config, instant)
            return row | describe_completed(instant.action, body, f"{config.timeline_folder}/{instant.file_name}")
        if instant.action != "savepoint":
            row |= describe_pending(instant.action, read_requested_body(storage, config, instant))
    except CorruptTableError as error:
        row["note"] = str(error)
    return row


def _archived_rows(
    storage: Storage, config: TableConfig, begin: str | None, end: str | None, known: set[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    """Rows of archived instants, without instants that are still active after an interrupted archiving."""
    for one in ArchivedTimeline(storage, config).read(begin, end):
        instant = Instant(one.requested, one.action, State.COMPLETED, one.completion or None)
        if _key(instant) in known or not _within(one.requested, begin, end):
            continue
        row = _plain_row(instant, config, _Span()) | {"archived": True}
        try:
            yield row | describe_completed(one.action, one.metadata or b"", None)
        except CorruptTableError as error:
            yield row | {"note": str(error)}


def _plain_row(instant: Instant, config: TableConfig, span: _Span) -> dict[str, object]:
    return {
        "instant": instant.requested,
        "completion": instant.completion,
        "action": instant.action,
        "state": instant.state.name,
        "duration_ms": _duration(instant, config, span),
        "archived": False,
    }


def _duration(instant: Instant, config: TableConfig, span: _Span) -> int | None:
    """Duration in milliseconds; None while the instant is pending, and where the times do not tell."""
    begun, done = span.begun, span.done
    if instant.completion is None or instant.requested.startswith("0000"):
        return None
    if instant.action == "savepoint":  # a savepoint has the requested time of its commit
        return None
    if begun is None or done is None:
        try:
            begun, done = (ms_from_instant(time, config.timezone) for time in (instant.requested, instant.completion))
        except CorruptTableError:
            return None
    return done - begun if done >= begun else None


def _file_times(storage: Storage, config: TableConfig) -> dict[tuple[str, str], _Span]:
    """By (requested time, action): times when the files of the instants were written."""
    begun: dict[tuple[str, str], int] = {}
    done: dict[tuple[str, str], int] = {}
    for entry in storage.list_dir(config.timeline_folder):
        instant = None if entry.is_dir else parse_instant_file(entry.name, config.layout_version)
        if instant is None:
            continue
        if instant.state is State.COMPLETED:
            done[_key(instant)] = entry.modified_ms
        else:
            begun[_key(instant)] = min(begun.get(_key(instant), entry.modified_ms), entry.modified_ms)
    return {key: _Span(begun.get(key), done.get(key)) for key in begun.keys() | done.keys()}


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested, comparable_action(instant.action)


def _within(time: str, begin: str | None, end: str | None) -> bool:
    return (begin is None or time >= begin) and (end is None or time <= end)


# ---- decode instants into the columns of a history row


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
