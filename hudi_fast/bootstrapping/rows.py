"""Reads the rows that a bootstrap copies, in the columns of the new table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from hudi_fast.bootstrapping.plan import BootstrapPlan, CopiedFile
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.writing.backend import BatchSource

__all__ = ["copied_batches", "copied_rows"]

_BATCH_ROWS = 1 << 17


def copied_batches(storage: Storage, file: CopiedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file.

    Args:
        storage: rooted at the folder.
        file: the file.
        schema: columns of the table.

    Raises:
        CorruptTableError: the file cannot be read.
        InvalidDataError: a value does not fit.
    """
    with open_base_file(storage, file.path, f"{storage.uri}/{file.path}") as reader:
        stored = [name for name in schema.names if reader.has(name)]
        conforming = plan_conform(pa.schema([reader.schema.field(name) for name in stored]), schema)
        named = {name: text for name, text in file.values.items() if name not in stored}
        for batch in reader.batches(stored, _BATCH_ROWS):
            rows = conforming.apply(batch)
            for name, text in named.items():
                at = schema.get_field_index(name)
                values = pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)
                rows = rows.set_column(at, schema.field(at), values)
            yield rows


def copied_rows(plan: BootstrapPlan) -> BatchSource:
    """The rows of all copied files, read by the tasks that write them."""
    return BatchSource(plan.copied, partial(_read, plan.source.storage, plan.schema), plan.schema)


def _read(storage: Storage, schema: pa.Schema, file: CopiedFile) -> Iterator[pa.RecordBatch]:
    return copied_batches(storage, file, schema)
