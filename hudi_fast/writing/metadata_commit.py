"""The metadata table in the life of a write.

::

    before it begins      ensure_metadata      settled, rebuilt if it is not to be trusted; what options want is built,
                                               what they do not want goes
    before it is visible  record_in_metadata   its delta commit, for every partition that there is
    once it is visible    maintain_metadata    compaction and cleaning; a failure there is a warning

All under the table's lock. Partitions that exist are kept up whatever the options say: Apache Hudi trusts them blindly,
and one that missed a commit makes rows vanish. What cannot be kept up is dropped instead, and a warning names it.

Source: metadata reference 2.7 to 2.12.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, HudiError, HudiWarning, UnsupportedFeatureError
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.metadata_table.definitions import IndexDefinition, load_definitions
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.metadata_table.updates.bookkeeping import drop_metadata, drop_partitions, write_definitions
from hudi_fast.metadata_table.updates.build import asked_indexes, build_partitions, definition_of, measured_columns
from hudi_fast.metadata_table.updates.commit import update_metadata
from hudi_fast.metadata_table.updates.maintain import (
    clean_metadata,
    compact_metadata,
    compaction_due,
    finish_pending_metadata,
)
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.metadata_table.updates.table_delta import TableDelta, delta_of_commit
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.plan import WritePlan

__all__ = [
    "columns_with_stats",
    "ensure_metadata",
    "maintain_metadata",
    "metadata_without_pending",
    "producer_context",
    "record_in_metadata",
]

_FIRST_WITH_LAYOUT_2 = 8
_SWITCHES = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "partition_stats": "hoodie.metadata.index.partition.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
}
_RECORD_SWITCHES = frozenset(
    {"hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.level.index.enable"}
)
_BY_DEFINITION = (PartitionKind.SECONDARY_INDEX, PartitionKind.EXPRESSION_INDEX)


def ensure_metadata(
    state: TableState, plan: WritePlan, options: MetadataOptions, clock: InstantClock, runner: Runner
) -> TableState:
    """Bring the metadata table into the form that the write wants, before it begins; the state to pin.

    Args:
        state: the table, where failed writes have been taken back.
        plan: of the write: columns of the table, and how its rows merge.
        options: what the metadata table is to hold.
        clock: gives times.
        runner: makes the records of partitions that are built.

    Raises:
        HudiError: a partition could not be built; nothing has changed but for folders that nobody names.

    Warns:
        HudiWarning: a metadata table, or a partition of it, had to go.
    """
    storage, config = state.storage, state.config
    if not options.enabled:
        return load_state(storage) if drop_metadata(storage, config) else state
    named = config.metadata_partitions
    table = metadata_without_pending(state, clock)
    if table is None and named:
        drop_metadata(storage, config)
        state = load_state(storage)
    elif table is not None:
        gone = _going(state, plan, table, options)
        if gone:
            drop_partitions(storage, config, gone)
            state = load_state(storage)
            table = open_metadata(storage, state.config, state.timeline)
    asked = asked_indexes(options, config)
    wanted = {*options.wanted_partitions(config), *asked, *(_known(named) if table is None else ())}
    missing = wanted - set(_dropped(options)) - set(() if table is None else (*table.partitions, *table.building))
    if config.version < _FIRST_WITH_LAYOUT_2 and state.timeline.pending():
        missing = set()  # Apache Hudi would not either: readers of 0.15 take the newest action for where it begins
    context = producer_context(state, plan, options, table, wanted)
    if missing:
        last = max((one.requested for one in state.timeline.completed()), default=None)
        build_partitions(context, sorted(missing), options, last, clock, runner)
    elif table is not None and context.definitions != table.definitions:
        write_definitions(storage, state.config, dict(context.definitions), dict(table.definitions))
    elif table is not None and metadata_of(state) is not table:
        return replace(state, view=replace(state.view, lister=MetadataLister(table)))
    else:
        return state
    return open_state(storage)


def record_in_metadata(
    state: TableState,
    plan: WritePlan,
    options: MetadataOptions,
    instant: str,
    metadata: CommitMetadata,
    clock: InstantClock,
    runner: Runner,
) -> None:
    """Record a commit that is about to become visible; nothing for a table without a metadata table.

    Args:
        state: the table before it.
        plan: of the write or service.
        options: for file groups of new data partitions.
        instant: requested time of the commit.
        metadata: what it did.
        clock: gives the completion time.
        runner: makes the records.

    Raises:
        HudiError: it could not be recorded: the commit must be rolled back.
    """
    table = metadata_of(state)
    if table is None:
        if state.config.metadata_partitions:
            raise CorruptTableError(
                f"The metadata table of {state.storage.uri} cannot be kept up to date: it is not to be trusted. Write "
                "to the table with hoodie.metadata.enable, which builds it anew."
            )
        return
    change: TableDelta = delta_of_commit(instant, metadata)
    context = producer_context(state, plan, options, table, ())
    update_metadata(context, change, clock, runner, options.partitioned_index_min_groups)


def maintain_metadata(state: TableState, options: MetadataOptions, clock: InstantClock) -> None:
    """Compact and clean the metadata table if that is due, once a commit is visible.

    Args:
        state: the table before the commit.
        options: how often.
        clock: gives times.

    Warns:
        HudiWarning: it failed; the next write tries again.
    """
    before = metadata_of(state)
    if before is None or not compaction_due(before, options.compact_after - 1):
        return
    storage = state.storage
    try:
        table = _reopened(storage, state.config)
        if table is not None and compaction_due(table, options.compact_after):
            compact_metadata(table, clock)
            table = _reopened(storage, state.config)
            if table is not None:
                clean_metadata(table, clock)
    except (HudiError, OSError) as error:
        warnings.warn(
            f"The metadata table of {storage.uri} could not be compacted or cleaned: {error} The commit before it is "
            "complete; the next write tries again.",
            HudiWarning,
            stacklevel=2,
        )


def columns_with_stats(state: TableState, plan: WritePlan, options: MetadataOptions) -> tuple[str, ...]:
    """The columns whose ranges a write is to note: those of ``column_stats``, if that is kept.

    Args:
        state: the table when the write begins.
        plan: of the write.
        options: which columns.
    """
    table = metadata_of(state)
    if table is None or PartitionKind.COLUMN_STATS not in (*table.partitions, *table.building):
        return ()
    return producer_context(state, plan, options, table, ()).indexed_columns


# ---- what there is


def metadata_without_pending(state: TableState, clock: InstantClock) -> MetadataTable | None:
    """The metadata table without anything pending that nobody will finish; under the table's lock.

    Args:
        state: the data table, opened with its metadata table, where failed writes have been taken back.
        clock: gives times.

    Returns:
        None when there is none, or none that can be trusted and read.
    """
    table = metadata_of(state)
    if table is None or not _lists_files(state):
        return None
    try:
        return _reopened(state.storage, state.config) if finish_pending_metadata(table, clock) else table
    except CorruptTableError as error:
        warnings.warn(f"The metadata table of {state.storage.uri} is built anew: {error}", HudiWarning, stacklevel=2)
        return None


def _lists_files(state: TableState) -> bool:
    """Whether ``files`` can be read; the write asks for the same in a moment, and gets it from memory."""
    lister = state.view.lister
    lister.partitions()
    return not (isinstance(lister, MetadataLister) and lister.lists_folders)


def _reopened(storage: Storage, config: TableConfig) -> MetadataTable | None:
    return open_metadata(storage, config, load_timeline(storage, config))


def _known(names: Iterable[str]) -> list[str]:
    """Those of some partitions that are of a kind that is known."""
    found = []
    for name in names:
        try:
            kind_of(name)
        except UnsupportedFeatureError:
            continue
        found.append(name)
    return found


# ---- what is to be there


def _dropped(options: MetadataOptions) -> tuple[str, ...]:
    """Partitions that options tell to go."""
    going = [name for name, key in _SWITCHES.items() if key in options.explicit and not getattr(options, name)]
    if not options.has_record_index and not _RECORD_SWITCHES.isdisjoint(options.explicit):
        going.append("record_index")
    if "column_stats" in going or "column_stats" in options.drop_indexes:
        going.append("partition_stats")
    return tuple(dict.fromkeys([*going, *options.drop_indexes]))


def _resting_on(name: str, present: Iterable[str]) -> list[str]:
    """Partitions that are of no use, or wrong, without another one."""
    if name == "column_stats":  # partition_stats are made of its records
        return [one for one in present if one == "partition_stats"]
    if name == "record_index":  # where the keys are that a secondary index gives
        return [one for one in present if one.startswith(PartitionKind.SECONDARY_INDEX.value)]
    return []


def _going(state: TableState, plan: WritePlan, table: MetadataTable, options: MetadataOptions) -> list[str]:
    """Partitions that options tell to go, and with a warning those that cannot be kept up."""
    present = [*table.partitions, *table.building]
    asked = [name for name in present if name in _dropped(options)]
    told = list(dict.fromkeys([*asked, *(one for name in asked for one in _resting_on(name, present))]))
    stuck: dict[str, HudiError] = {}
    for name in present:
        if name not in told and (problem := _obstacle(producer_context(state, plan, options, table, ()), table, name)):
            stuck[name] = problem
    for name, problem in list(stuck.items()):
        for one in _resting_on(name, present):
            stuck.setdefault(one, problem)
    for name, problem in stuck.items():
        warnings.warn(
            f"The index {name} of {table.data_storage.uri} is dropped, because it cannot be kept up to date: {problem}",
            HudiWarning,
            stacklevel=2,
        )
    return [*told, *stuck]


def _obstacle(context: ProducerContext, table: MetadataTable, name: str) -> HudiError | None:
    """Why a partition cannot be kept up; None when it can."""
    try:
        table.groups(name)
        if kind_of(name) in _BY_DEFINITION:
            sources_of_delta(context, TableDelta(table.timeline.newest_time or "", "UPSERT"), [name])
    except (UnsupportedFeatureError, CorruptTableError) as error:
        return error
    return None


def producer_context(
    state: TableState, plan: WritePlan, options: MetadataOptions, table: MetadataTable | None, wanted: Iterable[str]
) -> ProducerContext:
    """What producers of records need to know of the table.

    Args:
        state: the table.
        plan: of the write or service: columns of the table, and how its rows merge.
        options: which columns have statistics, what kind of record index there is to be.
        table: the metadata table; None when there is none.
        wanted: partitions that are to be there besides those of ``table``.
    """
    config = state.config
    stored: Mapping[str, IndexDefinition] = (
        load_definitions(state.storage, config) if table is None else table.definitions
    )
    columns = measured_columns(plan.schema, config, stored, options)
    present = () if table is None else (*table.partitions, *table.building)
    merge = SliceMerge(
        state.storage,
        state.timeline,
        config.version,
        plan.rules,
        key_config=plan.stored_key_config,
        history=state.view.history,
    )
    return ProducerContext(
        storage=state.storage,
        config=config,
        view=state.view,
        merge=merge,
        metadata=table,
        schema=plan.schema,
        indexed_columns=tuple(columns),
        definitions=_definitions(stored, {*present, *wanted}, config, columns, options),
    )


def _definitions(
    stored: Mapping[str, IndexDefinition],
    partitions: set[str],
    config: TableConfig,
    columns: list[str],
    options: MetadataOptions,
) -> dict[str, IndexDefinition]:
    """Definitions of the partitions that there are or are to be; columns of the stats follow the table's schema."""
    kept = {name: one for name, one in stored.items() if name in partitions}
    for name in sorted(partitions):
        made = definition_of(name, config, columns, options)
        if made is None or (name == PartitionKind.RECORD_INDEX and name in kept):
            continue
        old = kept.get(name)
        kept[name] = made if old is None else replace(old, source_fields=made.source_fields)
    asked = asked_indexes(options, config)
    return {**{name: asked[name] for name in partitions if name in asked}, **kept}
