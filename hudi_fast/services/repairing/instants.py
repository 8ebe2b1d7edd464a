"""Finds dangling instants: abandoned pending instants, and completed ones whose body is lost.

======================  =================================================  ==========================================
instant                 repair                                             reason
======================  =================================================  ==========================================
pending write           rolls it back, unless it may be live               no query returns its rows
pending rollback        finishes it                                        every step can be repeated
plan lost, no files     removes the instant from the timeline              it cannot be executed, and has no effect yet
plan lost, with files   nothing                                            the files may hold rows
pending restore         nothing                                            restoring again finishes it
inflight savepoint      removes it from the timeline                       it protects no files yet
write, its body lost    writes it again if its files are certain           see ``lost_bodies``
other body lost         nothing                                            nothing else has its content
======================  =================================================  ==========================================

A pending service with a plan is not a finding: it can be executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hudi_fast.errors import CorruptTableError
from hudi_fast.services.repairing.findings import Finding
from hudi_fast.services.repairing.inspection import Inspection
from hudi_fast.services.repairing.lost_bodies import UncertainError, rebuilt_body
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.index_plans import decode_index_metadata, decode_index_plan
from hudi_fast.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_fast.timeline.plans import (
    decode_clean_metadata,
    decode_clean_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    decode_savepoint,
)
from hudi_fast.timeline.restore_plans import decode_restore_metadata
from hudi_fast.timeline.service_plans import ClusteringPlan, decode_compaction_plan, decode_requested_replace
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.named_files import checked_clean, checked_clustering, checked_compaction, checked_rollback

__all__ = ["find_instants", "is_clustering"]

_LEFT_BEHIND_MS = 3_600_000
"""A savepoint is written in one step, so one that is inflight for an hour is abandoned."""

_Decode = Callable[[bytes, str | None], object]

_PLANS: dict[str, Callable[[Storage, bytes, str], object]] = {
    "compaction": lambda storage, body, path: checked_compaction(storage, decode_compaction_plan(body, path), path),
    "logcompaction": lambda storage, body, path: checked_compaction(storage, decode_compaction_plan(body, path), path),
    "clustering": lambda storage, body, path: _clustering_of(storage, body, path),
    "clean": lambda storage, body, path: checked_clean(storage, decode_clean_plan(body, path), path),
    "indexing": lambda _, body, path: decode_index_plan(body, path),
}
_BODIES: dict[str, _Decode] = {
    "clean": decode_clean_metadata,
    "rollback": decode_rollback_metadata,
    "restore": decode_restore_metadata,
    "savepoint": decode_savepoint,
    "indexing": decode_index_metadata,
}
_LOST = {
    "clean": "The list of its deleted files is lost. Harmless to queries; archiving removes it.",
    "rollback": "The list of its instants is lost. Harmless to queries; archiving removes it.",
    "restore": "The list of its instants is lost. Harmless to queries; archiving removes it.",
    "savepoint": "The list of its files is lost. Delete it, and make it again if its slices still exist.",
    "indexing": "Harmless to queries. Validate the metadata table; drop and rebuild the index if it differs.",
}


def find_instants(inspection: Inspection) -> Iterator[Finding]:
    """Findings of the kinds ``lost body``, ``failed write`` and ``dangling instant``, oldest first."""
    with_files = _instants_with_files(inspection)
    restoring = inspection.timeline.pending_restore is not None
    for instant in inspection.timeline.instants:
        if instant.state is State.COMPLETED:
            found = _completed(inspection, instant)
        else:
            found = _pending(inspection, instant, with_files, restoring)
        if found is not None:
            yield found


def is_clustering(inspection: Inspection, instant: Instant) -> bool:
    """Whether a pending replace commit of layout 1 is a clustering: it has a plan.

    Raises:
        CorruptTableError: its requested file is damaged, or names something else than data files.
    """
    requested = inspection.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return False
    storage = inspection.storage
    return _clustering_of(storage, storage.read_bytes(requested.path), requested.path) is not None


def _clustering_of(storage: Storage, body: bytes, path: str) -> ClusteringPlan | None:
    plan = decode_requested_replace(body, path).clustering
    return None if plan is None else checked_clustering(storage, plan, path)


# ---- pending


def _pending(inspection: Inspection, instant: Instant, with_files: set[str], restoring: bool) -> Finding | None:
    path = _path(inspection, instant)
    if instant.action == "restore":
        advice = "An unfinished restore; no write can begin until it is finished. Restore to its savepoint again."
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    if is_alive(inspection.storage, instant.requested, inspection.heartbeat):
        return None
    if instant.action == "savepoint":
        return _half_savepoint(inspection, instant, path)
    if instant.action == "rollback":
        return _rollback(inspection, instant, path, restoring)
    if instant.action in WRITE_ACTIONS:
        return _write(inspection, instant, path, with_files, restoring)
    problem = _lost_plan(inspection, instant)
    return None if problem is None else _without_plan(inspection, instant, path, problem, with_files)


def _write(
    inspection: Inspection, instant: Instant, path: str, with_files: set[str], restoring: bool
) -> Finding | None:
    try:
        if instant.action == "replacecommit" and is_clustering(inspection, instant):
            return None
    except CorruptTableError as error:
        return _without_plan(inspection, instant, path, str(error), with_files)
    advice = "A write without a live heartbeat; it is rolled back."
    return _undone(inspection, instant, path, advice, restoring)


def _rollback(inspection: Inspection, instant: Instant, path: str, restoring: bool) -> Finding:
    """A pending rollback is finished, as the next write would."""
    requested = inspection.files_of(instant).get(State.REQUESTED)
    try:
        body = b"" if requested is None else inspection.storage.read_bytes(requested.path)
        plan = decode_rollback_plan(body, path)
    except (CorruptTableError, FileNotFoundError):
        if requested is not None and instant.state is State.REQUESTED:
            advice = "A rollback whose plan was never completed; it is removed from the timeline."
            return _undone(inspection, instant, path, advice, restoring)
        advice = (
            "An inflight rollback whose plan is lost, and with it the list of files to delete. Find and delete the "
            "data files of the instant that it rolls back, then delete the rollback's files on the timeline."
        )
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    try:
        target = checked_rollback(inspection.storage, plan, path).instant
    except CorruptTableError as error:
        advice = f"{error} No write can begin until then."
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    advice = f"An abandoned rollback of {target}; it is finished."
    if any(one.requested == target for one in inspection.timeline.writes()):
        advice = f"An abandoned rollback of {target}; it is finished. {target} is complete: its rows are removed."
    return _undone(inspection, instant, path, advice, restoring)


def _undone(inspection: Inspection, instant: Instant, path: str, advice: str, restoring: bool) -> Finding:
    if restoring:
        advice = "Finish the pending restore first."
    elif inspection.busy:
        advice = "A writer of this machine holds the table's lock, and may be running it. Try again later."
    return Finding("failed write", instant.requested, path, 0, not (restoring or inspection.busy), advice)


def _half_savepoint(inspection: Inspection, instant: Instant, path: str) -> Finding | None:
    file = inspection.files_of(instant).get(State.INFLIGHT)
    if file is None or inspection.age_ms(file) < _LEFT_BEHIND_MS:
        return None
    advice = "An abandoned inflight savepoint; it is removed from the timeline."
    return Finding("dangling instant", instant.requested, path, file.size, True, advice)


def _lost_plan(inspection: Inspection, instant: Instant) -> str | None:
    """Why the plan of a pending service cannot be read; None when it can."""
    requested = inspection.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return "there is no requested file."
    if instant.action in _PLANS:
        try:
            body = inspection.storage.read_bytes(requested.path)
            if not body:
                return "the requested file is empty."
            _PLANS[instant.action](inspection.storage, body, requested.path)
        except CorruptTableError as error:
            return str(error)
        except FileNotFoundError:  # another process completed or removed it
            return None
    return None


def _without_plan(inspection: Inspection, instant: Instant, path: str, problem: str, with_files: set[str]) -> Finding:
    """A service without a plan. It is removed from the timeline if it made no files."""
    what = f"A {instant.action} whose plan is lost: {problem.rstrip('.')}."
    size = sum(file.size for file in inspection.files_of(instant).values())
    if instant.action == "indexing" and instant.state is State.INFLIGHT:
        advice = f"{what} Drop the index that it was building, then delete the files of this instant."
    elif instant.requested in with_files:
        advice = (
            f"{what} There are data files of this instant, and they may hold rows. Restore the requested file; other "
            "data files cannot be checked before."
        )
    else:
        advice = f"{what} It has no data files, and is removed from the timeline. Plan the repair again after that."
        return Finding("dangling instant", instant.requested, path, size, True, advice)
    return Finding("dangling instant", instant.requested, path, size, False, advice)


# ---- completed


def _completed(inspection: Inspection, instant: Instant) -> Finding | None:
    file = inspection.files_of(instant).get(State.COMPLETED)
    if file is None:
        return None
    if instant.action in WRITE_ACTIONS:
        if file.size and _reads(inspection, file, decode_commit_metadata):
            return None
        return _lost_body(inspection, instant, file)
    elif instant.action not in _BODIES or (file.size and _reads(inspection, file, _BODIES[instant.action])):
        return None
    else:
        advice = f"The body of a completed {instant.action} is empty or truncated. {_LOST[instant.action]}"
    return Finding("dangling instant", instant.requested, file.path, file.size, False, advice)


def _lost_body(inspection: Inspection, instant: Instant, file: FileStat) -> Finding:
    """A completed write whose body is lost: it is written again where its files are certain."""
    lost = "A completed write whose body is empty or truncated"
    try:
        rebuilt_body(inspection, instant)
    except UncertainError as error:
        advice = (
            f"{lost}, so that its files are unknown: {error}. Restore the file, or roll the write back with "
            "services.rollback() or `hudi-fast rollback`, and write its rows again."
        )
        return Finding("dangling instant", instant.requested, file.path, file.size, False, advice)
    advice = (
        f"{lost}. The metadata table lists its files, and all are there: the body is written again. Its figures of "
        "rows, and a checkpoint of a stream, stay lost."
    )
    return Finding("lost body", instant.requested, file.path, file.size, True, advice)


def _reads(inspection: Inspection, file: FileStat, decode: _Decode) -> bool:
    """Whether a body can be decoded; True for one that was deleted in the meantime."""
    try:
        decode(inspection.storage.read_bytes(file.path), file.path)
    except CorruptTableError:
        return False
    except FileNotFoundError:
        return True
    return True


def _instants_with_files(inspection: Inspection) -> set[str]:
    """Requested times in the names of data files."""
    entries = (entry for found in inspection.partitions.values() for entry in found)
    parsed = (parse_base_file(entry) or parse_log_file(entry) for entry in entries)
    return {one.instant for one in parsed if one is not None}


def _path(inspection: Inspection, instant: Instant) -> str:
    return f"{inspection.config.timeline_folder}/{instant.file_name}"
