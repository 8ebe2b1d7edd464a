"""SQL text in a DML statement without Spark: conditions and values become ``pyarrow.compute`` expressions.

::

    Merge | update | delete, with text ─► columns that clauses see, with types ─► the same, with expressions

Text that is the name of a column stays text: by that, a merge is known to copy a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.dml.expressions import is_literal
from hudi_fast.dml.matching_columns import column_of
from hudi_fast.dml.statement import Clause, MergeSpec
from hudi_fast.sql_text.filters import sql_filter, sql_value

__all__ = ["in_expressions"]


def in_expressions(spec: MergeSpec, target: pa.Schema, source: pa.Schema | None = None, alias: str = "") -> MergeSpec:
    """A statement whose texts are expressions.

    Args:
        spec: the statement.
        target: columns of the table.
        source: columns of the source; None for an update or a delete.
        alias: of the table in an update or a delete; empty without one.

    Raises:
        ConfigError: a text is wrong, or does not fit the columns.
        UnsupportedFeatureError: a function that only Spark has.
    """
    columns = target
    if source is not None:
        sides = zip(spec.aliases, (target, source), strict=True)
        columns = pa.schema([(f"{name}.{one.name}", one.type) for name, schema in sides for one in schema])
    names = columns.names
    clauses = tuple(_clause(clause, names, columns, alias) for clause in spec.clauses)
    return replace(spec, condition=_condition(spec.condition, columns, alias), clauses=clauses)


def _clause(clause: Clause, names: Sequence[str], columns: pa.Schema, alias: str) -> Clause:
    values = clause.values
    if values is not None:
        values = {column: _value(column, value, names, columns, alias) for column, value in values.items()}
    return replace(clause, condition=_condition(clause.condition, columns, alias), values=values)


def _condition(condition: Any, columns: pa.Schema, alias: str) -> Any:
    return sql_filter(condition, columns, alias) if isinstance(condition, str) else condition


def _value(column: str, value: Any, names: Sequence[str], columns: pa.Schema, alias: str) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    plain = text.replace("`", "")
    if alias and plain.lower().startswith(f"{alias.lower()}."):
        plain = plain.partition(".")[2]
    if (found := column_of(plain, names, f"column {column!r}")) is not None:
        return found
    if is_literal(text):
        return text
    return sql_value(text, columns, alias)
