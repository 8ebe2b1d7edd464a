"""Dropping indexes, and undoing abandoned indexings.

::

    drop    indexes that require it, then its names in the properties ─► folders ─► index definitions
    undo    abandoned indexings, by the next indexing or write:
            the same for partitions that are being built ─► their delta commit ─► the indexing itself
            before it began: the plan, unless other calls may execute it

All of it under the table's lock. Source: metadata reference 2.10, 2.12; RunIndexActionExecutor#abort, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, HudiError
from hudi_fast.locking.machine import machine_lock
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import drop_partitions, has_metadata_folder, write_definitions
from hudi_fast.services.indexing.index_plan import (
    INDEX_LOCK_PATH,
    ScheduledIndex,
    last_write,
    read_index_plan,
    scheduled_indexes,
)
from hudi_fast.services.indexing.request import named_partition, resting_on
from hudi_fast.services.liveness import is_abandoned_indexing, require_abandoned
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.heartbeat import heartbeat_path, is_alive
from hudi_fast.timeline.index_plans import encode_index_metadata
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import complete, delete_instant_files, revert_to_requested
from hudi_fast.writing.session import TableSession

__all__ = ["drop_index", "finish_abandoned_indexings", "finish_pending_indexings", "undo_indexing"]

_ACTION = "indexing"


def drop_index(session: TableSession, name: str) -> tuple[str, ...]:
    """Drop an index.

    Args:
        session: the call.
        name: of the metadata partition, or of a secondary or expression index; ``files`` drops all.

    Returns:
        The metadata partitions that were dropped: ``partition_stats`` is dropped with ``column_stats``.

    Raises:
        ConfigError: there is no such index, or secondary indexes require it.
    """
    storage = session.storage
    with machine_lock(storage, session.settings.lock_seconds, INDEX_LOCK_PATH), session.locked() as state:
        config = state.config
        present = config.all_metadata_partitions
        partition = named_partition(name, present)
        others = resting_on(partition, present)
        if partition == PartitionKind.RECORD_INDEX and others:
            raise ConfigError(
                f"The record index of {storage.uri} cannot be dropped: {', '.join(others)} requires it. Drop that "
                "first."
            )
        dropped = (partition, *others)
        session.require_lock()
        _drop(storage, config, dropped)
        session.changed()
        return dropped


def undo_indexing(storage: Storage, planned: ScheduledIndex, keep_plan: bool = False) -> None:
    """Remove files and properties of a failed indexing; the table is as before.

    Args:
        storage: the table's storage.
        planned: the indexing.
        keep_plan: whether it stays requested on the timeline.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    instant = Instant(planned.instant, _ACTION, State.INFLIGHT)
    if any(one.requested == planned.instant and one.is_completed for one in _indexings(storage, config)):
        return  # it failed after it was complete
    built = set(planned.partitions) & set(config.metadata_partitions)
    if not built:
        _drop(storage, config, planned.partitions)
        _delete_delta_commit(storage, planned.instant)
    if keep_plan and not built:
        revert_to_requested(storage, config, instant)
    elif not built:
        delete_instant_files(storage, config, instant)


def finish_pending_indexings(session: TableSession, wanted: str = "") -> None:
    """Undo abandoned indexings; under the lock of indexings and the table's.

    One whose partitions are fully built is completed instead. A plan that other calls may execute stays.

    Args:
        session: the call.
        wanted: the indexing that is executed next: its plan stays.

    Raises:
        ServiceTakenError: another process runs one.
    """
    state = session.state
    storage, config = state.storage, state.config
    named: set[str] = set()
    for instant in _never_begun(session):
        if instant.requested != wanted:
            delete_instant_files(storage, config, instant)
            storage.delete_file(heartbeat_path(instant.requested))
            session.changed()
    for instant in state.timeline.of_action(_ACTION):
        if instant.state is not State.INFLIGHT:
            continue
        require_abandoned(session, instant)
        parts = read_index_plan(state, instant)
        names = {one.partition for one in parts}
        if names and names <= set(config.metadata_partitions):
            done = [replace(one, upto=last_write(state), extra_metadata={}) for one in parts]
            body, newest = encode_index_metadata(done), state.timeline.newest_time
            clock = session.clock
            complete(storage, config, instant, body, partial(clock.completion_time, newest), confirm=clock.confirm)
        else:
            undo_indexing(storage, ScheduledIndex(instant.requested, parts), keep_plan=instant.requested == wanted)
        named |= names
        session.changed()
    left = set(config.metadata_partitions_inflight) - named
    if left:
        _drop(storage, session.state.config, left)
        session.changed()


def finish_abandoned_indexings(session: TableSession) -> None:
    """Undo or complete abandoned indexings: the metadata table is not compacted while one is pending.

    Plans that wait for another call stay.

    Args:
        session: the call, with or without the table's lock.

    Raises:
        ServiceTakenError: another process runs one.
    """
    timeline = session.state.timeline
    begun = [one for one in timeline.of_action(_ACTION) if one.state is State.INFLIGHT]
    is_left = all(is_abandoned_indexing(session, one) for one in begun)
    if is_left and (begun or _never_begun(session)):
        with session.service_lock(INDEX_LOCK_PATH), session.locked():
            finish_pending_indexings(session)


def _never_begun(session: TableSession) -> list[Instant]:
    """Indexings that their own call should have executed, but it died before.

    The table's lock makes this certain: that call holds it until the indexing is inflight.
    """
    state, rule = session.state, session.heartbeat_rule
    left = {one.instant for one in scheduled_indexes(state) if one.is_at_once}
    return [
        one
        for one in state.timeline.of_action(_ACTION)
        if one.requested in left and not is_alive(state.storage, one.requested, rule)
    ]


def _drop(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> None:
    going = set(partitions)
    config = drop_partitions(storage, config, going)
    with contextlib.suppress(HudiError):  # definitions without a partition are harmless
        old = dict(load_definitions(storage, config))
        write_definitions(storage, config, {name: one for name, one in old.items() if name not in going}, old)


def _delete_delta_commit(storage: Storage, instant: str) -> None:
    if not has_metadata_folder(storage):
        return
    inner = metadata_storage(storage)
    config = TableConfig.from_properties(load_properties(inner), inner.uri)
    delete_instant_files(inner, config, Instant(instant, "deltacommit", State.INFLIGHT))


def _indexings(storage: Storage, config: TableConfig) -> tuple[Instant, ...]:
    return load_timeline(storage, config).of_action(_ACTION)
