"""Files that are written only if they are as they were last seen: what locks and timelines in object stores stand on.

::

    read ─► content and version ─► replace, if the version is still that one
                    └─ none ─────► create, if there is still none

Every store answers such a write with yes or no; when it answers neither (a timeout, an error of its own) an ``OSError``
says that the outcome is unknown, and whoever asked looks whether the file holds what was written. Clients therefore
must not try again by themselves: a write that landed and whose answer was lost would come back as a no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ConditionalStore", "ThrottledError", "Versioned"]


class ThrottledError(OSError):
    """The store asks to be left alone for a while; nothing was written."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """A file's content at one moment.

    Attributes:
        data: all of it.
        version: what the store calls this state of the file: an ETag, a generation.
    """

    data: bytes
    version: str


class ConditionalStore(Protocol):
    """Conditional writes below one base path. Thread-safe. Paths are relative, as :class:`Storage` takes them."""

    def read(self, path: str) -> Versioned | None:
        """A file, or None when there is none.

        Raises:
            OSError: it could not be read this time.
        """
        ...

    def create(self, path: str, data: bytes) -> str | None:
        """Make a file; its version, or None when there is one already.

        Raises:
            ThrottledError: nothing was written, try again later.
            OSError: whether it was written is unknown.
        """
        ...

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """Write over that version of a file; the new version, or None when the file has changed or is gone.

        Some stores make the version of the content alone: let no content of a file come a second time.

        Raises:
            ThrottledError: nothing was written, try again later.
            OSError: whether it was written is unknown.
        """
        ...
