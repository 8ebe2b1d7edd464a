"""Copies the archived timeline to another layout: reads all instants and appends them in the other format.

::

    layout 1: .hoodie/<archivelog.folder>, a log   ◄──────►   layout 2: .hoodie/timeline/history, an LSM tree

The copy first deletes files of an earlier attempt at the target. It compares the new archive with the old one, instant
by instant, before the switch, and deletes the old one after the switch. (Apache Hudi keeps the old one, and for version
6 it always writes to ``archived``, even if the table's properties name another folder.)

Source: LegacyArchivedMetaEntryReader, SevenToEightUpgradeHandler, EightToSevenDowngradeHandler, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline
from hudi_fast.timeline.archive.writer import append_archive

__all__ = ["archive_files", "copy_archive", "holds_archive", "remove_archive"]

_BATCH = 200
_OLD_FILES = (".commits_.archive", "mergeArchivePlan")


def copy_archive(storage: Storage, source: TableConfig, target: TableConfig, options: ArchiveOptions) -> int:
    """Write the archived timeline in the format of another layout.

    Args:
        storage: of the table.
        source: its configuration now.
        target: its configuration in the other layout.
        options: how archives are written.

    Returns:
        Number of instants in the archive.

    Raises:
        ConfigError: both archives would be in one folder.
        CorruptTableError: the archive cannot be read, or reads back differently; the old one is unchanged.
    """
    if source.history_folder == target.history_folder:
        raise ConfigError(
            f"The archived timeline of {storage.uri} is in {source.history_folder} in both layouts; set "
            "hoodie.archivelog.folder or hoodie.timeline.history.path to another folder first."
        )
    remove_archive(storage, target)
    before = ArchivedTimeline(storage, source)
    for batch in _batches(before.read()):
        append_archive(storage, target, batch, options)
    wanted, found = _instants(storage, source), _instants(storage, target)
    if found != wanted:
        lost = ", ".join(f"{action} {requested}" for requested, action in sorted(wanted - found)[:3])
        raise CorruptTableError(
            f"The archived timeline of {storage.uri} has {len(wanted)} instants and {len(found)} after it was "
            f"rewritten{f'; the first missing: {lost}' if lost else ''}. The old one stays as it was.",
            target.history_folder,
        )
    return len(wanted)


def archive_files(storage: Storage, config: TableConfig) -> list[FileStat]:
    """The files of an archived timeline, in the order in which they are deleted.

    In layout 2 the pointer and the manifests go before the files that they name: what a crash leaves is an archive of
    fewer instants, which the next attempt recognises.

    Args:
        storage: of the table.
        config: with the layout and folder of the archive.
    """
    entries = [one for one in storage.list_dir(config.history_folder) if not one.is_dir]
    if config.layout_version < 2:
        return [one for one in entries if one.name.startswith(_OLD_FILES)]
    return sorted(entries, key=lambda one: (one.name != "_version_", not one.name.startswith("manifest_")))


def holds_archive(storage: Storage, config: TableConfig, other: TableConfig) -> bool:
    """Whether the table's archived timeline has all instants of the other one, which can then be deleted.

    Args:
        storage: of the table.
        config: its configuration.
        other: with the layout and folder of the other archive.
    """
    try:
        return _instants(storage, other) <= _instants(storage, config)
    except CorruptTableError:
        return False


def remove_archive(storage: Storage, config: TableConfig) -> None:
    """Delete an archived timeline.

    Args:
        storage: of the table.
        config: with the layout and folder of the archive.
    """
    storage.delete_files([entry.path for entry in archive_files(storage, config)])
    if config.layout_version > 1:
        storage.delete_dir(config.history_folder)


def _instants(storage: Storage, config: TableConfig) -> set[tuple[str, str]]:
    return {(one.requested, one.action) for one in ArchivedTimeline(storage, config).instants()}


def _batches(rows: Iterable[ArchivedInstant]) -> Iterator[list[ArchivedInstant]]:
    batch: list[ArchivedInstant] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
