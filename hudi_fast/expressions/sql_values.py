"""Types, arithmetic and comparisons of SQL values, with Spark's results.

``+ - * / %`` of SQL with Spark's types and results, as expressions of Arrow.

Whole numbers stay whole, except by division; decimals get the digits that ``DecimalPrecisionTypeCoercion`` and
``DecimalType.adjustPrecisionScale`` of Spark 4 give them, with the rounding of Spark's decimals. A whole number that
does not fit its type is an error, as in Spark's mode ANSI. A division by zero is null, as without that mode: Arrow
computes both sides of ``y <> 0 and x / y > 1`` for every row.

The types of SQL literals, and the common type in which Spark compares or computes two values.

::

    1 ─► int      99999999999 ─► bigint      0.5 ─► decimal(1,1)      5e-1 ─► double      'a' ─► string

    int, bigint ─► bigint      int, decimal ─► decimal      float, other numbers ─► double
    date, timestamp ─► timestamp      text literal, number ─► bigint or double      text literal, other ─► other

Source: ``AnsiTypeCoercion``, ``DecimalPrecisionTypeCoercion``, ``AstBuilder`` and ``UTF8StringUtils`` of Spark 4, in
which the mode ANSI is the default.

Comparisons of two values with Spark's results, as expressions of Arrow.

::

    sign, two operands ─► their common type ─┬─ exact number, literal ─► the column's own type, a literal of that type
                                             ├─ float or double ──────► NaN equals NaN and is above every number
                                             └─ any other ────────────► as Arrow compares

Arrow itself treats a literal with a decimal point as a float, which cannot hold every whole number of a column. In
Arrow every comparison with NaN is false except ``!=``. The result is null where one of the values is null.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_FLOOR, Decimal, localcontext
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.arrow_trees import compared_floats, compared_with_number
from hudi_fast.expressions.conditions import TURNED
from hudi_fast.schema.cast import double_as_decimal, time_text
from hudi_fast.values import dataclass

__all__ = [
    "MAX_DIGITS",
    "Operand",
    "as_decimal",
    "cast_literal",
    "cast_to",
    "cast_value",
    "common_type",
    "compared",
    "computed",
    "exactly",
    "is_exact",
    "is_nan",
    "joined",
    "listed",
    "negated",
    "number_literal",
    "unknown",
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


_COMPUTE: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": pc.add_checked,
    "Sub": pc.subtract_checked,
    "Mul": pc.multiply_checked,
}
_LEAST_SCALE = 6


def computed(kind: str, left: Operand, right: Operand) -> Operand | None:
    """The result of ``Add``, ``Sub``, ``Mul``, ``Div`` or ``Mod``; None for types that it is not defined for.

    Raises:
        pa.ArrowException: a literal does not fit the type.
        OverflowError: as before.
    """
    type_ = common_type(left, right)
    if type_ is None or not (is_exact(type_) or pa.types.is_floating(type_)):
        return None
    if kind == "Mod" and not pa.types.is_integer(type_):
        return None
    if kind == "Div" and pa.types.is_integer(type_):
        type_ = pa.float64()
    if any(pa.types.is_null(one.type) for one in (left, right)):
        return Operand(pc.scalar(pa.scalar(None, type_)), type_)
    if pa.types.is_decimal(type_):
        return _decimals(kind, left, right)
    first, second = cast_to(left, type_).expression, cast_to(right, type_).expression
    if kind == "Div":
        return Operand(pc.divide(first, _not_zero(second, right, type_)), type_)
    if kind == "Mod":
        divisor = _not_zero(second, right, type_)
        return Operand(first - pc.divide(first, divisor) * divisor, type_)
    return Operand(_COMPUTE[kind](first, second), type_)


def negated(operand: Operand) -> Operand:
    """``-value``."""
    return Operand(pc.negate_checked(operand.expression), operand.type)


def _not_zero(divisor: Any, operand: Operand, kind: pa.DataType) -> Any:
    """The divisor, null where it is zero."""
    if operand.literal is not None and operand.literal.as_py() not in (0, None):
        return divisor
    return pc.if_else(divisor == pc.scalar(cast_literal(pa.scalar(0), kind)), pa.scalar(None, kind), divisor)


def _decimals(kind: str, left: Operand, right: Operand) -> Operand:
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    if kind == "Mul":
        scale, digits = one.scale + other.scale, one.precision + other.precision + 1
    elif kind == "Div":
        scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
        digits = one.precision - one.scale + other.scale + scale
    else:
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    result = _bounded(digits, scale)
    first, second = cast_to(left, one).expression, cast_to(right, other).expression
    if digits > MAX_DIGITS or kind == "Div":
        first, second = (
            value.cast(pa.decimal256(type_.precision, type_.scale)) for value, type_ in ((first, one), (second, other))
        )
    if kind == "Div":
        # Arrow cuts digits off: one more digit than Spark keeps is enough to round. In Arrow a quotient has the
        # fraction digits of the dividend, plus the whole digits of the divisor, plus one.
        more = max(one.scale, scale - other.precision + other.scale)
        first = first.cast(pa.decimal256(one.precision - one.scale + more, more))
        found = pc.divide(first, _not_zero(second, right, pa.decimal256(other.precision, other.scale)))
    else:
        found = _COMPUTE[kind](first, second)
    if kind == "Div" or scale > result.scale:
        found = pc.round(found, result.scale, round_mode="half_towards_infinity")
    return Operand(found.cast(result), result)


def _bounded(digits: int, scale: int) -> pa.DataType:
    """A decimal type; one with too many digits loses some of its fraction."""
    if digits <= MAX_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(MAX_DIGITS, max(MAX_DIGITS - (digits - scale), min(scale, _LEAST_SCALE)))


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def unknown() -> pc.Expression:
    """The truth value null."""
    return pc.scalar(pa.scalar(None, pa.bool_()))


def joined(parts: Sequence[pc.Expression], join: Callable[[Any, Any], Any]) -> pc.Expression:
    """Conditions joined by ``and`` or ``or``, as a balanced tree: a long chain would exceed every limit of depth."""
    level = list(parts)
    while len(level) > 1:
        level = [reduce(join, level[at : at + 2]) for at in range(0, len(level), 2)]
    return level[0]


def compared(sign: str, left: Operand, right: Operand) -> pc.Expression | None:
    """``left sign right`` with one of ``== != < <= > >=``; None if the types do not compare.

    Raises:
        pa.ArrowException: a literal does not fit the type.
        OverflowError: as before.
    """
    if left.literal is not None and right.literal is None:
        sign, left, right = TURNED[sign], right, left
    kind = common_type(left, right)
    if kind is None:
        return None
    if any(one.literal is not None and not one.literal.is_valid for one in (left, right)):
        return unknown()
    if is_exact(kind) and is_exact(left.type) and right.literal is not None:
        number = exactly(right.literal if is_exact(right.type) else cast_literal(right.literal, kind))
        return _beside_number(sign, left, number)
    if pa.types.is_floating(kind):
        return _floats(sign, left, right, kind)
    if is_exact(kind):  # for two decimals, Arrow itself finds a type that holds both
        return _COMPARE[sign](left.expression, right.expression)
    return _COMPARE[sign](cast_to(left, kind).expression, cast_to(right, kind).expression)


def listed(value: Operand, literals: Sequence[Operand]) -> pc.Expression | None:
    """Whether a value equals one of some non-null literals; null for a null. None if the types do not compare.

    Raises:
        pa.ArrowException: a literal does not fit the type.
        OverflowError: as before.
    """
    whole = value
    for one in {one.type: one for one in literals}.values():
        kind = common_type(whole, one)
        if kind is None:
            return None
        whole = Operand(value.expression, kind)
    if is_exact(whole.type) and is_exact(value.type):
        numbers = (
            exactly(one.literal if is_exact(one.type) else cast_literal(one.literal, whole.type)) for one in literals
        )
        found = [_as_stored(units, value.type) for units, fits in (_units(one, value.type) for one in numbers) if fits]
        tested, values = value.expression, pa.array(found, value.type)
    else:
        tested = cast_to(value, whole.type).expression
        values = pa.array([cast_literal(one.literal, whole.type).as_py() for one in literals], whole.type)
        if pa.types.is_floating(whole.type) and 0.0 in values.to_pylist():
            values = pa.concat_arrays([values, pa.array([0.0, -0.0], whole.type)])  # Arrow looks for the same bits
    return tested.isin(values) | (tested.is_null() & unknown())


def is_nan(operand: Operand) -> pc.Expression:
    """Whether a float or a double is NaN; null for a null."""
    return pc.is_nan(operand.expression)


# ---- whole numbers and decimals


def _beside_number(sign: str, value: Operand, number: Decimal) -> pc.Expression:
    """A comparison with a number that the type of the value may be unable to hold."""
    units, fits = _units(number, value.type)
    lowest, highest = _range(value.type)
    if units > highest or units < lowest:
        above = units > highest
        return _always(value) if sign == "!=" or (sign != "==" and (sign in ("<", "<=")) == above) else _never(value)
    if not fits and sign in ("==", "!="):
        return _never(value) if sign == "==" else _always(value)
    if not fits:  # the number is between this value and the next
        sign = "<=" if sign in ("<", "<=") else ">"
    return _COMPARE[sign](value.expression, pc.scalar(pa.scalar(_as_stored(units, value.type), value.type)))


def _units(number: Decimal, kind: pa.DataType) -> tuple[int, bool]:
    """A number in steps of the type, rounded down, and whether the type can hold the number exactly."""
    with localcontext() as context:
        context.prec = 200
        scaled = number.scaleb(kind.scale if pa.types.is_decimal(kind) else 0)
        units = int(scaled.to_integral_value(ROUND_FLOOR))
        lowest, highest = _range(kind)
        return units, units == scaled and lowest <= units <= highest


def _as_stored(units: int, kind: pa.DataType) -> int | Decimal:
    with localcontext() as context:
        context.prec = 200
        return Decimal(units).scaleb(-kind.scale) if pa.types.is_decimal(kind) else units


def _range(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of a type, in its smallest steps."""
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def _always(value: Operand) -> pc.Expression:
    return value.expression.is_valid() | unknown()


def _never(value: Operand) -> pc.Expression:
    return value.expression.is_null() & unknown()


# ---- floats and doubles


def _floats(sign: str, left: Operand, right: Operand, kind: pa.DataType) -> pc.Expression:
    if right.literal is not None:
        number = float(cast_literal(right.literal, kind).as_py())
        if left.type == pa.float32() and pa.scalar(number).cast(pa.float32()).as_py() == number:
            kind = left.type  # the column need not be cast
        literal = pc.scalar(pa.scalar(number).cast(kind))
        return compared_with_number(_Expressions(), sign, cast_to(left, kind).expression, literal, number)
    return compared_floats(_Expressions(), sign, cast_to(left, kind).expression, cast_to(right, kind).expression)


class _Expressions:
    """Conditions as expressions of Arrow."""

    def compare(self, sign: str, left: pc.Expression, right: pc.Expression) -> pc.Expression:
        return _COMPARE[sign](left, right)

    def is_nan(self, value: pc.Expression) -> pc.Expression:
        return pc.is_nan(value)

    def is_valid(self, value: pc.Expression) -> pc.Expression:
        return value.is_valid()

    def both(self, one: pc.Expression, other: pc.Expression) -> pc.Expression:
        return one & other

    def either(self, one: pc.Expression, other: pc.Expression) -> pc.Expression:
        return one | other

    def negated(self, condition: pc.Expression) -> pc.Expression:
        return ~condition
