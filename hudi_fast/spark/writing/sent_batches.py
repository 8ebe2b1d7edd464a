"""Arrow batches that one task sends to another through Spark's shuffle, each as one value of bytes.

The JVM does not decode them. A task that cannot make its batches sends its error instead; Spark would make text of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError, InvalidDataError
from hudi_fast.formats.varlen import gather, single_chunk
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.spark.writing.tasks import Answer, final_failure, task_attempts
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "ADDRESS",
    "BYTES",
    "Work",
    "binary_of",
    "grouped",
    "lots",
    "packs_rows",
    "sending_errors",
    "unpacked",
    "unpacking_as",
]

ADDRESS, BYTES = "__hudi_fast_address", "__hudi_fast_bytes"
"""Columns of sent batches: an integer that Spark sends to the right task, and the batch."""

_LOT_ROWS = 1 << 19
_LOT_BYTES = 64 << 20
"""Rows, and their Arrow bytes, that are grouped at once."""

_COMET = {"spark.comet.exec.pyarrowUDF.enabled": "false", "spark.comet.enabled": "true"}
"""Settings with which Comet hands batches to Python, with their defaults."""

_LARGEST = 2**31 - 1
"""Bytes of one array: its offsets are 32-bit integers."""

Pack = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

Work = Callable[[Iterator[pa.RecordBatch]], Answer]

_PICKLE = b"\x80"
"""First byte of a pickled error; a batch begins with 0xff."""


def packs_rows(spark: Any) -> bool:
    """Whether the session bounds Arrow batches to Python by bytes; others would collect thousands of values in one.

    PySpark does so since 4.1. Apache DataFusion Comet, where it hands its own batches to Python, counts rows.
    """
    of_comet = all(str(spark.conf.get(name, usual)).lower() == "true" for name, usual in _COMET.items())
    return hasattr(F, "arrow_udf") and not of_comet


def binary_of(parts: list[pa.Buffer]) -> pa.Array:
    """Buffers as an array, binary[n].

    Raises:
        InvalidDataError: they have more bytes together than such an array takes.
    """
    offsets = np.concatenate([[0], np.cumsum([part.size for part in parts])])
    if offsets[-1] > _LARGEST:
        raise InvalidDataError(
            f"A batch of rows has {offsets[-1]:,} bytes, and one task can send {_LARGEST:,} to another at a time. "
            "Lower spark.sql.execution.arrow.maxRecordsPerBatch."
        )
    data = pa.py_buffer(b"".join(parts))
    return pa.Array.from_buffers(pa.binary(), len(parts), [None, pa.py_buffer(offsets.astype(np.int32)), data])


def grouped(rows: pa.Table, groups: npt.NDArray[np.int32], count: int) -> Iterator[tuple[int, pa.Buffer]]:
    """The rows of each group as bytes; groups without rows are left out.

    Args:
        rows: n rows.
        groups: int32[n], the group of each row.
        count: number of groups.
    """
    order, bounds = group_rows(groups, count)
    taken = gather(rows, order)
    sent = pa.RecordBatch.from_arrays([single_chunk(one) for one in taken.columns], schema=rows.schema)
    for group, (start, end) in enumerate(pairwise(bounds.tolist())):
        if end > start:
            yield group, sent.slice(start, end - start).serialize()


def lots(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches, so that few rows are grouped into few small parts."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _LOT_ROWS or size >= _LOT_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def sending_errors(spark: Any, plan: WritePlan, pack: Pack, message: Callable[[pa.Buffer], pa.RecordBatch]) -> Pack:
    """``pack``, which sends an error of its own in the place of a batch.

    An error that may be temporary fails the task, so that Spark tries it again, unless this is the last attempt.

    Args:
        spark: the session.
        plan: the write.
        pack: makes the messages of a task.
        message: makes a message of the bytes of an error.
    """
    attempts = task_attempts(spark)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from pack(batches)
        except (HudiError, MemoryError, OSError) as error:
            yield message(pa.py_buffer(pickle.dumps(final_failure(error, plan, attempts))))

    return run


def unpacked(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches in a column of bytes.

    Raises:
        HudiError: the first error that was sent.
    """
    for batch in batches:
        for one in batch.column(0):
            data = one.as_buffer()
            if data[:1].to_pybytes() == _PICKLE:
                raise pickle.loads(data)
            yield pa.ipc.read_record_batch(data, schema)


def unpacking_as(schema: pa.Schema, work: Work) -> Work:
    """The function of a task over sent batches, from its function over batches.

    Args:
        schema: of the batches.
        work: picklable. It gets the first error that was sent as an exception.
    """
    return lambda batches: work(unpacked(batches, schema))
