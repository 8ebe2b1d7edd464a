"""Save mode ``overwrite``: replaces a whole table atomically.

::

    stage      an empty folder next to the table       leftovers of a crashed overwrite are deleted
    (write)    the new table is created and written in it; readers still use the old one
    exchange   the two folders are swapped             the new table is visible
    discard    the old table is deleted

Where the table's folder cannot be exchanged (it is a mount point, or its parent folder is read-only) the old table is
deleted first, as Apache Hudi does; a crash then leaves a broken table, which the next overwrite replaces.

If the base path is a symbolic link, the link stays, and the folder behind it is exchanged. A folder with files that do
not belong to the table is refused, because it is deleted as a whole.
"""

from __future__ import annotations

import contextlib
import os
import uuid

from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.errors import CommitError, CommitStateUnknownError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.local_entries import folders_beside
from hudi_fast.view.own_files import require_own_files

__all__ = ["OVERWRITE", "discard", "empty_table", "exchange", "real_folder", "stage"]

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
