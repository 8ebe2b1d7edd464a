"""Rows and blobs of a table as objects of other libraries.

Rows of a table as objects of other libraries; each library is imported on first use.

Read the bytes of blobs: inline, or a range of a file that the blob refers to.

Each file is opened once for all its ranges. Source: ``read_blob``, ``BatchedBlobReader`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError
from hudi_fast.formats.logical_types import BLOB, INLINE, is_blob
from hudi_fast.reading.dataset import Scan
from hudi_fast.reading.polars_scan import lazy_frame
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra

__all__ = ["blob_bytes", "duckdb_relation", "pandas_chunks", "pandas_frame", "polars_frame"]


def pandas_frame(rows: pa.Table) -> Any:
    """A pandas DataFrame.

    Raises:
        ConfigError: pandas is not installed.
    """
    import_extra("pandas", "pandas", "to_pandas")
    return rows.to_pandas()


def pandas_chunks(batches: pa.RecordBatchReader, size: int) -> Iterator[Any]:
    """pandas DataFrames of ``size`` rows; the last may have fewer.

    Raises:
        ConfigError: pandas is not installed, or ``size`` is not a number, or below 1.
    """
    import_extra("pandas", "pandas", "to_pandas")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ConfigError(f"chunksize takes a number of rows, 1 or more; got {size!r}.")
    return (pa.Table.from_batches(chunk, batches.schema).to_pandas() for chunk in _chunks(batches, size))


def _chunks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    chunk: list[pa.RecordBatch] = []
    left = size
    for batch in batches:
        while batch.num_rows >= left:
            yield [*chunk, batch.slice(0, left)]
            batch, chunk, left = batch.slice(left), [], size
        if batch.num_rows:
            chunk.append(batch)
            left -= batch.num_rows
    if chunk:
        yield chunk


def polars_frame(scan: Scan, lazy: bool) -> Any:
    """A polars DataFrame, or a LazyFrame that pushes columns, filters and numbers of rows down.

    Raises:
        ConfigError: polars is not installed.
    """
    polars = import_extra("polars", "polars", "to_polars")
    return lazy_frame(scan) if lazy else polars.from_arrow(scan.to_table())


def duckdb_relation(scan: Scan, connection: Any) -> Any:
    """A duckdb relation that pushes columns and filters down.

    Raises:
        ConfigError: duckdb is not installed.
    """
    duckdb = import_extra("duckdb", "sql", "to_duckdb")
    return (duckdb if connection is None else connection).from_arrow(scan)


def blob_bytes(storage: Storage, blobs: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The bytes of each blob, binary[n]; null for a null.

    Args:
        storage: the table's storage. Its options apply to files on the same kind of storage.
        blobs: values of a blob column.

    Raises:
        InvalidDataError: the values are not blobs, or a blob that is not inline has no reference.
        CorruptTableError: a file is missing, or shorter than the range.
    """
    if not is_blob(blobs.type):
        raise InvalidDataError(f"read_blobs takes the values of a blob column ({BLOB}); got {blobs.type}.")
    values: list[dict[str, Any] | None] = blobs.to_pylist()
    found: list[bytes | None] = [None] * len(values)
    by_path: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        if value["type"] == INLINE:
            found[row] = value["data"]
        elif value["reference"] is None:
            raise InvalidDataError(f"Blob {row} is {value['type']} and has no reference.")
        else:
            by_path.setdefault(value["reference"]["external_path"], []).append(row)
    for path, rows in by_path.items():
        place, name = _place(storage, path)
        try:
            with place.open_input(name) as source:
                for row in rows:
                    found[row] = _range(source, path, values[row]["reference"])  # type: ignore[index]
        except FileNotFoundError as error:
            raise CorruptTableError(f"{len(rows)} blobs of {storage.uri} refer to {path}, which is missing.") from error
    return pa.array(found, pa.binary())


def _place(storage: Storage, path: str) -> tuple[Storage, str]:
    folder, _, name = path.rpartition("/")
    return Storage(folder or path[: -len(name)] or ".", storage.options if "://" in folder else None), name


def _range(source: pa.NativeFile, path: str, reference: dict[str, Any]) -> bytes:
    start, size = reference["offset"] or 0, source.size()
    length = size - start if reference["length"] is None else reference["length"]
    if start < 0 or length < 0 or start + length > size:
        raise CorruptTableError(f"A blob is bytes {start} to {start + length} of {path}, which has {size} bytes.")
    source.seek(start)
    return bytes(source.read(length))
