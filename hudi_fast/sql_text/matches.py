"""The columns that the condition of a merge sets equal."""

from __future__ import annotations

from typing import Any

__all__ = ["equal_columns"]


def equal_columns(condition: str, aliases: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Pairs of equal columns of a condition such as ``t.id = s.id AND t.day = s.day``.

    Args:
        condition: SQL.
        aliases: of the table and the source; every column has one of them.

    Returns:
        (column of the table, column of the source), as written; empty for any other condition.
    """
    import sqlglot
    from sqlglot import expressions as E
    from sqlglot.errors import SqlglotError

    try:
        tree: Any = sqlglot.parse_one(condition, read="spark").unnest()
    except SqlglotError:
        return ()
    target, source = (alias.lower() for alias in aliases)
    pairs = []
    for part in tree.flatten() if isinstance(tree, E.And) else [tree]:
        equality: Any = part.unnest()
        if not isinstance(equality, E.EQ):
            return ()
        sides = {}
        for side in (equality.left.unnest(), equality.right.unnest()):
            if not isinstance(side, E.Column) or side.args.get("db") is not None:
                return ()
            sides[side.table.lower()] = side.name
        if set(sides) != {target, source}:
            return ()
        pairs.append((sides[target], sides[source]))
    return tuple(pairs)
