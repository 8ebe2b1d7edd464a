"""Instants that nobody will finish, and completed ones whose body is lost.

======================  =================================================  ==========================================
what                    what repairing does                                why it may
======================  =================================================  ==========================================
pending write           rolls it back, unless it may be alive              its rows are in no query
pending rollback        finishes it                                        every step can be repeated
plan lost, no files     takes the instant off the timeline                 nobody can carry it out; nothing was done
plan lost, with files   nothing                                            rows may be in them
pending restore         nothing                                            restoring again finishes it
savepoint half made     takes it off the timeline                          nothing was saved yet
completed body lost     nothing                                            the truth about the files went with it
======================  =================================================  ==========================================

A pending service with a plan is no finding: it waits for whoever carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hudi_fast.errors import CorruptTableError
from hudi_fast.services.repairing.findings import Finding
from hudi_fast.services.repairing.inspection import Look
from hudi_fast.storage.base import FileStat
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
from hudi_fast.timeline.service_plans import decode_compaction_plan, decode_requested_replace
from hudi_fast.view.file_names import parse_base_file, parse_log_file

__all__ = ["find_instants", "is_clustering"]

_SETTLED_MS = 3_600_000
"""What is written in one step and has been half done for an hour belongs to nobody alive."""

_Decode = Callable[[bytes, str | None], object]

_PLANS: dict[str, _Decode] = {
    "compaction": decode_compaction_plan,
    "logcompaction": decode_compaction_plan,
    "clustering": decode_requested_replace,
    "clean": decode_clean_plan,
    "indexing": decode_index_plan,
}
_BODIES: dict[str, _Decode] = {
    "clean": decode_clean_metadata,
    "rollback": decode_rollback_metadata,
    "restore": decode_restore_metadata,
    "savepoint": decode_savepoint,
    "indexing": decode_index_metadata,
}
_LOST = {
    "clean": "Which files it deleted is no longer known. Harmless to queries; it goes when it is archived.",
    "rollback": "What it undid is no longer known. Harmless to queries; it goes when it is archived.",
    "restore": "What it undid is no longer known. Harmless to queries; it goes when it is archived.",
    "savepoint": "Which files it protects is no longer known. Delete it, and make it again if its slices still exist.",
    "indexing": "Harmless to queries. Validate the metadata table; drop and build the index anew if it differs.",
}


def find_instants(look: Look) -> Iterator[Finding]:
    """Findings of the kinds ``failed write`` and ``dangling instant``, oldest first."""
    with_files = _instants_with_files(look)
    restoring = look.timeline.pending_restore is not None
    for instant in look.timeline.instants:
        if instant.state is State.COMPLETED:
            found = _completed(look, instant, with_files)
        else:
            found = _pending(look, instant, with_files, restoring)
        if found is not None:
            yield found


def is_clustering(look: Look, instant: Instant) -> bool:
    """Whether a pending replace commit of layout 1 is a clustering: it has a plan.

    Raises:
        CorruptTableError: what it requested cannot be understood.
    """
    requested = look.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return False
    return decode_requested_replace(look.storage.read_bytes(requested.path), requested.path).clustering is not None


# ---- pending


def _pending(look: Look, instant: Instant, with_files: set[str], restoring: bool) -> Finding | None:
    path = _path(look, instant)
    if instant.action == "restore":
        advice = "A restore that was not finished; no write may begin before it is. Restore to its savepoint again."
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    if is_alive(look.storage, instant.requested, look.heartbeat):
        return None
    if instant.action == "savepoint":
        return _half_savepoint(look, instant, path)
    if instant.action == "rollback":
        return _rollback(look, instant, path, restoring)
    if instant.action in WRITE_ACTIONS:
        return _write(look, instant, path, with_files, restoring)
    problem = _lost_plan(look, instant)
    return None if problem is None else _without_plan(look, instant, path, problem, with_files)


def _write(look: Look, instant: Instant, path: str, with_files: set[str], restoring: bool) -> Finding | None:
    try:
        if instant.action == "replacecommit" and is_clustering(look, instant):
            return None
    except CorruptTableError as error:
        return _without_plan(look, instant, path, str(error), with_files)
    advice = "A write that is not being carried out by anybody who gives signs of life; it is rolled back."
    return _undone(look, instant, path, advice, restoring)


def _rollback(look: Look, instant: Instant, path: str, restoring: bool) -> Finding:
    """Whoever asked for it wants it done, and the next writer does it: so does repairing."""
    requested = look.files_of(instant).get(State.REQUESTED)
    try:
        body = b"" if requested is None else look.storage.read_bytes(requested.path)
        target = decode_rollback_plan(body, path).instant
    except (CorruptTableError, FileNotFoundError):
        if requested is not None and instant.state is State.REQUESTED:
            advice = "A rollback that was cut off while it was planned; it is taken off the timeline."
            return _undone(look, instant, path, advice, restoring)
        advice = (
            "A rollback under way whose plan is lost: which files it was to delete is not known. Find the files of the "
            "instant that it was about, then delete its files on the timeline."
        )
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    advice = f"A rollback of {target} that died; it is finished."
    if any(one.requested == target for one in look.timeline.writes()):
        advice = f"A rollback of {target} that died; it is finished. {target} is complete: its rows go."
    return _undone(look, instant, path, advice, restoring)


def _undone(look: Look, instant: Instant, path: str, advice: str, restoring: bool) -> Finding:
    if restoring:
        advice = "It can be dealt with once the pending restore is finished."
    elif look.busy:
        advice = "A writer of this machine holds the table's lock, and may be at work on it. Look again later."
    return Finding("failed write", instant.requested, path, 0, not (restoring or look.busy), advice)


def _half_savepoint(look: Look, instant: Instant, path: str) -> Finding | None:
    file = look.files_of(instant).get(State.INFLIGHT)
    if file is None or look.age_ms(file) < _SETTLED_MS:
        return None
    advice = "A savepoint that was begun and not made; it is taken off the timeline."
    return Finding("dangling instant", instant.requested, path, file.size, True, advice)


def _lost_plan(look: Look, instant: Instant) -> str | None:
    """Why the plan of a pending service cannot be read; None when it can."""
    requested = look.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return "there is no requested file."
    if instant.action in _PLANS:
        try:
            body = look.storage.read_bytes(requested.path)
            if not body:
                return "the requested file is empty."
            _PLANS[instant.action](body, requested.path)
        except CorruptTableError as error:
            return str(error)
        except FileNotFoundError:  # gone since: somebody took care of it
            return None
    return None


def _without_plan(look: Look, instant: Instant, path: str, problem: str, with_files: set[str]) -> Finding:
    """A service that cannot be carried out. What it may have touched decides whether it can simply go."""
    what = f"A {instant.action} whose plan is lost: {problem.rstrip('.')}."
    size = sum(file.size for file in look.files_of(instant).values())
    if instant.action == "indexing" and instant.state is State.INFLIGHT:
        advice = f"{what} Drop the index that was being built, then delete the files of this instant."
    elif instant.requested in with_files:
        advice = (
            f"{what} There are data files of this instant, and rows may be in them. Restore the requested file; what "
            "else there is of the table cannot be judged before."
        )
    else:
        advice = f"{what} It left no data files, and is taken off the timeline. Look for findings again after that."
        return Finding("dangling instant", instant.requested, path, size, True, advice)
    return Finding("dangling instant", instant.requested, path, size, False, advice)


# ---- completed


def _completed(look: Look, instant: Instant, with_files: set[str]) -> Finding | None:
    file = look.files_of(instant).get(State.COMPLETED)
    if file is None:
        return None
    if instant.action in WRITE_ACTIONS:
        if not file.size and instant.requested not in with_files:
            return None  # a commit without content is one that wrote nothing
        if file.size and _reads(look, file, decode_commit_metadata):
            return None
        advice = (
            "A completed write whose body is empty or cut off, although it has data files. Queries go on reading "
            "them; restore the file, or roll the write back and write its rows again."
        )
    elif instant.action not in _BODIES or (file.size and _reads(look, file, _BODIES[instant.action])):
        return None
    else:
        advice = f"The body of a completed {instant.action} is empty or cut off. {_LOST[instant.action]}"
    return Finding("dangling instant", instant.requested, file.path, file.size, False, advice)


def _reads(look: Look, file: FileStat, decode: _Decode) -> bool:
    """Whether a body can be understood; one that has gone since it was listed is nobody's concern."""
    try:
        decode(look.storage.read_bytes(file.path), file.path)
    except CorruptTableError:
        return False
    except FileNotFoundError:
        return True
    return True


def _instants_with_files(look: Look) -> set[str]:
    """Requested times that data files are named after."""
    entries = (entry for found in look.partitions.values() for entry in found)
    parsed = (parse_base_file(entry) or parse_log_file(entry) for entry in entries)
    return {one.instant for one in parsed if one is not None}


def _path(look: Look, instant: Instant) -> str:
    return f"{look.config.timeline_folder}/{instant.file_name}"
