"""Timestamps of a stripe that Arrow cannot give: by writers outside UTC, and beyond the range of nanoseconds.

::

    stripe ─► the same stripe, its timestamps declared as numbers ─► Arrow ─► seconds since 2015 began for the writer
      └─────► streams of nanoseconds ─► runs ───────────────────────────────► + nanoseconds ─► instants

Arrow makes clock readings of timestamps, and these are the same for two instants when clocks are set back. The seconds
of a timestamp column are stored like a column of numbers, so Arrow reads them as such. The nanoseconds are a stream of
their own, which is decoded here.

Source: ORC specification v1, "Timestamp Columns" and "Integer Run Length Encoding, version 2"; TimestampTreeReader of
Apache ORC 1.9.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.orc.tail import StripeStreams
from hudi_fast.formats.varint import read_varint

__all__ = ["StripeTimestamps", "run_values"]

_SECONDARY = 5
"""Kind of a stream: nanoseconds."""

_DIRECT_V2 = 2
"""Kind of a column's encoding."""

_2015 = 1_420_070_400
"""2015-01-01 00:00 UTC, in seconds since 1970."""

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits of a value by the code in the header of a run."""

_SHORT, _DIRECT, _PATCHED, _DELTA = range(4)

Values = npt.NDArray[np.uint64]


class StripeTimestamps:
    """The timestamps of a stripe.

    Args:
        streams: of the stripe.
        ahead: how much earlier than in UTC the year 2015 began for the writer, in seconds.
    """

    def __init__(self, streams: StripeStreams, ahead: int) -> None:
        self._streams = streams
        self._ahead = ahead

    def instants(self, seconds: pa.Array, number: int, is_instant: bool) -> pa.Array:
        """The instants of a column or of a part of one, ``timestamp[us, UTC]``.

        Args:
            seconds: as stored, int64[n].
            number: of the ORC type.
            is_instant: whether the type does not depend on the writer's time zone.

        Raises:
            ValueError: the stream of nanoseconds is damaged.
            UnsupportedFeatureError: it is encoded as before Hive 0.12.
        """
        if self._streams.encoding(number) != _DIRECT_V2:
            raise UnsupportedFeatureError(f"The ORC file {self._streams.path} is encoded as before Hive 0.12.")
        present = np.flatnonzero(seconds.is_valid().to_numpy(zero_copy_only=False))
        nanos = _nanoseconds(self._streams.content(number, _SECONDARY), len(present))
        known = seconds.drop_null().to_numpy() + (_2015 - (0 if is_instant else self._ahead))
        known -= (known < 0) & (nanos > 999_999)  # seconds were rounded towards zero, but for whole milliseconds
        micros = np.zeros(len(seconds), np.int64)
        micros[present] = known * 1_000_000 + nanos // 1000
        return pa.array(micros, mask=~_flags(len(seconds), present)).cast(pa.timestamp("us", "UTC"))


def run_values(content: bytes, count: int) -> Values:
    """The values of a stream of unsigned numbers in runs of version 2.

    Raises:
        ValueError: the stream has another number of values, or is cut off.
    """
    parts, found = [], 0
    for run in _runs(content):
        parts.append(run)
        found += len(run)
        if found > count:
            break
    if found != count:
        raise ValueError(f"a stream of {found} numbers, expected {count}")
    return np.concatenate([np.empty(0, np.uint64), *parts])


# ---- internals


def _flags(count: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags


def _nanoseconds(content: bytes, count: int) -> npt.NDArray[np.int64]:
    """The last three bits of a number tell how many zeros were left out: none, or one more than they say.

    Hudi writes negative ones for some instants before 1970.
    """
    stored = run_values(content, count).view(np.int64)
    zeros = stored & 7
    nanos: npt.NDArray[np.int64] = (stored >> 3) * 10 ** np.where(zeros, zeros + 1, 0)
    if np.any(np.abs(nanos) >= 1_000_000_000):
        raise ValueError("more nanoseconds than a second has")
    return nanos


def _runs(content: bytes) -> Iterator[Values]:
    at = 0
    while at < len(content):
        head = content[at]
        kind, code = head >> 6, head >> 1 & 31
        if kind == _SHORT:
            size = (head >> 3 & 7) + 1
            value = int.from_bytes(_cut(content, at + 1, size), "big")
            yield np.full((head & 7) + 3, value, np.uint64)
            at += 1 + size
            continue
        count = (head & 1) << 8 | _cut(content, at + 1, 1)[0]
        count, at = count + 1, at + 2
        if kind == _DIRECT:
            values, at = _packed(content, at, count, _WIDTHS[code])
        elif kind == _PATCHED:
            values, at = _patched(content, at, count, _WIDTHS[code])
        else:
            values, at = _ascending(content, at, count, _WIDTHS[code] if code else 0)
        yield values


def _packed(content: bytes, at: int, count: int, width: int) -> tuple[Values, int]:
    """Numbers of ``width`` bits each, and the position after them."""
    size = (count * width + 7) // 8
    bits = np.unpackbits(np.frombuffer(_cut(content, at, size), np.uint8))[: count * width].reshape(count, width)
    weights = np.uint64(1) << np.arange(width - 1, -1, -1, dtype=np.uint64)
    return (bits * weights).sum(axis=1, dtype=np.uint64), at + size


def _patched(content: bytes, at: int, count: int, width: int) -> tuple[Values, int]:
    """A base, differences from it, and more bits for those that do not fit."""
    third, fourth = _cut(content, at, 2)
    base_size, patch_width = (third >> 5) + 1, _WIDTHS[third & 31]
    gap_width, patches = (fourth >> 5) + 1, fourth & 31
    base = int.from_bytes(_cut(content, at + 2, base_size), "big")
    top = 1 << (8 * base_size - 1)
    base = -(base & (top - 1)) if base & top else base
    values, at = _packed(content, at + 2 + base_size, count, width)
    entry_width = next((one for one in _WIDTHS if one >= patch_width + gap_width), 64)
    entries, at = _packed(content, at, patches, entry_width)
    place = 0
    for entry in entries.tolist():
        place += entry >> patch_width
        patch = entry & ((1 << patch_width) - 1)
        if place >= count:
            raise ValueError(f"a patch of number {place} among {count}")
        values[place] |= np.uint64(patch << width & (1 << 64) - 1)
    return values + np.uint64(base % (1 << 64)), at


def _ascending(content: bytes, at: int, count: int, width: int) -> tuple[Values, int]:
    """A first number, a signed difference, and the sizes of those that follow; all the same without ``width``."""
    first, at = read_varint(content, at)
    step, at = read_varint(content, at)
    step = step >> 1 ^ -(step & 1)
    if not width:
        steps = np.full(count - 1, step, np.int64)
    else:
        sizes, at = _packed(content, at, max(count - 2, 0), width)
        steps = np.concatenate([[step], sizes.view(np.int64) * (1 if step >= 0 else -1)])[: count - 1]
    return (np.concatenate([[0], np.cumsum(steps)]).astype(np.int64).view(np.uint64) + np.uint64(first)), at


def _cut(content: bytes, at: int, size: int) -> bytes:
    part = content[at : at + size]
    if len(part) < size:
        raise ValueError("a run is cut off")
    return part
