"""Row images: the JSON of rows before and after a change, and batches of changes.

::

    slice ─► rows ─► pieces of bounded size ─► JSON
    slice ─► rows with the given keys ───────► JSON, in the order of the keys
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.json_rows import JsonStyle, json_rows
from hudi_fast.formats.log.cdc_records import AFTER, BEFORE
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.keys.key_generator import KeyConfig, record_keys
from hudi_fast.merging.gather import gather, gather_array
from hudi_fast.merging.slice_merge import RECORD_KEY
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.view.slices import FileSlice

__all__ = ["CHANGE_SCHEMA", "CdcScan", "change_batch", "images", "images_of_keys", "row_keys", "rows_of_keys"]

CHANGE_SCHEMA = pa.schema({"op": pa.string(), "ts_ms": pa.string(), "before": pa.string(), "after": pa.string()})
"""Columns of a change query (``CDCRelation``, Hudi 1.2.0): i, u or d; the commit's instant; the row's JSON."""

_PIECE_ROWS = 1 << 14
_PIECE_BYTES = 16 << 20  # JSON has at most six times the bytes of a value

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CdcScan:
    """Settings for every unit. Picklable.

    Attributes:
        rows: all columns of the table's rows.
        key_config: how keys are computed from data columns; None for a table whose rows store them.
        mode: contents of change logs: one of :data:`hudi_fast.formats.log.cdc_records.CDC_MODES`.
        records: columns of a change record in that mode, as Avro stores them: without logical types.
        history: the table's schema history, to read change logs in current names; None without history.
        images: which of ``before`` and ``after`` are made; the others are null.
    """

    rows: SliceScan
    key_config: KeyConfig | None
    mode: str
    records: pa.Schema
    history: SchemaHistory | None = None
    images: frozenset[str] = frozenset((BEFORE, AFTER))


def change_batch(
    instant: str, op: str | pa.StringArray, before: pa.StringArray | None, after: pa.StringArray | None
) -> pa.RecordBatch:
    """Changes of one commit. At least one image is given; a missing one is null in all rows."""
    count = max(len(image) for image in (before, after) if image is not None)
    ops = pa.repeat(pa.scalar(op), count) if isinstance(op, str) else op
    nulls = pa.nulls(count, pa.string())
    columns = [ops, pa.repeat(pa.scalar(instant), count), nulls if before is None else before]
    return pa.RecordBatch.from_arrays([*columns, nulls if after is None else after], schema=CHANGE_SCHEMA)


def images(rows: pa.RecordBatch | pa.Table, made: bool = True) -> Iterator[pa.StringArray]:
    """The JSON of rows, in pieces of bounded size; nulls if it is not to be ``made``."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    for batch in batches:
        if not made:
            yield pa.nulls(batch.num_rows, pa.string())
            continue
        step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            yield json_rows(batch.slice(start, step), JsonStyle.ROW)


def row_keys(scan: CdcScan, rows: pa.RecordBatch | pa.Table, file_id: str) -> pa.StringArray:
    """The record keys of rows.

    Raises:
        CorruptTableError: a row has no key.
    """
    keys = rows.column(RECORD_KEY) if scan.key_config is None else record_keys(scan.key_config, rows)
    if keys.null_count:
        raise CorruptTableError(f"The file group {file_id} holds {keys.null_count} rows without a record key.")
    return single_chunk(keys)


def rows_of_keys(scan: CdcScan, slice_: FileSlice, keys: pa.StringArray) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """The rows of a slice with the given keys, and int64[n]: the index of each row's key in ``keys``.

    ``keys`` are distinct.
    """
    wanted = varlen_buffers(keys)
    table = KeyTable.build(wanted.offsets, wanted.data)
    for batch in read_slice(scan.rows, slice_):
        found = varlen_buffers(row_keys(scan, batch, slice_.file_id))
        hits = table.probe(found.offsets, found.data)
        here = np.flatnonzero(hits >= 0)
        if len(here):
            (rows,) = gather(pa.Table.from_batches([batch]), here).combine_chunks().to_batches()
            yield rows, hits[here].astype(np.int64)


def images_of_keys(scan: CdcScan, slice_: FileSlice, keys: pa.StringArray) -> pa.StringArray:
    """The JSON of the row of each key.

    ``keys`` are distinct.

    Raises:
        CorruptTableError: the slice lacks a row with one of the keys.
    """
    texts: list[pa.StringArray] = []
    order = np.full(len(keys), -1, dtype=np.int64)
    count = 0
    for rows, places in rows_of_keys(scan, slice_, keys) if len(keys) else ():
        order[places] = np.arange(count, count + rows.num_rows)
        count += rows.num_rows
        texts += images(rows)
    if (order < 0).any():
        missing = keys[int(np.argmax(order < 0))].as_py()
        path = None if slice_.base_file is None else slice_.base_file.path
        raise CorruptTableError(f"A change log names the record key {missing!r}, which this file lacks.", path)
    return gather_array(pa.concat_arrays(texts), order) if texts else pa.array([], pa.string())
