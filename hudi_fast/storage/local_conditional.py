"""Conditional writes in a folder of this machine.

A file is written beside its place and put there whole: linked, which fails where there is one already, or renamed over
the old one while an advisory lock on the folder keeps all others that replace a file in it waiting. Files never change
in place, so whoever has one open sees one state of it. The version is the file's number, its time and a hash of its
content: the numbers of deleted files come again.

It excludes whoever goes through here, on this machine. On a network file system it is as good as that system's locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import uuid
from collections.abc import Iterator

from hudi_fast.storage.conditional import Versioned

__all__ = ["LocalConditionalStore"]


class LocalConditionalStore:
    """A :class:`~hudi_fast.storage.conditional.ConditionalStore` below a folder.

    Args:
        root: the folder, absolute.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._root!r})"

    def read(self, path: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        return _read(f"{self._root}/{path}")

    def create(self, path: str, data: bytes) -> str | None:
        """See ``ConditionalStore``."""
        target = f"{self._root}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with _beside(target, data) as (temporary, version):
            try:
                os.link(temporary, target)
            except FileExistsError:
                return None
        return version

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        target = f"{self._root}/{path}"
        try:
            with _turn(os.path.dirname(target)), _beside(target, data) as (temporary, made):
                found = _read(target)
                if found is None or found.version != version:
                    return None
                os.replace(temporary, target)
        except FileNotFoundError:
            return None  # the folder is gone
        return made


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _beside(target: str, data: bytes) -> Iterator[tuple[str, str]]:
    folder, _, name = target.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as sink:
            sink.write(data)
            sink.flush()
            version = _version(os.fstat(sink.fileno()), data)
        yield temporary, version
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _read(target: str) -> Versioned | None:
    try:
        with open(target, "rb") as source:
            data = source.read()
            return Versioned(data, _version(os.fstat(source.fileno()), data))
    except FileNotFoundError:
        return None


def _version(stat: os.stat_result, data: bytes) -> str:
    return f"{stat.st_ino}-{stat.st_mtime_ns}-{hashlib.sha256(data).hexdigest()[:24]}"
