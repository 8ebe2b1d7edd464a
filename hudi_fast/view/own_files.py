"""Tells files that writers of Hudi create in a table's folder from foreign files, by their names.

Names are checked more strictly than by readers, which accept ``sales_q1_2023.parquet`` as a base file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from hudi_fast.config.write_options import DELETE_OTHER_FILES
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import FileStat, Storage

__all__ = ["foreign_files", "is_own_file", "is_own_temporary", "require_own_files"]

_TOKEN = r"\d+-\d+-\d+"
_BASE = re.compile(rf"[^.].*_{_TOKEN}_(?:\d{{14}}|\d{{17}})\.(?:parquet|orc|hfile|lance)", re.DOTALL)
_LOG = re.compile(rf"\..+_(?:\d{{14}}|\d{{17}})\.log\.\d+(?:_{_TOKEN}(?:\.cdc)?)?", re.DOTALL)
_MARKER = re.compile(r"\.hoodie_partition_metadata(?:_\d+)?(?:\.parquet|\.orc)?")
"""The name has a number while Apache Hudi writes the file (``HoodiePartitionMetadata``, 1.2.0)."""

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{32}\.tmp", re.DOTALL)
_CHECKSUM = re.compile(r"\.(.+)\.crc", re.DOTALL)

_NAMED = 3
"""Maximum number of files that a message names."""


def is_own_file(name: str) -> bool:
    """Whether a file of a partition has a name that writers of Hudi give: data, markers, checksums, temporary files."""
    if (inner := _CHECKSUM.fullmatch(name)) is not None:
        name = inner[1]
    return any(one.fullmatch(name) is not None for one in (_BASE, _LOG, _MARKER, _TEMPORARY))


def is_own_temporary(name: str) -> bool:
    """Whether a writer that was interrupted may have left a file of this name."""
    return _TEMPORARY.fullmatch(name) is not None


def foreign_files(storage: Storage) -> Iterator[FileStat]:
    """Files below the base path that no write to the table made; another table in a folder of this one is foreign.

    Raises:
        CorruptTableError: an entry is neither a file nor a folder.
    """
    for entry in storage.list_dir(""):
        if entry.is_dir and entry.path != ".hoodie":
            yield from (one for one in storage.list_dir(entry.path, recursive=True) if _is_foreign(one))
        elif _is_foreign(entry):
            yield entry


def _is_foreign(entry: FileStat) -> bool:
    return not entry.is_dir and not (is_own_file(entry.name) and "/.hoodie/" not in entry.path)


def require_own_files(storage: Storage, deletes_others: bool, doing: str) -> None:
    """Refuse to delete a table's folder that holds foreign files.

    Args:
        storage: the table's storage.
        deletes_others: whether the caller allows deleting them, too.
        doing: the operation that would delete them, as the subject of a sentence.

    Raises:
        ConfigError: the folder holds foreign files.
        CorruptTableError: an entry is neither a file nor a folder.
    """
    if deletes_others:
        return
    found = [one.path for one in islice(foreign_files(storage), _NAMED + 1)]
    if found:
        named = ", ".join(repr(path) for path in found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        raise ConfigError(
            f"{doing} deletes all that is in the folder of {storage.uri}, which also holds files that no write to the "
            f"table made: {named}. Nothing was changed. Move them out of the folder, or set "
            f"{DELETE_OTHER_FILES}=true to delete them, too."
        )
