"""Removing what does not belong in a table: all of it under the table's lock, each step such that it can be repeated.

::

    the table's lock ─► look again ─► does the plan still fit? ─► properties ─► instants without a plan
        ─► rollbacks, finished and new ─► data files ─► markers, temporary files, heartbeats

A repair that dies leaves findings for the next one; whatever it had done was no loss to any query.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.services.deleting import Deleter, in_threads
from hudi_fast.services.repairing.findings import Finding, RepairPlan, RepairResult
from hudi_fast.services.repairing.plan import plan_repair
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instant import WRITE_ACTIONS, Instant
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.writing.failed_writes import failed_writes
from hudi_fast.writing.rollback import finish_rollbacks, roll_back

__all__ = ["run_repair"]

_DATA = ("orphan file", "failed delete")
_FILES = ("temporary file", "heartbeat", "other timeline")
_NAMED_AT_MOST = 3


def run_repair(
    storage: Storage, settings: ServiceSettings, plan: RepairPlan | None = None, delete: Deleter = in_threads
) -> RepairResult:
    """Carry a plan out, or what is found now.

    Args:
        storage: the table's storage.
        settings: how long to wait for the table's lock, clocks, how long signs of life count.
        plan: what to do; None for everything that is found and can be repaired.
        delete: deletes data files.

    Raises:
        CommitConflictError: the plan no longer fits the table; nothing was done.
        CommitError: storage failed; what is left can be repaired again.
        LockTimeoutError: others write to the table.
        CorruptTableError: ``hoodie.properties`` cannot be understood.
    """
    started = time.monotonic()
    try:
        with table_lock(storage, settings.write.lock) as held:
            found = plan_repair(storage, failed_writes(settings.write).heartbeat, locked=True)
            chosen = found.repairable if plan is None else _require_fit(storage, plan, found)
            instant, rolled_back, stuck = _carry_out(storage, settings, chosen, delete, held)
    except OSError as error:
        raise CommitError(
            f"Repairing {storage.uri} failed because of storage: {error}. What it removed by then was no loss to any "
            "query; run it again."
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


def _carry_out(
    storage: Storage, settings: ServiceSettings, chosen: Sequence[Finding], delete: Deleter, held: HeldLock
) -> tuple[str, tuple[str, ...], set[str]]:
    """The last rollback, what was rolled back, and the data files that could not be deleted."""
    held.require()
    if _of(chosen, "properties backup"):
        update_properties(storage, {})
    _drop_instants(storage, _of(chosen, "dangling instant"))
    instant, rolled_back = _roll_back(storage, settings, _of(chosen, "failed write"), held)
    paths = [one.path for one in _of(chosen, *_DATA)]
    held.require()
    gone = delete(storage, paths)
    for one in _of(chosen, "markers"):
        storage.delete_dir(one.path)
    for one in _of(chosen, *_FILES):
        storage.delete_file(one.path)
    return (
        instant,
        rolled_back,
        {path for path, was in zip(paths, gone, strict=True) if not was and storage.exists(path)},
    )


def _of(findings: Sequence[Finding], *kinds: str) -> list[Finding]:
    return [one for one in findings if one.kind in kinds]


def _require_fit(storage: Storage, plan: RepairPlan, found: RepairPlan) -> tuple[Finding, ...]:
    """What the plan wants removed, if all of it is still found."""
    now = {(one.kind, one.path, one.bytes) for one in found.repairable}
    missing = [one for one in plan.repairable if (one.kind, one.path, one.bytes) not in now]
    if missing:
        names = ", ".join(f"{one.kind} {one.path}" for one in missing[:_NAMED_AT_MOST])
        raise CommitConflictError(
            f"The repair of {storage.uri} no longer fits the table: {len(missing)} of its {len(plan.repairable)} "
            f"findings are gone or have changed ({names}). Nothing was done; plan it again."
        )
    wanted = {(one.kind, one.path) for one in plan.repairable}
    return tuple(one for one in found.repairable if (one.kind, one.path) in wanted)


def _drop_instants(storage: Storage, findings: Sequence[Finding]) -> None:
    """Take instants off the timeline that nobody can carry out."""
    config = _config(storage)
    for instant in _pending_of(storage, config, findings):
        delete_instant_files(storage, config, instant)


def _roll_back(
    storage: Storage, settings: ServiceSettings, findings: Sequence[Finding], held: HeldLock
) -> tuple[str, tuple[str, ...]]:
    """Finish rollbacks, and roll failed writes back, newest first; the last rollback, and what they undid."""
    if not findings:
        return "", ()
    config = _config(storage)
    clock = settings.clock(config, held)
    before = load_timeline(storage, config)
    rule = failed_writes(settings.write).heartbeat
    finish_rollbacks(storage, config, before, clock, rule=rule)
    writes = [one for one in _pending_of(storage, config, findings) if one.action in WRITE_ACTIONS]
    for instant in sorted(writes, key=lambda one: one.requested, reverse=True):
        roll_back(storage, config, instant, clock, load_timeline(storage, config).newest_time)
        storage.delete_file(heartbeat_path(instant.requested))
    known = {one.requested for one in before.completed()}
    made = [one for one in load_timeline(storage, config).of_action("rollback") if one.requested not in known]
    return max((one.requested for one in made), default=""), tuple(sorted(one.requested for one in writes))


def _pending_of(storage: Storage, config: TableConfig, findings: Sequence[Finding]) -> list[Instant]:
    paths = {one.path for one in findings}
    pending = load_timeline(storage, config).pending() if paths else ()
    return [one for one in pending if f"{config.timeline_folder}/{one.file_name}" in paths]


def _config(storage: Storage) -> TableConfig:
    return TableConfig.from_properties(load_properties(storage), storage.uri)
