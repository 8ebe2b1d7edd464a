"""Files, partitions and instants that plans and metadata on a timeline name.

::

    a body from the timeline ─► decode_... ─► checked_... ─► the same plan: it names only data of the table

A table is untrusted, and services read or delete the files that a plan names. So one of these functions checks each
plan right after it is decoded. A plan may only name base and log files of the given partition, below the table's base
path; partitions outside ``.hoodie``; and instants of a known action. In addition the storage refuses links, and paths
that lead out of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.relative_path import fault_of
from hudi_fast.timeline.plans import CleanPlan, RollbackPlan, SavepointMetadata
from hudi_fast.timeline.service_plans import ClusteringPlan, CompactionPlan
from hudi_fast.view.file_names import parse_base_file, parse_log_file

__all__ = [
    "HASHING_FOLDER",
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
