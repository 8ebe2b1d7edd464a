"""The sections of an ORC file, and its tail.

Decode the tail of an ORC file as far as base files need it, and write new tails with user metadata.

::

    ORC | stripes | statistics of stripes | footer | postscript | length of the postscript, 1 byte
        each: index, data, footer          types, stripes, user metadata       sizes of the sections, codec

Arrow reads and writes the rows. It does not return the number of rows of a stripe, and writes no user metadata. Both
are in protobuf messages, which this module reads and rewrites.

Source: ORC specification v1, "File Tail"; orc_proto.proto of Apache ORC 2.0.

Read and write the sections of an ORC file, which are footers and streams: its codec, and its chunks of content.

A chunk consists of three bytes with its length and a bit for "not compressed", and the content. Sections written here
are not compressed. Files without a codec have no chunks.

Source: ORC specification v1, "Compression".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.varint import encode_message, message_fields, snappy_size
from hudi_fast.kernels.lz4_blocks import lz4_size
from hudi_fast.values import dataclass

__all__ = [
    "LZ4",
    "LZO",
    "MAGIC",
    "MAX_SECTION",
    "NO_CODEC",
    "SNAPPY",
    "ZLIB",
    "ZSTD",
    "OrcTail",
    "Sections",
    "Stripe",
    "as_bytes",
    "as_number",
    "check_levels",
    "parse_tail",
    "tail_of_stripe",
    "with_metadata",
]

NO_CODEC, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
"""Codecs, ``CompressionKind``."""

MAX_SECTION = 64 << 20
"""Maximum bytes of a footer, and of a chunk before compression."""

_GAINS = {ZLIB: 1032, SNAPPY: 22, LZO: 256, LZ4: 255, ZSTD: 1 << 15}
"""Maximum decompressed bytes for each byte of a chunk."""

_LONGEST_CHUNK = (1 << 23) - 1
"""The maximum length that a chunk's header can store."""


@dataclass(frozen=True, slots=True)
class Sections:
    """How a file stores its sections.

    Attributes:
        path: the file, for messages.
        codec: the file's codec.
        block_size: maximum bytes of a chunk before compression.
    """

    path: str
    codec: int
    block_size: int

    def content(self, stored: bytes | memoryview, limit: int | None = None) -> bytes:
        """The content of a section.

        Raises:
            ValueError: the section is malformed, or has more than ``limit`` bytes.
            UnsupportedFeatureError: the section is compressed with LZO.
        """
        if self.codec == NO_CODEC:
            if limit is not None and len(stored) > limit:
                raise ValueError(f"{len(stored)} bytes where {limit} are allowed")
            return bytes(stored)
        parts, size = [], 0
        for chunk, is_plain in _chunks(stored):
            parts.append(bytes(chunk) if is_plain else self._decompressed(chunk))
            size += len(parts[-1])
            if limit is not None and size > limit:
                raise ValueError(f"more than the {limit} bytes that are allowed")
        return b"".join(parts)

    def max_bytes(self, stored: bytes | memoryview) -> int:
        """The maximum bytes of a section's content, without decompressing it.

        Raises:
            ValueError: the section is malformed.
        """
        if self.codec == NO_CODEC:
            return len(stored)
        gain = _GAINS.get(self.codec, 0)
        return sum(
            len(chunk) if is_plain else min(self.block_size, gain * len(chunk)) for chunk, is_plain in _chunks(stored)
        )

    def stored(self, content: bytes) -> bytes:
        """A section with this content, not compressed."""
        if self.codec == NO_CODEC:
            return content
        size = min(self.block_size, _LONGEST_CHUNK)
        parts = (content[at : at + size] for at in range(0, len(content), size))
        return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in parts)

    def _decompressed(self, chunk: memoryview) -> bytes:
        limit = min(self.block_size, MAX_SECTION)
        try:
            if self.codec == ZLIB:
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, limit)
            if self.codec == ZSTD:
                with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                    return bytes(stream.read(limit))
            if self.codec in (SNAPPY, LZ4):
                size = snappy_size(chunk) if self.codec == SNAPPY else int(lz4_size(np.frombuffer(chunk, np.uint8)))
                if not 0 <= size <= limit:
                    raise ValueError(f"a chunk of {size} bytes where {limit} are allowed")
                codec = pa.Codec("snappy" if self.codec == SNAPPY else "lz4_raw")
                return bytes(codec.decompress(chunk, decompressed_size=size, asbytes=True))
        except (zlib.error, pa.ArrowException, OSError) as error:
            raise ValueError(str(error)) from error
        raise UnsupportedFeatureError(f"The ORC file {self.path} is compressed with LZO; write it with another codec.")


def _chunks(stored: bytes | memoryview) -> Iterator[tuple[memoryview, bool]]:
    """The chunks of a section, and whether each is not compressed."""
    view, at = memoryview(stored), 0
    while at < len(view):
        head = int.from_bytes(view[at : at + 3], "little")
        length, at = head >> 1, at + 3
        if length > len(view) - at:
            raise ValueError(f"a chunk of {length} bytes where {max(len(view) - at, 0)} are left")
        yield view[at : at + length], bool(head & 1)
        at += length


MAGIC = b"ORC"
"""The first bytes of a file."""

_POSTSCRIPT, _FOOTER = 1, 2
"""Fields of ``FileTail``."""

_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _STATISTICS_LENGTH = 1, 2, 3, 5
"""Fields of ``PostScript``."""

_STRIPES, _TYPES, _METADATA, _ROWS, _STATISTICS, _ENCRYPTION = 3, 4, 5, 6, 7, 10
"""Fields of ``Footer``."""

_OF_TIMESTAMPS = 9
"""Field of ``ColumnStatistics``: bounds of timestamps, in milliseconds since 1970."""

_MAX_MILLIS = 2**63 // 10**6 - 86_400_000
"""Largest milliseconds that Arrow's timestamps in nanoseconds can hold, less a day for time zones."""

_LONG, _TIMESTAMPS, _DECIMAL = 4, (9, 18), 14
"""Kinds of types."""

_MAX_DIGITS, _MAX_LEVELS = 38, 64
_END = 64 << 10
"""Bytes that are read at once for a tail."""


_MAX_BLOCK = 1 << 23
"""A chunk must have fewer uncompressed bytes than this: its header cannot store a larger length."""


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe; lengths in bytes.

    Attributes:
        offset: first byte of the stripe in the file.
        index_length: length of the indexes.
        data_length: length of the columns.
        footer_length: length of the footer.
        rows: number of rows.
    """

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def footer_offset(self) -> int:
        """The first byte of the stripe's footer."""
        return self.offset + self.index_length + self.data_length

    @property
    def end(self) -> int:
        """The byte after the stripe."""
        return self.footer_offset + self.footer_length


@dataclass(frozen=True, slots=True)
class OrcTail:
    """A file's tail.

    Attributes:
        sections: how the file stores footers and streams.
        stripes: stripes in file order.
        metadata: user metadata.
        rows: number of rows.
        far: numbers of types whose timestamps may be beyond the range of nanoseconds; 0 is the row, its columns and
            their parts follow, each before its own parts.
    """

    sections: Sections
    stripes: tuple[Stripe, ...]
    metadata: Mapping[bytes, bytes]
    rows: int
    far: frozenset[int] = frozenset()


def parse_tail(serialized: bytes, path: str) -> OrcTail:
    """Decode a ``FileTail``, which has postscript and footer uncompressed.

    Raises:
        CorruptTableError: the tail is malformed, or the stripes do not have the file's number of rows.
        UnsupportedFeatureError: columns are encrypted.
    """
    rows = columns = 0
    sections = Sections(path, NO_CODEC, 0)
    far = set[int]()
    stripes: list[Stripe] = []
    metadata: dict[bytes, bytes] = {}
    try:
        for number, value in message_fields(memoryview(serialized)):
            if number == _POSTSCRIPT:
                sections = _sections(path, as_bytes(value))
            elif number == _FOOTER:
                for field, part in message_fields(as_bytes(value)):
                    if field == _STRIPES:
                        stripes.append(_stripe(as_bytes(part)))
                    elif field == _METADATA:
                        item = dict(message_fields(as_bytes(part)))
                        metadata[bytes(as_bytes(item[1]))] = bytes(as_bytes(item.get(2, memoryview(b""))))
                    elif field == _TYPES:
                        _check_type(as_bytes(part))
                    elif field == _ROWS:
                        rows = as_number(part)
                    elif field == _STATISTICS:
                        if _is_far(as_bytes(part)):
                            far.add(columns)
                        columns += 1
                    elif field == _ENCRYPTION and len(as_bytes(part)):
                        raise UnsupportedFeatureError(f"The ORC file {path} has encrypted columns.")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"The tail of the ORC file is malformed ({error!r}). Restore the file.", path
        ) from error
    if sum(one.rows for one in stripes) != rows:
        found = [one.rows for one in stripes]
        raise CorruptTableError(f"An ORC file of {rows} rows has stripes of {found} rows. Restore the file.", path)
    return OrcTail(sections, tuple(stripes), metadata, rows, frozenset(far))


def check_levels(source: pa.NativeFile, path: str) -> None:
    """Refuse a file that would make Apache ORC's reader end the process: with deeply nested types, or large blocks.

    Raises:
        CorruptTableError: the file is refused, or has no tail.
        UnsupportedFeatureError: the file is compressed with LZO.
    """
    try:
        size = source.size()
        end = source.read_at(min(size, _END), max(0, size - _END))
        script = end[-1 - end[-1] : -1]
        fields = dict(message_fields(memoryview(script)))
        sections = _sections(path, memoryview(script))
        if sections.codec != NO_CODEC and not 0 < sections.block_size < _MAX_BLOCK:
            raise ValueError(f"compressed in blocks of {sections.block_size} bytes")
        length, behind = as_number(fields[_FOOTER_LENGTH]), len(script) + 1
        if not 0 < length <= min(size - behind, MAX_SECTION):
            raise ValueError(f"a footer of {length} bytes in a file of {size}")
        if length + behind > len(end):
            end = source.read_at(length + behind, size - length - behind)
        footer = sections.content(end[-length - behind : -behind])
        types = [value for number, value in message_fields(memoryview(footer)) if number == _TYPES]
        levels = [0] * len(types)
        for number, kind in enumerate(types):
            for part in _parts_of(as_bytes(kind)):
                if not number < part < len(types) or levels[number] == _MAX_LEVELS:
                    raise ValueError(f"type {number} at level {levels[number]} with the part {part} of {len(types)}")
                levels[part] = levels[number] + 1
    except (ValueError, KeyError, TypeError, IndexError) as error:  # storage raises its own OSError
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
            for byte in as_bytes(value):
                number |= (byte & 0x7F) << place
                place += 7
                if byte < 0x80:
                    yield number
                    number = place = 0


def tail_of_stripe(sections: Sections, serialized: bytes, stripe: Stripe, timestamps_as_numbers: bool) -> bytes:
    """The tail of a file that has only one stripe.

    Args:
        sections: sections of the stripe's original file.
        serialized: the ``FileTail`` of the original file.
        stripe: the stripe in the new file.
        timestamps_as_numbers: whether to declare timestamps as numbers of 64 bits.
    """
    old = dict(message_fields(memoryview(serialized)))
    numbers = (stripe.offset, stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows)
    information = encode_message(*enumerate(numbers, 1))
    fields = [
        (field, _with_numbers(as_bytes(value)) if field == _TYPES and timestamps_as_numbers else value)
        for field, value in message_fields(as_bytes(old[_FOOTER]))
        if field not in (_STRIPES, _METADATA, _ROWS, _STATISTICS)
    ]
    footer = sections.stored(encode_message(*fields, (_STRIPES, information), (_ROWS, stripe.rows)))
    return footer + _postscript(as_bytes(old[_POSTSCRIPT]), {_FOOTER_LENGTH: len(footer), _STATISTICS_LENGTH: 0})


def with_metadata(content: bytes, serialized: bytes, pairs: Mapping[bytes, bytes]) -> bytes:
    """The end of a file, with user metadata.

    Args:
        content: the last bytes of a file without user metadata, from its footer or an earlier byte on.
        serialized: the ``FileTail`` of the file.
        pairs: the user metadata.

    Returns:
        The bytes to store in place of ``content``.
    """
    old = dict(message_fields(memoryview(serialized)))
    script = dict(message_fields(as_bytes(old[_POSTSCRIPT])))
    items = [(_METADATA, encode_message((1, name), (2, value))) for name, value in pairs.items()]
    sections = _sections("", as_bytes(old[_POSTSCRIPT]))
    footer = sections.stored(bytes(as_bytes(old[_FOOTER])) + encode_message(*items))
    before = len(content) - 1 - content[-1] - as_number(script[_FOOTER_LENGTH])
    return content[:before] + footer + _postscript(as_bytes(old[_POSTSCRIPT]), {_FOOTER_LENGTH: len(footer)})


def as_bytes(value: int | memoryview) -> memoryview:
    """The byte string of a field; ``TypeError`` if it is a number."""
    if isinstance(value, int):
        raise TypeError(f"the number {value}, expected bytes")
    return value


def as_number(value: int | memoryview) -> int:
    """The number of a field; ``TypeError`` if it is a byte string."""
    if not isinstance(value, int):
        raise TypeError(f"{len(value)} bytes, expected a number")
    return value


# ---- internals


def _sections(path: str, script: memoryview) -> Sections:
    """The sections of a file with this postscript."""
    fields = dict(message_fields(script))
    return Sections(path, as_number(fields.get(_COMPRESSION, NO_CODEC)), as_number(fields.get(_BLOCK_SIZE, 0)))


def _stripe(message: memoryview) -> Stripe:
    fields = {number: as_number(value) for number, value in message_fields(message) if number < 6}
    stripe = Stripe(*(fields.get(number, 0) for number in range(1, 6)))
    if min(stripe.offset, stripe.index_length, stripe.data_length, stripe.footer_length, stripe.rows) < 0:
        raise ValueError(f"a {stripe}")
    return stripe


def _check_type(type_: memoryview) -> None:
    """Refuse a decimal type that would make Arrow end the process."""
    fields = dict(message_fields(type_))
    precision, scale = as_number(fields.get(5, 0)), as_number(fields.get(6, 0))
    if fields.get(1) == _DECIMAL and not (0 <= precision <= _MAX_DIGITS and 0 <= scale <= _MAX_DIGITS):
        raise ValueError(f"a decimal of {precision} digits, {scale} of them behind the point")


def _is_far(statistics: memoryview) -> bool:
    """Whether a column's statistics have a timestamp beyond the range of nanoseconds."""
    bounds = dict(message_fields(statistics)).get(_OF_TIMESTAMPS)
    if bounds is None:
        return False
    values = (as_number(value) % 2**64 for field, value in message_fields(as_bytes(bounds)) if field <= 4)
    return any(abs(value >> 1 ^ -(value & 1)) > _MAX_MILLIS for value in values)  # signed numbers in zigzag order


def _with_numbers(type_: memoryview) -> bytes:
    """A type of the footer; timestamps become numbers."""
    fields = list(message_fields(type_))
    return encode_message(*((one, _LONG if one == 1 and value in _TIMESTAMPS else value) for one, value in fields))


def _postscript(old: memoryview, lengths: Mapping[int, int]) -> bytes:
    """A postscript with other lengths of sections, and its own length."""
    fields = [(number, lengths.get(number, value)) for number, value in message_fields(old)]
    message = encode_message(*fields)
    return message + bytes([len(message)])
