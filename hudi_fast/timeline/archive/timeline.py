"""The archived timeline: instants that have left the active one because they are old.

::

    layout 1   .commits_.archive.<n>: a log of Avro records, one per state of an instant    archived_log
    layout 2   <first>_<last>_<level>.parquet below a manifest, one row per instant         archived_lsm

Nothing is read before somebody asks. Layout 2 answers for a range of times from the files and row groups that may hold
it, and reads bodies only when they are wanted; layout 1 has no ranges and is read from its newest file back. Few
queries ask: for log files of archived writes whose file group has been compacted since, and for the history.

An instant whose archiving was interrupted may still be on the active timeline, too.

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
    """The archived instants of a table, of either layout.

    Attributes:
        storage: the table's storage.
        config: its configuration.
    """

    storage: Storage
    config: TableConfig

    def instants(
        self, begin: str | None = None, end: str | None = None, actions: Collection[str] = ()
    ) -> list[Instant]:
        """Complete instants requested from ``begin`` to ``end``, both included, oldest first; without bodies.

        Args:
            begin: requested time; None for no bound.
            end: requested time; None for no bound.
            actions: those wanted, as complete instants have them; empty for all.

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
    """Completion times of archived instants of layout 2, as the archive is when the first is asked for.

    Attributes:
        storage: the table's storage.
        folder: folder of the archived timeline, relative to the table.
    """

    storage: Storage
    folder: str
    _seen: SeenTimes = field(default_factory=SeenTimes, repr=False, compare=False)

    def completions(self, wanted: Collection[str]) -> dict[str, str]:
        """Requested time to completion time, for those of ``wanted`` that are archived; each file is read once.

        Raises:
            CorruptTableError: a manifest or data file cannot be read.
        """
        return lsm_completions(self.storage, self.folder, wanted, self._seen) if wanted else {}
