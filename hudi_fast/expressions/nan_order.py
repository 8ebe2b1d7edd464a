"""The order of floats and doubles in SQL engines, for conditions that Arrow evaluates.

Spark, duckdb and polars treat NaN as equal to itself and greater than every number. In Arrow every comparison with NaN
is false, except ``!=``. :func:`compared_floats` and :func:`compared_with_number` are the only place of these rules:
SQL text becomes expressions by them, and expressions that polars passes to a dataset with its own meaning are rewritten
by them. Bounds of Parquet files know nothing of NaN; :func:`on_safe_bounds` is for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.expressions.arrow_trees import Call, Field, Literal, Node, Tree, expression_of, tree_of
from hudi_fast.expressions.conditions import TURNED

__all__ = ["Logic", "as_engines_compare", "compared_floats", "compared_with_number", "on_safe_bounds"]

_SIGNS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_FUNCTIONS = {sign: function for function, sign in _SIGNS.items()}

Term = TypeVar("Term")


class Logic(Protocol[Term]):
    """Makes conditions of one kind of expression."""

    def compare(self, sign: str, left: Term, right: Term) -> Term:
        """``left sign right`` as Arrow compares."""
        ...

    def is_nan(self, value: Term) -> Term:
        """Whether a number is NaN; null for a null."""
        ...

    def is_valid(self, value: Term) -> Term:
        """Whether a value is not null."""
        ...

    def both(self, one: Term, other: Term) -> Term:
        """``one and other``."""
        ...

    def either(self, one: Term, other: Term) -> Term:
        """``one or other``."""
        ...

    def negated(self, condition: Term) -> Term:
        """``not condition``."""
        ...


def compared_floats(logic: Logic[Term], sign: str, left: Term, right: Term) -> Term:
    """A comparison of two values, each of which may be NaN; null where one of them is null.

    Args:
        logic: makes the expressions.
        sign: one of ``== != < <= > >=``.
        left: a float or double.
        right: likewise.
    """
    if sign in (">", ">="):
        sign, left, right = TURNED[sign], right, left
    plain = logic.compare(sign, left, right)
    one, other = logic.is_nan(left), logic.is_nan(right)
    match sign:
        case "==":
            return logic.either(plain, logic.both(one, other))
        case "!=":
            return logic.both(plain, logic.negated(logic.both(one, other)))
        case "<":
            return logic.either(plain, logic.both(logic.negated(one), other))
        case _:
            return logic.either(plain, logic.both(other, logic.is_valid(left)))


def compared_with_number(logic: Logic[Term], sign: str, value: Term, literal: Term, number: float) -> Term:
    """A comparison of a value that may be NaN with a literal; null where the value is null.

    Args:
        logic: makes the expressions.
        sign: one of ``== != < <= > >=``.
        value: a float or double.
        literal: the right side.
        number: its value.
    """
    nan = logic.is_nan(value)
    if not math.isnan(number):
        plain = logic.compare(sign, value, literal)
        return logic.either(plain, nan) if sign in (">", ">=") else plain
    if sign in ("==", ">="):
        return nan
    if sign in ("!=", "<"):
        return logic.negated(nan)
    # Every value is at most NaN and none is greater; for a null, both comparisons are null.
    always = logic.either(nan, logic.negated(nan))
    return always if sign == "<=" else logic.negated(always)


def as_engines_compare(expression: pc.Expression, schema: pa.Schema) -> pc.Expression:
    """An expression that Arrow evaluates with the results of SQL engines.

    Args:
        expression: the expression of an engine.
        schema: the columns that it names.
    """
    tree = tree_of(expression)
    if tree is None:
        return expression

    def replaced(call: Call) -> Node:
        if call.function in _SIGNS and len(call.arguments) == 2 and _is_floating(call.arguments, tree, schema):
            return _compared(call.function, *call.arguments)
        if call.function == "is_in" and len(call.arguments) == 1 and _is_floating(call.arguments, tree, schema):
            return _listed(call)
        return call

    root = _mapped(tree.root, replaced)
    return expression if root is tree.root else expression_of(Tree(root, tree.batch))


def on_safe_bounds(expression: pc.Expression) -> pc.Expression:
    """An expression that is true for the bounds of a row group if ``expression`` may be true for one of its rows.

    It is for files whose row groups have no bounds for a column with NaN: where there are bounds, no value is NaN.
    """
    tree = tree_of(expression)
    if tree is None:
        return expression
    tree, infinity = tree.with_literal(pa.scalar(math.inf))

    def replaced(call: Call) -> Node:
        # Arrow decides this by bounds, unlike is_nan; without bounds it is unknown.
        return Call("greater", (*call.arguments, infinity)) if call.function == "is_nan" else call

    root = _mapped(tree.root, replaced)
    return expression if root is tree.root else expression_of(Tree(root, tree.batch))


class _Calls:
    """Conditions as nodes of a tree."""

    def compare(self, sign: str, left: Node, right: Node) -> Node:
        return Call(_FUNCTIONS[sign], (left, right))

    def is_nan(self, value: Node) -> Node:
        return Call("is_nan", (value,))

    def is_valid(self, value: Node) -> Node:
        return Call("is_valid", (value,))

    def both(self, one: Node, other: Node) -> Node:
        return Call("and_kleene", (one, other))

    def either(self, one: Node, other: Node) -> Node:
        return Call("or_kleene", (one, other))

    def negated(self, condition: Node) -> Node:
        return Call("invert", (condition,))


def _compared(function: str, left: Node, right: Node) -> Node:
    sign = _SIGNS[function]
    if isinstance(left, Literal) and not isinstance(right, Literal):
        sign, left, right = TURNED[sign], right, left
    if not isinstance(right, Literal):
        return compared_floats(_Calls(), sign, left, right)
    if not right.value.is_valid:
        return Call(function, (left, right))
    return compared_with_number(_Calls(), sign, left, right, right.value.as_py())


def _listed(call: Call) -> Node:
    """``is_in`` that finds zeros of both signs; Arrow compares bits."""
    assert call.options is not None
    (value,) = call.arguments
    if 0.0 not in call.options["value_set"].values.to_pylist():
        return call
    is_zero = Call("equal", (value, Call("negate", (value,))))
    return Call("or_kleene", (call, Call("and_kleene", (is_zero, Call("is_valid", (value,))))))


def _mapped(root: Node, function: Callable[[Call], Node]) -> Node:
    """The tree with each call replaced, arguments first; the same tree if no call changes.

    Not recursive: a chain of operators is as deep as it is long.
    """
    done: list[Node] = []
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, complete = waiting.pop()
        if not isinstance(node, Call):
            done.append(node)
        elif not complete:
            waiting.append((node, True))
            waiting.extend((one, False) for one in reversed(node.arguments))
        else:
            count = len(node.arguments)
            arguments = tuple(done[len(done) - count :])
            del done[len(done) - count :]
            same = all(one is other for one, other in zip(arguments, node.arguments, strict=True))
            done.append(function(node if same else replace(node, arguments=arguments)))
    return done[0]


def _is_floating(nodes: tuple[Node, ...], tree: Tree, schema: pa.Schema) -> bool:
    """Whether all values are numbers, and at least one is a float or a double."""
    kinds = [_type(one, tree, schema) for one in nodes]
    numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    known = all(kind is not None and any(is_kind(kind) for is_kind in numbers) for kind in kinds)
    return known and any(pa.types.is_floating(kind) for kind in kinds)


def _type(node: Node, tree: Tree, schema: pa.Schema) -> pa.DataType | None:
    if isinstance(node, Literal):
        return node.value.type
    if isinstance(node, Field):
        kind: pa.DataType = pa.struct(list(schema))
        for name in node.path:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                return None
            kind = kind.field(name).type
        return kind
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(schema.empty_table()))
    options = acero.ProjectNodeOptions([expression_of(Tree(node, tree.batch))], ["it"])
    try:
        return acero.Declaration("project", options, [source]).to_table(use_threads=False).schema.field("it").type
    except pa.ArrowException:
        return None  # the expression does not fit the columns; reading raises the error
