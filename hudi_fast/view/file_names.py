"""Names of files that Hudi writes, and their parsed form.

Names of base and log files, and their parsed form (``FSUtils``, ``HoodieLogFile``; Hudi 1.2.0).

``<fileId>_<writeToken>_<instant>.<extension>`` and ``.<fileId>_<instant>.log.<version>_<writeToken>[.cdc]``.

Tells files that writers of Hudi create in a table's folder from foreign files, by their names.

Names are checked more strictly than by readers, which accept ``sales_q1_2023.parquet`` as a base file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from itertools import islice

from hudi_fast.config.write_options import DELETE_OTHER_FILES
from hudi_fast.errors import ConfigError
from hudi_fast.schema.history import Renames
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.instants import METADATA_BOOTSTRAP_INSTANT
from hudi_fast.values import dataclass
from hudi_fast.view.bootstrap_index import SourceFile

__all__ = [
    "LOGS_NAMED_BY_WRITE",
    "BaseFile",
    "LogFile",
    "base_file_name",
    "foreign_files",
    "is_own_file",
    "is_own_temporary",
    "log_file_name",
    "log_order",
    "parse_base_file",
    "parse_log_file",
    "require_own_files",
]

LOGS_NAMED_BY_WRITE = 8
"""Since this table version a log file is named after its delta commit; before, after its slice."""

# File ids of the metadata table may contain a partition path of the data table, with any character but "/".
_BASE = re.compile(r"^(?!\.)(.+)_([A-Za-z0-9-]+)_([0-9]+)\.(parquet|orc|hfile|lance)$", re.DOTALL)
_LOG = re.compile(r"^\.(.+)_([^._]*)\.log\.(\d+)(?:_((?:\d+)-(?:\d+)-(?:\d+))(\.cdc)?)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file: one version of all rows of a file group.

    Attributes:
        path: relative to the table.
        write_token: ``<task>-<stage>-<attempt>``.
        instant: requested time of its write.
        size: bytes.
        names: changes of its columns since it was written; None for none.
        source: of a skeleton, the source file, if the view has looked it up.
    """

    path: str
    file_id: str
    write_token: str
    instant: str
    size: int
    names: Renames | None = field(default=None, compare=False, repr=False)
    source: SourceFile | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The file name without folder."""
        return self.path.rpartition("/")[2]

    @property
    def weight(self) -> int:
        """Bytes to read for all its rows, including its source file."""
        return self.size + (0 if self.source is None else self.source.size)

    @property
    def is_skeleton(self) -> bool:
        """Whether it holds meta columns only; the bootstrap index gives its source file."""
        return self.instant == METADATA_BOOTSTRAP_INSTANT


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file of a file group.

    Attributes:
        path: relative to the table.
        instant: version 6: base instant of the slice; version 8 and later: the delta commit that wrote it.
        version: counts up within one instant.
        write_token: empty in very old tables.
        is_cdc: whether it is a change log, without rows.
        size: bytes.
    """

    path: str
    file_id: str
    instant: str
    version: int
    write_token: str
    is_cdc: bool
    size: int

    @property
    def name(self) -> str:
        """The file name without folder."""
        return self.path.rpartition("/")[2]


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = "parquet") -> str:
    """The name of a base file."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    """The name of a log file; ``instant`` is the slice's before table version 8, the write's from then on."""
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def log_order(log: LogFile) -> tuple[str, int, str]:
    """Sort key of a slice's log files, in order of application (``HoodieLogFile.LogFileComparator``)."""
    return log.instant, log.version, log.write_token


def parse_base_file(entry: FileStat) -> BaseFile | None:
    """``entry`` as a base file; None when it does not have the name of a base file."""
    match = _BASE.match(entry.name)
    return None if match is None else BaseFile(entry.path, match[1], match[2], match[3], entry.size)


def parse_log_file(entry: FileStat) -> LogFile | None:
    """``entry`` as a log file; None when it does not have the name of a log file."""
    match = _LOG.match(entry.name)
    if match is None:
        return None
    return LogFile(entry.path, match[1], match[2], int(match[3]), match[4] or "", match[5] is not None, entry.size)


_TOKEN = r"\d+-\d+-\d+"
_OWN_BASE = re.compile(rf"[^.].*_{_TOKEN}_(?:\d{{14}}|\d{{17}})\.(?:parquet|orc|hfile|lance)", re.DOTALL)
_OWN_LOG = re.compile(rf"\..+_(?:\d{{14}}|\d{{17}})\.log\.\d+(?:_{_TOKEN}(?:\.cdc)?)?", re.DOTALL)
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
    return any(one.fullmatch(name) is not None for one in (_OWN_BASE, _OWN_LOG, _MARKER, _TEMPORARY))


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
