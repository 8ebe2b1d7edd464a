"""Clauses that several statements have: lists of names, partitions, properties, aliases."""

from __future__ import annotations

from hudi_fast.sql_text.cursor import Cursor

__all__ = ["read_alias", "read_items", "read_keys", "read_names", "read_partition", "read_properties"]


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
