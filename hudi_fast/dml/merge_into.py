"""A ``MERGE INTO`` statement as a merge of either engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_fast.dml.statement import MATCHED, NOT_MATCHED, Merge
from hudi_fast.sql_text.matches import equal_columns
from hudi_fast.sql_text.statements import MergeInto

__all__ = ["merge_aliases", "merge_of"]


def merge_aliases(statement: MergeInto, table: str) -> tuple[str, str]:
    """The names of the table and of the source in the statement.

    Args:
        statement: the statement.
        table: the table's name, for a statement without an alias of it.
    """
    target = statement.alias or table
    return target, statement.source_alias or ("source" if target.lower() != "source" else "given")


def merge_of(
    builder: Merge,
    statement: MergeInto,
    engines: Callable[[str], Any] = str,
) -> Merge:
    """The builder with the match and the clauses of the statement.

    Args:
        builder: a merge with the statement's aliases, and without a match.
        statement: the statement.
        engines: turns the text of a condition or a value into the engine's form.
    """
    pairs = equal_columns(statement.condition, builder.spec.aliases)
    columns = dict(pairs)
    one_each = len({name.lower() for name in columns}) == len(pairs)  # t.id = s.a AND t.id = s.b is a condition
    builder = builder.on(columns if pairs and one_each else engines(statement.condition))
    for clause in statement.clauses:
        when = None if clause.condition is None else engines(clause.condition)
        values = clause.values and {name: engines(text) for name, text in clause.values.items()}
        if clause.kind == NOT_MATCHED:
            builder = builder.when_not_matched_insert(values, when)
        elif clause.kind == MATCHED and clause.effect == "delete":
            builder = builder.when_matched_delete(when)
        elif clause.kind == MATCHED:
            builder = builder.when_matched_update(values, when)
        elif clause.effect == "delete":
            builder = builder.when_not_matched_by_source_delete(when)
        else:
            builder = builder.when_not_matched_by_source_update(values or {}, when)
    return builder
