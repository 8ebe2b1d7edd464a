"""The metadata table in the life of a write.

::

    before it begins      ensure_metadata      resolve pending instants, rebuild an untrusted table; build enabled
                                               indexes, drop disabled ones
    before an overwrite   metadata_to_overwrite  keep the metadata table if a new one would be the same, else drop it
    before it is visible  record_in_metadata   its delta commit, for every existing partition
    once it is visible    maintain_metadata    compaction and cleaning (metadata_services.py)

All steps run under the table's lock. Every existing partition is updated, whatever the options: Apache Hudi trusts it
without checks, and queries would lose rows if it missed a commit. A damaged partition is dropped with a warning. A
write to a table with an index that hudi_fast cannot update is refused, unless an option drops the index.

Source: metadata reference 2.7 to 2.12.

Compaction and cleaning of the metadata table, after a commit.

::

    by default      under the lock: compact ─► clean
    without lock    under it: request, begin ─► without it: base files ─► under it: check, complete ─► clean

Without the lock, other writers can commit while the base files are written. A heartbeat in the data table's folder
tells other writers that the compaction is running; a writer that finds a compaction without a heartbeat executes it. If
two writers execute it, both write the same content, and the first to complete it wins.

Apache Hudi 1.2.0 must not write to such a table, hence the option. It executes a pending compaction before its own
delta commit. If that is the first use of a metadata table in its JVM, the delta commit fails where it has column
statistics ("Index 9 out of bounds for length 7"). With a heartbeat in the metadata table's folder every write fails.

A failure is a warning: the commit is visible, and a later writer tries again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, HudiError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.formats.parquet.encryption import visible_columns
from hudi_fast.metadata_table.layout import IndexDefinition, PartitionKind, kind_of, load_definitions
from hudi_fast.metadata_table.state import MetadataLister, TableDelta, delta_of_commit, metadata_of
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.metadata_table.updates.bookkeeping import drop_metadata, drop_partitions, write_definitions
from hudi_fast.metadata_table.updates.build import build_partitions, definition_of, measured_columns, requested_indexes
from hudi_fast.metadata_table.updates.commit import Recorded, update_metadata
from hudi_fast.metadata_table.updates.maintain import (
    Compaction,
    begin_compaction,
    clean_metadata,
    compact_metadata,
    compaction_due,
    finish_pending_metadata,
    schedule_compaction,
)
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.heartbeat import is_alive, sending_heartbeats
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.view.table_state import TableState, load_state, table_schema
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "columns_with_stats",
    "compacts_without_lock",
    "dropped_partitions",
    "ensure_metadata",
    "maintain_metadata",
    "metadata_to_overwrite",
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


def ensure_metadata(session: TableSession, plan: FilePlan, options: MetadataOptions | None = None) -> TableState:
    """Adapt the metadata table to the options before a write begins; returns the state to pin.

    Args:
        session: the call, under the table's lock; failed writes were rolled back.
        plan: columns of the table, and merge rules.
        options: requested partitions of the metadata table; None for the session's.

    Raises:
        UnsupportedFeatureError: the metadata table has an index that cannot be kept up to date, and no option drops
            it. Nothing was written.
        HudiError: a partition could not be built. The table is unchanged, except for unused folders.

    Warns:
        HudiWarning: the metadata table, or a partition of it, is damaged and was dropped.
    """
    options = session.settings.write.metadata if options is None else options
    storage, state = session.storage, session.state
    config = state.config
    if not options.enabled or config.version < FIRST_WITH_METADATA:
        if drop_metadata(storage, config):
            session.changed()
        return session.state
    named = config.metadata_partitions
    table = metadata_without_pending(session)
    if table is None and named:
        lost = [name for name in named if name not in (*_known(named), *dropped_partitions(options))]
        if lost:
            _refuse_to_drop(storage.uri, lost, "the metadata table has to be built again.")
        drop_metadata(storage, config)
        state = session.set_state(load_state(storage))
    elif table is not None and (dropped := _to_drop(state, plan, table, options)):
        drop_partitions(storage, config, dropped)
        state = session.set_state(load_state(storage))
        table = open_metadata(storage, state.config, state.timeline)
    asked = requested_indexes(options, config)
    wanted = {*options.wanted_partitions(config), *asked, *(_known(named) if table is None else ())}
    missing = (
        wanted - set(dropped_partitions(options)) - set(() if table is None else (*table.partitions, *table.building))
    )
    if config.version < _FIRST_WITH_LAYOUT_2 and state.timeline.pending():
        missing = set()  # as in Apache Hudi: for readers of 0.15 the partition starts at the newest action
    context = producer_context(state, plan, options, table, wanted)
    if missing:
        last = max((one.requested for one in state.timeline.completed()), default=None)
        build_partitions(context, sorted(missing), options, last, session.clock, session.backend.write_records)
    elif table is not None and context.definitions != table.definitions:
        write_definitions(storage, state.config, dict(context.definitions), dict(table.definitions))
    elif table is not None and metadata_of(state) is not table:
        return session.set_state(replace(state, view=replace(state.view, lister=MetadataLister(table))))
    else:
        return state
    return session.reload()


def metadata_to_overwrite(session: TableSession, plan: FilePlan, keeps_config: bool) -> TableState:
    """Prepare the metadata table before a write that replaces the table; returns the state to pin.

    A metadata table that a new table would not have is dropped. The new one is built after the commit.

    Args:
        session: the call, under the table's lock; failed writes were rolled back.
        plan: of the write: the new columns.
        keeps_config: whether the write leaves the table's configuration unchanged.

    Raises:
        HudiError: as :func:`ensure_metadata`.
    """
    state, options = session.state, session.settings.write.metadata
    wanted = {*options.wanted_partitions(state.config), *requested_indexes(options, state.config)}
    columns = table_schema(state)
    is_same = columns is not None and columns.equals(plan.schema) and set(state.config.metadata_partitions) == wanted
    if is_same and keeps_config:
        return ensure_metadata(session, plan)
    if drop_metadata(state.storage, state.config):
        session.changed()
    return session.state


def record_in_metadata(session: TableSession, plan: FilePlan, metadata: CommitMetadata) -> Recorded | None:
    """Record a commit that is about to become visible; nothing for a table without a metadata table.

    Args:
        session: the call, under the table's lock; its state is that before the commit.
        plan: of the write or service; it has its instant.
        metadata: its commit metadata.

    Returns:
        None for a table without a metadata table.

    Raises:
        HudiError: it could not be recorded: the commit must be rolled back.
    """
    state, options = session.state, session.settings.write.metadata
    table = metadata_of(state)
    if table is None:
        if state.config.metadata_partitions:
            raise CorruptTableError(
                f"The metadata table of {state.storage.uri} cannot be kept up to date, because it cannot be trusted. "
                "Write to the table with hoodie.metadata.enable, which builds it again."
            )
        return None
    delta: TableDelta = delta_of_commit(plan.instant, metadata)
    context = producer_context(state, plan, options, table, ())
    return update_metadata(
        context, delta, session.clock, session.backend.write_records, options.partitioned_index_min_groups
    )


def columns_with_stats(state: TableState, plan: FilePlan, options: MetadataOptions) -> tuple[str, ...]:
    """The columns whose ranges a write records: the columns of ``column_stats``, if the table has that partition.

    Args:
        state: the table when the write begins.
        plan: of the write.
        options: the requested columns.
    """
    table = metadata_of(state)
    if table is None or PartitionKind.COLUMN_STATS not in (*table.partitions, *table.building):
        return ()
    return producer_context(state, plan, options, table, ()).indexed_columns


# ---- existing partitions


def compacts_without_lock(session: TableSession, table: MetadataTable) -> bool:
    """Whether compactions of the metadata table are executed without the table's lock.

    With a single writer no other writer waits for the lock. Before table version 8 the name of a log file decides its
    slice, and delta commits of Apache Hudi 0.15.0 ignore a pending compaction.
    """
    options = session.settings.write
    return options.metadata.compacts_without_lock and options.lock.is_shared and table.config.layout_version > 1


def metadata_without_pending(session: TableSession, compactions: bool = False) -> MetadataTable | None:
    """The metadata table, after pending instants of failed writers were finished; under the table's lock.

    Args:
        session: the call; failed writes of the data table were rolled back.
        compactions: execute pending compactions even if they are executed without the lock.

    Returns:
        None without a table that can be trusted and read.
    """
    state = session.state
    table = metadata_of(state)
    if table is None or not _lists_files(state):
        return None
    try:
        compactions = compactions or not compacts_without_lock(session, table)
        if not finish_pending_metadata(table, session.clock, session.backend.map_groups, compactions):
            return table
        return open_metadata(state.storage, state.config, load_timeline(state.storage, state.config))
    except CorruptTableError as error:
        warn(f"The metadata table of {state.storage.uri} is built again: {error}")
        return None


def _lists_files(state: TableState) -> bool:
    """Whether ``files`` can be read; the write reads it again later, from memory."""
    lister = state.view.lister
    lister.partitions()
    return metadata_of(state) is None or not lister.lists_folders


def _known(names: Iterable[str]) -> list[str]:
    """The partitions of a known kind."""
    found = []
    for name in names:
        try:
            kind_of(name)
        except UnsupportedFeatureError:
            continue
        found.append(name)
    return found


# ---- requested partitions


def dropped_partitions(options: MetadataOptions, present: Iterable[str] = ()) -> tuple[str, ...]:
    """Partitions that the options disable; ``present`` names those with a definition of their own."""
    going = [name for name, key in _SWITCHES.items() if key in options.explicit and not getattr(options, name)]
    if not options.has_record_index and not _RECORD_SWITCHES.isdisjoint(options.explicit):
        going.append("record_index")
    for key, kind, is_on in (
        ("hoodie.metadata.index.secondary.enable", PartitionKind.SECONDARY_INDEX, options.secondary_indexes),
        ("hoodie.metadata.index.expression.enable", PartitionKind.EXPRESSION_INDEX, options.expression_indexes),
    ):
        if key in options.explicit and not is_on:
            going += [name for name in present if name.startswith(kind.value)]
    if "column_stats" in going or "column_stats" in options.drop_indexes:
        going.append("partition_stats")
    return tuple(dict.fromkeys([*going, *options.drop_indexes]))


def _resting_on(name: str, present: Iterable[str]) -> list[str]:
    """Partitions that are useless, or wrong, without a given one."""
    if name == "column_stats":  # partition_stats are computed from its records
        return [one for one in present if one == "partition_stats"]
    if name == "record_index":  # it locates the keys that a secondary index returns
        return [one for one in present if one.startswith(PartitionKind.SECONDARY_INDEX.value)]
    return []


def _to_drop(state: TableState, plan: FilePlan, table: MetadataTable, options: MetadataOptions) -> list[str]:
    """Partitions that options disable, and damaged partitions, with a warning; these are built again where possible.

    Raises:
        UnsupportedFeatureError: an index that no option drops cannot be kept up to date.
    """
    present = [*table.partitions, *table.building]
    going = dropped_partitions(options, present)
    asked = [name for name in present if name in going]
    disabled = list(dict.fromkeys([*asked, *(one for name in asked for one in _resting_on(name, present))]))
    stuck: dict[str, HudiError] = {}
    for name in present:
        if name not in disabled and (
            problem := _obstacle(producer_context(state, plan, options, table, ()), table, name)
        ):
            stuck[name] = problem
    for name, problem in list(stuck.items()):
        for one in _resting_on(name, present):
            stuck.setdefault(one, problem)
    unknown = {name: one for name, one in stuck.items() if isinstance(one, UnsupportedFeatureError)}
    if unknown:
        _refuse_to_drop(table.data_storage.uri, list(unknown), next(iter(unknown.values())))
    for name, problem in stuck.items():
        warn(
            f"The index {name} of {table.data_storage.uri} is dropped, because it cannot be kept up to date: {problem}"
        )
    return [*disabled, *stuck]


def _refuse_to_drop(uri: str, names: Sequence[str], problem: object) -> None:
    raise UnsupportedFeatureError(
        f"hudi_fast cannot keep the index {', '.join(names)} of {uri} up to date, and would have to drop it: {problem} "
        f"Nothing was written. To drop it, set hoodie.metadata.index.drop={','.join(names)}. To keep it, write with "
        "Apache Hudi."
    )


def _obstacle(context: ProducerContext, table: MetadataTable, name: str) -> HudiError | None:
    """Why a partition cannot be kept up to date; None when it can."""
    try:
        table.groups(name)
        if kind_of(name) in _BY_DEFINITION:
            sources_of_delta(context, TableDelta(table.timeline.newest_time or "", "UPSERT"), [name])
    except (UnsupportedFeatureError, CorruptTableError) as error:
        return error
    return None


def producer_context(
    state: TableState, plan: FilePlan, options: MetadataOptions, table: MetadataTable | None, wanted: Iterable[str]
) -> ProducerContext:
    """The state of the table that producers of records share.

    Args:
        state: the table.
        plan: of the write or service: columns of the table, and merge rules.
        options: columns with statistics, and the requested kind of record index.
        table: the metadata table; None without one.
        wanted: requested partitions in addition to the partitions of ``table``.
    """
    config = state.config
    stored: Mapping[str, IndexDefinition] = (
        load_definitions(state.storage, config) if table is None else table.definitions
    )
    columns = visible_columns(state.storage, measured_columns(plan.schema, config, stored, options))
    present = () if table is None else (*table.partitions, *table.building)
    return ProducerContext(
        storage=state.storage,
        config=config,
        view=state.view,
        merge=replace(plan.merge_of(state), history=state.view.history),
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
    """Definitions of existing and requested partitions; columns of the stats follow the table's schema."""
    kept = {name: one for name, one in stored.items() if name in partitions}
    for name in sorted(partitions):
        made = definition_of(name, config, columns, options)
        if made is None or (name == PartitionKind.RECORD_INDEX and name in kept):
            continue
        old = kept.get(name)
        kept[name] = made if old is None else replace(old, source_fields=made.source_fields)
    asked = requested_indexes(options, config)
    return {**{name: asked[name] for name in partitions if name in asked}, **kept}


def maintain_metadata(session: TableSession, before: TableState) -> None:
    """Compact and clean the metadata table if that is due, after a commit; under the table's lock.

    With ``hudi_fast.metadata.compact.without.lock`` the compaction runs after the lock is released.

    Args:
        session: the call.
        before: the table before the commit. Storage is read only if one more commit can make a compaction due, or if a
            compaction is pending.

    Warns:
        HudiWarning: it failed; the next write tries again.
    """
    options, known = session.settings.write.metadata, metadata_of(before)
    if known is None:
        return
    unlocked = compacts_without_lock(session, known)
    if not (unlocked and known.timeline.pending_compactions) and not compaction_due(known, options.compact_after - 1):
        return
    with _failing_softly(session):
        table = metadata_of(session.state)
        if table is None:
            return
        if unlocked:
            compaction = _begun(session, table)
            if compaction is not None:
                session.once_unlocked(lambda: _execute_unlocked(session, compaction))
        elif compaction_due(table, options.compact_after):
            compact_metadata(table, session.clock, session.backend.map_groups)
            session.changed()
            _clean(session)


def _begun(session: TableSession, table: MetadataTable) -> Compaction | None:
    """A compaction to execute: a new one if it is due, or an abandoned one; None for neither."""
    pending = table.timeline.pending_compactions
    if pending:
        instant = None if is_alive(table.data_storage, pending[0].requested, session.heartbeat_rule) else pending[0]
    elif compaction_due(table, session.settings.write.metadata.compact_after):
        instant = schedule_compaction(table, session.clock)
    else:
        instant = None
    if instant is None:
        return None
    session.changed()
    return begin_compaction(table, instant)


def _execute_unlocked(session: TableSession, compaction: Compaction) -> None:
    requested = compaction.instant.requested
    with _failing_softly(session), sending_heartbeats(session.storage, requested, session.heartbeat_rule):
        stats = compaction.execute(session.backend.map_groups)
        with session.locked() as state:
            table = metadata_of(state)
            if table is None or table.timeline.find(requested) is None:  # dropped, and perhaps built again
                compaction.table.storage.delete_files([stat.path for stat in stats])
            elif compaction.is_intact(table, stats):  # otherwise a later writer executes it, or has done so
                compaction.complete(stats, session.clock)
                session.changed()
                _clean(session)


def _clean(session: TableSession) -> None:
    table = metadata_of(session.state)
    if table is not None and clean_metadata(table, session.clock) is not None:
        session.changed()


@contextmanager
def _failing_softly(session: TableSession) -> Iterator[None]:
    """Turn a failure into a warning, because the commit is complete."""
    try:
        yield
    except Exception as error:
        session.changed()
        warn(
            f"The metadata table of {session.storage.uri} could not be compacted or cleaned: {error} The commit before "
            "it is complete; the next write tries again."
        )
