"""One table from one version to another; a data table and its metadata table are moved by the same steps.

::

    copy     active and archived timeline, into the folders of the other layout     not read yet
    switch   hoodie.properties, whole, by way of its backup                         from here on it has the new version
    sweep    active and archived timeline of the old layout                         no longer read

A reader finds one whole timeline at every moment: the one of the version in the properties. A crash before the switch
leaves files that the next move writes over; one after it leaves files that :func:`leftovers` finds and :func:`sweep`
deletes. Between versions of one layout there is the switch alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import has_metadata_folder
from hudi_fast.services.upgrading.history import archive_files, copy_archive, holds_archive, remove_archive
from hudi_fast.services.upgrading.properties import PropertyHints, changed_properties
from hudi_fast.services.upgrading.timeline import SCHEMA_FOLDER, copy_timeline, remove_timeline
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.instant import parse_instant_file

__all__ = ["both_tables", "leftovers", "move_table", "other_layout", "sweep", "target_config"]

_LAYOUT_2_FROM = 8
_LAYOUT_2 = 2


def target_config(props: Mapping[str, str], version: int, hints: PropertyHints, where: str) -> TableConfig:
    """The configuration that a table is going to have.

    Args:
        props: its properties now.
        version: the version that it is to have.
        hints: from the options.
        where: the table, for messages.
    """
    return TableConfig.from_properties(changed_properties(props, version, hints), where)


def both_tables(storage: Storage, config: TableConfig) -> list[tuple[Storage, TableConfig]]:
    """The data table and, if there is one, its metadata table, whose properties are its own.

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
    """Let a table have another version; under its lock, with nothing pending and no log files in its newest slices.

    Args:
        storage: of the data table or of its metadata table.
        version: the version that it is to have.
        hints: from the options.
        archive: how archives are written.

    Returns:
        Its configuration then.

    Raises:
        CorruptTableError: a file of a timeline cannot be understood; the table has the version that it had.
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
        remove_timeline(storage, source.timeline_folder, source.layout_version)
        remove_archive(storage, source)
        sweep(storage, target)
    return target


def leftovers(storage: Storage, config: TableConfig) -> list[FileStat]:
    """Files of the timeline of the layout that the table does not have: left by a failed move.

    An archive is one of them if all that it holds is in the table's own: Apache Hudi leaves archives behind too.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    other = other_layout(config, storage.uri)
    found = [one for one in storage.list_dir(other.timeline_folder) if _is_instant(one, other.layout_version)]
    if config.layout_version < 2:
        found += [one for one in storage.list_dir(SCHEMA_FOLDER) if not _is_instant(one, 1) and _is_instant(one, 2)]
    archive = archive_files(storage, other)
    return found + archive if archive and holds_archive(storage, config, other) else found


def sweep(storage: Storage, config: TableConfig) -> int:
    """Delete what :func:`leftovers` finds; how many files that were.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    found = leftovers(storage, config)
    for entry in found:
        storage.delete_file(entry.path)
    return len(found)


def other_layout(config: TableConfig, where: str) -> TableConfig:
    """The configuration that says where the timeline would be in the other layout.

    Args:
        config: of the table.
        where: the table, for messages.
    """
    old = config.layout_version < _LAYOUT_2
    version, layout = (8, "2") if old else (6, "1")
    raw = {**config.raw, "hoodie.table.version": str(version), "hoodie.timeline.layout.version": layout}
    return TableConfig.from_properties(raw, where)


def _make_room(storage: Storage, target: TableConfig) -> None:
    """Delete what an earlier attempt left where the timeline is going to be, and make its folders."""
    remove_timeline(storage, target.timeline_folder, target.layout_version)
    if target.layout_version >= 2:
        storage.make_dir(target.history_folder)


def _is_instant(entry: FileStat, layout: int) -> bool:
    return not entry.is_dir and parse_instant_file(entry.name, layout) is not None
