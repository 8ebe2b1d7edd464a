"""A cursor over the tokens of a SQL statement, and clauses that several statements have.

A cursor over the tokens of a SQL statement, for the clauses of Spark's grammar that are read here.

sqlglot splits the text into tokens by Spark's rules (quotes, comments, escapes). Expressions and queries inside a
statement are not parsed: they are cut out as text, for Spark to parse and to evaluate.

Clauses that several statements have: lists of names, partitions, properties, aliases.

Finds the tables that a query names, with their places in its text, and replaces these places.

::

    text ─ sqlglot, Spark's grammar ─► tables outside WITH ─► references ─┐
                                     qualified columns db.t.c ────────────┴─► edits ─► text with other names

Only the names are replaced; everything else reaches Spark as written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, NoReturn

from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "Cursor",
    "Edit",
    "Name",
    "Reference",
    "StatementError",
    "Token",
    "edited",
    "read_alias",
    "read_items",
    "read_keys",
    "read_names",
    "read_partition",
    "read_properties",
    "references_in",
    "syntax_fault",
]

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


def read_names(cursor: Cursor) -> tuple[str, ...]:
    """``(a, b.c)``: the last parts of names."""
    cursor.expect("(")
    found = [cursor.name().parts[-1]]
    while cursor.take(","):
        found.append(cursor.name().parts[-1])
    cursor.expect(")")
    return tuple(found)


def read_items(cursor: Cursor) -> list[str]:
    """Expressions separated by commas, up to the end."""
    found = [cursor.until((",",))]
    while cursor.take(","):
        found.append(cursor.until((",",)))
    cursor.finish()
    return found


def read_partition(cursor: Cursor) -> dict[str, str | None]:
    """``(a = 1, b)``: values of partition columns as expressions, None for a column without a value."""
    cursor.expect("(")
    found: dict[str, str | None] = {}
    while True:
        name = cursor.identifier()
        found[name] = cursor.until((",",)) if cursor.take("=") else None
        if not cursor.take(","):
            break
    cursor.expect(")")
    return found


def read_properties(cursor: Cursor) -> dict[str, str]:
    """``('key' = 'value', key = value)``."""
    cursor.expect("(")
    found: dict[str, str] = {}
    while not cursor.take(")"):
        key = _key(cursor)
        cursor.take("=")
        found[key] = _value(cursor)
        if not cursor.take(","):
            cursor.expect(")")
            break
    return found


def read_keys(cursor: Cursor) -> list[str]:
    """``('key', a.b)``."""
    cursor.expect("(")
    found = [_key(cursor)]
    while cursor.take(","):
        found.append(_key(cursor))
    cursor.expect(")")
    return found


def _key(cursor: Cursor) -> str:
    if not cursor.done and cursor.tokens[cursor.at].kind == "string":
        return cursor.string()
    return str(cursor.name())


def _value(cursor: Cursor) -> str:
    if not cursor.done and cursor.tokens[cursor.at].kind == "string":
        return cursor.string()
    return cursor.until((",",))


def read_alias(cursor: Cursor, stop: str) -> str | None:
    """``AS alias`` or ``alias``; None at the end or before ``stop``."""
    if cursor.take("AS"):
        return cursor.identifier()
    if cursor.done or cursor.sees(stop) or cursor.sees(";"):
        return None
    return cursor.identifier()


_EXPLAIN = ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
_TRAVEL = (("TIMESTAMP",), ("SYSTEM_TIME",), ("VERSION",), ("SYSTEM_VERSION",))


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of ``text[start:end]``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A table or a table function that a query reads.

    Attributes:
        name: as written.
        end: offset after the name, its time travel clause, or the arguments of the function.
        alias: the query's name for it; empty without one.
        moment: (``TIMESTAMP`` or ``VERSION``, an expression) of time travel; None without it.
        arguments: expressions of a table function; None for a table.
        prefixes: places of database and catalogue before ``table.column``.
    """

    name: Name
    end: int
    alias: str = ""
    moment: tuple[str, str] | None = None
    arguments: tuple[str, ...] | None = None
    prefixes: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=32)
def references_in(text: str) -> tuple[Reference, ...]:
    """The tables of a query, or of an expression with subqueries; empty where the text cannot be parsed.

    Spark then parses the text and raises its own error.
    """
    import sqlglot
    from sqlglot import expressions as E
    from sqlglot.errors import SqlglotError

    at = _after_explain(text)
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that it does not parse
    try:
        tree = sqlglot.parse_one(text[at:], read="spark")
    except SqlglotError:
        return ()
    found = [one for table in tree.find_all(E.Table) if (one := _reference(text, at, table)) is not None]
    qualified = [one for one in tree.find_all(E.Column) if one.args.get("db") is not None]
    return tuple(replace(one, prefixes=_prefixes(one, qualified, at)) for one in found)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all replacements."""
    for one in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: one.start] + one.text + text[one.end :]
    return text


def _after_explain(text: str) -> int:
    cursor = Cursor(text)
    if not cursor.take("EXPLAIN"):
        return 0
    while any(cursor.take(word) for word in _EXPLAIN):
        pass
    return cursor.offset


def _reference(text: str, at: int, table: Any) -> Reference | None:
    from sqlglot import expressions as E

    if isinstance(table.this, E.Func):
        function = table.this
        if not isinstance(function, E.Anonymous) or "start" not in function.meta:
            return None
        start, end = function.meta["start"] + at, function.meta["end"] + 1 + at
        cursor = _cursor_at(text, end)
        inner = Cursor(cursor.inside())
        arguments = []
        while not inner.done:
            arguments.append(inner.until((",",)))
            inner.take(",")
        name = Name((str(function.this),), start, end)
        return Reference(name, cursor.tokens[cursor.at - 1].end, table.alias, None, tuple(arguments))
    parts = [part for part in table.parts if isinstance(part, E.Identifier)]
    if len(parts) != len(table.parts) or any("start" not in part.meta for part in parts) or _is_common(table):
        return None
    start, end = parts[0].meta["start"] + at, parts[-1].meta["end"] + 1 + at
    name = Name(tuple(part.this for part in parts), start, end)
    end, moment = _travel(text, end)
    return Reference(name, end, table.alias, moment)


def _is_common(table: Any) -> bool:
    """Whether the name belongs to a common table expression of an enclosing query."""
    from sqlglot import expressions as E

    if table.args.get("db") is not None:
        return False
    below, above = table, table.parent
    while above is not None:
        common = above.args.get("with_") or above.args.get("with")
        names = [] if common is None else [one.alias.lower() for one in common.expressions]
        if isinstance(above, E.With):  # a common table expression sees earlier ones
            names = [one.alias.lower() for one in above.expressions[: above.expressions.index(below)]]
            if above.args.get("recursive"):
                names.append(below.alias.lower())
            above, below = above.parent, above
            if table.name.lower() in names:
                return True
            below, above = above, above.parent if above is not None else None
            continue
        if table.name.lower() in names:
            return True
        below, above = above, above.parent
    return False


def _travel(text: str, end: int) -> tuple[int, tuple[str, str] | None]:
    cursor = _cursor_at(text, end)
    cursor.take("FOR")
    for (word,) in _TRAVEL:
        if cursor.take(word, "AS", "OF"):
            start = cursor.offset
            cursor.at += 1
            while cursor.sees(".") or cursor.sees("("):
                if cursor.sees("("):
                    cursor.inside()
                else:
                    cursor.at += 2
            stop = cursor.tokens[cursor.at - 1].end
            kind = "TIMESTAMP" if word in ("TIMESTAMP", "SYSTEM_TIME") else "VERSION"
            return stop, (kind, text[start:stop])
    return end, None


def _cursor_at(text: str, offset: int) -> Cursor:
    cursor = Cursor(text)
    cursor.at = next((at for at, one in enumerate(cursor.tokens) if one.start >= offset), len(cursor.tokens))
    return cursor


def _prefixes(reference: Reference, columns: Sequence[Any], at: int) -> tuple[tuple[int, int], ...]:
    """Places of ``db.`` in ``db.t.c``, where ``db.t`` is the table of the reference."""
    wanted = [part.lower() for part in reference.name.parts]
    found = []
    for column in columns:
        parts = [column.args[key] for key in ("catalog", "db", "table") if column.args.get(key) is not None]
        if [part.name.lower() for part in parts] == wanted[-len(parts) :] and all("start" in p.meta for p in parts):
            found.append((parts[0].meta["start"] + at, parts[-1].meta["start"] + at))
    return tuple(found)
