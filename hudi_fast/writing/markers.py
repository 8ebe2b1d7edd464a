"""Markers: announce each data file before it is written, for the rollback of a failed write.

An empty file ``.hoodie/.temp/<instant>/<partition>/<file name>.marker.<CREATE|MERGE|APPEND>`` is created before each
data file (``DirectWriteMarkers``, Hudi 1.2.0). The folder of the instant exists from the beginning of the write until
its commit: a task that finds it missing is a leftover of an ended write and must not write.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from hudi_fast.errors import CommitError, ConfigError, CorruptTableError
from hudi_fast.storage.base import Storage, check_relative

__all__ = [
    "create_marker",
    "delete_leftover_markers",
    "delete_marker",
    "delete_markers",
    "has_markers",
    "make_marker_folder",
    "marked_files",
    "marked_in_partition",
    "marker_instants",
]

_FOLDER = ".hoodie/.temp"
_DIRECT = re.compile(r"^(?P<file>.+)\.marker\.(?P<kind>CREATE|MERGE|APPEND)$")


def make_marker_folder(storage: Storage, instant: str) -> None:
    """Create the marker folder; tasks may write files from now on."""
    storage.make_dir(_folder(instant))


def create_marker(storage: Storage, instant: str, path: str, kind: str) -> None:
    """Announce a data file.

    Args:
        storage: the table's storage.
        instant: the write.
        path: the data file, relative to the table.
        kind: ``CREATE`` for a new file group, ``MERGE`` for a new version of a base file. A log file has
            ``APPEND`` before table version 8, ``CREATE`` from then on.

    Raises:
        CommitError: the write has ended; this task is a leftover.
        FileExistsError: the file is already announced.
    """
    if not storage.exists(_folder(instant)):
        raise CommitError(
            f"The write {instant} of {storage.uri} has already ended; a leftover task of it tried to write {path}."
        )
    storage.create_exclusive(f"{_folder(instant)}/{path}.marker.{kind}", b"")


def delete_marker(storage: Storage, instant: str, path: str, kind: str) -> None:
    """Delete a marker: the file belongs to another write. Arguments as for :func:`create_marker`."""
    storage.delete_file(f"{_folder(instant)}/{path}.marker.{kind}")


def marked_files(storage: Storage, instant: str) -> dict[str, str]:
    """Data files (relative paths) that the write announced, each with its kind; both marker forms are read.

    Raises:
        CorruptTableError: a marker names a file outside the table.
    """
    folder = _folder(instant)
    found: dict[str, str] = {}
    for entry in storage.list_dir(folder, recursive=True):
        if entry.is_dir or entry.name.endswith(".crc") or entry.name == "MARKERS.type":
            continue
        if entry.path.rpartition("/")[0] == folder and entry.name.startswith("MARKERS"):
            names = storage.read_bytes(entry.path).decode().split("\n")
        else:
            names = [entry.path[len(folder) + 1 :]]
        for name in names:
            match = _DIRECT.match(name.strip())
            if match is not None:
                found[_inside(storage, match["file"], entry.path)] = match["kind"]
    return found


def marker_instants(storage: Storage) -> list[str]:
    """Requested times of the writes with marker folders, in order; some may have ended."""
    return [entry.name for entry in storage.list_dir(_FOLDER) if entry.is_dir and entry.name.isdigit()]


def marked_in_partition(storage: Storage, instant: str, partition: str) -> list[str]:
    """Names of the data files that a write announced in one partition; both marker forms are read.

    Args:
        storage: the table's storage.
        instant: the write; it may belong to another process and still be running.
        partition: partition path.
    """
    folder = _folder(instant)
    top = [entry for entry in storage.list_dir(folder) if not entry.is_dir]
    names = [entry.name for entry in (storage.list_dir(f"{folder}/{partition}") if partition else top)]
    for entry in top:
        if entry.name.startswith("MARKERS") and entry.name != "MARKERS.type":
            try:
                lines = storage.read_bytes(entry.path).decode().split("\n")
            except FileNotFoundError:  # it has just ended
                continue
            found = (line.strip().rpartition("/") for line in lines)
            names += [name for path, _, name in found if path == partition]
    return [match["file"] for match in map(_DIRECT.match, names) if match is not None]


def _inside(storage: Storage, path: str, marker: str) -> str:
    try:
        return check_relative(path)
    except ConfigError as error:
        raise CorruptTableError(f"A marker of {storage.uri} names a file outside the table: {path}.", marker) from error


def has_markers(storage: Storage, instant: str) -> bool:
    """Whether the write has a marker folder."""
    return storage.exists(_folder(instant))


def delete_markers(storage: Storage, instant: str) -> None:
    """Delete the marker folder."""
    storage.delete_dir(_folder(instant))


def delete_leftover_markers(storage: Storage, pending: Collection[str]) -> None:
    """Delete leftover marker folders of ended writes.

    Args:
        storage: the table's storage, under its lock.
        pending: requested times of instants that have not ended.
    """
    for entry in storage.list_dir(_FOLDER):
        if entry.is_dir and entry.name.isdigit() and entry.name not in pending:
            storage.delete_dir(entry.path)


def _folder(instant: str) -> str:
    return f"{_FOLDER}/{instant}"
