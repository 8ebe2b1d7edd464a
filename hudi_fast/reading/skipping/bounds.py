"""Decide from the bounds of columns whether rows can match a condition.

::

    Condition, bounds of its columns ─► for each node: can it be true? can it be false? ─► bool[n]: rows may match

Each of the n bounds covers all rows of a file slice, or of a partition. A condition accepts rows for which it is
*true*. ``not`` asks whether its part can be false; a comparison with null is neither true nor false. Results use
Arrow's three-valued logic, with null for "unknown", which keeps the rows. Comparisons are evaluated as expressions on
the bounds in the columns' own types, so Arrow casts both sides as it does for rows.

Bounds ignore NaN, so on a floating-point column ``!=`` and a negated comparison can always be true. Only bounds that
are unknown wherever a value is NaN (``excludes_nan``) tell whether a value may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_fast.expressions.conditions import (
    OPPOSITE,
    And,
    Cast,
    Column,
    Compare,
    Condition,
    Constant,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    StartsWith,
    Value,
)
from hudi_fast.values import dataclass

__all__ = ["Bounds", "may_match"]

_MAX_RANGES = 64
_FAILURES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


@dataclass(frozen=True)
class Bounds:
    """Known facts about a column in each of n sets of rows.

    Attributes:
        low: lower bound, in the column's type; null: unknown.
        high: upper bound; null: unknown.
        has_null: whether there may be nulls; null: unknown.
        has_value: whether there may be values that are not null; null: unknown.
        excludes_nan: whether no value is NaN where the bounds are known.
    """

    low: pa.Array
    high: pa.Array
    has_null: pa.Array
    has_value: pa.Array
    excludes_nan: bool = False


@dataclass(frozen=True)
class _Side:
    """One side of a comparison, as expressions on the table of all bounds."""

    low: pc.Expression
    high: pc.Expression
    has_null: pc.Expression
    has_value: pc.Expression
    kind: pa.DataType
    excludes_nan: bool = False

    @property
    def may_be_nan(self) -> bool:
        return bool(pa.types.is_floating(self.kind))


def may_match(condition: Condition, bounds: Mapping[Column, Bounds], rows: int) -> npt.NDArray[np.bool_]:
    """bool[rows]: whether a set of rows may hold a row for which the condition is true.

    ``bounds`` holds, by column, the bounds of ``rows`` sets of rows; a missing column is unknown.
    """
    answers = _Answers(bounds, rows)
    result: npt.NDArray[np.bool_] = answers.can_be(True, condition).fill_null(True).to_numpy(zero_copy_only=False)
    return result


class _Answers:
    """Evaluates the nodes of a condition on one table of bounds."""

    def __init__(self, bounds: Mapping[Column, Bounds], rows: int) -> None:
        self.rows = rows
        self.numbers = {column: number for number, column in enumerate(bounds)}
        self.kinds = {column: one.low.type for column, one in bounds.items()}
        self.excludes_nan = {column: one.excludes_nan for column, one in bounds.items()}
        arrays: dict[str, pa.Array] = {"": pa.nulls(rows)}
        for column, number in self.numbers.items():
            one = bounds[column]
            parts = {"low": one.low, "high": one.high, "null": one.has_null, "value": one.has_value}
            arrays |= {f"{name}{number}": array for name, array in parts.items()}
        self.dataset = ds.dataset(pa.table(arrays))

    def can_be(self, truth: bool, condition: Condition) -> pa.Array:
        """Three-valued bool[rows]: whether the condition is ``truth`` for some row."""
        match condition:
            case Not():
                return self.can_be(not truth, condition.part)
            case And() | Or():
                parts = [self.can_be(truth, part) for part in condition.parts]
                join = pc.and_kleene if isinstance(condition, And) == truth else pc.or_kleene
                answer = parts[0]
                for part in parts[1:]:
                    answer = join(answer, part)
                return answer
            case Compare():
                return self._evaluate(self._compare(condition, truth))
            case In():
                return self._evaluate(self._in(condition, truth))
            case IsNull():
                return self._evaluate(self._is_null(condition, truth))
            case IsNan():
                return self._evaluate(self._is_nan(condition, truth))
            case StartsWith():
                return self._evaluate(self._starts_with(condition, truth))
            case _:
                return pa.nulls(self.rows, pa.bool_())

    def _evaluate(self, expression: pc.Expression | None) -> pa.Array:
        if expression is not None:
            try:
                column = self.dataset.to_table(columns={"answer": expression}).column(0)
                if pa.types.is_boolean(column.type) and len(column) == self.rows:
                    return column.combine_chunks()
            except _FAILURES:
                pass  # the bounds cannot be compared safely: the result is unknown
        return pa.nulls(self.rows, pa.bool_())

    # ---- leaves

    def _compare(self, node: Compare, truth: bool) -> pc.Expression | None:
        sides = (node.left, node.right)
        constants = [side.value for side in sides if isinstance(side, Constant)]
        if any(not one.is_valid for one in constants):
            return pc.scalar(False)  # the comparison is null
        left, right = self._side(node.left), self._side(node.right)
        if left is None or right is None or any(_is_nan(one) for one in constants):
            return None
        sign = node.sign if truth else OPPOSITE[node.sign]
        both = left.has_value & right.has_value
        nan = (left.may_be_nan and not isinstance(node.left, Constant)) or (
            right.may_be_nan and not isinstance(node.right, Constant)
        )
        if nan and (not truth) != (node.sign == "!="):
            return both
        return both & _possible(sign, left, right)

    def _in(self, node: In, truth: bool) -> pc.Expression | None:
        side = self._side(node.value)
        if side is None or isinstance(node.value, Constant):
            return None
        values = node.values.cast(side.kind) if self._casts(node.values, side.kind) else None
        if values is None or (side.may_be_nan and (not truth or _any_nan(values))):
            return None
        if truth:
            here = pc.scalar(False)
            for low, high in _ranges(values):
                here = here | ((side.low <= high) & (side.high >= low))
        else:
            here = ~((side.low == side.high) & side.low.isin(values))
        here = here & side.has_value
        return here | side.has_null if node.null_is is truth else here

    def _is_null(self, node: IsNull, truth: bool) -> pc.Expression | None:
        side = self._side(node.value)
        if side is None or isinstance(node.value, Constant):
            return None
        if not truth:
            return side.has_value
        nan = pc.scalar(pa.scalar(None, pa.bool_())) if node.or_nan and side.may_be_nan else pc.scalar(False)
        return side.has_null | nan

    def _is_nan(self, node: IsNan, truth: bool) -> pc.Expression | None:
        side = self._side(node.value)
        if side is None or isinstance(node.value, Constant):
            return None
        if not truth:
            return side.has_value
        if not side.may_be_nan:
            return pc.scalar(False)
        return side.low.is_null() & pc.scalar(pa.scalar(None, pa.bool_())) if side.excludes_nan else None

    def _starts_with(self, node: StartsWith, truth: bool) -> pc.Expression | None:
        side = self._side(node.value)
        if side is None or isinstance(node.value, Constant) or not pa.types.is_string(side.kind):
            return None
        low, high = (pc.starts_with(bound, node.prefix) for bound in (side.low, side.high))
        if truth:
            return side.has_value & ((side.low <= node.prefix) | low) & (side.high >= node.prefix)
        return side.has_value & ~(low & high) if node.exact else side.has_value

    # ---- sides

    def _side(self, value: Value) -> _Side | None:
        if isinstance(value, Constant):
            literal = pc.scalar(value.value)
            return _Side(literal, literal, pc.scalar(False), pc.scalar(True), value.value.type)
        if isinstance(value, Column) and value in self.numbers:
            number = self.numbers[value]
            low, high, null, has = (pc.field(f"{name}{number}") for name in ("low", "high", "null", "value"))
            return _Side(low, high, null, has, self.kinds[value], self.excludes_nan[value])
        if isinstance(value, Cast):
            inner = self._side(value.value)
            if inner is None or not _keeps_order(inner.kind, value.to):
                return None
            low, high = inner.low.cast(value.to), inner.high.cast(value.to)
            safe = inner.excludes_nan or not inner.may_be_nan
            return _Side(low, high, inner.has_null, inner.has_value, value.to, safe)
        return None

    @staticmethod
    def _casts(values: pa.Array, kind: pa.DataType) -> bool:
        try:
            values.cast(kind)
        except _FAILURES:
            return False
        return True


def _possible(sign: str, left: _Side, right: _Side) -> pc.Expression:
    match sign:
        case "==":
            return (left.low <= right.high) & (left.high >= right.low)
        case "!=":
            return ~((left.low == left.high) & (right.low == right.high) & (left.low == right.low))
        case "<":
            return left.low < right.high
        case "<=":
            return left.low <= right.high
        case ">":
            return left.high > right.low
        case _:
            return left.high >= right.low


def _ranges(values: pa.Array) -> list[tuple[pa.Scalar, pa.Scalar]]:
    """Minimum and maximum of neighbouring values, so that a few ranges cover all values."""
    values = pc.unique(values)
    values = values.take(pc.sort_indices(values))
    step = max(1, math.ceil(len(values) / _MAX_RANGES))
    return [(values[at], values[min(at + step, len(values)) - 1]) for at in range(0, len(values), step)]


def _keeps_order(kind: pa.DataType, to: pa.DataType) -> bool:
    """Whether a cast never reverses the order of two values."""
    if pa.types.is_integer(kind):
        return bool(pa.types.is_integer(to) or pa.types.is_floating(to) or pa.types.is_decimal(to))
    if pa.types.is_floating(kind):
        return bool(pa.types.is_floating(to))
    if pa.types.is_date(kind):
        return bool(pa.types.is_date(to) or pa.types.is_timestamp(to))
    if pa.types.is_timestamp(kind):
        return bool(pa.types.is_timestamp(to)) and kind.tz == to.tz
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal(to))
    return bool(kind == to)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type)) and math.isnan(float(value.as_py()))


def _any_nan(values: pa.Array) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())
