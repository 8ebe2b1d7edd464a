"""The records of a metadata table, file by file, straight from its HFiles and log blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudi_fast.formats.hfile.reader import HFileReader, read_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.storage.base import Storage


@dataclass(frozen=True)
class StoredRecords:
    """What one HFile holds; ``base`` tells base files from log blocks."""

    partition: str
    path: str
    base: bool
    schema: str
    keys: pa.Array
    values: pa.Array


def stored_records(table: Path) -> Iterator[StoredRecords]:
    storage = Storage(str(table / ".hoodie" / "metadata"))
    for entry in storage.list_dir("", recursive=True):
        path = entry.path
        if entry.is_dir or path.startswith(".hoodie/") or path.endswith(".crc"):
            continue
        partition = path.partition("/")[0]
        if path.endswith(".hfile"):
            content = pa.py_buffer(storage.read_bytes(path))
            with HFileReader.open(content, path) as reader:
                yield StoredRecords(partition, path, True, reader.schema or "", *read_hfile(content, path))
        elif ".log." in path:
            for block in scan_log_blocks(storage, path):
                if block.kind is BlockType.HFILE_DATA:
                    arrays = read_hfile(read_content(storage, block), path, block.content_start)
                    yield StoredRecords(partition, path, False, block.headers[HeaderKey.SCHEMA], *arrays)
