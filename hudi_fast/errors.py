"""The exceptions of hudi_fast, grouped by what the caller can do about them.

::

    HudiError
    ├── ConfigError                 options are invalid, contradictory, or differ from the table: fix the call
    ├── TableNotFoundError          no table at the path: create it, or fix the path
    ├── TableExistsError            a table already exists at the path: use another path or mode
    ├── CorruptTableError           a file of the table cannot be decoded: restore it
    │   └── FileGoneError           a file was deleted (for example cleaned) after the table was opened: read again
    ├── UnsupportedFeatureError     a Hudi feature that hudi_fast does not support (yet): use Apache Hudi
    ├── InvalidDataError            rows that cannot be stored (null key, no ordering field ...): fix the data
    │   └── DuplicateKeyError       an insert that refuses duplicates met an existing key
    ├── SchemaMismatchError         the incoming schema is incompatible with the table's: fix the schema
    ├── CommitError                 the write did not become visible; the table is unchanged: retry
    │   ├── CommitConflictError     another writer changed the same file groups: retry
    │   │   └── ServiceTakenError   another process executes the service or has completed it: do not retry
    │   └── CommitStateUnknownError it is unknown whether the write became visible: check before you retry
    ├── PostCommitError             the write is committed, and a service after it failed: do not retry the write
    ├── StorageAccessError          the store refuses access (also a PermissionError): fix credentials, rights, address
    ├── StorageUnreachableError     no answer came from the store (also an OSError): fix network, address, proxy
    ├── StorageFailedError          storage failed (also an OSError): a full disk, an error of the disk: fix it, retry
    └── LockError                   the table lock could not be acquired or was lost
        └── LockTimeoutError        the lock was not acquired in time: wait, or find the holder

A write ends in one of three ways, each with its own class: it did not happen (every error but the two that follow), it
is unknown whether it happened (``CommitStateUnknownError``), or it happened and a service after it failed
(``PostCommitError``). A message names the table, instant and file where they apply, what was expected, what was found,
and what to do.

The first sentence of a class and its ``advice`` are its row in docs/errors.md:
``python -m hudi_fast.config.generated_docs docs/errors.md``.
"""

from __future__ import annotations

import os
import traceback
from typing import Any, ClassVar

__all__ = [
    "CatalogError",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "ConfigError",
    "CorruptTableError",
    "DuplicateKeyError",
    "FileGoneError",
    "HudiError",
    "HudiWarning",
    "InvalidDataError",
    "LockError",
    "LockTimeoutError",
    "PostCommitError",
    "SchemaMismatchError",
    "ServiceTakenError",
    "SourceError",
    "StorageAccessError",
    "StorageFailedError",
    "StorageUnreachableError",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedFeatureError",
    "ValidationError",
]


class HudiWarning(UserWarning):
    """A condition that the user should know about; the result is still correct."""


class HudiError(Exception):
    """Base class of all hudi_fast errors.

    Attributes:
        advice: what to do about errors of this class.
    """

    advice: ClassVar[str] = ""

    def _render_traceback_(self) -> list[str]:
        """The traceback in IPython and in notebooks: the lines of the caller, and the message.

        The error is about them. ``traceback.print_exception(sys.last_value)`` also shows the calls inside.
        """
        frames = [one for one in traceback.extract_tb(self.__traceback__) if _is_of_caller(one.filename)]
        shown = [f"In {_place(one)}, line {one.lineno}\n    {one.line}" for one in frames]
        notes = getattr(self, "__notes__", [])
        return [*shown, f"{type(self).__name__}: {self}", *notes]


_PACKAGES = (os.path.dirname(__file__) + os.sep, f"{os.sep}IPython{os.sep}", f"{os.sep}site-packages{os.sep}")


def _is_of_caller(file: str) -> bool:
    """Whether a file is neither part of this library nor of another one."""
    return not any(place in file for place in _PACKAGES)


def _place(frame: traceback.FrameSummary) -> str:
    """Where a caller's line is: a cell of a notebook has the name of a temporary file."""
    is_cell = f"{os.sep}ipykernel_" in frame.filename or frame.filename.startswith("<ipython-input")
    return "this notebook" if is_cell else frame.filename


class ConfigError(HudiError):
    """An option or argument is wrong, options contradict each other, or options contradict the table."""

    advice = "fix the call"


class TableNotFoundError(HudiError):
    """There is no Hudi table at the path."""

    advice = "create it, or fix the path"


class TableExistsError(HudiError):
    """A Hudi table exists at the path, and the save mode forbids it."""

    advice = "use another path or another mode"


class CorruptTableError(HudiError):
    """A file of the table cannot be decoded; ``path`` and ``offset`` say where.

    Args:
        message: what was expected and what was found.
        path: the file, relative to the table.
        offset: byte position of the first invalid byte, if known.
    """

    advice = "restore the file"

    def __init__(self, message: str, path: str | None = None, offset: int | None = None) -> None:
        place = "" if offset is None else f", byte {offset}"
        super().__init__(message + ("" if path is None else f" [file {_printable(path)}{place}]"))
        self.path = path
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_corrupt, (type(self), self.args[0], self.path, self.offset)


def _printable(path: str) -> str:
    """A path of a table without line ends and other control characters, which could forge lines of a log."""
    return path if path.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in path)


def _restore_corrupt(
    kind: type[CorruptTableError], text: str, path: str | None, offset: int | None
) -> CorruptTableError:
    error = kind(text)
    error.path, error.offset = path, offset
    return error


class FileGoneError(CorruptTableError):
    """A clean or a rollback deleted a file after the call pinned its table state, or the file was lost."""

    advice = "read again; let cleans retain more"


class UnsupportedFeatureError(HudiError):
    """A valid Hudi feature that hudi_fast does not support; raised before anything is written or returned."""

    advice = "use Apache Hudi for it"


class InvalidDataError(HudiError):
    """Rows that cannot be stored: a null record key, a missing ordering field."""

    advice = "fix the rows"


class ValidationError(InvalidDataError):
    """A validator of the options refused the write before its commit; the write is rolled back."""

    advice = "fix the rows, or the validator"


class DuplicateKeyError(InvalidDataError):
    """An insert contains a record key that the table holds, and the options forbid it."""

    advice = "use upsert, or drop the row"


class SchemaMismatchError(HudiError):
    """The schema of the rows cannot become the schema of the table; the message lists all problems at once."""

    advice = "fix the schema, or set the option that the message names"


class CommitError(HudiError):
    """The write did not become visible; the table is unchanged."""

    advice = "run it again"


class CommitConflictError(CommitError):
    """A concurrent writer changed the same file groups, or the same instant.

    Args:
        message: names both writes and the conflict.
        instant: requested time of the failed write, if it had one.
        other: requested time of the conflicting write, if it is a single one.
        file_groups: (partition path, file id) of the file groups that both writes changed.
    """

    advice = "run it again, or set `hoodie.write.num.retries.on.conflict.failures`"

    def __init__(
        self,
        message: str,
        instant: str | None = None,
        other: str | None = None,
        file_groups: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.instant = instant
        self.other = other
        self.file_groups = file_groups

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.instant, self.other, self.file_groups)


class ServiceTakenError(CommitConflictError):
    """Another process executes the service, has completed it, or has removed its plan."""

    advice = "do nothing, or plan again"


class CommitStateUnknownError(CommitError):
    """Storage did not confirm that the completed instant was written, or it was after the lock was lost."""

    advice = "look for the instant in `history()` before you run it again"


class PostCommitError(HudiError):
    """The write is committed, and a service after it failed; ``services`` are left to run.

    It is not a :class:`CommitError`: running the write again would repeat it. The original error is its ``__cause__``.

    Args:
        message: names the write, the service and the reason.
        instant: requested time of the committed write.
        result: the ``WriteResult`` of the write; None for a table service.
        services: the services that have not run, the failed one first: names of methods of ``HudiTable.services``.
    """

    advice = "do not run the write again: `.result` is its result, and the next write runs the `.services` that are due"

    def __init__(self, message: str, instant: str = "", result: Any = None, services: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.instant = instant
        self.result = result
        self.services = services

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.instant, self.result, self.services)


class CatalogError(HudiError):
    """A Hive metastore or AWS Glue refuses a call, does not answer, or holds something else than expected."""

    advice = "fix what the message names, then sync again"


class StorageAccessError(HudiError, PermissionError):
    """The store refuses an access: wrong credentials, a missing permission or bucket, a proxy in between."""

    advice = "fix what the reason names; once a write has begun, a `CommitError` has the same text"


class StorageUnreachableError(HudiError, OSError):
    """No answer came from the store; it is unknown whether it did what was asked.

    Args:
        message: names the store, the address, and what to check.
        seconds: how long the storage options wait for an answer; None if they do not say.
    """

    advice = "fix what the message names; once a write has begun, a `CommitError` has the same text"

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.seconds)


class StorageFailedError(HudiError, OSError):
    """Storage failed before a write had begun, or in a service or a query: a full disk, an error of the disk.

    Once a write has begun, a :class:`CommitError` has the same text.
    """

    advice = "mend what the message names, and run it again"


class SourceError(HudiError, OSError):
    """The source of a streamer does not answer, or it lost rows before they were read. The table is as before."""

    advice = "fix what the message names; the stream continues from its position"


class LockError(HudiError):
    """The lock of the table could not be acquired, or was lost before the write became visible."""

    advice = "request write permission, or run it again: the next clean or write rolls back what is pending"


class LockTimeoutError(LockError):
    """Other holders kept the lock of the table for longer than the allowed wait."""

    advice = "wait, or end the holder that the message names"
