"""The archive of layout 1: log files of Avro records.

Reading the archive of layout 1: log files of Avro records, one per state of an instant.

::

    .commits_.archive.<n>_<token>, newest first ─► blocks ─► entry headers (time, action, state) ─► in the range?
        ─► whole records of the matching blocks ─► one instant per time and action

Neither files nor blocks record the times that they hold. Commits and cleans are archived separately, so a newer file
may hold older instants of another kind. Reading therefore stops when, for each wanted kind of action, a file held only
instants before the range. Truncated blocks of a crashed writer are skipped, because their instants are still on the
active timeline. Second copies of an instant, also left by crashes, are skipped, too.

Sources: ArchivedTimelineV1, release 1.2.0; HoodieArchivedTimeline, release 0.15.0; spec section 3.1.

Writing the archive of layout 1: one log file per run, and merging of small files.

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
import re
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

import pyarrow as pa

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_record, read_single_record, write_single_record
from hudi_fast.formats.avro.rows import AvroDecoder, block_content_head
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, LogFileWriter, read_content, scan_log_blocks
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.entries import ENTRY_SCHEMA, ArchivedInstant, entries_of, instant_of
from hudi_fast.timeline.instants import comparable_action
from hudi_fast.values import dataclass

__all__ = ["append_log", "archive_files", "archive_number", "read_log", "read_log_times"]

_NAME = re.compile(r"\.commits_\.archive\.(\d+).*")
_HEADER_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("commitTime", "actionType", "actionState", "stateTransitionTime")]
)
_BLOCK_HEADER_BYTES = 8
_LENGTH = struct.Struct(">i")
_COMPLETED = "COMPLETED"
_OWN_KINDS = frozenset({"clean", "rollback"})
_KINDS = frozenset({"commit", "clean", "rollback"})

Key = tuple[str, str]
"""Requested time and comparable action: the identity of an instant."""
EntryHeader = tuple[str, str, str, str]
"""Requested time, comparable action, state, and time of the transition to that state."""


@dataclass(frozen=True, slots=True)
class _Schemas:
    """Cache of compiled block schemas; an archive has very few different schemas."""

    decoders: dict[str, AvroDecoder] = field(default_factory=dict)

    def headers(self, content: pa.Buffer, block: LogBlock) -> list[EntryHeader]:
        """The headers of all records in a block."""
        text = _schema_of(block)
        if text not in self.decoders:
            self.decoders[text] = AvroDecoder.compile(text, _HEADER_SCHEMA, block.path)
        found: list[EntryHeader] = []
        for batch in self.decoders[text].decode_block(content, block.path, block.content_start):
            for time, action, state, reached in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                # Releases before 0.6 archived completed instants only, without their state.
                found.append((time or "", comparable_action(action or ""), state or _COMPLETED, reached or ""))
        return found

    def records(self, content: pa.Buffer, block: LogBlock, which: Collection[int]) -> Iterator[dict[str, Any]]:
        """The whole records of a block at the given positions."""
        text = _schema_of(block)
        data, at = memoryview(content), _BLOCK_HEADER_BYTES
        for number in range(_LENGTH.unpack_from(data, 4)[0]):
            length = _LENGTH.unpack_from(data, at)[0]
            at += _LENGTH.size + length
            if number in which:
                yield read_record(text, bytes(data[at - length : at]), block.path)


def archive_files(storage: Storage, folder: str) -> list[FileStat]:
    """The archive files in a folder, newest first."""
    found = [entry for entry in storage.list_dir(folder) if not entry.is_dir and _NAME.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: (archive_number(entry.name), entry.name), reverse=True)


def archive_number(name: str) -> int:
    """The number in the name of an archive file; 0 for another file."""
    match = _NAME.fullmatch(name)
    return 0 if match is None else int(match[1])


def read_log_times(
    storage: Storage, folder: str, begin: str | None, end: str | None, actions: Collection[str] = ()
) -> list[tuple[str, str, str]]:
    """Requested time, completion time and action of the instants requested from ``begin`` to ``end``, in order.

    Args:
        storage: the table's storage.
        folder: folder of the archive, relative to the table.
        begin: requested time; None = no bound.
        end: requested time; None = no bound.
        actions: actions as named in completed instants; empty = all.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    found: dict[Key, str] = {}
    for _, _, headers in _blocks_back(storage, folder, begin, _kinds(actions), _Schemas()):
        for time, action, state, reached in headers:
            wanted = state == _COMPLETED and (not actions or action in actions)
            if wanted and _within(time, begin, end):
                found.setdefault((time, action), reached)
    return [(time, reached, action) for (time, action), reached in sorted(found.items())]


def read_log(storage: Storage, folder: str, begin: str | None, end: str | None) -> Iterator[ArchivedInstant]:
    """The instants requested from ``begin`` to ``end``, both included, in order, with their bodies.

    The whole range is held in memory.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    schemas, states = _Schemas(), dict[Key, dict[str, tuple[str, dict[str, Any]]]]()
    for block, content, headers in _blocks_back(storage, folder, begin, _KINDS, schemas):
        which = {number: one for number, one in enumerate(headers) if _within(one[0], begin, end)}
        records = schemas.records(content, block, which)
        for (time, action, state, _), record in zip(which.values(), records, strict=True):
            states.setdefault((time, action), {}).setdefault(state, (block.path, record))
    for _, found in sorted(states.items()):
        if _COMPLETED in found:
            path = found[_COMPLETED][0]
            yield instant_of({state: record for state, (_, record) in found.items()}, path)


def _blocks_back(
    storage: Storage, folder: str, begin: str | None, kinds: Collection[str], schemas: _Schemas
) -> Iterator[tuple[LogBlock, pa.Buffer, list[EntryHeader]]]:
    """Blocks of the files, newest file first, until no older file can hold an instant at ``begin`` or later."""
    older: set[str] = set()
    for file in archive_files(storage, folder):
        newest: dict[str, str] = {}
        for block in scan_log_blocks(storage, file.path):
            if block.kind is not BlockType.AVRO_DATA:
                continue
            content = read_content(storage, block)
            headers = schemas.headers(content, block)
            for time, action, _, _ in headers:
                kind = _kind(action)
                newest[kind] = max(newest.get(kind, ""), time)
            yield block, content, headers
        if begin is not None:
            older |= {kind for kind, time in newest.items() if time < begin}
            if older.issuperset(kinds):
                return


def _kind(action: str) -> str:
    return action if action in _OWN_KINDS else "commit"


def _kinds(actions: Collection[str]) -> Collection[str]:
    return {_kind(action) for action in actions} or _KINDS


def _within(time: str, begin: str | None, end: str | None) -> bool:
    return (begin is None or time >= begin) and (end is None or time <= end)


def _schema_of(block: LogBlock) -> str:
    try:
        return block.headers[HeaderKey.SCHEMA]
    except KeyError:
        raise CorruptTableError(
            "Expected a block of the archived timeline with a schema, found none.", block.path, block.offset
        ) from None


_TOKEN = "1-0-1"
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
