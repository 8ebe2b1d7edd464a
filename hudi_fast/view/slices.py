"""From files and the timeline to the file slices that a snapshot sees (``AbstractTableFileSystemView``, Hudi 1.2.0).

A :class:`TableView` pins one state of the table: its timeline, the file groups that completed replace commits took
away, and a lister. All functions here are pure in that value and in what the lister answers, so a task that runs
twice sees the same slices twice: files of later instants are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.file_names import BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.listing import Lister

__all__ = ["FileSlice", "TableView", "latest_slices"]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it.

    Attributes:
        partition: partition path.
        file_id: the file group.
        base_file: None when only log files exist so far.
        log_files: in the order in which they apply.
    """

    partition: str
    file_id: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()


@dataclass(frozen=True, slots=True)
class TableView:
    """A pinned state of a table.

    Attributes:
        timeline: the active timeline when the state was pinned.
        lister: finds partitions and files.
        replaced: (partition path, file id) to the requested time of the replace commit that took it away; if several
            did, the latest.
        as_of: newest requested time that counts; None for the end of the timeline.
        pending_groups: (partition path, file id) of file groups in a pending clustering.
    """

    timeline: Timeline
    lister: Lister
    replaced: Mapping[tuple[str, str], str] = field(default_factory=dict)
    as_of: str | None = None
    pending_groups: frozenset[tuple[str, str]] = frozenset()


def latest_slices(view: TableView, partition: str) -> list[FileSlice]:
    """The newest committed slice of each file group of a partition, ordered by file id.

    Raises:
        UnsupportedFeatureError: the partition holds log files or base files that are not Parquet.
    """
    newest: dict[str, BaseFile] = {}
    for entry in view.lister.files(partition):
        base = parse_base_file(entry)
        if base is None:
            log = parse_log_file(entry)
            if log is not None and not log.is_cdc:
                raise UnsupportedFeatureError(
                    f"Partition {partition!r} holds the log file {entry.path}: merge-on-read data is not supported yet."
                )
            continue
        if _is_visible(view, partition, base):
            known = newest.get(base.file_id)
            if known is None or base.instant >= known.instant:
                newest[base.file_id] = base
    return [FileSlice(partition, file_id, base) for file_id, base in sorted(newest.items())]


def _is_visible(view: TableView, partition: str, base: BaseFile) -> bool:
    if view.as_of is not None and base.instant > view.as_of:
        return False
    if not view.timeline.is_completed_or_archived(base.instant):
        return False
    replaced_at = view.replaced.get((partition, base.file_id))
    return replaced_at is None or (view.as_of is not None and replaced_at > view.as_of)
