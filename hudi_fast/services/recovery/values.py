"""Plans and results of rollback, savepoints and restore.

All of them are values: a plan is compared with the table again before anything is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

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
    """A file that undoing an instant touches.

    Attributes:
        instant: requested time of the instant that is undone.
        action: its action.
        partition: partition path.
        file: name without folder.
        bytes: size; 0 for a file that is not there.
        what: ``delete``, or ``answer``: the log file stays, a rollback block in a new one takes its rows back.
    """

    instant: str
    action: str
    partition: str
    file: str
    bytes: int
    what: str


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """What a rollback is going to do.

    Attributes:
        instants: requested times of the instants that go, or wait again, in that order.
        files: that it touches.
        rebuilt: partitions of the metadata table that cannot be rolled back, and are built again.
        asked: the instant that was asked for; None for all failed writes.
    """

    instants: tuple[str, ...]
    files: tuple[TouchedFile, ...] = ()
    rebuilt: tuple[str, ...] = ()
    asked: str | None = None

    def to_arrow(self) -> pa.Table:
        """One row per file: ``instant, action, partition, file, bytes, what``."""
        return _files_table(self.files)


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """What a rollback did.

    Attributes:
        instant: requested time of the rollback, of the last one if there were several; empty when there was nothing to
            undo, or nothing but a plan to take off the timeline.
        rolled_back: requested times of the instants that were undone, in that order.
        files_deleted: data files that were there and are gone.
        files_failed: data files that were not there.
        log_files_answered: log files that stay, whose rows a rollback block takes back (before table version 8).
        seconds: from call to return.
    """

    instant: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    files_failed: int = 0
    log_files_answered: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SavepointResult:
    """A savepoint that was made.

    Attributes:
        instant: requested time of the commit that it keeps.
        files: base and log files that it keeps.
        bytes: of these.
        seconds: from call to return.
    """

    instant: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedRestore:
    """What a restore is going to do.

    Attributes:
        savepoint: requested time of the commit that will be the newest.
        instants: requested time and action of each instant that is rolled back, in that order.
        files: that it touches.
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
class RestoreResult:
    """What a restore did.

    Attributes:
        instant: requested time of the restore.
        savepoint: requested time of the commit that is the newest now.
        rolled_back: requested times of the instants that are gone, in that order.
        files_deleted: data files that were there and are gone.
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
