"""The truth value of a SQL comparison for one row: the slow twin of :mod:`hudi_fast.expressions.sql_values`.

Values are Python's: int, float, Decimal, None. Each comparison is made of fractions or of doubles, never of Arrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

__all__ = ["Number", "compared", "listed"]

Number = int | float | Decimal


def compared(sign: str, left: Number | None, right: Number | None) -> bool | None:
    """``left sign right`` as Spark answers it; None is null.

    A float beside any other number makes both doubles. NaN equals NaN and is greater than every number.
    """
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        order = _order_of_floats(float(left), float(right))
    else:
        one, other = Fraction(left), Fraction(right)
        order = (one > other) - (one < other)
    return {
        "==": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[sign]


def listed(value: Number | None, numbers: Sequence[Number]) -> bool | None:
    """``value in (...)``; all numbers are doubles if one of them is."""
    if value is None:
        return None
    if any(isinstance(one, float) for one in (value, *numbers)):
        value, numbers = float(value), [float(one) for one in numbers]
    return any(compared("==", value, one) is True for one in numbers)


def _order_of_floats(left: float, right: float) -> int:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)
