"""Content of delete blocks <-> Arrow columns.

::

    int32 version | int32 n | n bytes: a list of (record key, partition path, ordering value)

Version 3 (Hudi 0.13 and later) is the Avro binary of that list, and the only version that this module writes. The file
does not store the Avro schema. Readers use a built-in schema, so the numbers of the union branches define the format;
:mod:`~hudi_fast.formats.log.delete_ordering` maps them to Arrow types.

Versions 1 and 2 (Hudi before 0.13) are Java objects that Kryo serialised: :mod:`~hudi_fast.formats.log.kryo_deletes`
reads them. Source: spec section 6.5; HoodieDeleteBlock and HoodieAvroWrapperUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.log.delete_ordering import (
    BlockPlace,
    checked,
    column_items,
    default_rows,
    null_rows,
    read_ordering,
    validity_of,
)
from hudi_fast.formats.log.kryo_deletes import read_kryo_deletes
from hudi_fast.formats.varlen import single_chunk, string_array, varlen_buffers
from hudi_fast.kernels import delete_records as reading
from hudi_fast.kernels import delete_writing as writing

__all__ = ["DELETE_BLOCK_VERSION", "DeleteRecords", "decode_delete_block", "encode_delete_block"]

DELETE_BLOCK_VERSION = 3
"""Version of the blocks that are written (Hudi 0.13 and later)."""

_KRYO_VERSIONS = (1, 2)

_HEAD = struct.Struct(">ii")
_MAX_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The n entries of a delete block.

    Attributes:
        keys: string[n], record keys.
        partitions: string[n], partition paths; null if the entry has none.
        ordering: one column of n values per ordering value, in the Arrow type of the stored values (see the module);
            null if an entry has none. No columns if no entry has an ordering value.
        is_default: bool[n]: whether the entry has Hudi's default ordering value (the int 0, or null), so that it is a
            delete in commit-time order. Its values in ``ordering`` are null.
    """

    keys: pa.Array
    partitions: pa.Array
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


# ---- reading


def decode_delete_block(content: pa.Buffer, path: str, offset: int) -> DeleteRecords:
    """Entries of a delete block, in block order. ``path`` and ``offset`` locate the content in messages.

    Raises:
        CorruptTableError: the bytes are not a list of deletes.
        UnsupportedFeatureError: entries have ordering values of different types, or a block of version 1 or 2 (Kryo)
            has a Java object of an unknown class.
    """
    place = BlockPlace(path, offset + _HEAD.size)
    version, data = _list_bytes(content, place)
    if version in _KRYO_VERSIONS:
        return DeleteRecords(*read_kryo_deletes(data, version, place))
    sizes = np.empty(3, np.int64)
    count = reading.measure_deletes(data, sizes)
    if count < 0:
        raise place.corrupt("Expected a delete entry with a record key, found other bytes.", -1 - int(count))
    if sizes[2] != data.size:
        raise place.corrupt(f"Expected the list of {count} deletes to end the block.", int(sizes[2]))
    return _read_entries(data, int(count), int(sizes[0]), int(sizes[1]), place)


def _list_bytes(content: pa.Buffer, place: BlockPlace) -> tuple[int, npt.NDArray[np.uint8]]:
    """The version of a block's content, and the bytes of its list."""
    if content.size < _HEAD.size:
        raise place.corrupt(f"Expected a delete block, found {content.size} bytes.", -_HEAD.size)
    version, size = _HEAD.unpack_from(memoryview(content))
    if version not in (*_KRYO_VERSIONS, DELETE_BLOCK_VERSION):
        raise place.corrupt(f"Expected delete block version 1, 2 or 3, found {version}.", -_HEAD.size)
    if size != content.size - _HEAD.size:
        raise place.corrupt(
            f"Expected {content.size - _HEAD.size} as length of the deletes, found {size}.", 4 - _HEAD.size
        )
    return version, np.frombuffer(content, np.uint8)[_HEAD.size :]


def _read_entries(
    data: npt.NDArray[np.uint8], count: int, key_bytes: int, partition_bytes: int, place: BlockPlace
) -> DeleteRecords:
    key_offsets, partition_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, partitions = np.empty(key_bytes, np.uint8), np.empty(partition_bytes, np.uint8)
    has_partition, is_default = np.empty(count, np.bool_), np.empty(count, np.bool_)
    branch, value_at, items = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count, np.int64)
    reading.read_deletes(
        data, key_offsets, keys, partition_offsets, partitions, has_partition, is_default, branch, value_at, items
    )
    validity, nulls = validity_of(has_partition)
    return DeleteRecords(
        checked(string_array(key_offsets, keys), "record keys", place),
        checked(string_array(partition_offsets, partitions, None, validity, nulls), "partition paths", place),
        read_ordering(data, branch, value_at, items, ~is_default, place),
        is_default,
    )


# ---- writing


def encode_delete_block(records: DeleteRecords) -> pa.Buffer:
    """Content of a delete block of version 3; several ordering columns become an ArrayWrapper (table version 9 only).

    A single null ordering value is written as Hudi's default. Values of date columns are written as ints, values of
    time and timestamp columns as longs, in the column's unit (see ``delete_ordering``). Hudi reads the int 0 as its
    default, even if it is a value of an int or date column.

    Raises:
        InvalidDataError: a record key is null, one of several ordering values is null (Hudi 1.2 cannot read that), a
            decimal has more than 15 digits before the point, or the block has more than 2 GiB.
        UnsupportedFeatureError: an ordering column has another type, or decimals have more than 15 digits after the
            point.
    """
    rows = len(records.keys)
    is_default = np.ascontiguousarray(records.is_default, np.bool_)
    if len(records.partitions) != rows or is_default.size != rows or any(len(c) != rows for c in records.ordering):
        raise ValueError("the columns of delete records differ in length")
    keys, partitions = _strings(records.keys), _strings(records.partitions)
    if keys.null_count:
        raise InvalidDataError(f"A delete needs a record key; {keys.null_count} of {rows} are null.")
    ordering = [single_chunk(column) for column in records.ordering]
    is_default = default_rows(is_default, ordering, keys)
    items = [column_items(column, ~is_default) for column in ordering]
    base = np.cumsum([0, *(len(data) for _, data in items)])
    offsets = [part + start for (part, _), start in zip(items, base[:-1], strict=True)]
    key_buffers, partition_buffers = varlen_buffers(keys), varlen_buffers(partitions)
    has_partition = ~null_rows(partitions)
    limit = 11 + 23 * rows + keys.nbytes + partitions.nbytes + int(base[-1])
    out = np.empty(_HEAD.size + limit, np.uint8)
    size = int(
        writing.assemble_deletes(
            *key_buffers,
            *partition_buffers,
            has_partition,
            is_default,
            np.concatenate(offsets) if offsets else np.empty(0, np.int64),
            np.concatenate([data for _, data in items]) if items else np.empty(0, np.uint8),
            len(items),
            out[_HEAD.size :],
        )
    )
    if size > _MAX_BYTES - (1 << 20):  # leaves room for the headers of the block
        raise InvalidDataError(f"A delete block of {size} bytes is too large for Hudi; write fewer deletes at once.")
    out[: _HEAD.size] = np.frombuffer(_HEAD.pack(DELETE_BLOCK_VERSION, size), np.uint8)
    return pa.py_buffer(out).slice(0, _HEAD.size + size)


def _strings(column: pa.Array) -> pa.Array:
    array = single_chunk(column)
    return array if array.type == pa.string() else array.cast(pa.string())
