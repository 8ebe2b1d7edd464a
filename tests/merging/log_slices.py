"""File slices made by hand: log files of given blocks, written by fastavro and the project's framing."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, command_block, encode_block
from hudi_fast.formats.log.delete_block import DeleteRecords, encode_delete_block
from hudi_fast.merging.rules import COMMIT_TIME, EVENT_TIME, MergeRules, SliceMerge
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.view.file_names import BaseFile, LogFile, base_file_name, log_file_name
from hudi_fast.view.slices import FileSlice

__all__ = ["SCHEMA", "Log", "base_of", "data", "deletes", "merge_of", "rollback", "schema_text", "slice_of"]

FILE_ID = "11111111-1111-1111-1111-111111111111-0"
FIELDS = {"_hoodie_record_key": "string", "id": "string", "ts": "long", "text": "string"}
SCHEMA = pa.schema(
    {"_hoodie_record_key": pa.string(), "id": pa.string(), "ts": pa.int64(), "text": pa.string()}
)  # columns of the tables here

Log = tuple[str, list[bytes]]
"""Instant in the name, blocks."""


def schema_text(**fields: Any) -> str:
    """An Avro record of nullable fields."""
    named = [{"name": name, "type": ["null", kind], "default": None} for name, kind in (fields or FIELDS).items()]
    return json.dumps({"type": "record", "name": "row", "fields": named})


def data(instant: str, rows: Sequence[dict[str, Any]], schema: str = "", **headers: str) -> bytes:
    """An Avro data block; rows without record key take it from ``id``."""
    parsed = fastavro.parse_schema(json.loads(schema or schema_text()))
    content = io.BytesIO()
    content.write(struct.pack(">ii", 3, len(rows)))
    for row in rows:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, parsed, {"_hoodie_record_key": row.get("id"), **row})
        content.write(struct.pack(">i", record.tell()) + record.getvalue())
    named = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema or schema_text(), **_headers(headers)}
    return _framed(BlockType.AVRO_DATA, named, content.getvalue())


def deletes(instant: str, keys: Sequence[str], ordering: pa.Array | None = None, **headers: str) -> bytes:
    """A delete block; without ordering values deletes by key."""
    records = DeleteRecords(
        pa.array(keys, pa.string()),
        pa.array(["p"] * len(keys)),
        () if ordering is None else (ordering,),
        pa.array([ordering is None] * len(keys)).to_numpy(zero_copy_only=False),
    )
    return _framed(
        BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant, **_headers(headers)}, encode_delete_block(records)
    )


def rollback(instant: str, target: str) -> bytes:
    return command_block(instant, target)


def slice_of(folder: Path, logs: Sequence[Log], base: BaseFile | None = None) -> FileSlice:
    """A slice of partition ``p``; log files are named so that they apply in the order given."""
    (folder / "p").mkdir(exist_ok=True)
    files = []
    for number, (instant, blocks) in enumerate(logs, 1):
        path = f"p/{log_file_name(FILE_ID, instant, number, '0-0-0')}"
        (folder / path).write_bytes(b"".join(blocks))
        files.append(LogFile(path, FILE_ID, instant, number, "0-0-0", False, 1))
    return FileSlice("p", FILE_ID, base, tuple(files), "" if base is not None else logs[0][0])


def base_of(folder: Path, rows: pa.Table, instant: str = "100", group_rows: int = 4) -> BaseFile:
    """A base file of small row groups."""
    (folder / "p").mkdir(exist_ok=True)
    path = f"p/{base_file_name(FILE_ID, '0-0-0', instant)}"
    pq.write_table(rows, folder / path, row_group_size=group_rows)
    return BaseFile(path, FILE_ID, "0-0-0", instant, (folder / path).stat().st_size)


def merge_of(
    folder: Path,
    version: int = 9,
    pending: Sequence[str] = (),
    as_of: str | None = None,
    rules: MergeRules | None = None,
    **more: Any,
) -> SliceMerge:
    """How slices of the folder merge; the timeline has 100, 200 ... 900, complete unless pending."""
    states = {f"{one}00": State.INFLIGHT if f"{one}00" in pending else State.COMPLETED for one in range(1, 10)}
    line = Timeline(
        tuple(
            Instant(time, "deltacommit", state, f"{time}5" if state is State.COMPLETED else None)
            for time, state in states.items()
        )
    )
    rules = rules or MergeRules(EVENT_TIME, ("ts",))
    assert rules.mode in (EVENT_TIME, COMMIT_TIME) or rules.merger is not None
    return SliceMerge(Storage(folder), line, version, rules, as_of, **more)


def _headers(named: dict[str, str]) -> dict[HeaderKey, str]:
    return {HeaderKey[name.upper()]: text for name, text in named.items()}


def _framed(kind: BlockType, headers: dict[HeaderKey, str], content: Any) -> bytes:
    return b"".join(bytes(part) for part in encode_block(kind, headers, content))
