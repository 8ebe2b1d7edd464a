"""SQL conditions and values as expressions over Arrow columns.

::

    "fare > 5 and city in ('Oslo', 'Rome')" ─ sqlglot, Spark's grammar ─► tree ─► pyarrow.compute.Expression

Values have Spark's semantics: a comparison with a null is not true, neither is its negation; NaN equals NaN and is
above every number; numbers are compared and computed in the types of :mod:`hudi_fast.expressions.sql_values`. A text
takes the type of the column beside it: ``day = '2024-01-31'`` works on dates and timestamps (in UTC, unless the text
ends with an offset, or the column has no zone). Unknown syntax is refused with its place in the text, never ignored.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial, reduce
from operator import and_, or_
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.expressions.conditions import OPPOSITE, chain
from hudi_fast.expressions.sql_values import (
    MAX_DIGITS,
    Operand,
    cast_literal,
    cast_to,
    cast_value,
    common_type,
    compared,
    computed,
    is_exact,
    is_nan,
    joined,
    listed,
    negated,
    number_literal,
    unknown,
)
from hudi_fast.schema.names import resolve_name
from hudi_fast.sql_text.cursor import syntax_fault

__all__ = ["sql_filter", "sql_value"]

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SHOWN = 100
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "BINARY": pa.binary(),
}
"""Arrow types of sqlglot's names of Spark's types."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Lower": pc.utf8_lower,
    "Upper": pc.utf8_upper,
    "Trim": pc.utf8_trim_whitespace,
    "Length": pc.utf8_length,
    "Abs": pc.abs_checked,
    "Year": pc.year,
    "Month": pc.month,
    "Day": pc.day,
}

_CONDITIONS = frozenset(
    (
        "And",
        "Or",
        "Not",
        "EQ",
        "NEQ",
        "LT",
        "LTE",
        "GT",
        "GTE",
        "NullSafeEQ",
        "Between",
        "In",
        "Is",
        "IsNan",
        "Like",
        "ILike",
    )
)
"""Nodes with a truth value."""

_COMPARISONS = {"EQ": "==", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "Mod"))

_PARTS = ("this", "expression", "expressions", "low", "high", "to", "table", "db", "catalog")
_BRANCHES = ("ifs", "true", "false", "default", "decimals", "start", "length", "replacement", "ignore_nulls")
_KNOWN = frozenset((*_PARTS, *_BRANCHES, "negate", "quoted", "is_string", "safe", "kind"))
"""Attributes of sqlglot's nodes that are evaluated, or that do not change the meaning here."""


def sql_filter(text: str, schema: pa.Schema, alias: str = "") -> pc.Expression:
    """A filter from a condition in SQL.

    Args:
        text: the condition, as after ``WHERE``.
        schema: the columns that it may name; names may be in upper or lower case, as in Spark. ``t.fare`` also means a
            column with a dot in its name, and ``fare`` one that ends with it.
        alias: a name for the columns of ``schema`` together; empty without one.

    Raises:
        ConfigError: a syntax error, an unknown column, or a literal that does not fit the type beside it.
        UnsupportedFeatureError: a function or operator that has no counterpart here.
    """
    translation = _Translation(text, schema, alias)
    with _depth(text):
        tree = _parsed(text, "condition such as \"fare > 5 and city = 'Oslo'\"")
        translation.check(tree)
        found = translation.condition(tree)
    try:
        schema.empty_table().filter(found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise translation.misfit(error) from None
    return found


def sql_value(text: str, schema: pa.Schema, alias: str = "") -> pc.Expression:
    """An expression for a value in SQL, such as ``round(fare * 1.1, 2)``.

    Args:
        text: the value, as between ``SELECT`` and ``FROM``.
        schema: as for :func:`sql_filter`.
        alias: as for :func:`sql_filter`.

    Raises:
        ConfigError: a syntax error, an unknown column, or types that do not fit.
        UnsupportedFeatureError: a function or operator that has no counterpart here.
    """
    translation = _Translation(text, schema, alias)
    with _depth(text):
        tree = _parsed(text, 'value such as "fare * 1.1"')
        translation.check(tree)
        found = translation.value(tree)
    translation.type_of(found)
    return found


@contextmanager
def _depth(text: str) -> Iterator[None]:
    """Refuse text that is nested too deeply for Python's stack; chains of ``and`` and ``or`` are not nested."""
    try:
        yield
    except RecursionError:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ConfigError(
            f"In {shown!r}: brackets, `not` or functions are nested too deeply. Write the condition with fewer levels, "
            "or as a pyarrow.compute expression."
        ) from None


def _parsed(text: str, wanted: str) -> Any:
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Condition

    try:
        tree = _dialect().parser(dialect=_dialect()).parse(_dialect().tokenize(text), text)
    except SqlglotError as error:
        raise ConfigError(f"{text!r} is not a {wanted.partition(' ')[0]}: {syntax_fault(text, error)}.") from None
    found = tree[0] if len(tree) == 1 else None
    if found is None or not isinstance(found, Condition):
        raise ConfigError(f"Expected one {wanted}; found {text!r}.")
    return found


@cache
def _dialect() -> Any:
    """Spark's grammar, in which two quotes within a text are one, as since Spark 4."""
    from sqlglot.dialects.spark import Spark

    class Conditions(Spark):
        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    return Conditions()


class _Translation:
    """One text; the methods translate nodes of its tree."""

    def __init__(self, text: str, schema: pa.Schema, alias: str) -> None:
        self._text, self._schema, self._alias = text, schema, alias.lower()

    def check(self, tree: Any) -> None:
        """Refuse attributes of nodes that no method here evaluates: they may reverse the meaning."""
        for node in tree.walk():
            for name, value in node.args.items():
                if value and name not in _KNOWN:
                    raise self._unsupported(node, node.sql(dialect="spark"))

    def condition(self, node: Any, truth: bool = True) -> Any:
        """A node with a truth value, or its negation."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.condition(node.this, truth)
        if kind == "Not":
            return self.condition(node.this, not truth)
        if kind in ("And", "Or"):
            parts = [self.condition(one, truth) for one in chain(node, partial(_sides, kind=type(node)))]
            return joined(parts, and_ if (kind == "And") == truth else or_)
        if kind in _COMPARISONS:
            sign = _COMPARISONS[kind]
            return self._compared(node, node.left, sign if truth else OPPOSITE[sign], node.right)
        if kind == "Between":
            above = self._compared(node, node.this, ">=" if truth else "<", node.args["low"])
            below = self._compared(node, node.this, "<=" if truth else ">", node.args["high"])
            return above & below if truth else above | below
        found = self._special(kind, node)
        if found is None:
            operand = self._operand(node)
            if not pa.types.is_boolean(operand.type):
                raise self._wrong(node, f"expected a condition, found a value of type {operand.type}")
            found = operand.expression
        return found if truth else ~found

    def _compared(self, node: Any, left: Any, sign: str, right: Any) -> Any:
        one, other = self._operand(left), self._operand(right)
        return self._fitting(node, (one, other), lambda: compared(sign, one, other))

    def _special(self, kind: str, node: Any) -> Any:
        """Conditions that are not comparisons of two values; None for others."""
        if kind == "Boolean":
            return pc.scalar(bool(node.this))
        if kind == "NullSafeEQ":
            return self._null_safe(node)
        if kind == "In":
            return self._in(node)
        if kind == "Is":
            return self._is(node)
        if kind == "IsNan":
            value = self._operand(node.this)
            if not pa.types.is_floating(value.type):
                return pc.scalar(False)
            return value.expression.is_valid() & is_nan(value)
        if kind in ("Like", "ILike"):
            return self._like(node, node.expression, None)
        if kind == "Escape":
            return self._like(node.this, node.this.expression, node.expression)
        if kind == "RegexpLike":
            return pc.match_substring_regex(self._text_of(node.this), self._pattern(node.expression))
        if kind in ("StartsWith", "EndsWith", "Contains"):
            match = {"StartsWith": pc.starts_with, "EndsWith": pc.ends_with, "Contains": pc.match_substring}[kind]
            return match(self._text_of(node.this), self._literal_text(node.expression))
        return None

    def _null_safe(self, node: Any) -> Any:
        one, other = self._operand(node.left), self._operand(node.right)
        known = [each.expression.is_valid() for each in (one, other) if each.literal is None]
        if any(each.literal is not None and not each.literal.is_valid for each in (one, other)):
            return one.expression.is_null() & other.expression.is_null()
        same = joined([*known, self._compared(node, node.left, "==", node.right)], and_)
        return same if len(known) < 2 else same | (one.expression.is_null() & other.expression.is_null())

    def _in(self, node: Any) -> Any:
        if not node.expressions:
            raise self._unsupported(node, "IN with a query")
        value, values = self._operand(node.this), [self._operand(one) for one in node.expressions]
        if any(one.literal is None for one in values):  # some value is not a literal, and may be null
            parts = [self._compared(node, node.this, "==", one) for one in node.expressions]
            return joined(parts, or_)
        given = [one for one in values if one.literal is not None and one.literal.is_valid]
        found = self._fitting(node, (value, *given), lambda: listed(value, given))
        # SQL: unknown for a value that is not among others if there is a null among them.
        return found if len(given) == len(values) else found | unknown()

    def _is(self, node: Any) -> Any:
        if type(node.expression).__name__ == "Null":
            return self._operand(node.this).expression.is_null()
        if type(node.expression).__name__ != "Boolean":
            raise self._unsupported(node, "this form of IS")
        return pc.coalesce(self.condition(node.this, bool(node.expression.this)), pc.scalar(False))

    def _like(self, node: Any, pattern: Any, escape: Any) -> Any:
        if escape is not None and self._literal_text(escape) != "\\":
            raise self._unsupported(node, "LIKE with another escape character than \\")
        ignores_case = type(node).__name__ == "ILike"
        found = pc.match_like(self._text_of(node.this), self._literal_text(pattern), ignore_case=ignores_case)
        return ~found if node.args.get("negate") else found

    # ---- values

    def value(self, node: Any) -> Any:
        """A node with any value."""
        return self._operand(node).expression

    def type_of(self, expression: Any) -> pa.DataType:
        """The type of an expression over the columns."""
        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(self._schema.empty_table()))
        project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["it"]), [source])
        try:
            return project.to_table(use_threads=False).schema.field("it").type
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise self.misfit(error) from None

    def _operand(self, node: Any) -> Operand:
        kind = type(node).__name__
        if kind == "Paren":
            return self._operand(node.this)
        if kind in _CONDITIONS:
            return Operand(self.condition(node), pa.bool_())
        if kind in ("Column", "Dot"):
            return self._column(node)
        if _is_literal(node):
            return Operand.of(self._literal(node))
        if kind == "Neg":
            value = self._operand(node.this)
            if value.literal is not None and value.literal.is_valid:
                return Operand.of(pa.scalar(-value.literal.as_py(), value.type))
            return negated(value)
        if kind in _ARITHMETIC:
            left, right = self._operand(node.left), self._operand(node.right)
            if kind == "Mod" and not all(pa.types.is_integer(one.type) for one in (left, right)):
                raise self._unsupported(node, "% of numbers that are not whole")
            found: Operand = self._fitting(node, (left, right), lambda: computed(kind, left, right))
            return found
        if kind in ("Case", "If", "Coalesce", "Greatest", "Least"):
            return self._one_of(kind, node)
        made = self._made(kind, node)
        if made is None:
            raise self._unsupported(node, node.sql(dialect="spark"))
        return Operand(made, self.type_of(made))

    def _one_of(self, kind: str, node: Any) -> Operand:
        """Functions whose result is one of their arguments, which get one type."""
        if kind in ("Case", "If"):
            return self._case(node, [node] if kind == "If" else node.args["ifs"])
        type_, values = self._same(node, [node.this, *node.expressions])
        if kind == "Coalesce":
            return Operand(pc.coalesce(*(one.expression for one in values)), type_)
        join = pc.max_element_wise if kind == "Greatest" else pc.min_element_wise
        found = join(*(one.expression for one in values), skip_nulls=True)
        if pa.types.is_floating(type_) and kind == "Greatest":  # Arrow ignores NaN
            any_nan = joined([one.expression.is_valid() & is_nan(one) for one in values], or_)
            found = pc.if_else(any_nan, pa.scalar(math.nan, type_), found)
        return Operand(found, type_)

    def _made(self, kind: str, node: Any) -> Any:
        """Functions with a type of their own; None for others."""
        if kind in ("Cast", "TryCast"):
            return self._cast(node, self._operand(node.this), self._type(node))
        if kind == "TsOrDsToDate":
            return cast_to(self._operand(node.this), pa.date32()).expression
        if kind in _FUNCTIONS:
            if node.args.get("expression"):
                raise self._unsupported(node, node.sql(dialect="spark"))
            return _FUNCTIONS[kind](*(self.value(one) for one in (node.this, *node.expressions)))
        if kind in ("Concat", "DPipe"):
            parts = node.expressions if kind == "Concat" else [node.left, node.right]
            texts = [self._cast(one, self._operand(one), pa.string()) for one in parts]
            return pc.binary_join_element_wise(*texts, pa.scalar(""), null_handling="emit_null")
        if kind == "Nullif":
            same = pc.coalesce(self._compared(node, node.this, "==", node.expression), pc.scalar(False))
            value = self._operand(node.this)
            return pc.if_else(same, pa.scalar(None, value.type), value.expression)
        if kind == "Round":
            digits = self._whole(node.args["decimals"]) if node.args.get("decimals") else 0
            return pc.round(self.value(node.this), digits, round_mode="half_towards_infinity")
        if kind in ("Floor", "Ceil"):
            rounded = (pc.floor if kind == "Floor" else pc.ceil)(self.value(node.this))
            return rounded.cast(pa.int64())
        if kind in ("Substring", "Left"):
            start = self._whole(node.args["start"]) if kind == "Substring" else 1
            length = node.args.get("length") if kind == "Substring" else node.expression
            if start < 1:
                raise self._unsupported(node, "a start before the first character")
            stop = None if length is None else start - 1 + max(self._whole(length), 0)
            return pc.utf8_slice_codeunits(self._text_of(node.this), start - 1, stop)
        if kind == "Replace":
            old, new = self._literal_text(node.expression), self._literal_text(node.args["replacement"])
            return pc.replace_substring(self._text_of(node.this), old, new)
        if kind in ("CurrentTimestamp", "CurrentDate"):
            now = datetime.datetime.now(datetime.UTC)
            return pc.scalar(pa.scalar(now, pa.timestamp("us", "UTC")) if "Time" in kind else pa.scalar(now.date()))
        return None

    def _cast(self, node: Any, value: Operand, type_: pa.DataType) -> Any:
        found = value.expression
        if pa.types.is_integer(type_) and (pa.types.is_floating(value.type) or pa.types.is_decimal(value.type)):
            found = pc.trunc(found)  # as Spark
        try:
            return cast_value(found, value.type, type_)
        except pa.ArrowNotImplementedError as error:
            raise self._unsupported(node, str(error)) from error

    def _case(self, node: Any, branches: Sequence[Any]) -> Operand:
        """``CASE`` and ``if``: the value of the first branch whose condition is true."""
        last = node.args.get("false") if len(branches) == 1 and branches[0] is node else node.args.get("default")
        subject = None if branches[0] is node else node.this
        given = [*(one.args["true"] for one in branches), *([] if last is None else [last])]
        type_, operands = self._same(node, given)
        values = [one.expression for one in operands]
        found = values.pop() if last is not None else pc.scalar(pa.scalar(None, type_))
        for branch, value in zip(reversed(branches), reversed(values), strict=True):
            if subject is None:
                holds = self.condition(branch.this)
            else:
                holds = self._compared(node, subject, "==", branch.this)
            found = pc.if_else(pc.coalesce(holds, pc.scalar(False)), value, found)
        return Operand(found, type_)

    def _same(self, node: Any, nodes: Sequence[Any]) -> tuple[pa.DataType, list[Operand]]:
        """The common type of alternative values, such as branches, and the values in that type."""
        values = [self._operand(one) for one in nodes]
        kinds = [replace(one, literal=None) if is_exact(one.type) else one for one in values]  # a literal by its type
        whole = reduce(partial(self._wider, node), kinds).type
        return whole, [self._fitting(node, (one,), partial(cast_to, one, whole)) for one in values]

    def _wider(self, node: Any, left: Operand, right: Operand) -> Operand:
        """An operand of the common type of two others: one of the two, or one without an expression."""
        kind = self._fitting(node, (left, right), lambda: common_type(left, right))
        return next((one for one in (left, right) if one.type == kind), Operand(None, kind))

    def _fitting(self, node: Any, operands: Sequence[Operand], made: Callable[[], Any]) -> Any:
        """The result of ``made``, which computes with operands.

        Raises:
            ConfigError: the types of the operands do not fit.
        """
        try:
            found = made()
        except (ValueError, ArithmeticError, pa.ArrowException):
            found = None
        if found is not None:
            return found
        literal = next((one.literal.as_py() for one in reversed(operands) if one.literal is not None), None)
        kinds = [one.type for one in operands if one.literal is None]
        if literal is not None and kinds:
            raise self._wrong(node, f"a value of type {kinds[0]} cannot be compared with {literal!r}")
        raise self._wrong(node, f"the types do not fit ({' and '.join(str(one.type) for one in operands)})")

    def _whole(self, node: Any) -> int:
        value = self._literal(node).as_py() if _is_literal(node) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._unsupported(node, "an argument that is not a whole number")
        return value

    def _column(self, node: Any) -> Operand:
        parts = self._parts([one.name for one in node.parts], node)
        path: list[str] = []
        kind: pa.DataType = pa.struct(list(self._schema))
        for part in parts:
            names = [one.name for one in kind] if pa.types.is_struct(kind) else []
            name = part if part in names else self._named(part, names, node)
            if name is None:
                known = ", ".join(self._schema.names)
                raise self._wrong(
                    node, f"column {'.'.join(parts)!r} does not exist (text is in quotes: 'text'); columns: {known}"
                )
            path.append(name)
            kind = kind.field(name).type
        return Operand(pc.field(*path), kind)

    def _parts(self, parts: list[str], node: Any) -> list[str]:
        """The name of a column of the schema, then the names of fields in it."""
        names = {one.lower() for one in self._schema.names}
        first = parts[0].lower()
        if len(parts) > 1 and (both := self._named(f"{first}.{parts[1]}", self._schema.names, node)):
            return [both, *parts[2:]]
        if len(parts) > 1 and first == self._alias and first not in names:
            return parts[1:]
        if first not in names:
            ends = [one for one in self._schema.names if one.lower().endswith(f".{first}")]
            if len(ends) > 1:
                raise self._wrong(node, f"column {parts[0]!r} may be {' or '.join(ends)}; write one of these")
            if ends:
                return [*ends, *parts[1:]]
        return parts

    def _named(self, name: str, names: Iterable[str], node: Any) -> str | None:
        try:
            return resolve_name(name, names, "columns")
        except ConfigError as error:
            raise self._wrong(node, str(error).rstrip(".")) from None

    def _text_of(self, node: Any) -> Any:
        value = self._operand(node)
        if not (pa.types.is_string(value.type) or pa.types.is_large_string(value.type)):
            raise self._wrong(node, f"expected text, found a value of type {value.type}")
        return value.expression

    def _literal_text(self, node: Any) -> str:
        if type(node).__name__ != "RawString" and (type(node).__name__ != "Literal" or not node.is_string):
            raise self._unsupported(node, "a pattern that is not a literal")
        return str(node.this)

    def _pattern(self, node: Any) -> str:
        """A regular expression, in the grammar of RE2."""
        text = self._literal_text(node)
        try:
            pc.match_substring_regex(pa.array([""]), text)
        except pa.ArrowInvalid as error:
            raise self._wrong(node, f"{text!r} is not a regular expression of RE2 ({error})") from None
        return text

    def _type(self, node: Any) -> pa.DataType:
        to = node.args["to"]
        name = getattr(to.this, "name", str(to.this))
        if name == "DECIMAL":
            given = [one.name for one in to.expressions] or ["10"]
            digits, scale = (int(one) if one.isdecimal() else 0 for one in (given[0], [*given, "0"][1]))
            if not max(1, scale) <= digits <= MAX_DIGITS or not all(one.isdecimal() for one in given):
                raise self._wrong(node, f"{to.sql(dialect='spark')} is not a type: a decimal has 1 to 38 digits")
            return pa.decimal128(digits, scale)
        if name not in _TYPES:
            raise self._unsupported(node, f"the type {to.sql(dialect='spark')}")
        return _TYPES[name]

    def _literal(self, node: Any) -> pa.Scalar:
        """A literal in its own type."""
        kind = type(node).__name__
        if kind == "Null":
            return pa.scalar(None)
        if kind == "Boolean":
            return pa.scalar(bool(node.this))
        if kind in ("Cast", "TryCast"):  # date '2024-01-31', 5L
            value, type_ = self._literal(node.this), self._type(node)
            try:
                return cast_literal(value, type_)
            except (ValueError, ArithmeticError, pa.ArrowException):
                raise self._wrong(node, f"{value.as_py()!r} is not a value of type {type_}") from None
        bare = node.this if kind == "Neg" else node
        if kind == "RawString" or bare.is_string:
            return pa.scalar(str(bare.this))
        text = f"{'-' if kind == 'Neg' else ''}{bare.this}"
        if not _NUMBER.fullmatch(text):
            raise self._wrong(node, f"{text!r} is not a number")
        try:
            return number_literal(text)
        except ValueError:
            raise self._wrong(node, f"the number {text} has more digits than a decimal, 38") from None

    # ---- errors

    def misfit(self, error: Exception) -> ConfigError:
        """The error of pyarrow for types that do not fit."""
        reason = str(error).splitlines()[0].rstrip(".")
        return ConfigError(f"In {self._text!r}: the types do not fit ({reason}).")

    def _wrong(self, node: Any, what: str) -> ConfigError:
        return ConfigError(f"In {self._text!r}{self._place(node)}: {what}.")

    def _unsupported(self, node: Any, what: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"In {self._text!r}{self._place(node)}: {what} is not supported without Spark. Use a pyarrow.compute "
            "expression, or Spark."
        )

    def _place(self, node: Any) -> str:
        """The place of the first name below a node, or below its parent: literals do not know theirs."""
        from sqlglot.expressions import Identifier

        for one in (node, node.parent):
            starts = [found.meta["start"] for found in one.find_all(Identifier) if "start" in found.meta] if one else []
            if starts:
                return f" at character {min(starts) + 1}"
        return ""


def _is_literal(node: Any) -> bool:
    kind = type(node).__name__
    if kind in ("Neg", "Cast", "TryCast"):
        return type(node.this).__name__ == "Literal"
    return kind in ("Literal", "RawString", "Boolean", "Null")


def _sides(node: Any, kind: type[Any]) -> tuple[Any, Any] | None:
    """The two sides of a node of a kind, in brackets or not; None for others."""
    inner = node.unnest()
    return (inner.left, inner.right) if type(inner) is kind else None
