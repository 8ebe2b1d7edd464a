"""Filters of Arrow as conditions.

::

    pyarrow expression ─► its tree of calls, fields and literals ─► Condition, columns ─► RowFilter

An unreadable expression, and a call of a function that has no entry here, becomes :class:`Anything`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.arrow_trees import Call, Field, Literal, Node, on_safe_bounds, tree_of
from hudi_fast.expressions.conditions import (
    And,
    Anything,
    Cast,
    Column,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    StartsWith,
    Value,
    chain,
    columns_of,
    like_condition,
)
from hudi_fast.values import dataclass

__all__ = ["RowFilter", "parse_filter"]

_SIGNS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_TRUE = Constant(pa.scalar(True))


@dataclass(frozen=True)
class RowFilter:
    """A filter in the forms that the steps of a read need, parsed once. Picklable.

    Attributes:
        expression: applied to rows.
        condition: used to skip files; :class:`Anything` where the expression is not understood.
        columns: top-level columns that the expression uses; possibly more, never fewer.
        may_pass_nan: whether a row with NaN in one of these columns may match. Statistics ignore NaN.
        on_safe_bounds: the expression for files whose row groups have no bounds for a column with NaN; None if the
            bounds decide nothing.
    """

    expression: pc.Expression
    condition: Condition
    columns: frozenset[str]
    may_pass_nan: bool
    on_safe_bounds: pc.Expression | None = None

    @classmethod
    def of(cls, expression: pc.Expression, schema: pa.Schema) -> RowFilter:
        """Parse an expression over columns of ``schema``. An unreadable expression counts as using all of them."""
        tree = tree_of(expression)
        if tree is None:
            return cls(expression, Anything(), frozenset(schema.names), may_pass_nan=True)
        condition, calls = _condition(tree.root), list(_calls(tree.root))
        columns = frozenset(one.path[0] for call in calls for one in call.arguments if isinstance(one, Field))
        if isinstance(tree.root, Field):
            columns = frozenset(tree.root.path[:1])
        nan_is_null = any(call.function == "is_null" and _options(call).get("nan_is_null") for call in calls)
        safe = None if nan_is_null else on_safe_bounds(expression)
        return cls(expression, condition, columns, _may_pass_nan(condition), safe)


def parse_filter(expression: pc.Expression) -> Condition:
    """The condition of an expression; :class:`Anything` for unsupported expressions."""
    tree = tree_of(expression)
    return Anything() if tree is None else _condition(tree.root)


def _may_pass_nan(condition: Condition) -> bool:
    """False only for comparisons of columns with literals: NaN fails them, except ``!=``."""
    match condition:
        case And() | Or():
            return any(_may_pass_nan(part) for part in condition.parts)
        case Compare(sign, left, right):
            return sign == "!=" or not (_keeps_nan(left) and _keeps_nan(right)) or not columns_of(condition)
        case _:
            return True


def _keeps_nan(value: Value) -> bool:
    return isinstance(
        value.value if isinstance(value, Cast) and pa.types.is_floating(value.to) else value, Column | Constant
    )


def _calls(root: Node) -> Iterator[Call]:
    """All calls of a tree. Not recursive: a tree is as deep as its longest chain of operators."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call):
            yield one
            waiting.extend(one.arguments)


class _Unknown(Exception):
    """A value or an option that is not supported."""


# ---- meaning of calls


_JOINS: Mapping[str, type[And] | type[Or]] = {
    "and_kleene": And,
    "and": And,
    "and_": And,
    "or_kleene": Or,
    "or": Or,
    "or_": Or,
}


def _condition(node: Node) -> Condition:
    if not isinstance(node, Call):
        return Compare("==", _value(node), _TRUE)
    if node.function in _JOINS and len(node.arguments) == 2:
        join = _JOINS[node.function]
        whole: Node = node
        return join(tuple(_condition(part) for part in chain(whole, partial(_sides, join=join))))
    if node.function == "invert" and len(node.arguments) == 1:
        return Not(_condition(node.arguments[0]))
    try:
        return _leaf(node)
    except _Unknown:
        return Anything()


def _sides(node: Node, join: type[And] | type[Or]) -> tuple[Node, ...] | None:
    """The two sides of a node that joins conditions; None for others."""
    if not isinstance(node, Call) or _JOINS.get(node.function) is not join or len(node.arguments) != 2:
        return None
    return node.arguments


def _leaf(call: Call) -> Condition:
    name, arguments = call.function, call.arguments
    if name in _SIGNS and len(arguments) == 2:
        return Compare(_SIGNS[name], _value(arguments[0]), _value(arguments[1]))
    if len(arguments) != 1:
        return Anything()
    value = _value(arguments[0])
    options = _options(call)
    if name == "is_null":
        return IsNull(value, bool(options.get("nan_is_null")))  # `pc.is_null(field)` has no options
    if name == "is_nan":
        return IsNan(value)
    if name == "is_valid":
        return Not(IsNull(value))
    if name == "is_in":
        return _is_in(value, call)
    if name == "starts_with" and not options["ignore_case"]:
        return StartsWith(value, _text(options["pattern"]))
    if name == "match_like" and not options["ignore_case"]:
        return like_condition(value, _text(options["pattern"]))
    return Anything()


def _is_in(value: Value, call: Call) -> Condition:
    """Arrow's ``is_in``: behaviour 0 matches nulls like values, 1 never matches them, 2 and 3 return null for them."""
    assert call.options is not None
    values = call.options["value_set"].values
    behaviour = call.options["null_matching_behavior"].as_py()
    if behaviour not in (0, 1, 2, 3):
        return Anything()
    has_null = values.null_count > 0
    if behaviour == 3 and has_null:
        return Anything()  # the result is null for values that are not found
    null_is = None if behaviour in (2, 3) else has_null and behaviour == 0
    return In(value, values.drop_null(), null_is)


def _value(node: Node) -> Value:
    if isinstance(node, Field):
        return Column(node.path)
    if isinstance(node, Literal):
        return Constant(node.value)
    if len(node.arguments) != 1:
        raise _Unknown
    inner = _value(node.arguments[0])
    if node.function == "cast":
        if node.options is None:
            raise _Unknown
        return Cast(inner, node.options.type.field("to_type").type)
    return Function(node.function, inner, _options(node))


def _options(call: Call) -> dict[str, Any]:
    """Options by name, without options that no function here uses."""
    if call.options is None:
        return {}
    wanted = [one.name for one in call.options.type if one.name not in ("value_set", "to_type", "_type_name")]
    return {name: call.options[name].as_py() for name in wanted}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unknown
    return value
