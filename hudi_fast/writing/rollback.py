"""Undoing a failed write: its files go, then its instants, and a rollback instant says so.

::

    requested (the plan: which files) ─► inflight ─► delete files ─► delete the failed instant ─► completed

Every step can be repeated, so a rollback that died is finished by the next writer from its plan. Sources:
``MarkerBasedRollbackStrategy``, ``ListingBasedRollbackStrategy``, ``BaseRollbackActionExecutor`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.writing.markers import delete_markers, has_markers, marked_files

__all__ = ["finish_rollbacks", "roll_back"]


def finish_rollbacks(storage: Storage, config: TableConfig, timeline: Timeline, clock: InstantClock) -> int:
    """Finish rollbacks that died; how many there were."""
    pending = [instant for instant in timeline.pending() if instant.action == "rollback"]
    for instant in pending:
        path = f"{config.timeline_folder}/{instant.requested}.rollback.requested"
        try:
            plan = decode_rollback_plan(read_requested_body(storage, config, instant), path)
        except CorruptTableError:  # cut off while it was requested: nothing was done yet, and it is planned anew
            delete_instant_files(storage, config, instant)
            continue
        _carry_out(storage, config, instant, plan, clock)
    return len(pending)


def roll_back(
    storage: Storage, config: TableConfig, failed: Instant, clock: InstantClock, newest: str | None
) -> Instant:
    """Undo a write that is requested or inflight.

    Args:
        storage: the table's storage.
        config: its configuration.
        failed: the pending instant.
        clock: gives the rollback its times.
        newest: newest time on the timeline.

    Returns:
        The completed rollback.

    Raises:
        UnsupportedFeatureError: the write put log files into a table of version 6.
    """
    files = _files_of(storage, failed)
    requests = tuple(
        RollbackRequest(path.rpartition("/")[0], files_to_be_deleted=(storage.absolute(path),))
        for path in sorted(files)
    )
    if config.layout_version < 2 and any(".log." in path for path in files):
        raise UnsupportedFeatureError(
            f"The failed {failed.action} {failed.requested} of {storage.uri} wrote log files to a table of version "
            f"{config.version}; rolling that back is not supported yet. Let Apache Hudi roll it back."
        )
    plan = RollbackPlan(failed.requested, failed.action, requests)
    rollback = Instant(clock.next_time(newest, failed.requested), "rollback", State.REQUESTED)
    create_requested(storage, config, rollback, encode_rollback_plan(plan))
    return _carry_out(storage, config, rollback, plan, clock)


def _files_of(storage: Storage, failed: Instant) -> list[str]:
    """Files that the failed write may have made: from its markers, or where it left none by listing everything."""
    if has_markers(storage, failed.requested):
        return list(marked_files(storage, failed.requested))
    if failed.state is State.REQUESTED:
        return []
    lister = StorageLister(storage)
    found = []
    for partition in lister.partitions():
        for entry in lister.files(partition):
            named = parse_base_file(entry) or parse_log_file(entry)
            if named is not None and named.instant == failed.requested:
                found.append(entry.path)
    return found


def _carry_out(
    storage: Storage, config: TableConfig, rollback: Instant, plan: RollbackPlan, clock: InstantClock
) -> Instant:
    started = time.monotonic()
    if any(request.log_blocks_to_be_deleted for request in plan.requests):
        raise UnsupportedFeatureError(
            f"The pending rollback {rollback.requested} of {storage.uri} appends rollback blocks to log files, which "
            "is not supported yet. Let Apache Hudi finish it."
        )
    if rollback.state is State.REQUESTED:
        to_inflight(storage, config, rollback)
    done: dict[str, tuple[list[str], list[str]]] = {}
    for request in plan.requests:
        deleted, failed = done.setdefault(request.partition_path, ([], []))
        for path in request.files_to_be_deleted:
            (deleted if storage.delete_file(_relative(storage, path)) else failed).append(path)
    delete_instant_files(storage, config, Instant(plan.instant, plan.action, State.INFLIGHT))
    body = encode_rollback_metadata(
        RollbackMetadata(
            start_time=rollback.requested,
            instant=plan.instant,
            action=plan.action,
            millis=int((time.monotonic() - started) * 1000),
            partitions=tuple(
                RollbackPartition(name, tuple(ok), tuple(bad)) for name, (ok, bad) in sorted(done.items())
            ),
        )
    )
    inflight = Instant(rollback.requested, "rollback", State.INFLIGHT)
    completed = complete(storage, config, inflight, body, clock.next_time(rollback.requested))
    delete_markers(storage, plan.instant)
    return completed


def _relative(storage: Storage, path: str) -> str:
    """Plans name files by absolute path, with or without a scheme, as their writer knew the table."""
    base = storage.absolute("")
    for prefix in (base, f"file://{base}", f"file:{base}"):
        if path.startswith(prefix + "/") and "/../" not in path:
            return path[len(prefix) + 1 :]
    raise CorruptTableError(f"A rollback plan of {storage.uri} names a file outside the table: {path}.")
