"""Translates Spark filters to conditions for data skipping.

::

    SQL text or Column ─► Spark's analyzer, over no rows ─► its expression tree ─► Condition and its columns

Spark applies the filter to the rows; the condition only skips files before that. An unsupported expression becomes a
condition that is always unknown.

In Spark NaN is greater than any other number and equal to itself; in Arrow it is neither. A comparison with NaN is not
supported here. ``x > 5``, which is true for a NaN in the column, is supported: statistics of a file with NaN have no
bounds, or NaN as the greatest value, so the file is kept. (Only where Apache Hudi takes statistics from footers written
by Arrow do bounds ignore NaN; from these footers Spark itself skips the same rows.)

Source of the names: ``org.apache.spark.sql.catalyst.expressions`` of Spark 3.5 to 4.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from hudi_fast.errors import ConfigError
from hudi_fast.expressions.conditions import (
    TURNED,
    And,
    Anything,
    Cast,
    Column,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Value,
    chain,
    like_condition,
)
from hudi_fast.reading.skipping.expressions import SPARK
from hudi_fast.spark.jvm import java_class
from hudi_fast.values import dataclass

__all__ = ["SparkFilter", "spark_condition", "understand_filter"]

_SIGNS = {
    "EqualTo": "==",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)$")
_FUNCTIONS = {"Upper": "upper", "Lower": "lower", "Length": "length", "Year": "year", "Month": "month"} | {
    "DayOfMonth": "day"
}
_TRIMS = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}


@dataclass(frozen=True)
class SparkFilter:
    """A filter of a Spark query.

    Attributes:
        condition: for data skipping.
        columns: top-level columns that it uses.
    """

    condition: Condition
    columns: tuple[str, ...]


class _Unknown(Exception):
    """Raised for an unsupported value."""


def understand_filter(spark: Any, schema: Any, filter_: Any, alias: str | None = None) -> SparkFilter:
    """Translate a filter on rows with these columns.

    Args:
        spark: the session.
        schema: Spark's schema of the table.
        filter_: SQL text, or a Column.
        alias: a prefix that columns may have; None without one.

    Raises:
        ConfigError: Spark refuses the filter.
    """
    try:
        rows = spark.createDataFrame([], schema)
        frame = (rows if alias is None else rows.alias(alias)).filter(filter_)
        if not hasattr(frame, "_jdf"):  # Spark Connect: plans are made elsewhere
            return SparkFilter(Anything(), tuple(schema.names))
        plan = frame._jdf.queryExecution().analyzed()
    except PySparkException as error:
        raise ConfigError(f"The filter {filter_!s} does not fit the table: {error}") from error
    if _name(plan) != "Filter":
        return SparkFilter(Anything(), tuple(schema.names))
    condition = _in_names_of(spark, plan)
    names = set(_items(condition.references().toSeq(), lambda one: str(one.name())))
    return SparkFilter(spark_condition(condition), tuple(name for name in schema.names if name in names))


def _in_names_of(spark: Any, plan: Any) -> Any:
    """The condition of a filter with the column names of its rows: the analyzer spells them as the text does."""
    strategy = java_class(spark._jvm, "org.apache.spark.sql.execution.datasources.DataSourceStrategy$")
    return getattr(strategy, "MODULE$").normalizeExprs(plan.expressions(), plan.child().output()).head()


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: Any, make: Callable[[Any], Any]) -> list[Any]:
    return [make(sequence.apply(at)) for at in range(sequence.size())]


def spark_condition(node: Any) -> Condition:
    """The condition of a Catalyst expression, a Java object; :class:`Anything` if it is not supported."""
    kind = _name(node)
    if kind in ("And", "Or"):
        sides = chain(node, lambda one: (one.left(), one.right()) if _name(one) == kind else None)
        parts = tuple(spark_condition(part) for part in sides)
        return And(parts) if kind == "And" else Or(parts)
    if kind == "Not":
        return Not(spark_condition(node.child()))
    try:
        return _leaf(kind, node)
    except _Unknown:
        return Anything()


def _leaf(kind: str, node: Any) -> Condition:
    if kind in _SIGNS:
        return _compare(_SIGNS[kind], _value(node.left()), _value(node.right()), _type(node.left()))
    if kind == "Between":
        return _between(node.replacement())
    if kind == "EqualNullSafe":
        return _listed(_value(node.left()), [_value(node.right())], False)
    if kind == "IsNull":
        return IsNull(_value(node.child()))
    if kind == "IsNotNull":
        return Not(IsNull(_value(node.child())))
    if kind == "In":
        return _listed(_value(node.value()), _items(node.list(), _value))
    if kind == "StartsWith":
        return StartsWith(_value(node.left()), _text(_value(node.right())))
    if kind == "Like" and str(node.escapeChar()) == "\\":
        return like_condition(_value(node.left()), _text(_value(node.right())))
    if kind in ("AttributeReference", "Literal") and _type(node) == pa.bool_():
        return Compare("==", _value(node), Constant(pa.scalar(True)))
    return Anything()


def _compare(sign: str, left: Value, right: Value, kind: pa.DataType) -> Condition:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        sign, left, right = TURNED[sign], right, left
    if not pa.types.is_floating(kind) and not _is_floating(right):
        return Compare(sign, left, right)
    if not isinstance(right, Constant) or (right.value.is_valid and math.isnan(right.value.as_py())):
        return Anything()
    return Compare(sign, left, right)


def _is_floating(value: Value) -> bool:
    return isinstance(value, Constant) and bool(pa.types.is_floating(value.value.type))


def _between(node: Any) -> Condition:
    """Two comparisons of one value, which Spark 4 writes as a definition and references to it."""
    if _name(node) != "With" or node.defs().size() != 1 or _name(node.child()) != "And":
        raise _Unknown
    value = _value(node.defs().apply(0).child())
    parts = []
    for one in (node.child().left(), node.child().right()):
        if _name(one.left()) != "CommonExpressionRef" or _name(one) not in _SIGNS:
            raise _Unknown
        parts.append(_compare(_SIGNS[_name(one)], value, _value(one.right()), _type(one.left())))
    return And(tuple(parts))


def _listed(value: Value, items: list[Value], null_is: bool | None = None) -> Condition:
    scalars = [item.value for item in items if isinstance(item, Constant)]
    if len(scalars) < len(items) or len({one.type for one in scalars}) != 1:
        return Anything()
    values = pa.array([one.as_py() for one in scalars], scalars[0].type)
    if null_is is False and values.null_count:
        return Anything()  # a null equals null
    return In(value, values.drop_null(), null_is)


def _value(node: Any) -> Value:
    kind = _name(node)
    if kind == "Literal":
        return Constant(_scalar(node.value(), _type(node)))
    if kind == "AttributeReference":
        if '"__' in str(node.metadata().json()):
            raise _Unknown  # a field of Spark's _metadata, which may have the name of a column
        return Column((str(node.name()),))
    if kind == "GetStructField":
        return _inside(node)
    if kind == "Cast":
        if _is_literal(node):
            return Constant(_scalar(node.eval(None), _type(node)))
        if _name(node.child()) != "Cast" and _known_type(node.child()) == _type(node):
            return _value(node.child())  # the analyzer casts all values of a list
        if pa.types.is_timestamp(_type(node)):
            raise _Unknown  # the begin of a day depends on the session's time zone
        return Cast(_value(node.child()), _type(node))
    if kind in _FUNCTIONS:
        return Function(f"{SPARK}{_FUNCTIONS[kind]}", _value(node.child()))
    return _with_options(kind, node)


def _with_options(kind: str, node: Any) -> Function:
    """A function with arguments beside its column, which must be literals."""
    if kind in _TRIMS:
        given = {} if node.trimStr().isEmpty() else {"trimString": node.trimStr().get()}
        return _function(_TRIMS[kind], node.srcStr(), given)
    if kind == "Substring":
        return _function("substring", node.str(), {"pos": node.pos(), "len": node.len()})
    if kind in ("DateAdd", "DateSub"):
        return _function("date_add" if kind == "DateAdd" else "date_sub", node.startDate(), {"days": node.days()})
    if kind == "RegExpExtract":
        return _function("regexp_extract", node.subject(), {"pattern": node.regexp(), "idx": node.idx()})
    if kind == "RegExpReplace" and _literal_text(node.pos()) == "1":
        return _function("regexp_replace", node.subject(), {"pattern": node.regexp(), "replacement": node.rep()})
    raise _Unknown


def _function(name: str, child: Any, options: Mapping[str, Any]) -> Function:
    return Function(f"{SPARK}{name}", _value(child), {key: _literal_text(one) for key, one in options.items()})


def _literal_text(node: Any) -> str:
    if _name(node) != "Literal" or node.value() is None:
        raise _Unknown
    return str(node.value().toString()) if _type(node) == pa.string() else str(node.value())


def _inside(node: Any) -> Column:
    outer = _value(node.child())
    if not isinstance(outer, Column):
        raise _Unknown
    return Column((*outer.path, str(node.childSchema().apply(node.ordinal()).name())))


def _is_literal(node: Any) -> bool:
    """Whether a cast is of a literal, so that its result is constant."""
    child = node.child()
    return _name(child) == "Literal" or (_name(child) == "Cast" and _is_literal(child))


def _type(node: Any) -> pa.DataType:
    text = str(node.dataType().catalogString())
    found = _DECIMAL.match(text)
    if found:
        return pa.decimal128(int(found[1]), int(found[2]))
    if text not in _TYPES:
        raise _Unknown
    return _TYPES[text]


def _known_type(node: Any) -> pa.DataType | None:
    try:
        return _type(node)
    except _Unknown:
        return None


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value in Spark's internal form: days, microseconds, its own strings and decimals."""
    if value is None:
        return pa.scalar(None, kind)
    if pa.types.is_string(kind):
        return pa.scalar(str(value.toString()), kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(str(value.toString())), kind)
    if pa.types.is_date(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, pa.int64()).cast(kind)
    return pa.scalar(value, kind)


def _text(value: Value) -> str:
    if isinstance(value, Constant) and isinstance(value.value.as_py(), str):
        return str(value.value.as_py())
    raise _Unknown
