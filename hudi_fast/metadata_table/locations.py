"""Encode locations for the record index: file ids as numbers, instants as milliseconds.

Encoding 0 stores a file id as the halves of its UUID and the number after it (-1 for none); encoding 1 stores its text.
A file id that is not such a UUID is always stored as text.

Source: metadata table reference, section 3.8; HoodieMetadataPayload.createRecordIndexUpdate, Hudi 1.2.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError, InvalidDataError
from hudi_fast.formats.varlen import string_array, varlen_buffers
from hudi_fast.kernels.file_ids import format_file_ids, measure_file_ids, parse_file_ids
from hudi_fast.timeline.instant import instant_from_ms, ms_from_instant

__all__ = ["encode_file_ids", "file_id_texts", "instant_millis", "instant_texts"]


def encode_file_ids(file_ids: pa.Array, encoding: int) -> list[pa.Array]:
    """Encode file ids.

    Args:
        file_ids: string[n].
        encoding: 0 for numbers where the file ids are UUIDs, 1 for text.

    Returns:
        fileIdHighBits int64, fileIdLowBits int64, fileIndex int32, fileId string and fileIdEncoding int32, n each.

    Raises:
        InvalidDataError: a file id is null.
    """
    if file_ids.null_count:
        raise InvalidDataError("A row of the record index has no file id.")
    count = len(file_ids)
    high, low = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    index, parsed = np.full(count, -1, np.int32), np.zeros(count, np.uint8)
    if encoding == 0:
        parse_file_ids(*varlen_buffers(file_ids), high, low, index, parsed)
    texts = file_ids
    if parsed.all():
        texts = string_array(np.zeros(count + 1, np.int32), np.empty(0, np.uint8))
    elif parsed.any():
        texts = pc.if_else(pa.array(parsed.astype(np.bool_)), "", file_ids)
    return [pa.array(high), pa.array(low), pa.array(index), texts, pa.array(1 - parsed.astype(np.int32))]


def file_id_texts(high: pa.Array, low: pa.Array, index: pa.Array, texts: pa.Array, encoding: pa.Array) -> pa.Array:
    """Decode file ids: string[n].

    Args:
        high: int64[n], fileIdHighBits.
        low: int64[n], fileIdLowBits.
        index: int32[n], fileIndex.
        texts: string[n], fileId.
        encoding: int32[n], fileIdEncoding.

    Raises:
        CorruptTableError: an unknown encoding, or a null value that the encoding requires.
    """
    as_text = encoding.to_numpy() == 1
    if not as_text.all() and (encoding.to_numpy()[~as_text] != 0).any():
        raise CorruptTableError(f"Expected file ids in encoding 0 or 1, found {pc.unique(encoding).to_pylist()}.")
    if as_text.all():
        if texts.null_count:
            raise CorruptTableError("A record of the record index has no file id.")
        return texts
    numbers = pc.and_(pc.is_valid(high), pc.and_(pc.is_valid(low), pc.is_valid(index)))
    if not pc.all(pc.if_else(pa.array(as_text), pc.is_valid(texts), numbers)).as_py():
        raise CorruptTableError("A record of the record index has no file id.")
    index_values, flags = index.fill_null(-1).to_numpy(), as_text.astype(np.uint8)
    stored = varlen_buffers(texts)
    offsets = np.empty(len(texts) + 1, np.int32)
    total = int(measure_file_ids(index_values, flags, stored.offsets, offsets))
    if total < 0:
        raise InvalidDataError(f"The file ids of {len(texts)} records take 2 GiB or more; read fewer at once.")
    out = np.empty(total, np.uint8)
    halves = (high.fill_null(0).to_numpy(), low.fill_null(0).to_numpy())
    format_file_ids(*halves, index_values, flags, stored.offsets, stored.data, offsets, out)
    return string_array(offsets, out)


def instant_texts(millis: pa.Array, zone: str) -> pa.Array:
    """Decode instants of record index rows to 17-digit texts: string[n].

    Args:
        millis: int64[n], since the epoch.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.
    """
    found = millis.dictionary_encode()
    texts = [None if each is None else instant_from_ms(each, zone) for each in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices)


def instant_millis(times: pa.Array, zone: str) -> pa.Array:
    """Encode instants for record index rows: int64[n], milliseconds since the epoch.

    Args:
        times: string[n], of 14 or 17 digits.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.

    Raises:
        CorruptTableError: an invalid instant time.
    """
    found = times.dictionary_encode()
    millis = [None if each is None else ms_from_instant(each, zone) for each in found.dictionary.to_pylist()]
    return pa.array(millis, pa.int64()).take(found.indices)
