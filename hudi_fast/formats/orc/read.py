"""Reads ORC base files: Arrow decodes stripes; the tail has their numbers of rows, Hudi's keys and the Avro schema.

::

    tail ─► rows of stripes, keys, ``orc.avro.schema`` ─► schema
    stripe ─► streams of the wanted columns ─► checks ─► Arrow ─► columns in the types of the schema ─► batches

Memory holds one stripe of the requested columns, encoded and decoded. ORC types are coarser than Avro's, so the Avro
schema that Hudi stores in the file determines the types (:mod:`hudi_fast.formats.orc.types`). Files without an Avro
schema get the types that Hudi derives for them.

Source: ``HoodieAvroOrcWriter``, ``HoodieAvroOrcReader``, ``OrcUtils`` (1.2.0); ``HoodieOrcWriter`` (0.15.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from zoneinfo import ZoneInfoNotFoundError

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader, file_errors, footer_of, rows_without_columns
from hudi_fast.formats.orc.stripe import (
    DATA,
    DICTIONARY_DATA,
    LENGTH,
    PRESENT,
    SECONDARY,
    StripeFooter,
    StripeStreams,
    StripeTimestamps,
    parse_stripe_footer,
    read_streams,
)
from hudi_fast.formats.orc.tail import NO_CODEC, OrcTail, check_levels, parse_tail
from hudi_fast.formats.orc.types import (
    count_types,
    has_timestamps,
    in_stored_types,
    is_utc,
    parts_of,
    plain_type,
    seconds_ahead,
    type_numbers,
)
from hudi_fast.kernels.orc_runs import RunBounds
from hudi_fast.storage.base import Storage

__all__ = ["SCHEMA_KEY", "OrcReader", "arrow_orc", "open_orc_file"]

SCHEMA_KEY = b"orc.avro.schema"
"""Key of the user metadata whose value is the Avro schema of the file's rows."""

_COMPRESSED = 4
"""Approximate uncompressed bytes for each byte of a compressed file."""

_MAX_FOOTER = 1 << 20
"""Maximum bytes of a stripe's footer."""

Result = TypeVar("Result")


def arrow_orc() -> Any:
    """Arrow's ORC module, loaded on first use: some builds of pyarrow lack it.

    Raises:
        UnsupportedFeatureError: pyarrow lacks the module.
    """
    try:
        import pyarrow.orc
    except ImportError as error:
        raise UnsupportedFeatureError(
            f"This build of pyarrow has no ORC ({error}), which the table's base files need. Install pyarrow from PyPI."
        ) from error
    return pyarrow.orc


class OrcReader(BaseFileReader):
    """One open ORC file; a row group is a stripe.

    Args:
        storage: storage of the file.
        path: path of the file in the storage, also for messages.
        source: the open file.
    """

    def __init__(self, storage: Storage, path: str, source: pa.NativeFile) -> None:
        self.path = path
        self._storage = storage
        self._source = source
        self._reread(lambda: check_levels(source, path))
        self._file = self._reread(lambda: arrow_orc().ORCFile(source))
        self._serialized: bytes = self._file.reader.serialized_file_tail()
        self._tail: OrcTail = parse_tail(self._serialized, path)
        self._as_read: pa.Schema = self._file.schema
        self._schema = _schema_of(self._tail, self._as_read)
        self._numbers = type_numbers(self._as_read)
        self._footers: dict[int, StripeFooter] = {}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._tail.rows

    @property
    def num_row_groups(self) -> int:
        """Number of stripes."""
        return len(self._tail.stripes)

    @property
    def location(self) -> tuple[Storage, str]:
        """The storage of the file, and its path there."""
        return self._storage, self.path

    @property
    def stored_bytes(self) -> int:
        """Approximate bytes of all rows before compression."""
        return int(self._file.content_length) * (1 if self._tail.sections.codec == NO_CODEC else _COMPRESSED)

    def footer(self) -> BaseFileFooter:
        """Hudi's keys in the user metadata.

        Raises:
            CorruptTableError: a value is not UTF-8.
        """
        with file_errors(self.path, self._storage, "ORC"):
            return footer_of(self._tail.metadata)

    def row_group_rows(self) -> list[int]:
        """Number of rows of each stripe."""
        return [one.rows for one in self._tail.stripes]

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read whole columns, of all or some stripes."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        numbers = range(self.num_row_groups) if row_groups is None else row_groups
        batches = [self._stripe(number, columns) for number in numbers]
        return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        for number in range(self.num_row_groups) if row_groups is None else row_groups:
            stripe = self._stripe(number, columns)
            for start in range(0, stripe.num_rows, batch_rows):
                yield stripe.slice(start, batch_rows)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _stripe(self, number: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of one stripe."""
        rows = self._tail.stripes[number].rows
        if not columns or not rows:
            fields = [self._schema.field(name) for name in columns]
            return pa.RecordBatch.from_pylist([], pa.schema(fields)) if columns else rows_without_columns(rows)
        schema = pa.schema([self._schema.field(name) for name in columns])
        with self._explained(number):
            streams = self._streams(number, columns)
            for one in columns:
                _check_column(streams, one, self._as_read.field(one).type, self._numbers[one][0])
            found, times = self._decoded(streams, columns)
            if found.num_rows != rows or not set(columns) <= set(found.schema.names):
                raise pa.ArrowInvalid(f"{found.num_rows} rows of {found.schema.names}, expected {rows}")
            found.validate(full=True)  # ORC has no checksums, and a text may end within a character
            arrays = []
            for one in schema:
                stored, first = self._as_read.field(one.name).type, self._numbers[one.name][0]
                arrays.append(in_stored_types(found.column(one.name), stored, one.type, first, times))
            return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _decoded(
        self, streams: StripeStreams, columns: Sequence[str]
    ) -> tuple[pa.RecordBatch, StripeTimestamps | None]:
        """The columns of a stripe as Arrow reads them; also its timestamps, if Arrow reads them as seconds."""
        if not self._needs_exact(streams.footer, columns):
            try:
                return self._by_arrow(streams, columns, timestamps_as_numbers=False), None
            except pa.ArrowInvalid as error:
                if "out of range for nanosecond" not in str(error):
                    raise  # otherwise a file without statistics
        times = StripeTimestamps(streams, self._ahead(streams.footer.zone))
        return self._by_arrow(streams, columns, timestamps_as_numbers=True), times

    def _by_arrow(self, streams: StripeStreams, columns: Sequence[str], timestamps_as_numbers: bool) -> pa.RecordBatch:
        alone = streams.as_file(self._serialized, timestamps_as_numbers)
        return arrow_orc().ORCFile(pa.BufferReader(alone)).read_stripe(0, list(columns))

    def _needs_exact(self, footer: StripeFooter, columns: Sequence[str]) -> bool:
        """Whether Arrow would change timestamps of a stripe: by a writer outside UTC, or beyond Arrow's range."""
        if not any(has_timestamps(self._as_read.field(name).type) for name in columns):
            return False
        return not is_utc(footer.zone) or any(not self._tail.far.isdisjoint(self._numbers[name]) for name in columns)

    def _streams(self, number: int, columns: Sequence[str]) -> StripeStreams:
        """The streams of columns of a stripe."""
        stripe = self._tail.stripes[number]
        if number not in self._footers:
            if not 0 < stripe.footer_length <= _MAX_FOOTER or stripe.end > self._source.size():
                raise ValueError(f"a footer of {stripe.footer_length} bytes, up to {stripe.end}")
            stored = self._read_at(stripe.footer_offset, stripe.footer_length)
            self._footers[number] = parse_stripe_footer(self._tail.sections, stripe, stored)
        wanted = {0}.union(*(self._numbers[name] for name in columns))
        return read_streams(self._tail, stripe, self._footers[number], wanted, self._read_at)

    def _read_at(self, start: int, length: int) -> bytes:
        return self._reread(lambda: bytes(self._source.read_at(length, start)))

    def _ahead(self, zone: str) -> int:
        if is_utc(zone):
            return 0
        try:
            return seconds_ahead(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UnsupportedFeatureError(
                f"The writer of the ORC file {self.path} of {self._storage.uri} was in the time zone {zone!r}, which "
                "this machine does not know. Install the package tzdata."
            ) from error

    @contextmanager
    def _explained(self, number: int) -> Iterator[None]:
        """Raise errors of a stripe, including Arrow's, as errors of the file."""
        with file_errors(self.path, self._storage, "ORC"):
            try:
                yield
            except (KeyError, ValueError) as error:  # a struct lacks a field of the Avro schema, or a damaged stream
                if isinstance(error, pa.ArrowException | UnicodeDecodeError):
                    raise
                raise pa.ArrowInvalid(f"stripe {number}: {error}") from error

    def _reread(self, read: Callable[[], Result]) -> Result:
        return self._storage.reread(self.path, read)


def open_orc_file(storage: Storage, path: str, size: int | None = None) -> OrcReader:
    """Open an ORC file.

    Args:
        storage: storage of the file.
        path: path of the file in the storage.
        size: size of the file in bytes, if known; saves a request to an object store.

    Raises:
        FileGoneError: the file is missing.
        CorruptTableError: the file is cut off, or not an ORC file.
        UnsupportedFeatureError: a column is encrypted, or has a type that Arrow does not have.
    """
    with file_errors(path, storage, "ORC"):
        source = storage.open_input(path, size)
        try:
            return OrcReader(storage, path, source)
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedFeatureError(f"The ORC file {path} of {storage.uri} cannot be read: {error}.") from error


def _schema_of(tail: OrcTail, as_read: pa.Schema) -> pa.Schema:
    """The columns, in the types of the file's Avro schema if it has one.

    Raises:
        CorruptTableError: the Avro schema is invalid, or two columns have the same name.
    """
    path = tail.sections.path
    if len(set(as_read.names)) < len(as_read.names):
        raise CorruptTableError(f"Columns of the ORC file have one name: {as_read.names}. Restore the file.", path)
    text = tail.metadata.get(SCHEMA_KEY)
    known = pa.schema([]) if text is None else avro_to_arrow(text.decode(), path)
    return pa.schema(
        [known.field(one.name) if one.name in known.names else one.with_type(plain_type(one.type)) for one in as_read]
    )


# ---- refuse damaged streams that would make Arrow's reader end the process, or keep it busy
#
# Apache ORC's reader allocates the sum of the lengths of texts and of the numbers of entries, even if the bytes are not
# there. With an invalid scale it divides for minutes. Arrow ends the process if the key of a map is null.
#
# Source: ``ColumnReader.cc`` of Apache ORC 2.2, ``MapArray`` of Arrow 26; observed with damaged files.


_MAX_VALUES = 2**31 - 1
"""Maximum values of an array: offsets of Arrow's arrays have 32 bits."""

_VALUES_OF_A_BYTE = 520
"""Maximum values for each byte: two bytes repeat eight flags 130 times."""

_MAX_SCALE = 38


def _check_column(streams: StripeStreams, name: str, kind: pa.DataType, number: int) -> None:
    """Refuse a column of a stripe that would end the process of Arrow's reader.

    Args:
        streams: streams of the stripe, including the streams of the column and its parts.
        name: the column, for messages.
        kind: the column's type as Arrow reads it.
        number: number of the column's ORC type.

    Raises:
        ValueError: the column is refused.
        UnsupportedFeatureError: the file is compressed with LZO.
    """
    try:
        _check_values(streams, kind, number, streams.stripe.rows)
    except ValueError as error:
        raise ValueError(f"column {name}: {error}") from error


# ---- internals


def _check_values(streams: StripeStreams, kind: pa.DataType, number: int, count: int) -> None:
    """Check ``count`` values: the values of a column, or the entries of a list."""
    size = sum(
        streams.max_bytes(one, stream)
        for one in range(number, number + count_types(kind))
        for stream in range(SECONDARY + 1)
    )
    if count > min(_VALUES_OF_A_BYTE * size, _MAX_VALUES):
        raise ValueError(f"{count} values in {size} bytes")
    _check(streams, kind, number, count)


def _check(streams: StripeStreams, kind: pa.DataType, number: int, limit: int) -> None:
    """Check a type that has up to ``limit`` values, and its parts."""
    streams.encoding(number)  # Apache ORC's reader does not check that there is an encoding
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        _check_texts(streams, number, limit)
    elif pa.types.is_decimal(kind):
        found = streams.bounds(number, SECONDARY, limit, is_signed=True)
        if found.numbers and not 0 <= found.least <= found.largest <= _MAX_SCALE:
            raise ValueError(f"decimals of the scales {found.least} to {found.largest}")
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        entries = _total(streams.bounds(number, LENGTH, limit), _MAX_VALUES)
        for place, (part, its_number) in enumerate(parts_of(kind, number)):
            _check_values(streams, part, its_number, entries)
            if pa.types.is_map(kind) and not place and _has_nulls(streams, its_number, entries):
                raise ValueError("null as the key of a map")
        return
    for part, its_number in parts_of(kind, number):
        _check(streams, part, its_number, limit)


def _check_texts(streams: StripeStreams, number: int, limit: int) -> None:
    encoding = streams.encoding(number)
    if not encoding.has_dictionary:
        _total(streams.bounds(number, LENGTH, limit), streams.max_bytes(number, DATA))
        return
    if not 0 <= encoding.dictionary_size <= limit:
        raise ValueError(f"a dictionary of {encoding.dictionary_size} for {limit} values")
    lengths = streams.bounds(number, LENGTH, encoding.dictionary_size)
    _total(lengths, streams.max_bytes(number, DICTIONARY_DATA))


def _total(lengths: RunBounds, limit: int) -> int:
    """The sum of lengths; raises if it exceeds ``limit``."""
    if (lengths.numbers and lengths.least < 0) or lengths.total > min(limit, _MAX_VALUES):
        raise ValueError(f"lengths from {lengths.least} that add up to {lengths.total}, where {limit} are possible")
    return lengths.total


def _has_nulls(streams: StripeStreams, number: int, count: int) -> bool:
    """Whether one of the first ``count`` flags of a type is not set."""
    if not streams.has(number, PRESENT):
        return False
    content = streams.content(number, PRESENT, count + 64)  # at worst one header for every two bytes of eight flags
    at = found = 0
    while found < count:
        if at + 1 >= len(content):
            raise ValueError("flags are cut off")
        head = content[at]
        size = 1 if head < 128 else 256 - head
        flags = content[at + 1 : at + 1 + size] * (head + 3 if head < 128 else 1)
        whole, rest = divmod(min(8 * len(flags), count - found), 8)
        if flags[:whole].strip(b"\xff") or (rest and flags[whole] >> 8 - rest != (1 << rest) - 1):
            return True
        found += 8 * len(flags)
        at += 1 + size
    return False
