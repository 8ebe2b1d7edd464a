"""Plans and results of rollback, savepoints and restore.

All of them are values: a plan is compared with the table before it is executed.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.reading.inspecting.results import ShownResult

__all__ = [
    "PlannedRestore",
    "PlannedRollback",
    "RestoreResult",
    "RollbackResult",
    "SavepointResult",
    "TouchedFile",
]

_FILES = pa.schema(
    [
        pa.field("instant", pa.string()),
        pa.field("action", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("file", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("what", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that a rollback deletes, or answers with a rollback block.

    Attributes:
        instant: requested time of the rolled-back instant.
        action: its action.
        partition: partition path.
        file: name without folder.
        bytes: size; 0 for a missing file.
        what: ``delete``, or ``answer``: the log file stays, and a rollback block in a new one invalidates its rows.
    """

    instant: str
    action: str
    partition: str
    file: str
    bytes: int
    what: str


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """The steps of a rollback.

    Attributes:
        instants: requested times of the instants that are removed or become requested again, in that order.
        files: the files that it touches.
        rebuilt: partitions of the metadata table that cannot be rolled back, and are built again.
        asked: the requested instant; None for all failed writes.
    """

    instants: tuple[str, ...]
    files: tuple[TouchedFile, ...] = ()
    rebuilt: tuple[str, ...] = ()
    asked: str | None = None

    def to_arrow(self) -> pa.Table:
        """One row per file: ``instant, action, partition, file, bytes, what``."""
        return _files_table(self.files)


@dataclass(frozen=True, slots=True)
class RollbackResult(ShownResult):
    """The result of a rollback.

    Attributes:
        instant: requested time of the rollback, of the last one if there were several; empty when there was nothing to
            roll back, or only a plan to remove from the timeline.
        rolled_back: requested times of the rolled-back instants, in that order.
        files_deleted: number of deleted data files.
        files_failed: number of data files that did not exist.
        log_files_answered: log files that stay, and whose rows a rollback block invalidates (before table version 8).
        seconds: from call to return.
    """

    instant: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    files_failed: int = 0
    log_files_answered: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SavepointResult(ShownResult):
    """The result of making a savepoint.

    Attributes:
        instant: requested time of the commit that it keeps.
        files: number of base and log files that it keeps.
        bytes: their size.
        seconds: from call to return.
    """

    instant: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedRestore:
    """The steps of a restore.

    Attributes:
        savepoint: requested time of the commit that becomes the newest.
        instants: requested time and action of each instant that is rolled back, in that order.
        files: the files that it touches.
        rebuilt: partitions of the metadata table that cannot be rolled back, and are built again.
        resumes: requested time of the abandoned restore that is continued; empty for none.
    """

    savepoint: str
    instants: tuple[tuple[str, str], ...] = ()
    files: tuple[TouchedFile, ...] = ()
    rebuilt: tuple[str, ...] = ()
    resumes: str = ""

    def to_arrow(self) -> pa.Table:
        """One row per file: ``instant, action, partition, file, bytes, what``."""
        return _files_table(self.files)


@dataclass(frozen=True, slots=True)
class RestoreResult(ShownResult):
    """The result of a restore.

    Attributes:
        instant: requested time of the restore.
        savepoint: requested time of the commit that is the newest now.
        rolled_back: requested times of the removed instants, in that order.
        files_deleted: number of deleted data files.
        seconds: from call to return.
    """

    instant: str
    savepoint: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    seconds: float = 0.0


def _files_table(files: tuple[TouchedFile, ...]) -> pa.Table:
    columns = [[getattr(one, name) for one in files] for name in _FILES.names]
    return pa.Table.from_arrays([pa.array(values, _FILES.types[at]) for at, values in enumerate(columns)], _FILES.names)
