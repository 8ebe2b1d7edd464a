"""Conditional writes in a local folder.

A file is written to a temporary name and then put in place whole: linked, which fails if the file exists, or renamed
over the existing file while an advisory lock on the folder blocks other writers that replace a file in it. Files never
change in place, so an open file shows one state. The version consists of inode number, modification time and a hash of
the content, because inode numbers are reused.

This excludes only writers on this machine that use this module. On a network file system it is as reliable as the locks
of that system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator

from hudi_fast.storage.conditional import Versioned
from hudi_fast.storage.file_locks import LockableFile, check_locks

__all__ = ["LocalConditionalStore"]


class LocalConditionalStore:
    """A :class:`~hudi_fast.storage.conditional.ConditionalStore` below an absolute local folder."""

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
        with _temporary_file(target, data) as (temporary, version):
            try:
                os.link(temporary, target)
            except FileExistsError:
                return None
        return version

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        target = f"{self._root}/{path}"
        try:
            with _folder_lock(os.path.dirname(target)), _temporary_file(target, data) as (temporary, made):
                found = _read(target)
                if found is None or found.version != version:
                    return None
                os.replace(temporary, target)
        except FileNotFoundError:
            return None  # the folder does not exist
        return made


@contextlib.contextmanager
def _folder_lock(folder: str) -> Iterator[None]:
    check_locks()
    opened = LockableFile(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        opened.lock(wait=True)
        yield
    finally:
        opened.close()


@contextlib.contextmanager
def _temporary_file(target: str, data: bytes) -> Iterator[tuple[str, str]]:
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
