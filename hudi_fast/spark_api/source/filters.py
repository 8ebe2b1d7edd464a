"""Translates filters that Spark pushes down to a Python data source.

::

    Filter ─┬─► Condition      skips files without matching rows
            └─► expression     drops other rows in the worker

Spark applies every filter again, so both may keep too many rows, but never too few. In Spark NaN is greater than any
other number and equal to itself, so filters on floating-point columns skip files but drop no rows; statistics of files
with NaN have no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds

from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import And, Anything, Column, Compare, Condition, Constant

__all__ = ["Pushed", "understand"]

_SIGNS: dict[type[Any], str] = {
    ds.EqualTo: "==",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_TEXTS = {
    ds.StringStartsWith: pc.starts_with,
    ds.StringEndsWith: pc.ends_with,
    ds.StringContains: pc.match_substring,
}


@dataclass(frozen=True)
class Pushed:
    """Translated filters.

    Attributes:
        condition: for data skipping.
        expression: keeps all matching rows, and perhaps others; None for all rows.
    """

    condition: Condition
    expression: pc.Expression | None


def understand(filters: Iterable[Any], schema: pa.Schema) -> Pushed:
    """Translate filters joined by ``and``.

    Args:
        filters: of :mod:`pyspark.sql.datasource`.
        schema: of the table.
    """
    conditions: list[Condition] = []
    expression: pc.Expression | None = None
    for one in filters:
        condition, keeps = _understand(one, schema)
        conditions.append(condition)
        if keeps is not None:
            expression = keeps if expression is None else expression & keeps
    return Pushed(And(tuple(conditions)) if conditions else Anything(), expression)


def _understand(one: Any, schema: pa.Schema) -> tuple[Condition, pc.Expression | None]:
    inner, negated = (one.child, True) if isinstance(one, ds.Not) else (one, False)
    kind = _type_of(schema, inner.attribute)
    if kind is None:
        return Anything(), None
    try:
        if pa.types.is_floating(kind) and not isinstance(inner, ds.IsNull | ds.IsNotNull):
            return (Anything() if negated else _floating(inner, kind)), None
        expression = _expression(inner, pc.field(*inner.attribute), kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return Anything(), None  # a value that the column cannot hold
    if expression is None:
        return Anything(), None
    expression = ~expression if negated else expression
    return parse_filter(expression), expression


def _expression(one: Any, field: pc.Expression, kind: pa.DataType) -> pc.Expression | None:
    """The Arrow expression, for columns whose values compare in Arrow as in Spark."""
    if isinstance(one, ds.IsNull):
        return field.is_null()
    if isinstance(one, ds.IsNotNull):
        return field.is_valid()
    if not _compares_alike(kind):
        return None
    if isinstance(one, ds.In):
        # With a null among the values Spark yields null for a value not found. Here it is false; negation keeps more.
        return field.isin(pa.array([value for value in one.value if value is not None], kind))
    if type(one) in _TEXTS and pa.types.is_string(kind):
        return _TEXTS[type(one)](field, one.value)
    if isinstance(one, ds.EqualNullSafe):
        return field.is_null() if one.value is None else field.isin(pa.array([one.value], kind))
    sign = _SIGNS.get(type(one))
    return None if sign is None or one.value is None else _compared(field, sign, pa.scalar(one.value, kind))


def _compared(field: pc.Expression, sign: str, value: pa.Scalar) -> pc.Expression:
    if sign == "==":
        return field == value
    if sign == ">":
        return field > value
    if sign == ">=":
        return field >= value
    return field < value if sign == "<" else field <= value


def _floating(one: Any, kind: pa.DataType) -> Condition:
    sign = _SIGNS.get(type(one))
    if sign is None or one.value is None or math.isnan(one.value):
        return Anything()
    return Compare(sign, Column(tuple(one.attribute)), Constant(pa.scalar(one.value, kind)))


def _type_of(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType | None:
    """Type of a column, or of a field inside structs; None for an unknown name."""
    fields: Any = schema
    for at, name in enumerate(path):
        found = fields.get_field_index(name)
        if found < 0:
            return None
        kind = fields.field(found).type
        if at < len(path) - 1 and not pa.types.is_struct(kind):
            return None
        fields = kind
    return kind if path else None


def _compares_alike(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal128(kind)
    )
