"""Deleting many files of a table at once.

::

    paths ─► Deleter (threads here, tasks in spark/deleting.py) ─► delete_files: gone, or still there
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hudi_fast.storage.base import Storage

__all__ = ["DeletedFiles", "Deleter", "delete_each", "delete_files", "in_threads"]

_THREADS = 16
_FEW = 32

Deleter = Callable[[Storage, Sequence[str]], list[bool]]
"""Deletes files, given by paths relative to the table; for each whether it was there and is gone."""


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """What became of files that were to be deleted: paths relative to the table.

    Attributes:
        gone: those that are no longer there, whoever deleted them.
        failed: those that are still there, or of which storage does not say.
    """

    gone: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def delete_files(storage: Storage, paths: Sequence[str], delete: Deleter) -> DeletedFiles:
    """Delete files; one that is missing is gone, and no error.

    Args:
        storage: the table's storage.
        paths: relative to the table.
        delete: who does it.
    """
    if not paths:
        return DeletedFiles()
    was_there = delete(storage, paths)
    unsure = [path for path, done in zip(paths, was_there, strict=True) if not done]
    failed = {path for path in unsure if _may_exist(storage, path)}
    return DeletedFiles(
        tuple(path for path in paths if path not in failed), tuple(path for path in paths if path in failed)
    )


def in_threads(storage: Storage, paths: Sequence[str]) -> list[bool]:
    """Delete files in threads of this process; storage that fails leaves a file for the next attempt."""
    if len(paths) <= _FEW:
        return delete_each(storage, paths)
    parts = [paths[start::_THREADS] for start in range(min(_THREADS, len(paths)))]
    answers = [False] * len(paths)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi_fast") as pool:
        for start, done in enumerate(pool.map(lambda part: delete_each(storage, part), parts)):
            answers[start::_THREADS] = done
    return answers


def delete_each(storage: Storage, paths: Sequence[str]) -> list[bool]:
    """Delete files one after the other; a :data:`Deleter`."""
    return [_delete(storage, path) for path in paths]


def _delete(storage: Storage, path: str) -> bool:
    try:
        return storage.delete_file(path)
    except OSError:
        return False


def _may_exist(storage: Storage, path: str) -> bool:
    try:
        return storage.exists(path)
    except OSError:
        return True
