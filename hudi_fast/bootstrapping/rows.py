"""Rows that a bootstrap copies: of a file of the folder, in the columns of the table to come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from hudi_fast.bootstrapping.plan import BootstrapPlan, CopiedFile
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import Storage
from hudi_fast.writing.local import LocalEngine

__all__ = ["copied_batches", "local_engine"]

_BATCH_ROWS = 1 << 17


def copied_batches(storage: Storage, file: CopiedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file.

    Args:
        storage: rooted at the folder.
        file: which file.
        schema: columns of the table.

    Raises:
        CorruptTableError: the file cannot be read.
        InvalidDataError: a value does not fit.
    """
    with open_base_file(storage, file.path, f"{storage.uri}/{file.path}") as reader:
        stored = [name for name in schema.names if name in reader.schema.names]
        conforming = plan_conform(pa.schema([reader.schema.field(name) for name in stored]), schema)
        named = {name: text for name, text in file.values.items() if name not in stored}
        for batch in reader.batches(stored, _BATCH_ROWS):
            rows = conforming.apply(batch)
            for name, text in named.items():
                at = schema.get_field_index(name)
                values = pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)
                rows = rows.set_column(at, schema.field(at), values)
            yield rows


def local_engine(plan: BootstrapPlan) -> LocalEngine:
    """Writes all rows that are copied, in this process; they are in memory all at once."""
    with ThreadPoolExecutor(plan.write.threads or 2) as pool:
        parts = list(pool.map(lambda one: list(copied_batches(plan.source.storage, one, plan.schema)), plan.copied))
    rows = pa.Table.from_batches([batch for part in parts for batch in part], plan.schema)
    return LocalEngine(rows, reason="rows of the folder are read in this process")
