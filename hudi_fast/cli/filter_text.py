"""Parser of text conditions to filters on Arrow columns.

Grammar, keywords in any case::

    condition  = comparison { "and" comparison }
    comparison = column ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) literal
               | column [ "not" ] "in" "(" literal { "," literal } ")"
               | column "is" [ "not" ] "null"
    column     = name { "." name } | '"' any text '"'
    literal    = 'text' ('' is a quote) | number | true | false

A literal is cast to the type of its column: ``day = '2024-01-31'`` works on dates and timestamps (in UTC, unless the
text ends with an offset or the column has no zone). As in SQL, a comparison with a null is not true.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError

__all__ = ["parse_where"]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
      | (?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda left, right: left == right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_where(text: str, schema: pa.Schema) -> Any:
    """Parse a condition to a :class:`pyarrow.compute.Expression`.

    Raises:
        ConfigError: a syntax error, an unknown column, or a literal that does not fit the type of its column.
    """
    return _Parser(text, schema).condition()


class _Parser:
    """Recursive-descent parser; ``position`` is the index of the next token."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self.text, self.schema = text, schema
        self.tokens = self._tokens()
        self.position = 0

    def condition(self) -> Any:
        result = self._comparison()
        while self._take_word("and"):
            result = result & self._comparison()
        if self.position < len(self.tokens):
            raise self._wrong("`and` or the end")
        return result

    def _comparison(self) -> Any:
        field, kind = self._column()
        if self._take_word("is"):
            negated = self._take_word("not")
            if not self._take_word("null"):
                raise self._wrong("`null`")
            return field.is_valid() if negated else field.is_null()
        negated = self._take_word("not")
        if self._take_word("in"):
            # Without is_valid, "not in" would be true for a null.
            found = field.isin(self._literals(kind))
            return ~found & field.is_valid() if negated else found
        if negated:
            raise self._wrong("`in`")
        token = self._take("sign", *_SIGNS)
        if token is None:
            raise self._wrong("a comparison such as `=`, `<`, `in` or `is null`")
        return _SIGNS[token.text](field, self._literal(kind))

    def _column(self) -> tuple[Any, pa.DataType]:
        token = self._take("name") or self._take("quoted")
        if token is None:
            raise self._wrong("a column")
        names = [token.text] if token.kind == "quoted" or token.text in self.schema.names else token.text.split(".")
        kind: pa.DataType = pa.struct(list(self.schema))
        for name in names:
            index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if index < 0:
                raise ConfigError(f"Column {token.text!r} does not exist; columns: {', '.join(self.schema.names)}.")
            kind = kind.field(index).type
        return pc.field(*names), kind

    def _literals(self, kind: pa.DataType) -> pa.Array:
        if self._take("sign", "(") is None:
            raise self._wrong("`(`")
        values = [self._literal(kind)]
        while self._take("sign", ","):
            values.append(self._literal(kind))
        if self._take("sign", ")") is None:
            raise self._wrong("`,` or `)`")
        same = all(value.type == values[0].type for value in values)
        return pa.array([value.as_py() for value in values], values[0].type if same else None)

    def _literal(self, kind: pa.DataType) -> pa.Scalar:
        at = self.position
        if token := self._take("text"):
            return self._cast(token.text, kind, at)
        if token := self._take("number"):
            return self._number(token.text, kind, at)
        for word, value in (("true", True), ("false", False)):
            if self._take_word(word):
                return self._cast(value, kind, at)
        raise self._wrong("a literal: 'text' (in quotes), a number, true or false (for nulls: `is null`)")

    def _number(self, text: str, kind: pa.DataType, at: int) -> pa.Scalar:
        if pa.types.is_decimal(kind):
            return self._cast(Decimal(text), None, at)
        whole = re.fullmatch(r"[+-]?\d+", text) is not None
        if pa.types.is_integer(kind) and not whole:
            return pa.scalar(float(text))
        return self._cast(int(text) if whole else float(text), kind, at)

    def _cast(self, value: Any, kind: pa.DataType | None, at: int) -> pa.Scalar:
        try:
            return pa.scalar(value) if kind is None else _to_type(value, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
            raise ConfigError(
                f"In {self.text!r} at character {self.tokens[at].at + 1}: the column is of type {kind} and cannot be "
                f"compared with {value!r}."
            ) from None

    def _tokens(self) -> list[_Token]:
        tokens, at = [], 0
        while self.text[at:].strip():
            match = _TOKEN.match(self.text, at)
            if match is None or match.lastgroup is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                raise ConfigError(f"In {self.text!r} at character {at + 1}: unexpected {self.text[at]!r}.")
            kind, text = match.lastgroup, match[match.lastgroup]
            if kind in ("text", "quoted"):
                text = text[1:-1].replace(text[0] * 2, text[0])
            tokens.append(_Token(kind, text, match.start(match.lastgroup)))
            at = match.end()
        return tokens

    def _take(self, kind: str, *texts: str) -> _Token | None:
        if self.position >= len(self.tokens):
            return None
        token = self.tokens[self.position]
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self.position += 1
        return token

    def _take_word(self, word: str) -> bool:
        if self.position >= len(self.tokens):
            return False
        token = self.tokens[self.position]
        taken = token.kind == "name" and token.text.lower() == word
        self.position += taken
        return taken

    def _wrong(self, expected: str) -> ConfigError:
        if self.position >= len(self.tokens):
            return ConfigError(f"In {self.text!r}: expected {expected}, found the end.")
        token = self.tokens[self.position]
        return ConfigError(f"In {self.text!r} at character {token.at + 1}: expected {expected}, found {token.text!r}.")


def _to_type(value: Any, kind: pa.DataType) -> pa.Scalar:
    """``value`` as a scalar of type ``kind``; raises pyarrow's errors if the types do not match."""
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        raise pa.ArrowInvalid("a boolean needs a boolean column")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number != (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not isinstance(value, bool):
        raise pa.ArrowInvalid("a number needs a numeric column")
    if pa.types.is_timestamp(kind) and kind.tz is not None and re.search(r"[Zz]$|[+-]\d\d:?\d\d$", value) is None:
        # Text without an offset is UTC, like the values of the column.
        return pa.scalar(value).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.scalar(value).cast(kind)
