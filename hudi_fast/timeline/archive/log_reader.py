"""Reading the archive of layout 1: log files of Avro records, one per state of an instant.

::

    .commits_.archive.<n>_<token>, newest first ─► blocks ─► times, actions and states alone ─► in the range?
        ─► whole records of the blocks that hold some ─► one instant of each time and action

Neither files nor blocks say which times they hold, and commits and cleans are archived on their own, so a file may be
newer than another and hold older instants of another kind: reading stops when of every kind of action that is wanted a
file held none but older ones. A block that a crash cut off is passed over: its instants are still on the active
timeline. So is the second copy of an instant, which a crash leaves as well.

Sources: ArchivedTimelineV1, release 1.2.0; HoodieArchivedTimeline, release 0.15.0; spec section 3.1.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content, scan_log_blocks
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.entries import instant_of
from hudi_fast.timeline.archive.instant import ArchivedInstant
from hudi_fast.timeline.instant import comparable_action

__all__ = ["archive_files", "archive_number", "read_log", "read_log_times"]

_NAME = re.compile(r"\.commits_\.archive\.(\d+).*")
_LIGHT = pa.schema([(name, pa.string()) for name in ("commitTime", "actionType", "actionState", "stateTransitionTime")])
_HEAD = 8
_LENGTH = struct.Struct(">i")
_COMPLETED = "COMPLETED"
_OWN_KINDS = frozenset({"clean", "rollback"})
_KINDS = frozenset({"commit", "clean", "rollback"})

Key = tuple[str, str]
"""Requested time and comparable action: the identity of an instant."""
Light = tuple[str, str, str, str]
"""Requested time, comparable action, state, and when that was reached."""


@dataclass(frozen=True, slots=True)
class _Schemas:
    """What was compiled of schemas of blocks so far; a file has one, an archive very few."""

    decoders: dict[str, AvroDecoder] = field(default_factory=dict)
    parsed: dict[str, Any] = field(default_factory=dict)

    def light(self, content: pa.Buffer, block: LogBlock) -> list[Light]:
        """The records of a block without their bodies."""
        text = _schema_of(block)
        if text not in self.decoders:
            self.decoders[text] = AvroDecoder.compile(text, _LIGHT, block.path)
        found: list[Light] = []
        for batch in self.decoders[text].decode_block(content, block.path, block.content_start):
            for time, action, state, reached in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                # Releases before 0.6 did not note the state: only complete instants were archived.
                found.append((time or "", comparable_action(action or ""), state or _COMPLETED, reached or ""))
        return found

    def whole(self, content: pa.Buffer, block: LogBlock, which: Collection[int]) -> Iterator[dict[str, Any]]:
        """The records of a block at these places."""
        import fastavro

        text = _schema_of(block)
        if text not in self.parsed:
            self.parsed[text] = fastavro.parse_schema(json.loads(text))
        data, at = memoryview(content), _HEAD
        for number in range(_LENGTH.unpack_from(data, 4)[0]):
            length = _LENGTH.unpack_from(data, at)[0]
            at += _LENGTH.size + length
            if number in which:
                try:
                    record = fastavro.schemaless_reader(io.BytesIO(data[at - length : at]), self.parsed[text])
                except Exception as error:  # fastavro lets struct, key and index errors through
                    raise CorruptTableError(
                        f"A record of the archived timeline cannot be decoded: {error!r}.",
                        block.path,
                        block.content_start + at - length,
                    ) from error
                yield record if isinstance(record, dict) else {}


def archive_files(storage: Storage, folder: str) -> list[FileStat]:
    """The files of the archive, newest first.

    Args:
        storage: the table's storage.
        folder: of the archive, relative to the table.
    """
    found = [entry for entry in storage.list_dir(folder) if not entry.is_dir and _NAME.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: (archive_number(entry.name), entry.name), reverse=True)


def archive_number(name: str) -> int:
    """The number in the name of a file of the archive; 0 for another file."""
    match = _NAME.fullmatch(name)
    return 0 if match is None else int(match[1])


def read_log_times(
    storage: Storage, folder: str, begin: str | None, end: str | None, actions: Collection[str] = ()
) -> list[tuple[str, str, str]]:
    """Requested time, completion time and action of the instants requested from ``begin`` to ``end``, in order.

    Args:
        storage: the table's storage.
        folder: of the archive, relative to the table.
        begin: requested time; None for no bound.
        end: requested time; None for no bound.
        actions: those wanted, as complete instants have them; empty for all.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    found: dict[Key, str] = {}
    for _, _, light in _blocks(storage, folder, begin, _kinds(actions), _Schemas()):
        for time, action, state, reached in light:
            wanted = state == _COMPLETED and (not actions or action in actions)
            if wanted and _within(time, begin, end):
                found.setdefault((time, action), reached)
    return [(time, reached, action) for (time, action), reached in sorted(found.items())]


def read_log(storage: Storage, folder: str, begin: str | None, end: str | None) -> Iterator[ArchivedInstant]:
    """The instants requested from ``begin`` to ``end``, both included, in order, with their bodies.

    All of the range is held at once.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    schemas, states = _Schemas(), dict[Key, dict[str, tuple[str, dict[str, Any]]]]()
    for block, content, light in _blocks(storage, folder, begin, _KINDS, schemas):
        which = {number: one for number, one in enumerate(light) if _within(one[0], begin, end)}
        for (time, action, state, _), record in zip(which.values(), schemas.whole(content, block, which), strict=True):
            states.setdefault((time, action), {}).setdefault(state, (block.path, record))
    for _, found in sorted(states.items()):
        if _COMPLETED in found:
            path = found[_COMPLETED][0]
            yield instant_of({state: record for state, (_, record) in found.items()}, path)


def _blocks(
    storage: Storage, folder: str, begin: str | None, kinds: Collection[str], schemas: _Schemas
) -> Iterator[tuple[LogBlock, pa.Buffer, list[Light]]]:
    """Blocks of the newest file, then of older ones until none can hold an instant of ``begin`` or later."""
    older: set[str] = set()
    for file in archive_files(storage, folder):
        newest: dict[str, str] = {}
        for block in scan_log_blocks(storage, file.path):
            if block.kind is not BlockType.AVRO_DATA:
                continue
            content = read_content(storage, block)
            light = schemas.light(content, block)
            for time, action, _, _ in light:
                kind = _kind(action)
                newest[kind] = max(newest.get(kind, ""), time)
            yield block, content, light
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
