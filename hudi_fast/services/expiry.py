"""Deleting expired partitions: a replace commit, as ``delete_partition`` makes it.

::

    _expired_partitions ─┬─ none: nothing is written
                        └─ some ─► a delete_partition that checks again once it has begun ─► replacecommit

Files stay until a clean removes them, so time travel to before still works. A crash leaves a pending replace commit,
which the next writer rolls back; the partitions are as before.

Source: ``SparkPartitionTTLActionExecutor`` (Hudi 1.2.0), which leaves a requested replace commit behind if nothing has
expired.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hudi_fast.config.service_options import TtlOptions
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.instants import instant_from_ms, ms_from_instant
from hudi_fast.values import dataclass
from hudi_fast.view.slices import TableView, by_partition, latest_slices
from hudi_fast.writing.flow import run_write
from hudi_fast.writing.markers import partition_created
from hudi_fast.writing.partition_deletion import PartitionDeletion, deletion_options
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["TtlPlan", "TtlResult", "delete_expired", "plan_expired", "require_retention"]


@dataclass(frozen=True, slots=True)
class TtlResult:
    """The result of deleting expired partitions.

    Attributes:
        instant: requested time of the replace commit; empty when nothing had expired.
        partitions: paths of the deleted partitions, the oldest first.
        seconds: time of the call.
    """

    instant: str
    partitions: tuple[str, ...]
    seconds: float


def require_retention(options: TtlOptions) -> None:
    """Check that partitions can expire.

    Raises:
        ConfigError: no number of days is given.
    """
    if options.days <= 0:
        raise ConfigError(
            f"hoodie.partition.ttl.strategy.days.retain={options.days}: no partition would ever expire. Give the "
            "number of days to keep a partition, at least 1."
        )


def plan_expired(session: TableSession) -> TtlPlan:
    """The partitions that have expired now; empty for a table without partitions.

    Raises:
        CorruptTableError: an instant is not a time.
    """
    state = session.latest()
    if not state.config.is_partitioned:
        return TtlPlan(())
    zone = state.config.timezone
    now = instant_from_ms(time.time_ns() // 1_000_000, zone)
    return _expired_partitions(state.storage, state.view, zone, session.settings.ttl, now)


def delete_expired(session: TableSession) -> TtlResult:
    """Delete the partitions that have expired.

    Args:
        session: the call; its settings name the retention.

    Raises:
        HudiError: as for a write. Unless it is ``CommitStateUnknownError`` the table is as before.
    """
    started = time.monotonic()
    if not plan_expired(session).partitions:
        return TtlResult("", (), time.monotonic() - started)
    options = session.settings.ttl

    def expired(plan: WritePlan) -> tuple[str, ...]:
        found = _expired_partitions(plan.storage, plan.view, plan.config.timezone, options, plan.instant)
        return found.partitions

    write = replace(deletion_options(session.settings.write), extra_metadata={})
    engine = PartitionDeletion(session.state, expired)
    own = session.with_write(write)
    try:
        done = run_write(own, engine, "append")
    finally:
        session.changed()
    return TtlResult(done.instant, engine.deleted if done.instant else (), time.monotonic() - started)


# ---- which partitions have expired (KeepByTimeStrategy, KeepByCreationTimeStrategy; Hudi 1.2.0)
#
# ::
#
#     partitions, or the selected ones ─► time of each ─┬─ KEEP_BY_TIME: start of its newest file slice
#                                                       └─ KEEP_BY_CREATION_TIME: its partition marker
#         ─► older than the retention ─► has rows, and no pending service ─► the oldest, up to the maximum
#
# A log file starts no file slice: updates of a MERGE_ON_READ table prolong the life of a partition only with the next
# compaction, as in Hudi. A partition without a time (bootstrapped, or without a marker) does not expire.
#
# Three differences from Hudi 1.2.0. Hudi computes the retention in 32 bits, so that 25 to 49 days mean never, and 50
# days mean 7 hours; hudi_fast does not overflow. If a pending service works on one expired partition, Hudi deletes
# none; hudi_fast deletes the others. If more partitions have expired than the maximum, Hudi deletes any of them;
# hudi_fast deletes the oldest.


_NO_TIME = "0000"
"""First digits of the instants of a bootstrap, which are not times."""


@dataclass(frozen=True, slots=True)
class _ExpiredPartition:
    """A partition that has expired.

    Attributes:
        partition: partition path.
        since: its time: an instant of the timeline.
        blocked_by: why it is not deleted now; empty if it is.
    """

    partition: str
    since: str
    blocked_by: str = ""


@dataclass(frozen=True, slots=True)
class TtlPlan:
    """The expired partitions of a table, the oldest first."""

    expired: tuple[_ExpiredPartition, ...]

    @property
    def partitions(self) -> tuple[str, ...]:
        """Paths of the partitions to delete."""
        return tuple(one.partition for one in self.expired if not one.blocked_by)

    def to_arrow(self) -> pa.Table:
        """One row for each expired partition: ``partition``, ``since`` and ``blocked_by`` (text)."""
        names = ("partition", "since", "blocked_by")
        return pa.table({name: pa.array([getattr(one, name) for one in self.expired], pa.string()) for name in names})


def _expired_partitions(storage: Storage, view: TableView, zone: str, options: TtlOptions, now: str) -> TtlPlan:
    """The partitions that have expired.

    Args:
        storage: the table's storage.
        view: the table.
        zone: time zone of the timeline, ``LOCAL`` or ``UTC``.
        options: retention, time and selection.
        now: the time of the call, as an instant.

    Returns:
        At most as many partitions to delete as the options allow, and the blocked partitions before or between them.

    Raises:
        CorruptTableError: an instant is not a time.
    """
    if options.milliseconds <= 0:
        return TtlPlan(())
    existing = view.lister.partitions()
    paths = existing if not options.selected else [one for one in existing if one in options.selected]
    latest = ms_from_instant(now, zone) - options.milliseconds
    times = _creations(storage, paths) if options.by_creation else _modifications(view, paths)
    dated = [
        (since, path)
        for path, since in zip(paths, times, strict=True)
        if since is not None and not since.startswith(_NO_TIME) and ms_from_instant(since, zone) < latest
    ]
    expired: list[_ExpiredPartition] = []
    left = options.max_partitions
    for since, path in sorted(dated):
        if left == 0:
            break
        groups = [one.file_id for one in latest_slices(view, path)]
        if not groups:
            continue  # deleted already; a clean removes the folder
        blocked_by = _pending(view, path, groups)
        expired.append(_ExpiredPartition(path, since, blocked_by))
        left -= 0 if blocked_by else 1
    return TtlPlan(tuple(expired))


def _modifications(view: TableView, paths: Sequence[str]) -> Iterator[str | None]:
    return by_partition(view, paths, partial(_newest_start, view))


def _newest_start(view: TableView, path: str) -> str | None:
    return max((one.base_instant for one in latest_slices(view, path)), default=None)


def _creations(storage: Storage, paths: Sequence[str]) -> list[str | None]:
    with ThreadPool(8) as pool:
        return list(pool.map(partial(partition_created, storage), paths))


def _pending(view: TableView, path: str, groups: Sequence[str]) -> str:
    """The pending service that works on a partition, in words; empty if there is none."""
    keys = [(path, group) for group in groups]
    if any(key in view.pending_groups for key in keys):
        return "a pending clustering"
    for name, pending in (("compaction", view.pending_compactions), ("log compaction", view.pending_log_compactions)):
        for key in keys:
            if key in pending:
                return f"the pending {name} {pending[key]}"
    return ""
