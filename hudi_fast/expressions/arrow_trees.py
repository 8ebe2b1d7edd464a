"""The trees of Arrow's expressions, and the order of NaN in them.

The trees of ``pyarrow.compute`` expressions, by way of Arrow's pickled form.

::

    expression ─► pickled form ─► words: calls, fields, places of literals ─► Tree ─► words ─► ... ─► expression

The text of an expression is ambiguous. Its pickled form is not: it is a record batch whose metadata lists calls, fields
and positions of literals in order, and whose columns hold the literals and the options of functions. The format is
internal to Arrow, so :func:`tree_of` returns None if anything in it is unknown.

The order of floats and doubles in SQL engines, for conditions that Arrow evaluates.

Spark, duckdb and polars treat NaN as equal to itself and greater than every number. In Arrow every comparison with NaN
is false, except ``!=``. :func:`compared_floats` and :func:`compared_with_number` are the only place of these rules:
SQL text becomes expressions by them, and expressions that polars passes to a dataset with its own meaning are rewritten
by them. Bounds of Parquet files know nothing of NaN; :func:`on_safe_bounds` is for them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.expressions.conditions import TURNED
from hudi_fast.values import dataclass

__all__ = [
    "Call",
    "Field",
    "Literal",
    "Logic",
    "Node",
    "Tree",
    "as_engines_compare",
    "compared_floats",
    "compared_with_number",
    "expression_of",
    "on_safe_bounds",
    "tree_of",
]

Word: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field inside structs: the names from the outside in."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal, and the index of its column in the batch."""

    value: pa.Scalar
    place: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of Arrow's functions.

    Attributes:
        options: the function's options; None without options.
        place: the index of the options' column in the batch.
    """

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None = None
    place: int = -1


Node: TypeAlias = Call | Field | Literal


@dataclass(frozen=True, slots=True)
class Tree:
    """An expression: its root, and the literals and options of its nodes."""

    root: Node
    batch: pa.RecordBatch

    def with_literal(self, value: pa.Scalar) -> tuple[Tree, Literal]:
        """The tree with one more literal, which nodes may use."""
        arrays = [*self.batch.columns, pa.array([value.as_py()], value.type)]
        names = [*self.batch.schema.names, str(len(arrays))]
        return Tree(self.root, pa.RecordBatch.from_arrays(arrays, names)), Literal(value, len(arrays) - 1)


class _Unknown(Exception):
    """The pickled form is not supported."""


def tree_of(expression: pc.Expression) -> Tree | None:
    """The tree of an expression; None if it cannot be read."""
    try:
        stream = expression.__reduce__()[1][0]
        batch = pa.ipc.open_file(stream).get_batch(0)
        return Tree(_root(_metadata_pairs(batch.schema), batch), batch)
    except (_Unknown, pa.ArrowException, IndexError, KeyError, ValueError, TypeError, UnicodeDecodeError):
        return None


def expression_of(tree: Tree) -> pc.Expression:
    """The expression of a tree."""
    metadata = pa.KeyValueMetadata(list(_words(tree.root)))
    batch = tree.batch.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pc.Expression._deserialize(sink.getvalue())


def _root(words: Sequence[Word], batch: pa.RecordBatch) -> Node:
    """The node of all words. Not recursive: a chain of operators is as deep as it is long."""
    open_calls: list[tuple[str, list[Node], int]] = [("", [], -1)]
    at = 0
    while at < len(words):
        tag, text = words[at]
        at += 1
        if tag == "call":
            open_calls.append((text, [], -1))
        elif tag == "options":
            function, arguments, _ = open_calls.pop()
            open_calls.append((function, arguments, int(text)))
        elif tag == "end":
            function, arguments, place = open_calls.pop()
            if function != text or not open_calls:
                raise _Unknown
            options = batch.column(place)[0] if place >= 0 else None
            open_calls[-1][1].append(Call(function, tuple(arguments), options, place))
        elif tag == "field_ref":
            open_calls[-1][1].append(Field((text,)))
        elif tag == "nested_field_ref":
            inside = words[at : at + int(text)]
            if len(inside) != int(text) or any(each != "field_ref" for each, _ in inside):
                raise _Unknown
            open_calls[-1][1].append(Field(tuple(name for _, name in inside)))
            at += int(text)
        elif tag == "literal":
            open_calls[-1][1].append(Literal(batch.column(int(text))[0], int(text)))
        else:
            raise _Unknown
    if len(open_calls) != 1 or len(open_calls[0][1]) != 1:
        raise _Unknown
    return open_calls[0][1][0]


def _words(root: Node) -> Iterator[Word]:
    waiting: list[Node | Word] = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            yield one
        elif isinstance(one, Literal):
            yield "literal", str(one.place)
        elif isinstance(one, Field):
            if len(one.path) > 1:
                yield "nested_field_ref", str(len(one.path))
            yield from (("field_ref", name) for name in one.path)
        else:
            yield "call", one.function
            waiting.append(("end", one.function))
            if one.place >= 0:
                waiting.append(("options", str(one.place)))
            waiting.extend(reversed(one.arguments))


def _metadata_pairs(schema: pa.Schema) -> list[Word]:
    """Key and value of each entry of a schema's metadata in order, with duplicate keys.

    pyarrow returns a dict, which drops duplicates. The C data interface gives the bytes: the number of entries, then
    for each the length and bytes of key and value, all numbers as int32.
    """
    capsule = schema.__arrow_c_schema__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    members = ctypes.cast(get(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    at = members[2]  # after the format and the name
    if not at:
        raise _Unknown
    texts = []
    count = ctypes.c_int32.from_address(at).value
    at += 4
    for _ in range(2 * count):
        length = ctypes.c_int32.from_address(at).value
        texts.append(ctypes.string_at(at + 4, length).decode())
        at += 4 + length
    return list(zip(texts[::2], texts[1::2], strict=True))


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
