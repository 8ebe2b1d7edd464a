"""The archived timeline: old instants that archiving removed from the active timeline.

::

    layout 1   .commits_.archive.<n>: a log of Avro records, one per state of an instant    log_reader, log_writer
    layout 2   <first>_<last>_<level>.parquet below a manifest, one row per instant         lsm_reader, lsm_writer

The archive is read lazily. Layout 2 reads only files and row groups within the requested times, and bodies only when
needed; layout 1 has no time ranges and is read backwards from its newest file. Few queries need the archive: queries
that read log files of archived writes in file groups compacted since, and the history.

After an interrupted archiving, an instant may be on both timelines.

Source: ArchivedTimelineLoaderV1/V2, release 1.2.0; spec section 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.instant import ArchivedInstant
from hudi_fast.timeline.archive.log_reader import read_log, read_log_times
from hudi_fast.timeline.archive.lsm_reader import SeenTimes, lsm_completions, read_lsm, read_lsm_times
from hudi_fast.timeline.instant import Instant, State

__all__ = ["ArchivedInstant", "ArchivedTimeline", "ArchivedTimes"]


@dataclass(frozen=True, slots=True)
class ArchivedTimeline:
    """The archived instants of a table.

    Attributes:
        storage: the table's storage.
        config: configuration of the table.
    """

    storage: Storage
    config: TableConfig

    def instants(
        self, begin: str | None = None, end: str | None = None, actions: Collection[str] = ()
    ) -> list[Instant]:
        """Instants requested from ``begin`` to ``end``, both included, oldest first, without bodies.

        Args:
            begin: requested time; None = no bound.
            end: requested time; None = no bound.
            actions: actions as named in completed instants; empty = all.

        Raises:
            CorruptTableError: a file of the archive cannot be read.
        """
        folder = self.config.history_folder
        rows: Iterable[tuple[str, str | None, str]]
        if self.config.layout_version < 2:
            rows = read_log_times(self.storage, folder, begin, end, actions)
        else:
            rows = read_lsm_times(self.storage, folder, begin, end)
        return [
            Instant(requested, action, State.COMPLETED, completion or None)
            for requested, completion, action in rows
            if not actions or action in actions
        ]

    def read(self, begin: str | None = None, end: str | None = None) -> Iterator[ArchivedInstant]:
        """Instants with bodies, requested from ``begin`` to ``end``, both included, oldest first.

        Raises:
            CorruptTableError: a file of the archive cannot be read.
        """
        folder = self.config.history_folder
        read = read_log if self.config.layout_version < 2 else read_lsm
        return read(self.storage, folder, begin, end)


@dataclass(frozen=True, slots=True)
class ArchivedTimes:
    """Completion times of archived instants of layout 2; the first lookup pins the state of the archive.

    Attributes:
        storage: the table's storage.
        folder: folder of the archived timeline, relative to the table.
    """

    storage: Storage
    folder: str
    _seen: SeenTimes = field(default_factory=SeenTimes, repr=False, compare=False)

    def completions(self, wanted: Collection[str]) -> dict[str, str]:
        """Requested time to completion time of the archived instants among ``wanted``; each file is read once.

        Raises:
            CorruptTableError: a manifest or data file cannot be read.
        """
        return lsm_completions(self.storage, self.folder, wanted, self._seen) if wanted else {}
