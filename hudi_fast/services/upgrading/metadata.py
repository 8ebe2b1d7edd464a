"""Upgrades and downgrades the metadata table along with its data table.

::

    drop      partitions that the version does not support: names first, then folders, then definitions
    compact   all groups, where the timeline layout changes: it changes the names of log files
    move      by the same steps as the data table, before it: readers ignore one of another layout meanwhile
    check     afterwards: an untrusted one is built again, with the partitions that the table's properties list

Apache Hudi moves the metadata table before the data table too. To version 6 it finally adds an empty delta commit,
which release 0.15 does not need. Source: UpgradeDowngrade#run, UpgradeDowngradeUtils#dropNonV1IndexPartitions,
EightToSevenDowngradeHandler#downgradeMetadataPartitions, release 1.2.0.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import examine_metadata, metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import (
    PARTITIONS_KEY,
    drop_metadata,
    drop_partitions,
    has_metadata_folder,
    write_definitions,
)
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.services.running import file_plan
from hudi_fast.services.upgrading.move import move_table, sweep
from hudi_fast.services.upgrading.properties import PropertyHints
from hudi_fast.services.upgrading.upgrade_plan import leaving_partitions, needs_compaction
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.metadata_commit import ensure_metadata, metadata_without_pending
from hudi_fast.writing.session import TableSession

__all__ = ["as_it_is", "check_metadata", "drop_leaving", "move_metadata", "opened", "version_definitions"]

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
