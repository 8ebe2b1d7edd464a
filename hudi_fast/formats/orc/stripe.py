"""Stripes of an ORC file, and timestamps that Arrow cannot read.

A stripe of an ORC file: the positions of its streams, some streams in memory, and a file of only these streams.

::

    stripe's footer ─► places of streams ─► those of the wanted types, in few reads ─► checks, then Arrow
                                              └─► a file of one stripe with these streams alone

Arrow's reader would request each stream separately, in pieces, which is slow on an object store.

Source: ORC specification v1, "Stripe Footer"; orc_proto.proto of Apache ORC 2.0.

Read timestamps of a stripe that Arrow cannot read: by writers outside UTC, and beyond the range of nanoseconds.

::

    stripe ─► the same stripe, its timestamps declared as numbers ─► Arrow ─► seconds since 2015 began for the writer
      └─────► streams of nanoseconds ─► runs ───────────────────────────────► + nanoseconds ─► instants

Arrow converts timestamps to local clock readings, which are equal for two instants when clocks are set back. The
seconds of a timestamp column are stored like a column of numbers, so Arrow can read them as numbers. The nanoseconds
are a separate stream, which is decoded here.

Source: ORC specification v1, "Timestamp Columns"; TimestampTreeReader of Apache ORC 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.orc.tail import MAGIC, OrcTail, Sections, Stripe, as_bytes, as_number, tail_of_stripe
from hudi_fast.formats.varint import encode_message, message_fields
from hudi_fast.kernels.orc_runs import RunBounds, measure_runs, read_runs
from hudi_fast.values import dataclass

__all__ = [
    "DATA",
    "DICTIONARY_DATA",
    "LENGTH",
    "PRESENT",
    "SECONDARY",
    "Encoding",
    "StripeFooter",
    "StripeStreams",
    "StripeTimestamps",
    "parse_stripe_footer",
    "read_streams",
]

PRESENT, DATA, LENGTH, DICTIONARY_DATA, _DICTIONARY_COUNT, SECONDARY = range(6)
"""Kinds of streams. ``SECONDARY`` has nanoseconds of timestamps and scales of decimals."""

_STREAMS, _ENCODINGS, _ZONE = 1, 2, 3
"""Fields of ``StripeFooter``."""

_MAX_INTEGER, _MAX_RUN = 16, 64
"""Generous maximum bytes of an integer, and of the header of a run."""

_GAP = 256 << 10
"""Maximum bytes between two ranges that are read as one."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a type's values.

    Attributes:
        kind: ``ColumnEncoding.Kind``: 0 and 2 store values, 1 and 3 positions in a dictionary.
        dictionary_size: number of values in the dictionary.
    """

    kind: int
    dictionary_size: int

    @property
    def has_dictionary(self) -> bool:
        """Whether the values are in a dictionary."""
        return self.kind in (1, 3)

    @property
    def version(self) -> int:
        """The version of the runs of integers, 1 (before Hive 0.12) or 2."""
        return 1 if self.kind < 2 else 2


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """The footer of a stripe.

    Attributes:
        places: first byte in the file and length of each stream, by number of the type and kind, in file order.
        encodings: encodings of each type.
        zone: time zone of the stripe's writer; empty if it is not stored.
        fields: fields of the message other than streams.
    """

    places: Mapping[tuple[int, int], tuple[int, int]]
    encodings: tuple[Encoding, ...]
    zone: str
    fields: tuple[tuple[int, int | memoryview], ...]


def parse_stripe_footer(sections: Sections, stripe: Stripe, stored: bytes) -> StripeFooter:
    """Decode the footer of a stripe.

    Raises:
        ValueError: the footer is malformed, or a stream is not in the stripe.
        UnsupportedFeatureError: the footer is compressed with LZO.
    """
    places: dict[tuple[int, int], tuple[int, int]] = {}
    encodings: list[Encoding] = []
    fields: list[tuple[int, int | memoryview]] = []
    zone = ""
    start = stripe.offset
    try:
        for field, value in message_fields(memoryview(sections.content(stored))):
            if field == _STREAMS:
                kind, number, length = _numbers(as_bytes(value), 3)
                if not 0 <= length <= stripe.footer_offset - start:
                    raise ValueError(f"a stream of {length} bytes at {start}")
                places.setdefault((number, kind), (start, length))  # Arrow also takes the first one
                start += length
                continue
            if field == _ENCODINGS:
                encodings.append(Encoding(*_numbers(as_bytes(value), 2)))
            elif field == _ZONE:
                zone = bytes(as_bytes(value)).decode("utf-8", "replace")
            fields.append((field, value))
    except TypeError as error:
        raise ValueError(str(error)) from error
    return StripeFooter(places, tuple(encodings), zone, tuple(fields))


@dataclass(frozen=True, slots=True)
class StripeStreams:
    """The streams of some types of a stripe, in memory.

    Attributes:
        sections: sections of the file.
        stripe: the stripe.
        footer: footer of the stripe.
        stored: the encoded streams by number of the type and kind, in file order.
    """

    sections: Sections
    stripe: Stripe
    footer: StripeFooter
    stored: Mapping[tuple[int, int], memoryview]

    def encoding(self, number: int) -> Encoding:
        """The encoding of a type.

        Raises:
            ValueError: the type has no encoding.
        """
        if number >= len(self.footer.encodings):
            raise ValueError(f"type {number} has no encoding")
        return self.footer.encodings[number]

    def has(self, number: int, kind: int) -> bool:
        """Whether a type has a stream that is not empty."""
        return bool(self.stored.get((number, kind)))

    def content(self, number: int, kind: int, limit: int) -> bytes:
        """An uncompressed stream of a type; empty if there is no stream.

        Raises:
            ValueError: the stream is malformed, or has more than ``limit`` bytes.
        """
        return self.sections.content(self.stored.get((number, kind), b""), limit)

    def max_bytes(self, number: int, kind: int) -> int:
        """The maximum uncompressed bytes of a stream of a type.

        Raises:
            ValueError: the stream is malformed.
        """
        return self.sections.max_bytes(self.stored.get((number, kind), b""))

    def integers(self, number: int, kind: int, count: int) -> npt.NDArray[np.int64]:
        """The unsigned integers of a stream of a type, int64[count] with the same bits.

        Raises:
            ValueError: the stream is malformed, or does not have ``count`` integers.
        """
        return read_runs(self._runs(number, kind, count), count, self.encoding(number).version)

    def bounds(self, number: int, kind: int, limit: int, is_signed: bool = False) -> RunBounds:
        """The bounds of up to ``limit`` integers in a stream of a type; zeros if there is no stream.

        Raises:
            ValueError: the stream is malformed, or longer than ``limit`` integers can be.
        """
        if not self.has(number, kind):
            return RunBounds(0, 0, 0, 0)
        return measure_runs(self._runs(number, kind, limit), self.encoding(number).version, is_signed)

    def as_file(self, serialized: bytes, timestamps_as_numbers: bool) -> bytes:
        """A file with only these streams.

        Args:
            serialized: the ``FileTail`` of the stripe's file.
            timestamps_as_numbers: whether to declare timestamps as numbers of 64 bits, which are their seconds.
        """
        streams = b"".join(
            encode_message((_STREAMS, encode_message((1, kind), (2, number), (3, len(content)))))
            for (number, kind), content in self.stored.items()
        )
        footer = self.sections.stored(streams + encode_message(*self.footer.fields))
        length = sum(map(len, self.stored.values()))
        alone = Stripe(len(MAGIC), 0, length, len(footer), self.stripe.rows)
        tail = tail_of_stripe(self.sections, serialized, alone, timestamps_as_numbers)
        return b"".join([MAGIC, *self.stored.values(), footer, tail])

    def _runs(self, number: int, kind: int, count: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.content(number, kind, _MAX_INTEGER * count + _MAX_RUN), np.uint8)


def read_streams(
    tail: OrcTail,
    stripe: Stripe,
    footer: StripeFooter,
    numbers: Collection[int],
    read_at: Callable[[int, int], bytes],
) -> StripeStreams:
    """Read the streams of the types ``numbers``, without their indexes.

    Ranges near each other are read as one range. ``read_at`` reads a number of bytes from a position on.
    """
    wanted = {one: place for one, place in footer.places.items() if one[0] in numbers and one[1] <= SECONDARY}
    ranges: list[list[int]] = []
    for start, length in wanted.values():
        if ranges and start - ranges[-1][1] <= _GAP:
            ranges[-1][1] = start + length
        else:
            ranges.append([start, start + length])
    read = [(start, memoryview(read_at(start, end - start))) for start, end in ranges]
    stored: dict[tuple[int, int], memoryview] = {}
    at = 0
    for one, (start, length) in wanted.items():
        while start >= ranges[at][1] and at + 1 < len(ranges):
            at += 1
        first, content = read[at]
        stored[one] = content[start - first : start - first + length]
        if len(stored[one]) < length:
            raise ValueError(f"a stream of {length} bytes of which {len(stored[one])} are there")
    return StripeStreams(tail.sections, stripe, footer, stored)


def _numbers(message: memoryview, count: int) -> list[int]:
    """The first fields of a message of numbers; 0 for missing fields."""
    fields = {field: value for field, value in message_fields(message) if field <= count}
    return [as_number(fields.get(field, 0)) for field in range(1, count + 1)]


_2015 = 1_420_070_400
"""2015-01-01 00:00 UTC, in seconds since 1970."""


class StripeTimestamps:
    """The timestamps of a stripe.

    Args:
        streams: streams of the stripe.
        ahead: seconds by which the year 2015 began earlier for the writer than in UTC.
    """

    def __init__(self, streams: StripeStreams, ahead: int) -> None:
        self._streams = streams
        self._ahead = ahead

    def instants(self, seconds: pa.Array, number: int, is_instant: bool) -> pa.Array:
        """The instants of a column or of a part of a column, ``timestamp[us, UTC]``.

        Args:
            seconds: stored seconds, int64[n].
            number: number of the ORC type.
            is_instant: whether the type does not depend on the writer's time zone.

        Raises:
            ValueError: the stream of nanoseconds is damaged.
        """
        present = np.flatnonzero(seconds.is_valid().to_numpy(zero_copy_only=False))
        nanos = self._nanoseconds(number, len(present))
        known = seconds.drop_null().to_numpy() + (_2015 - (0 if is_instant else self._ahead))
        known -= (known < 0) & (nanos > 999_999)  # seconds were rounded towards zero, except with less than 1 ms
        micros = np.zeros(len(seconds), np.int64)
        micros[present] = known * 1_000_000 + nanos // 1000
        return pa.array(micros, mask=~_flags(len(seconds), present)).cast(pa.timestamp("us", "UTC"))

    def _nanoseconds(self, number: int, count: int) -> npt.NDArray[np.int64]:
        """The nanoseconds of ``count`` timestamps, int64[count].

        The last three bits of a stored number encode how many zeros were left out: 0 if no bit is set, else one more
        than their value. Hudi writes negative numbers for some instants before 1970.
        """
        stored = self._streams.integers(number, SECONDARY, count)
        zeros = stored & 7
        nanos: npt.NDArray[np.int64] = (stored >> 3) * 10 ** np.where(zeros, zeros + 1, 0)
        if np.any(np.abs(nanos) >= 1_000_000_000):
            raise ValueError("more nanoseconds than a second has")
        return nanos


# ---- internals


def _flags(count: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags
