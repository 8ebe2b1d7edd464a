"""Stages a new table in a folder next to the base path, and renames it when it is complete.

::

    find_place   check the base path and the save mode
    stage        .<name>.bootstrap-<id> next to it; leftovers of failed attempts are deleted
    (write)
    publish      rename, or (when replacing a table) exchange the folders           the table is visible

Where no staging folder is possible (a mount point, a read-only parent, anything but local disk) the table is written in
place: a crash then leaves a table without a complete commit, which the next attempt replaces.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import (
    CommitError,
    CommitStateUnknownError,
    ConfigError,
    TableExistsError,
    UnsupportedFeatureError,
)
from hudi_fast.locking.machine import is_held, machine_lock
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.storage.base import Storage
from hudi_fast.storage.local_entries import folders_beside
from hudi_fast.timeline.active import load_timeline
from hudi_fast.writing.open_table import known_mode, table_exists
from hudi_fast.writing.overwrite import discard, empty_table, exchange, real_folder

__all__ = ["Place", "find_place", "staged"]


@dataclass(frozen=True, slots=True)
class Place:
    """Target of a bootstrap.

    Attributes:
        storage: base path.
        replaces: whether an existing table is replaced.
    """

    storage: Storage
    replaces: bool


def find_place(storage: Storage, source: Storage, mode: str) -> Place | None:
    """Check the target of a bootstrap; None when the mode is ``ignore`` and the table exists.

    Args:
        storage: the base path of the new table.
        source: the folder of Parquet files.
        mode: ``errorifexists``, ``append`` (the same, because a bootstrap cannot append), ``overwrite`` or ``ignore``.

    Raises:
        TableExistsError: the table exists, and the mode does not allow that.
        ConfigError: unknown mode, other files at the base path, or one folder inside the other.
        UnsupportedFeatureError: a storage without conditional writes; replacing a table that is not on local disk.
    """
    mode = known_mode(storage, mode)
    if source.is_local:
        here, there = (os.path.realpath(one.fs_path("")) + "/" for one in (storage, source))
        if here.startswith(there) or there.startswith(here):
            raise ConfigError(
                f"A table at {storage.uri} cannot be bootstrapped from {source.uri}: one folder would be inside the "
                "other. Choose a path next to it."
            )
    exists = table_exists(storage, broken_counts=mode == "overwrite")
    if exists and mode == "overwrite" and not storage.is_local:
        raise UnsupportedFeatureError(
            f"The table {storage.uri} cannot be replaced: only local folders can be swapped. Delete the table first, "
            "or bootstrap elsewhere."
        )
    if exists and mode == "ignore":
        return None
    if exists and mode != "overwrite" and not _is_unfinished(storage):
        raise TableExistsError(f"hoodie table at {storage.uri} already exists. Bootstrap elsewhere, or overwrite it.")
    foreign = [] if exists else [entry.name for entry in storage.list_dir("") if entry.name != ".hoodie"]
    if foreign:
        raise ConfigError(
            f"{storage.uri} is not a Hudi table and holds {foreign[0]!r}; a bootstrap needs a new or an empty folder."
        )
    return Place(storage, exists)


@contextlib.contextmanager
def staged(place: Place, lock: LockOptions) -> Iterator[Storage]:
    """The staging folder; published at the end of the block, deleted on failure.

    Args:
        place: the target.
        lock: of the replaced table.

    Raises:
        TableExistsError: another process has created a table in the meantime.
        CommitError: publishing failed.
    """
    storage = place.storage
    with contextlib.ExitStack() as held:
        replaced = held.enter_context(table_lock(storage, lock)) if place.replaces else HeldLock()
        beside = _stage(storage)
        if beside is None:
            with _in_place(place):
                yield storage
            return
        try:
            beside.make_dir(".hoodie")
            with machine_lock(beside, lock.wait_ms / 1000):
                yield beside
                replaced.require()
                _publish(place, beside)
        finally:
            discard(beside)


def _stage(storage: Storage) -> Storage | None:
    if not storage.is_local:
        return None
    parent, name = real_folder(storage)
    neighbours = storage.rooted_at(parent)
    neighbours.make_dir("")
    if not name or os.path.ismount(f"{parent}/{name}") or not os.access(parent or "/", os.W_OK | os.X_OK):
        return None
    prefix = f".{name}.bootstrap-"
    for folder in folders_beside(parent, prefix):
        left = storage.rooted_at(folder)
        if not is_held(left):
            discard(left)
    beside = storage.rooted_at(f"{parent}/{prefix}{uuid.uuid4().hex}")
    beside.make_dir("")
    return beside


def _publish(place: Place, beside: Storage) -> None:
    storage = place.storage
    if place.replaces:
        exchange(storage, beside)
        return
    parent, name = real_folder(storage)
    neighbours = storage.rooted_at(parent)
    try:
        if not table_exists(storage, broken_counts=True):
            storage.delete_dir(".hoodie")  # of a failed bootstrap without table properties
        neighbours.move(beside.fs_path("").rpartition("/")[2], name)
    except OSError as error:
        if beside.exists(""):
            if table_exists(storage, broken_counts=True):
                raise TableExistsError(f"Another process created a table at {storage.uri} in the meantime.") from error
            raise CommitError(
                f"The new table could not be put at {storage.uri}: {error}. Nothing is there; run it again."
            ) from error
        if not table_exists(storage, broken_counts=True):
            raise CommitStateUnknownError(
                f"Publishing the new table at {storage.uri} failed ({error}). Check whether it is there before you "
                "run anything again."
            ) from error


@contextlib.contextmanager
def _in_place(place: Place) -> Iterator[None]:
    storage = place.storage
    if place.replaces:
        empty_table(storage)
    try:
        yield
    except (CommitStateUnknownError, TableExistsError):
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            empty_table(storage)
            storage.delete_dir(".hoodie")
        raise


def _is_unfinished(storage: Storage) -> bool:
    """Whether it is a leftover of a failed bootstrap."""
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return config.bootstrap_base_path is not None and not load_timeline(storage, config).completed()
