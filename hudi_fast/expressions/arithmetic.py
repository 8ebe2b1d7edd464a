"""``+ - * / %`` of SQL with Spark's types and results, as expressions of Arrow.

Whole numbers stay whole, except by division; decimals get the digits that ``DecimalPrecisionTypeCoercion`` and
``DecimalType.adjustPrecisionScale`` of Spark 4 give them, with the rounding of Spark's decimals. A whole number that
does not fit its type is an error, as in Spark's mode ANSI. A division by zero is null, as without that mode: Arrow
computes both sides of ``y <> 0 and x / y > 1`` for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.coercion import (
    MAX_DIGITS,
    Operand,
    as_decimal,
    cast_literal,
    cast_to,
    common_type,
    is_exact,
)

__all__ = ["computed", "negated"]

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
