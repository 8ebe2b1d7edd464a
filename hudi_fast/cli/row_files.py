"""Files and pipes of rows: Parquet, CSV, JSON and Arrow, written batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hudi_fast.cli.render import format_of, json_line

__all__ = ["ENDINGS", "row_format_of", "write_file", "write_stream"]

ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "jsonl", "jsonl": "jsonl", "ndjson": "jsonl", "arrow": "arrow"}
"""Endings of the names of files, and the formats of their rows."""

Put = Callable[[pa.RecordBatch], None]


def row_format_of(path: str) -> str:
    """The format of a file of rows, from the ending of its name.

    Raises:
        ConfigError: the ending is not one of :data:`ENDINGS`.
    """
    return ENDINGS[format_of(path, ENDINGS)]


def write_file(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], kind: str | None = None) -> int:
    """Write batches to a file; a failed call leaves no file at ``path``.

    Args:
        path: the file.
        schema: of the batches.
        batches: the rows.
        kind: format of the rows; None: the ending of the name says it.

    Returns:
        Number of rows written.

    Raises:
        ConfigError: unknown format.
    """
    opener = _WRITERS[kind or row_format_of(path)]
    partial = f"{path}.part"
    rows = 0
    try:
        with open(partial, "wb") as sink, opener(sink, schema) as put:
            for batch in batches:
                put(batch)
                rows += batch.num_rows
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return rows


def write_stream(kind: str, sink: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches to a pipe; Arrow data have the stream format there.

    Args:
        kind: format of the rows.
        sink: the pipe.
        schema: of the batches.
        batches: the rows.
    """
    opener = {**_WRITERS, "arrow": _arrow_stream}[kind]
    with opener(sink, schema) as put:
        for batch in batches:
            put(batch)


@contextmanager
def _parquet_writer(sink: IO[bytes], schema: pa.Schema) -> Iterator[Put]:
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        yield writer.write_batch


@contextmanager
def _csv_writer(sink: IO[bytes], schema: pa.Schema) -> Iterator[Put]:
    """CSV has no lists and structs: they are JSON in a text."""
    nested = {at for at, field in enumerate(schema) if pa.types.is_nested(field.type)}
    flat = pa.schema([field.with_type(pa.string()) if at in nested else field for at, field in enumerate(schema)])

    def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_json_texts(column) if at in nested else column for at, column in enumerate(batch.columns)]
        return pa.RecordBatch.from_arrays(columns, schema=flat)

    with pa_csv.CSVWriter(sink, flat) as writer:
        yield lambda batch: writer.write_batch(flattened(batch) if nested else batch)


def _json_texts(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else json_line(value) for value in column.to_pylist()], pa.string())


@contextmanager
def _arrow_writer(sink: IO[bytes], schema: pa.Schema) -> Iterator[Put]:
    with pa.ipc.new_file(sink, schema) as writer:
        yield writer.write_batch


@contextmanager
def _arrow_stream(sink: IO[bytes], schema: pa.Schema) -> Iterator[Put]:
    with pa.ipc.new_stream(sink, schema) as writer:
        yield writer.write_batch


@contextmanager
def _json_writer(sink: IO[bytes], schema: pa.Schema) -> Iterator[Put]:
    yield lambda batch: _write_json_rows(sink, batch)


def _write_json_rows(sink: IO[bytes], batch: pa.RecordBatch) -> None:
    for row in batch.to_pylist():
        sink.write(json_line(row).encode() + b"\n")


_WRITERS: Mapping[str, Any] = {
    "parquet": _parquet_writer,
    "csv": _csv_writer,
    "arrow": _arrow_writer,
    "jsonl": _json_writer,
}
