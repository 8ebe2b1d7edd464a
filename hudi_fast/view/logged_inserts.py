"""Finds log files with new keys, which the base file of their slice may lack.

Spark writers of Apache Hudi insert into base files, unless the index of the write can find keys in log files. Flink
writers, and Spark writers with such an index, append new keys to the logs of small file groups. A later write with
another index must look these keys up in the logs, or it stores them a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import FileGoneError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_instant_body
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.file_names import BaseFile, LogFile

__all__ = ["LoggedInserts"]


class _Names:
    """Names of log files with inserts, by the instant of their delta commit. Not pickled."""

    def __init__(self) -> None:
        self.known: dict[str, frozenset[str]] = {}

    def __reduce__(self) -> tuple[type[_Names], tuple[()]]:
        return _Names, ()


@dataclass(frozen=True, slots=True)
class LoggedInserts:
    """Looks log files up in the metadata of the delta commits that wrote them; each is read once. Picklable.

    Attributes:
        storage: the table's storage.
        config: ``hoodie.properties``.
    """

    storage: Storage
    config: TableConfig
    _names: _Names = field(default_factory=_Names, repr=False, compare=False)

    def among(self, timeline: Timeline, base: BaseFile, logs: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
        """The log files that may hold new keys: they have inserts, or their delta commit is archived.

        Args:
            timeline: the pinned timeline.
            base: the base file below the log files.
            logs: log files of one slice.

        Raises:
            CorruptTableError: the metadata of a delta commit cannot be read.
        """
        found = [self._writers(timeline, base, log) for log in logs]
        return tuple(
            log
            for log, writers in zip(logs, found, strict=True)
            if not writers or any(self._inserted(one, log.name) for one in writers)
        )

    def _writers(self, timeline: Timeline, base: BaseFile, log: LogFile) -> list[Instant]:
        """The delta commits that may have written a log file: before table version 8 it does not name its writer."""
        if self.config.layout_version < 2:
            return [one for one in timeline.writes() if one.action == "deltacommit" and one.requested > base.instant]
        instant = timeline.find(log.instant)
        return [] if instant is None else [instant]

    def _inserted(self, instant: Instant, name: str) -> bool:
        known = self._names.known
        if instant.requested not in known:
            path = f"{self.config.timeline_folder}/{instant.file_name}"
            try:
                commit = decode_commit_metadata(read_instant_body(self.storage, self.config, instant), path)
            except FileGoneError:  # archived since the timeline was pinned
                return True
            names = (stat.path.rpartition("/")[2] for stat in commit.write_stats() if stat.num_inserts)
            known[instant.requested] = frozenset(names)
        return name in known[instant.requested]
