"""SQL statements that change, define or manage a table, as values.

Expressions, types and queries inside are text, as written. :mod:`hudi_fast.sql_text.grammar` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hudi_fast.sql_text.cursor import Name
from hudi_fast.values import dataclass

__all__ = [
    "AddColumns",
    "AlterColumn",
    "CacheQuery",
    "Call",
    "Column",
    "CreateIndex",
    "CreateTable",
    "CreateView",
    "Delete",
    "DescribeTable",
    "DropColumns",
    "DropIndex",
    "DropPartition",
    "DropTable",
    "Insert",
    "MergeClause",
    "MergeInto",
    "NotNeeded",
    "NotSupported",
    "RefreshTable",
    "RenameColumn",
    "RenameTable",
    "SetProperties",
    "ShowCreateTable",
    "ShowIndexes",
    "ShowPartitions",
    "ShowProperties",
    "Statement",
    "TruncateTable",
    "UnsetProperties",
    "Update",
    "equal_columns",
]

Partition = Mapping[str, str | None]
"""Partition column -> its value, an expression; None where the rows have it (a dynamic partition)."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about one table.

    Attributes:
        table: the name as written.
    """

    table: Name


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """``INSERT INTO`` and ``INSERT OVERWRITE``.

    Attributes:
        source: the query, or ``VALUES ...``, with its common table expressions.
        columns: names in the order of the source; empty for the table's order.
        by_name: match columns of the source by name.
        overwrite: replace the partitions, or the table.
        partition: of the ``PARTITION`` clause; empty without one.
    """

    source: str
    columns: tuple[str, ...] = ()
    by_name: bool = False
    overwrite: bool = False
    partition: Partition = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Update(Statement):
    """``UPDATE``: column -> expression, and the condition; None for all rows."""

    alias: str | None
    values: Mapping[str, str]
    where: str | None


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """``DELETE FROM``, with its condition; None for all rows."""

    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """``WHEN ... THEN ...``.

    Attributes:
        kind: ``matched``, ``not matched`` or ``not matched by source``.
        effect: ``update``, ``insert`` or ``delete``.
        condition: after ``AND``; None without one.
        values: column -> expression; None for ``*`` and for deletes.
    """

    kind: str
    effect: str
    condition: str | None
    values: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class MergeInto(Statement):
    """``MERGE INTO``.

    Attributes:
        alias: of the table; None without one.
        source: a query that has the source's rows, with its common table expressions.
        source_alias: of the source; the last part of its name without one; None for a query without one.
        condition: after ``ON``.
        clauses: in order.
    """

    alias: str | None
    source: str
    source_alias: str | None
    condition: str
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """``CREATE TABLE``.

    Attributes:
        provider: after ``USING``; None without it.
        columns: definitions, as in Spark's DDL; None without them.
        partitioned_by: columns, or their definitions; None without the clause.
        properties: of ``TBLPROPERTIES`` and ``OPTIONS``.
        location: base path; None without one.
        comment: of the table; None without one.
        query: after ``AS``; None without one.
        like: the table to copy the definition of; None without one.
        replace: ``OR REPLACE``.
        if_not_exists: leave an existing table as it is.
        clauses: keywords of clauses that a Hudi table does not have, such as ``CLUSTERED BY``.
    """

    provider: str | None = None
    columns: str | None = None
    partitioned_by: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    query: str | None = None
    like: Name | None = None
    replace: bool = False
    if_not_exists: bool = False
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """``CREATE VIEW``.

    Attributes:
        query: after ``AS``.
        columns: names of its columns; empty for the names in the query.
        temporary: empty, ``session`` or ``global``.
        replace: ``OR REPLACE``.
        if_not_exists: leave an existing view as it is.
        must_exist: ``ALTER VIEW ... AS``.
    """

    query: str
    columns: tuple[str, ...] = ()
    temporary: str = ""
    replace: bool = False
    if_not_exists: bool = False
    must_exist: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column to add: a dotted name, a type, a comment, and ``FIRST`` or ``AFTER other``; empty at the end."""

    name: str
    type: str
    comment: str | None = None
    position: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns(Statement):
    """``ALTER TABLE ... ADD COLUMNS``."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropColumns(Statement):
    """``ALTER TABLE ... DROP COLUMNS``: dotted names."""

    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn(Statement):
    """``ALTER TABLE ... RENAME COLUMN``: a dotted name, and the new last part."""

    column: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterColumn(Statement):
    """``ALTER TABLE ... ALTER COLUMN``.

    Attributes:
        column: a dotted name.
        type: the new type; None to keep it.
        comment: the new comment; None to keep it.
        position: ``FIRST`` or ``AFTER other``; empty to keep it.
        nullable: whether nulls are allowed from now on; None to keep it.
    """

    column: str
    type: str | None = None
    comment: str | None = None
    position: tuple[str, ...] = ()
    nullable: bool | None = None


@dataclass(frozen=True, slots=True)
class RenameTable(Statement):
    """``ALTER TABLE ... RENAME TO``."""

    new_name: Name


@dataclass(frozen=True, slots=True)
class SetProperties(Statement):
    """``ALTER TABLE ... SET TBLPROPERTIES``."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties(Statement):
    """``ALTER TABLE ... UNSET TBLPROPERTIES``."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropPartition(Statement):
    """``ALTER TABLE ... DROP PARTITION``."""

    partitions: tuple[Partition, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable(Statement):
    """``DROP TABLE``."""

    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable(Statement):
    """``TRUNCATE TABLE``, with the partition; empty for the whole table."""

    partition: Partition = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowPartitions(Statement):
    """``SHOW PARTITIONS``, with a partial partition; empty for all."""

    partition: Partition = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribeTable(Statement):
    """``DESCRIBE TABLE``; ``extended`` adds the catalog's attributes of the table."""

    extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowCreateTable(Statement):
    """``SHOW CREATE TABLE``."""


@dataclass(frozen=True, slots=True)
class ShowProperties(Statement):
    """``SHOW TBLPROPERTIES``, of one key; None for all."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class RefreshTable(Statement):
    """``REFRESH TABLE``."""


@dataclass(frozen=True, slots=True)
class CreateIndex(Statement):
    """``CREATE INDEX``.

    Attributes:
        index: its name.
        using: the kind, such as ``column_stats``; None without one.
        columns: indexed columns.
        options: of the ``OPTIONS`` clause.
        if_not_exists: leave an existing index as it is.
    """

    index: str
    using: str | None
    columns: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex(Statement):
    """``DROP INDEX``."""

    index: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexes(Statement):
    """``SHOW INDEXES``."""


@dataclass(frozen=True, slots=True)
class CacheQuery(Statement):
    """``CACHE TABLE ... AS``: ``table`` is the name of the temporary view.

    Attributes:
        query: after ``AS``.
        lazy: compute the rows at their first use.
    """

    query: str
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class NotNeeded(Statement):
    """A statement that changes nothing about a Hudi table.

    Attributes:
        what: its words.
        reason: why nothing is to be done.
    """

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotSupported(Statement):
    """A statement that is refused for Hudi tables.

    Attributes:
        what: its words.
        advice: what to do instead.
    """

    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class Call(Statement):
    """``CALL``: ``table`` is the procedure; arguments are names, or None by position, and expressions."""

    arguments: tuple[tuple[str | None, str], ...]


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
