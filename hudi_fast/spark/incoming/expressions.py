"""Expressions of Spark to which Arrow gives the same values: the table of rules.

::

    Spark's expression ── toJSON ──► parsed: the rules below, by the name of Spark's class ──► Expression
    Expression + columns of a batch ──► evaluated ──► Arrow array

An expression without a rule is refused, so Spark evaluates it. Each rule is total: no value makes it fail, in ANSI mode
or not. Floating-point numbers are never compared, because NaN and -0.0 have other rules in Spark than in Arrow.
Source: ``org.apache.spark.sql.catalyst.expressions`` of Spark 3.5 to 4.3.

Why tasks do not read the files of a DataFrame themselves.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from hudi_fast.errors import HudiError
from hudi_fast.spark.arrow import arrow_types
from hudi_fast.values import dataclass

__all__ = [
    "Expression",
    "Named",
    "Nodes",
    "ScanRefusedError",
    "arrow_expression",
    "column",
    "evaluated",
    "has_rule",
    "kind_of",
    "parsed",
]


class ScanRefusedError(HudiError):
    """Rows that Spark itself has to read, because Arrow might read other values.

    It never reaches the caller of a write: the engine lets Spark read the rows, or raises a ``ConfigError``.

    Args:
        reason: what Arrow may read differently; part of a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Value: TypeAlias = pa.Array | pa.Scalar | pc.Expression

Nodes: TypeAlias = Sequence[Mapping[str, Any]]
"""An expression of Spark, from its JSON (``TreeNode.toJSON``): its nodes, each before its children."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over the columns of a scan.

    Attributes:
        rule: name of Spark's class.
        kind: Arrow type of the values.
        parts: operands.
        value: of a literal; number of a column of the scan, or of a field of a struct.
    """

    rule: str
    kind: pa.DataType
    parts: tuple[Expression, ...] = ()
    value: Any = None

    @property
    def columns(self) -> frozenset[int]:
        """The numbers of the columns of the scan that it uses."""
        if self.rule == "AttributeReference":
            return frozenset((self.value,))
        return frozenset(number for part in self.parts for number in part.columns)

    def moved(self, places: Mapping[int, int]) -> Expression:
        """The same expression over a scan in which its columns have other numbers."""
        if self.rule == "AttributeReference":
            return replace(self, value=places[self.value])
        return replace(self, parts=tuple(part.moved(places) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Named:
    """An expression of a projection.

    Attributes:
        number: Spark's number of the column that it makes.
        expression: its values.
    """

    number: int
    expression: Expression


def column(number: int, kind: pa.DataType) -> Expression:
    """The column of the scan with this number."""
    return Expression("AttributeReference", kind, value=number)


def kind_of(spark_type: Any) -> pa.DataType:
    """The Arrow type of Spark's JSON of a type."""
    field = {"name": "it", "type": spark_type, "nullable": True, "metadata": {}}
    return arrow_types(T.StructType.fromJson({"type": "struct", "fields": [field]}))[0].type


def has_rule(name: str) -> bool:
    """Whether expressions of Spark's class ``name`` may be accepted."""
    return name == "AttributeReference" or name in _RULES


def parsed(expression: Nodes, known: Mapping[int, Expression]) -> Named:
    """An expression of Spark.

    Args:
        expression: its nodes.
        known: expressions of the columns to which it may refer, by Spark's number.

    Raises:
        ScanRefusedError: there is no rule for a part of it.
    """
    nodes = iter(expression)
    first = next(nodes)
    if _rule(first) == "Alias":
        return Named(int(first["exprId"]["id"]), _expression(next(nodes), nodes, known))
    number = int(first["exprId"]["id"]) if "exprId" in first else -1
    return Named(number, _expression(first, nodes, known))


def evaluated(expression: Expression, columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """The values of an expression.

    Args:
        expression: of :func:`parsed`.
        columns: of the scan.
        rows: their number of rows.
    """
    value = _value(expression, columns, lambda one: one)
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def arrow_expression(expression: Expression, names: Sequence[str]) -> pc.Expression:
    """An expression of :func:`parsed` over columns of these names."""
    return _value(expression, [pc.field(name) for name in names], pc.scalar)


def _rule(node: Mapping[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]


def _expression(
    node: Mapping[str, Any], nodes: Iterator[Mapping[str, Any]], known: Mapping[int, Expression]
) -> Expression:
    name = _rule(node)
    if name == "AttributeReference":
        found = known.get(int(node["exprId"]["id"]))
        if found is None:
            raise ScanRefusedError(f"the column {node['name']} is not a column of the files")
        return found
    rule = _RULES.get(name)
    if rule is None:
        raise ScanRefusedError(f"Spark evaluates {name}")
    parts = tuple(_expression(next(nodes), nodes, known) for _ in range(int(node["num-children"])))
    return rule(name, node, parts)


# ---- rules: what is accepted


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_COMPARED = frozenset({*_INTEGERS, pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")})


def _literal(name: str, node: Mapping[str, Any], parts: tuple[Expression, ...]) -> Expression:
    kind, text = kind_of(node["dataType"]), node["value"]
    value: Any
    if text is None:
        value = None
    elif kind in _INTEGERS:
        value = int(text)
    elif kind == pa.bool_():
        value = {"true": True, "false": False}[text]
    elif kind == pa.string():
        value = text
    elif kind == pa.float64():
        value = float(text)
    elif pa.types.is_decimal128(kind):
        value = decimal.Decimal(text)
    elif kind == pa.date32():
        try:
            value = datetime.date.fromisoformat(text)
        except ValueError:
            raise ScanRefusedError(f"Spark evaluates the date {text}") from None
    else:
        raise ScanRefusedError(f"Spark evaluates a constant of the type {node['dataType']}")
    return Expression(name, kind, value=value)


def _cast(name: str, node: Mapping[str, Any], parts: tuple[Expression, ...]) -> Expression:
    """Casts that keep every value, and the text of integers and booleans."""
    source, kind = parts[0].kind, kind_of(node["dataType"])
    if not _is_lossless(source, kind):
        raise ScanRefusedError(f"Spark casts {source} to {kind}")
    return Expression(name, kind, parts)


def _is_lossless(source: pa.DataType, kind: pa.DataType) -> bool:
    if source in _INTEGERS:
        if kind in _INTEGERS:
            return bool(source.bit_width < kind.bit_width)
        if pa.types.is_decimal128(kind):
            return bool(kind.precision - kind.scale >= _DIGITS[source])
        return bool(kind == pa.string() or (kind == pa.float64() and source != pa.int64()))
    if pa.types.is_decimal128(source) and pa.types.is_decimal128(kind):
        whole = kind.precision - kind.scale >= source.precision - source.scale
        return bool(whole and kind.scale >= source.scale)
    return bool((source == pa.bool_() and kind == pa.string()) or (source == pa.float32() and kind == pa.float64()))


def _comparison(name: str, node: Mapping[str, Any], parts: tuple[Expression, ...]) -> Expression:
    kinds = {part.kind for part in parts}
    if len(parts) < 2 or len(kinds) > 1 or not all(kind in _COMPARED or pa.types.is_decimal128(kind) for kind in kinds):
        raise ScanRefusedError(f"Spark compares {' and '.join(sorted(str(kind) for kind in kinds))}")
    return Expression(name, pa.bool_(), parts)


def _condition(name: str, node: Mapping[str, Any], parts: tuple[Expression, ...]) -> Expression:
    return Expression(name, pa.bool_(), parts)


def _field(name: str, node: Mapping[str, Any], parts: tuple[Expression, ...]) -> Expression:
    number = int(node["ordinal"])
    return Expression(name, parts[0].kind.field(number).type, parts, number)


_RULES: dict[str, Callable[[str, Mapping[str, Any], tuple[Expression, ...]], Expression]] = {
    "Literal": _literal,
    "Cast": _cast,
    "GetStructField": _field,
    **dict.fromkeys(("And", "Or", "Not", "IsNull", "IsNotNull"), _condition),
    **dict.fromkeys(
        ("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In"),
        _comparison,
    ),
}


# ---- values


def _value(expression: Expression, columns: Sequence[Value], constant: Callable[[pa.Scalar], Value]) -> Value:
    """The value over these columns; ``constant`` makes a value of the same form of a literal."""
    if expression.rule == "AttributeReference":
        return columns[expression.value]
    if expression.rule == "Literal":
        return constant(pa.scalar(expression.value, expression.kind))
    return _VALUES[expression.rule](expression, [_value(part, columns, constant) for part in expression.parts])


def _equal_or_both_null(expression: Expression, parts: Sequence[Value]) -> Value:
    left, right = parts
    equal = pc.coalesce(pc.equal(left, right), pa.scalar(False))
    return pc.or_kleene(equal, pc.and_kleene(pc.is_null(left), pc.is_null(right)))


def _in(expression: Expression, parts: Sequence[Value]) -> Value:
    """Null where no constant is equal and one is null."""
    value, *constants = parts
    return reduce(pc.or_kleene, [pc.equal(value, one) for one in constants])


_VALUES: dict[str, Callable[[Expression, Sequence[Value]], Value]] = {
    "Cast": lambda expression, parts: parts[0].cast(expression.kind),
    "GetStructField": lambda expression, parts: pc.struct_field(parts[0], [expression.value]),
    "And": lambda _, parts: pc.and_kleene(*parts),
    "Or": lambda _, parts: pc.or_kleene(*parts),
    "Not": lambda _, parts: pc.invert(*parts),
    "IsNull": lambda _, parts: pc.is_null(*parts),
    "IsNotNull": lambda _, parts: pc.is_valid(*parts),
    "EqualTo": lambda _, parts: pc.equal(*parts),
    "LessThan": lambda _, parts: pc.less(*parts),
    "LessThanOrEqual": lambda _, parts: pc.less_equal(*parts),
    "GreaterThan": lambda _, parts: pc.greater(*parts),
    "GreaterThanOrEqual": lambda _, parts: pc.greater_equal(*parts),
    "EqualNullSafe": _equal_or_both_null,
    "In": _in,
}
