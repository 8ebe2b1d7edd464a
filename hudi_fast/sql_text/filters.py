"""SQL conditions and values as expressions over Arrow columns.

::

    "fare > 5 and city in ('Oslo', 'Rome')" ─ sqlglot, Spark's grammar ─► tree ─► pyarrow.compute.Expression

Values have SQL's semantics: a comparison with a null is not true, neither is its negation. A literal takes the type of
the column beside it: ``day = '2024-01-31'`` works on dates and timestamps (in UTC, unless the text ends with an offset,
or the column has no zone). Whatever is not known here is refused with its place, never ignored.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from functools import cache, reduce
from operator import and_, or_
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["sql_filter", "sql_value"]

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_OFFSET = re.compile(r"[Zz]$|[+-]\d\d:?\d\d$")
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
    "Abs": pc.abs,
    "Year": pc.year,
    "Month": pc.month,
    "Day": pc.day,
    "Coalesce": pc.coalesce,
}
_RESULTS = {"Length": pa.int32(), "Year": pa.int64(), "Month": pa.int64(), "Day": pa.int64()}
"""Types of results that differ from that of the first argument."""

_CONDITIONS = frozenset(
    ("And", "Or", "Not", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ", "Between", "In", "Is", "Like", "ILike")
)
"""Nodes with a truth value."""

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": lambda left, right: left == right,
    "NEQ": lambda left, right: left != right,
    "LT": lambda left, right: left < right,
    "LTE": lambda left, right: left <= right,
    "GT": lambda left, right: left > right,
    "GTE": lambda left, right: left >= right,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mul": lambda left, right: left * right,
    "Div": lambda left, right: left / right,
}

_PARTS = ("this", "expression", "expressions", "low", "high", "to", "table", "db", "catalog")
_BRANCHES = ("ifs", "true", "false", "default", "decimals", "start", "length", "replacement", "ignore_nulls")
_KNOWN = frozenset((*_PARTS, *_BRANCHES, "negate", "quoted", "is_string", "safe", "kind"))
"""Attributes of sqlglot's nodes that are looked at, or that do not change the meaning here."""

Typed = tuple[Any, pa.DataType]
"""An expression and its type."""


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
    tree = _parsed(text, "condition such as \"fare > 5 and city = 'Oslo'\"")
    translation.check(tree)
    found = translation.condition(tree)
    try:
        schema.empty_table().filter(found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
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
    tree = _parsed(text, 'value such as "fare * 1.1"')
    translation.check(tree)
    found = translation.value(tree)
    translation.type_of(found)
    return found


def _parsed(text: str, wanted: str) -> Any:
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Condition

    try:
        tree = _dialect().parser(dialect=_dialect()).parse(_dialect().tokenize(text), text)
    except SqlglotError as error:
        raise _syntax_error(text, error, wanted.partition(" ")[0]) from None
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


def _syntax_error(text: str, error: Any, wanted: str) -> ConfigError:
    for one in getattr(error, "errors", ()):
        at = len(one["start_context"]) + 1
        return ConfigError(
            f"In {text!r} at character {at}: {one['description'].rstrip('.')}, near {one['highlight']!r}."
        )
    return ConfigError(f"{text!r} is not a {wanted}: {str(error).splitlines()[0] if str(error) else 'it is empty'}.")


class _Translation:
    """One text; the methods translate nodes of its tree."""

    def __init__(self, text: str, schema: pa.Schema, alias: str) -> None:
        self._text, self._schema, self._alias = text, schema, alias.lower()

    def check(self, tree: Any) -> None:
        """Refuse attributes of nodes that no method here looks at: they may reverse the meaning."""
        for node in tree.walk():
            for name, value in node.args.items():
                if value and name not in _KNOWN:
                    raise self._unsupported(node, node.sql(dialect="spark"))

    def condition(self, node: Any) -> Any:
        """A node with a truth value."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.condition(node.this)
        if kind in ("And", "Or"):
            return reduce(and_ if kind == "And" else or_, [self.condition(one) for one in (node.left, node.right)])
        if kind == "Not":
            return ~self.condition(node.this)
        if kind == "Boolean":
            return pc.scalar(bool(node.this))
        if kind in _COMPARISONS:
            return _COMPARISONS[kind](*self._alike(node.left, node.right))
        made = self._special(kind, node)
        if made is not None:
            return made
        value, type_ = self._value(node)
        if not pa.types.is_boolean(type_):
            raise self._wrong(node, f"expected a condition, found a value of type {type_}")
        return value

    def _special(self, kind: str, node: Any) -> Any:
        """Conditions that are no comparison of two values; None for others."""
        if kind == "NullSafeEQ":
            left, right = self._alike(node.left, node.right)
            return pc.coalesce(left == right, left.is_null() & right.is_null())
        if kind == "Between":
            above, below = self._alike(node.this, node.args["low"]), self._alike(node.this, node.args["high"])
            return (above[0] >= above[1]) & (below[0] <= below[1])
        if kind == "In":
            return self._in(node)
        if kind == "Is":
            return self._is(node)
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

    def _in(self, node: Any) -> Any:
        value, type_ = self._value(node.this)
        if not node.expressions:
            raise self._unsupported(node, "IN with a query")
        found = [self._literal(one, type_) for one in node.expressions if type(one).__name__ != "Null"]
        same = all(one.type == type_ for one in found)
        known = value.isin(pa.array([one.as_py() for one in found], type_ if same else None))
        # SQL: unknown for a null, and for a value that is not among others if there is a null among them.
        unknown = pc.scalar(None).cast(pa.bool_())
        if len(found) < len(node.expressions):
            return pc.if_else(known, True, unknown)
        return pc.if_else(value.is_valid(), known, unknown)

    def _is(self, node: Any) -> Any:
        if type(node.expression).__name__ == "Null":
            return self._value(node.this)[0].is_null()
        if type(node.expression).__name__ != "Boolean":
            raise self._unsupported(node, "this form of IS")
        wanted = self.condition(node.this)
        return pc.coalesce(wanted if node.expression.this else ~wanted, pc.scalar(False))

    def _like(self, node: Any, pattern: Any, escape: Any) -> Any:
        if escape is not None and self._literal_text(escape) != "\\":
            raise self._unsupported(node, "LIKE with another escape character than \\")
        ignores_case = type(node).__name__ == "ILike"
        found = pc.match_like(self._text_of(node.this), self._literal_text(pattern), ignore_case=ignores_case)
        return ~found if node.args.get("negate") else found

    # ---- values

    def value(self, node: Any) -> Any:
        """A node with any value."""
        if type(node).__name__ in _CONDITIONS:
            return self.condition(node)
        return self._value(node)[0]

    def type_of(self, expression: Any) -> pa.DataType:
        """The type of an expression over the columns."""
        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(self._schema.empty_table()))
        project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["it"]), [source])
        try:
            return project.to_table(use_threads=False).schema.field("it").type
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise self.misfit(error) from None

    def _alike(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Two values; a literal takes the type of the other one."""
        if _is_literal(left) and not _is_literal(right):
            value, type_ = self._value(right)
            return pc.scalar(self._literal(left, type_)), value
        value, type_ = self._value(left)
        if _is_literal(right):
            return value, pc.scalar(self._literal(right, type_))
        return value, self._value(right)[0]

    def _value(self, node: Any) -> Typed:
        kind = type(node).__name__
        if kind == "Paren":
            return self._value(node.this)
        if kind in ("Column", "Dot"):
            return self._column(node)
        if _is_literal(node):
            found = self._literal(node, None)
            return pc.scalar(found), found.type
        if kind == "Neg":
            value, type_ = self._value(node.this)
            return pc.negate(value), type_
        if kind in _ARITHMETIC:
            return self._arithmetic(kind, node)
        made = self._made(kind, node)
        if made is not None:
            return made, self.type_of(made)
        if kind in ("Cast", "TryCast"):
            (value, before), type_ = self._value(node.this), self._type(node)
            if pa.types.is_floating(before) and pa.types.is_integer(type_):
                value = pc.trunc(value)  # as Spark
            return value.cast(type_), type_
        if kind == "TsOrDsToDate":
            value, type_ = self._value(node.this)
            return (value, type_) if pa.types.is_date(type_) else (value.cast(pa.date32()), pa.date32())
        if kind in _FUNCTIONS:
            if node.args.get("expression"):
                raise self._unsupported(node, node.sql(dialect="spark"))
            values = [self._value(one) for one in (node.this, *node.expressions)]
            return _FUNCTIONS[kind](*(one for one, _ in values)), _RESULTS.get(kind, values[0][1])
        raise self._unsupported(node, node.sql(dialect="spark"))

    def _made(self, kind: str, node: Any) -> Any:
        """Functions whose arguments have forms of their own; None for others."""
        if kind in ("If", "Case"):
            return self._case(node, [node] if kind == "If" else node.args["ifs"])
        if kind in ("Concat", "DPipe"):
            parts = node.expressions if kind == "Concat" else [node.left, node.right]
            texts = [self._value(one)[0].cast(pa.string()) for one in parts]
            return pc.binary_join_element_wise(*texts, pa.scalar(""), null_handling="emit_null")
        if kind in ("Greatest", "Least"):
            join = pc.max_element_wise if kind == "Greatest" else pc.min_element_wise
            return join(*self._same([node.this, *node.expressions]), skip_nulls=True)
        if kind == "Nullif":
            left, right = self._alike(node.this, node.expression)
            return pc.if_else(pc.coalesce(left == right, pc.scalar(False)), self._null(left), left)
        if kind == "Mod":
            left, right = self._alike(node.left, node.right)
            if not pa.types.is_integer(self.type_of(left)):
                raise self._unsupported(node, "% of numbers that are not whole")
            return left - pc.divide(left, right) * right
        if kind == "Round":
            digits = self._whole(node.args["decimals"]) if node.args.get("decimals") else 0
            return pc.round(self._value(node.this)[0], digits, round_mode="half_towards_infinity")
        if kind in ("Floor", "Ceil"):
            rounded = (pc.floor if kind == "Floor" else pc.ceil)(self._value(node.this)[0])
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

    def _case(self, node: Any, branches: Sequence[Any]) -> Any:
        """``CASE`` and ``if``: the value of the first branch whose condition is true."""
        last = node.args.get("false") if len(branches) == 1 and branches[0] is node else node.args.get("default")
        subject = None if branches[0] is node else node.this
        values = self._same([*(one.args["true"] for one in branches), *([] if last is None else [last])])
        found = values.pop() if last is not None else self._null(values[0])
        for branch, value in zip(reversed(branches), reversed(values), strict=True):
            if subject is None:
                holds = self.condition(branch.this)
            else:
                left, right = self._alike(subject, branch.this)
                holds = left == right
            found = pc.if_else(pc.coalesce(holds, pc.scalar(False)), value, found)
        return found

    def _same(self, nodes: Sequence[Any]) -> list[Any]:
        """Values; literals take the type of the first that is none."""
        first = next((one for one in nodes if not _is_literal(one)), None)
        if first is None:
            return [self.value(one) for one in nodes]
        type_ = self._value(first)[1] if type(first).__name__ not in _CONDITIONS else pa.bool_()
        return [pc.scalar(self._literal(one, type_)) if _is_literal(one) else self.value(one) for one in nodes]

    def _null(self, like: Any) -> Any:
        return pc.scalar(pa.scalar(None, self.type_of(like)))

    def _whole(self, node: Any) -> int:
        value = self._literal(node, None).as_py() if _is_literal(node) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._unsupported(node, "an argument that is not a whole number")
        return value

    def _arithmetic(self, kind: str, node: Any) -> Typed:
        left, right = self._alike(node.left, node.right)
        type_ = self._value(node.right if _is_literal(node.left) else node.left)[1]
        if kind == "Div" and pa.types.is_integer(type_):  # SQL's division has fractions
            left, right, type_ = left.cast(pa.float64()), right.cast(pa.float64()), pa.float64()
        return _ARITHMETIC[kind](left, right), type_

    def _column(self, node: Any) -> Typed:
        parts = self._parts([one.name for one in node.parts], node)
        path: list[str] = []
        kind: pa.DataType = pa.struct(list(self._schema))
        for part in parts:
            names = [one.name for one in kind] if pa.types.is_struct(kind) else []
            name = part if part in names else next((one for one in names if one.lower() == part.lower()), None)
            if name is None:
                known = ", ".join(self._schema.names)
                raise self._wrong(
                    node, f"column {'.'.join(parts)!r} does not exist (text is in quotes: 'text'); columns: {known}"
                )
            path.append(name)
            kind = kind.field(name).type
        return pc.field(*path), kind

    def _parts(self, parts: list[str], node: Any) -> list[str]:
        """The name of a column of the schema, then those of fields in it."""
        names = {one.lower(): one for one in self._schema.names}
        first = parts[0].lower()
        if len(parts) > 1 and (both := names.get(f"{first}.{parts[1].lower()}")):
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

    def _text_of(self, node: Any) -> Any:
        value, type_ = self._value(node)
        if not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
            raise self._wrong(node, f"expected text, found a value of type {type_}")
        return value

    def _literal_text(self, node: Any) -> str:
        if type(node).__name__ != "Literal" or not node.is_string:
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
            digits = [int(one.name) for one in to.expressions] or [10]
            return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
        if name not in _TYPES:
            raise self._unsupported(node, f"the type {to.sql(dialect='spark')}")
        return _TYPES[name]

    def _literal(self, node: Any, type_: pa.DataType | None) -> pa.Scalar:
        """A literal in a type; None for its own type."""
        kind = type(node).__name__
        if kind == "Null":
            return pa.scalar(None, type_)
        if kind in ("Cast", "TryCast"):  # date '2024-01-31', 5L
            return self._cast(node, self._literal(node.this, None).as_py(), self._type(node))
        sign = "-" if kind == "Neg" else ""
        bare = node.this if kind == "Neg" else node
        if kind == "Boolean":
            return self._cast(node, bool(bare.this), type_)
        if bare.is_string:
            return self._cast(node, str(bare.this), type_)
        text = f"{sign}{bare.this}"
        if not _NUMBER.fullmatch(text):
            raise self._wrong(node, f"{text!r} is not a number")
        whole = re.fullmatch(r"-?\d+", text) is not None
        if type_ is not None and pa.types.is_decimal(type_):
            from decimal import Decimal

            return pa.scalar(Decimal(text))
        if type_ is not None and pa.types.is_integer(type_) and not whole:
            return pa.scalar(float(text))
        return self._cast(node, int(text) if whole else float(text), type_)

    def _cast(self, node: Any, value: Any, type_: pa.DataType | None) -> pa.Scalar:
        try:
            return pa.scalar(value) if type_ is None else _to_type(value, type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
            raise self._wrong(node, f"a value of type {type_} cannot be compared with {value!r}") from None

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
    return kind in ("Literal", "Boolean", "Null")


def _to_type(value: Any, type_: pa.DataType) -> pa.Scalar:
    """``value`` as a scalar of a type; pyarrow's errors if it does not fit."""
    if isinstance(value, bool) != pa.types.is_boolean(type_):
        raise pa.ArrowInvalid("a boolean needs a boolean column")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number != (pa.types.is_integer(type_) or pa.types.is_floating(type_)) and not isinstance(value, bool):
        raise pa.ArrowInvalid("a number needs a numeric column")
    if isinstance(value, str) and pa.types.is_timestamp(type_) and type_.tz is not None and not _OFFSET.search(value):
        # Text without an offset is UTC, like the values of the column.
        return pa.scalar(value).cast(pa.timestamp(type_.unit)).cast(type_)
    return pa.scalar(value).cast(type_)
