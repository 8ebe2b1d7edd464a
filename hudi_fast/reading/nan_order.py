"""Rewrite expressions that may meet NaN: for the comparisons of SQL engines, and for the bounds of Parquet.

Spark, duckdb and polars treat NaN as equal to itself and greater than every number. In Arrow every comparison with NaN
is false, except ``!=``. polars passes its conditions to a dataset as Arrow expressions, with the meaning of polars.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.reading.pickled_expressions import Call, Field, Literal, Node, Tree, expression_of, tree_of

__all__ = ["as_engines_compare", "on_safe_bounds"]

_TURNED = {"equal": "equal", "not_equal": "not_equal", "less": "greater", "less_equal": "greater_equal"}
_TURNED |= {other: one for one, other in _TURNED.items()}


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
        if call.function in _TURNED and len(call.arguments) == 2 and _is_floating(call.arguments, tree, schema):
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


def _compared(function: str, left: Node, right: Node) -> Node:
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return _compared(_TURNED[function], right, left)
    if not isinstance(right, Literal):
        return _both(function, left, right)
    plain = Call(function, (left, right))
    nan = Call("is_nan", (left,))
    if not right.value.is_valid:
        return plain
    if not math.isnan(right.value.as_py()):
        return Call("or_kleene", (plain, nan)) if function in ("greater", "greater_equal") else plain
    if function in ("equal", "greater_equal"):
        return nan
    if function in ("not_equal", "less"):
        return Call("invert", (nan,))
    # Every value is at most NaN and none is greater; for a null, both comparisons are null.
    whole = Call("or_kleene", (nan, Call("invert", (nan,))))
    return whole if function == "less_equal" else Call("invert", (whole,))


def _both(function: str, left: Node, right: Node) -> Node:
    """A comparison of two values, each of which may be NaN."""
    if function in ("greater", "greater_equal"):
        return _both(_TURNED[function], right, left)
    plain = Call(function, (left, right))
    one, other = Call("is_nan", (left,)), Call("is_nan", (right,))
    if function == "equal":
        return Call("or_kleene", (plain, Call("and_kleene", (one, other))))
    if function == "not_equal":
        return Call("and_kleene", (plain, Call("invert", (Call("and_kleene", (one, other)),))))
    if function == "less":
        return Call("or_kleene", (plain, Call("and_kleene", (Call("invert", (one,)), other))))
    return Call("or_kleene", (plain, Call("and_kleene", (other, Call("is_valid", (left,))))))


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
