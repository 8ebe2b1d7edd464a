"""Finds the tables that a query names, with their places in its text, and replaces these places.

::

    text ─ sqlglot, Spark's grammar ─► tables outside WITH ─► references ─┐
                                     qualified columns db.t.c ────────────┴─► edits ─► text with other names

Only the names are replaced; everything else reaches Spark as written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hudi_fast.sql_text.cursor import Cursor, Name

__all__ = ["Edit", "Reference", "edited", "references_in"]

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
