"""Content of delete blocks <-> Arrow columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["DeleteRecords", "decode_delete_block", "encode_delete_block"]


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The entries of a delete block, n of them.

    Attributes:
        keys: string[n], record keys.
        partitions: string[n], partition paths; null where the entry has none.
        ordering: one column of n values per ordering value, in the natural Arrow type of what is stored: bool, int32,
            int64, float32, float64, binary, string, date32, decimal128(30, 15), time64[us], timestamp[us, UTC];
            null = none.
        is_default: bool[n]: the entry carries Hudi's default ordering value (IntWrapper 0 or null): a delete in
            commit-time order.
    """

    keys: pa.Array
    partitions: pa.Array
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


def decode_delete_block(content: pa.Buffer, path: str, offset: int) -> DeleteRecords:
    """Entries of a delete block, in block order."""
    raise NotImplementedError


def encode_delete_block(records: DeleteRecords) -> pa.Buffer:
    """Content of a delete block of version 3."""
    raise NotImplementedError
