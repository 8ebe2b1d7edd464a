"""Markers of data files and of partitions.

Markers: announce each data file before it is written, for the rollback of a failed write.

An empty file ``.hoodie/.temp/<instant>/<partition>/<file name>.marker.<CREATE|MERGE|APPEND>`` is created before each
data file (``DirectWriteMarkers``, Hudi 1.2.0). The folder of the instant exists from the beginning of the write until
its end: a task that finds it missing is a leftover of an ended write and must not write.

::

    task       is the folder there? ─► marker ─► data file ─► ... ─► is the folder there? no: delete my files
    the end    hide the folder ─► list its markers ─► delete files that the write does not own ─► delete the markers

A task checks the folder before each file; in an object store, where requests are slow, only every few seconds. It
checks again when it ends. So either the task sees the end of the write and deletes its files, or the end of the write
sees the task's markers and files.

Hudi's other form, ``MARKERS<n>`` files with a line per data file, is read but not written. Hudi reads one form for each
instant: ``MARKERS.type`` decides which (``MarkerBasedRollbackUtils``, 1.2.0 and 0.15.0). Objects cannot be appended to,
so each further file of a task would need an object of its own anyway, and a line in an object claims no file name.

The partition marker: a file that identifies a folder as a partition (``HoodiePartitionMetadata``, Hudi 1.2.0).

A table names one format for its markers. As in Hudi, a marker of another format does not count for a writer, only for
readers.

Remembers facts about the writes of this process, so that it need not ask storage for each file.

A process keeps the knowledge of its last few writes, by table and instant; all tasks of a write in one process share
it. Thread-safe.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import field

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.properties_file import format_properties, parse_properties
from hudi_fast.errors import CommitError, CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import new_lock
from hudi_fast.values import dataclass
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.planned_files import named_file

__all__ = [
    "WriteMemory",
    "begin_task",
    "clear_if_left_behind",
    "create_marker",
    "delete_leftover_markers",
    "delete_marker",
    "delete_markers",
    "ensure_partition_marker",
    "has_markers",
    "make_marker_folder",
    "marked_files",
    "marked_in_partition",
    "marker_instants",
    "memory_of",
    "partition_created",
]

_MAX_WRITES = 16


@dataclass(slots=True)
class WriteMemory:
    """Knowledge of one write; mutable.

    Attributes:
        seen_open: when its marker folder was last seen, by the monotonic clock in seconds.
        announced: data files that the task in this process has announced, relative to the table, with the types of
            their markers.
        partitions: partition paths that have a partition marker.
    """

    seen_open: float = -math.inf
    announced: dict[str, str] = field(default_factory=dict)
    partitions: set[str] = field(default_factory=set)


_lock = new_lock()
_memories: OrderedDict[tuple[str, str], WriteMemory] = OrderedDict()


def memory_of(storage: Storage, instant: str) -> WriteMemory:
    """The knowledge of a write.

    Args:
        storage: the table's storage.
        instant: requested time of the write.
    """
    key = storage.fs_path(""), instant
    with _lock:
        found = _memories.setdefault(key, WriteMemory())
        _memories.move_to_end(key)
        while len(_memories) > _MAX_WRITES:
            _memories.popitem(last=False)
    return found


_FOLDER = ".hoodie/.temp"
_TRUSTED_SECONDS = 10.0
"""Seconds for which a process assumes that a marker folder it saw in an object store still exists."""

_APPEND = "APPEND"
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
    memory, now = memory_of(storage, instant), time.monotonic()
    if storage.has_folders or now - memory.seen_open > _TRUSTED_SECONDS:
        if not storage.has_dir(_folder(instant)):
            raise CommitError(
                f"The write {instant} of {storage.uri} has already ended; a leftover task of it tried to write {path}."
            )
        memory.seen_open = now
    storage.create_exclusive(_marker(instant, path, kind), b"")
    memory.announced[path] = kind


def begin_task(storage: Storage, instant: str) -> None:
    """Forget the files that earlier tasks of this process announced.

    Args:
        storage: the table's storage.
        instant: the write that the task belongs to.
    """
    memory_of(storage, instant).announced.clear()


def clear_if_left_behind(storage: Storage, instant: str) -> None:
    """Delete the files that this task announced if its write has ended: its final cleanup may have missed them.

    Args:
        storage: the table's storage.
        instant: the write.
    """
    announced = memory_of(storage, instant).announced
    if announced and not storage.has_dir(_folder(instant)):
        storage.delete_files([*announced, *(_marker(instant, path, kind) for path, kind in announced.items())])
        announced.clear()


def delete_marker(storage: Storage, instant: str, path: str, kind: str) -> None:
    """Delete a marker: the file belongs to another write. Arguments as for :func:`create_marker`."""
    memory_of(storage, instant).announced.pop(path, None)
    storage.delete_files([_marker(instant, path, kind)])


def marked_files(storage: Storage, instant: str) -> dict[str, str]:
    """Data files (relative paths) that the write announced, each with its kind; both marker forms are read.

    Raises:
        CorruptTableError: a marker names a file outside the table, or is not UTF-8.
    """
    folder = _folder(instant)
    found: dict[str, str] = {}
    for entry in storage.list_dir(folder, recursive=True):
        if entry.is_dir or entry.name.endswith(".crc") or entry.name == "MARKERS.type":
            continue
        if entry.path.rpartition("/")[0] == folder and entry.name.startswith("MARKERS"):
            names = _lines(storage, entry.path)
        else:
            names = [entry.path[len(folder) + 1 :]]
        for name in names:
            match = _DIRECT.match(name.strip())
            if match is not None:
                found[named_file(storage, match["file"], entry.path)] = match["kind"]
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
                lines = _lines(storage, entry.path)
            except FileNotFoundError:  # it has just ended
                continue
            found = (line.strip().rpartition("/") for line in lines)
            names += [name for path, _, name in found if path == partition]
    return [match["file"] for match in map(_DIRECT.match, names) if match is not None]


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return storage.read_bytes(path).decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptTableError(f"The markers of {storage.uri} are not UTF-8: {error}.", path) from error


def has_markers(storage: Storage, instant: str) -> bool:
    """Whether the write has a marker folder."""
    return storage.exists(_folder(instant))


def delete_markers(storage: Storage, instant: str, kept: Collection[str] | None = None) -> None:
    """Delete the marker folder at the end of a write.

    Tasks may outlive the write unseen, except on local disk: their late files are deleted first.

    Args:
        storage: the table's storage.
        instant: the write; it is visible, or rolled back.
        kept: data files that belong to the table; files of other markers are deleted, except log files of table version
            6, whose names several writes may share. None for no files.
    """
    if kept is not None and not storage.is_local:
        storage.hide_dir(_folder(instant))
        late = [path for path, kind in marked_files(storage, instant).items() if kind != _APPEND and path not in kept]
        storage.delete_files(late)
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


def _marker(instant: str, path: str, kind: str) -> str:
    return f"{_folder(instant)}/{path}.marker.{kind}"


_CREATED = "commitTime"


def ensure_partition_marker(storage: Storage, partition: str, instant: str, in_base_format: bool) -> None:
    """Create the marker if the partition has none in this format; an existing one is never rewritten.

    A process checks once per partition and write.

    Args:
        storage: the table's storage.
        partition: partition path; ``""`` for a table without partitions.
        instant: the write that creates the partition.
        in_base_format: write an empty Parquet file instead of a properties file.
    """
    known = memory_of(storage, instant).partitions
    if partition in known:
        return
    path = f"{partition}/{PARTITION_MARKERS[in_base_format]}".lstrip("/")
    if not storage.has_file(path):
        with contextlib.suppress(FileExistsError):  # another task was first
            storage.create_exclusive(path, _content(partition, instant, in_base_format))
    known.add(partition)


def partition_created(storage: Storage, partition: str) -> str | None:
    """The instant that created a partition: in its properties file, else in its Parquet marker; None if unknown.

    Args:
        storage: the table's storage.
        partition: partition path.
    """
    text, parquet, _ = (f"{partition}/{name}".lstrip("/") for name in PARTITION_MARKERS)
    with contextlib.suppress(FileNotFoundError):
        return parse_properties(storage.read_bytes(text).decode("iso-8859-1")).get(_CREATED)
    with contextlib.suppress(FileNotFoundError):
        found = (pq.read_metadata(pa.BufferReader(storage.read_bytes(parquet))).metadata or {}).get(_CREATED.encode())
        return None if found is None else found.decode()
    return None


def _content(partition: str, instant: str, in_base_format: bool) -> bytes:
    values = {_CREATED: instant, "partitionDepth": str(len(partition.split("/")) if partition else 0)}
    if in_base_format:
        return _as_parquet(values)
    text = format_properties(values, ["partition metadata", time.strftime("%a %b %d %H:%M:%S %Z %Y")])
    return text.encode("iso-8859-1")


def _as_parquet(values: dict[str, str]) -> bytes:
    schema, sink = pa.schema([pa.field("dummyint", pa.int64())]), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(values)
    return bytes(sink.getvalue())
