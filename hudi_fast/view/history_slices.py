"""All slices of a file group, old and new, for cleaning.

::

    files of a partition ─► files of completed writes, with change logs ─► per file group: its slices, newest first

Log files are assigned to slices as in :mod:`hudi_fast.view.slices`, so queries and cleans agree. Includes file groups
that a replace commit replaced. Pure in the view and in its lister's answers.

Source: ``AbstractTableFileSystemView#getAllFileGroupsStateless``, ``HoodieFileGroup`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudi_fast.storage.base import FileStat
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.slices import TableView, archived_completions, slice_begin

__all__ = ["PastSlice", "past_slices"]


@dataclass(frozen=True, slots=True)
class PastSlice:
    """One version of a file group, with all files to delete with it.

    Attributes:
        begins: requested time of its first write, or of the pending compaction that starts it.
        base_files: empty if it has log files only; several if task attempts left some.
        log_files: with change logs, unordered.
    """

    begins: str
    base_files: tuple[BaseFile, ...] = ()
    log_files: tuple[LogFile, ...] = ()

    def files(self) -> Iterator[BaseFile | LogFile]:
        """All its files."""
        yield from self.base_files
        yield from self.log_files


def past_slices(view: TableView, partition: str, entries: list[FileStat] | None = None) -> dict[str, list[PastSlice]]:
    """The slices of each file group of a partition, newest first, by file id.

    ``view`` is at the end of the timeline. ``entries`` are the partition's files; None to list them.

    Returns:
        Groups without a file of a completed write are left out. A group in a pending compaction has the slice that the
        compaction starts, even without log files.

    Raises:
        CorruptTableError: completion times of archived writes are needed and cannot be read.
    """
    bases: dict[str, dict[str, list[BaseFile]]] = {}
    logs: dict[str, list[LogFile]] = {}
    completed: dict[str, bool] = {}
    for entry in view.lister.files(partition) if entries is None else entries:
        base = parse_base_file(entry)
        if base is not None:
            if _is_completed(view, base.instant, completed):
                bases.setdefault(base.file_id, {}).setdefault(base.instant, []).append(base)
            continue
        log = parse_log_file(entry)
        if log is not None and (
            view.table_version < LOGS_NAMED_BY_WRITE or _is_completed(view, log.instant, completed)
        ):
            logs.setdefault(log.file_id, []).append(log)
    one_each = {file_id: {begins: found[-1] for begins, found in some.items()} for file_id, some in bases.items()}
    completions = archived_completions(view, partition, one_each, logs)
    groups: dict[str, list[PastSlice]] = {}
    for file_id in bases.keys() | logs.keys():
        found = _slices(view, partition, file_id, bases.get(file_id, {}), logs.get(file_id, []), completions)
        committed = [
            one
            for one in found
            if one.begins == _pending(view, partition, file_id) or _is_completed(view, one.begins, completed)
        ]
        if committed:
            groups[file_id] = committed
    return groups


def _slices(
    view: TableView,
    partition: str,
    file_id: str,
    bases: dict[str, list[BaseFile]],
    logs: list[LogFile],
    completions: dict[str, str],
) -> list[PastSlice]:
    """The slices of a group, newest first, including slices of incomplete writes."""
    pending = _pending(view, partition, file_id)
    if not logs and pending is None:
        return [PastSlice(begins, tuple(bases[begins])) for begins in sorted(bases, reverse=True)]
    cut: dict[str, list[LogFile]] = {begins: [] for begins in bases}
    if pending is not None:
        cut.setdefault(pending, [])
    logs.sort(key=lambda log: (log.instant, log.version, log.write_token))
    for log in logs:
        cut.setdefault(slice_begin(view, log, cut, completions), []).append(log)
    return [PastSlice(begins, tuple(bases.get(begins, ())), tuple(cut[begins])) for begins in sorted(cut, reverse=True)]


def _pending(view: TableView, partition: str, file_id: str) -> str | None:
    return view.pending_compactions.get((partition, file_id))


def _is_completed(view: TableView, instant: str, known: dict[str, bool]) -> bool:
    """Whether the write is complete; cached, since many files share few instants."""
    found = known.get(instant)
    if found is None:
        found = known[instant] = view.timeline.is_completed_or_archived(instant)
    return found
