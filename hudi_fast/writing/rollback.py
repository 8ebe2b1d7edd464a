"""Undoing a failed write: its files go, then its instants, and a rollback instant says so.

::

    requested (the plan: which files) ─► inflight ─► delete files, take log blocks back ─► the metadata table's commit
                                                            ─► delete the failed instant ─► completed

Before table version 8 a log file that was added to an older slice stays: a command block in the slice's next log file
tells readers to pass over its blocks. A compaction that failed is requested again afterwards: its plan stands.

Every step can be repeated, so a rollback that died is finished by the next writer from its plan. Sources:
``MarkerBasedRollbackStrategy``, ``ListingBasedRollbackStrategy``, ``BaseRollbackActionExecutor``, ``RollbackHelperV1``
(Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.log_writer import command_block
from hudi_fast.metadata_writer.rollback import roll_back_metadata
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.active import Timeline, read_instant_body, read_requested_body
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
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
from hudi_fast.timeline.transition import (
    complete,
    create_requested,
    delete_instant_files,
    revert_to_requested,
    to_inflight,
)
from hudi_fast.view.file_names import LogFile, log_file_name, parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.writing.markers import create_marker, delete_markers, has_markers, make_marker_folder, marked_files

__all__ = ["finish_rollbacks", "roll_back"]

_ROLLBACK_TOKEN = "1-0-1"


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
    """Undo a write, or a compaction, that is requested or inflight.

    Args:
        storage: the table's storage.
        config: its configuration.
        failed: the pending instant.
        clock: gives the rollback its times.
        newest: newest time on the timeline.

    Returns:
        The completed rollback.
    """
    plan = RollbackPlan(failed.requested, failed.action, _requests(storage, config, failed))
    rollback = Instant(clock.next_time(newest, failed.requested), "rollback", State.REQUESTED)
    create_requested(storage, config, rollback, encode_rollback_plan(plan))
    return _carry_out(storage, config, rollback, plan, clock)


# ---- the plan


def _requests(storage: Storage, config: TableConfig, failed: Instant) -> tuple[RollbackRequest, ...]:
    deleted: list[RollbackRequest] = []
    appended: dict[tuple[str, str, str], dict[str, int]] = {}
    for path in sorted(_files_of(storage, config, failed)):
        partition = path.rpartition("/")[0]
        log = _log_of(path)
        if config.layout_version > 1 or log is None or log.instant == failed.requested:
            deleted.append(RollbackRequest(partition, files_to_be_deleted=(storage.absolute(path),)))
        elif (found := storage.stat(path)) is not None:
            appended.setdefault((partition, log.file_id, log.instant), {})[storage.absolute(path)] = found.size
    blocks = (
        RollbackRequest(partition, file_id, base, log_blocks_to_be_deleted=files)
        for (partition, file_id, base), files in appended.items()
    )
    return (*deleted, *blocks)


def _files_of(storage: Storage, config: TableConfig, failed: Instant) -> list[str]:
    """Files that the failed write may have made: from its markers, or where it left none by listing everything."""
    if has_markers(storage, failed.requested):
        return list(marked_files(storage, failed.requested))
    if failed.state is State.REQUESTED:
        return []
    lister = StorageLister(storage)
    updated = _updated_slices(storage, config, failed) if config.layout_version < 2 else frozenset()
    found = []
    for partition in lister.partitions():
        for entry in lister.files(partition):
            base, log = parse_base_file(entry), parse_log_file(entry)
            # Log files that are named after a compaction (table version 6) are those of writers that went on.
            named = base if failed.action == "compaction" else base or log
            if named is not None and named.instant == failed.requested:
                found.append(entry.path)
            elif log is not None and (partition, log.file_id, log.instant) in updated:
                found.append(entry.path)
    return found


def _updated_slices(storage: Storage, config: TableConfig, failed: Instant) -> frozenset[tuple[str, str, str]]:
    """Partition path, file id and base instant of the slices that the write was about to log to, by its own account."""
    path = f"{config.timeline_folder}/{failed.file_name}"
    try:
        profile = decode_commit_metadata(read_instant_body(storage, config, failed), path)
    except CorruptTableError:  # cut off: it had not begun
        return frozenset()
    return frozenset((stat.partition_path, stat.file_id, stat.prev_commit) for stat in profile.write_stats())


# ---- carrying it out


@dataclass
class _Done:
    """What has become of one partition; mutable."""

    deleted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    rollback_logs: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


def _carry_out(
    storage: Storage, config: TableConfig, rollback: Instant, plan: RollbackPlan, clock: InstantClock
) -> Instant:
    started = time.monotonic()
    if rollback.state is State.REQUESTED:
        to_inflight(storage, config, rollback)
    done: dict[str, _Done] = {}
    for request in plan.requests:
        part = done.setdefault(request.partition_path, _Done())
        for path in request.files_to_be_deleted:
            (part.deleted if storage.delete_file(_relative(storage, path)) else part.failed).append(path)
        if request.log_blocks_to_be_deleted:
            part.failed_logs.update(request.log_blocks_to_be_deleted)
            part.rollback_logs.update(_take_back(storage, rollback.requested, plan.instant, request))
    stay = {name: _sizes_by_name({**one.failed_logs, **one.rollback_logs}) for name, one in done.items()}
    added = {name: sizes for name, sizes in stay.items() if sizes}
    roll_back_metadata(storage, config, plan.instant, rollback.requested, clock, added)
    _delete_failed(storage, config, plan)
    body = encode_rollback_metadata(
        RollbackMetadata(
            start_time=rollback.requested,
            instant=plan.instant,
            action=plan.action,
            millis=int((time.monotonic() - started) * 1000),
            partitions=tuple(
                RollbackPartition(name, tuple(one.deleted), tuple(one.failed), one.rollback_logs, one.failed_logs)
                for name, one in sorted(done.items())
            ),
        )
    )
    inflight = Instant(rollback.requested, "rollback", State.INFLIGHT)
    completed = complete(storage, config, inflight, body, clock.next_time(rollback.requested))
    delete_markers(storage, plan.instant)
    delete_markers(storage, rollback.requested)
    return completed


def _sizes_by_name(logs: Mapping[str, int]) -> dict[str, int]:
    return {path.rpartition("/")[2]: size for path, size in logs.items()}


def _delete_failed(storage: Storage, config: TableConfig, plan: RollbackPlan) -> None:
    inflight = Instant(plan.instant, plan.action, State.INFLIGHT)
    if plan.action == "compaction":
        revert_to_requested(storage, config, inflight)
    else:
        delete_instant_files(storage, config, inflight)


def _take_back(storage: Storage, rollback: str, failed: str, request: RollbackRequest) -> dict[str, int]:
    """Add a command block to each slice that the request names; the new log files, absolute, with their sizes.

    Log files that an earlier attempt of this rollback made are among them.
    """
    partition = request.partition_path
    names = {path.rpartition("/")[2] for path in request.log_blocks_to_be_deleted}
    slices = {(log.file_id, log.instant) for log in map(_log_of, names) if log is not None}
    make_marker_folder(storage, rollback)
    made = [path for path in marked_files(storage, rollback) if path.rpartition("/")[0] == partition]
    logs = _logs(storage, partition, slices)
    for file_id, base in sorted(slices):
        version = max((log.version for log in logs if (log.file_id, log.instant) == (file_id, base)), default=0) + 1
        name = log_file_name(file_id, base, version, _ROLLBACK_TOKEN)
        path = _relative(storage, storage.absolute(f"{partition}/{name}" if partition else name))
        with contextlib.suppress(FileExistsError):  # an earlier attempt came as far as that
            create_marker(storage, rollback, path, "APPEND")
        storage.create_exclusive(path, command_block(rollback, failed))
        made.append(path)
    sizes = {path: storage.stat(path) for path in made}
    return {storage.absolute(path): stat.size for path, stat in sizes.items() if stat is not None}


def _logs(storage: Storage, partition: str, slices: Iterable[tuple[str, str]]) -> list[LogFile]:
    found = (parse_log_file(entry) for entry in StorageLister(storage).files(partition))
    wanted = set(slices)
    return [log for log in found if log is not None and (log.file_id, log.instant) in wanted]


def _log_of(path: str) -> LogFile | None:
    return parse_log_file(FileStat(path, 0, 0, False))


def _relative(storage: Storage, path: str) -> str:
    """Plans name files by absolute path, with or without a scheme, as their writer knew the table."""
    base = storage.absolute("")
    for prefix in (base, f"file://{base}", f"file:{base}"):
        if path.startswith(prefix + "/") and "/../" not in path:
            return path[len(prefix) + 1 :]
    raise CorruptTableError(f"A rollback plan of {storage.uri} names a file outside the table: {path}.")
