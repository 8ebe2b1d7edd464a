"""Turns storage failures into errors of hudi_fast: the table, the file, the system's message, and what to do.

::

    OSError of a file system ─┬─► telling_failures (a verb), told_while_read (rows that are read later)
                              └─► tasks of Spark, which send it to the driver ─► StorageAccessError, StorageFailedError

Inside a call an ``OSError`` is not converted, because code that retries or rolls back checks its class and number. It
leaves the library as a ``HudiError``. A write that has begun raises ``CommitError`` instead.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from hudi_fast.errors import HudiError, StorageAccessError, StorageFailedError
from hudi_fast.storage.conditional import ThrottledError

__all__ = [
    "is_failure",
    "naming_file",
    "storage_failure",
    "telling_failures",
    "tells_failures",
    "told_while_read",
]

_AGAIN = "Run it again: what was begun is finished, or rolled back."
_ADVICE = {
    errno.ENOSPC: "Free space on the disk. ",
    errno.EDQUOT: "Free space, or raise the quota of this user. ",
    errno.EIO: "Check the disk; the log of the operating system says more. ",
    errno.EMFILE: "Raise the limit of open files (ulimit -n). ",
    errno.ENFILE: "Raise the limit of open files of the machine. ",
    errno.EROFS: "Mount the disk for writing. ",
}

Verbs = TypeVar("Verbs", bound=type)
Item = TypeVar("Item")


def storage_failure(error: OSError, what: str, again: str = _AGAIN) -> HudiError:
    """The error of hudi_fast for an error of storage.

    Args:
        error: may already be an error of hudi_fast.
        what: the action and its table, as the subject of a sentence.
        again: what to do once the cause is fixed.
    """
    if isinstance(error, HudiError):
        return error
    said = str(error).rstrip(".")
    if isinstance(error, PermissionError):
        return StorageAccessError(
            f"{what} was refused by storage: {said}. This user needs the rights to read and write the folder. {again}"
        )
    return StorageFailedError(f"{what} failed because of storage: {said}. {_ADVICE.get(error.errno or 0, '')}{again}")


@contextlib.contextmanager
def telling_failures(what: str, again: str = _AGAIN) -> Iterator[None]:
    """Raise errors of storage in the block as errors of hudi_fast.

    Args:
        what: the action and its table, as the subject of a sentence.
        again: what to do once the cause is fixed.

    Raises:
        StorageAccessError: storage refuses.
        StorageFailedError: storage failed.
    """
    try:
        yield
    except HudiError:
        raise
    except OSError as error:
        raise storage_failure(error, what, again) from error


def told_while_read(rows: Iterable[Item], uri: str) -> Iterator[Item]:
    """Rows of a query; storage failures while they are read are raised as errors of hudi_fast.

    The call that made the rows has already returned then.

    Args:
        rows: batches, read lazily.
        uri: the table.
    """
    with telling_failures(f"A query of {uri}", "Run it again."):
        yield from rows


def tells_failures(verbs: Verbs) -> Verbs:
    """Class decorator: public methods raise failures of the storage in ``_storage`` as errors of hudi_fast."""
    for name, verb in list(vars(verbs).items()):
        if inspect.isfunction(verb) and not name.startswith("_") and not inspect.isgeneratorfunction(verb):
            setattr(verbs, name, _telling(verb))
    return verbs


def _telling(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def told(self: Any, *arguments: Any, **named: Any) -> Any:
        with telling_failures(f"{verb.__name__}() of {self._storage.uri}"):
            return verb(self, *arguments, **named)

    return told


def is_failure(error: BaseException) -> bool:
    """Whether an error means that storage failed, and not that the content of a file is damaged.

    Arrow raises ``OSError`` for both; errors of the system have a number.
    """
    if isinstance(error, FileNotFoundError):
        return False
    return isinstance(error, HudiError | ThrottledError) or (isinstance(error, OSError) and error.errno is not None)


@contextlib.contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Add the name of a file to errors in the block: errors of pyarrow's streams do not name it.

    Args:
        path: the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None and path not in str(error):
            error.filename = path
        raise
