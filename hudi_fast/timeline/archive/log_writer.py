"""Writing the archive of layout 1: one log file per run, and merging of small files.

::

    rows ─► records, one per state ─► blocks of limited size ─► .commits_.archive.<n+1>_1-0-1

    small files, newest first ─► mergeArchivePlan ─► blocks copied to one file ─► delete the files ─► delete the plan

A truncated file of a crashed run is kept: readers skip its last block, and its instants are archived again. A crashed
merge is undone if all of its files exist, and finished otherwise. The caller holds the table lock, which is checked
before each step.

Sources: TimelineArchiverV1, release 1.2.0; HoodieTimelineArchiver, release 0.15.0; spec section 3.1.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.formats.avro.rows import block_content_head
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.formats.log.writer import LogFileWriter
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.entries import ENTRY_SCHEMA, entries_of
from hudi_fast.timeline.archive.instant import ArchivedInstant
from hudi_fast.timeline.archive.log_reader import archive_files, archive_number

__all__ = ["append_log"]

_TOKEN = "1-0-1"
_LENGTH = struct.Struct(">i")
_PLAN = "mergeArchivePlan"
_STRING = {"type": "string", "avro.java.string": "String"}
_PLAN_SCHEMA = {
    "type": "record",
    "name": "HoodieMergeArchiveFilePlan",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "candidate", "type": ["null", {"type": "array", "items": _STRING}], "default": None},
        {"name": "mergedArchiveFileName", "type": ["null", _STRING], "default": None},
    ],
}


def append_log(
    storage: Storage,
    folder: str,
    rows: Sequence[ArchivedInstant],
    options: ArchiveOptions,
    require_lock: Callable[[], None],
) -> list[str]:
    """Add instants to the archive in a new file; then merge small files, if the options enable it.

    Args:
        storage: the table's storage.
        folder: folder of the archive, relative to the table.
        rows: instants sorted by requested time; if empty, only merge.
        options: records per block, and thresholds for merging.
        require_lock: checks that the table lock is still held.

    Returns:
        Paths of the written files.

    Raises:
        CorruptTableError: a body, or a file to merge, cannot be decoded.
        LockError: the lock was lost.
    """
    _finish_merge(storage, folder, require_lock)
    written = []
    if rows:
        path = _new_path(folder, archive_files(storage, folder))
        require_lock()
        with LogFileWriter(storage, path) as writer:
            for parts in _blocks(_encoded(rows), options.batch_records):
                writer.append(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: ENTRY_SCHEMA}, parts)
        written.append(path)
    return [*written, *_merge(storage, folder, options, require_lock)] if options.merge else written


def _new_path(folder: str, files: Sequence[FileStat]) -> str:
    newest = archive_number(files[0].name) if files else 0
    return f"{folder}/.commits_.archive.{newest + 1}_{_TOKEN}"


# ---- blocks


def _blocks(records: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    while block := list(islice(records, size)):
        framed = (part for record in block for part in (_LENGTH.pack(len(record)), record))
        yield [block_content_head(len(block)), *framed]


def _encoded(rows: Sequence[ArchivedInstant]) -> Iterator[bytes]:
    import fastavro

    schema = fastavro.parse_schema(json.loads(ENTRY_SCHEMA))
    for row in rows:
        for record in entries_of(row):
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, schema, record)
            yield encoded.getvalue()


# ---- merging


def _merge(storage: Storage, folder: str, options: ArchiveOptions, require_lock: Callable[[], None]) -> list[str]:
    """Merge the newest small files into one, newest first as in reads."""
    files = archive_files(storage, folder)
    small: list[FileStat] = []
    for file in files:
        if file.size > options.merge_small_bytes:
            break
        small.append(file)
    if len(small) < options.merge_files:
        return []
    path = _new_path(folder, files)
    plan = {
        "version": 1,
        "candidate": [storage.absolute(file.path) for file in small],
        "mergedArchiveFileName": path.rpartition("/")[2],
    }
    require_lock()
    storage.write_bytes(f"{folder}/{_PLAN}", write_single_record(_PLAN_SCHEMA, plan))
    with LogFileWriter(storage, path) as writer:
        for file in small:
            for block in scan_log_blocks(storage, file.path):
                if block.kind is BlockType.AVRO_DATA:
                    writer.append(block.kind, block.headers, read_content(storage, block))
    require_lock()
    _finish(storage, folder, [file.path for file in small])
    return [path]


def _finish_merge(storage: Storage, folder: str, require_lock: Callable[[], None]) -> None:
    """Undo or finish a crashed merge."""
    path = f"{folder}/{_PLAN}"
    if not storage.exists(path):
        return
    try:
        plan = read_single_record(storage.read_bytes(path), path)
        merged = f"{folder}/{plan['mergedArchiveFileName']}"
        names = [str(one).rpartition("/")[2] for one in plan["candidate"]]
    except (CorruptTableError, KeyError, TypeError):  # a truncated plan: the merge had not begun
        storage.delete_file(path)
        return
    found = {file.name: file.path for file in archive_files(storage, folder)}
    require_lock()
    small = [found[name] for name in names if name in found]
    if len(small) == len(names):
        storage.delete_file(merged)
        small = []
    _finish(storage, folder, small)


def _finish(storage: Storage, folder: str, small: Sequence[str]) -> None:
    storage.delete_files(small)
    storage.delete_file(f"{folder}/{_PLAN}")
