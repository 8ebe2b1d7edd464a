"""Past file slices, from the plans of completed services, for tables that were downgraded to version 6.

::

    time of a query ─► group: first base file after it, or the replace commit after it ─► its plan ─► files of the slice

Since table version 8 a log file is named after the delta commit that wrote it; before, after its slice. A downgrade
merges the newest slices and does not rename older log files, so in version 6 their names do not give their slices. The
plan of the compaction or clustering that ended a slice lists its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_fast.storage.base import Storage
from hudi_fast.timeline.service_plans import decode_compaction_plan, decode_requested_replace
from hudi_fast.view.named_files import checked_clustering, checked_compaction

__all__ = ["PlannedSlice", "PlannedSlices"]

Group = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """A slice in the plan of a service.

    Attributes:
        base_file: name of its base file; None for a slice without one.
        log_files: names of its log files.
    """

    base_file: str | None
    log_files: tuple[str, ...]


class _Plans:
    """Plans that were read, by instant. Not pickled."""

    def __init__(self) -> None:
        self.known: dict[str, Mapping[Group, PlannedSlice]] = {}

    def __reduce__(self) -> tuple[type[_Plans], tuple[()]]:
        return _Plans, ()


@dataclass(frozen=True, slots=True)
class PlannedSlices:
    """Looks slices up in plans of the active timeline of layout 1; each plan is read once. Picklable.

    Attributes:
        storage: the table's storage.
        folder: folder of the timeline, relative to the table.
    """

    storage: Storage
    folder: str
    _plans: _Plans = field(default_factory=_Plans, repr=False, compare=False)

    def ended_by(self, instant: str, partition: str, file_id: str) -> PlannedSlice | None:
        """The slice of a file group that a compaction or clustering was planned to rewrite; None without such a plan.

        Args:
            instant: requested time of the service.
            partition: partition path.
            file_id: of the group.

        Raises:
            CorruptTableError: the plan cannot be read.
        """
        known = self._plans.known
        if instant not in known:
            known[instant] = self._read(instant)
        return known[instant].get((partition, file_id))

    def _read(self, instant: str) -> Mapping[Group, PlannedSlice]:
        path = f"{self.folder}/{instant}.compaction.requested"
        body = self._body(path)
        if body is not None:
            return {
                (one.partition_path, one.file_id): PlannedSlice(one.base_file, one.log_files)
                for one in checked_compaction(self.storage, decode_compaction_plan(body, path), path).operations
            }
        path = f"{self.folder}/{instant}.replacecommit.requested"
        body = self._body(path)
        plan = None if not body else decode_requested_replace(body, path).clustering
        return {
            (one.partition_path, one.file_id): PlannedSlice(
                _name(one.base_path) or None, tuple(map(_name, one.log_paths))
            )
            for group in (() if plan is None else checked_clustering(self.storage, plan, path).groups)
            for one in group.slices
        }

    def _body(self, path: str) -> bytes | None:
        try:
            return self.storage.read_bytes(path)
        except FileNotFoundError:  # another action, or archived
            return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
