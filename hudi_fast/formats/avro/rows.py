"""Rows as bare Avro binary <-> Arrow record batches: the content of Avro data blocks in log files.

A pair of schemas is resolved once (``avro.program``, ``avro.encoding``); the result is immutable, and can be pickled
and shared by threads. Records are framed by their lengths and split into batches of about ``BATCH_BYTES``, which stay
in the CPU's cache while they are decoded column by column (``avro.columns``, ``kernels.avro_decode``).

::

    data block's content   int32 version (3) | int32 count | count x ( int32 n | n bytes of Avro binary )
         AvroDecoder  ──►  record batches of the reader's schema
         AvroEncoder  ◄──  record batches of the writer's columns

``avro.schema`` has the table of types; unions of several types are structs (``avro.types``). All values are checked
while they are read; see ``CorruptTableError`` below.
Source: HoodieAvroDataBlock of Hudi 1.2.0 (versions 1 to 3 of the block have one layout); Avro 1.11 specification.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.columns import BatchTooLargeError, Rows, corrupt, read_record_columns
from hudi_fast.formats.avro.encoding import WriteRecord, measure_record, plan_columns, write_record
from hudi_fast.formats.avro.program import Record, plan_rows
from hudi_fast.formats.avro.promotion import Promote
from hudi_fast.formats.avro.types import parse_record
from hudi_fast.formats.varlen import string_array
from hudi_fast.kernels.avro_encode import write_frames
from hudi_fast.kernels.avro_structure import frame_records
from hudi_fast.values import dataclass

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "AvroDecoder", "AvroEncoder", "Promote", "block_content_head"]

BATCH_BYTES = 768 * 1024
"""Bytes of records after which :meth:`AvroDecoder.decode_block` ends a batch."""

BATCH_ROWS = 32 * 1024
"""Maximum rows of a batch of :meth:`AvroDecoder.decode_block`."""

_VERSIONS = (1, 2, 3)
_HEAD = 8
_FRAME = 4
_WORD = 8
_MAX_BYTES = 2**31 - 1
_WRITER = "the writer's Avro schema"

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AvroDecoder:
    """Decodes Avro records of one writer schema into record batches of one Arrow schema; immutable, can be pickled.

    Attributes:
        reader: schema of the batches, without metadata.
        plan: how to read each column.
    """

    reader: pa.Schema
    plan: Record

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
        """Resolve a writer's schema against the requested columns.

        Args:
            writer_schema: Avro JSON text of the records' schema (header SCHEMA of a log block).
            reader: requested columns, in any order, of storable types. Columns that the writer lacks become null, or
                the default of ``reader_avro``.
            where: location of ``writer_schema``, for messages.
            reader_avro: Avro JSON text of the reader's schema, for defaults and aliases; its types are ignored.
            promote: conversions of scalar types that precede the built-in conversions: int to long, float and double;
                long to float, double and timestamp; float to double; string to bytes and back; decimals to wider
                decimals; timestamps and times to other units. ``schema.cast.stored_cast`` adds numbers to string, and
                timestamps with a wrong label.

        Raises:
            SchemaMismatchError: columns cannot be converted to the reader's columns; the message lists all of them.
            CorruptTableError: ``writer_schema`` is not an Avro record schema.
            UnsupportedFeatureError: hudi_fast cannot hold a requested column, for example a record that contains
                itself. In other columns such records are skipped.
        """
        own = None if reader_avro is None else parse_record(reader_avro, "the reader's schema")
        bare = reader.remove_metadata()
        bare = pa.schema([each.remove_metadata() for each in bare])
        return cls(bare, plan_rows(parse_record(writer_schema, where, recursive=True), bare, where, own, promote))

    def decode_block(self, content: pa.Buffer | Bytes, path: str | None, offset: int) -> Iterator[pa.RecordBatch]:
        """Decode the rows of an Avro data block, in order.

        Args:
            content: the block's content, as stored.
            path: the log file, for messages.
            offset: position of the content in the file, for messages.

        Returns:
            Batches of :attr:`reader`, of about BATCH_BYTES of records or BATCH_ROWS rows each; no batch for a block
            without records.

        Raises:
            CorruptTableError: the bytes do not match the format or the writer's schema; names file and byte.
            InvalidDataError: the reader's schema does not allow a value (a null, a timestamp out of range).
        """
        data = np.frombuffer(content, np.uint8)
        count = _block_count(data, path, offset)
        room = min(count, BATCH_ROWS)
        starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        at = _HEAD
        while count:
            limit = min(count, BATCH_ROWS)
            found = frame_records(data, at, limit, BATCH_BYTES, starts, ends)
            if found < 0:
                raise _bad_frame(data, at, int(-found // 16), ends, path, offset)
            yield from self._in_parts(Rows(data, starts[:found], ends[:found], path, offset))
            at = int(ends[found - 1])
            count -= found
        if at != len(data):
            raise CorruptTableError(
                f"Avro data block: expected its end after the last record, found {len(data) - at} more bytes.",
                path,
                offset + at,
            )

    def decode_records(
        self, data: Bytes, starts: Int64s, ends: Int64s, path: str | None = None, offset: int = 0
    ) -> pa.RecordBatch:
        """Decode records anywhere in ``data`` as one batch.

        Args:
            data: uint8[].
            starts: int64[n], the start of each record.
            ends: int64[n], the end of each record.
            path: the file, for messages.
            offset: position of ``data`` in the file, for messages.

        Returns:
            n rows of :attr:`reader`.

        Raises:
            ValueError: a record does not lie within ``data``.
            UnsupportedFeatureError: a column of the batch exceeds 2 GiB; pass fewer records.
            CorruptTableError, InvalidDataError: as :meth:`decode_block`.
        """
        if starts.shape != ends.shape or starts.ndim != 1:
            raise ValueError(f"Expected as many ends as starts, got {ends.shape} and {starts.shape}.")
        if len(starts) and (starts.min() < 0 or ends.max() > len(data) or (starts > ends).any()):
            raise ValueError(f"Expected records within {len(data)} bytes.")
        if len(data) < _WORD:
            data = np.concatenate((data, np.zeros(_WORD, np.uint8)))  # kernels load whole words
        rows = Rows(np.ascontiguousarray(data), starts, np.ascontiguousarray(ends, np.int64), path, offset)
        try:
            return self._batch(rows)
        except BatchTooLargeError as error:
            raise UnsupportedFeatureError(
                f"{len(starts)} Avro records have more in {error} than one batch holds (2 GiB); decode fewer at once."
            ) from error

    def _in_parts(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        try:
            batch = self._batch(rows)
        except BatchTooLargeError as error:
            half = len(rows.pos) // 2
            if half == 0:
                raise UnsupportedFeatureError(
                    f"One Avro record has more in {error} than a batch holds (2 GiB) [file {rows.path}]."
                ) from error
            yield from self._in_parts(Rows(rows.data, rows.pos[:half], rows.ends[:half], rows.path, rows.offset))
            yield from self._in_parts(Rows(rows.data, rows.pos[half:], rows.ends[half:], rows.path, rows.offset))
        else:
            yield batch

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        reading = Rows(rows.data, rows.pos.astype(np.int64), rows.ends, rows.path, rows.offset)
        columns = read_record_columns(self.plan, reading)
        wrong = reading.pos != rows.ends
        if self.plan.whole and wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise corrupt("the record to end with its last column", f"row {row}", reading, int(reading.pos[row]))
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), len(rows.pos), [None]))
        return pa.RecordBatch.from_arrays(columns, schema=self.reader)


def _block_count(data: Bytes, path: str | None, offset: int) -> int:
    """The number of records, from the head of the block."""
    if len(data) < _HEAD:
        raise CorruptTableError(f"Avro data block: expected {_HEAD} bytes or more, found {len(data)}.", path, offset)
    version, count = (int(each) for each in data[:_HEAD].view(">i4"))
    if version not in _VERSIONS:
        raise CorruptTableError(f"Avro data block: expected version 1, 2 or 3, found {version}.", path, offset)
    if not 0 <= count <= (len(data) - _HEAD) // 4:
        raise CorruptTableError(
            f"Avro data block: expected a count of records that {len(data)} bytes can hold, found {count}.",
            path,
            offset + 4,
        )
    return count


def _bad_frame(data: Bytes, at: int, row: int, ends: Int64s, path: str | None, offset: int) -> CorruptTableError:
    where = int(ends[row - 1]) if row else at
    found = data[where : where + 4].tobytes().hex() or "nothing"
    return CorruptTableError(
        f"Avro data block: expected the length of a record within {len(data)} bytes, found {found}.",
        path,
        offset + where,
    )


@dataclass(frozen=True, slots=True, eq=False)
class AvroEncoder:
    """Encodes record batches of one Arrow schema as Avro records of one writer schema; immutable, can be pickled.

    Attributes:
        schema: schema of the batches.
        plan: how to write each column.
    """

    schema: pa.Schema
    plan: WriteRecord

    @classmethod
    def compile(cls, schema: pa.Schema, writer_schema: str) -> AvroEncoder:
        """Resolve the columns of batches against a writer's schema.

        Args:
            schema: schema of the batches: storable types, or dictionaries of them, in any order. Columns that only the
                writer has become their default, or null.
            writer_schema: Avro JSON text. Its unions of null and one type may have either order.

        Raises:
            SchemaMismatchError: columns are unknown, missing or of a wrong type; the message lists all of them.
            CorruptTableError: ``writer_schema`` is not an Avro record schema.
            UnsupportedFeatureError: the writer has a type that hudi_fast cannot hold.
        """
        bare = pa.schema([each.remove_metadata() for each in schema])
        return cls(bare, plan_columns(bare, parse_record(writer_schema, _WRITER), _WRITER))

    def encode_records(self, batch: pa.RecordBatch) -> tuple[Bytes, Int64s]:
        """Encode the rows of a batch, in order.

        Args:
            batch: n rows of :attr:`schema`.

        Returns:
            uint8[], length-framed records (int32 big endian, then Avro binary), which follow :func:`block_content_head`
            in a block; and int64[n + 1], the start of each record and the end of the last.

        Raises:
            InvalidDataError: the writer does not allow a null, an enum lacks a text, a decimal does not fit, or a
                record has 2 GiB; the message names column and row.
            SchemaMismatchError: the batch has another schema.
        """
        return self._encode(batch, _FRAME)

    def encode_values(self, batch: pa.RecordBatch) -> pa.Array:
        """Encode the rows of a batch as binary[n]: the bare Avro binary of each row.

        Args:
            batch: n rows of :attr:`schema`.

        Raises:
            UnsupportedFeatureError: the values take 2 GiB or more; pass fewer rows.
            InvalidDataError, SchemaMismatchError: as :meth:`encode_records`.
        """
        out, bounds = self._encode(batch, 0)
        if bounds[-1] > _MAX_BYTES:
            raise UnsupportedFeatureError(f"{batch.num_rows} rows take {bounds[-1]} bytes in Avro; most: {_MAX_BYTES}.")
        return string_array(bounds.astype(np.int32), out, pa.binary())

    def _encode(self, batch: pa.RecordBatch, frame: int) -> tuple[Bytes, Int64s]:
        """The records, each after ``frame`` bytes for its length (4 or 0), and their bounds."""
        if not batch.schema.equals(self.schema):
            raise SchemaMismatchError(
                f"This encoder expects rows with the schema\n{self.schema}\nand got rows with\n{batch.schema}"
            )
        sizes = np.full(batch.num_rows, frame, np.int64)
        state = measure_record(self.plan, batch.columns, sizes)
        if len(sizes) and sizes.max() > _MAX_BYTES:
            row = int(sizes.argmax())
            raise InvalidDataError(f"Row {row} takes {sizes[row]} bytes as an Avro record; most: {_MAX_BYTES}.")
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        out = np.empty(int(bounds[-1]), np.uint8)
        if frame:
            write_frames(bounds, out)
        first = 0
        while first < len(sizes):
            after = max(int(np.searchsorted(bounds, bounds[first] + BATCH_BYTES)), first + 1)
            after = min(after, len(sizes))
            write_record(state, first, after, bounds[first:after] + frame, bounds[first + 1 : after + 1], out)
            first = after
        return out, bounds


def block_content_head(count: int) -> bytes:
    """The head of a data block's content: int32 version (3), int32 count, big endian."""
    return (3).to_bytes(4, "big") + count.to_bytes(4, "big")
