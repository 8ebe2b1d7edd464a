"""Spills rows to local disk in parts that fit into memory, to sort them one part at a time.

Each part is an Arrow stream, compressed with LZ4. Rows are buffered in memory until they fill a batch.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType

import pyarrow as pa

__all__ = ["SpilledRows"]

_WAITING = 2 << 20
"""Arrow bytes of a part that are buffered before they are written."""


class SpilledRows:
    """Rows in numbered parts, each in the order of arrival; a context manager that deletes the files.

    Args:
        schema: of the rows.
        parts: number of parts.
        folder: of the files; None for the folder of temporary files.
    """

    def __init__(self, schema: pa.Schema, parts: int, folder: str | None = None) -> None:
        self._schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="hudi_fast-clustering-", dir=folder)
        self._waiting: list[list[pa.Table]] = [[] for _ in range(parts)]
        self._bytes = [0] * parts
        self._writers: list[pa.ipc.RecordBatchStreamWriter | None] = [None] * parts

    def add(self, part: int, rows: pa.Table) -> None:
        """Append rows to a part."""
        self._waiting[part].append(rows)
        self._bytes[part] += rows.nbytes
        if self._bytes[part] >= _WAITING:
            self._write(part)

    def take(self, part: int) -> pa.Table:
        """All rows of a part, each column in one chunk if it fits; deletes the part's file."""
        self._write(part)
        writer, self._writers[part] = self._writers[part], None
        if writer is None:
            return self._schema.empty_table()
        writer.close()
        path = self._path(part)
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            rows = reader.read_all()
        os.unlink(path)
        return rows.combine_chunks()

    def __enter__(self) -> SpilledRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers:
            if writer is not None:
                writer.close()
        self._folder.cleanup()

    def _write(self, part: int) -> None:
        if not self._waiting[part]:
            return
        rows = pa.concat_tables(self._waiting[part]).combine_chunks()
        self._waiting[part], self._bytes[part] = [], 0
        writer = self._writers[part]
        if writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            writer = pa.ipc.new_stream(str(self._path(part)), self._schema, options=options)
            self._writers[part] = writer
        writer.write_table(rows)

    def _path(self, part: int) -> Path:
        return Path(self._folder.name) / f"{part}.arrow"
