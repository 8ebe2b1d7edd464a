"""Checks that a local table consists of folders and regular files below its base path.

A table that was unpacked or copied from elsewhere may contain anything. A symbolic link could lead readers, cleans and
deletes out of the table, or into an endless loop; opening a named pipe waits for ever. Both are refused. The base path
itself belongs to the caller: it may be a link, or be below one.
"""

from __future__ import annotations

import os
import re
import stat

from hudi_fast.errors import CorruptTableError

__all__ = ["LocalEntry", "check_entries", "folders_beside", "local_entries"]

LocalEntry = tuple[str, int, int, bool]
"""Path below the root, bytes, milliseconds since the epoch, whether it is a folder."""


def check_entries(root: str, path: str) -> None:
    """Check each part of a path below ``root`` that exists.

    A process that can change the table's folder can still create a link after the check.

    Raises:
        CorruptTableError: a part is neither a folder nor a regular file.
    """
    at = root
    for part in path.split("/"):
        at = f"{at}/{part}"
        try:
            mode = os.lstat(at).st_mode
        except OSError:  # it does not exist, or the access itself will raise the error
            return
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _refusal(root, at[len(root) + 1 :], mode)


def folders_beside(parent: str, prefix: str) -> list[str]:
    """Folders named ``prefix`` and a random id, left over from this library, in a folder that may hold anything."""
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{32}")
    with os.scandir(parent or "/") as entries:
        names = [one.name for one in entries if ours.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
    return [f"{parent}/{name}" for name in sorted(names)]


def local_entries(root: str, path: str, recursive: bool) -> list[LocalEntry]:
    """The entries of a folder below ``root``; none if it does not exist.

    Raises:
        CorruptTableError: an entry is neither a folder nor a regular file.
    """
    found: list[LocalEntry] = []
    folders = [path]
    while folders:
        folder = folders.pop()
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{root}/{folder}" if folder else root) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted in the meantime
                        continue
                    inside = f"{prefix}{entry.name}"
                    is_dir = stat.S_ISDIR(status.st_mode)
                    if not (is_dir or stat.S_ISREG(status.st_mode)):
                        raise _refusal(root, inside, status.st_mode)
                    found.append((inside, 0 if is_dir else status.st_size, status.st_mtime_ns // 1_000_000, is_dir))
                    if is_dir and recursive:
                        folders.append(inside)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found


def _refusal(root: str, path: str, mode: int) -> CorruptTableError:
    what = "a symbolic link" if stat.S_ISLNK(mode) else "an entry that is neither a file nor a folder"
    return CorruptTableError(
        f"The table {root} holds {what}. It may consist of folders and files only, because a link can lead out of it; "
        "nothing was done with it. Put a copy in its place, or mount the other folder there.",
        path,
    )
