"""Reading the archive of layout 2: an LSM tree of Parquet files, one row per instant.

::

    _version_ ─► number of the newest manifest ─► manifest_<n>: names of the valid files
        ─► <first>_<last>_<level>.parquet within the times ─► row groups within the times ─► the requested columns

Files of one level usually cover consecutive times, with two exceptions: instants that a crash left on the active
timeline are archived again, and instants retained for a savepoint are archived late. Files with overlapping times are
therefore merged, and the first copy of a repeated instant counts. If compaction has deleted files of the reader's
manifest, the reader continues with the newest manifest, after the last row that it returned.

Sources: LSMTimeline, ArchivedTimelineLoaderV2, release 1.2.0; spec section 3.2.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import is_failure
from hudi_fast.storage.relative_path import check_relative
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.archive.instant import ArchivedInstant

__all__ = [
    "LSM_COLUMNS",
    "LsmFile",
    "Manifest",
    "SeenTimes",
    "lsm_completions",
    "lsm_file",
    "read_lsm",
    "read_lsm_files",
    "read_lsm_times",
    "read_manifest",
]

LSM_COLUMNS = ("instantTime", "completionTime", "action", "metadata", "plan")
"""Columns of the files, without the row version."""

_TIMES = LSM_COLUMNS[:3]
_MANIFEST = re.compile(r"manifest_(\d+)")
_DATA_FILE = re.compile(r"(\d+)_(\d+)_(\d)\.parquet")
_BATCH_ROWS = 256
_ATTEMPTS = 3

Key = tuple[str, str]
"""Requested time and action: the identity of an instant."""


@dataclass(frozen=True, slots=True)
class LsmFile:
    """A file of the archive.

    Attributes:
        name: file name without folder.
        first: smallest requested time; empty if the name does not contain it.
        last: largest requested time.
        level: 0 for a newly archived file; each merge increases it by one.
        size: bytes, from the manifest.
    """

    name: str
    first: str
    last: str
    level: int
    size: int

    def may_hold(self, begin: str | None, end: str | None) -> bool:
        """Whether the file may hold instants requested from ``begin`` to ``end``; None = no bound."""
        return not self.first or ((begin is None or self.last >= begin) and (end is None or self.first <= end))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The valid files of the archive; version 0 without files if nothing was archived."""

    version: int
    files: tuple[LsmFile, ...]


class SeenTimes:
    """Cache of completion times; an unpickled copy is empty.

    Attributes:
        manifest: the pinned manifest; None before the first read.
        files: file name to its completion times by requested time.
    """

    def __init__(self) -> None:
        self.manifest: Manifest | None = None
        self.files: dict[str, dict[str, str]] = {}

    def __reduce__(self) -> tuple[type[SeenTimes], tuple[()]]:
        return SeenTimes, ()


def lsm_file(name: str, size: int) -> LsmFile:
    """Parse a file name; a file with an unknown form of name may hold any instant.

    Raises:
        CorruptTableError: the name points outside the folder.
    """
    match = _DATA_FILE.fullmatch(check_relative(name))
    return LsmFile(name, "", "", 0, size) if match is None else LsmFile(name, match[1], match[2], int(match[3]), size)


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Read the newest manifest in a folder.

    Raises:
        CorruptTableError: the manifest cannot be read.
    """
    version = _newest(storage, folder)
    if version is None:
        return Manifest(0, ())
    path = f"{folder}/manifest_{version}"
    try:
        entries = stored_json(storage.read_bytes(path))["files"]
        return Manifest(version, tuple(lsm_file(str(one["fileName"]), int(one.get("fileLen") or 0)) for one in entries))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        if is_failure(error):
            raise
        raise CorruptTableError(
            f"Table {storage.uri}: the manifest of the archived timeline cannot be read ({error!r}); expected "
            'JSON with "files". Restore it, or delete the folder if you do not need the history.',
            path,
        ) from error


def read_lsm_times(
    storage: Storage, folder: str, begin: str | None, end: str | None
) -> Iterator[tuple[str, str | None, str]]:
    """Requested time, completion time and action of the instants requested from ``begin`` to ``end``, in order.

    Raises:
        CorruptTableError: a manifest or file cannot be read.
    """
    for requested, completion, action, *_ in _rows(storage, folder, begin, end, _TIMES):
        yield requested, completion, action


def read_lsm(storage: Storage, folder: str, begin: str | None, end: str | None) -> Iterator[ArchivedInstant]:
    """The instants requested from ``begin`` to ``end``, both included, in order, with their bodies.

    Raises:
        CorruptTableError: a manifest or file cannot be read.
    """
    for row in _rows(storage, folder, begin, end, LSM_COLUMNS):
        yield _archived(row)


def lsm_completions(storage: Storage, folder: str, wanted: Collection[str], seen: SeenTimes) -> dict[str, str]:
    """Requested time to completion time of the archived instants among ``wanted``, of any action.

    Args:
        storage: the table's storage.
        folder: folder of the archive, relative to the table.
        wanted: requested times.
        seen: cache of the times read.

    Raises:
        CorruptTableError: a manifest or file cannot be read.
    """
    for attempt in range(_ATTEMPTS):
        manifest = seen.manifest = seen.manifest or read_manifest(storage, folder)
        try:
            found: dict[str, str] = {}
            for one in manifest.files:
                times = [time for time in wanted if one.may_hold(time, time)]
                if times and one.name not in seen.files:
                    rows = _file_rows(storage, f"{folder}/{one.name}", None, None, _TIMES)
                    seen.files[one.name] = {time: completion for time, completion, _ in rows if completion}
                found |= {time: done for time in times if (done := seen.files[one.name].get(time)) is not None}
            return found
        except CorruptTableError:
            seen.manifest = read_manifest(storage, folder)
            if attempt == _ATTEMPTS - 1 or seen.manifest.version == manifest.version:
                raise
    return {}


def read_lsm_files(storage: Storage, folder: str, files: Iterable[LsmFile]) -> Iterator[ArchivedInstant]:
    """The instants of the given files, each once, in order, with their bodies.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    last: Key | None = None
    for row in _merged(storage, folder, files, None, None, LSM_COLUMNS):
        if last is None or _key(row) > last:
            last = _key(row)
            yield _archived(row)


def _archived(row: tuple[Any, ...]) -> ArchivedInstant:
    requested, completion, action, metadata, plan = row
    return ArchivedInstant(requested, completion or "", action, metadata or None, plan or None)


def _key(row: tuple[Any, ...]) -> Key:
    return row[0], row[2]


def _newest(storage: Storage, folder: str) -> int | None:
    try:
        return int(storage.read_bytes(f"{folder}/_version_"))
    except (OSError, ValueError):  # the file is being replaced, or lost: use the newest manifest
        names = [_MANIFEST.fullmatch(entry.name) for entry in storage.list_dir(folder)]
        return max((int(match[1]) for match in names if match is not None), default=None)


def _rows(
    storage: Storage, folder: str, begin: str | None, end: str | None, columns: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows within the bounds, each instant once, by requested time and action."""
    last: Key | None = None
    manifest = read_manifest(storage, folder)
    for attempt in range(_ATTEMPTS):
        try:
            for row in _merged(storage, folder, manifest.files, begin, end, columns):
                key = _key(row)
                if last is None or key > last:
                    last = key
                    yield row
            return
        except CorruptTableError:
            newer = read_manifest(storage, folder)
            if attempt == _ATTEMPTS - 1 or newer.version == manifest.version:
                raise
            manifest = newer


def _merged(
    storage: Storage,
    folder: str,
    files: Iterable[LsmFile],
    begin: str | None,
    end: str | None,
    columns: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    wanted = sorted((one for one in files if one.may_hold(begin, end)), key=lambda one: (one.first, one.name))
    for group in _overlapping(wanted):
        streams = [_file_rows(storage, f"{folder}/{one.name}", begin, end, columns) for one in group]
        yield from streams[0] if len(streams) == 1 else heapq.merge(*streams, key=_key)


def _overlapping(files: Sequence[LsmFile]) -> Iterator[list[LsmFile]]:
    """Runs of files with overlapping times; the files are sorted by first time, the runs by time."""
    run: list[LsmFile] = []
    unbounded = any(not one.first for one in files)
    for file in files:
        if run and not unbounded and file.first > max(one.last for one in run):
            yield run
            run = []
        run.append(file)
    if run:
        yield run


def _file_rows(
    storage: Storage, path: str, begin: str | None, end: str | None, columns: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows of one file within the bounds, in order; the file is opened for the first row."""
    try:
        with open_base_file(storage, path) as reader:
            names = reader.schema.names
            if not set(columns) <= set(names):
                raise CorruptTableError(f"It has the columns {names}, expected {list(columns)}.", path)
            groups = _candidate_groups(reader, begin, end)
            times = reader.read(_TIMES, groups)
            found = list(zip(*(times.column(name).to_pylist() for name in _TIMES), strict=True))
            sorted_times = sorted(found, key=_key)
            rows: Iterable[tuple[Any, ...]] = sorted_times
            if len(columns) > len(_TIMES):
                rows = (
                    row
                    for batch in reader.batches(columns, _BATCH_ROWS, groups)
                    for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
                )
                rows = rows if found == sorted_times else sorted(rows, key=_key)
            for row in rows:
                if (begin is None or row[0] >= begin) and (end is None or row[0] <= end):
                    yield row
    except (CorruptTableError, TypeError, UnicodeDecodeError) as error:
        raise CorruptTableError(
            f"Table {storage.uri}: a file of the archived timeline cannot be read. Restore it. ({error})", path
        ) from error


def _candidate_groups(reader: ParquetReader, begin: str | None, end: str | None) -> list[int]:
    """Row groups whose statistics do not exclude the times from ``begin`` to ``end``."""
    if begin is None and end is None:
        return list(range(reader.num_row_groups))
    column = reader.schema.get_field_index(LSM_COLUMNS[0])
    chosen = []
    for number in range(reader.num_row_groups):
        bounds = reader.statistics(number, column) if column >= 0 else None
        if bounds is None or not bounds.has_min_max:
            chosen.append(number)
        elif (begin is None or bounds.max >= begin) and (end is None or bounds.min <= end):
            chosen.append(number)
    return chosen
