"""Taking indexes away: those that are dropped, and those whose building died.

::

    drop    what rests on it first ─► names go out of the properties ─► folders ─► index definitions
    undo    the same for partitions that are being built ─► their delta commit ─► the indexing itself

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
from hudi_fast.locking.table_lock import table_lock
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import drop_partitions, has_metadata_folder, write_definitions
from hudi_fast.services.indexing.plan import INDEX_LOCK_PATH, ScheduledIndex, last_write, read_index_plan
from hudi_fast.services.indexing.request import named_partition, resting_on
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.heartbeat import HeartbeatRule
from hudi_fast.timeline.index_plans import encode_index_metadata
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import complete, delete_instant_files, revert_to_requested
from hudi_fast.view.table_state import TableState, load_state

__all__ = ["drop_index", "finish_pending_indexings", "undo_indexing"]

_ACTION = "indexing"


def drop_index(storage: Storage, name: str, settings: ServiceSettings) -> tuple[str, ...]:
    """Take an index away.

    Args:
        storage: the table's storage.
        name: of the metadata partition, or of a secondary or expression index; ``files`` takes all of them away.
        settings: locks.

    Returns:
        The metadata partitions that are gone: ``partition_stats`` goes with ``column_stats``.

    Raises:
        ConfigError: there is no such index, or secondary indexes rest on it.
    """
    lock = table_lock(storage, settings.write.lock)
    with machine_lock(storage, settings.lock_seconds, INDEX_LOCK_PATH), lock as held:
        config = TableConfig.from_properties(load_properties(storage), storage.uri)
        present = {*config.metadata_partitions, *config.metadata_partitions_inflight}
        partition = named_partition(name, present)
        others = resting_on(partition, present)
        if partition == PartitionKind.RECORD_INDEX and others:
            raise ConfigError(
                f"The record index of {storage.uri} cannot be dropped: {', '.join(others)} rests on it. Drop that "
                "first."
            )
        going = (partition, *others)
        held.require()
        _take_away(storage, config, going)
        return going


def undo_indexing(storage: Storage, planned: ScheduledIndex, keep_plan: bool = False) -> None:
    """Take away what an indexing that failed has made; the table is as before.

    Args:
        storage: the table's storage.
        planned: the indexing.
        keep_plan: leave it on the timeline, for somebody to carry out.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    instant = Instant(planned.instant, _ACTION, State.INFLIGHT)
    if any(one.requested == planned.instant and one.is_completed for one in _indexings(storage, config)):
        return  # it failed after all was done
    built = set(planned.partitions) & set(config.metadata_partitions)
    if not built:
        _take_away(storage, config, planned.partitions)
        _delete_delta_commit(storage, planned.instant)
    if keep_plan and not built:
        revert_to_requested(storage, config, instant)
    elif not built:
        delete_instant_files(storage, config, instant)


def finish_pending_indexings(state: TableState, clock: InstantClock, rule: HeartbeatRule, wanted: str = "") -> bool:
    """Leave no trace of indexings that died: call it under the indexings' lock and the table's.

    One whose partitions are whole lacks nothing but its completion, and gets that.

    Args:
        state: the table.
        clock: gives times.
        rule: for how long a sign of life counts.
        wanted: the indexing that is to be carried out next: of that one the plan stays.

    Returns:
        Whether anything changed.

    Raises:
        ServiceTakenError: another program is carrying one out.
    """
    storage, config = state.storage, state.config
    changed = False
    named: set[str] = set()
    for instant in state.timeline.of_action(_ACTION):
        if instant.state is not State.INFLIGHT:
            continue
        require_abandoned(storage, instant, rule)
        parts = read_index_plan(state, instant)
        names = {one.partition for one in parts}
        if names and names <= set(config.metadata_partitions):
            done = [replace(one, upto=last_write(state), extra_metadata={}) for one in parts]
            body, newest = encode_index_metadata(done), state.timeline.newest_time
            complete(storage, config, instant, body, partial(clock.next_time, newest))
        else:
            undo_indexing(storage, ScheduledIndex(instant.requested, parts), keep_plan=instant.requested == wanted)
        named |= names
        changed = True
    left = set(config.metadata_partitions_inflight) - named
    if left:
        _take_away(storage, load_state(storage).config, left)
        changed = True
    return changed


def _take_away(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> None:
    going = set(partitions)
    config = drop_partitions(storage, config, going)
    with contextlib.suppress(HudiError):  # definitions of no partition harm nobody
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
