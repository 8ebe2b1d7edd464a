"""Filters as trees of values, the form that all data skipping works on.

::

    pyarrow expression ─ its pickled form ─► calls, fields, literals ─► Condition ◄─ a Spark column, likewise

The text of a pyarrow expression is ambiguous. Its pickled form is not: a record batch whose metadata lists calls,
fields and positions of literals in order, and whose columns hold the literals and the options of functions. The format
is internal to Arrow, so everything unknown in it, and every function without an entry here, becomes :class:`Anything`:
an unknown condition, which keeps every file.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "And",
    "Anything",
    "Cast",
    "Column",
    "Compare",
    "Condition",
    "Constant",
    "Function",
    "In",
    "IsNull",
    "Not",
    "Or",
    "RowFilter",
    "StartsWith",
    "Value",
    "columns_of",
    "conjuncts",
    "like_condition",
    "parse_filter",
]


# ---- values of a row


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside structs: the names from the outside in."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Cast:
    """A value in another type."""

    value: Value
    to: pa.DataType


@dataclass(frozen=True)
class Function:
    """A function of one value, with Arrow's ``name`` and ``options``."""

    name: str
    value: Value
    options: Mapping[str, Any] = field(default_factory=dict)


Value: TypeAlias = Column | Constant | Cast | Function


# ---- conditions on a row: true, false, or null


@dataclass(frozen=True, slots=True)
class Anything:
    """An unknown condition."""


@dataclass(frozen=True, slots=True)
class Compare:
    """``left sign right`` with one of ``== != < <= > >=``: null if one side is null; NaN equals nothing."""

    sign: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class In:
    """Whether a value is one of ``values``.

    Attributes:
        values: without nulls.
        null_is: result for a null value: True, False, or None (null).
    """

    value: Value
    values: pa.Array
    null_is: bool | None = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is null; with ``or_nan``, null or NaN."""

    value: Value
    or_nan: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a string starts with ``prefix``.

    Attributes:
        exact: False if a string with the prefix may still not match.
    """

    value: Value
    prefix: str
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; null stays null."""

    part: Condition


@dataclass(frozen=True, slots=True)
class And:
    """All parts are true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part is true."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Anything | Compare | In | IsNull | StartsWith | Not | And | Or

_SIGNS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_TRUE = Constant(pa.scalar(True))
_WILDCARD = re.compile(r"[%_\\]")


@dataclass(frozen=True)
class RowFilter:
    """A filter in the forms that the steps of a read need, parsed once. Picklable.

    Attributes:
        expression: applied to rows.
        condition: used to skip files; :class:`Anything` where the expression is not understood.
        columns: top-level columns that the expression uses; possibly more, never fewer.
        may_pass_nan: whether a row may match that has NaN in one of these columns. Statistics ignore NaN.
    """

    expression: pc.Expression
    condition: Condition
    columns: frozenset[str]
    may_pass_nan: bool

    @classmethod
    def of(cls, expression: pc.Expression, schema: pa.Schema) -> RowFilter:
        """Parse an expression over columns of ``schema``. One that is not understood uses all of them."""
        raw = _raw_tree(expression)
        if raw is None:
            return cls(expression, Anything(), frozenset(schema.names), may_pass_nan=True)
        condition = _condition(raw)
        return cls(expression, condition, frozenset(_names(raw)), _may_pass_nan(condition))


def parse_filter(expression: pc.Expression) -> Condition:
    """The condition of an expression; :class:`Anything` for unsupported expressions."""
    raw = _raw_tree(expression)
    return Anything() if raw is None else _condition(raw)


def _may_pass_nan(condition: Condition) -> bool:
    """False only for comparisons of columns with literals, which NaN fails; not for ``!=``, which it passes."""
    match condition:
        case And() | Or():
            return any(_may_pass_nan(part) for part in condition.parts)
        case Compare(sign, left, right):
            plain = isinstance(left, Column | Constant) and isinstance(right, Column | Constant)
            return sign == "!=" or not plain or not columns_of(condition)
        case _:
            return True


def _names(raw: _Raw) -> Iterator[str]:
    """Top-level columns of a call tree."""
    if isinstance(raw, Column):
        yield raw.path[0]
    elif isinstance(raw, _Call):
        for argument in raw.arguments:
            yield from _names(argument)


def conjuncts(condition: Condition) -> Iterator[Condition]:
    """Conditions that are true for every row for which ``condition`` is true."""
    if isinstance(condition, And):
        for part in condition.parts:
            yield from conjuncts(part)
    elif isinstance(condition, Not) and isinstance(condition.part, Not):
        yield from conjuncts(condition.part.part)
    else:
        yield condition


def columns_of(node: Condition | Value) -> frozenset[Column]:
    """The columns that a condition or value uses, without unknown conditions."""
    match node:
        case Column():
            return frozenset((node,))
        case Constant() | Anything():
            return frozenset()
        case Compare():
            return columns_of(node.left) | columns_of(node.right)
        case Not():
            return columns_of(node.part)
        case And() | Or():
            return frozenset().union(*(columns_of(part) for part in node.parts))
        case _:
            return columns_of(node.value)


def like_condition(value: Value, pattern: str) -> Condition:
    """``value LIKE pattern``, with backslash as escape; ignores the text after the first wildcard."""
    found = _WILDCARD.search(pattern)
    if found is None:
        return Compare("==", value, Constant(pa.scalar(pattern)))
    prefix, rest = pattern[: found.start()], pattern[found.start() :]
    return StartsWith(value, prefix, exact=rest == "%")


# ---- Arrow's pickled form


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Raw, ...]
    options: pa.StructScalar | None


_Raw: TypeAlias = _Call | Column | Constant


class _Unknown(Exception):
    """The pickled form is not supported."""


def _raw_tree(expression: pc.Expression) -> _Raw | None:
    try:
        stream = expression.__reduce__()[1][0]
        batch = pa.ipc.open_file(stream).get_batch(0)
        words = _metadata_pairs(batch.schema)
        root, end = _read(words, 0, batch)
        return root if end == len(words) else None
    except (_Unknown, pa.ArrowException, IndexError, KeyError, ValueError, TypeError, UnicodeDecodeError):
        return None


def _read(words: Sequence[tuple[str, str]], at: int, batch: pa.RecordBatch) -> tuple[_Raw, int]:
    """The node that starts at ``at``, and the start of the next one."""
    tag, text = words[at]
    if tag == "field_ref":
        return Column((text,)), at + 1
    if tag == "literal":
        return Constant(batch.column(int(text))[0]), at + 1
    if tag == "nested_field_ref":
        inside = words[at + 1 : at + 1 + int(text)]
        if len(inside) != int(text) or any(each != "field_ref" for each, _ in inside):
            raise _Unknown
        return Column(tuple(name for _, name in inside)), at + 1 + int(text)
    if tag != "call":
        raise _Unknown
    arguments: list[_Raw] = []
    options = None
    at += 1
    while words[at][0] != "end":
        if words[at][0] == "options":
            options = batch.column(int(words[at][1]))[0]
            at += 1
        else:
            argument, at = _read(words, at, batch)
            arguments.append(argument)
    if words[at][1] != text:
        raise _Unknown
    return _Call(text, tuple(arguments), options), at + 1


def _metadata_pairs(schema: pa.Schema) -> list[tuple[str, str]]:
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


# ---- meaning of calls


def _condition(raw: _Raw) -> Condition:
    if not isinstance(raw, _Call):
        return Compare("==", _value(raw), _TRUE)
    name, arguments = raw.function, raw.arguments
    if name in ("and_kleene", "and", "and_", "or_kleene", "or", "or_") and len(arguments) == 2:
        parts = tuple(_condition(part) for part in arguments)
        return And(parts) if name.startswith("and") else Or(parts)
    if name == "invert" and len(arguments) == 1:
        return Not(_condition(arguments[0]))
    try:
        return _leaf(raw)
    except _Unknown:
        return Anything()


def _leaf(call: _Call) -> Condition:
    name, arguments = call.function, call.arguments
    if name in _SIGNS and len(arguments) == 2:
        return Compare(_SIGNS[name], _value(arguments[0]), _value(arguments[1]))
    if len(arguments) != 1:
        return Anything()
    value = _value(arguments[0])
    options = _options(call)
    if name == "is_null":
        return IsNull(value, bool(options["nan_is_null"]))
    if name == "is_valid":
        return Not(IsNull(value))
    if name == "is_in":
        return _is_in(value, call)
    if name == "starts_with" and not options["ignore_case"]:
        return StartsWith(value, _text(options["pattern"]))
    if name == "match_like" and not options["ignore_case"]:
        return like_condition(value, _text(options["pattern"]))
    return Anything()


def _is_in(value: Value, call: _Call) -> Condition:
    """Arrow's ``is_in``: 0 matches nulls like values, 1 leaves them out, 2 and 3 give null for them."""
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


def _value(raw: _Raw) -> Value:
    if isinstance(raw, Column | Constant):
        return raw
    if len(raw.arguments) != 1:
        raise _Unknown
    inner = _value(raw.arguments[0])
    if raw.function == "cast":
        if raw.options is None:
            raise _Unknown
        return Cast(inner, raw.options.type.field("to_type").type)
    return Function(raw.function, inner, _options(raw))


def _options(call: _Call) -> dict[str, Any]:
    """Options by name, without those that no function here uses."""
    if call.options is None:
        return {}
    wanted = [one.name for one in call.options.type if one.name not in ("value_set", "to_type", "_type_name")]
    return {name: call.options[name].as_py() for name in wanted}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unknown
    return value
