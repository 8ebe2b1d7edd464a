"""The types of SQL literals, and the common type in which Spark compares or computes two values.

::

    1 ─► int      99999999999 ─► bigint      0.5 ─► decimal(1,1)      5e-1 ─► double      'a' ─► string

    int, bigint ─► bigint      int, decimal ─► decimal      float, other numbers ─► double
    date, timestamp ─► timestamp      text literal, number ─► bigint or double      text literal, other ─► other

Source: ``AnsiTypeCoercion``, ``DecimalPrecisionTypeCoercion``, ``AstBuilder`` and ``UTF8StringUtils`` of Spark 4, in
which the mode ANSI is the default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.sql_cast import double_as_decimal, time_text

__all__ = [
    "MAX_DIGITS",
    "Operand",
    "as_decimal",
    "cast_literal",
    "cast_to",
    "cast_value",
    "common_type",
    "exactly",
    "is_exact",
    "number_literal",
]

_OFFSET = re.compile(r"[Zz]$|[+-]\d\d:?\d\d$")
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})([ T].*)?)?)?$")
_WHOLE = re.compile(r"[+-]?\d+$")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?$")
_WORDS = re.compile(r"([+-]?)(inf|infinity|nan)$", re.IGNORECASE)
_TRUE, _FALSE = frozenset(("t", "true", "y", "yes", "1")), frozenset(("f", "false", "n", "no", "0"))
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Digits of the decimals to which Spark casts whole numbers."""
_PLAIN_SCALE = 6
"""Arrow writes decimals of a larger scale with exponents."""
MAX_DIGITS = 38
"""Digits of the widest decimal."""


@dataclass(frozen=True)
class Operand:
    """A value in an expression.

    Attributes:
        expression: of Arrow.
        type: of its values.
        literal: its value, if it is a literal.
    """

    expression: Any
    type: pa.DataType
    literal: pa.Scalar | None = None

    @classmethod
    def of(cls, literal: pa.Scalar) -> Operand:
        """A literal."""
        return cls(pc.scalar(literal), literal.type, literal)


def number_literal(text: str) -> pa.Scalar:
    """A number as SQL writes it, in the type that Spark gives it.

    Raises:
        pa.ArrowInvalid: it has too many digits.
    """
    if "e" in text.lower():
        return pa.scalar(float(text))
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    if not scale:
        whole = int(value)
        for kind in (pa.int32(), pa.int64()):
            if -(2 ** (kind.bit_width - 1)) <= whole < 2 ** (kind.bit_width - 1):
                return pa.scalar(whole, kind)
    return pa.scalar(value, pa.decimal128(max(len(digits), scale), scale))


def is_exact(kind: pa.DataType) -> bool:
    """Whether numbers of the type are exact: whole numbers and decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def common_type(left: Operand, right: Operand) -> pa.DataType | None:
    """The type in which two values are compared or joined; None if they have none."""
    one, other = left.type, right.type
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _is_number(one) and _is_number(other):
        return _number_type(left, right)
    if _is_text(one) and _is_text(other):
        return pa.string()
    for text, kind in ((left, other), (right, one)):
        if _is_text(text.type) and text.literal is not None and not pa.types.is_nested(kind):
            return pa.int64() if pa.types.is_integer(kind) else pa.float64() if _is_number(kind) else kind
    times = [kind for kind in (one, other) if pa.types.is_timestamp(kind)]
    if len(times) == 2:
        return pa.timestamp("us", one.tz or other.tz)
    if times and any(pa.types.is_date(kind) for kind in (one, other)):
        return times[0]
    return None


def as_decimal(operand: Operand) -> pa.DataType:
    """The decimal type to which Spark casts an exact number."""
    if pa.types.is_decimal(operand.type):
        return operand.type
    if operand.literal is not None and operand.literal.is_valid:
        return pa.decimal128(len(str(abs(operand.literal.as_py()))), 0)
    return pa.decimal128(_DIGITS[operand.type], 0)


def cast_literal(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """A literal in another type, as Spark casts it.

    Raises:
        pa.ArrowException: it does not fit.
        OverflowError: as before.
    """
    if value.type == kind:
        return value
    found = value.as_py()
    if isinstance(found, str):
        return _text_as(found, kind)
    if pa.types.is_floating(kind) and isinstance(found, int | float | Decimal) and not isinstance(found, bool):
        return pa.scalar(float(found)).cast(kind)
    if pa.types.is_integer(kind) and isinstance(found, Decimal):
        return pa.scalar(int(found.to_integral_value(ROUND_DOWN)), kind)
    if pa.types.is_decimal(kind) and isinstance(found, int | Decimal) and not isinstance(found, bool):
        return pa.scalar(Decimal(found), kind)
    if pa.types.is_boolean(kind) != isinstance(found, bool) and found is not None:
        raise pa.ArrowInvalid("a boolean needs a boolean column")
    return value.cast(kind)


def cast_to(operand: Operand, kind: pa.DataType) -> Operand:
    """A value in the type of a comparison or a computation.

    Raises:
        pa.ArrowException: a literal does not fit the type.
        OverflowError: as before.
    """
    if operand.type == kind:
        return operand
    if operand.literal is not None:
        return Operand.of(cast_literal(operand.literal, kind))
    return Operand(cast_value(operand.expression, operand.type, kind), kind)


def cast_value(value: Any, before: pa.DataType, kind: pa.DataType) -> Any:
    """An expression of the type ``before`` in another type; for a double, the nearest number that it can hold.

    Raises:
        pa.ArrowNotImplementedError: Arrow cannot write the values as Spark does, or their text depends on a time zone.
    """
    if pa.types.is_floating(before) and pa.types.is_decimal(kind):
        return double_as_decimal(value.cast(pa.float64()), kind)
    if kind == pa.string():
        return _text_of(value, before)
    if pa.types.is_decimal(before) and pa.types.is_floating(kind):
        return value.cast(pa.string()).cast(kind)  # Arrow's own cast is not always the nearest
    return value.cast(kind, safe=not (pa.types.is_integer(before) and pa.types.is_floating(kind)))


def _text_of(value: Any, before: pa.DataType) -> Any:
    """The text of values, as Spark writes it."""
    if before == pa.timestamp("us") or pa.types.is_time(before):
        return time_text(value)
    exponents = pa.types.is_floating(before) or (pa.types.is_decimal(before) and before.scale > _PLAIN_SCALE)
    if exponents or (pa.types.is_timestamp(before) and before.tz is not None):
        raise pa.ArrowNotImplementedError(f"the text of a value of type {before}")
    return value.cast(pa.string())


def exactly(value: pa.Scalar) -> Decimal:
    """The number of an exact literal, or of text that holds a whole number."""
    return Decimal(value.as_py())


def _number_type(left: Operand, right: Operand) -> pa.DataType:
    one, other = left.type, right.type
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return pa.float64()  # also of a float and a whole number
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return one if one.bit_width > other.bit_width else other
    first, second = as_decimal(left), as_decimal(right)
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return pa.decimal128(min(whole + scale, MAX_DIGITS), min(scale, MAX_DIGITS - min(whole, MAX_DIGITS)))


def _is_number(kind: pa.DataType) -> bool:
    return is_exact(kind) or bool(pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text_as(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value of a text in a type."""
    bare = text.strip()
    if pa.types.is_integer(kind) and _WHOLE.match(bare):
        return pa.scalar(int(bare), kind)
    if pa.types.is_floating(kind):
        word = _WORDS.match(bare)
        if word:
            return pa.scalar(float(f"{word[1]}{word[2]}")).cast(kind)
        if _REAL.match(bare):
            return pa.scalar(float(bare.rstrip("fFdD"))).cast(kind)
    if pa.types.is_boolean(kind) and bare.lower() in _TRUE | _FALSE:
        return pa.scalar(bare.lower() in _TRUE)
    if pa.types.is_decimal(kind) and _REAL.match(bare):
        with localcontext() as context:
            context.prec = 2 * MAX_DIGITS
            return pa.scalar(Decimal(bare.rstrip("fFdD")).quantize(Decimal(1).scaleb(-kind.scale)), kind)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise pa.ArrowInvalid(f"{text!r} is no value of type {kind}")
    if pa.types.is_date(kind):
        return pa.scalar(_whole_day(bare)[0]).cast(kind)
    if pa.types.is_timestamp(kind):
        return _time(bare, kind)
    return pa.scalar(text).cast(kind)


def _whole_day(text: str) -> tuple[str, str]:
    """A day with two digits for month and day, even where the text omits them, and the text after it."""
    day = _DATE.match(text)
    return (f"{day[1]}-{int(day[2] or 1):02}-{int(day[3] or 1):02}", day[4] or "") if day else (text, "")


def _time(text: str, kind: pa.DataType) -> pa.Scalar:
    """A text as a timestamp; one without an offset is UTC, like the values of a column with a zone."""
    text, unit = "".join(_whole_day(text)), "ns" if kind.unit == "ns" else "us"
    if kind.tz is None or not _OFFSET.search(text):
        return pa.scalar(text).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, kind.tz))
    return pa.scalar(text).cast(pa.timestamp(unit, kind.tz))
