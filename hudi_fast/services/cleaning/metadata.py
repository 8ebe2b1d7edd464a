"""Updates the metadata table for a clean, as for a write, but without the parts that need rows.

::

    before anything is deleted   partitions that cannot be updated or trusted are dropped or built again
    before it is completed       files ─► deleted; their statistics and bloom filters ─► deleted

A clean merges no rows, so it works on tables that cannot be written to. It never creates a metadata table.
Source: metadata reference 2.7.
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
from hudi_fast.metadata_table.table_delta import change_of_clean
from hudi_fast.metadata_table.updates.build import measured_columns
from hudi_fast.metadata_table.updates.commit import Recorded, update_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_delta
from hudi_fast.services.running import file_plan
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.metadata_commit import ensure_metadata, metadata_without_pending
from hudi_fast.writing.session import TableSession

__all__ = ["ensure_metadata_of_clean", "record_clean"]


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
