"""Names of base and log files, and their parsed form (``FSUtils``, ``HoodieLogFile``; Hudi 1.2.0).

``<fileId>_<writeToken>_<instant>.<extension>`` and ``.<fileId>_<instant>.log.<version>_<writeToken>[.cdc]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hudi_fast.schema.history import Renames
from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.instant import METADATA_BOOTSTRAP_INSTANT
from hudi_fast.view.bootstrap_index import SourceFile

__all__ = [
    "LOGS_NAMED_BY_WRITE",
    "BaseFile",
    "LogFile",
    "base_file_name",
    "log_file_name",
    "log_order",
    "parse_base_file",
    "parse_log_file",
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
