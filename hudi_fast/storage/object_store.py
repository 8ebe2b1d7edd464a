"""What a table in an object store takes beside reading: whole objects put, created, replaced and deleted.

Reading and listing go through :mod:`pyarrow.fs`; these go through the store's own client, for three reasons. It has
conditional writes; it can be told to try nothing again (see :mod:`hudi_fast.storage.conditional`); and it makes no
folders of its own accord, as file systems laid over object stores do.

::

    create_confirmed   create ─► yes / no
                          └─ neither: whose object is there? (it bears the mark of whoever made it)
                                ours ─► yes    another's ─► no    none ─► create again, under the same mark

Trying again under the same condition is also what keeps a request that is still under way from landing later: it
meets the object that the second one made.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hudi_fast.storage.conditional import ThrottledError, Versioned

__all__ = ["Listed", "ObjectStore", "RootedStore", "create_confirmed", "patiently"]

_PAUSES = (0.05, 0.4, 1.6)
"""Seconds between tries; each is drawn between half of it and all of it, so that writers do not come back together."""

_CHANCE = random.SystemRandom()  # who seeds `random` for numbers of their own goes on getting the same

_LATEST_TRY = 15.0
"""Seconds after the first."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Listed:
    """An object, or a folder that objects lie in.

    Attributes:
        name: full name, without a slash at its end.
        size: bytes; 0 for a folder.
        modified_ms: milliseconds since the epoch; 0 for a folder.
        is_dir: whether it is a folder.
    """

    name: str
    size: int
    modified_ms: int
    is_dir: bool


class ObjectStore(Protocol):
    """Objects by their full names (``bucket/key``). Thread-safe; not picklable."""

    def read(self, name: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        ...

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ConditionalStore``; ``mark`` is kept with the object."""
        ...

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        ...

    def mark_of(self, name: str) -> str | None:
        """The mark of an object, ``""`` when it has none; None when there is no object.

        Raises:
            OSError: it could not be seen this time.
        """
        ...

    def put(self, name: str, data: bytes) -> None:
        """Make an object, or replace the one that is there, at once.

        Raises:
            OSError: whether it was written is unknown.
        """
        ...

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """What is in a folder, folders that have no object of their own included; None where pyarrow lists these.

        Raises:
            OSError: it could not be listed this time.
        """
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects, all in one bucket; those that are not there are fine.

        Raises:
            OSError: some may be left.
        """
        ...


class RootedStore:
    """An :class:`ObjectStore` below one base path: a :class:`~hudi_fast.storage.conditional.ConditionalStore`.

    Args:
        store: takes full names.
        root: the base path's full name, without a slash at its end.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, {self._root!r})"

    def read(self, path: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        return self._store.read(f"{self._root}/{path}")

    def create(self, path: str, data: bytes) -> str | None:
        """See ``ConditionalStore``."""
        return self._store.create(f"{self._root}/{path}", data)

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        return self._store.replace(f"{self._root}/{path}", data, version)


def create_confirmed(store: ObjectStore, name: str, data: bytes) -> bool:
    """Create an object, and find out what happened if the store does not say.

    Args:
        store: where.
        name: full name.
        data: all of the object.

    Returns:
        Whether it was made; False when there is one that somebody else made.

    Raises:
        OSError: the store did not say, time and again; the object may be there.
    """
    mark = uuid.uuid4().hex
    unconfirmed = False

    def once() -> bool:
        nonlocal unconfirmed
        try:
            if store.create(name, data, mark) is not None:
                return True
        except ThrottledError:
            raise
        except OSError:
            unconfirmed = True
            found = store.mark_of(name)
            if found is None:
                raise
            return found == mark
        return unconfirmed and store.mark_of(name) == mark

    return patiently(once)


def patiently(call: Callable[[], Answer]) -> Answer:
    """The answer of a call that may be made again, which it is when the store fails or asks to be left alone.

    No try begins late: whoever holds a lock has made sure of it for about a minute.

    Raises:
        OSError: of the last try; at once where another would change nothing: no such file, no permission.
    """
    started = time.monotonic()
    for pause in _PAUSES:
        try:
            return call()
        except (FileNotFoundError, FileExistsError, PermissionError):
            raise
        except OSError:
            if time.monotonic() - started > _LATEST_TRY:
                raise
            time.sleep(pause * _CHANCE.uniform(0.5, 1))
    return call()
