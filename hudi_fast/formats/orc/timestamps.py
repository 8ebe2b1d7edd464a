"""Read timestamps of a stripe that Arrow cannot read: by writers outside UTC, and beyond the range of nanoseconds.

::

    stripe ─► the same stripe, its timestamps declared as numbers ─► Arrow ─► seconds since 2015 began for the writer
      └─────► streams of nanoseconds ─► runs ───────────────────────────────► + nanoseconds ─► instants

Arrow converts timestamps to local clock readings, which are equal for two instants when clocks are set back. The
seconds of a timestamp column are stored like a column of numbers, so Arrow can read them as numbers. The nanoseconds
are a separate stream, which is decoded here.

Source: ORC specification v1, "Timestamp Columns"; TimestampTreeReader of Apache ORC 1.9.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.orc.stripe import SECONDARY, StripeStreams

__all__ = ["StripeTimestamps"]

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
