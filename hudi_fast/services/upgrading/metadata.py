"""The metadata table when its data table changes version: what it keeps, and how it comes along.

::

    drop      partitions that the version has no place for: names first, then folders, then definitions
    compact   all groups, where the timeline layout changes: log files are named otherwise
    move      by the same steps as the data table, before it: its readers pass over one of another layout meanwhile
    check     afterwards: one that cannot be trusted is built anew, with the partitions that are named

Apache Hudi moves the metadata table before the data table too; to version 6 it adds an empty delta commit at last,
which 0.15 does not ask for. Source: UpgradeDowngrade#run, UpgradeDowngradeUtils#dropNonV1IndexPartitions,
EightToSevenDowngradeHandler#downgradeMetadataPartitions, release 1.2.0.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import examine_metadata, metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import drop_partitions, has_metadata_folder, write_definitions
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.services.running import with_metadata
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.upgrading.move import move_table, sweep
from hudi_fast.services.upgrading.plan import leaving_partitions
from hudi_fast.services.upgrading.properties import VERSIONS, PropertyHints
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.metadata_commit import metadata_without_pending

__all__ = ["as_it_is", "check_metadata", "drop_leaving", "move_metadata", "opened", "version_definitions"]


def opened(storage: Storage) -> TableState:
    """The table with its metadata table, where that can be trusted: without a word where it cannot."""
    state = load_state(storage)
    if not state.config.metadata_partitions:
        return state
    table, problem = examine_metadata(storage, state.config, state.timeline)
    if table is None or problem is not None:
        return state
    return replace(state, view=replace(state.view, lister=MetadataLister(table)))


def as_it_is(config: TableConfig, options: MetadataOptions) -> MetadataOptions:
    """Options that ask for the metadata partitions which a table has, and for no others.

    Args:
        config: of the table.
        options: numbers of file groups and the like.
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


def drop_leaving(state: TableState, version: int) -> TableState:
    """Take away the metadata partitions that the version has no place for; the table afterwards.

    Args:
        state: the table, under its lock.
        version: the version that it is to have.
    """
    going = leaving_partitions(state, version)
    if not going:
        return state
    storage = state.storage
    config = drop_partitions(storage, state.config, going)
    old = dict(load_definitions(storage, config))
    write_definitions(storage, config, {name: one for name, one in old.items() if name not in going}, old)
    return opened(storage)


def version_definitions(storage: Storage, config: TableConfig) -> None:
    """Say that indexes are of version 1 where their definitions do not say: from version 9 on it would mean 2.

    Args:
        storage: of the data table.
        config: of the data table, before version 9.
    """
    old = dict(load_definitions(storage, config))
    new = {name: replace(one, version=one.version or "V1") for name, one in old.items()}
    write_definitions(storage, config, new, old)


def move_metadata(
    state: TableState, version: int, new_layout: bool, clock: InstantClock, archive: ArchiveOptions
) -> None:
    """Let the metadata table have the version that its data table is about to get.

    Args:
        state: the data table, under its lock, with nothing pending.
        version: the version.
        new_layout: whether the timeline gets another layout.
        clock: gives times.
        archive: how archives are written.
    """
    storage = state.storage
    if not state.config.metadata_partitions or not has_metadata_folder(storage):
        return
    inner = metadata_storage(storage)
    own = TableConfig.from_properties(load_properties(inner), inner.uri)
    if own.version == version:
        sweep(inner, own)
        return  # an earlier attempt came as far
    if own.version not in VERSIONS:
        return  # nor is it trusted then
    if metadata_of(state) is None or (table := metadata_without_pending(state, clock)) is None:
        return  # it is built anew afterwards
    if new_layout:
        compact_metadata(table, clock)
    move_table(inner, version, PropertyHints(), archive)


def check_metadata(storage: Storage, clock: InstantClock, settings: ServiceSettings) -> None:
    """Build the metadata table anew if it cannot be trusted now that its data table has another version.

    Args:
        storage: of the data table, under its lock.
        clock: gives times.
        settings: what the metadata table is to hold.
    """
    state = opened(storage)
    if state.config.metadata_partitions and metadata_of(state) is None:
        with_metadata(state, clock, settings)
