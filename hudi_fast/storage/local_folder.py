"""Deletes a local folder while other processes may write files into it."""

from __future__ import annotations

import errno
import itertools

import pyarrow.fs as pafs

__all__ = ["delete_folder"]

_TRIES = 20


def delete_folder(fs: pafs.FileSystem, path: str) -> bool:
    """Delete a folder and its content; False if it did not exist. ``path`` is its name in ``fs``.

    If another process adds a file between emptying and removing the folder, the next attempt deletes it too: index
    builds run without the table lock and learn only at their end that the index has been dropped.

    Raises:
        OSError: the folder cannot be deleted, or other processes keep adding files.
    """
    tries = itertools.count(1)
    while True:
        try:
            fs.delete_dir(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or next(tries) == _TRIES:
                raise
        else:
            return True
