"""Removes files and instants that do not belong to a table, under the table's lock. Each step can be repeated.

::

    the table's lock ─► inspect again ─► does the plan still fit? ─► properties ─► lost bodies
        ─► instants without a plan ─► rollbacks, finished and new ─► data files ─► markers, temporary files, heartbeats

The next repair continues an abandoned one. No query needs anything that a repair removes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, CorruptTableError
from hudi_fast.services.repairing.files import find_data_files, find_leftovers
from hudi_fast.services.repairing.findings import (
    FINDING_KINDS,
    Finding,
    Inspection,
    RepairPlan,
    RepairResult,
    inspect_table,
)
from hudi_fast.services.repairing.instants import find_instants, rebuilt_body
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule, heartbeat_path
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, State, load_timeline
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.writing.rollback import finish_rollbacks, roll_back
from hudi_fast.writing.session import TableSession

__all__ = ["plan_repair", "run_repair"]

_DATA = ("orphan file", "failed delete")
_FILES = ("temporary file", "heartbeat", "other timeline")
_NAMED_AT_MOST = 3


def run_repair(session: TableSession, plan: RepairPlan | None = None) -> RepairResult:
    """Execute a repair plan, or repair everything that is found now.

    Args:
        session: the call.
        plan: execute exactly this; None for all repairable findings.

    Raises:
        CommitConflictError: the plan no longer fits the table; nothing was done.
        CommitError: storage failed; the rest can be repaired again.
        LockTimeoutError: other processes write to the table.
        CorruptTableError: ``hoodie.properties`` is damaged.
    """
    started, storage = time.monotonic(), session.storage
    try:
        with session.section():
            found = plan_repair(storage, session.heartbeat_rule, locked=True)
            chosen = found.repairable if plan is None else _require_fit(storage, plan, found)
            instant, rolled_back, stuck = _execute(session, chosen)
            session.changed()
    except OSError as error:
        raise CommitError(
            f"Repairing {storage.uri} failed because of storage: {error}. No query needs what was removed so far; run "
            "it again."
        ) from error
    done = tuple(one for one in chosen if one.path not in stuck)
    return RepairResult(
        instant,
        done,
        tuple(one for one in found.findings if one not in done),
        len(_of(done, *_DATA)),
        sum(one.bytes for one in _of(done, *_DATA, *_FILES)),
        rolled_back,
        time.monotonic() - started,
    )


def _execute(session: TableSession, chosen: Sequence[Finding]) -> tuple[str, tuple[str, ...], set[str]]:
    """Returns the last rollback, the rolled-back instants, and the data files that could not be deleted."""
    storage = session.storage
    session.require_lock()
    if _of(chosen, "properties backup"):
        update_properties(storage, {})
    _write_bodies(session, _of(chosen, "lost body"))
    _remove_instants(storage, _of(chosen, "dangling instant"))
    instant, rolled_back = _roll_back(session, _of(chosen, "failed write"))
    paths = [one.path for one in _of(chosen, *_DATA)]
    session.require_lock()
    deleted = session.backend.delete(storage, paths)
    for one in _of(chosen, "markers"):
        storage.delete_dir(one.path)
    storage.delete_files([one.path for one in _of(chosen, *_FILES)])
    left = {path for path, was in zip(paths, deleted, strict=True) if not was and storage.exists(path)}
    return instant, rolled_back, left


def _of(findings: Sequence[Finding], *kinds: str) -> list[Finding]:
    return [one for one in findings if one.kind in kinds]


def _require_fit(storage: Storage, plan: RepairPlan, found: RepairPlan) -> tuple[Finding, ...]:
    """The findings to remove, if the inspection still has all of them."""
    now = {(one.kind, one.path, one.bytes) for one in found.repairable}
    missing = [one for one in plan.repairable if (one.kind, one.path, one.bytes) not in now]
    if missing:
        names = ", ".join(f"{one.kind} {one.path}" for one in missing[:_NAMED_AT_MOST])
        raise CommitConflictError(
            f"The repair of {storage.uri} no longer fits the table: {len(missing)} of its {len(plan.repairable)} "
            f"findings are missing or have changed ({names}). Nothing was done; plan it again."
        )
    wanted = {(one.kind, one.path) for one in plan.repairable}
    return tuple(one for one in found.repairable if (one.kind, one.path) in wanted)


def _remove_instants(storage: Storage, findings: Sequence[Finding]) -> None:
    """Remove instants from the timeline that cannot be executed."""
    config = _config(storage)
    for instant in _pending_of(storage, config, findings):
        delete_instant_files(storage, config, instant)


def _write_bodies(session: TableSession, findings: Sequence[Finding]) -> None:
    """Write lost bodies of completed writes again."""
    if not findings:
        return
    storage, paths = session.storage, {one.path for one in findings}
    inspection = inspect_table(storage, session.heartbeat_rule, locked=True)
    folder = inspection.config.timeline_folder
    for instant in inspection.timeline.completed():
        path = f"{folder}/{instant.file_name}"
        if path in paths:
            modified_ms = inspection.files_of(instant)[State.COMPLETED].modified_ms
            storage.write_bytes(path, rebuilt_body(inspection, instant))
            if inspection.config.layout_version == 1:  # the write was completed at that time
                storage.set_modified(path, modified_ms)
    storage.sync()
    session.changed()


def _roll_back(session: TableSession, findings: Sequence[Finding]) -> tuple[str, tuple[str, ...]]:
    """Finish rollbacks, and roll failed writes back, newest first; returns the last rollback and the instants."""
    if not findings:
        return "", ()
    storage, before = session.storage, session.reload().timeline
    finish_rollbacks(session)
    writes = [one for one in _pending_of(storage, session.state.config, findings) if one.action in WRITE_ACTIONS]
    for instant in sorted(writes, key=lambda one: one.requested, reverse=True):
        roll_back(session, instant)
        storage.delete_file(heartbeat_path(instant.requested))
    known = {one.requested for one in before.completed()}
    made = [one for one in session.timeline.of_action("rollback") if one.requested not in known]
    return max((one.requested for one in made), default=""), tuple(sorted(one.requested for one in writes))


def _pending_of(storage: Storage, config: TableConfig, findings: Sequence[Finding]) -> list[Instant]:
    paths = {one.path for one in findings}
    pending = load_timeline(storage, config).pending() if paths else ()
    return [one for one in pending if f"{config.timeline_folder}/{one.file_name}" in paths]


def _config(storage: Storage) -> TableConfig:
    return TableConfig.from_properties(load_properties(storage), storage.uri)


# ---- plans a repair: finds files and instants that do not belong to a table
#
# ::
#
#     inspect_table ─► instants (first: a lost plan leaves its data files unclear) ─► data files ─► leftovers ─► plan
#
# Nothing is written. A metadata table that cannot be used is a finding; validation compares its contents with the
# table.


def plan_repair(storage: Storage, heartbeat: HeartbeatRule, locked: bool = False) -> RepairPlan:
    """Find everything below the table's folder that does not belong; nothing is written.

    Args:
        storage: the table's storage.
        heartbeat: when a heartbeat expires.
        locked: whether the caller holds the table's lock: no other process of this machine writes then.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: ``hoodie.properties`` is damaged.
    """
    inspection = inspect_table(storage, heartbeat, locked)
    instants = list(find_instants(inspection))
    findings = [*instants, *_data_files(inspection, instants), *find_leftovers(inspection)]
    findings.sort(key=lambda one: (FINDING_KINDS.index(one.kind), one.instant, one.path))
    return RepairPlan(tuple(findings))


def _data_files(inspection: Inspection, instants: Sequence[Finding]) -> list[Finding]:
    """Findings about data files; if the timeline is damaged, one finding with the cause, unless ``instants`` has it."""
    try:
        return list(find_data_files(inspection))
    except CorruptTableError as error:
        path = error.path or inspection.config.timeline_folder
        if any(one.instant and one.instant in path for one in instants):
            return []
        advice = f"Data files cannot be checked before this is repaired: {error}"
        return [Finding("dangling instant", "", path, 0, False, advice)]
