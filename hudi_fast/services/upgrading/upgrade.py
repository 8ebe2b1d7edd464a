"""Changes the table version: steps that keep the old version first, then the switch.

::

    prepare   writers may run in between   failed writes rolled back, compactions completed, log files compacted
    locks     of all services and the table; nothing pending, no log files? otherwise prepare again
    move      the metadata table, then the data table: copy ─► hoodie.properties ─► sweep
    check     the metadata table

A table of version 2 to 5 is moved to version 6 first, then to a later version if requested: the steps up to 6 are
small, and log files do not change. A table of version 8 or 9 reaches version 5 by way of 6. After a crash in between
the table has version 6.

Before the switch of ``hoodie.properties`` the table has the old version, afterwards the new one. A crash leaves unused
files, and perhaps a metadata table that readers ignore until it is built again. The same call continues after a crash.
Writers on this machine wait. Stop writers on other machines and Apache Hudi's own, as Apache Hudi requires too. Readers
that began before the switch may fail to find the timeline after it.

Source: UpgradeDowngrade#run, release 1.2.0, which moves timelines before it changes the properties.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.errors import CommitConflictError
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.metadata_table.layout import load_definitions
from hudi_fast.metadata_table.state import MetadataLister, metadata_of
from hudi_fast.metadata_table.table import examine_metadata, metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import (
    PARTITIONS_KEY,
    drop_metadata,
    drop_partitions,
    has_metadata_folder,
    write_definitions,
)
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.services.compact import run_compaction, run_pending_compactions, run_pending_log_compactions
from hudi_fast.services.compact_plan import schedule_compaction
from hudi_fast.services.index_plan import INDEX_LOCK_PATH
from hudi_fast.services.running import file_plan, require_abandoned
from hudi_fast.services.upgrading.move import both_tables, copy_timeline, move_table, sweep, target_config
from hudi_fast.services.upgrading.properties import PropertyHints, path_between
from hudi_fast.services.upgrading.upgrade_plan import (
    UpgradePlan,
    UpgradeResult,
    copied_plans,
    decide,
    failed_writes,
    hints_of,
    leaving_partitions,
    logged_slices,
    needs_compaction,
    refuse,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, load_timeline
from hudi_fast.view.lost_files import moved_away
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.metadata_commit import ensure_metadata, metadata_without_pending
from hudi_fast.writing.rollback_plan import FailedWrites
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover

__all__ = ["plan_upgrade", "put_back", "run_upgrade"]

_ROUNDS = 3
_MIDDLE = 6
_BRIDGE = 7
_UNBOUNDED = "UnBoundedCompactionStrategy"
_LOCKS = (*map(service_lock_path, ("clean", "clustering", "compaction", "logcompaction")), INDEX_LOCK_PATH)


def plan_upgrade(session: TableSession, version: int) -> UpgradePlan:
    """Plan :func:`run_upgrade`; nothing is written.

    Args:
        session: the call.
        version: 5, 6, 8 or 9.

    Raises:
        ConfigError: something must be resolved first.
        CorruptTableError: a file of the timeline is invalid.
        UnsupportedFeatureError: an unsupported version, or a feature that the other version does not have.
    """
    return decide(session.set_state(opened(session.storage)), version, session.settings)


def run_upgrade(session: TableSession, version: int, plan: UpgradePlan | None = None) -> UpgradeResult:
    """Change the table version; does nothing when the table already has it.

    Args:
        session: the call.
        version: 5, 6, 8 or 9.
        plan: execute exactly this; None to plan now.

    Raises:
        CommitConflictError: the plan no longer fits, or writers log faster than this process compacts.
        ConfigError: something must be resolved first; nothing has changed.
        UnsupportedFeatureError: an unsupported version or feature; nothing has changed.
        LockTimeoutError: other processes held the lock of the table or of a service.
        ServiceTakenError: another process runs a pending write or service; nothing has changed.
    """
    started = time.monotonic()
    planned = plan_upgrade(session, version)
    if plan is not None and plan != planned:
        raise CommitConflictError(
            f"The upgrade of {session.storage.uri} was planned from version {plan.before} to {plan.after} in "
            f"{len(plan.steps)} steps; now it is from {planned.before} to {planned.after} in {len(planned.steps)}: "
            f"{_difference(plan, planned)}. Plan it again."
        )
    if planned.steps:
        _require_abandoned(session)
        for stop in _stops(planned.before, version):
            _execute(session, stop)
    return UpgradeResult(planned.before, planned.after, planned.steps, time.monotonic() - started)


# ---- execution


def _difference(old: UpgradePlan, new: UpgradePlan) -> str:
    ahead = [f"no longer: {step}" for step in old.steps if step not in new.steps]
    return (ahead + [f"new: {step}" for step in new.steps if step not in old.steps] + ["other versions"])[0]


def _stops(before: int, after: int) -> tuple[int, ...]:
    """The versions that the table has on the way, one after the other."""
    crosses = min(before, after) < _MIDDLE < max(before, after) or before == _BRIDGE
    return (_MIDDLE, after) if crosses and after != _MIDDLE else (after,)


def _require_abandoned(session: TableSession) -> None:
    """Raise if another process runs a pending action: the upgrade completes or rolls back all of them."""
    for instant in _pending(session.state):
        require_abandoned(session, instant)


def _pending(state: TableState) -> list[Instant]:
    return [one for one in state.timeline.pending() if one.action != "savepoint"]


def _execute(session: TableSession, version: int) -> None:
    for _ in range(_ROUNDS):
        _put_back(session)
        _prepare(session, version)
        with contextlib.ExitStack() as stack:
            for path in _LOCKS:
                stack.enter_context(session.service_lock(path))
            stack.enter_context(session.section())
            session.set_state(opened(session.storage))
            if _switch(session, version):
                return
    raise CommitConflictError(
        f"The version of {session.storage.uri} was not changed: other writers continued to log or to plan compactions "
        f"after each of {_ROUNDS} rounds of compaction. Stop them and run it again."
    )


def _put_back(session: TableSession) -> None:
    """Undo the change of version that another program began and did not finish."""
    storage = session.storage
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    if moved_away(storage, config):
        with session.section():
            put_back(storage, config)


def _prepare(session: TableSession, version: int) -> None:
    """Compact the table until nothing is pending and the newest file slices have no log files, if that is required."""
    storage = session.storage
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    if not config.is_mor or config.version == version or not needs_compaction(config.version, version):
        return
    state = opened(storage)
    neutral = TableSession(Call(storage, _neutral(state, session.settings), session.backend))
    if state.timeline.pending_compactions:
        run_pending_compactions(neutral)
    if state.timeline.pending_log_compactions:
        run_pending_log_compactions(neutral)
    if state.timeline.pending_compactions or state.timeline.pending_log_compactions:
        state = opened(storage)
    if logged_slices(state):
        scheduled = schedule_compaction(neutral, if_due=False)
        if scheduled is not None:
            run_compaction(neutral, scheduled)


def _neutral(state: TableState, settings: Settings) -> Settings:
    """Settings that compact everything and keep the set of indexes."""
    write = replace(settings.write, metadata=as_it_is(state.config, settings.write.metadata))
    return replace(
        settings, write=write, compaction=replace(settings.compaction, strategies=(_UNBOUNDED,), incremental=False)
    )


def _switch(session: TableSession, version: int) -> bool:
    """Move the table, under all locks; False when it must be prepared again."""
    storage, state, settings = session.storage, session.state, session.settings
    refuse(state, version, settings)
    if state.config.version == version:
        for table in both_tables(storage, state.config):
            sweep(*table)
        return True
    before, compacts = state.config, needs_compaction(state.config.version, version)
    hints = hints_of(state, settings)
    if _pending(state) if compacts else _has_failed(state):
        _require_abandoned(session)
        recover(session, FailedWrites())
        state = session.set_state(opened(storage))
    if (compacts and (_pending(state) or logged_slices(state))) or _has_failed(state):
        return False
    steps = path_between(before.version, version)
    target = target_config(before.raw, version, hints, storage.uri)
    session.require_lock()  # from here on every step changes the table
    if (5, 6) in steps:
        storage.delete_files(copied_plans(state))
    before = drop_leaving(session, version, hints).config
    move_metadata(session, version, target.layout_version != before.layout_version)
    if (8, 9) in steps:
        version_definitions(storage, before)
    session.require_lock()
    move_table(storage, version, hints, settings.archive)
    check_metadata(session)
    return True


def _has_failed(state: TableState) -> bool:
    return bool(failed_writes(state)) or any(one.action == "rollback" for one in state.timeline.pending())


# ---- undoes a change of the table version that Apache Hudi began, and that failed while it moved the timeline
#
# :mod:`hudi_fast.view.lost_files` finds such tables. hudi_fast copies the timeline when it upgrades, so its own
# failed upgrades never leave a table in this state.


def put_back(storage: Storage, config: TableConfig) -> int:
    """Put the instants that :func:`moved_away` finds back into the table's timeline; returns their number.

    Under the table's lock. The files in the other folder stay: they are copies from then on. After a crash the next
    call continues: completed files are written last, and :func:`moved_away` finds the instants without them.

    Args:
        storage: of the table.
        config: its configuration.
    """
    lost = moved_away(storage, config)
    if lost:
        other = other_layout(config, storage.uri)
        own = {one.requested for one in load_timeline(storage, config).instants}
        here = {one.requested for one in load_timeline(storage, other).instants if one.requested in own}
        copy_timeline(storage, other, config, here | {one.requested for one in lost})
    return len(lost)


# ---- the metadata table
#
# ::
#
#     drop      partitions that the version does not support: names first, then folders, then definitions
#     compact   all groups, where the timeline layout changes: it changes the names of log files
#     move      by the same steps as the data table, before it: readers ignore one of another layout meanwhile
#     check     afterwards: an untrusted one is built again, with the partitions that the table's properties list
#
# Apache Hudi moves the metadata table before the data table too. To version 6 it finally adds an empty delta commit,
# which release 0.15 does not need. Source: UpgradeDowngrade#run, UpgradeDowngradeUtils#dropNonV1IndexPartitions,
# EightToSevenDowngradeHandler#downgradeMetadataPartitions, release 1.2.0.

_FIRST_WITH_NAMES = 4
"""Properties name the partitions of the metadata table."""


def opened(storage: Storage) -> TableState:
    """The table with its metadata table if that is trusted; gives no warning otherwise."""
    state = load_state(storage)
    if not state.config.metadata_partitions:
        return state
    table, problem = examine_metadata(storage, state.config, state.timeline)
    if table is None or problem is not None:
        return state
    return replace(state, view=replace(state.view, lister=MetadataLister(table)))


def as_it_is(config: TableConfig, options: MetadataOptions) -> MetadataOptions:
    """Options that ask for exactly the metadata partitions of a table.

    Args:
        config: of the table.
        options: numbers of file groups and other sizes.
    """
    named = config.metadata_partitions
    return replace(
        options,
        enabled=bool(named),
        column_stats="column_stats" in named,
        partition_stats="partition_stats" in named,
        bloom_filters="bloom_filters" in named,
        secondary_column=None,
        expression_column=None,
        drop_indexes=(),
        explicit=frozenset(),
    )


def drop_leaving(session: TableSession, version: int, hints: PropertyHints) -> TableState:
    """Drop the metadata partitions that the version does not support; returns the table afterwards.

    The metadata table of a version 2 or 3 table, which its properties do not name, is deleted unless it is kept.

    Args:
        session: the call, under the table's lock.
        version: the new version.
        hints: about the table.
    """
    state = session.state
    if state.config.version < _FIRST_WITH_NAMES:
        if not hints.has_files_partition and drop_metadata(state.storage, state.config):
            return session.set_state(opened(state.storage))
        return state
    leaving = leaving_partitions(state, version)
    if not leaving:
        return state
    storage = state.storage
    config = drop_partitions(storage, state.config, leaving)
    old = dict(load_definitions(storage, config))
    write_definitions(storage, config, {name: one for name, one in old.items() if name not in leaving}, old)
    return session.set_state(opened(storage))


def version_definitions(storage: Storage, config: TableConfig) -> None:
    """Write version 1 into index definitions without a version: from table version 9 on the default is 2.

    Args:
        storage: of the data table.
        config: of the data table, before version 9.
    """
    old = dict(load_definitions(storage, config))
    new = {name: replace(one, version=one.version or "V1") for name, one in old.items()}
    write_definitions(storage, config, new, old)


def move_metadata(session: TableSession, version: int, new_layout: bool) -> None:
    """Move the metadata table to the new version of its data table.

    Args:
        session: the call, under the table's lock; nothing is pending.
        version: the new version.
        new_layout: whether the timeline layout changes.
    """
    storage, state = session.storage, session.state
    if not has_metadata_folder(storage):
        return
    if not (state.config.metadata_partitions or state.config.version < _FIRST_WITH_NAMES):
        return
    inner = metadata_storage(storage)
    own = TableConfig.from_properties(load_properties(inner), inner.uri)
    if own.version == version:
        sweep(inner, own)
        return  # an earlier attempt moved it
    if not needs_compaction(state.config.version, version):
        if own.layout_version == state.config.layout_version:
            move_table(inner, version, PropertyHints(), session.settings.archive)
        return
    if metadata_of(state) is None or (table := metadata_without_pending(session, compactions=True)) is None:
        return  # it is built again afterwards
    if new_layout:
        compact_metadata(table, session.clock, session.backend.map_groups)
    move_table(inner, version, PropertyHints(), session.settings.archive)


def check_metadata(session: TableSession) -> None:
    """Build the metadata table again if it is not trusted after the data table changed its version.

    Args:
        session: the call, under the table's lock.
    """
    if not load_properties(session.storage).get(PARTITIONS_KEY):
        session.changed()
        return
    state = session.set_state(opened(session.storage))
    if not state.config.metadata_partitions or metadata_of(state) is not None:
        return
    if state.config.version < FIRST_WITH_METADATA:
        drop_metadata(session.storage, state.config)
        session.changed()
    else:
        ensure_metadata(session, file_plan(session), as_it_is(state.config, session.settings.write.metadata))
