"""Columns of a base file in the table's current schema.

::

    columns that the file has ─► read ─► conformed to the current types ─┐
    columns added after the file was written ───────────────────► nulls ┴─► in the requested order and types

:func:`stored_batches` returns batches, for streaming; :func:`stored_table` a whole table, for selecting rows by number.
:func:`plan_stored` is the conversion alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.required_fields import null_array
from hudi_fast.schema.conform import ConformPlan, plan_conform, plan_file

__all__ = ["plan_stored", "stored_batches", "stored_table"]

_BATCH_ROWS = 1 << 17


def plan_stored(reader: BaseFileReader, names: Sequence[str], columns: pa.Schema) -> ConformPlan:
    """The conversion of stored rows.

    Args:
        reader: the open file.
        names: columns of the file that are read.
        columns: columns of the result, in current types; a column that is not read has to be nullable.

    Raises:
        SchemaMismatchError: a stored type cannot be converted to the current one.
    """
    stored = pa.schema([reader.schema.field(name) for name in names])
    return plan_file(stored, columns) if reader.has_labels else plan_conform(stored, columns)


def stored_batches(
    reader: BaseFileReader,
    columns: pa.Schema,
    batch_rows: int = _BATCH_ROWS,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in file order.

    Args:
        reader: the open file.
        columns: columns to read, in current types; a column that the file lacks has to be nullable.
        batch_rows: maximum rows of a batch; if the file has none of the columns, a batch is a row group.
        row_groups: the row groups to read; None for all.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: a stored type cannot be converted to the current one.
    """
    present = _present(reader, columns)
    if not present:
        counts = reader.row_group_rows()
        for rows in counts if row_groups is None else [counts[number] for number in row_groups]:
            yield pa.RecordBatch.from_arrays([null_array(rows, field.type) for field in columns], schema=columns)
        return
    conforming = plan_stored(reader, present, columns)
    for batch in reader.batches(present, batch_rows, row_groups):
        yield conforming.apply(batch)


def stored_table(reader: BaseFileReader, columns: pa.Schema) -> pa.Table:
    """All rows of a base file, each column in one chunk; see :func:`stored_batches`."""
    present = _present(reader, columns)
    if not present:
        return pa.table([null_array(reader.num_rows, field.type) for field in columns], schema=columns)
    return plan_stored(reader, present, columns).apply(reader.read(present)).combine_chunks()


def _present(reader: BaseFileReader, columns: pa.Schema) -> list[str]:
    return [name for name in columns.names if reader.has(name)]
