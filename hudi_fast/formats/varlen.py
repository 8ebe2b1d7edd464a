"""Arrow arrays <-> the buffers that kernels use: strings and binaries, fixed-width items, validity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import InvalidDataError

__all__ = [
    "VARLEN",
    "VarlenBuffers",
    "compact",
    "fixed_items",
    "is_fixed_width",
    "single_chunk",
    "string_array",
    "validity_bits",
    "varlen_buffers",
]

VARLEN = frozenset({pa.string(), pa.binary()})
"""Types whose arrays have int32 offsets and bytes."""

_EMPTY = np.zeros(0, dtype=np.uint8)
_ITEMS: dict[int, type[np.generic]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.complex128}


class VarlenBuffers(NamedTuple):
    """Views of an array's buffers; they keep the array's memory.

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


def string_array(
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    kind: pa.DataType | None = None,
    validity: pa.Buffer | None = None,
    nulls: int = 0,
) -> pa.Array:
    """Wrap buffers as a string array, or an array of type ``kind``, without a copy."""
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind or pa.string(), len(offsets) - 1, buffers, nulls)


def is_fixed_width(kind: pa.DataType) -> bool:
    """Whether values of the type are items of 1, 2, 4, 8 or 16 bytes."""
    return (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and kind.bit_width in _ITEMS


def fixed_items(array: pa.Array) -> npt.NDArray[np.generic]:
    """The values of a fixed-width array as opaque items, without a copy; undefined for nulls."""
    dtype = _ITEMS[array.type.bit_width]
    values = array.buffers()[1]
    if values is None or len(array) == 0:
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(values, dtype=dtype)[array.offset : array.offset + len(array)]


def validity_bits(array: pa.Array) -> npt.NDArray[np.uint8] | None:
    """The validity bitmap, least significant bit first, from bit ``array.offset`` on; None without nulls."""
    bits = array.buffers()[0]
    return None if bits is None or array.null_count == 0 else np.frombuffer(bits, dtype=np.uint8)


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array.

    Raises:
        InvalidDataError: the column is too large for one array (2 GiB).
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


def compact(values: pa.Array) -> pa.Array:
    """The values in arrays without slice offsets, for writers that misread the offsets of nested arrays.

    Arrow's ORC writer would misread the validity of parts of a struct, and pylance would panic.
    """
    return values.take(pa.array(np.arange(len(values)))) if _has_offset(values) else values


def _has_offset(values: pa.Array) -> bool:
    kind = values.type
    if values.offset or not pa.types.is_nested(kind):
        return bool(values.offset)
    if pa.types.is_struct(kind):
        return any(_has_offset(values.field(number)) for number in range(kind.num_fields))
    parts = (values.keys, values.items) if pa.types.is_map(kind) else (values.values,)
    return any(_has_offset(one) for one in parts)
