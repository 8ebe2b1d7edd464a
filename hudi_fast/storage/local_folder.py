"""Deletes a folder of this machine while others may be putting files into it."""

from __future__ import annotations

import errno
import itertools

import pyarrow.fs as pafs

__all__ = ["delete_folder"]

_TRIES = 20


def delete_folder(fs: pafs.FileSystem, path: str) -> bool:
    """Delete a folder and all below it; False when there was none.

    A file that another process puts there between the emptying and the removal is deleted, too, in the next try: who
    builds an index works without the table's lock, and learns at its end that the index is not wanted any more.

    Args:
        fs: a file system with folders.
        path: of the folder, as that file system has it.

    Raises:
        OSError: it cannot be deleted, or is filled again and again.
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
