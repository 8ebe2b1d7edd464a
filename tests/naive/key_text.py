"""Record keys and partition paths, one row and one value at a time, from the definitions."""

from __future__ import annotations

import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def java_float(value: float, single: bool = False) -> str:
    """Java's ``Double.toString`` (``Float.toString``): the shortest decimal that reads back, the nearest of those."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if struct.pack(">d", value)[0] & 0x80 else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value), single)
    if -3 <= exponent < 7:
        number = digits.ljust(exponent + 1, "0") if exponent >= 0 else "0" * -exponent + digits
        point = exponent + 1 if exponent >= 0 else 1
        return f"{sign}{number[:point]}.{number[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, single: bool) -> tuple[str, int]:
    """``(digits, exponent)``: at least two digits are tried, as Java does; trailing zeros are dropped."""
    for count in range(2, 18):
        near = [Context(count, rounding).create_decimal(Decimal(value)) for rounding in (ROUND_FLOOR, ROUND_CEILING)]
        same = [text for text in near if (_as_single(float(text)) if single else float(text)) == value]
        if same:
            best = min(same, key=lambda text: (abs(Fraction(text) - Fraction(value)), text.as_tuple().digits[-1] % 2))
            digits = "".join(map(str, best.as_tuple().digits))
            return digits.rstrip("0"), best.adjusted()
    raise AssertionError(value)


def _as_single(value: float) -> float:
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return float("inf")


def java_decimal(unscaled: int, scale: int) -> str:
    """``BigDecimal.toString`` of ``unscaled / 10**scale``, for scales of zero and more."""
    digits = str(abs(unscaled))
    sign = "-" if unscaled < 0 else ""
    adjusted = len(digits) - 1 - scale
    if adjusted >= -6:
        padded = digits.rjust(scale + 1, "0")
        return sign + (f"{padded[:-scale]}.{padded[-scale:]}" if scale else padded)
    return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}E{adjusted}"


def record_key(fields: list[str], values: list[str | None], prefixed: bool) -> str | None:
    """The key of one row; None when it may not have one."""
    if not prefixed and len(fields) == 1:
        return values[0] or None
    if not any(values):
        return None
    parts = []
    for field, value in zip(fields, values, strict=True):
        parts.append(f"{field}:" + ("__null__" if value is None else value or "__empty__"))
    return ",".join(parts)


def escape(value: str) -> str:
    return "".join(f"%{ord(c):02X}" if ord(c) < 32 or ord(c) == 127 or c in "\"#%'*/:=?\\{[]^" else c for c in value)


def partition_path(fields: list[str], values: list[str | None], hive_style: bool, url_encode: bool) -> str:
    """The partition path of one row."""
    parts = []
    for field, value in zip(fields, values, strict=True):
        part = value or "__HIVE_DEFAULT_PARTITION__"
        part = escape(part) if url_encode else part
        parts.append(f"{field}={part}" if hive_style else part)
    return "/".join(parts)


def java_time_unit(number: int, unit_in_ms: Fraction) -> int:
    """``TimeUnit.MILLISECONDS.convert``: cut towards zero, saturated to 64 bits."""
    millis = number * unit_in_ms
    whole = abs(millis.numerator) // millis.denominator * (-1 if millis < 0 else 1)
    return max(-(2**63), min(2**63 - 1, whole))
