"""String and binary arrays as the (offsets, data, validity) buffers that kernels take, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import InvalidDataError

__all__ = ["VarlenBuffers", "single_chunk", "string_array", "varlen_buffers"]

_EMPTY = np.zeros(0, dtype=np.uint8)


class VarlenBuffers(NamedTuple):
    """Views of an array's buffers; they live as long as the array.

    Attributes:
        offsets: int32[n+1]; need not begin at 0 (sliced arrays).
        data: uint8[at least offsets[n]].
    """

    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]


def varlen_buffers(array: pa.Array) -> VarlenBuffers:
    """The offsets and data of a string or binary array (32-bit offsets) of n values, without a copy."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return VarlenBuffers(np.zeros(1, dtype=np.int32), _EMPTY)
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return VarlenBuffers(bounds, _EMPTY if data is None else np.frombuffer(data, dtype=np.uint8))


def string_array(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.Array:
    """A string array without nulls around the two buffers, without a copy."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array.

    Raises:
        InvalidDataError: its bytes do not fit one array (2 GiB).
    """
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        if joined.num_chunks > 1:
            raise InvalidDataError(
                f"A column of {column.nbytes} bytes does not fit one Arrow array (2 GiB); write fewer rows at once."
            )
        return joined.chunk(0) if joined.num_chunks else pa.array([], column.type)
    return joined
