"""Plan an indexing from a caller's arguments, and list the indexes of a table.

Plans an indexing: puts the missing partitions of the metadata table on the timeline.

::

    the table's lock ─► requested partitions that do not exist ─► <instant>.indexing.requested

A plan of hudi_fast contains the definitions of secondary and expression indexes. For its own plans Apache Hudi keeps
them in the table's index definitions. A plan says whether its own call executes it. Such a plan is inflight before that
call releases the table's lock, so one that is still requested while another call holds the lock was abandoned. A plan
for other calls stays requested until one of them executes it.

Sources: ScheduleIndexActionExecutor, Hudi 1.2.0.

Turns the arguments of a caller into partitions of the metadata table and their definitions.

::

    "secondary_index", columns=["city"], name="by_city"
        ─► secondary_index_by_city with its definition, and before it the required record_index

Reads only the table's configuration and its metadata table; nothing is written.

Sources: metadata reference 2.2, 3.6, 3.9, 4; HoodieSparkIndexClient, Hudi 1.2.0.

The indexes of a table as one Arrow table: existing ones, indexes being built, and planned ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

import pyarrow as pa

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.option_names import INDEX_KINDS
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, ConfigError, HudiError
from hudi_fast.metadata_table.layout import IndexDefinition, PartitionKind, kind_of, load_definitions
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.build import build_order, requested_indexes
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.instants import Instant, State, read_requested_body
from hudi_fast.timeline.service_plans import IndexPart, decode_index_plan, encode_index_plan
from hudi_fast.timeline.transition import create_requested
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover

__all__ = [
    "INDEXES",
    "INDEX_LOCK_PATH",
    "IndexRequest",
    "IndexWork",
    "ScheduledIndex",
    "WantedIndexes",
    "definition_of_text",
    "definition_text",
    "indexes_table",
    "last_write",
    "named_partition",
    "resting_on",
    "schedule_in",
    "schedule_index",
    "scheduled_indexes",
    "waiting_for",
    "wanted_indexes",
    "work_of",
]

_FIRST_WITH_LAYOUT_2 = 8
_LATER_KINDS = ("partition_stats", "secondary_index", "expr_index")
_NAMED = ("secondary_index", "expr_index")
_RESTS_ON = {"partition_stats": "column_stats", "secondary_index": "record_index"}


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index as the caller describes it.

    Attributes:
        kind: one of :data:`hudi_fast.config.option_names.INDEX_KINDS`.
        columns: columns of ``column_stats`` (empty: the first ones that can have statistics); the one column of a
            secondary or expression index.
        name: of a secondary or expression index; None: the name of its column.
        function: of an expression index, such as ``upper``.
        function_options: of the function, such as ``{"format": "yyyy-MM-dd"}``.
    """

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    function: str | None = None
    function_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WantedIndexes:
    """The partitions of a request.

    Attributes:
        partition: the requested metadata partition.
        partitions: it and the partitions that it requires, unordered.
        options: settings of the partitions.
        definitions: definitions of the secondary and expression indexes among them, by partition.
    """

    partition: str
    partitions: tuple[str, ...]
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)


def wanted_indexes(request: IndexRequest, config: TableConfig, options: MetadataOptions) -> WantedIndexes:
    """The partitions that a request needs in a table.

    Args:
        request: the index.
        config: of the table.
        options: the caller's options of the metadata table.

    Raises:
        ConfigError: there is no such kind of index, arguments are missing or superfluous, or the table cannot have the
            index.
    """
    _check_words(request, config)
    _check_table(request.kind, config, options)
    kind = request.kind
    if kind in _NAMED:
        options = _options_of_named(request, options)
        definitions = requested_indexes(options, config)
        partition, made = next(iter(definitions.items()))
        if kind == "expr_index":
            settings = {"expr": request.function or "", **request.function_options}
            definitions = {partition: replace(made, options=settings)}
    else:
        definitions, partition = {}, kind
        if request.columns:
            options = replace(options, column_list=request.columns)
    partitions = [partition]
    if kind in _RESTS_ON:
        partitions.insert(0, _RESTS_ON[kind])
    return WantedIndexes(partition, tuple(partitions), options, definitions)


def named_partition(name: str, present: Collection[str]) -> str:
    """The metadata partition with a folder name or an index name.

    Args:
        name: ``record_index``, ``secondary_index_by_city``, ``by_city``.
        present: existing partitions.

    Raises:
        ConfigError: no partition has this name, or two have it.
    """
    if name in present:
        return name
    found = [one for one in (f"{prefix}_{name}" for prefix in _NAMED) if one in present]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(sorted(present)) or "none at all"
    raise ConfigError(
        f"There is no index {name!r}: the table has {shown}."
        if not found
        else f"The name {name!r} is ambiguous: {' and '.join(found)}. Use the full name."
    )


def definition_text(definition: IndexDefinition) -> str:
    """A definition as JSON, for the plan of an indexing."""
    return json.dumps(
        {
            "kind": definition.kind,
            "function": definition.function,
            "source_fields": list(definition.source_fields),
            "options": dict(definition.options),
            "version": definition.version,
        }
    )


def definition_of_text(partition: str, text: str) -> IndexDefinition:
    """The definition that :func:`definition_text` wrote.

    Raises:
        ConfigError: the text is not a definition.
    """
    try:
        found = stored_json(text)
        return IndexDefinition(
            partition,
            found["kind"],
            found["function"],
            tuple(found["source_fields"]),
            dict(found["options"]),
            found["version"],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"The plan of the index {partition} holds no definition of it: {error!r}.") from error


# ---- checks


def _check_words(request: IndexRequest, config: TableConfig) -> None:
    kind = request.kind
    if kind not in INDEX_KINDS:
        raise ConfigError(f"There is no kind of index {kind!r}; use {', '.join(INDEX_KINDS)}.")
    if kind in _NAMED and len(request.columns) != 1:
        raise ConfigError(f"The index {kind} is over one column; got {list(request.columns)}. Give columns=[name].")
    if kind not in (*_NAMED, "column_stats") and request.columns:
        raise ConfigError(f"The index {kind} of table {config.name} takes no columns; got {list(request.columns)}.")
    if kind not in _NAMED and request.name is not None:
        raise ConfigError(f"The index {kind} has no name of its own; got {request.name!r}.")
    if kind != "expr_index" and (request.function or request.function_options):
        raise ConfigError(f"Only an expr_index has a function; {kind} got {request.function!r}.")
    if kind == "expr_index" and not request.function:
        raise ConfigError("An expr_index is over a function of a column: give function='upper', or another.")


def _check_table(kind: str, config: TableConfig, options: MetadataOptions) -> None:
    if config.version < FIRST_WITH_METADATA:
        raise ConfigError(
            f"Table {config.name} is of version {config.version}, whose metadata table hudi_fast does not write. "
            "Upgrade the table with services.upgrade()."
        )
    if kind in _LATER_KINDS and config.version < _FIRST_WITH_LAYOUT_2:
        raise ConfigError(
            f"The index {kind} needs table version 8 or later; table {config.name} is of version {config.version}. "
            "Upgrade the table with services.upgrade()."
        )
    if options.partitioned_record_index and kind == "record_index" and config.version < _FIRST_WITH_LAYOUT_2:
        raise ConfigError(
            f"A record index by partition needs table version 8 or later; table {config.name} is of version "
            f"{config.version}. Leave hoodie.metadata.record.level.index.enable out."
        )
    if kind == "partition_stats" and not config.is_partitioned:
        raise ConfigError(f"Table {config.name} has no partitions, so it needs no partition_stats.")
    if kind == "bloom_filters" and not config.populate_meta_fields:
        raise ConfigError(
            f"Table {config.name} has no meta columns (hoodie.populate.meta.fields=false): its files have no bloom "
            "filters."
        )


def _options_of_named(request: IndexRequest, options: MetadataOptions) -> MetadataOptions:
    column = request.columns[0]
    if request.kind == "secondary_index":
        return replace(options, enabled=True, secondary_column=column, expression_column=None, index_name=request.name)
    return replace(
        options,
        enabled=True,
        secondary_column=None,
        expression_column=column,
        expression_settings="",
        expression_function=request.function,
        index_name=request.name,
    )


def resting_on(partition: str, present: Collection[str]) -> list[str]:
    """Partitions that require a given one.

    Args:
        partition: the given one.
        present: existing partitions.
    """
    if partition == PartitionKind.FILES:
        return sorted(set(present) - {partition})
    if partition == PartitionKind.COLUMN_STATS:
        return [one for one in present if one == PartitionKind.PARTITION_STATS]
    if partition == PartitionKind.RECORD_INDEX:
        return sorted(one for one in present if one.startswith(PartitionKind.SECONDARY_INDEX))
    kind_of(partition)
    return []


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


INDEXES = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("columns", pa.list_(pa.string())),
        pa.field("function", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("file_groups", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
"""``state``: ``ready``, ``unusable`` (``reason`` says why), ``building`` or ``planned``."""


def indexes_table(state: TableState) -> pa.Table:
    """One row of :data:`INDEXES` per partition of the metadata table, sorted by partition."""
    config, table = state.config, metadata_of(state)
    definitions = load_definitions(state.storage, config)
    rows = [_row(table, name, definitions.get(name)) for name in config.metadata_partitions]
    rows += [
        {"partition": name, "state": "building", **_described(name, definitions.get(name))}
        for name in config.metadata_partitions_inflight
    ]
    named = {str(row["partition"]) for row in rows}
    planned = {name: one.instant for one in scheduled_indexes(state) for name in one.partitions if name not in named}
    rows += [
        {"partition": name, "state": "planned", "reason": f"indexing {instant}", **_described(name, None)}
        for name, instant in planned.items()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["partition"])), INDEXES)


def _row(table: MetadataTable | None, name: str, definition: IndexDefinition | None) -> dict[str, object]:
    row = {"partition": name, **_described(name, definition)}
    reason = "the metadata table is not to be trusted" if table is None else table.unusable(name)
    if table is None or reason is not None:
        return {**row, "state": "unusable", "reason": reason}
    groups = table.groups(name)
    files = [file for one in groups for file in one.files]
    return {**row, "state": "ready", "file_groups": len(groups), "bytes": _bytes(file.size for file in files)}


def _described(name: str, definition: IndexDefinition | None) -> dict[str, object]:
    try:
        row: dict[str, object] = {"kind": kind_of(name).name.lower()}
    except HudiError:
        row = {}
    if definition is not None:
        row |= {"columns": list(definition.source_fields) or None, "function": definition.function or None}
    return row


def _bytes(sizes: Iterable[int]) -> int:
    return sum(sizes)
