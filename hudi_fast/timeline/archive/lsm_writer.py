"""Writing the archive of layout 2: files of level 0, manifests, and merging of files by level.

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

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.formats.avro.container import is_avro_container
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.failures import naming_file
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.archive.instant import ArchivedInstant
from hudi_fast.timeline.archive.lsm_reader import (
    LSM_COLUMNS,
    LsmFile,
    Manifest,
    lsm_file,
    read_lsm_files,
    read_manifest,
)
from hudi_fast.timeline.commit_metadata import decode_commit_metadata, encode_commit_metadata

__all__ = ["append_lsm"]

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
_MANIFEST = re.compile(r"manifest_(\d+)")


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
