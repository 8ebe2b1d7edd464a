"""Lists pending services, and whether a live process runs them.

::

    timeline ─► pending instants of services ─► plans: number of file groups ─► heartbeats, locks ─► PendingService

An inflight service that is not alive is abandoned; the next run of services executes it. Pending writes are not listed:
the next write or clean rolls abandoned ones back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.locking.machine import LOCK_PATH, is_held, service_lock_path
from hudi_fast.services.indexing.plan import INDEX_LOCK_PATH
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive, is_fresh
from hudi_fast.timeline.instant import Instant, State, ms_from_instant
from hudi_fast.view.pending import pending_clusterings, read_compaction_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.settings import Settings

__all__ = ["PendingService", "pending_services", "pending_table"]

_LOCKS = {
    "compact": service_lock_path("compaction"),
    "compact_logs": service_lock_path("logcompaction"),
    "cluster": service_lock_path("clustering"),
    "clean": service_lock_path("clean"),
    "index": INDEX_LOCK_PATH,
    "rollback": LOCK_PATH,
    "restore": LOCK_PATH,
}
_SERVICES = {
    "compaction": "compact",
    "logcompaction": "compact_logs",
    "clustering": "cluster",
    "replacecommit": "cluster",
    "clean": "clean",
    "indexing": "index",
    "rollback": "rollback",
    "restore": "restore",
}
_SCHEMA = pa.schema(
    {
        "instant": pa.string(),
        "action": pa.string(),
        "state": pa.string(),
        "service": pa.string(),
        "file_groups": pa.int64(),
        "alive": pa.bool_(),
        "seconds": pa.float64(),
    }
)


@dataclass(frozen=True, slots=True)
class PendingService:
    """A requested or inflight service.

    Attributes:
        instant: on the timeline.
        service: the verb that executes it: ``compact``, ``compact_logs``, ``cluster``, ``clean``, ``index``,
            ``rollback`` or ``restore``.
        file_groups: number of file groups in its plan; None for plans without file groups.
        alive: whether a live process runs it.
        seconds: since it was requested.
    """

    instant: Instant
    service: str
    file_groups: int | None
    alive: bool
    seconds: float


def pending_services(state: TableState, settings: Settings) -> list[PendingService]:
    """Pending services, oldest first.

    Args:
        state: the table.
        settings: when a heartbeat expires.

    Raises:
        CorruptTableError: a plan is damaged.
    """
    rule, now = settings.failed_writes.heartbeat, time.time() * 1000
    planned = pending_clusterings(state.storage, state.config, state.timeline)
    clusterings = {one.requested: sum(len(group.slices) for group in plan.groups) for one, plan in planned}
    found = []
    for instant in state.timeline.pending():
        service = _SERVICES.get(instant.action)
        if service is None or (instant.action == "replacecommit" and instant.requested not in clusterings):
            continue
        alive = instant.state is State.INFLIGHT and _is_alive(state.storage, instant.requested, service, rule)
        seconds = (now - ms_from_instant(instant.requested, state.config.timezone)) / 1000
        groups = clusterings.get(instant.requested) if service == "cluster" else _file_groups(state, instant)
        found.append(PendingService(instant, service, groups, alive, max(seconds, 0.0)))
    return sorted(found, key=lambda one: one.instant.requested)


def pending_table(services: Sequence[PendingService]) -> pa.Table:
    """One row for each: ``instant``, ``action``, ``state``, ``service``, ``file_groups``, ``alive``, ``seconds``."""
    rows = [
        {
            "instant": one.instant.requested,
            "action": one.instant.action,
            "state": one.instant.state.name,
            "service": one.service,
            "file_groups": one.file_groups,
            "alive": one.alive,
            "seconds": round(one.seconds, 3),
        }
        for one in services
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _is_alive(storage: Storage, instant: str, service: str, rule: HeartbeatRule) -> bool:
    """Whether its heartbeat is live: one of another process, or one of this process while the lock is held."""
    if is_alive(storage, instant, rule):
        return True
    return is_fresh(storage, instant, rule) and is_held(storage, _LOCKS[service])


def _file_groups(state: TableState, instant: Instant) -> int | None:
    if instant.action in ("compaction", "logcompaction"):
        return len(read_compaction_plan(state.storage, state.config, instant).operations)
    return None
