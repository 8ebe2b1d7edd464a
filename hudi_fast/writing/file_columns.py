"""The columns of a base file: Hudi's meta columns in front of the data (table format, section 4.2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_fast.formats.varlen import string_array
from hudi_fast.kernels.seqno import format_sequence_numbers
from hudi_fast.writing.plan import WritePlan

__all__ = ["CONSTANT_META", "META_COLUMNS", "constant_column", "new_meta_columns", "sequence_numbers", "writer_schema"]

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)

CONSTANT_META = (PARTITION_PATH, FILE_NAME)
"""Meta columns with one value per file; they are written as dictionary arrays of one entry."""

_CONSTANT = pa.dictionary(pa.int32(), pa.string())


def writer_schema(plan: WritePlan) -> pa.Schema:
    """The Arrow form of ``plan.file_schema`` that tables handed to the Parquet writer have."""
    if not plan.config.populate_meta_fields:
        return plan.file_schema
    return pa.schema(
        [field.with_type(_CONSTANT) if field.name in CONSTANT_META else field for field in plan.file_schema]
    )


def constant_column(value: str, count: int) -> pa.DictionaryArray:
    """``count`` times the same text."""
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


def sequence_numbers(instant: str, task: int, first: int, count: int) -> pa.Array:
    """``<instant>_<task>_<number>`` for ``count`` numbers from ``first`` on."""
    prefix = np.frombuffer(f"{instant}_{task}_".encode(), dtype=np.uint8)
    return string_array(*format_sequence_numbers(prefix, first, count))


def new_meta_columns(
    plan: WritePlan, keys: pa.Array, partition: str, file_name: str, task: int, first: int
) -> list[pa.Array]:
    """The five meta columns of rows that this write inserts or updates; all null when the table stores none."""
    count = len(keys)
    if not plan.config.populate_meta_fields:
        return [pa.nulls(count, pa.string())] * 5
    return [
        constant_column(plan.instant, count).cast(pa.string()),
        sequence_numbers(plan.instant, task, first, count),
        keys,
        constant_column(partition, count),
        constant_column(file_name, count),
    ]
