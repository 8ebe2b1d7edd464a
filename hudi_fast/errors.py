"""The errors of hudi_fast: one tree, each branch named after what the caller can do about it.

::

    HudiError
    ├── ConfigError                 options are wrong, clash, or differ from the table: fix the call
    ├── TableNotFoundError          no table at that path: create it, or fix the path
    ├── TableExistsError            a table is there and must not be: other path, other mode
    ├── CorruptTableError           a file of the table cannot be understood: restore it
    │   └── FileGoneError           a file is not there any more, cleaned since the table was looked at: read again
    ├── UnsupportedFeatureError     valid Hudi that hudi_fast does not do (yet): use Apache Hudi for it
    ├── InvalidDataError            rows that cannot be stored (null key, no ordering field ...): fix the data
    │   └── DuplicateKeyError       an insert met a key that the table holds and was told to refuse it
    ├── SchemaMismatchError         the incoming schema cannot become the table's: fix the schema
    ├── CommitError                 the write did not become visible; the table is as before: run it again
    │   ├── CommitConflictError     another writer changed the same file groups: run it again
    │   │   └── ServiceTakenError   somebody else carries the service out, or has done so: leave it to them
    │   └── CommitStateUnknownError whether the write became visible is not known: look before running it again
    └── LockError                   the table's lock could not be had or was lost
        └── LockTimeoutError        ... within the time allowed: wait, or find the holder

A message says, as far as they apply: table, instant, file, what was expected, what was found, what to do.
"""

from __future__ import annotations

__all__ = [
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
    "SchemaMismatchError",
    "ServiceTakenError",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedFeatureError",
]


class HudiWarning(UserWarning):
    """Something the user should know that does not make the result wrong."""


class HudiError(Exception):
    """Root of every error that hudi_fast raises on purpose."""


class ConfigError(HudiError):
    """Options are wrong, contradict each other, or contradict the table."""


class TableNotFoundError(HudiError):
    """There is no Hudi table at the path."""


class TableExistsError(HudiError):
    """There is a Hudi table at the path, and the save mode forbids it."""


class CorruptTableError(HudiError):
    """A file of the table cannot be understood.

    Args:
        message: what was expected and what was found.
        path: the file, relative to the table.
        offset: byte position of the first thing that is wrong, if known.
    """

    def __init__(self, message: str, path: str | None = None, offset: int | None = None) -> None:
        where = "" if path is None else f" [file {path}" + ("" if offset is None else f", byte {offset}") + "]"
        super().__init__(message + where)
        self.path = path
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_corrupt, (type(self), self.args[0], self.path, self.offset)


def _restore_corrupt(
    kind: type[CorruptTableError], text: str, path: str | None, offset: int | None
) -> CorruptTableError:
    error = kind(text)
    error.path, error.offset = path, offset
    return error


class FileGoneError(CorruptTableError):
    """A file that belonged to the table when it was looked at is not there any more: cleaned, rolled back, or lost."""


class UnsupportedFeatureError(HudiError):
    """Valid Hudi that hudi_fast does not do; raised before anything is written or answered."""


class InvalidDataError(HudiError):
    """Rows that cannot be stored, for example a null record key."""


class DuplicateKeyError(InvalidDataError):
    """An insert met a record key that the table already holds."""


class SchemaMismatchError(HudiError):
    """The incoming schema cannot become the table's schema."""


class CommitError(HudiError):
    """The write did not become visible; the table is as it was."""


class CommitConflictError(CommitError):
    """Another writer changed the same file groups in the meantime.

    Args:
        message: who changed what.
        instant: requested time of the write that did not land, if it had one.
        other: requested time of the one that it is in conflict with, if it is one.
        file_groups: partition paths and file ids that both changed.
    """

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
    """Somebody else is carrying the service out, has carried it out, or has taken it off the timeline."""


class CommitStateUnknownError(CommitError):
    """Storage did not say whether the completed instant was written."""


class LockError(HudiError):
    """The table's lock could not be taken or was lost."""


class LockTimeoutError(LockError):
    """The table's lock was held by others for longer than the time allowed."""
