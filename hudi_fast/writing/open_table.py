"""Open, create or replace the target table of a write.

Opens or creates the target table of a write, depending on the save mode.

A table is created or replaced only after the write's schema and rows have been checked. If the write then fails, a
table that it created is deleted.

Save mode ``overwrite``: replaces a whole table atomically.

::

    stage      an empty folder next to the table       leftovers of a crashed overwrite are deleted
    (write)    the new table is created and written in it; readers still use the old one
    exchange   the two folders are swapped             the new table is visible
    discard    the old table is deleted

Where the table's folder cannot be exchanged (it is a mount point, or its parent folder is read-only) the old table is
deleted first, as Apache Hudi does; a crash then leaves a broken table, which the next overwrite replaces.

If the base path is a symbolic link, the link stays, and the folder behind it is exchanged. A folder with files that do
not belong to the table is refused, because it is deleted as a whole.

Save mode ``overwrite`` where the table's folder cannot be exchanged for another: in object stores, at mount points.

One replace commit ends all file groups of the table and adds groups of the new rows, with the new columns. Readers see
the old table until it is complete, and the new one from then on. The old rows remain in the table's history until a
clean deletes their files.

If the options also change the table's configuration, the change is announced before the commit and takes effect with
it: see :mod:`hudi_fast.timeline.transition`. This module decides what changes.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.new_table import create_table_layout, new_table_properties
from hudi_fast.config.option_conflicts import new_table_from_options
from hudi_fast.config.option_names import SAVE_MODES
from hudi_fast.config.properties_file import CHECKSUM_KEY, PROPERTIES_PATH, load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import (
    CommitError,
    CommitStateUnknownError,
    ConfigError,
    CorruptTableError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hudi_fast.index.buckets import save_bucket_counts
from hudi_fast.metadata_table.updates.bookkeeping import BUILDING_KEY, DEFINITIONS_KEY, PARTITIONS_KEY
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.local_store import folders_beside
from hudi_fast.timeline.instants import Timeline, load_timeline
from hudi_fast.timeline.transition import ANNOUNCED_KEY
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import require_own_files
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.slices import TableView
from hudi_fast.view.table_state import TableState, load_state, table_schema

__all__ = [
    "OVERWRITE",
    "Target",
    "changed_properties",
    "create_table",
    "discard",
    "empty_table",
    "exchange",
    "find_target",
    "known_mode",
    "real_folder",
    "remove_if_unused",
    "require_same_partitions",
    "stage",
    "table_exists",
]

OVERWRITE = "Save mode overwrite"
"""The operation, in messages."""


def real_folder(storage: Storage) -> tuple[str, str]:
    """The folder of a local table, as its parent folder and its name: the base path may be a symbolic link to it."""
    parent, _, name = os.path.realpath(storage.fs_path("")).rpartition("/")
    return parent, name


def stage(storage: Storage, deletes_others: bool = False) -> Storage | None:
    """The staging folder of the new table; None when it is written in place. Call it under the table's lock.

    Args:
        storage: the table's storage.
        deletes_others: whether files that do not belong to the table may be deleted from its folder.

    Raises:
        ConfigError: there are such files.
    """
    if not storage.is_local:
        return None
    parent, name = real_folder(storage)
    if not name or os.path.ismount(f"{parent}/{name}") or not os.access(parent or "/", os.W_OK | os.X_OK):
        return None
    require_own_files(storage, deletes_others, OVERWRITE)
    prefix = f".{name}.overwrite-"
    for left in folders_beside(parent, prefix):
        storage.rooted_at(left).delete_dir("")
    staged = storage.rooted_at(f"{parent}/{prefix}{uuid.uuid4().hex}")
    staged.make_dir("")
    return staged


def exchange(storage: Storage, staged: Storage) -> None:
    """Exchange the folders of the new and the old table.

    Raises:
        CommitError: the exchange failed.
        CommitStateUnknownError: storage errors hide whether it succeeded.
    """
    before = _identity(storage)
    try:
        storage.exchange(staged)
    except OSError as error:
        try:
            done = _identity(storage) != before
        except OSError as second:
            raise CommitStateUnknownError(
                f"Replacing {storage.uri} by the new table failed ({error}), and so did checking which table is there "
                f"({second}). Inspect the table before you run anything again."
            ) from error
        if not done:
            raise CommitError(
                f"The new table could not replace {storage.uri}: {error}. The table is as before; run the operation "
                "again."
            ) from error


def discard(staged: Storage) -> None:
    """Delete the staging folder; if that fails, the next overwrite does it."""
    with contextlib.suppress(OSError):
        staged.delete_dir("")


def empty_table(storage: Storage) -> None:
    """Delete everything below the base path except the lock; the properties last, so that a crash can be repaired."""
    for entry in storage.list_dir(""):
        if entry.path != ".hoodie":
            _ = storage.delete_dir(entry.path) if entry.is_dir else storage.delete_file(entry.path)
    kept = (".hoodie/.locks", PROPERTIES_PATH)
    for entry in storage.list_dir(".hoodie"):
        if entry.path not in kept:
            _ = storage.delete_dir(entry.path) if entry.is_dir else storage.delete_file(entry.path)
    storage.delete_file(PROPERTIES_PATH)


def _identity(storage: Storage) -> bytes:
    """Identity of a table: its properties hold their time of writing in microseconds, so they are unique."""
    try:
        return storage.read_bytes(PROPERTIES_PATH)
    except FileNotFoundError:
        return b""


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


_VERSION, _ZONE = "hoodie.table.version", "hoodie.table.timeline.timezone"

_KEPT = frozenset(
    {
        _VERSION,
        _ZONE,
        "hoodie.table.initial.version",
        "hoodie.table.format",
        "hoodie.timeline.layout.version",
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
        "hoodie.archivelog.folder",
        "hoodie.partition.metafile.use.base.format",
        PARTITIONS_KEY,
        BUILDING_KEY,
        DEFINITIONS_KEY,
        CHECKSUM_KEY,  # follows the names
    }
)
"""Properties that describe the timeline and files that stay, and the metadata table."""

_KEPT_PREFIX = "hoodie.bootstrap."
"""Rows of a bootstrapped table stay in its source until their file groups are cleaned."""

_GENERATOR = "hoodie.table.keygenerator.type"
_PATH_GENERATORS = frozenset({"TIMESTAMP", "CUSTOM"})
_PARTITIONED_BY = (
    "hoodie.table.partition.fields",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.datasource.write.slash.separated.date.partitioning",
    "hoodie.datasource.write.drop.partition.columns",
)
"""Properties that decide the partition path of a row."""


def changed_properties(state: TableState, options: WriteOptions) -> dict[str, str | None]:
    """The properties that an overwrite changes; None for a property that it removes.

    Args:
        state: the table to overwrite.
        options: of the new table; its version and time zone default to those of the existing table.

    Raises:
        ConfigError: the options do not describe a new table, or change the table type while a compaction is pending.
        UnsupportedFeatureError: the options change the table's version, its time zone, or how partition paths are made.
    """
    config, before = state.config, state.config.raw
    kept = replace(options, table=replace(options.table, version=config.version, timezone=config.timezone))
    for key, given, existing in (
        ("hoodie.write.table.version", options.table.version, config.version),
        (_ZONE, options.table.timezone, config.timezone),
    ):
        if key in options.explicit and given != existing:
            raise _unsupported(state, f"{key} is {existing} in the table and {given} in the options")
    after = new_table_properties(new_table_from_options(kept, config.name))
    names = {*before, *after} - _KEPT - {ANNOUNCED_KEY}
    changes = {
        name: after.get(name)
        for name in sorted(names)
        if before.get(name) != after.get(name) and not name.startswith(_KEPT_PREFIX)
    }
    generators = {before.get(_GENERATOR), after.get(_GENERATOR)}
    for name in changes:
        makes_paths = name == _GENERATOR and generators & _PATH_GENERATORS
        if name in _PARTITIONED_BY or name.startswith("hoodie.keygen.") or makes_paths:
            one, other = before.get(name), after.get(name)
            raise _unsupported(state, f"{name} is {one!r} in the table and {other!r} in the options")
    if "hoodie.table.type" in changes and state.timeline.pending_compactions:
        raise ConfigError(
            f"The table {state.storage.uri} cannot become {after['hoodie.table.type']}: the compaction "
            f"{state.timeline.pending_compactions[0].requested} is pending. Run services.run_pending() first."
        )
    return changes


def require_same_partitions(state: TableState, schema: pa.Schema) -> None:
    """Refuse an overwrite that changes the type of a partition column.

    Partitions of replaced rows stay until a clean deletes their files, and Apache Hudi converts the partition paths of
    the whole table to the types of the partition columns.

    Args:
        state: the table to overwrite.
        schema: its new columns.

    Raises:
        UnsupportedFeatureError: the type of a partition column changes.
    """
    known = table_schema(state)
    for name in state.config.partition_fields:
        if known is None or name not in known.names or name not in schema.names:
            continue
        given, existing = schema.field(name).type, known.field(name).type
        if given != existing:
            raise _unsupported(state, f"the partition column {name} is {existing} in the table and {given} in the rows")


def _unsupported(state: TableState, problem: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The table {state.storage.uri} cannot be overwritten where it is: {problem}. Its folder cannot be exchanged "
        "for another, and partitions with replaced rows stay. Delete the table and write it again, or write elsewhere."
    )
