"""The columns of a base file: Hudi's meta columns before the data columns (table format, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from hudi_fast.formats.required_fields import null_array
from hudi_fast.formats.varlen import string_array
from hudi_fast.kernels.seqno import format_sequence_numbers
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "CONSTANT_META",
    "META_COLUMNS",
    "CarriedColumns",
    "carried_schema",
    "constant_column",
    "new_meta_columns",
    "sequence_numbers",
    "writer_schema",
]

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The five meta columns, in stored order."""

CONSTANT_META = (PARTITION_PATH, FILE_NAME)
"""Meta columns with one value per file; they are written as dictionary arrays of one entry."""

_CONSTANT = pa.dictionary(pa.int32(), pa.string())


def writer_schema(plan: FilePlan) -> pa.Schema:
    """The Arrow form of ``plan.file_schema`` for the Parquet writer."""
    if not plan.config.populate_meta_fields:
        return plan.file_schema
    return pa.schema(
        [field.with_type(_CONSTANT) if field.name in CONSTANT_META else field for field in plan.file_schema]
    )


def constant_column(value: str, count: int) -> pa.DictionaryArray:
    """A column of ``count`` equal texts."""
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


def sequence_numbers(instant: str, task: int, first: int, count: int) -> pa.Array:
    """``<instant>_<task>_<number>`` for ``count`` numbers from ``first`` on."""
    prefix = np.frombuffer(f"{instant}_{task}_".encode(), dtype=np.uint8)
    return string_array(*format_sequence_numbers(prefix, first, count))


def new_meta_columns(
    plan: FilePlan, keys: pa.Array, partition: str, file_name: str, task: int, first: int
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


def carried_schema(plan: FilePlan) -> pa.Schema:
    """The columns of stored rows that are copied into a new file.

    Leaves out meta columns with one value per file, and all meta columns when the table stores none.
    """
    left_out = CONSTANT_META if plan.config.populate_meta_fields else META_COLUMNS
    return pa.schema([field for field in plan.file_schema if field.name not in left_out])


@dataclass(frozen=True)
class CarriedColumns:
    """Settings for copying stored rows into a new file.

    Attributes:
        wanted: columns to read, see :func:`carried_schema`.
        schema: the writer's schema.
        constants: values of the columns with one value per file; empty when the table stores no meta columns.
    """

    wanted: pa.Schema
    schema: pa.Schema
    constants: dict[str, str]

    @classmethod
    def of(cls, plan: FilePlan, partition: str, file_name: str) -> Self:
        """The settings for a file of that name in a partition."""
        stored = plan.config.populate_meta_fields
        constants = dict(zip(CONSTANT_META, (partition, file_name), strict=True)) if stored else {}
        return cls(carried_schema(plan), writer_schema(plan), constants)

    def complete(self, table: pa.Table) -> pa.Table:
        """Rows of ``wanted`` with all columns of the file."""
        count, found = table.num_rows, dict(zip(table.column_names, table.columns, strict=True))
        columns = [
            found[field.name]
            if field.name in found
            else constant_column(self.constants[field.name], count)
            if field.name in self.constants
            else null_array(count, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)
