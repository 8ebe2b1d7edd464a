"""The archived timeline of layout 2 (an LSM tree of Parquet files), as far as readers of data need it.

::

    _version_ ─► number of the newest manifest ─► manifest_<n>: names of the files that count
        ─► <first>_<last>_<level>.parquet that may hold the wanted instants ─► their completion times

Nothing is read before somebody asks, and of the files only two columns. Instants are archived when they are old, so
few queries ask: only for log files of archived writes whose file group has been compacted since.

Source: LSMTimeline, ArchivedTimelineLoaderV2, release 1.2.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.parquet_base import open_base_file
from hudi_fast.storage.base import Storage, check_relative
from hudi_fast.timeline.instant import Instant

__all__ = ["ArchivedInstant", "ArchivedTimeline", "ArchivedTimes"]

_COLUMNS = ("instantTime", "completionTime")
_MANIFEST = re.compile(r"manifest_(\d+)")
_DATA_FILE = re.compile(r"(\d+)_(\d+)_\d\.parquet")


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """One instant as the archive keeps it.

    Attributes:
        requested: requested time.
        completion: completion time; layout 1: when the completed file was last modified.
        action: of the completed instant (``commit`` for a compaction).
        metadata: body of the completed file; None if it was empty.
        plan: body of the requested file of actions that have a plan, else None.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None


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
            actions: those wanted; empty for all.
        """
        raise NotImplementedError

    def read(self, begin: str | None = None, end: str | None = None) -> Iterator[ArchivedInstant]:
        """Instants with bodies, requested from ``begin`` to ``end``, both included, oldest first."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ArchivedTimes:
    """Completion times of archived instants.

    Attributes:
        storage: the table's storage.
        folder: folder of the archived timeline, relative to the table.
    """

    storage: Storage
    folder: str

    def completions(self, wanted: Collection[str]) -> dict[str, str]:
        """Requested time to completion time, for those of ``wanted`` that are archived.

        Raises:
            CorruptTableError: a manifest or data file cannot be read.
        """
        found: dict[str, str] = {}
        if not wanted:
            return found
        for name in self._data_files():
            match = _DATA_FILE.fullmatch(name)
            if match is None or any(match[1] <= one <= match[2] for one in wanted):
                pairs = self._read_times(f"{self.folder}/{name}")
                found |= {time: done for time, done in pairs if time in wanted and done}
        return found

    def _data_files(self) -> list[str]:
        number = self._newest_manifest()
        if number is None:
            return []
        path = f"{self.folder}/manifest_{number}"
        try:
            manifest = json.loads(self.storage.read_bytes(path))
            return [check_relative(str(entry["fileName"])) for entry in manifest["files"]]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CorruptTableError(
                f"Table {self.storage.uri}: the archived timeline's manifest cannot be read ({error!r}); expected "
                'JSON with "files". Restore it, or remove the folder if the history may be lost.',
                path,
            ) from error

    def _newest_manifest(self) -> int | None:
        try:
            return int(self.storage.read_bytes(f"{self.folder}/_version_"))
        except (OSError, ValueError):  # between two versions, or lost: the newest manifest itself
            names = [_MANIFEST.fullmatch(entry.name) for entry in self.storage.list_dir(self.folder)]
            return max((int(match[1]) for match in names if match is not None), default=None)

    def _read_times(self, path: str) -> list[tuple[str, str | None]]:
        try:
            with open_base_file(self.storage, path) as reader:
                rows = reader.read(_COLUMNS)
        except CorruptTableError as error:
            raise CorruptTableError(
                f"Table {self.storage.uri}: a file of the archived timeline cannot be read. Restore it. ({error})", path
            ) from error
        return list(zip(*(rows.column(name).to_pylist() for name in _COLUMNS), strict=True))
