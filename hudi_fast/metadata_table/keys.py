"""Keys of the metadata table, and values of secondary indexes in them.

Encode and decode the keys of the metadata table.

::

    column, partition  ── xxHash64 ─► 8 bytes  ─► base64 ─► 12 characters ┐
    file name          ── MD5 ──────► 16 bytes ─► base64 ─► 24 characters ┴─► joined: keys of statistics and filters

    indexed value, record key  ── escape ─► "value$key" ── split at the first bare $, unescape ─► value, record key

In a secondary key each backslash, ``$`` and NUL is escaped by a backslash, so the first bare ``$`` separates the two
parts; a single bare NUL stands for null. Functions on Arrow arrays do not loop over rows in Python.

Source: metadata table reference, sections 3.4 and 3.9; HashID, ColumnIndexID, PartitionIndexID, FileIndexID and
SecondaryIndexKeyUtils, Hudi 1.2.0.

The values of a column with a secondary index as text, and the length of their index entries.

An entry's key holds the value and the record key, both escaped: ``value$key``. HFiles limit its length.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError, InvalidDataError
from hudi_fast.formats.varlen import VarlenBuffers, single_chunk, string_array, varlen_buffers
from hudi_fast.kernels.avro_decode import COPY_SLACK, copy_values
from hudi_fast.kernels.hashes import xx_hash64
from hudi_fast.kernels.hudi_texts import measure_joined, measure_parts, write_joined, write_parts
from hudi_fast.keys.key_generator import LONGEST_KEY
from hudi_fast.keys.value_text import to_text
from hudi_fast.values import dataclass

__all__ = [
    "NON_PARTITIONED",
    "PARTITION_STAT",
    "IndexedColumn",
    "bloom_key",
    "column_hash",
    "column_stats_key",
    "column_stats_keys",
    "expression_partition_key",
    "expression_partition_prefix",
    "file_hash",
    "partition_hash",
    "partition_stats_key",
    "secondary_key_lengths",
    "secondary_keys",
    "secondary_prefix",
    "secondary_routing",
    "split_secondary_keys",
    "type_of_column",
]

NON_PARTITIONED = "."
"""The empty partition path in keys and in the ``files`` partition."""

PARTITION_STAT = "__partition_stat__"
"""Text before the partition in the keys of an expression index's partition records."""

Texts: TypeAlias = Sequence[str] | pa.Array

_SEED = 0xFFFFFFFFDABADABA
_CACHED_HASHES = 4096
"""Hashes kept in the cache: a commit needs the same hashes for each of its files."""
_NO_BYTES = np.empty(0, np.uint8)


@lru_cache(_CACHED_HASHES)
def column_hash(name: str) -> str:
    """The 12-character hash of a column name (dotted for nested columns)."""
    return _hashes([name])[0]


@lru_cache(_CACHED_HASHES)
def partition_hash(path: str) -> str:
    """The 12-character hash of a partition path; the empty path hashes as ``.``."""
    return _hashes([path or NON_PARTITIONED])[0]


def file_hash(names: Sequence[str]) -> list[str]:
    """The 24-character hash of each file name (without folder)."""
    return [base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode() for name in names]


def column_stats_key(column: str, partition: str, file: str) -> str:
    """The key of one file's statistics of one column; also used by expression indexes.

    Args:
        column: name, dotted for a nested column.
        partition: relative path, may be empty.
        file: name without folder.
    """
    return column_hash(column) + partition_hash(partition) + file_hash([file])[0]


def column_stats_keys(columns: Texts, partitions: Texts, files: Texts) -> pa.Array:
    """:func:`column_stats_key` of n rows: string[n]."""
    parts = (_each(columns, _hashes), _each(partitions, _partition_hashes), _each(files, file_hash))
    return pc.binary_join_element_wise(*parts, "")


def partition_stats_key(column: str, partition: str) -> str:
    """The key of one partition's statistics of one column."""
    return column_hash(column) + partition_hash(partition)


def bloom_key(partition: str, file: str) -> str:
    """The key of one file's bloom filter; also used by expression indexes of bloom filters."""
    return partition_hash(partition) + file_hash([file])[0]


def expression_partition_prefix(column: str) -> str:
    """The prefix of the keys of an expression index's partition records of a column."""
    return column_hash(column) + _hashes([PARTITION_STAT])[0]


def expression_partition_key(column: str, partition: str) -> str:
    """The key of a partition's record in an expression index (type 6)."""
    return expression_partition_prefix(column) + partition_hash(partition)


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Keys of a secondary index: string[n].

    Args:
        values: string[n], the indexed column's values as text; may be null.
        record_keys: string[n], without nulls.

    Raises:
        InvalidDataError: the keys take 2 GiB or more.
    """
    texts, valid, keys, offsets = _measured(values, record_keys)
    out = np.empty(int(offsets[-1]), np.uint8)
    write_joined(*texts, valid, *keys, offsets, out)
    return string_array(offsets, out)


def secondary_key_lengths(values: pa.Array, record_keys: pa.Array) -> npt.NDArray[np.int32]:
    """The length of each key of :func:`secondary_keys` in bytes: int32[n]."""
    return np.diff(_measured(values, record_keys)[3])


def split_secondary_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The indexed values (may be null) and record keys of a secondary index's string or binary keys: string[n] each.

    Raises:
        CorruptTableError: a key has no bare ``$``.
    """
    found = _parts(keys)
    values = np.empty(int(found.value_offsets[-1]), np.uint8)
    record_keys = np.empty(int(found.key_offsets[-1]), np.uint8)
    texts = varlen_buffers(keys)
    write_parts(*texts, found.separators, found.value_offsets, found.key_offsets, values, record_keys)
    nulls = int((found.valid == 0).sum())
    validity = pa.py_buffer(np.packbits(found.valid, bitorder="little")) if nulls else None
    return string_array(found.value_offsets, values, None, validity, nulls), string_array(
        found.key_offsets, record_keys
    )


def secondary_prefix(value: str | None) -> str:
    """The prefix of the keys of all records with ``value``: the escaped value and ``$``."""
    return str(secondary_keys(pa.array([value], pa.string()), pa.array([""]))[0].as_py())


def secondary_routing(keys: pa.Array) -> pa.Array:
    """The part of a key that table version 9 hashes to find its file group: up to and including the first bare ``$``.

    Returns:
        string[n].

    Raises:
        CorruptTableError: a key has no bare ``$``.
    """
    found, texts = _parts(keys), varlen_buffers(keys)
    starts = texts.offsets[:-1].astype(np.int64)
    offsets = np.zeros(len(keys) + 1, np.int32)
    np.cumsum(found.separators - starts + 1, out=offsets[1:])
    out = np.empty(int(offsets[-1]) + COPY_SLACK, np.uint8)
    copy_values(texts.data, starts, offsets, out)
    return string_array(offsets, out)


def _measured(
    values: pa.Array, record_keys: pa.Array
) -> tuple[VarlenBuffers, npt.NDArray[np.uint8], VarlenBuffers, npt.NDArray[np.int32]]:
    """Values, their validity, record keys, and the offsets of the joined keys."""
    if record_keys.null_count or len(values) != len(record_keys):
        raise ValueError("Expected a record key for each value.")
    valid = _NO_BYTES if values.null_count == 0 else values.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    texts, keys = varlen_buffers(values), varlen_buffers(record_keys)
    offsets = np.empty(len(values) + 1, np.int32)
    if int(measure_joined(*texts, valid, *keys, offsets)) < 0:
        raise InvalidDataError(f"The secondary keys of {len(values)} rows take 2 GiB or more; pass fewer rows.")
    return texts, valid, keys, offsets


class _Parts(NamedTuple):
    separators: npt.NDArray[np.int32]
    value_offsets: npt.NDArray[np.int32]
    key_offsets: npt.NDArray[np.int32]
    valid: npt.NDArray[np.uint8]


def _parts(keys: pa.Array) -> _Parts:
    count = len(keys)
    bounds = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    found = _Parts(np.empty(count, np.int32), *bounds, np.empty(count, np.uint8))
    texts = varlen_buffers(keys)
    row = int(measure_parts(*texts, found.separators, found.value_offsets, found.key_offsets, found.valid))
    if row >= 0:
        raise CorruptTableError(f"Expected a key of a secondary index (value$record key), found {keys[row].as_py()!r}.")
    return found


def _each(texts: Texts, hashes: Callable[[Sequence[str]], list[str]]) -> pa.Array:
    """The hash of each text; distinct texts are hashed once."""
    found = (texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())).dictionary_encode()
    return pa.array(hashes(found.dictionary.to_pylist()), pa.string()).take(found.indices)


def _partition_hashes(paths: Sequence[str]) -> list[str]:
    return _hashes([path or NON_PARTITIONED for path in paths])


def _hashes(texts: Sequence[str]) -> list[str]:
    array = pa.array(texts, pa.string())
    out = np.empty(len(array), np.uint64)
    xx_hash64(*varlen_buffers(array), _SEED, out)
    big = out.astype(">u8").tobytes()
    return [base64.b64encode(big[at : at + 8]).decode() for at in range(0, len(big), 8)]


_SHOWN = 50
_NUMBER = 32
"""Upper bound for the bytes of a number, date or time as text."""

_ROWS_AT_ONCE = 16384
"""Rows whose entries are measured together; each entry takes 64 KiB at most."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column with a secondary index.

    Attributes:
        index: partition of the metadata table.
        name: name of the column; a dot selects a field of a struct.
    """

    index: str
    name: str

    def root(self, names: list[str]) -> str:
        """The top-level column that holds the values; a column may itself have a dot in its name."""
        return self.name if self.name in names else self.name.partition(".")[0]

    def fields_below(self, root: str) -> list[str]:
        """The names of the fields from the top-level column ``root`` down to the values."""
        return [] if self.name == root else self.name[len(root) + 1 :].split(".")

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The column's stored values in ``rows``, which have its top-level column."""
        root = self.root(rows.schema.names)
        values = single_chunk(rows.column(root))
        for part in self.fields_below(root):
            values = pc.struct_field(values, part)
        return values

    def texts(self, values: pa.Array) -> pa.Array:
        """Values as Java prints them, with dates and times as numbers."""
        if pa.types.is_date32(values.type):
            return values.cast(pa.int32()).cast(pa.string())
        return to_text(values, self.name)

    def refuse_long(self, values: pa.Array, keys: pa.Array, table: str, first_row: int | None = None) -> None:
        """Refuse rows whose entries are too long for the index.

        Args:
            values: n values.
            keys: n record keys.
            table: name or location of the table, for messages.
            first_row: number of the first row, for messages; None for rows without numbers.

        Raises:
            InvalidDataError: an entry is too long; names the first such row.
        """
        is_text = pa.types.is_string(values.type)
        lengths = pc.binary_length(keys).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        if is_text:
            lengths += pc.fill_null(pc.binary_length(values), 1).to_numpy(zero_copy_only=False)
        else:
            lengths += _NUMBER
        doubtful = np.flatnonzero(2 * lengths > LONGEST_KEY)  # each byte may be escaped
        if is_text:
            self._refuse(doubtful[lengths[doubtful] > LONGEST_KEY], lengths, values, keys, table, first_row)
        for start in range(0, len(doubtful), _ROWS_AT_ONCE):
            rows = doubtful[start : start + _ROWS_AT_ONCE]
            taken = pa.array(rows)
            lengths[rows] = secondary_key_lengths(self.texts(values.take(taken)), keys.take(taken))
            self._refuse(rows[lengths[rows] > LONGEST_KEY], lengths, values, keys, table, first_row)

    def _refuse(
        self,
        rows: np.ndarray,
        lengths: np.ndarray,
        values: pa.Array,
        keys: pa.Array,
        table: str,
        first_row: int | None,
    ) -> None:
        if not len(rows):
            return
        row = int(rows[0])
        where = "a row" if first_row is None else f"row {first_row + row}"
        raise InvalidDataError(
            f"Column {self.name!r} of {table} has the index {self.index}. Its entries hold the value and the record "
            f"key, {LONGEST_KEY} bytes together, where each backslash, $ and NUL counts twice. That of {where} has "
            f"{lengths[row]} bytes or more: the value begins with {str(values[row].as_py())[:_SHOWN]!r}, the record "
            f"key with {keys[row].as_py()[:_SHOWN]!r}. Shorten them, or drop the index "
            f"(hoodie.metadata.index.drop={self.index})."
        )


def type_of_column(schema: pa.Schema, column: IndexedColumn) -> pa.DataType | None:
    """The type of a column, or of a field inside structs; None if the schema lacks it."""
    root = column.root(schema.names)
    if root not in schema.names:
        return None
    kind = schema.field(root).type
    for part in column.fields_below(root):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind
