"""Plans an indexing: puts the missing partitions of the metadata table on the timeline.

::

    the table's lock ─► requested partitions that do not exist ─► <instant>.indexing.requested

A plan of hudi_fast contains the definitions of secondary and expression indexes. For its own plans Apache Hudi keeps
them in the table's index definitions. A plan says whether its own call executes it. Such a plan is inflight before that
call releases the table's lock, so one that is still requested while another call holds the lock was abandoned. A plan
for other calls stays requested until one of them executes it.

Sources: ScheduleIndexActionExecutor, Hudi 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.metadata_table.definitions import IndexDefinition, load_definitions
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.updates.build import build_order
from hudi_fast.services.indexing.request import (
    IndexRequest,
    WantedIndexes,
    definition_of_text,
    definition_text,
    wanted_indexes,
)
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.active import read_requested_body
from hudi_fast.timeline.index_plans import IndexPart, decode_index_plan, encode_index_plan
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover

__all__ = [
    "INDEX_LOCK_PATH",
    "IndexWork",
    "ScheduledIndex",
    "last_write",
    "schedule_in",
    "schedule_index",
    "scheduled_indexes",
    "waiting_for",
    "work_of",
]

INDEX_LOCK_PATH = ".hoodie/.locks/hudi_fast_index.lock"
"""An indexing holds this lock while it runs; writers use the table's own lock."""

_ACTION = "indexing"
_DEFINITION = "hudi_fast.index.definition"
_COLUMNS = "hudi_fast.index.columns"
_BY_PARTITION = "hudi_fast.index.partitioned"
_AT_ONCE = "hudi_fast.index.at.once"


@dataclass(frozen=True, slots=True)
class ScheduledIndex:
    """A planned indexing.

    Attributes:
        instant: its requested time; empty for a plan that is not on the timeline.
        parts: the metadata partitions to build; the requested one is the last.
        waited: whether it was pending before this call, and stays pending if its execution fails.
    """

    instant: str
    parts: tuple[IndexPart, ...]
    waited: bool = False

    @property
    def partition(self) -> str:
        """The requested metadata partition."""
        return self.parts[-1].partition if self.parts else ""

    @property
    def partitions(self) -> tuple[str, ...]:
        """All metadata partitions to build."""
        return tuple(one.partition for one in self.parts)

    @property
    def is_at_once(self) -> bool:
        """Whether the call that planned it executes it: no other call waits for it."""
        return any(_AT_ONCE in one.extra_metadata for one in self.parts)


@dataclass(frozen=True)
class IndexWork:
    """The work of an indexing.

    Attributes:
        instant: its requested time.
        parts: as planned.
        partitions: the planned metadata partitions that are missing, in build order.
        options: settings of the partitions.
        definitions: definitions of the secondary and expression indexes among them.
    """

    instant: str
    parts: tuple[IndexPart, ...]
    partitions: tuple[str, ...]
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """The requested metadata partition."""
        return self.parts[-1].partition


def schedule_index(session: TableSession, request: IndexRequest, dry_run: bool = False) -> ScheduledIndex | None:
    """Put an indexing on the timeline for another call to execute.

    Args:
        session: the call.
        request: which index.
        dry_run: only return the plan, without an instant; nothing is written.

    Returns:
        The plan; None when the index exists.

    Raises:
        CommitConflictError: it is already planned or being built.
        ConfigError: the table cannot have it.
    """
    if dry_run:
        session.latest()
        return _planned(session, request)
    with session.locked():
        recover(session)
        planned = schedule_in(session, request)
        session.changed()
        return None if planned is None else replace(planned, waited=True)


def schedule_in(session: TableSession, request: IndexRequest, at_once: bool = False) -> ScheduledIndex | None:
    """Put an indexing on the timeline; under the table's lock.

    Args:
        session: the call.
        request: which index.
        at_once: whether the call executes it, before it releases the lock.

    Returns:
        As :func:`schedule_index`.
    """
    planned, state = _planned(session, request, at_once), session.state
    if planned is None:
        return None
    metadata = metadata_of(state)
    newest = None if metadata is None else metadata.timeline.newest_time
    now = session.clock.next_time(state.timeline.newest_time, newest)
    body = encode_index_plan(planned.parts)
    create_requested(state.storage, state.config, Instant(now, _ACTION, State.REQUESTED), body)
    return replace(planned, instant=now)


def _planned(session: TableSession, request: IndexRequest, at_once: bool = False) -> ScheduledIndex | None:
    """The plan of an indexing, without an instant; None when the index exists."""
    state, settings = session.state, session.settings
    storage, config = state.storage, state.config
    wanted = wanted_indexes(request, config, settings.write.metadata)
    missing = [one for one in wanted.partitions if one not in config.metadata_partitions]
    if wanted.partition not in missing:
        return None
    for instant in _pending(state):
        planned = {one.partition for one in read_index_plan(state, instant)}
        if planned & set(missing):
            raise CommitConflictError(
                f"The index {', '.join(sorted(planned & set(missing)))} of {storage.uri} is already planned (indexing "
                f"{instant.requested}, {instant.state.name.lower()}). Execute that plan."
            )
    upto = last_write(state)
    executed = {_AT_ONCE: "true"} if at_once else {}
    parts = tuple(IndexPart(one, upto, _extra(one, wanted) | executed) for one in missing)
    return ScheduledIndex("", parts)


def waiting_for(state: TableState, request: IndexRequest, settings: Settings) -> ScheduledIndex | None:
    """The oldest plan on the timeline for a missing index, or for one that it requires; None without one.

    Args:
        state: the table.
        request: the index.
        settings: of the metadata table.
    """
    wanted = wanted_indexes(request, state.config, settings.write.metadata)
    present = state.config.metadata_partitions
    if wanted.partition in present:
        return None
    missing = set(wanted.partitions) - set(present)
    return next((one for one in scheduled_indexes(state) if missing & set(one.partitions)), None)


def scheduled_indexes(state: TableState) -> list[ScheduledIndex]:
    """Pending indexings, oldest first."""
    waiting = [one for one in _pending(state) if one.state is State.REQUESTED]
    return [ScheduledIndex(one.requested, read_index_plan(state, one), True) for one in waiting]


def read_index_plan(state: TableState, instant: Instant) -> tuple[IndexPart, ...]:
    """The plan of a pending indexing.

    Raises:
        CorruptTableError: it is missing or damaged.
    """
    path = f"{state.config.timeline_folder}/{instant.requested}.{_ACTION}.requested"
    return decode_index_plan(read_requested_body(state.storage, state.config, instant), path)


def work_of(state: TableState, planned: ScheduledIndex, settings: Settings) -> IndexWork:
    """The work of a plan.

    Args:
        state: the table.
        planned: the plan.
        settings: numbers of file groups, and other settings that the plan lacks.

    Raises:
        ConfigError: the plan has an invalid index definition.
        UnsupportedFeatureError: it names an unknown kind of partition.
    """
    options = settings.write.metadata
    stored = load_definitions(state.storage, state.config)
    definitions = {}
    for one in planned.parts:
        extra = one.extra_metadata
        if _DEFINITION in extra:
            definitions[one.partition] = definition_of_text(one.partition, extra[_DEFINITION])
        elif one.partition in stored:
            definitions[one.partition] = stored[one.partition]
        if _COLUMNS in extra:
            options = replace(options, column_list=tuple(stored_json(extra[_COLUMNS])))
        if _BY_PARTITION in extra:
            by_partition = extra[_BY_PARTITION] == "true"
            options = replace(options, record_index=not by_partition, partitioned_record_index=by_partition)
    missing = set(planned.partitions) - set(state.config.metadata_partitions)
    return IndexWork(planned.instant, planned.parts, tuple(build_order(missing)), options, definitions)


def last_write(state: TableState) -> str:
    """Requested time of the newest complete write; empty without one."""
    last = state.timeline.last_completed_write
    return "" if last is None else last.requested


def _pending(state: TableState) -> list[Instant]:
    return [one for one in state.timeline.of_action(_ACTION) if one.state is not State.COMPLETED]


def _extra(partition: str, wanted: WantedIndexes) -> dict[str, str]:
    """The parameters of a plan besides its partition, for its execution."""
    options = wanted.options
    if partition in wanted.definitions:
        return {_DEFINITION: definition_text(wanted.definitions[partition])}
    if partition == PartitionKind.COLUMN_STATS and options.column_list:
        return {_COLUMNS: json.dumps(list(options.column_list))}
    if partition == PartitionKind.RECORD_INDEX and options.partitioned_record_index:
        return {_BY_PARTITION: "true"}
    return {}
