"""What is wrong with the streams of a damaged stripe that would end the process of Arrow's reader, or keep it busy.

Apache ORC's reader allocates what the lengths of texts and the numbers of entries add up to, whether or not the bytes
are there. It divides for minutes by scales that are none. Arrow ends the process at keys of maps that are null.

Source: ``ColumnReader.cc`` of Apache ORC 2.2, ``MapArray`` of Arrow 26; observed with damaged files.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.formats.orc.stripe import DATA, DICTIONARY_DATA, LENGTH, PRESENT, SECONDARY, StripeStreams
from hudi_fast.formats.orc.types import count_types, parts_of
from hudi_fast.kernels.orc_runs import RunBounds

__all__ = ["check_column"]

_MOST_VALUES = 2**31 - 1
"""Offsets of Arrow's arrays have 32 bits."""

_VALUES_OF_A_BYTE = 520
"""What a byte stands for at most: two bytes repeat eight flags 130 times."""

_MOST_SCALE = 38


def check_column(streams: StripeStreams, name: str, kind: pa.DataType, number: int) -> None:
    """Refuse a column of a stripe that Arrow's reader does not survive.

    Args:
        streams: of the stripe, with those of the column and its parts.
        name: the column, for messages.
        kind: the column's type as Arrow reads it.
        number: of its ORC type.

    Raises:
        ValueError: it is one.
        UnsupportedFeatureError: the file is compressed with LZO.
    """
    try:
        _check_values(streams, kind, number, streams.stripe.rows)
    except ValueError as error:
        raise ValueError(f"column {name}: {error}") from error


# ---- internals


def _check_values(streams: StripeStreams, kind: pa.DataType, number: int, count: int) -> None:
    """Check values of a known number, which are those of a column or the entries of a list."""
    size = sum(
        streams.most_bytes(one, stream)
        for one in range(number, number + count_types(kind))
        for stream in range(SECONDARY + 1)
    )
    if count > min(_VALUES_OF_A_BYTE * size, _MOST_VALUES):
        raise ValueError(f"{count} values in {size} bytes")
    _check(streams, kind, number, count)


def _check(streams: StripeStreams, kind: pa.DataType, number: int, most: int) -> None:
    """Check a type that has up to ``most`` values, and its parts."""
    streams.encoding(number)  # Apache ORC's reader does not look whether there is one
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        _check_texts(streams, number, most)
    elif pa.types.is_decimal(kind):
        found = streams.bounds(number, SECONDARY, most, is_signed=True)
        if found.numbers and not 0 <= found.least <= found.most <= _MOST_SCALE:
            raise ValueError(f"decimals of the scales {found.least} to {found.most}")
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        entries = _total(streams.bounds(number, LENGTH, most), _MOST_VALUES)
        for place, (part, its_number) in enumerate(parts_of(kind, number)):
            _check_values(streams, part, its_number, entries)
            if pa.types.is_map(kind) and not place and _has_nulls(streams, its_number, entries):
                raise ValueError("null as the key of a map")
        return
    for part, its_number in parts_of(kind, number):
        _check(streams, part, its_number, most)


def _check_texts(streams: StripeStreams, number: int, most: int) -> None:
    encoding = streams.encoding(number)
    if not encoding.has_dictionary:
        _total(streams.bounds(number, LENGTH, most), streams.most_bytes(number, DATA))
        return
    if not 0 <= encoding.dictionary_size <= most:
        raise ValueError(f"a dictionary of {encoding.dictionary_size} for {most} values")
    lengths = streams.bounds(number, LENGTH, encoding.dictionary_size)
    _total(lengths, streams.most_bytes(number, DICTIONARY_DATA))


def _total(lengths: RunBounds, most: int) -> int:
    """The sum of lengths, which is at most ``most``."""
    if (lengths.numbers and lengths.least < 0) or lengths.total > min(most, _MOST_VALUES):
        raise ValueError(f"lengths from {lengths.least} that add up to {lengths.total}, where {most} are possible")
    return lengths.total


def _has_nulls(streams: StripeStreams, number: int, count: int) -> bool:
    """Whether one of the first ``count`` flags of a type is not set."""
    if not streams.has(number, PRESENT):
        return False
    content = streams.content(number, PRESENT, count + 64)  # at worst a header for each two bytes of eight flags
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
