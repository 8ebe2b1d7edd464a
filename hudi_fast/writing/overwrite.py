"""Save mode ``overwrite``: a whole table replaced by a new one, all or nothing.

::

    stage      an empty folder beside the table        what a crashed overwrite left there goes
    (write)    the new table is made and written in it; the old one is read on meanwhile
    exchange   the two folders change places           visible, at once
    discard    the old table is deleted

Where the table's folder cannot be exchanged (it is a mount point, or its parent folder is read-only) the old table is
deleted first, as Apache Hudi does; a crash then leaves a broken table, which the next overwrite replaces.
"""

from __future__ import annotations

import contextlib
import os
import uuid

from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.errors import CommitError, CommitStateUnknownError
from hudi_fast.storage.base import Storage

__all__ = ["discard", "empty_table", "exchange", "stage"]


def stage(storage: Storage) -> Storage | None:
    """Where to write the new table; None when it has to be written in place. Call it under the table's lock."""
    root = storage.fs_path("")
    parent, _, name = root.rpartition("/")
    if not storage.is_local or not name or os.path.ismount(root) or not os.access(parent or "/", os.W_OK | os.X_OK):
        return None
    prefix = f".{name}.overwrite-"
    neighbours = storage.rooted_at(parent)
    for entry in neighbours.list_dir(""):
        if entry.is_dir and entry.name.startswith(prefix):
            neighbours.delete_dir(entry.path)
    staged = storage.rooted_at(f"{parent}/{prefix}{uuid.uuid4().hex}")
    staged.make_dir("")
    return staged


def exchange(storage: Storage, staged: Storage) -> None:
    """Put the new table where the old one is, and the old one where the new one was.

    Raises:
        CommitError: it did not happen.
        CommitStateUnknownError: storage does not say whether it did.
    """
    before = _identity(storage)
    try:
        storage.exchange(staged)
    except OSError as error:
        try:
            done = _identity(storage) != before
        except OSError as second:
            raise CommitStateUnknownError(
                f"Putting the new table in the place of {storage.uri} failed ({error}), and so did looking whether it "
                f"is there ({second}). Look at the table before anything is run again."
            ) from error
        if not done:
            raise CommitError(
                f"The new table could not be put in the place of {storage.uri}: {error}. The table is as before; run "
                "the operation again."
            ) from error


def discard(staged: Storage) -> None:
    """Delete what is beside the table; if that fails the next overwrite does it."""
    with contextlib.suppress(OSError):
        staged.delete_dir("")


def empty_table(storage: Storage) -> None:
    """Delete everything below the base path but the lock; the properties go last, so that a crash can be repaired."""
    for entry in storage.list_dir(""):
        if entry.path != ".hoodie":
            _ = storage.delete_dir(entry.path) if entry.is_dir else storage.delete_file(entry.path)
    kept = (".hoodie/.locks", PROPERTIES_PATH)
    for entry in storage.list_dir(".hoodie"):
        if entry.path not in kept:
            _ = storage.delete_dir(entry.path) if entry.is_dir else storage.delete_file(entry.path)
    storage.delete_file(PROPERTIES_PATH)


def _identity(storage: Storage) -> bytes:
    """The properties say to the microsecond when they were written, so no two tables share them."""
    try:
        return storage.read_bytes(PROPERTIES_PATH)
    except FileNotFoundError:
        return b""
