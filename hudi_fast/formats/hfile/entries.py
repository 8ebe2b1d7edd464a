"""The entries of one data block of an HFile, as Arrow arrays in key order.

::

    payload ─► keys, values ─► within the bounds of the index? ─► ascending?
                                                                    by bytes: unchanged
                                                                    by Java's string order: sort by bytes
                                                                    neither: damaged

Searches rely on byte order. Source: HFile reference section 1.5.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.hfile.blocks import HFileContent
from hudi_fast.formats.hfile.index import java_order
from hudi_fast.formats.varlen import string_array, varlen_buffers
from hudi_fast.kernels.hfile_entries import copy_entries, measure_entries
from hudi_fast.kernels.hfile_search import first_unordered

__all__ = ["ordered_entries", "read_entries"]


def read_entries(file: HFileContent, offset: int, payload: memoryview) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a data block, binary[n] each, in stored order. ``file`` and ``offset`` are for messages.

    Raises:
        CorruptTableError: an entry is malformed.
    """
    data = np.frombuffer(payload, np.uint8)
    sizes = np.empty(2, np.int64)
    count = int(measure_entries(data, sizes))
    if count < 0:
        raise file.corrupt(f"Expected an entry at byte {-1 - count} of an HFile block, found other bytes.", offset)
    key_offsets, value_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, values = np.empty(int(sizes[0]), np.uint8), np.empty(int(sizes[1]), np.uint8)
    copy_entries(data, key_offsets, keys, value_offsets, values)
    return string_array(key_offsets, keys, pa.binary()), string_array(value_offsets, values, pa.binary())


def ordered_entries(
    file: HFileContent, offset: int, payload: memoryview, low: bytes, high: bytes | None
) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a data block sorted by the keys' bytes; equal keys keep their stored order.

    ``low`` is the block's key in the index: no key may be below it. ``high`` is the next block's key: no key may be
    above it; None for the last block. ``file`` and ``offset`` are for messages.

    Raises:
        CorruptTableError: an entry is malformed, or the keys contradict the index.
    """
    keys, values = read_entries(file, offset, payload)
    if not len(keys):
        return keys, values
    first, last = keys[0].as_py(), keys[-1].as_py()
    bounds = [low, first, last] if high is None else [low, first, last, high]
    ascends = int(first_unordered(*varlen_buffers(keys), False)) < 0
    if ascends and bounds == sorted(bounds):
        return keys, values
    texts = [low, *keys.to_pylist(), *bounds[3:]]
    if texts != sorted(texts, key=java_order):
        raise file.corrupt("Expected ascending keys in an HFile block, found unsorted keys.", offset)
    order = pc.sort_indices(keys)
    return keys.take(order), values.take(order)
