"""The archive of layout 2: an LSM tree of Parquet files.

Reading the archive of layout 2: an LSM tree of Parquet files, one row per instant.

::

    _version_ ─► number of the newest manifest ─► manifest_<n>: names of the valid files
        ─► <first>_<last>_<level>.parquet within the times ─► row groups within the times ─► the requested columns

Files of one level usually cover consecutive times, with two exceptions: instants that a crash left on the active
timeline are archived again, and instants retained for a savepoint are archived late. Files with overlapping times are
therefore merged, and the first copy of a repeated instant counts. If compaction has deleted files of the reader's
manifest, the reader continues with the newest manifest, after the last row that it returned.

Sources: LSMTimeline, ArchivedTimelineLoaderV2, release 1.2.0; spec section 3.2.

Writing the archive of layout 2: files of level 0, manifests, and merging of files by level.

::

    rows ─► <first>_<last>_0.parquet ─► manifest_<n+1> ─► _version_            -> archived, atomically
        ─► enough files of one level: merged to one of the next level ─► manifest_<n+2> ─► _version_ ─► ...
        ─► delete manifests beyond the retained number, then files that no remaining manifest names

Only files in the newest manifest are valid, so each step can be repeated after a crash: a file without manifest is
rewritten or deleted, and a manifest that did not become the newest is skipped. The caller holds the table lock, which
is checked before each step: a process that was suspended and lost the lock must not undo the archiving of another.

Sources: LSMTimelineWriter, HoodieLSMTimelineInstant, HoodieLSMTimelineManifest, release 1.2.0; spec section 3.2.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import is_avro_container
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.failures import is_failure, naming_file
from hudi_fast.storage.untrusted import check_relative, stored_json
from hudi_fast.timeline.archive.entries import ArchivedInstant
from hudi_fast.timeline.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudi_fast.values import dataclass

__all__ = [
    "LSM_COLUMNS",
    "LsmFile",
    "Manifest",
    "SeenTimes",
    "append_lsm",
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


_TEXT = ["null", {"type": "string", "avro.java.string": "String"}]
_AVRO_SCHEMA = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": _TEXT, "default": None} for name in LSM_COLUMNS[:3]),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in LSM_COLUMNS[3:]),
        {"name": "version", "type": "int", "default": 1},
    ],
}
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in LSM_COLUMNS[:3]),
        *(pa.field(name, pa.binary()) for name in LSM_COLUMNS[3:]),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_FOOTER = {
    b"parquet.avro.schema": json.dumps(_AVRO_SCHEMA, separators=(",", ":")).encode(),
    b"writer.model.name": b"avro",
}
_REPEATING = ["action", "version"]
_WITH_BOUNDS = [*LSM_COLUMNS[:3], "version"]
_ROW_VERSION = 1
_GROUP_ROWS = 512
"""Rows of a row group; a reader of few instants decodes the bodies of one row group."""
_MAX_LEVELS = 10
"""File names have one digit for the level."""


def append_lsm(
    storage: Storage,
    folder: str,
    rows: Sequence[ArchivedInstant],
    options: ArchiveOptions,
    require_lock: Callable[[], None],
) -> list[str]:
    """Add instants to the archive, then merge and clean its files.

    Args:
        storage: the table's storage.
        folder: folder of the archive, relative to the table.
        rows: instants sorted by requested time; if empty, only merge and clean.
        options: thresholds for merging, and the number of retained manifests.
        require_lock: checks that the table lock is still held.

    Returns:
        Paths of the written files, without manifests.

    Raises:
        CorruptTableError: a manifest, or a file to merge, cannot be read.
        LockError: the lock was lost; the earlier content of the archive stays valid.
    """
    manifest, written = read_manifest(storage, folder), []
    if rows:
        name = _name(rows[0].requested, rows[-1].requested, 0)
        if all(name != one.name for one in manifest.files):
            require_lock()
            size = _write(storage, f"{folder}/{name}", rows)
            manifest = _commit(storage, folder, manifest, (), lsm_file(name, size), require_lock)
            written.append(f"{folder}/{name}")
    merged = 0
    for level in range(_MAX_LEVELS - 1):
        chosen = _to_merge([one for one in manifest.files if one.level == level and one.first], options)
        if len(chosen) < 2:
            break
        name = _name(min(one.first for one in chosen), max(one.last for one in chosen), level + 1)
        require_lock()
        size = _write(storage, f"{folder}/{name}", read_lsm_files(storage, folder, chosen))
        manifest = _commit(storage, folder, manifest, chosen, lsm_file(name, size), require_lock)
        written.append(f"{folder}/{name}")
        merged += 1
    require_lock()
    _clean(storage, folder, options.manifests_retained + merged)
    return written


def _name(first: str, last: str, level: int) -> str:
    return f"{first}_{last}_{level}.parquet"


# ---- files


def _write(storage: Storage, path: str, rows: Iterable[ArchivedInstant]) -> int:
    """Write a file, replacing one from a crashed attempt; returns its size in bytes."""
    storage.delete_file(path)
    with naming_file(path), storage.open_output(path) as sink:
        writer = pq.ParquetWriter(
            sink,
            _SCHEMA,
            version="1.0",
            compression="gzip",
            use_dictionary=_REPEATING,
            write_statistics=_WITH_BOUNDS,
            store_schema=False,
        )
        try:
            for group in _groups(rows):
                writer.write_table(group, row_group_size=group.num_rows)
        except BaseException:
            writer.is_open = False  # otherwise its finalizer would write a footer
            raise
        writer.add_key_value_metadata(_FOOTER)
        writer.close()
        return int(sink.tell())


def _groups(rows: Iterable[ArchivedInstant]) -> Iterator[pa.Table]:
    remaining = iter(rows)
    while group := list(islice(remaining, _GROUP_ROWS)):
        columns = [
            [row.requested for row in group],
            [row.completion for row in group],
            [row.action for row in group],
            [_avro_body(row.metadata, row.action == "replacecommit") for row in group],
            [_avro_body(_plan(row), replaces=False) for row in group],
            [_ROW_VERSION] * len(group),
        ]
        yield pa.table(columns, schema=_SCHEMA)


def _plan(row: ArchivedInstant) -> bytes | None:
    """The plan to archive; for a replace commit, the body of its inflight file if it is not empty."""
    return (row.inflight if row.action == "replacecommit" else None) or row.plan


def _avro_body(body: bytes | None, replaces: bool) -> bytes | None:
    """The body in the form of layout 2; commit metadata in JSON (layout 1, or from before an upgrade) becomes Avro."""
    if not body or is_avro_container(body):
        return body or None
    return encode_commit_metadata(decode_commit_metadata(body), 2, replaces)


# ---- manifests


def _commit(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    replaced: Sequence[LsmFile],
    new: LsmFile,
    require_lock: Callable[[], None],
) -> Manifest:
    """Write the next manifest and make it the newest."""
    files = (*(one for one in manifest.files if one not in replaced), new)
    text, version = _manifest_text(files).encode(), manifest.version + 1
    try:
        storage.create_exclusive(f"{folder}/manifest_{version}", text)
    except FileExistsError:  # left by a crashed writer
        version = max(_numbers(storage.list_dir(folder))) + 1
        storage.create_exclusive(f"{folder}/manifest_{version}", text)
    require_lock()
    storage.write_bytes(f"{folder}/_version_", str(version).encode())
    return Manifest(version, files)


def _numbers(entries: Iterable[FileStat]) -> dict[int, str]:
    """Number to path of all manifests."""
    return {int(match[1]): entry.path for entry in entries if (match := _MANIFEST.fullmatch(entry.name))}


def _manifest_text(files: Iterable[LsmFile]) -> str:
    entries = (f'{{\n    "fileName" : {json.dumps(one.name)},\n    "fileLen" : {one.size}\n  }}' for one in files)
    return f'{{\n  "files" : [ {", ".join(entries)} ]\n}}'


def _to_merge(files: Sequence[LsmFile], options: ArchiveOptions) -> list[LsmFile]:
    """The oldest files of one level to merge into one of the next level; fewer than two mean no merge."""
    chosen: list[LsmFile] = []
    if len(files) < options.compaction_files:
        return chosen
    total = 0
    for one in sorted(files, key=lambda file: file.name):
        chosen.append(one)
        total += one.size
        if len(chosen) >= options.compaction_files:
            break
        if total > options.compaction_target_bytes:
            if len(chosen) > 1:
                break
            chosen, total = [], 0  # a single file above the target size is not merged
    return chosen


def _clean(storage: Storage, folder: str, kept: int) -> None:
    """Delete all manifests except the newest ``kept``, then the files that no remaining manifest names."""
    entries = storage.list_dir(folder)
    numbers = _numbers(entries)
    stay = sorted(numbers, reverse=True)[:kept]
    if len(numbers) <= kept:
        return
    named = {name for number in stay for name in _file_names(storage, numbers[number])}
    storage.delete_files([numbers[number] for number in sorted(numbers.keys() - set(stay))])
    storage.delete_files([one.path for one in entries if one.name.endswith(".parquet") and one.name not in named])


def _file_names(storage: Storage, manifest: str) -> list[str]:
    """The files in a manifest; empty for a truncated manifest, which never became the newest."""
    try:
        return [one["fileName"] for one in stored_json(storage.read_bytes(manifest))["files"]]
    except (ValueError, TypeError, KeyError):
        return []
