"""Rows as bare Avro binary <-> Arrow record batches: the content of Avro data blocks in log files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["AvroDecoder", "AvroEncoder", "Promote", "block_content_head"]

Promote = Callable[[pa.DataType, pa.DataType, str], Callable[[pa.Array], pa.Array] | None]
"""``schema.cast.leaf_cast``: source type, target type, column -> conversion, or None when there is none."""


@dataclass(frozen=True, slots=True)
class AvroDecoder:
    """Avro records of one writer schema as record batches of one Arrow schema; a value, can be pickled.

    Attributes:
        reader: schema of the batches.
    """

    reader: pa.Schema

    @classmethod
    def compile(
        cls,
        writer_schema: str,
        reader: pa.Schema,
        where: str,
        *,
        reader_avro: str | None = None,
        promote: Promote | None = None,
    ) -> AvroDecoder:
        """Resolve a writer's schema against the columns wanted."""
        raise NotImplementedError

    def decode_block(
        self, content: pa.Buffer | npt.NDArray[np.uint8], path: str | None, offset: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a data block's content (``offset``: where the content begins in the file, for messages)."""
        raise NotImplementedError

    def decode_records(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        path: str | None = None,
        offset: int = 0,
    ) -> pa.RecordBatch:
        """Records ``data[starts[i]:ends[i]]`` as one batch of n rows."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AvroEncoder:
    """Record batches of one Arrow schema as Avro records of one writer schema; a value, can be pickled.

    Attributes:
        schema: of the batches.
    """

    schema: pa.Schema

    @classmethod
    def compile(cls, schema: pa.Schema, writer_schema: str) -> AvroEncoder:
        """Resolve the columns of batches against a writer's schema."""
        raise NotImplementedError

    def encode_records(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Length-framed records (int32 big endian, then Avro binary), and int64[n + 1] offsets into them."""
        raise NotImplementedError


def block_content_head(count: int) -> bytes:
    """What stands before the records in a data block's content: int32 version (3), int32 count, big endian."""
    return (3).to_bytes(4, "big") + count.to_bytes(4, "big")
