"""The tail of an ORC file, decoded as far as base files need, and new tails with user metadata.

::

    ORC | stripes | statistics of stripes | footer | postscript | length of the postscript, 1 byte
        each: index, data, footer          types, stripes, user metadata       sizes of the sections, codec

Arrow reads and writes the rows. It does not tell how many rows a stripe has and which time zone its writer had, and it
writes no user metadata; these are protobuf messages, which this module reads and rewrites.

A section is stored in chunks: three bytes with length and a bit for "not compressed", and the content. New sections are
not compressed.

Source: ORC specification v1, "File Tail" and "Stripe Footer"; orc_proto.proto of Apache ORC 2.0.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.hfile.messages import bytes_field, message_fields, number_field
from hudi_fast.formats.varint import snappy_size

__all__ = [
    "DIRECT_V2",
    "SECONDARY",
    "OrcTail",
    "Stripe",
    "StripeStreams",
    "check_levels",
    "parse_tail",
    "with_metadata",
]

_POSTSCRIPT, _FOOTER = 1, 2
"""Fields of ``FileTail``."""

_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _STATISTICS_LENGTH = 1, 2, 3, 5
"""Fields of ``PostScript``."""

_STRIPES, _TYPES, _METADATA, _ROWS, _STATISTICS, _ENCRYPTION = 3, 4, 5, 6, 7, 10
"""Fields of ``Footer``."""

_OF_TIMESTAMPS = 9
"""Field of ``ColumnStatistics``: bounds of timestamps, in milliseconds since 1970."""

_MOST_MILLIS = 2**63 // 10**6 - 86_400_000
"""Milliseconds up to which Arrow's timestamps in nanoseconds reach, less a day for time zones."""

_STREAMS, _ENCODINGS, _ZONE = 1, 2, 3
"""Fields of ``StripeFooter``."""

SECONDARY = 5
"""Kind of a stream: nanoseconds of timestamps, scales of decimals."""

DIRECT_V2 = 2
"""Kind of a column's encoding."""

_LONG, _TIMESTAMPS, _DECIMAL = 4, (9, 18), 14
"""Kinds of types."""

_MOST_DIGITS, _MOST_LEVELS = 38, 64
_END = 64 << 10
"""Bytes that are read for a tail at once."""


_MAGIC = b"ORC"
_MOST_FOOTER = 64 << 20
"""Maximum bytes of a section that is read here."""

_MOST_BLOCK = 1 << 23
"""Bytes before compression that a chunk must have fewer of: what the length in its header can say."""

_MALFORMED = (ValueError, KeyError, TypeError, zlib.error, pa.ArrowException, OSError)

NO_CODEC, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe; lengths in bytes.

    Attributes:
        offset: its first byte in the file.
        index_length: length of its indexes.
        data_length: length of its columns.
        footer_length: length of its footer.
        rows: number of rows.
    """

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def footer_offset(self) -> int:
        """The first byte of its footer."""
        return self.offset + self.index_length + self.data_length

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.footer_offset + self.footer_length


@dataclass(frozen=True, slots=True)
class OrcTail:
    """A file's tail.

    Attributes:
        path: the file, for messages.
        codec: of sections and columns, ``CompressionKind``.
        block_size: maximum bytes of a chunk before compression.
        stripes: in file order.
        metadata: user metadata.
        rows: number of rows.
        far: numbers of types whose timestamps may be beyond the range of nanoseconds; 0 is the row, its columns and
            their parts follow, each before its own parts.
    """

    path: str
    codec: int
    block_size: int
    stripes: tuple[Stripe, ...]
    metadata: Mapping[bytes, bytes]
    rows: int
    far: frozenset[int] = frozenset()


def parse_tail(serialized: bytes, path: str) -> OrcTail:
    """Decode a ``FileTail``, which has postscript and footer uncompressed.

    Raises:
        CorruptTableError: it is malformed, or the stripes do not have the file's number of rows.
        UnsupportedFeatureError: columns are encrypted.
    """
    codec = block_size = rows = columns = 0
    far = set[int]()
    stripes: list[Stripe] = []
    metadata: dict[bytes, bytes] = {}
    try:
        for number, value in message_fields(memoryview(serialized)):
            if number == _POSTSCRIPT:
                script = dict(message_fields(_bytes(value)))
                codec, block_size = _integer(script.get(_COMPRESSION, 0)), _integer(script.get(_BLOCK_SIZE, 0))
            elif number == _FOOTER:
                for field, part in message_fields(_bytes(value)):
                    if field == _STRIPES:
                        stripes.append(_stripe(_bytes(part)))
                    elif field == _METADATA:
                        item = dict(message_fields(_bytes(part)))
                        metadata[bytes(_bytes(item[1]))] = bytes(_bytes(item.get(2, memoryview(b""))))
                    elif field == _TYPES:
                        _check_type(_bytes(part))
                    elif field == _ROWS:
                        rows = _integer(part)
                    elif field == _STATISTICS:
                        if _is_far(_bytes(part)):
                            far.add(columns)
                        columns += 1
                    elif field == _ENCRYPTION and len(_bytes(part)):
                        raise UnsupportedFeatureError(f"The ORC file {path} has encrypted columns.")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"The tail of the ORC file is malformed ({error!r}). Restore the file.", path
        ) from error
    if sum(one.rows for one in stripes) != rows:
        found = [one.rows for one in stripes]
        raise CorruptTableError(f"An ORC file of {rows} rows has stripes of {found} rows. Restore the file.", path)
    return OrcTail(path, codec, block_size, tuple(stripes), metadata, rows, frozenset(far))


def check_levels(source: pa.NativeFile, path: str) -> None:
    """Refuse a file whose types are nested so deeply, or whose blocks are so large, that Apache ORC's reader ends the
    process.

    Raises:
        CorruptTableError: it is one, or the file has no tail.
        UnsupportedFeatureError: it is compressed with LZO.
    """
    try:
        size = source.size()
        end = source.read_at(min(size, _END), max(0, size - _END))
        script = end[-1 - end[-1] : -1]
        fields = dict(message_fields(memoryview(script)))
        codec, block_size = _integer(fields.get(_COMPRESSION, 0)), _integer(fields.get(_BLOCK_SIZE, 0))
        if codec != NO_CODEC and not 0 < block_size < _MOST_BLOCK:
            raise ValueError(f"compressed in blocks of {block_size} bytes")
        length, behind = _integer(fields[_FOOTER_LENGTH]), len(script) + 1
        if not 0 < length <= min(size - behind, _MOST_FOOTER):
            raise ValueError(f"a footer of {length} bytes in a file of {size}")
        if length + behind > len(end):
            end = source.read_at(length + behind, size - length - behind)
        footer = _section(OrcTail(path, codec, block_size, (), {}, 0), end[-length - behind : -behind])
        types = [value for number, value in message_fields(memoryview(footer)) if number == _TYPES]
        levels = [0] * len(types)
        for number, kind in enumerate(types):
            for part in _parts_of(_bytes(kind)):
                if not number < part < len(types) or levels[number] == _MOST_LEVELS:
                    raise ValueError(f"type {number} at level {levels[number]} with the part {part} of {len(types)}")
                levels[part] = levels[number] + 1
    except (ValueError, KeyError, TypeError, IndexError, zlib.error) as error:  # storage raises its own OSError
        raise CorruptTableError(
            f"The file does not end as ORC ends ({error!r}). It is cut off or damaged; restore it.", path
        ) from error


def _parts_of(type_: memoryview) -> Iterator[int]:
    """The numbers of a type's parts."""
    for field, value in message_fields(type_):
        if field == 2 and isinstance(value, int):
            yield value
        elif field == 2:
            number = place = 0
            for byte in _bytes(value):
                number |= (byte & 0x7F) << place
                place += 7
                if byte < 0x80:
                    yield number
                    number = place = 0


class StripeStreams:
    """The streams of a stripe.

    Args:
        tail: of its file.
        stripe: the stripe.
        stored: its bytes, or those of its footer.

    Raises:
        CorruptTableError: the stripe's footer is malformed.
        UnsupportedFeatureError: it is compressed with LZO.
    """

    def __init__(self, tail: OrcTail, stripe: Stripe, stored: bytes) -> None:
        self.path = tail.path
        self._tail = tail
        self._stripe = stripe
        self._stored = stored
        self._fields: list[tuple[int, memoryview]] = []
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        self._encodings: list[int] = []
        footer = stored[len(stored) - stripe.footer_length :]
        end = 0
        try:
            for number, value in message_fields(memoryview(_section(tail, footer))):
                message = _bytes(value)
                self._fields.append((number, message))
                if number == _STREAMS:
                    kind, column, length = _numbers(message, 3)
                    self._places.setdefault((column, kind), (end, length))  # Arrow takes the first, too
                    end += length
                elif number == _ENCODINGS:
                    self._encodings.append(_numbers(message, 1)[0])
        except _MALFORMED as error:
            raise self._malformed(error) from error

    @property
    def zone(self) -> str:
        """The time zone of the stripe's writer; empty if it wrote none."""
        return bytes(dict(self._fields).get(_ZONE, b"")).decode("utf-8", "replace")

    def encoding(self, number: int) -> int:
        """The kind of encoding of a type, ``ColumnEncoding.Kind``; -1 without one."""
        return self._encodings[number] if number < len(self._encodings) else -1

    def content(self, number: int, kind: int) -> bytes:
        """A stream of a type, before compression; empty if there is none.

        Raises:
            CorruptTableError: it is malformed.
        """
        start, length = self._places.get((number, kind), (0, 0))
        if length < 0 or start + length > len(self._stored):
            raise self._malformed(ValueError(f"a stream of {length} bytes"))
        return self.decoded(self._stored[start : start + length])

    def place(self, number: int, kind: int) -> tuple[int, int]:
        """The first byte of a stream of a type in the file, and its length; 0 if there is none.

        Raises:
            CorruptTableError: it is not in its stripe.
        """
        start, length = self._places.get((number, kind), (0, 0))
        if not 0 <= start <= start + length <= self._stripe.end - self._stripe.offset:
            raise self._malformed(ValueError(f"a stream of {length} bytes at {start}"))
        return self._stripe.offset + start, length

    def decoded(self, stored: bytes, most: int | None = None) -> bytes:
        """A stream before compression.

        Raises:
            CorruptTableError: it is malformed, or has more than ``most`` bytes.
        """
        try:
            return _section(self._tail, stored, most)
        except _MALFORMED as error:
            raise self._malformed(error) from error

    def alone(self, serialized: bytes) -> bytes:
        """A file with this stripe alone, whose timestamps are declared as numbers of 64 bits.

        ``serialized`` is the ``FileTail`` of the stripe's file.
        """
        tail, stripe = self._tail, self._stripe
        old = dict(message_fields(memoryview(serialized)))
        numbers = (len(_MAGIC), stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows)
        information = b"".join(number_field(field, number) for field, number in enumerate(numbers, 1))
        dropped = (_STRIPES, _METADATA, _ROWS, _STATISTICS)
        fields: list[tuple[int, int | memoryview | bytes]] = [
            (field, _as_number(_bytes(value)) if field == _TYPES else value)
            for field, value in message_fields(_bytes(old[_FOOTER]))
            if field not in dropped
        ]
        message = _message([*fields, (_STRIPES, information), (_ROWS, stripe.rows)])
        footer = _section_of(tail.codec, tail.block_size, message)
        lengths = {_FOOTER_LENGTH: len(footer), _STATISTICS_LENGTH: 0}
        return _MAGIC + self._stored + footer + _postscript(_bytes(old[_POSTSCRIPT]), lengths)

    def _malformed(self, error: Exception) -> CorruptTableError:
        text = f"A stripe of the ORC file is malformed ({error!r}). Restore it."
        return CorruptTableError(text, self.path, self._stripe.offset)


def with_metadata(content: bytes, serialized: bytes, pairs: Mapping[bytes, bytes]) -> bytes:
    """The end of a file, with user metadata.

    Args:
        content: the last bytes of a file without user metadata: at least its footer and what follows.
        serialized: its ``FileTail``.
        pairs: the user metadata.

    Returns:
        The bytes to store in place of ``content``.
    """
    old = dict(message_fields(memoryview(serialized)))
    script = dict(message_fields(_bytes(old[_POSTSCRIPT])))
    items = [(_METADATA, bytes_field(1, name) + bytes_field(2, value)) for name, value in pairs.items()]
    codec, block_size = _integer(script.get(_COMPRESSION, NO_CODEC)), _integer(script.get(_BLOCK_SIZE, 0))
    footer = _section_of(codec, block_size, bytes(_bytes(old[_FOOTER])) + _message(items))
    before = len(content) - 1 - content[-1] - _integer(script[_FOOTER_LENGTH])
    return content[:before] + footer + _postscript(_bytes(old[_POSTSCRIPT]), {_FOOTER_LENGTH: len(footer)})


# ---- internals


def _stripe(message: memoryview) -> Stripe:
    fields = {number: _integer(value) for number, value in message_fields(message) if number < 6}
    stripe = Stripe(*(fields.get(number, 0) for number in range(1, 6)))
    if min(stripe.offset, stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows) < 0:
        raise ValueError(f"a {stripe}")
    return stripe


def _check_type(type_: memoryview) -> None:
    """Refuse a decimal that ends Arrow's process."""
    fields = dict(message_fields(type_))
    precision, scale = _integer(fields.get(5, 0)), _integer(fields.get(6, 0))
    if fields.get(1) == _DECIMAL and not (0 <= precision <= _MOST_DIGITS and 0 <= scale <= _MOST_DIGITS):
        raise ValueError(f"a decimal of {precision} digits, {scale} of them behind the point")


def _is_far(statistics: memoryview) -> bool:
    """Whether a column's statistics have a timestamp beyond the range of nanoseconds."""
    bounds = dict(message_fields(statistics)).get(_OF_TIMESTAMPS)
    if bounds is None:
        return False
    values = (_integer(value) % 2**64 for field, value in message_fields(_bytes(bounds)) if field <= 4)
    return any(abs(value >> 1 ^ -(value & 1)) > _MOST_MILLIS for value in values)  # signed numbers in zigzag order


def _numbers(message: memoryview, count: int) -> list[int]:
    """The first fields of a message of numbers; 0 for those that it leaves out."""
    fields = {number: value for number, value in message_fields(message) if number <= count}
    return [_integer(fields.get(number, 0)) for number in range(1, count + 1)]


def _as_number(type_: memoryview) -> bytes:
    """A type of the footer; timestamps become numbers."""
    fields = list(message_fields(type_))
    return _message((field, _LONG if field == 1 and value in _TIMESTAMPS else value) for field, value in fields)


def _section(tail: OrcTail, stored: bytes, most: int | None = None) -> bytes:
    """The content of a section, of at most ``most`` bytes."""
    if most is not None and len(stored) > most:
        raise ValueError(f"{len(stored)} bytes where {most} are allowed")
    if tail.codec == NO_CODEC:
        return stored
    parts, at, size = [], 0, 0
    while at < len(stored):
        head = int.from_bytes(stored[at : at + 3], "little")
        length, at = head >> 1, at + 3
        if length > len(stored) - at:
            raise ValueError(f"a chunk of {length} bytes where {len(stored) - at} are left")
        chunk = stored[at : at + length]
        parts.append(chunk if head & 1 else _block(tail, chunk))
        at, size = at + length, size + len(parts[-1])
        if most is not None and size > most:
            raise ValueError(f"more than the {most} bytes that are allowed")
    return b"".join(parts)


def _block(tail: OrcTail, chunk: bytes) -> bytes:
    """The content of a compressed chunk."""
    most = min(tail.block_size, _MOST_FOOTER)
    if tail.codec == ZLIB:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, most)
    if tail.codec == ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return bytes(stream.read(most))
    if tail.codec in (SNAPPY, LZ4):
        size = snappy_size(chunk) if tail.codec == SNAPPY else _lz4_size(chunk)
        if size > most:
            raise ValueError(f"a chunk of {size} bytes where {most} are allowed")
        codec = pa.Codec("snappy" if tail.codec == SNAPPY else "lz4_raw")
        return bytes(codec.decompress(chunk, decompressed_size=size, asbytes=True))
    raise UnsupportedFeatureError(f"The ORC file {tail.path} is compressed with LZO; write it with another codec.")


def _lz4_size(chunk: bytes) -> int:
    """Bytes of an LZ4 block before compression: the sum of its literals and matches."""
    size = at = 0

    def length(nibble: int) -> int:
        nonlocal at
        total, more = nibble, nibble == 15
        while more:
            byte, at = chunk[at], at + 1
            total, more = total + byte, byte == 255
        return total

    try:
        while at < len(chunk):
            token, at = chunk[at], at + 1
            literals = length(token >> 4)
            size, at = size + literals, at + literals
            if at < len(chunk):  # the last sequence has literals alone
                at += 2
                size += length(token & 15) + 4
    except IndexError:
        raise ValueError("an LZ4 block is cut off") from None
    return size


def _message(fields: Iterable[tuple[int, int | memoryview | bytes]]) -> bytes:
    """A protobuf message."""
    return b"".join(
        number_field(number, value) if isinstance(value, int) else bytes_field(number, bytes(value))
        for number, value in fields
    )


def _postscript(old: memoryview, lengths: Mapping[int, int]) -> bytes:
    """A postscript with other lengths of sections, and its own length."""
    fields = [(number, lengths.get(number, value)) for number, value in message_fields(old)]
    message = _message(fields)
    return message + bytes([len(message)])


def _section_of(codec: int, block_size: int, content: bytes) -> bytes:
    """A section as it is stored, without compression."""
    return content if codec == NO_CODEC else b"".join(_chunks(content, block_size))


def _chunks(content: bytes, size: int) -> Iterator[bytes]:
    """Content that is stored in chunks without compression."""
    size = min(size, (1 << 23) - 1)
    for at in range(0, len(content), size):
        part = content[at : at + size]
        yield (len(part) << 1 | 1).to_bytes(3, "little") + part


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise TypeError(f"the number {value}, expected bytes")
    return value


def _integer(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{len(value)} bytes, expected a number")
    return value
