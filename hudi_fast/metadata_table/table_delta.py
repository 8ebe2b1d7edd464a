"""The file changes of one action, as a value: the only input of a metadata table update.

::

    write stats of a commit ─► delta_of_commit ──┐
    files that a clean deleted ─► change_of_clean ┴─► TableDelta ─► producers, one per kind of metadata partition
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.view.file_names import LogFile, parse_log_file

__all__ = ["AddedFile", "TableDelta", "added_logs", "change_of_clean", "delta_of_commit"]


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that an action wrote.

    Attributes:
        partition: partition path; ``""`` for a table without partitions.
        name: without folder.
        size: bytes.
        is_log: whether the file is a log file; else it is a base file.
        instant: requested time of the action.
        stat: write statistics of the file; None when unknown.
        is_cdc: whether the file is a change log, which has no rows.
        slice_logs: for a log file found in the table: paths of all log files of its slice, in order.
    """

    partition: str
    name: str
    size: int
    file_id: str
    is_log: bool
    instant: str
    stat: WriteStat | None = None
    is_cdc: bool = False
    slice_logs: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True)
class TableDelta:
    """The file changes of the action at ``instant``.

    Attributes:
        operation: such as ``UPSERT``, ``COMPACT``, ``CLEAN``.
        added: files written.
        removed: partition path to names of deleted files.
        removed_partitions: paths of deleted partitions.
        replaced: partition path to the file groups that the action replaces.
    """

    instant: str
    operation: str
    added: tuple[AddedFile, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed_partitions: tuple[str, ...] = ()
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def files(self) -> dict[str, dict[str, AddedFile | None]]:
        """Partition path to the names of its changed files; None for a deleted file.

        A partition with written files is always present, a partition of :attr:`emptied` never.
        """
        found: dict[str, dict[str, AddedFile | None]] = {}
        for one in self.added:
            found.setdefault(one.partition, {})[one.name] = one
        for partition, names in self.removed.items():
            if partition not in self.emptied:
                found.setdefault(partition, {}).update(dict.fromkeys(names))
        return found

    @property
    def emptied(self) -> tuple[str, ...]:
        """Deleted partitions to which the action writes no file."""
        written = {one.partition for one in self.added}
        return tuple(partition for partition in self.removed_partitions if partition not in written)


def added_logs(partition: str, logs: Sequence[LogFile]) -> list[AddedFile]:
    """The log files of a slice, in order, without write statistics."""
    paths = tuple(log.path for log in logs)
    return [AddedFile(partition, log.name, log.size, log.file_id, True, log.instant, slice_logs=paths) for log in logs]


def delta_of_commit(instant: str, metadata: CommitMetadata) -> TableDelta:
    """The file changes of a commit, delta commit, replace commit or compaction; write stats may have column ranges."""
    added = [one for stat in metadata.write_stats() if stat.path for one in _files_of(instant, stat)]
    replaced = metadata.partition_to_replace_file_ids or {}
    return TableDelta(
        instant,
        metadata.operation_type,
        tuple(added),
        replaced={partition: tuple(file_ids) for partition, file_ids in replaced.items()},
    )


def change_of_clean(
    instant: str, removed: Mapping[str, Sequence[str]], removed_partitions: Sequence[str] = ()
) -> TableDelta:
    """The file changes of a clean.

    ``removed`` maps partition paths to names or paths of deleted files.
    """
    names = {partition: tuple(path.rpartition("/")[2] for path in paths) for partition, paths in removed.items()}
    return TableDelta(instant, "CLEAN", removed=names, removed_partitions=tuple(removed_partitions))


def _files_of(instant: str, stat: WriteStat) -> list[AddedFile]:
    """The file of a write stat, and its change logs."""
    name = stat.path.rpartition("/")[2]
    log = parse_log_file(FileStat(stat.path, stat.file_size, 0, False))
    size = stat.file_size or stat.total_write_bytes
    files = [AddedFile(stat.partition_path, name, size, stat.file_id, log is not None, instant, stat)]
    for path, length in (stat.cdc_stats or {}).items():
        change_log = path.rpartition("/")[2]
        files.append(AddedFile(stat.partition_path, change_log, length, stat.file_id, True, instant, None, True))
    return files
