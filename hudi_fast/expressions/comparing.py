"""Comparisons of two values with Spark's results, as expressions of Arrow.

::

    sign, two operands ─► their common type ─┬─ exact number, literal ─► the column's own type, a literal of that type
                                             ├─ float or double ──────► NaN equals NaN and is above every number
                                             └─ any other ────────────► as Arrow compares

Arrow itself treats a literal with a decimal point as a float, which cannot hold every whole number of a column. In
Arrow every comparison with NaN is false except ``!=``. The result is null where one of the values is null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.coercion import Operand, cast_literal, cast_to, common_type, exactly, is_exact
from hudi_fast.expressions.conditions import TURNED
from hudi_fast.expressions.nan_order import compared_floats, compared_with_number

__all__ = ["compared", "is_nan", "joined", "listed", "unknown"]

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
