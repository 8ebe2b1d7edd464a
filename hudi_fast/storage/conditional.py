"""Conditional file writes, the basis of locks and of timelines in object stores.

::

    read ─► content and version ─► replace, if the version is unchanged
                    └─ absent ───► create, if it is still absent

A store confirms or rejects such a write. If it does neither (a timeout, an internal error), an ``OSError`` reports that
the outcome is unknown, and the caller checks whether the file holds the written content. Clients must therefore not
retry: after a successful write with a lost response, the retry would be rejected.
"""

from __future__ import annotations

from typing import Protocol

from hudi_fast.errors import StorageAccessError
from hudi_fast.values import dataclass

__all__ = [
    "ConditionalStore",
    "ExpiredCredentialsError",
    "ThrottledError",
    "Versioned",
    "credentials_advice",
    "expired_text",
    "has_expired",
]

_EXPIRED = ("ExpiredToken", "TokenRefreshRequired")
"""Texts in codes and messages of S3 and of Amazon's clients: temporary credentials have expired."""


class ThrottledError(OSError):
    """The store asks to slow down; nothing was written."""


class ExpiredCredentialsError(StorageAccessError):
    """The credentials have expired, and the store did nothing. Only new credentials help."""


def has_expired(error: BaseException) -> bool:
    """Whether an error, or an error that caused it, reports expired credentials.

    Streams of :mod:`pyarrow.fs` report it only in the text of a plain ``OSError``.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ExpiredCredentialsError):
            return True
        if isinstance(cause, OSError) and any(code in str(cause) for code in _EXPIRED):
            return True
        cause = cause.__cause__
    return False


def credentials_advice(uri: str, instant: str) -> str:
    """The message for a write or service whose credentials expired.

    Args:
        uri: the table.
        instant: its requested time.
    """
    return (
        f"The credentials for the storage of {uri} expired during {instant}: nothing of it is visible. Give new ones "
        "in storage_options, the environment or ~/.aws, or use a role, whose credentials are renewed, and run the "
        "operation again; it rolls back what is left."
    )


@dataclass(frozen=True, slots=True)
class Versioned:
    """The content of a file at one moment.

    Attributes:
        data: the whole content.
        version: the store's identifier of this state of the file: an ETag, a generation.
    """

    data: bytes
    version: str


def expired_text(what: str) -> str:
    """The message about expired credentials.

    Args:
        what: the failed access, as the beginning of a sentence, with the path.
    """
    return (
        f"{what} failed: the credentials have expired. Give new ones in storage_options, the environment or ~/.aws, or "
        "use a role, whose credentials are renewed"
    )


class ConditionalStore(Protocol):
    """Conditional writes below one base path. Thread-safe. Paths are relative, as in :class:`Storage`."""

    def read(self, path: str) -> Versioned | None:
        """Read a file; None if it does not exist.

        Raises:
            OSError: the read failed this time.
        """
        ...

    def create(self, path: str, data: bytes) -> str | None:
        """Create a file; return its version, or None if it exists.

        Raises:
            ThrottledError: nothing was written; retry later.
            OSError: the outcome is unknown.
        """
        ...

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """Replace that version of a file; return the new version, or None if the file has changed or does not exist.

        Some stores derive the version from the content alone: never write the same content to a file twice.

        Raises:
            ThrottledError: nothing was written; retry later.
            OSError: the outcome is unknown.
        """
        ...
