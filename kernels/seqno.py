"""Texts ``<prefix><number>`` for consecutive numbers, as Arrow buffers: Hudi's ``_hoodie_commit_seqno`` column."""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Offsets
from ._bytes import copy_bytes
from ._kernel import kernel

__all__ = ["format_sequence_numbers"]


@kernel("void(ru1, i8, wi4, wu1)")
def _format(prefix: Bytes, start: Int, offsets: Offsets, out: Bytes) -> None:
    digits = np.int64(1)
    power = np.int64(10)  # 10 ** digits; stays at 10**18 for numbers of 19 digits, the maximum of int64
    while digits < 19 and start >= power:
        digits += 1
        power = power * 10 if digits < 19 else power
    at = np.int64(0)
    offsets[0] = 0
    for i in range(offsets.size - 1):
        number = start + i
        if digits < 19 and number >= power:
            digits += 1
            power = power * 10 if digits < 19 else power
        copy_bytes(out, at, prefix, 0, prefix.size)
        at += prefix.size + digits
        place = at
        for _ in range(digits):
            place -= 1
            out[place] = np.uint8(48 + number % 10)
            number //= 10
        offsets[i + 1] = np.int32(at)


def format_sequence_numbers(prefix: Bytes, start: int, count: int) -> tuple[Offsets, Bytes]:
    """Texts of ``prefix`` followed by the decimal numbers ``start`` to ``start + count - 1``.

    Args:
        prefix: uint8[], the text before each number.
        start: first number, at least 0.
        count: number of texts.

    Returns:
        int32[count + 1] offsets, starting at 0, and uint8[] bytes.

    Raises:
        ValueError: ``start`` or ``count`` is negative.
        OverflowError: the texts have 2**31 bytes or more, or a number exceeds 2**63 - 1.
    """
    if start < 0 or count < 0:
        raise ValueError(f"sequence numbers start at 0 or above and are 0 or more; got {start} and {count}")
    if start + count > 2**63:
        raise OverflowError(f"sequence numbers up to {start + count - 1} do not fit 64 bits")
    total = count * prefix.size + _digits_below(start + count) - _digits_below(start)
    if total > 2**31 - 1:
        raise OverflowError(f"{total} bytes of sequence numbers do not fit 32-bit offsets; ask for fewer at a time")
    offsets = np.empty(count + 1, np.int32)
    out = np.empty(total, np.uint8)
    _format(prefix, start, offsets, out)
    return offsets, out


def _digits_below(bound: int) -> int:
    """Total number of decimal digits of the numbers 0..bound-1."""
    total, low, digits = 0, 0, 1
    while low < bound:
        high = min(bound, 10**digits)
        total += (high - low) * digits
        low, digits = high, digits + 1
    return total
