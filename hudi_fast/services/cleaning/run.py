"""Carrying a planned clean out.

::

    begin     the table's lock: clean up, look whether the plan still fits, requested ─► inflight
    delete    no lock: files, many at once                                          (writers go on)
    finish    the table's lock: folders of empty partitions, the metadata table, inflight ─► completed

A lock of the services' own is held all the while: it falls when its holder dies, so an inflight clean that is found
under it belongs to nobody alive, and is carried out again: what is gone already counts as deleted. A file that cannot
be deleted stays listed, and the clean's metadata names it for the next one: see
:mod:`hudi_fast.services.cleaning.last_clean`.

Sources: ``CleanActionExecutor``, ``BaseHoodieTableServiceClient#clean`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hudi_fast.config.properties_file import PROPERTIES_PATH, load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, HudiWarning, ServiceTakenError, UnsupportedFeatureError
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.metadata_table.state import open_state
from hudi_fast.metadata_table.updates.rollback import roll_back_metadata
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.cleaning.metadata import record_clean, with_metadata_of_clean
from hudi_fast.services.cleaning.plan import clean_may_be_due, read_clean_plan, schedule_clean
from hudi_fast.services.cleaning.retained_files import CheckedPlan, check_plan
from hudi_fast.services.cleaning.work import CleanResult, FinishedClean, ScheduledClean, combined_result
from hudi_fast.services.deleting import delete_files
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import service_lock
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.heartbeat import sending_heartbeats
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.plans import CleanMetadata, CleanPartition, CleanPlan, encode_clean_metadata, encode_clean_plan
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.failed_writes import expired_writes
from hudi_fast.writing.metadata_commit import maintain_metadata
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.transaction import clean_up

__all__ = ["clean", "clean_after_write", "clean_before_write", "clean_has_work", "run_clean"]

_ACTION = "clean"
_NO_PLAN = CleanPlan("")
"""Of a clean whose plan stands on the timeline."""
_LAYOUT_WITH_PLAN_INFLIGHT = 1
"""Readers of layout 1 look for the plan in the inflight file."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A clean that is inflight."""

    state: TableState
    instant: Instant
    clock: InstantClock
    plan: CleanPlan
    checked: CheckedPlan
    started: float


def run_clean(
    storage: Storage, scheduled: ScheduledClean, settings: ServiceSettings, carriers: Carriers
) -> FinishedClean:
    """Carry out a clean that stands on the timeline, as it was planned or not at all.

    Args:
        storage: the table's storage.
        scheduled: which one.
        settings: how the table is locked.
        carriers: who deletes.

    Raises:
        ServiceTakenError: it is no longer pending, or another writer is carrying it out.
        CommitConflictError: since it was planned, a savepoint or a service has laid hold of a file of it, or a query
            needs one.
        CommitError: storage failed; it stays pending, and the next clean carries it out.
        CorruptTableError: the plan names what is no data file of the table. Nothing was deleted.
        UnsupportedFeatureError: files of a bootstrapped folder are to go, too. Nothing was deleted.
    """
    with service_lock(storage, settings, service_lock_path(_ACTION)):
        done = _carry_out(storage, scheduled, settings, carriers, strictly=True)
    if done is None:
        raise _not_pending(storage, scheduled.instant, "taken off the timeline")
    return done


def clean(
    storage: Storage,
    settings: ServiceSettings,
    carriers: Carriers,
    if_due: bool,
    pending_only: bool = False,
) -> list[FinishedClean]:
    """Carry out the cleans that wait on the timeline, oldest first, then plan one and carry that out.

    A file of a waiting plan that may no longer be deleted is passed over with a warning.

    Args:
        storage: the table's storage.
        settings: policy and trigger.
        carriers: who deletes.
        if_due: ask the trigger before planning.
        pending_only: plan nothing.

    Raises:
        LockTimeoutError: another clean is at work.
        ServiceTakenError: another clean is at work, and the settings do not wait for it.
        HudiError: as :func:`run_clean`.
    """
    done: list[FinishedClean | None] = []
    with service_lock(storage, settings, service_lock_path(_ACTION)):
        timeline = _timeline_of(storage)
        for instant in timeline.of_action(_ACTION):
            if not instant.is_completed:
                waiting = ScheduledClean(instant.requested, _NO_PLAN)
                done.append(_carry_out(storage, waiting, settings, carriers, strictly=False))
        if not pending_only:
            if any(one.action == "rollback" for one in timeline.pending()) or timeline.pending_writes:
                with table_lock(storage, settings.write.lock) as held:
                    _recovered(storage, settings, held)
            planned = schedule_clean(storage, settings, if_due, dry_run=True)
            if planned is not None:
                done.append(_carry_out(storage, planned, settings, carriers, strictly=False))
    return [one for one in done if one is not None]


def clean_after_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> CleanResult | None:
    """Clean once a write is visible, if that is wanted and due.

    What is not due, as the timeline alone tells, costs one listing.

    Args:
        storage: the table's storage.
        settings: of the write.
        carriers: who deletes.

    Returns:
        None when it was not due, there was nothing to delete, or another clean is at work.

    Raises:
        HudiError: it failed; the next clean carries it out.
    """
    return _clean_beside_write(storage, settings, carriers) if settings.clean.automatic else None


def clean_has_work(config: TableConfig, timeline: Timeline, settings: ServiceSettings) -> bool:
    """Whether a clean beside a write is worth looking into, as far as the timeline alone tells.

    Under ``hoodie.clean.failed.writes.policy=LAZY`` pending writes are, too: one that died holds back what may be
    deleted until a clean rolls it back.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        settings: of the write.
    """
    lazy = settings.failed_writes.policy == "LAZY"
    return clean_may_be_due(config, timeline, settings.clean) or (lazy and bool(timeline.pending_writes))


def clean_before_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> CleanResult | None:
    """What ``hoodie.prewrite.cleaner.policy`` asks for before a write begins, which holds no lock yet.

    Args:
        storage: the table's storage; there need not be a table.
        settings: of the write.
        carriers: who deletes.

    Returns:
        What was cleaned; None for nothing.

    Raises:
        HudiError: it failed; the write must not begin.
    """
    policy = settings.clean.before_write
    if policy == "NONE" or not storage.exists(PROPERTIES_PATH):
        return None
    if policy == "CLEAN":
        return _clean_beside_write(storage, settings, carriers)
    with table_lock(storage, settings.write.lock) as held:
        _recovered(storage, settings, held)
    return None


# ---- inside


def _clean_beside_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> CleanResult | None:
    started = time.monotonic()
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    if not clean_has_work(config, load_timeline(storage, config), settings):
        return None
    try:
        done = clean(storage, replace(settings, waits=False), carriers, if_due=True)
    except ServiceTakenError:
        return None
    return combined_result(done, time.monotonic() - started) if done else None


def _carry_out(
    storage: Storage, planned: ScheduledClean, settings: ServiceSettings, carriers: Carriers, strictly: bool
) -> FinishedClean | None:
    """Under the services' own lock; None for a plan that was cut off, which is off the timeline then.

    A plan that is not on the timeline yet is put there; that of one that is there is read.
    """
    requested = planned.instant
    try:
        with contextlib.ExitStack() as alive:
            with table_lock(storage, settings.write.lock) as held:
                begun = _begin(storage, planned, settings, strictly, held)
                if begun is None:
                    return None
                requested = begun.instant.requested
                alive.enter_context(sending_heartbeats(storage, requested, settings.failed_writes.heartbeat))
            paths = [path for some in begun.checked.paths.values() for path in some]
            deleted = delete_files(storage, paths, carriers.delete)
            with table_lock(storage, settings.write.lock) as held:
                begun.clock.under(held)
                return _finish(storage, begun, set(deleted.failed), settings)
    except OSError as error:
        raise CommitError(
            f"The clean {requested} of {storage.uri} failed because of storage: {error}. If it stands on the timeline, "
            "the next clean carries it out."
        ) from error


def _begin(
    storage: Storage, planned: ScheduledClean, settings: ServiceSettings, strictly: bool, held: HeldLock
) -> _Begun | None:
    """Make the clean inflight, unless it does not fit the table any more."""
    started = time.monotonic()
    state, clock = _recovered(storage, settings, held)
    instant = _instant_of(state, planned, clock)
    requested = instant.requested
    if instant.state is State.INFLIGHT:
        require_abandoned(storage, instant, settings.failed_writes.heartbeat)
        roll_back_metadata(storage, state.config, requested, clock.next_time(state.timeline.newest_time), clock)
        state = open_state(storage)
    plan = read_clean_plan(storage, state.config, instant)
    if plan is None:
        delete_instant_files(storage, state.config, instant)
        return None
    if plan.sources:
        raise UnsupportedFeatureError(
            f"The clean {requested} of {storage.uri} was planned to delete files of the folder that the table was "
            "bootstrapped from (hoodie.clean.delete.bootstrap.base.file), which is not supported. Nothing was deleted; "
            "let Apache Hudi carry it out."
        )
    checked = check_plan(state, plan, f"{state.config.timeline_folder}/{requested}.clean.requested")
    _tell_kept(storage, requested, checked, strictly)
    state = with_metadata_of_clean(state, clock, settings)
    if instant.state is State.REQUESTED:
        in_layout_1 = state.config.layout_version == _LAYOUT_WITH_PLAN_INFLIGHT
        to_inflight(storage, state.config, instant, encode_clean_plan(plan) if in_layout_1 else b"")
    return _Begun(state, replace(instant, state=State.INFLIGHT, file_name=None), clock, plan, checked, started)


def _instant_of(state: TableState, planned: ScheduledClean, clock: InstantClock) -> Instant:
    """The pending clean of a plan; one that is not on the timeline is put there."""
    if not planned.instant:
        instant = Instant(clock.next_time(state.timeline.newest_time), _ACTION, State.REQUESTED)
        return create_requested(state.storage, state.config, instant, encode_clean_plan(planned.plan))
    found = state.timeline.find(planned.instant, _ACTION)
    if found is None or found.action != _ACTION or found.is_completed:
        raise _not_pending(state.storage, planned.instant, "taken off the timeline" if found is None else "completed")
    return found


def _recovered(storage: Storage, settings: ServiceSettings, held: HeldLock) -> tuple[TableState, InstantClock]:
    """The table once writes that failed are rolled back, those among them that are left to cleans; under its lock."""
    state = open_state(storage)
    clock = settings.clock(state.config, held)
    state = clean_up(state, clock, settings.failed_writes)
    expired = expired_writes(state, settings.failed_writes)
    for instant in expired:
        rule = settings.failed_writes.heartbeat
        roll_back(storage, state.config, instant, clock, state.timeline.newest_time, rule=rule)
    return open_state(storage) if expired else state, clock


def _tell_kept(storage: Storage, requested: str, checked: CheckedPlan, strictly: bool) -> None:
    if not checked.kept:
        return
    path, reason = min(checked.kept.items())
    what = (
        f"The clean {requested} of {storage.uri} was planned to delete {len(checked.kept)} files that must stay now, "
        f"for example {path}: {reason}."
    )
    if strictly:
        raise CommitConflictError(
            f"{what} Nothing was deleted. Call clean() without a plan: it deletes the others and closes this one."
        )
    warnings.warn(f"{what} They stay.", HudiWarning, stacklevel=4)


def _finish(storage: Storage, begun: _Begun, failed: set[str], settings: ServiceSettings) -> FinishedClean:
    """Record what was deleted, in the metadata table too, and complete the clean."""
    state, clock, requested = open_state(storage), begun.clock, begun.instant.requested
    instant = state.timeline.find(requested, _ACTION)
    if instant is None or instant.state is not State.INFLIGHT:
        raise _not_pending(storage, requested, "taken off the timeline" if instant is None else "completed")
    clock.next_time(state.timeline.newest_time)  # it completes after all of them, and the lock is still ours
    gone_partitions = _delete_partitions(storage, begun.plan.partitions_to_be_deleted, state.timeline)
    parts = _parts(begun, failed, gone_partitions)
    removed = {one.partition_path: one.deleted for one in parts}
    state = record_clean(state, requested, removed, gone_partitions, clock, settings)
    metadata = CleanMetadata(
        requested,
        begun.plan.earliest_instant_to_retain or "",
        begun.plan.last_completed,
        int((time.monotonic() - begun.started) * 1000),
        parts,
        begun.plan.extra_metadata,
    )
    complete(storage, state.config, begun.instant, encode_clean_metadata(metadata), lambda: clock.next_time(requested))
    maintain_metadata(state, settings.write.metadata, clock)
    size = sum(bytes_ for path, bytes_ in begun.checked.sizes.items() if path not in failed)
    return FinishedClean(requested, metadata, size)


def _parts(begun: _Begun, failed: set[str], gone_partitions: list[str]) -> tuple[CleanPartition, ...]:
    """What was done in each partition of the plan; what had to stay counts as failed."""
    kept: dict[str, list[str]] = {}
    for path in begun.checked.kept:
        folder, _, name = path.rpartition("/")
        kept.setdefault(folder, []).append(name)
    parts = []
    for partition in dict.fromkeys([*begun.checked.paths, *gone_partitions]):
        paths = begun.checked.paths.get(partition, ())
        parts.append(
            CleanPartition(
                partition,
                begun.plan.policy,
                tuple(path.rpartition("/")[2] for path in paths if path not in failed),
                (*(path.rpartition("/")[2] for path in paths if path in failed), *kept.get(partition, ())),
                partition in gone_partitions,
            )
        )
    return tuple(parts)


def _delete_partitions(storage: Storage, partitions: Sequence[str], timeline: Timeline) -> list[str]:
    """Take the folders of empty partitions away; those that are gone.

    They stay while somebody writes: a file may be made in one at this moment, by a write that began before the clean,
    and whose records in the metadata table come before those of the clean, too.
    """
    if timeline.pending_writes:
        return []
    return [one for one in partitions if _delete_partition(storage, one)]


def _delete_partition(storage: Storage, partition: str) -> bool:
    """Take a partition's folder away if it holds its marker alone; whether it is gone."""
    others = [one for one in storage.list_dir(partition) if one.name not in PARTITION_MARKERS]
    if any(not one.name.endswith(".crc") for one in others):
        return False
    with contextlib.suppress(OSError):  # it stays, and empty as it is harms nobody
        storage.delete_dir(partition)
    return not storage.exists(partition)


def _timeline_of(storage: Storage) -> Timeline:
    return load_timeline(storage, TableConfig.from_properties(load_properties(storage), storage.uri))


def _not_pending(storage: Storage, requested: str, what: str) -> ServiceTakenError:
    return ServiceTakenError(f"The clean {requested} of {storage.uri} is not pending: it was {what}. Plan another one.")
