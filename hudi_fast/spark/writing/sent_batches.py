"""Arrow batches that one task sends to another through Spark's shuffle, each as one value of bytes.

The JVM does not decode them. A task that cannot make its batches sends its error instead; Spark would make text of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError
from hudi_fast.spark.writing.tasks import Answer

__all__ = ["Work", "binary_of", "error_bytes", "packs_rows", "unpacking_as"]

Work = Callable[[Iterator[pa.RecordBatch]], Answer]

_PICKLE = b"\x80"
"""First byte of a pickled error; a batch begins with 0xff."""


def packs_rows() -> bool:
    """Whether this PySpark bounds Arrow batches by bytes; others would collect up to 65 536 such values in one."""
    return hasattr(F, "arrow_udf")


def binary_of(parts: list[pa.Buffer]) -> pa.Array:
    """Buffers as an array, binary[n]."""
    offsets = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int32)
    data = pa.py_buffer(b"".join(parts))
    return pa.Array.from_buffers(pa.binary(), len(parts), [None, pa.py_buffer(offsets), data])


def error_bytes(error: HudiError) -> pa.Buffer:
    """An error in the place of a batch."""
    return pa.py_buffer(pickle.dumps(error))


def unpacking_as(schema: pa.Schema, work: Work) -> Work:
    """The function of a task over sent batches, from its function over batches.

    Args:
        schema: of the batches.
        work: picklable. It gets the first error that was sent as an exception.
    """

    def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for one in batch.column(0):
                data = one.as_buffer()
                if data[:1].to_pybytes() == _PICKLE:
                    raise pickle.loads(data)
                yield pa.ipc.read_record_batch(data, schema)

    return lambda batches: work(unpacked(batches))
