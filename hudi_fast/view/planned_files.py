"""Files, file slices and partitions that plans and commits name.

Files, partitions and instants that plans and metadata on a timeline name.

::

    a body from the timeline ─► decode_... ─► checked_... ─► the same plan: it names only data of the table

A table is untrusted, and services read or delete the files that a plan names. So one of these functions checks each
plan right after it is decoded. A plan may only name base and log files of the given partition, below the table's base
path; partitions outside ``.hoodie``; and instants of a known action. In addition the storage refuses links, and paths
that lead out of the table.

Past file slices, from the plans of completed services, for tables that were downgraded to version 6.

::

    time of a query ─► group: first base file after it, or the replace commit after it ─► its plan ─► files of the slice

Since table version 8 a log file is named after the delta commit that wrote it; before, after its slice. A downgrade
merges the newest slices and does not rename older log files, so in version 6 their names do not give their slices. The
plan of the compaction or clustering that ended a slice lists its files.

Finds log files with new keys, which the base file of their slice may lack.

Spark writers of Apache Hudi insert into base files, unless the index of the write can find keys in log files. Flink
writers, and Spark writers with such an index, append new keys to the logs of small file groups. A later write with
another index must look these keys up in the logs, or it stores them a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.untrusted import fault_of
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import Instant, Timeline, read_instant_body
from hudi_fast.timeline.plans import CleanPlan, RollbackPlan, SavepointMetadata
from hudi_fast.timeline.service_plans import (
    ClusteringPlan,
    CompactionPlan,
    decode_compaction_plan,
    decode_requested_replace,
)
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import BaseFile, LogFile, parse_base_file, parse_log_file

__all__ = [
    "HASHING_FOLDER",
    "LoggedInserts",
    "PlannedSlice",
    "PlannedSlices",
    "checked_clean",
    "checked_clustering",
    "checked_compaction",
    "checked_rollback",
    "checked_savepoint",
    "is_data_file",
    "named_file",
    "relative_path",
]

HASHING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
"""Ranges of consistent hashing, with a folder for each partition: writes create these files like data files."""

_RANGES = re.compile(r"\d+\.(?:hashing_meta|commit)", re.ASCII)
_ACTIONS = frozenset(
    ("commit", "deltacommit", "replacecommit", "clustering", "compaction", "logcompaction", "clean", "indexing")
)
"""Actions that are rolled back."""


def is_data_file(path: str) -> bool:
    """Whether a path, relative to a table, names a base or log file outside ``.hoodie``, or bucket ranges."""
    entry, (folder, _, name) = FileStat(path, 0, 0, False), path.rpartition("/")
    if folder.startswith(HASHING_FOLDER):
        is_data = _RANGES.fullmatch(name) is not None
    else:
        is_data = parse_base_file(entry) is not None or parse_log_file(entry) is not None
    return is_data and _fault_of_partition(folder) is None


def relative_path(storage: Storage, path: str, where: str | None = None) -> str:
    """The path, relative to the table, of a file in a plan: plans use absolute paths, with or without a scheme.

    Args:
        storage: the table's storage.
        path: absolute, in the spelling of the plan's writer.
        where: file of the plan, for messages.

    Raises:
        CorruptTableError: it is outside the table.
    """
    base = storage.absolute("")
    for prefix in (base, f"file://{base}", f"file:{base}"):
        if path.startswith(prefix + "/") and fault_of(path[len(prefix) + 1 :]) is None:
            return path[len(prefix) + 1 :]
    raise CorruptTableError(
        f"A plan of {storage.uri} names {path!r}, a file outside the table. Nothing was done with it. Where the table "
        "has been moved, delete the pending instant's requested and inflight files; services.repair() lists them.",
        where,
    )


def named_file(storage: Storage, path: str, where: str, partition: str | None = None) -> str:
    """Return ``path``, which is relative to the table, if it names a base or log file.

    Args:
        storage: the table's storage.
        path: a file that metadata, a marker or a plan names.
        where: file that names it, for messages.
        partition: partition path that it must be in; None for any.

    Raises:
        CorruptTableError: it names another file.
    """
    if not is_data_file(path) or partition not in (None, path.rpartition("/")[0]):
        expected = "a partition" if partition is None else f"the partition {partition!r}"
        found = "a file outside the table" if fault_of(path) else "another file"
        raise CorruptTableError(
            f"{storage.uri} names {path!r}, {found}: expected a base or log file in {expected}, not in .hoodie. "
            "Nothing was done with it. Restore the file that names it, or delete it if its instant is pending.",
            where,
        )
    return path


def checked_rollback(storage: Storage, plan: RollbackPlan, where: str) -> RollbackPlan:
    """Return the plan of a rollback if it names an instant, and data files.

    Args:
        storage: the table's storage.
        plan: as decoded; it names files by absolute path.
        where: file of the plan, for messages.

    Raises:
        CorruptTableError: it names something else.
    """
    if plan.action not in _ACTIONS or not (plan.instant.isascii() and plan.instant.isdigit()):
        raise CorruptTableError(
            f"A rollback of {storage.uri} is planned for the {plan.action!r} {plan.instant!r}: expected an action of a "
            "timeline, and a time in digits. Nothing was deleted. Delete the rollback's requested and inflight files.",
            where,
        )
    for one in plan.requests:
        _require_partitions(storage, (one.partition_path,), where)
        for path in (*one.files_to_be_deleted, *one.log_blocks_to_be_deleted):
            named_file(storage, relative_path(storage, path, where), where, one.partition_path)
    return plan


def checked_clean(storage: Storage, plan: CleanPlan, where: str) -> CleanPlan:
    """Return the plan of a clean if it names partitions, and data files by absolute path; as :func:`checked_rollback`.

    Raises:
        CorruptTableError: it names something else.
    """
    _require_partitions(storage, (*plan.files, *plan.partitions_to_be_deleted), where)
    strange = [one for one in plan.partitions_to_be_deleted if not one or one.startswith(".hoodie/")]
    if strange:
        raise CorruptTableError(
            f"A clean of {storage.uri} is planned to delete {strange[0]!r}: expected the path of a partition. Nothing "
            "was deleted. Delete the clean's requested and inflight files, and clean again.",
            where,
        )
    for partition, paths in plan.files.items():
        for path in paths:
            named_file(storage, relative_path(storage, path, where), where, partition)
    return plan


def checked_compaction(storage: Storage, plan: CompactionPlan, where: str) -> CompactionPlan:
    """Return the plan of a (log) compaction if it names partitions, and names of data files.

    Raises:
        CorruptTableError: it names something else.
    """
    for one in plan.operations:
        _require_names(storage, one.partition_path, (*filter(None, (one.base_file,)), *one.log_files), where)
    return plan


def checked_clustering(storage: Storage, plan: ClusteringPlan, where: str) -> ClusteringPlan:
    """Return the plan of a clustering if it names partitions, and data files in any spelling of the base path.

    Raises:
        CorruptTableError: it names something else.
    """
    for group in plan.groups:
        for one in group.slices:
            names = (path.rpartition("/")[2] for path in (one.base_path, *one.log_paths) if path)
            _require_names(storage, one.partition_path, names, where)
    return plan


def checked_savepoint(storage: Storage, savepoint: SavepointMetadata, where: str) -> SavepointMetadata:
    """Return the body of a savepoint if it names partitions, and names of data files.

    Raises:
        CorruptTableError: it names something else.
    """
    for partition, names in savepoint.files.items():
        _require_names(storage, partition, (name.rpartition("/")[2] for name in names), where)
    return savepoint


def _require_names(storage: Storage, partition: str, names: Iterable[str], where: str) -> None:
    _require_partitions(storage, (partition,), where)
    for name in names:
        named_file(storage, f"{partition}/{name}" if partition else name, where)


def _require_partitions(storage: Storage, partitions: Iterable[str], where: str) -> None:
    for one in partitions:
        fault = _fault_of_partition(one)
        if fault is not None:
            raise CorruptTableError(
                f"{storage.uri} names the partition {one!r}, whose path {fault}: expected a folder below the table's "
                "base path. Nothing was done with it. Restore the file that names it, or delete it if its instant is "
                "pending.",
                where,
            )


def _fault_of_partition(path: str) -> str | None:
    """Why a path does not name a partition or its bucket ranges."""
    if path == HASHING_FOLDER or path.startswith(f"{HASHING_FOLDER}/"):
        path = path[len(HASHING_FOLDER) + 1 :]
    return "lies in .hoodie" if ".hoodie" in path.split("/") else fault_of(path)


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


class _Names:
    """Names of log files with inserts, by the instant of their delta commit. Not pickled."""

    def __init__(self) -> None:
        self.known: dict[str, frozenset[str]] = {}

    def __reduce__(self) -> tuple[type[_Names], tuple[()]]:
        return _Names, ()


@dataclass(frozen=True, slots=True)
class LoggedInserts:
    """Looks log files up in the metadata of the delta commits that wrote them; each is read once. Picklable.

    Attributes:
        storage: the table's storage.
        config: ``hoodie.properties``.
    """

    storage: Storage
    config: TableConfig
    _names: _Names = field(default_factory=_Names, repr=False, compare=False)

    def among(self, timeline: Timeline, base: BaseFile, logs: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
        """The log files that may hold new keys: they have inserts, or their delta commit is archived.

        Args:
            timeline: the pinned timeline.
            base: the base file below the log files.
            logs: log files of one slice.

        Raises:
            CorruptTableError: the metadata of a delta commit cannot be read.
        """
        found = [self._writers(timeline, base, log) for log in logs]
        return tuple(
            log
            for log, writers in zip(logs, found, strict=True)
            if not writers or any(self._inserted(one, log.name) for one in writers)
        )

    def _writers(self, timeline: Timeline, base: BaseFile, log: LogFile) -> list[Instant]:
        """The delta commits that may have written a log file: before table version 8 it does not name its writer."""
        if self.config.layout_version < 2:
            return [one for one in timeline.writes() if one.action == "deltacommit" and one.requested > base.instant]
        instant = timeline.find(log.instant)
        return [] if instant is None else [instant]

    def _inserted(self, instant: Instant, name: str) -> bool:
        known = self._names.known
        if instant.requested not in known:
            path = f"{self.config.timeline_folder}/{instant.file_name}"
            try:
                commit = decode_commit_metadata(read_instant_body(self.storage, self.config, instant), path)
            except FileGoneError:  # archived since the timeline was pinned
                return True
            names = (stat.path.rpartition("/")[2] for stat in commit.write_stats() if stat.num_inserts)
            known[instant.requested] = frozenset(names)
        return name in known[instant.requested]
