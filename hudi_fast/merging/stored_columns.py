"""Columns of a base file as the table has them today.

::

    names that the file has ─► read ─► conformed to today's types ─┐
    names that it is too old for ──────────────────────────► nulls ┴─► in the order and types that were asked for

In batches (:func:`stored_batches`) where rows are walked, as a whole (:func:`stored_table`) where they are picked by
number.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_fast.formats.parquet.base_file import BaseFileReader
from hudi_fast.schema.conform import plan_conform

__all__ = ["stored_batches", "stored_table"]

_BATCH_ROWS = 1 << 17


def stored_batches(
    reader: BaseFileReader, columns: pa.Schema, batch_rows: int = _BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in file order.

    Args:
        reader: the open file.
        columns: what to read, in today's types; a column that the file lacks has to be nullable.
        batch_rows: rows of a batch, at most; of a file that has none of the columns a batch is a row group.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: a stored type does not become today's.
    """
    present = _present(reader, columns)
    if not present.names:
        for rows in reader.row_group_rows():
            yield pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in columns], schema=columns)
        return
    conforming = plan_conform(present, columns)
    for batch in reader.batches(present.names, batch_rows):
        yield conforming.apply(batch)


def stored_table(reader: BaseFileReader, columns: pa.Schema) -> pa.Table:
    """All rows of a base file, each column in one chunk; see :func:`stored_batches`."""
    present = _present(reader, columns)
    if not present.names:
        return pa.table([pa.nulls(reader.num_rows, field.type) for field in columns], schema=columns)
    return plan_conform(present, columns).apply(reader.read(present.names)).combine_chunks()


def _present(reader: BaseFileReader, columns: pa.Schema) -> pa.Schema:
    return pa.schema([reader.schema.field(name) for name in columns.names if name in reader.schema.names])
