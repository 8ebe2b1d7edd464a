"""Moves one table from one version to another; a data table and its metadata table take the same steps.

::

    copy     active and archived timeline, into the folders of the other layout     not read yet
    switch   all of hoodie.properties, through its backup                           the table has the new version
    sweep    active and archived timeline of the old layout                         no longer read

A reader always finds one complete timeline: that of the version in the properties. After a crash before the switch the
next move overwrites the copied files. After a later crash, :func:`leftovers` finds the old files and :func:`sweep`
deletes them. Versions of one layout need the switch alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.properties_file import UPDATED_PATH, load_properties, update_properties
from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import has_metadata_folder
from hudi_fast.services.upgrading.history import archive_files, copy_archive, holds_archive, remove_archive
from hudi_fast.services.upgrading.properties import PropertyHints, changed_properties
from hudi_fast.services.upgrading.timeline import SCHEMA_FOLDER, copy_timeline, remove_timeline
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.instant import parse_instant_file

__all__ = ["both_tables", "leftovers", "move_table", "sweep", "target_config"]

_LAYOUT_2 = 2


def target_config(props: Mapping[str, str], version: int, hints: PropertyHints, where: str) -> TableConfig:
    """The configuration of the table after the change.

    Args:
        props: its properties now.
        version: the new version.
        hints: from the options.
        where: the table, for messages.
    """
    return TableConfig.from_properties(changed_properties(props, version, hints), where)


def both_tables(storage: Storage, config: TableConfig) -> list[tuple[Storage, TableConfig]]:
    """The data table and, if there is one, its metadata table with its own properties.

    Args:
        storage: of the data table.
        config: of the data table.
    """
    found = [(storage, config)]
    if has_metadata_folder(storage):
        inner = metadata_storage(storage)
        found.append((inner, TableConfig.from_properties(load_properties(inner), inner.uri)))
    return found


def move_table(storage: Storage, version: int, hints: PropertyHints, archive: ArchiveOptions) -> TableConfig:
    """Change the version of a table; under its lock, with nothing pending and no log files in its newest slices.

    Args:
        storage: of the data table or of its metadata table.
        version: the new version.
        hints: from the options.
        archive: how archives are written.

    Returns:
        The configuration after the change.

    Raises:
        CorruptTableError: a file of a timeline is invalid; the table keeps its version.
    """
    props = load_properties(storage)
    source = TableConfig.from_properties(props, storage.uri)
    target = target_config(props, version, hints, storage.uri)
    moves = source.layout_version != target.layout_version
    if moves:
        _make_room(storage, target)
        copy_timeline(storage, source, target)
        copy_archive(storage, source, target, archive)
    changes: dict[str, str | None] = {**dict.fromkeys(props), **target.raw}
    update_properties(storage, {key: value for key, value in changes.items() if value != props.get(key)})
    if moves:
        remove_archive(storage, source)
    sweep(storage, target)
    return target


def leftovers(storage: Storage, config: TableConfig) -> list[FileStat]:
    """Files of a timeline in the other layout, from a failed move.

    They include the new properties of an upgrade to version 1 or 2 that failed (``hoodie.properties.updated``), which
    the table has not taken over, and an archive if the table's own archive holds all of its instants: Apache Hudi does
    not delete archives.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    other = other_layout(config, storage.uri)
    found = [one for one in storage.list_dir(other.timeline_folder) if _is_instant(one, other.layout_version)]
    if config.layout_version < 2:
        found += [one for one in storage.list_dir(SCHEMA_FOLDER) if not _is_instant(one, 1) and _is_instant(one, 2)]
    updated = storage.stat(UPDATED_PATH)
    if updated is not None:
        found.append(updated)
    archive = archive_files(storage, other)
    return found + archive if archive and holds_archive(storage, config, other) else found


def sweep(storage: Storage, config: TableConfig) -> int:
    """Delete the files that :func:`leftovers` finds; returns their number.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    found = leftovers(storage, config)
    storage.delete_files([entry.path for entry in found])
    return len(found)


def _make_room(storage: Storage, target: TableConfig) -> None:
    """Delete files of an earlier attempt from the target folders of the timeline, and create these folders."""
    remove_timeline(storage, target.timeline_folder, target.layout_version)
    if target.layout_version >= 2:
        storage.make_dir(target.history_folder)


def _is_instant(entry: FileStat, layout: int) -> bool:
    return not entry.is_dir and parse_instant_file(entry.name, layout) is not None
