"""Savepoints: commits whose files no clean deletes, so that the table can be restored to them.

::

    make     the table's lock: is it complete, and do cleans retain it? ─► its slices ─► inflight ─► completed
    delete   the completed file, then the inflight one

A savepoint has the requested time of its commit. A failed one is removed. An abandoned inflight savepoint keeps no
files; the next call makes or deletes it again.

Source: ``SavepointActionExecutor``, ``SavepointHelpers`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitStateUnknownError, ConfigError, LockError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.undoing import SavepointResult
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State, Timeline, load_timeline, read_instant_body, read_requested_body
from hudi_fast.timeline.plans import (
    SavepointMetadata,
    decode_clean_metadata,
    decode_clean_plan,
    decode_savepoint,
    encode_savepoint,
)
from hudi_fast.timeline.transition import complete, delete_instant_files, revert_to_inflight, to_inflight
from hudi_fast.view.planned_files import checked_savepoint
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState, load_state, read_commit
from hudi_fast.writing.rollback_plan import pending_rollback_of
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import noted_on

__all__ = ["delete_savepoint", "make_savepoint", "read_savepoint", "savepoints_table"]

_ACTION = "savepoint"
_COLUMNS = pa.schema(
    [
        pa.field("instant", pa.string()),
        pa.field("completion", pa.string()),
        pa.field("made", pa.timestamp("ms", "UTC")),
        pa.field("user", pa.string()),
        pa.field("comment", pa.string()),
        pa.field("partitions", pa.int64()),
        pa.field("files", pa.int64()),
    ]
)


def make_savepoint(session: TableSession, instant: str | None, user: str, comment: str) -> SavepointResult:
    """Keep the files of a commit.

    Args:
        session: the call.
        instant: requested time of the commit; None for the newest completed one.
        user: noted in the savepoint.
        comment: noted in the savepoint.

    Raises:
        ConfigError: there is no such completed commit, it has a savepoint, or cleans do not retain it.
    """
    started, storage = time.monotonic(), session.storage
    with session.locked() as state:
        config, timeline = state.config, state.timeline
        commit = _commit_of(state, instant)
        _require_retained(state, commit)
        _require_not_undone(state, commit)
        found = _savepoint_of(timeline, commit.requested)
        if found is not None and found.is_completed:
            raise ConfigError(f"The commit {commit.requested} of {storage.uri} has a savepoint already.")
        if found is not None:  # an abandoned attempt
            delete_instant_files(storage, config, found)
        files: dict[str, tuple[str, ...]] = {}
        size = 0
        for partition, named in _files_at(state, commit):
            files[partition] = tuple(named)
            size += sum(named.values())
        clock = session.clock
        savepoint = Instant(commit.requested, _ACTION, State.INFLIGHT)
        body = encode_savepoint(SavepointMetadata(files, user, time.time_ns() // 1_000_000, comment))
        _publish(storage, config, savepoint, body, clock, timeline.newest_time)
        session.changed()
    count = sum(len(names) for names in files.values())
    return SavepointResult(commit.requested, count, size, time.monotonic() - started)


def _publish(
    storage: Storage, config: TableConfig, savepoint: Instant, body: bytes, clock: InstantClock, newest: str | None
) -> None:
    """Complete the savepoint. If that fails, it is removed, unless another process may hold the lock."""
    try:
        to_inflight(storage, config, savepoint)
        times = partial(clock.completion_time, newest)
        complete(storage, config, savepoint, body, times, confirm=clock.confirm)
    except (CommitStateUnknownError, LockError):
        raise
    except BaseException as error:
        with noted_on(error, f"Removing the savepoint of {savepoint.requested}"):
            left = _savepoint_of(load_timeline(storage, config), savepoint.requested)
            if left is not None and not left.is_completed:
                delete_instant_files(storage, config, left)
        raise


def _require_not_undone(state: TableState, commit: Instant) -> None:
    rollback = pending_rollback_of(state.storage, state.config, state.timeline, commit.requested)
    if rollback is not None:
        raise ConfigError(
            f"The commit {commit.requested} of {state.storage.uri} cannot be kept: its rollback {rollback.requested} "
            "is pending, and the next write finishes it."
        )


def delete_savepoint(session: TableSession, instant: str) -> None:
    """Delete a savepoint. Cleans may delete its files from now on.

    Raises:
        ConfigError: it does not exist, or a restore is pending.
    """
    storage = session.storage
    with session.locked() as state:
        found = _savepoint_of(state.timeline, instant)
        if found is None:
            raise ConfigError(f"The commit {instant} of {storage.uri} has no savepoint{_others(state.timeline)}.")
        if state.timeline.pending_restore is not None:
            raise ConfigError(f"{storage.uri} has a pending restore; finish it before you delete a savepoint.")
        session.require_lock()
        if found.is_completed:
            found = revert_to_inflight(storage, state.config, found)
        delete_instant_files(storage, state.config, found)
        session.changed()


def savepoints_table(storage: Storage) -> pa.Table:
    """One row per completed savepoint, oldest first: instant, completion, made, user, comment, partitions, files."""
    state = load_state(storage)
    rows = []
    for one in state.timeline.of_action(_ACTION):
        if one.is_completed:
            body = read_savepoint(state, one)
            count = sum(len(names) for names in body.files.values())
            made = (one.requested, one.completion, body.savepointed_at, body.savepointed_by, body.comments)
            rows.append((*made, len(body.files), count))
    columns = list(zip(*rows, strict=True)) or [()] * len(_COLUMNS)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, _COLUMNS.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_COLUMNS)


def read_savepoint(state: TableState, savepoint: Instant) -> SavepointMetadata:
    """The body of a completed savepoint; CorruptTableError if it is damaged."""
    path = f"{state.config.timeline_folder}/{savepoint.file_name}"
    saved = decode_savepoint(read_instant_body(state.storage, state.config, savepoint), path)
    return checked_savepoint(state.storage, saved, path)


def _commit_of(state: TableState, instant: str | None) -> Instant:
    timeline = state.timeline
    found = timeline.last_completed_write if instant is None else timeline.find(instant)
    if found is None or not any(found == one for one in timeline.writes()):
        what = "no completed commit" if instant is None else f"no completed commit {instant} on its active timeline"
        raise ConfigError(f"No savepoint can be made: {state.storage.uri} has {what}{_instead(timeline, instant)}.")
    return found


def _instead(timeline: Timeline, instant: str | None) -> str:
    """The present state of an instant that is not a completed commit, and a commit to use instead."""
    if instant is None:
        return ""
    met = [one for one in timeline.instants if one.requested == instant]
    first, newest = min((one.requested for one in timeline.instants), default=""), timeline.last_completed_write
    found = f": the {met[0].action} is {met[0].state.name.lower()}" if met else ""
    found = found or (f", which begins at {first}" if instant < first else "")
    return found + (f". The newest one is {newest.requested}" if newest is not None else "")


def _savepoint_of(timeline: Timeline, instant: str) -> Instant | None:
    return next((one for one in timeline.of_action(_ACTION) if one.requested == instant), None)


def _others(timeline: Timeline) -> str:
    known = [one.requested for one in timeline.of_action(_ACTION)]
    return f"; those with one: {', '.join(known)}" if known else ""


def _require_retained(state: TableState, commit: Instant) -> None:
    """Refuse a commit whose files a clean may have deleted, or is going to."""
    newest = state.timeline.last_completed_write
    if newest is not None and commit.requested == newest.requested:
        return
    for clean, earliest in _retained_by_cleans(state):
        if commit.requested < (earliest or clean.requested):
            raise ConfigError(
                f"The commit {commit.requested} of {state.storage.uri} cannot be savepointed: the clean "
                f"{clean.requested} retains {f'nothing before {earliest}' if earliest else 'versions, not commits'}. "
                "Choose a later commit."
            )


def _retained_by_cleans(state: TableState) -> Iterator[tuple[Instant, str]]:
    """The newest clean and planned ones, with their earliest retained commits; empty if the policy has none."""
    storage, config = state.storage, state.config
    cleans = state.timeline.of_action("clean")
    for clean in [one for one in cleans if one.is_completed][-1:]:
        body = read_instant_body(storage, config, clean)
        if body:
            yield clean, decode_clean_metadata(body).earliest_instant_to_retain
    for clean in cleans:
        if not clean.is_completed and (body := read_requested_body(storage, config, clean)):
            yield clean, decode_clean_plan(body).earliest_instant_to_retain or ""


def _files_at(state: TableState, commit: Instant) -> Iterator[tuple[str, dict[str, int]]]:
    """By partition, names and sizes of the files of the slices as of a commit, and of the files that it wrote."""
    view = open_state(state.storage, commit.requested).view
    own: dict[str, dict[str, int]] = {}
    for stat in read_commit(state.storage, state.config, commit).write_stats():
        if stat.path:  # log files that a compaction planned in the meantime puts into its own slice
            own.setdefault(stat.partition_path, {})[stat.path.rpartition("/")[2]] = stat.file_size
    for partition in sorted({*view.lister.partitions(), *own}):
        named = dict(own.get(partition, {}))
        for slice_ in latest_slices(view, partition):
            if slice_.base_file is not None:
                named[slice_.base_file.name] = slice_.base_file.size
            named.update((log.name, log.size) for log in (*slice_.log_files, *slice_.change_logs))
        if named:
            yield partition, named
