"""Executing a planned clean.

::

    begin     the table's lock: recover, does the plan still fit? requested ─► inflight
    delete    many files in parallel, without lock                                  (writers continue)
    finish    the table's lock: folders of empty partitions, the metadata table, inflight ─► completed

The process holds the lock of cleans from begin to finish. The lock ends with its process, so a process that holds it
and finds an inflight clean executes that abandoned clean again: missing files count as deleted. A file that cannot be
deleted stays listed, and the clean's metadata names it for the next clean: see
:mod:`hudi_fast.services.retention`.

After a write of a single writer the table's lock is still held, and the clean uses the state of the write.

Sources: ``CleanActionExecutor``, ``BaseHoodieTableServiceClient#clean`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hudi_fast.config.merge_mode import COMMIT_TIME
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import (
    CommitConflictError,
    CommitError,
    CorruptTableError,
    ServiceTakenError,
    StorageAccessError,
    UnsupportedFeatureError,
)
from hudi_fast.events import Completed, completed, warn
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.merging.rules import MergeRules, SliceMerge
from hudi_fast.metadata_table.state import MetadataLister, change_of_clean, metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.build import measured_columns
from hudi_fast.metadata_table.updates.commit import Recorded, update_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.metadata_table.updates.rollback import roll_back_metadata
from hudi_fast.services.clean_plan import CheckedPlan, check_plan, clean_may_be_due, read_clean_plan, schedule_clean
from hudi_fast.services.retention import CleanResult, FinishedClean, ScheduledClean, combined_result
from hudi_fast.services.running import file_plan, require_abandoned
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import sending_heartbeats
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.timeline.plans import CleanMetadata, CleanPartition, CleanPlan, encode_clean_metadata, encode_clean_plan
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import is_own_file
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.metadata_commit import ensure_metadata, maintain_metadata, metadata_without_pending
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.rollback_plan import expired_writes
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover
from hudi_fast.writing.unseen_writes import was_alone

__all__ = ["clean", "clean_after_write", "clean_before_write", "clean_has_work", "run_clean"]

_ACTION = "clean"
_NO_PLAN = CleanPlan("")
"""Placeholder for a plan that is stored on the timeline."""
_LAYOUT_WITH_PLAN_INFLIGHT = 1
"""Readers of layout 1 expect the plan in the inflight file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Begun:
    """A clean that is inflight."""

    instant: Instant
    plan: CleanPlan
    checked: CheckedPlan
    started: float


def run_clean(session: TableSession, scheduled: ScheduledClean) -> FinishedClean:
    """Execute a clean that is pending on the timeline, exactly as planned.

    Args:
        session: the call.
        scheduled: the clean.

    Raises:
        ServiceTakenError: it is no longer pending, or another process runs it.
        CommitConflictError: since it was planned, a savepoint, a service or a query needs a file of it.
        CommitError: storage failed; it stays pending, and the next clean executes it.
        CorruptTableError: the plan names a file that is not a data file of the table. Nothing was deleted.
        UnsupportedFeatureError: the plan deletes files of a bootstrapped folder. Nothing was deleted.
    """
    with session.service_lock(service_lock_path(_ACTION)):
        done = _execute(session, scheduled, strictly=True)
    if done is None:
        raise _not_pending(session.storage, scheduled.instant, "removed from the timeline")
    return done


def clean(session: TableSession, plan: ScheduledClean | None = None, pending_only: bool = False) -> CleanResult:
    """Execute pending cleans, oldest first, then plan another one, if that is due, and execute it.

    A file of a pending plan that must stay now is skipped with a warning.

    Args:
        session: the call.
        plan: execute only this plan, exactly as planned.
        pending_only: plan nothing.

    Raises:
        HudiError: as :func:`run_clean`; if another clean is running, LockTimeoutError or, if the settings do not wait
            for it, ServiceTakenError.
    """
    started = time.monotonic()
    if plan is not None:
        done = [run_clean(session, plan)]
    else:
        done = _clean_all(session, session.settings.clean.has_trigger, pending_only)
    return combined_result(done, time.monotonic() - started)


def _clean_all(session: TableSession, if_due: bool, pending_only: bool = False) -> list[FinishedClean]:
    """As :func:`clean`.

    Args:
        session: the call.
        if_due: ask the trigger before planning.
        pending_only: plan nothing.
    """
    done: list[FinishedClean | None] = []
    with session.service_lock(service_lock_path(_ACTION)):
        timeline = session.latest().timeline
        for instant in timeline.of_action(_ACTION):
            if not instant.is_completed:
                pending = ScheduledClean(instant.requested, _NO_PLAN)
                done.append(_execute(session, pending, strictly=False))
        if not pending_only:
            if any(one.action == "rollback" for one in timeline.pending()) or timeline.pending_writes:
                with session.locked():
                    _recover(session)
            planned = schedule_clean(session, if_due, dry_run=True)
            if planned is not None:
                done.append(_execute(session, planned, strictly=False))
    return [one for one in done if one is not None]


def clean_after_write(session: TableSession) -> CleanResult | None:
    """Clean after a write, if the options ask for it and it is due.

    Returns:
        None when it was not due, there was nothing to delete, or another clean is running.

    Raises:
        HudiError: it failed; the next clean executes it.
    """
    return _clean_beside_write(session) if session.settings.clean.automatic else None


def clean_has_work(config: TableConfig, timeline: Timeline, settings: Settings) -> bool:
    """Whether a clean before or after a write may have anything to do, by the timeline alone.

    Under ``hoodie.clean.failed.writes.policy=LAZY`` pending writes count: an abandoned one keeps files from being
    deleted until a clean rolls it back.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        settings: of the write.
    """
    lazy = settings.failed_writes.policy == "LAZY"
    return clean_may_be_due(config, timeline, settings.clean) or (lazy and bool(timeline.pending_writes))


def clean_before_write(session: TableSession) -> CleanResult | None:
    """Clean as ``hoodie.prewrite.cleaner.policy`` sets it before a write begins; the table need not exist.

    Returns:
        None when nothing was cleaned.

    Raises:
        HudiError: it failed; the write must not begin.
    """
    policy = session.settings.clean.before_write
    if policy == "NONE" or not session.storage.exists(PROPERTIES_PATH):
        return None
    if policy == "CLEAN":
        return _clean_beside_write(session)
    with session.locked():
        _recover(session)
    return None


# ---- execution


def _clean_beside_write(session: TableSession) -> CleanResult | None:
    started, state = time.monotonic(), session.state
    if not clean_has_work(state.config, state.timeline, session.settings):
        return None
    try:
        with session.without_waiting():
            done = _clean_all(session, if_due=True)
    except ServiceTakenError:
        return None
    return combined_result(done, time.monotonic() - started) if done else None


def _execute(session: TableSession, planned: ScheduledClean, strictly: bool) -> FinishedClean | None:
    """Execute a plan under the lock of cleans; None for a truncated plan, which is removed.

    Puts a plan without an instant on the timeline. Reads the plan of a pending instant.
    """
    storage, requested = session.storage, planned.instant
    try:
        with contextlib.ExitStack() as alive:
            step = alive.enter_context(session.phase("clean", "services", requested, logging.INFO))
            with session.locked():
                begun = _begin(session, planned, strictly)
                if begun is None:
                    return None
                requested = step.instant = begun.instant.requested
                alive.enter_context(sending_heartbeats(storage, requested, session.heartbeat_rule))
            paths = [path for some in begun.checked.paths.values() for path in some]
            with session.phase("delete_files", files=len(paths)):
                failed = _delete(session, paths)
            with session.locked():
                done = _finish(session, begun, failed)
            files = sum(len(one.deleted) for one in done.metadata.partitions)
            step.add(files=files, bytes=done.bytes_deleted)
            seconds, figures = done.metadata.millis / 1000, {"numFilesDeleted": files}
            completed(
                Completed(
                    action=_ACTION, instant=requested, seconds=seconds, state=session.known_state, figures=figures
                )
            )
            return done
    except OSError as error:
        raise CommitError(
            f"The clean {requested} of {storage.uri} failed because of storage: {error}. If it is on the timeline, the "
            "next clean executes it."
        ) from error


def _delete(session: TableSession, paths: Sequence[str]) -> set[str]:
    """Delete files; returns the files that still exist, or may exist because storage does not answer."""
    storage = session.storage
    done = session.backend.delete(storage, paths)
    failed = {path for path, was in zip(paths, done, strict=True) if not was and _may_exist(storage, path)}
    if failed and _deletes(storage, min(failed)):
        failed.remove(min(failed))
    return failed


def _deletes(storage: Storage, path: str) -> bool:
    """Try to delete a file again: a store that refuses deletes leaves the clean pending.

    Raises:
        StorageAccessError: the store refuses. Other failures may pass; a later clean retries.
    """
    try:
        storage.delete_files([path])
    except StorageAccessError:
        raise
    except OSError:
        return False
    return True


def _may_exist(storage: Storage, path: str) -> bool:
    try:
        return storage.exists(path)
    except OSError:
        return True


def _begin(session: TableSession, planned: ScheduledClean, strictly: bool) -> _Begun | None:
    """Move the clean to inflight, unless it no longer fits the table."""
    started, storage = time.monotonic(), session.storage
    _recover(session)
    instant = _instant_of(session, planned)
    state, requested = session.state, instant.requested
    if instant.state is State.INFLIGHT:
        require_abandoned(session, instant)
    if instant.state is State.INFLIGHT or _is_begun_in_metadata(state, requested):
        roll_back_metadata(storage, state.config, requested, session.next_time(), session.clock)
        state = session.reload()
    plan = read_clean_plan(storage, state.config, instant)
    if plan is None:
        delete_instant_files(storage, state.config, instant)
        session.changed()
        return None
    if plan.sources:
        raise UnsupportedFeatureError(
            f"The clean {requested} of {storage.uri} was planned to delete files of the folder that the table was "
            "bootstrapped from (hoodie.clean.delete.bootstrap.base.file), which is not supported. Nothing was deleted; "
            "execute it with Apache Hudi."
        )
    checked = check_plan(state, plan, f"{state.config.timeline_folder}/{requested}.clean.requested")
    _report_kept(storage, requested, checked, strictly)
    state = ensure_metadata_of_clean(session)
    inflight = replace(instant, state=State.INFLIGHT, file_name=None)
    if instant.state is State.REQUESTED:
        in_layout_1 = state.config.layout_version == _LAYOUT_WITH_PLAN_INFLIGHT
        to_inflight(storage, state.config, instant, encode_clean_plan(plan) if in_layout_1 else b"")
        session.transitioned(inflight)
    return _Begun(instant=inflight, plan=plan, checked=checked, started=started)


def _is_begun_in_metadata(state: TableState, requested: str) -> bool:
    """Whether the metadata table has a delta commit of the clean. A loss of power may take the inflight file alone."""
    table = metadata_of(state)
    return table is not None and table.timeline.find(requested, "deltacommit") is not None


def _instant_of(session: TableSession, planned: ScheduledClean) -> Instant:
    """The pending clean of a plan; puts a plan without an instant on the timeline."""
    state = session.state
    if not planned.instant:
        instant = Instant(session.next_time(), _ACTION, State.REQUESTED)
        created = create_requested(session.storage, state.config, instant, encode_clean_plan(planned.plan))
        if not was_alone(session, created):
            session.changed()  # a savepoint or a service that has not seen the plan may need its files
        return created
    found = state.timeline.find(planned.instant, _ACTION)
    if found is None or found.action != _ACTION or found.is_completed:
        what = "removed from the timeline" if found is None else "completed"
        raise _not_pending(session.storage, planned.instant, what)
    return found


def _recover(session: TableSession) -> TableState:
    """Roll back failed writes, even if only cleans do so; returns the state. Under the table's lock."""
    recover(session)
    for instant in expired_writes(session.state, session.settings.failed_writes):
        roll_back(session, instant)
    return session.state


def _report_kept(storage: Storage, requested: str, checked: CheckedPlan, strictly: bool) -> None:
    if not checked.kept:
        return
    path, reason = min(checked.kept.items())
    what = (
        f"The clean {requested} of {storage.uri} was planned to delete {len(checked.kept)} files that must stay now, "
        f"for example {path}: {reason}."
    )
    if strictly:
        raise CommitConflictError(
            f"{what} Nothing was deleted. Call clean() without a plan: it deletes the other files and completes this "
            "clean."
        )
    warn(f"{what} They stay.")


def _finish(session: TableSession, begun: _Begun, failed: set[str]) -> FinishedClean:
    """Record deleted files, in the metadata table too, and complete the clean."""
    state, storage, requested = session.state, session.storage, begun.instant.requested
    instant = state.timeline.find(requested, _ACTION)
    if instant is None or instant.state is not State.INFLIGHT:
        raise _not_pending(storage, requested, "removed from the timeline" if instant is None else "completed")
    clock = session.clock
    clock.next_time(state.timeline.newest_time)  # checks the lock before folders are deleted
    gone_partitions = _delete_partitions(storage, begun.plan.partitions_to_be_deleted, state.timeline)
    parts = _parts(begun, failed, gone_partitions)
    removed = {one.partition_path: one.deleted for one in parts}
    recorded = record_clean(session, requested, removed, gone_partitions)
    metadata = CleanMetadata(
        requested,
        begun.plan.earliest_instant_to_retain or "",
        begun.plan.last_completed,
        int((time.monotonic() - begun.started) * 1000),
        parts,
        begun.plan.extra_metadata,
    )
    body, config = encode_clean_metadata(metadata), session.state.config
    times = partial(clock.completion_time, requested)
    session.committed(complete(storage, config, begun.instant, body, times, confirm=clock.confirm), recorded)
    maintain_metadata(session, state)
    size = sum(bytes_ for path, bytes_ in begun.checked.sizes.items() if path not in failed)
    return FinishedClean(requested, metadata, size)


def _parts(begun: _Begun, failed: set[str], gone_partitions: list[str]) -> tuple[CleanPartition, ...]:
    """Deleted and failed files of each partition of the plan; files that had to stay count as failed."""
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
    """Delete the folders of empty partitions; returns the deleted partitions.

    Folders stay while a write is pending: it may be making a file in one of them, and its records in the metadata table
    precede those of the clean.
    """
    if timeline.pending_writes:
        return []
    return [one for one in partitions if _delete_partition(storage, one)]


def _delete_partition(storage: Storage, partition: str) -> bool:
    """Delete a partition's folder if it holds only its marker; whether it is deleted."""
    others = [one for one in storage.list_dir(partition) if one.name not in PARTITION_MARKERS]
    if any(not (one.name.endswith(".crc") and is_own_file(one.name)) for one in others):
        return False
    with contextlib.suppress(OSError):  # an empty folder is harmless
        storage.delete_dir(partition)
    return not storage.exists(partition)


def _not_pending(storage: Storage, requested: str, what: str) -> ServiceTakenError:
    return ServiceTakenError(f"The clean {requested} of {storage.uri} is not pending: it was {what}. Plan another one.")


# ---- the metadata table: updated as for a write, but without the parts that need rows
#
# ::
#
#     before anything is deleted   partitions that cannot be updated or trusted are dropped or built again
#     before it is completed       files ─► deleted; their statistics and bloom filters ─► deleted
#
# A clean merges no rows, so it works on tables that cannot be written to. It never creates a metadata table. Source:
# metadata reference 2.7.


def ensure_metadata_of_clean(session: TableSession, checked: bool = False) -> TableState:
    """Make an existing metadata table able to record a clean; returns the state. Under the table's lock.

    Args:
        session: the call; failed writes were rolled back.
        checked: whether this call has checked it already.

    Raises:
        HudiError: it could not be built again; nothing was deleted.
    """
    state, options = session.state, session.settings.write.metadata
    if not state.config.metadata_partitions:
        return state
    known = metadata_of(state)
    if checked and options.enabled and known is not None and not known.timeline.pending():
        return state
    if options.enabled:
        table = metadata_without_pending(session)
        if table is not None and (checked or _can_keep_up(state, table, options)):
            if table is known:
                return state
            return session.set_state(replace(state, view=replace(state.view, lister=MetadataLister(table))))
    return ensure_metadata(session, file_plan(session))


def record_clean(
    session: TableSession, requested: str, removed: Mapping[str, Iterable[str]], removed_partitions: list[str]
) -> Recorded | None:
    """Record a clean that is about to be completed; under the table's lock.

    Args:
        session: the call.
        requested: the clean.
        removed: partition path to names of deleted files.
        removed_partitions: partitions that were deleted as a whole.

    Returns:
        None for a table without a metadata table.

    Raises:
        HudiError: it could not be recorded; the clean stays pending.
    """
    state = ensure_metadata_of_clean(session, checked=True)
    table = metadata_of(state)
    if table is None:
        return None
    options = session.settings.write.metadata
    delta = change_of_clean(
        requested, {name: tuple(files) for name, files in removed.items() if files}, removed_partitions
    )
    context = _context(state, table, options)
    return update_metadata(
        context, delta, session.clock, session.backend.write_records, options.partitioned_index_min_groups
    )


def _can_keep_up(state: TableState, table: MetadataTable, options: MetadataOptions) -> bool:
    """Whether each partition of the metadata table can record a clean: its kind is known, and it is fully built."""
    probe = change_of_clean(table.timeline.newest_time or "", {"": ("file",)})
    names = [*table.partitions, *table.building]
    try:
        for name in names:
            table.groups(name)
        sources_of_delta(_context(state, table, options), probe, names)
    except (UnsupportedFeatureError, CorruptTableError):
        return False
    return True


def _context(state: TableState, table: MetadataTable, options: MetadataOptions) -> ProducerContext:
    config = state.config
    schema = table_schema(state) or pa.schema([])
    columns = measured_columns(schema, config, table.definitions, options)
    defined = table.definitions.get("column_stats")
    every = dict.fromkeys([*columns, *(defined.source_fields if defined is not None else ())])
    return ProducerContext(
        storage=state.storage,
        config=config,
        view=state.view,
        merge=SliceMerge(
            storage=state.storage,
            timeline=state.timeline,
            table_version=config.version,
            rules=MergeRules(COMMIT_TIME),
            history=state.view.history,
        ),
        metadata=table,
        schema=schema,
        indexed_columns=tuple(every),
        definitions=dict(table.definitions),
    )
