"""The metadata table in the life of a clean: kept up like by a write, but without what only rows would need.

::

    before anything is deleted   settled; what cannot be kept up, or is not to be trusted, goes or is built anew
    before it is completed       files ─► deleted; statistics and bloom filters of them ─► deleted

A clean merges no rows, so tables can be cleaned that cannot be written to. It makes no metadata table where there is
none. Source: metadata reference 2.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.merge_mode import COMMIT_TIME
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.merging.rules import MergeRules
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.build import measured_columns
from hudi_fast.metadata_table.updates.commit import update_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.metadata_table.updates.runner import in_threads
from hudi_fast.metadata_table.updates.table_delta import change_of_clean
from hudi_fast.services.running import with_metadata
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.metadata_commit import metadata_without_pending

__all__ = ["record_clean", "with_metadata_of_clean"]


def with_metadata_of_clean(
    state: TableState, clock: InstantClock, settings: ServiceSettings, checked: bool = False
) -> TableState:
    """The state once the metadata table, if there is one, can take a clean in; under the table's lock.

    Args:
        state: the table, where failed writes have been taken back.
        clock: gives times.
        settings: whether it is to be there.
        checked: whether it was found able to since the clean began.

    Raises:
        HudiError: it could not be built anew; nothing was deleted.
    """
    if not state.config.metadata_partitions:
        return state
    known = metadata_of(state)
    if checked and settings.write.metadata.enabled and known is not None and not known.timeline.pending():
        return state
    if settings.write.metadata.enabled:
        table = metadata_without_pending(state, clock)
        if table is not None and (checked or _can_keep_up(state, table, settings.write.metadata)):
            return replace(state, view=replace(state.view, lister=MetadataLister(table)))
    return with_metadata(state, clock, settings)


def record_clean(
    state: TableState,
    requested: str,
    removed: Mapping[str, Iterable[str]],
    removed_partitions: list[str],
    clock: InstantClock,
    settings: ServiceSettings,
) -> TableState:
    """Record a clean that is about to be completed; the state that it was recorded on. Under the table's lock.

    Args:
        state: the table as it is now.
        requested: the clean.
        removed: partition path to names of files that are gone.
        removed_partitions: those that are wholly gone.
        clock: gives times.
        settings: of the metadata table.

    Raises:
        HudiError: it could not be recorded; the clean stays pending.
    """
    state = with_metadata_of_clean(state, clock, settings, checked=True)
    table = metadata_of(state)
    if table is None:
        return state
    options = settings.write.metadata
    change = change_of_clean(
        requested, {name: tuple(files) for name, files in removed.items() if files}, removed_partitions
    )
    update_metadata(_context(state, table, options), change, clock, in_threads(), options.partitioned_index_min_groups)
    return state


def _can_keep_up(state: TableState, table: MetadataTable, options: MetadataOptions) -> bool:
    """Whether each of its partitions is of a kind that a clean can be recorded in, and whole."""
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
            state.storage, state.timeline, config.version, MergeRules(COMMIT_TIME), history=state.view.history
        ),
        metadata=table,
        schema=schema,
        indexed_columns=tuple(every),
        definitions=dict(table.definitions),
    )
