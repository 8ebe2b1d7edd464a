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
    ├── StorageAccessError          the store refuses access (also a PermissionError): fix credentials, rights, address
    ├── StorageUnreachableError     no answer came from the store (also an OSError): fix network, address, proxy
    ├── StorageFailedError          storage failed (also an OSError): a full disk, an error of the disk: mend it, retry
    └── LockError                   the table lock could not be acquired or was lost
        └── LockTimeoutError        the lock was not acquired in time: wait, or find the holder

A message names the table, instant and file where they apply, what was expected, what was found, and what to do.
"""

from __future__ import annotations

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
    "SchemaMismatchError",
    "ServiceTakenError",
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
    """Base class of all hudi_fast errors."""


class ConfigError(HudiError):
    """Options are invalid, contradict each other, or contradict the table."""


class TableNotFoundError(HudiError):
    """The path has no Hudi table."""


class TableExistsError(HudiError):
    """A Hudi table exists at the path, and the save mode forbids it."""


class CorruptTableError(HudiError):
    """A file of the table cannot be decoded.

    Args:
        message: what was expected and what was found.
        path: the file, relative to the table.
        offset: byte position of the first invalid byte, if known.
    """

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
    """A file of the pinned table state no longer exists: cleaned, rolled back, or lost."""


class UnsupportedFeatureError(HudiError):
    """A Hudi feature that hudi_fast does not support; raised before anything is written or returned."""


class InvalidDataError(HudiError):
    """Rows that cannot be stored, for example a null record key."""


class ValidationError(InvalidDataError):
    """A validator of the options refused a write before its commit; the table is unchanged."""


class DuplicateKeyError(InvalidDataError):
    """An insert contains a record key that the table already holds."""


class SchemaMismatchError(HudiError):
    """The incoming schema is incompatible with the table's schema."""


class CommitError(HudiError):
    """The write did not become visible; the table is unchanged."""


class CommitConflictError(CommitError):
    """A concurrent writer changed the same file groups.

    Args:
        message: names both writes and the conflict.
        instant: requested time of the failed write, if it had one.
        other: requested time of the conflicting write, if it is a single one.
        file_groups: (partition path, file id) of the file groups that both writes changed.
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
    """Another process executes the service, has completed it, or has removed it from the timeline."""


class CommitStateUnknownError(CommitError):
    """Storage did not confirm whether the completed instant was written."""


class CatalogError(HudiError):
    """A catalog, such as a Hive metastore, refuses a call, does not answer, or holds something else than expected."""


class StorageAccessError(HudiError, PermissionError):
    """The store refuses an access: wrong credentials, a missing permission or bucket, a proxy in between."""


class StorageUnreachableError(HudiError, OSError):
    """No answer came from the store; it is unknown whether it did what was asked.

    Args:
        message: names the store, the address, and what to check.
        seconds: how long the storage options wait for an answer; None if they do not say.
    """

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.seconds)


class StorageFailedError(HudiError, OSError):
    """Storage failed before a write had begun, or in a service or a query: a full disk, an error of the disk."""


class LockError(HudiError):
    """The table lock could not be acquired or was lost."""


class LockTimeoutError(LockError):
    """Other holders kept the table lock for longer than the allowed wait."""
