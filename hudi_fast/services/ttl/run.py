"""Deleting expired partitions: a replace commit, as ``delete_partition`` makes it.

::

    expired_partitions ─┬─ none: nothing is written
                        └─ some ─► a delete_partition that checks again once it has begun ─► replacecommit

Files stay until a clean removes them, so time travel to before still works. A crash leaves a pending replace commit,
which the next writer rolls back; the partitions are as before.

Source: ``SparkPartitionTTLActionExecutor`` (Hudi 1.2.0), which leaves a requested replace commit behind if nothing has
expired.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from hudi_fast.config.ttl_options import TtlOptions
from hudi_fast.errors import ConfigError
from hudi_fast.services.ttl.plan import TtlPlan, expired_partitions
from hudi_fast.timeline.instant import instant_from_ms
from hudi_fast.writing.flow import run_write
from hudi_fast.writing.partition_deletion import PartitionDeletion, deletion_options
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.session import TableSession

__all__ = ["TtlResult", "delete_expired", "plan_expired", "require_retention"]


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
    return expired_partitions(state.storage, state.view, zone, session.settings.ttl, now)


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
        found = expired_partitions(plan.storage, plan.view, plan.config.timezone, options, plan.instant)
        return found.partitions

    write = replace(deletion_options(session.settings.write), extra_metadata={})
    engine = PartitionDeletion(session.state, expired)
    own = session.with_write(write)
    try:
        done = run_write(own, engine, "append")
    finally:
        session.changed()
    return TtlResult(done.instant, engine.deleted if done.instant else (), time.monotonic() - started)
