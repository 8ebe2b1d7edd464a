"""A cursor over the tokens of a SQL statement, for the clauses of Spark's grammar that are read here.

sqlglot splits the text into tokens by Spark's rules (quotes, comments, escapes). Expressions and queries inside a
statement are not parsed: they are cut out as text, for Spark to parse and to evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NoReturn

from hudi_fast.errors import ConfigError

__all__ = ["Cursor", "Name", "StatementError", "Token", "syntax_fault"]


_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_TYPE_BRACKETS = {**_BRACKETS, "<": 1, ">": -1, ">>": -2}


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: ``word``, ``name`` (in back-ticks), ``string``, ``number`` or ``symbol``.
        text: without quotes, escapes resolved.
        start: offset of its first character.
        end: offset after its last character.
    """

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a table, a function or a column.

    Attributes:
        parts: without quotes, outermost first: ``(catalog, database, table)``.
        start: offset of its first character.
        end: offset after its last character.
    """

    parts: tuple[str, ...]
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return ".".join(self.parts)


class StatementError(ConfigError):
    """A statement that cannot be parsed; ``table`` is the first name in it, None without one."""

    table: Name | None = None


class Cursor:
    """A position in a statement.

    Args:
        text: the statement.

    Raises:
        StatementError: a quote or a comment is not closed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens_of(text)
        self.at = 0
        self.first: Name | None = None

    @property
    def done(self) -> bool:
        """Whether all tokens are read."""
        return self.at >= len(self.tokens)

    @property
    def offset(self) -> int:
        """Offset of the next token; the end of the text after the last one."""
        return len(self.text) if self.done else self.tokens[self.at].start

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or symbols."""
        following = self.tokens[self.at : self.at + len(words)]
        return len(following) == len(words) and all(map(_is, following, words))

    def take(self, *words: str) -> bool:
        """Read these keywords or symbols if they are next."""
        found = self.sees(*words)
        if found:
            self.at += len(words)
        return found

    def expect(self, *words: str) -> None:
        """Read these keywords or symbols.

        Raises:
            StatementError: other tokens are next; the message has the place.
        """
        for word in words:
            if not self.take(word):
                self.refuse(f"expected {word}")

    def identifier(self) -> str:
        """Read one identifier, in back-ticks or not."""
        if self.done or self.tokens[self.at].kind not in ("word", "name"):
            self.refuse("expected a name")
        self.at += 1
        return self.tokens[self.at - 1].text

    def name(self) -> Name:
        """Read a name of one or more parts."""
        start = self.offset
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        found = Name(tuple(parts), start, self.tokens[self.at - 1].end)
        self.first = self.first or found
        return found

    def string(self) -> str:
        """Read a string literal."""
        if self.done or self.tokens[self.at].kind != "string":
            self.refuse("expected a text in quotes")
        self.at += 1
        return self.tokens[self.at - 1].text

    def until(self, *stops: tuple[str, ...], brackets: Mapping[str, int] = _BRACKETS) -> str:
        """Read up to one of these keyword sequences, or to the end, and return the text.

        Sequences inside brackets or between ``CASE`` and ``END`` do not count.

        Args:
            *stops: sequences.
            brackets: how many brackets a symbol opens; below zero, closes.

        Raises:
            StatementError: there is no text before it.
        """
        first, depth = self.at, 0
        while not self.done:
            token = self.tokens[self.at]
            if depth == 0 and (any(self.sees(*stop) for stop in stops) or _is(token, ";")):
                break
            opened = brackets.get(token.text, 0) if token.kind == "symbol" else 0
            if opened < 0 and depth == 0:
                break
            depth += opened + _is(token, "CASE") - _is(token, "END")
            self.at += 1
        if self.at == first:
            self.refuse("expected an expression")
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end]

    def type(self, *stops: tuple[str, ...]) -> str:
        """As :meth:`until`, for a type: ``<`` and ``>`` are brackets, too."""
        return self.until(*stops, brackets=_TYPE_BRACKETS)

    def inside(self) -> str:
        """Read a text in parentheses, and return it without them."""
        self.expect("(")
        start, depth = self.tokens[self.at - 1].end, 1
        while not self.done:
            token = self.tokens[self.at]
            self.at += 1
            if token.kind == "symbol":
                depth += _BRACKETS.get(token.text, 0)
            if depth == 0:
                return self.text[start : token.start]
        self.refuse("expected )")

    def finish(self) -> None:
        """Check that nothing follows but a semicolon.

        Raises:
            StatementError: something follows.
        """
        self.take(";")
        if not self.done:
            self.refuse("expected the end of the statement")

    def refuse(self, reason: str) -> NoReturn:
        """Raise a StatementError with the place of the next token."""
        line = self.text.count("\n", 0, self.offset) + 1
        column = self.offset - (self.text.rfind("\n", 0, self.offset) + 1) + 1
        found = "the end" if self.done else repr(self.text[self.tokens[self.at].start : self.tokens[self.at].end])
        error = StatementError(f"SQL, line {line}, column {column}: {reason}, found {found}. Nothing was written.")
        error.table = self.first
        raise error


def _is(token: Token, word: str) -> bool:
    return token.kind in ("word", "symbol") and token.text.upper() == word


@cache
def _tokenizer() -> Any:
    from sqlglot.dialects.spark import Spark

    class _Tokenizer(Spark.Tokenizer):
        COMMANDS = set()  # noqa: RUF012 - sqlglot leaves the rest of CALL, SHOW ... in one piece otherwise

    class _Dialect(Spark):
        Tokenizer = _Tokenizer

    return _Dialect()


def syntax_fault(text: str, error: Any) -> str:
    """An error of sqlglot's in words of SQL, such as ``a value is missing after '>' (character 6)``.

    Args:
        text: that it could not read.
        error: a ``SqlglotError``.
    """
    for one in getattr(error, "errors", ()):
        said, near = one["description"].rstrip("."), f"{one['highlight']!r} (character {len(one['start_context']) + 1})"
        if said.startswith("Required keyword"):
            return f"a value is missing after {near}"
        if said.startswith("Expecting "):
            return f"expected {said.removeprefix('Expecting ')} after {near}"
        return f"{near} is not expected there"
    return "a quotation mark or a comment is not closed" if text.strip() else "it is empty"


@lru_cache(maxsize=32)
def _tokens_of(text: str) -> tuple[Token, ...]:
    from sqlglot.errors import TokenError

    try:
        found = _tokenizer().tokenize(text)
    except TokenError as error:
        raise StatementError(f"SQL: the statement cannot be read: {syntax_fault(text, error)}.") from error
    return tuple(token for one in found for token in _split(one))


def _split(token: Any) -> list[Token]:
    """Split a token of sqlglot, which joins some keywords such as ``PARTITIONED BY``."""
    kind, text = token.token_type.name, token.text
    start, end = token.start, token.end + 1
    if kind == "IDENTIFIER":
        return [Token("name", text, start, end)]
    if kind.endswith("STRING"):
        return [Token("string", text, start, end)]
    if kind == "NUMBER":
        return [Token("number", text, start, end)]
    if not (text[:1].isalnum() or text[:1] == "_"):
        return [Token("symbol", text, start, end)]
    words = text.split()
    if len(words) == 1:
        return [Token("word", text, start, end)]
    return [Token("word", word, start if not at else end - len(word), end) for at, word in enumerate(words)]
