"""Hudi's bloom filters of record keys, and the union of several.

Hudi's bloom filters of record keys, as stored in base file footers and in the metadata table.

::

    base64 text --from_base64--> BloomFilter <--create
                                 rows: uint8[rows, bytes]  <--add(keys)          hudi_fast.kernels.bloom
                                                           --might_contain-->    bool per key
                                 --to_base64--> the bytes that Hudi writes for the same keys in the same order

A SIMPLE filter is one row of bits. A DYNAMIC_V0 filter gets another row whenever the last one holds ``entries`` keys,
until ``max_entries`` is reached; later keys are added to the rows round-robin. All integers are big-endian::

    row        int32 -1 | int32 hashes | int8 hash type (1: murmur) | int32 bits | (bits + 7) // 8 bytes
    SIMPLE     row
    DYNAMIC_V0 int32 -1 | int32 hashes | int8 hash type | int32 bits | int32 entries | int32 added to last row
               | int32 rows | row ...

Source: SimpleBloomFilter, HoodieDynamicBoundedBloomFilter and InternalDynamicBloomFilter of Apache Hudi 0.15 to 1.2.

Union of the bloom filters of several files, without rehashing keys.

A key is in a filter if all its bits are set in one row. The rows of several dynamic filters are combined in one filter.
If the keys of two rows fit into one row, their bits are merged, so the union is as large as a filter built from the
same keys. Beyond the maximum number of rows, further rows are merged round-robin, in the same way as a full filter adds
keys.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.kernels.bloom import bloom_add, bloom_probe_rows, from_base64

__all__ = ["DYNAMIC_V0", "SIMPLE", "BloomFilter", "union_filters"]

DYNAMIC_V0 = "DYNAMIC_V0"
SIMPLE = "SIMPLE"
"""Types of bloom filters: growing with the number of keys, and of fixed size."""

_ROW_HEADER = struct.Struct(">iibi")
_GROWTH = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
# Hashes of a key at the smallest error rate that a double can hold.
_MAX_HASHES = 1100

Keys: TypeAlias = pa.Array | pa.ChunkedArray


class BloomFilter:
    """A set of record keys with false positives and without false negatives.

    Created by :meth:`create` or :meth:`from_base64`. :meth:`add` modifies it; not thread-safe.

    Attributes:
        type_code: ``SIMPLE`` or ``DYNAMIC_V0``; Parquet footers store only the latter.
        bit_count: bits in a row.
        hash_count: hashes per key.
        entries: capacity of a row in keys; 0 for SIMPLE, which does not store it.
        max_entries: number of keys at which a dynamic filter stops adding rows.
        added: keys added to the last row; 0 for SIMPLE, which does not store it.
        rows: uint8[rows, (bit_count + 7) // 8].
    """

    __slots__ = ("_next_row", "added", "bit_count", "entries", "hash_count", "max_entries", "rows", "type_code")

    def __init__(
        self,
        type_code: str,
        bit_count: int,
        hash_count: int,
        rows: npt.NDArray[np.uint8],
        entries: int = 0,
        max_entries: int = 0,
        added: int = 0,
    ) -> None:
        self.type_code = type_code
        self.bit_count = bit_count
        self.hash_count = hash_count
        self.rows = rows
        self.entries = entries
        self.max_entries = max_entries
        self.added = added
        self._next_row: int | None = None  # row for the next key of a full dynamic filter; None: not full

    @classmethod
    def create(
        cls, entries: int = 60000, error_rate: float = 1e-9, max_entries: int = 100000, kind: str = DYNAMIC_V0
    ) -> BloomFilter:
        """An empty filter, by default with Hudi's settings.

        Args:
            entries: keys per row at which the error rate holds, ``hoodie.index.bloom.num_entries``.
            error_rate: rate of false positives, ``hoodie.index.bloom.fpp``.
            max_entries: ``hoodie.bloom.index.filter.dynamic.max.entries``.
            kind: ``SIMPLE`` or ``DYNAMIC_V0``, ``hoodie.bloom.index.filter.type``.

        Raises:
            ConfigError: a value is out of range.
            UnsupportedFeatureError: the kind is unknown.
        """
        _check_kind(kind, None)
        if entries < 1 or not 0.0 < error_rate < 1.0:
            raise ConfigError(
                "A bloom filter needs at least 1 entry and an error rate between 0 and 1; found "
                f"hoodie.index.bloom.num_entries={entries}, hoodie.index.bloom.fpp={error_rate}."
            )
        bit_count = math.ceil(entries * (-math.log(error_rate) / (math.log(2) * math.log(2))))
        if bit_count > 2**31 - 1:
            raise ConfigError(
                f"A bloom filter for {entries} entries at {error_rate} needs {bit_count} bits, and Hudi "
                "stores at most 2^31 - 1. Lower hoodie.index.bloom.num_entries or raise hoodie.index.bloom.fpp."
            )
        hash_count = math.ceil(math.log(2) * bit_count / entries)
        rows = np.zeros((1, (bit_count + 7) // 8), np.uint8)
        if kind == SIMPLE:
            return cls(SIMPLE, bit_count, hash_count, rows)
        return cls(DYNAMIC_V0, bit_count, hash_count, rows, entries, max_entries)

    @classmethod
    def from_base64(
        cls, text: str, type_code: str | None, max_entries: int = 100000, where: str | None = None
    ) -> BloomFilter:
        """Read a stored filter.

        Args:
            text: base64, as in the footer key ``org.apache.hudi.bloomfilter``.
            type_code: value of ``hoodie_bloom_filter_type_code``; None, as in footers of simple filters, is SIMPLE.
            max_entries: growth limit for added keys; filters do not store it.
            where: the file that holds the text, for errors.

        Raises:
            CorruptTableError: the bytes are not a filter of that type.
            UnsupportedFeatureError: the type code is unknown, or the filter uses the Jenkins hash.
        """
        kind = SIMPLE if type_code is None else type_code
        _check_kind(kind, where)
        try:
            raw = from_base64(text.encode(errors="replace"))
        except binascii.Error as error:
            raise _corrupt(f"the text is not base64 ({error})", where) from error
        hash_count, bit_count = _row_header(raw, 0, where)
        row_size = _ROW_HEADER.size + (bit_count + 7) // 8
        if kind == SIMPLE:
            _check_size(raw, row_size, where)
            return cls(SIMPLE, bit_count, hash_count, _row_bits(raw, 0, 1, row_size))
        first = _ROW_HEADER.size + _GROWTH.size
        _check_least(raw, first, where)
        entries, added, row_count = _GROWTH.unpack_from(raw, _ROW_HEADER.size)
        if entries < 1 or added < 0 or row_count < 1:
            raise _corrupt(f"{entries} entries a row, {added} keys in the last row, {row_count} rows", where)
        _check_size(raw, first + row_count * row_size, where)
        for row in range(row_count):
            found = _row_header(raw, first + row * row_size, where)
            if found != (hash_count, bit_count):
                raise _corrupt(f"row {row} has (hashes, bits) {found}, the filter {(hash_count, bit_count)}", where)
        rows = _row_bits(raw, first, row_count, row_size)
        return cls(DYNAMIC_V0, bit_count, hash_count, rows, entries, max_entries, added)

    def to_base64(self) -> str:
        """The stored form, byte for byte as Hudi writes it."""
        header = _ROW_HEADER.pack(_VERSION, self.hash_count, _MURMUR, self.bit_count)
        parts = [] if self.type_code == SIMPLE else [header, _GROWTH.pack(self.entries, self.added, len(self.rows))]
        for row in self.rows:
            parts += [header, row.tobytes()]
        return base64.b64encode(b"".join(parts)).decode("ascii")

    def copy(self) -> BloomFilter:
        """An independent copy."""
        other = BloomFilter(
            self.type_code,
            self.bit_count,
            self.hash_count,
            self.rows.copy(),
            self.entries,
            self.max_entries,
            self.added,
        )
        other._next_row = self._next_row
        return other

    def add(self, keys: Keys) -> None:
        """Add string or binary keys of any Arrow layout, hashed as UTF-8; their order matters when the filter grows.

        Raises:
            InvalidDataError: a key is null or empty, which Hudi rejects.
        """
        arrays = _binary_arrays(keys)
        for array in arrays:
            if array.null_count or (len(array) and int(np.diff(_buffers(array)[0]).min()) == 0):
                raise InvalidDataError(
                    "A record key is null or empty; a bloom filter accepts neither. Give every row a record key."
                )
        for array in arrays:
            self._add_array(array)

    def might_contain(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """bool[n]: whether each of n string or binary keys may have been added; False for a null or empty key."""
        out = np.zeros(len(keys), np.bool_)
        filters = np.ascontiguousarray(self.rows).reshape(-1)
        begin = 0
        for array in _binary_arrays(keys):
            if not len(array):
                continue
            offsets, data = _buffers(array)
            found = out[begin : begin + len(array)]
            bloom_probe_rows(
                offsets, data, filters, len(self.rows), self.bit_count, self.hash_count, found.view(np.uint8)
            )
            found &= np.diff(offsets) > 0
            if array.null_count:
                found &= array.is_valid().to_numpy(zero_copy_only=False)
            begin += len(array)
        return out

    # ---- growth

    def _add_array(self, array: pa.Array) -> None:
        done = 0
        while done < len(array):
            if self.type_code == SIMPLE:
                self._set_bits(0, array)
                return
            room = self.entries - self.added
            if room <= 0 and len(self.rows) * self.entries >= self.max_entries:
                self._add_round_robin(array.slice(done))
                return
            if room <= 0:
                self.rows = np.concatenate([self.rows, np.zeros((1, self.rows.shape[1]), np.uint8)])
                self.added, room = 0, self.entries
            part = array.slice(done, room)
            self._set_bits(len(self.rows) - 1, part)
            self.added += len(part)
            done += len(part)

    def _add_round_robin(self, array: pa.Array) -> None:
        """Add to a full filter: Hudi adds the first such key to row 0 and then starts the round-robin at row 0."""
        self.added += len(array)
        if self._next_row is None:
            self._set_bits(0, array.slice(0, 1))
            array = array.slice(1)
            self._next_row = 0
        count = len(self.rows)
        for row in range(count):
            mine = np.arange((row - self._next_row) % count, len(array), count)
            self._set_bits(row, array.take(pa.array(mine)))
        self._next_row = (self._next_row + len(array)) % count

    def _set_bits(self, row: int, array: pa.Array) -> None:
        if len(array):
            offsets, data = _buffers(array)
            bloom_add(offsets, data, self.rows[row], self.bit_count, self.hash_count)


def _check_kind(kind: str, where: str | None) -> None:
    if kind not in (SIMPLE, DYNAMIC_V0):
        place = "" if where is None else f" [file {where}]"
        raise UnsupportedFeatureError(f"Bloom filters are {SIMPLE} or {DYNAMIC_V0}; found type {kind!r}{place}.")


def _corrupt(found: str, where: str | None) -> CorruptTableError:
    return CorruptTableError(f"Expected a serialised bloom filter; found that {found}.", where)


def _check_least(raw: bytes, size: int, where: str | None) -> None:
    if len(raw) < size:
        raise _corrupt(f"it ends after {len(raw)} bytes where at least {size} are needed", where)


def _check_size(raw: bytes, size: int, where: str | None) -> None:
    if len(raw) != size:
        raise _corrupt(f"it has {len(raw)} bytes where its header says {size}", where)


def _row_header(raw: bytes, at: int, where: str | None) -> tuple[int, int]:
    """(hashes, bits) of the row header at ``at``."""
    _check_least(raw, at + _ROW_HEADER.size, where)
    version, hash_count, hash_type, bit_count = _ROW_HEADER.unpack_from(raw, at)
    if version > 0 or (version == _VERSION and hash_type == 0):
        place = "" if where is None else f" [file {where}]"
        raise UnsupportedFeatureError(f"Bloom filters with the Jenkins hash are not supported; found one{place}.")
    if version != _VERSION or hash_type != _MURMUR or not 1 <= hash_count <= _MAX_HASHES or bit_count < 1:
        raise _corrupt(
            f"byte {at} begins version {version}, {hash_count} hashes of type {hash_type}, {bit_count} bits", where
        )
    return hash_count, bit_count


def _row_bits(raw: bytes, first: int, row_count: int, row_size: int) -> npt.NDArray[np.uint8]:
    """A writable copy of the rows' bits: uint8[row_count, row_size - header]."""
    stored = np.frombuffer(raw, np.uint8)[first:].reshape(row_count, row_size)
    return stored[:, _ROW_HEADER.size :].copy()


def _binary_arrays(keys: Keys) -> list[pa.Array]:
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    plain = (pa.string(), pa.binary())
    return [chunk if chunk.type in plain else chunk.cast(pa.binary()) for chunk in chunks]


def _buffers(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """(int32[n + 1] offsets, uint8[] data) of a string or binary array with at least one value, without a copy."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


Bits: TypeAlias = npt.NDArray[np.uint8]


def union_filters(filters: Iterable[BloomFilter], like: BloomFilter) -> BloomFilter | None:
    """The union of filters, read one at a time.

    Args:
        filters: the filters, which are not modified.
        like: an empty filter that defines the maximum size of the union.

    Returns:
        None if there are no filters, or if one differs from ``like`` in hash, row size or keys per row.
    """
    if like.type_code != DYNAMIC_V0:
        return _joined(filters, like)
    limit = max(-(-like.max_entries // like.entries), 1)
    rows: list[Bits] = []
    counts: list[int] = []
    total = 0
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        for number, row in enumerate(one.rows):
            count = like.entries if number + 1 < len(one.rows) else one.added
            place = next((at for at, there in enumerate(counts) if there + count <= like.entries), None)
            if place is None and len(rows) < limit:
                rows.append(row.copy())
                counts.append(count)
            else:
                place = total // like.entries % limit if place is None else place
                rows[place] |= row
                counts[place] += count
            total += count
    if not rows:
        return None
    order = sorted(range(len(rows)), key=lambda at: counts[at], reverse=True)  # all rows but the last count as full
    added = counts[order[-1]] if counts[order[0]] <= like.entries else max(total - (limit - 1) * like.entries, 0)
    joined = np.stack([rows[at] for at in order])
    return BloomFilter(DYNAMIC_V0, like.bit_count, like.hash_count, joined, like.entries, like.max_entries, added)


def _joined(filters: Iterable[BloomFilter], like: BloomFilter) -> BloomFilter | None:
    """A filter of one row, which does not store the number of its keys."""
    rows: Bits | None = None
    for one in filters:
        if _parameters(one) != _parameters(like):
            return None
        rows = one.rows.copy() if rows is None else np.bitwise_or(rows, one.rows, out=rows)
    return None if rows is None else BloomFilter(like.type_code, like.bit_count, like.hash_count, rows)


def _parameters(one: BloomFilter) -> tuple[str, int, int, int]:
    return one.type_code, one.bit_count, one.hash_count, one.entries
