"""Opens or creates the target table of a write, depending on the save mode.

A table is created or replaced only after the write's schema and rows have been checked. If the write then fails, a
table that it created is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_fast.config.new_table import new_table_properties
from hudi_fast.config.option_conflicts import new_table_from_options
from hudi_fast.config.option_names import SAVE_MODES
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.table_layout import create_table_layout
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import (
    ConfigError,
    CorruptTableError,
    TableExistsError,
    TableNotFoundError,
)
from hudi_fast.index.bucket import save_bucket_counts
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.own_files import require_own_files
from hudi_fast.view.slices import TableView
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.overwrite import OVERWRITE, empty_table

__all__ = ["Target", "create_table", "find_target", "known_mode", "remove_if_unused", "table_exists"]

_NEEDS_TABLE = frozenset({"delete", "delete_partition"})


@dataclass(frozen=True)
class Target:
    """Target table of a write.

    Attributes:
        storage: the base path.
        new: properties of the table to create; None to write to the existing one.
        exists: whether a table exists; with ``new`` it is replaced.
        is_damaged: whether its properties cannot be read.
    """

    storage: Storage
    new: Mapping[str, str] | None
    exists: bool
    is_damaged: bool = False

    def with_properties(self, before: Mapping[str, str], changes: Mapping[str, str | None]) -> Target:
        """The target with the properties of the existing table after changes; None removes one."""
        after = {**before, **changes}
        return replace(self, new={name: value for name, value in after.items() if value is not None})

    def new_state(self) -> TableState:
        """The state of the table before it is created, to draft the write against."""
        assert self.new is not None
        config = TableConfig.from_properties(self.new, self.storage.uri)
        timeline = Timeline(())
        return TableState(self.storage, config, timeline, TableView(timeline, _Nothing()))


@dataclass(frozen=True, slots=True)
class _Nothing:
    """Lists a table before it is created: ignores all files below its base path."""

    lists_folders = False

    def partitions(self) -> list[str]:
        return []

    def files(self, partition: str) -> list[FileStat]:
        return []

    def expect(self, partitions: Sequence[str]) -> None:
        pass


def find_target(storage: Storage, options: WriteOptions, mode: str) -> Target | None:
    """Decide the target table of a write; None when the mode is ``ignore`` and the table exists.

    Raises:
        ConfigError: unknown mode, a mode that the operation does not allow, no table name.
        TableExistsError: the table exists and the mode is ``errorifexists``.
        TableNotFoundError: a delete without a table.
        UnsupportedFeatureError: a storage without conditional writes.
    """
    mode = known_mode(storage, mode)
    if options.operation in _NEEDS_TABLE and mode != "append":
        raise ConfigError(f"Append is the only save mode applicable for the {options.operation} operation; got {mode}.")
    found = _find_table(storage)
    exists = found is not None
    if isinstance(found, CorruptTableError) and (mode != "overwrite" or options.operation == "insert_overwrite_table"):
        raise found
    if exists and mode == "errorifexists":
        raise TableExistsError(f"hoodie table at {storage.uri} already exists. Append to it, or write elsewhere.")
    if exists and mode == "ignore":
        return None
    if exists and (mode != "overwrite" or options.operation == "insert_overwrite_table"):
        return Target(storage, None, True)
    if not exists and options.operation in _NEEDS_TABLE:
        raise TableNotFoundError(f"hoodie table at {storage.uri} does not exist; there is nothing to delete.")
    here = None if exists else storage.stat("")
    if here is not None and not here.is_dir:
        raise ConfigError(f"{storage.uri} is a file; a table is a folder. Write elsewhere.")
    properties = new_table_properties(new_table_from_options(options, storage.uri))
    return Target(storage, properties, exists, isinstance(found, CorruptTableError))


def known_mode(storage: Storage, mode: str) -> str:
    """Validate storage and save mode; returns the mode in lower case, ``error`` as ``errorifexists``.

    Raises:
        ConfigError: unknown mode.
        UnsupportedFeatureError: a storage without conditional writes.
    """
    storage.check_writable()
    mode = {"error": "errorifexists"}.get(str(mode).lower(), str(mode).lower())
    if mode not in SAVE_MODES:
        raise ConfigError(f"The save mode {mode!r} is unknown; use one of {', '.join(SAVE_MODES)}.")
    return mode


def create_table(target: Target, options: WriteOptions) -> TableState:
    """Create the table, with its bucket counts by partition; an existing one is deleted first, with all its history.

    Call it under the lock of the existing table.

    Raises:
        TableExistsError: another process has created a table since the target was decided.
        ConfigError: the table's folder has files that do not belong to the table.
    """
    assert target.new is not None
    if target.exists:
        require_own_files(target.storage, options.deletes_other_files, OVERWRITE)
        empty_table(target.storage)
    layout = int(target.new["hoodie.timeline.layout.version"])
    create_table_layout(target.storage, target.new, layout)
    if options.bucket.expressions:
        save_bucket_counts(target.storage, options.bucket.expressions, options.bucket.count)
    return load_state(target.storage)


def remove_if_unused(storage: Storage, shared: bool) -> None:
    """Delete a table that this write created, unless another writer has written to it.

    Args:
        storage: the table's storage, under its lock.
        shared: whether pending instants may belong to other writers.
    """
    try:
        config = TableConfig.from_properties(load_properties(storage), storage.uri)
    except TableNotFoundError:
        return
    timeline = load_timeline(storage, config)
    if not timeline.writes() and not (shared and timeline.pending()):
        storage.delete_dir(".hoodie")
        for folder in [entry.path for entry in storage.list_dir("") if entry.is_dir]:
            names = [entry.name for entry in storage.list_dir(folder, recursive=True) if not entry.is_dir]
            if names and set(names) <= set(PARTITION_MARKERS):  # the only files after the rollback of the write
                storage.delete_dir(folder)
        if not storage.list_dir(""):
            storage.delete_dir("")


def table_exists(storage: Storage, broken_counts: bool) -> bool:
    """Whether a table exists; raises for an unreadable table that is not being replaced."""
    found = _find_table(storage)
    if isinstance(found, CorruptTableError) and not broken_counts:
        raise found
    return found is not None


def _find_table(storage: Storage) -> Mapping[str, str] | CorruptTableError | None:
    """The properties of a table, or the reason why they cannot be read; None without a table."""
    try:
        return load_properties(storage)
    except TableNotFoundError:
        return None
    except CorruptTableError as error:
        return error
