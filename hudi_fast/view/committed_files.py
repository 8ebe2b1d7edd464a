"""Lists folders without the base files that no commit names.

A task attempt may write its file after its write has completed without it: on an executor that was suspended, or as a
speculative attempt. It deletes the file again, unless it is killed before. The metadata table never lists such a file;
a folder listing attributes it to the commit whose instant is in its name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.file_names import parse_base_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.table_state import read_commit

__all__ = ["CommittedFiles", "committed_files"]


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """Lists folders without base files that their commit does not name.

    Attributes:
        names: file names of each write whose commit metadata is known, by requested time.
    """

    lister: StorageLister
    names: Mapping[str, frozenset[str]]
    lists_folders = True

    def partitions(self) -> list[str]:
        """All partition paths."""
        return self.lister.partitions()

    def files(self, partition: str) -> list[FileStat]:
        """The files of one folder."""
        return [entry for entry in self.lister.files(partition) if self._is_kept(entry)]

    def expect(self, partitions: Sequence[str]) -> None:
        """Does nothing: each folder is listed on its own."""

    def _is_kept(self, entry: FileStat) -> bool:
        file = parse_base_file(entry)
        return file is None or file.name in self.names.get(file.instant, (file.name,))


def committed_files(storage: Storage, config: TableConfig, timeline: Timeline) -> CommittedFiles:
    """List folders; reads the commit metadata of all writes on the active timeline.

    Files of archived writes, and of writes whose metadata cannot be read, are all listed.
    """
    found = {}
    for instant in timeline.writes():
        with contextlib.suppress(CorruptTableError, FileGoneError):
            stats = [*read_commit(storage, config, instant).write_stats()]
            found[instant.requested] = frozenset(stat.path.rpartition("/")[2] for stat in stats if stat.path)
    return CommittedFiles(StorageLister(storage), {time: names for time, names in found.items() if names})
