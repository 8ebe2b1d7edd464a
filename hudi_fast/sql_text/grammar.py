"""The grammar of statements that hudi_fast may execute: Spark's, and Hudi's ``CALL`` and indexes.

::

    text ─► first keywords ─► a rule of this module ─► Statement
                 └─ a query, or anything else ─► None: Spark's

Source: ``SqlBaseParser.g4`` of Spark 3.5 and 4.x, ``HoodieSqlCommon.g4`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_fast.sql_text.cursor import (
    Cursor,
    Name,
    read_alias,
    read_items,
    read_keys,
    read_names,
    read_partition,
    read_properties,
)
from hudi_fast.sql_text.statements import (
    AddColumns,
    AlterColumn,
    CacheQuery,
    Call,
    Column,
    CreateIndex,
    CreateTable,
    CreateView,
    Delete,
    DescribeTable,
    DropColumns,
    DropIndex,
    DropPartition,
    DropTable,
    Insert,
    MergeClause,
    MergeInto,
    NotNeeded,
    NotSupported,
    RefreshTable,
    RenameColumn,
    RenameTable,
    SetProperties,
    ShowCreateTable,
    ShowIndexes,
    ShowPartitions,
    ShowProperties,
    Statement,
    TruncateTable,
    UnsetProperties,
    Update,
)

__all__ = ["parse_statement"]

_COLUMN_END = (("COMMENT",), ("FIRST",), ("AFTER",), ("NOT", "NULL"), ("DEFAULT",))
_CACHED = "Use CACHE TABLE name AS SELECT * FROM the table, or cache a DataFrame."
_PARTITIONS = "a Hudi table lists its own partitions; hudi-fast sync registers them in a catalog"
_FOREIGN = ("CLUSTERED", "CLUSTER", "SKEWED", "ROW", "STORED", "SORTED", "TBLPROPERTIES")


def parse_statement(text: str) -> Statement | None:
    """The statement; None for a query, and for statements that are Spark's alone.

    Raises:
        StatementError: the statement begins like one of this module but continues differently; the message has the
            place.
    """
    cursor = Cursor(text)
    prefix = _common_tables(cursor)
    for words, rule in _RULES.items():
        if cursor.take(*words):
            statement = rule(cursor, prefix)
            if statement is not None:
                cursor.finish()
            return statement
    return None


def _common_tables(cursor: Cursor) -> str:
    """The text of ``WITH ...`` before the statement; empty without it."""
    if not cursor.take("WITH"):
        return ""
    cursor.take("RECURSIVE")
    while True:
        cursor.identifier()
        if cursor.sees("("):
            cursor.inside()
        cursor.take("AS")
        cursor.inside()
        if not cursor.take(","):
            return cursor.text[: cursor.offset]


# ---- changes


def _insert(cursor: Cursor, prefix: str) -> Statement | None:
    overwrite = cursor.take("OVERWRITE")
    if not overwrite:
        cursor.expect("INTO")
    if cursor.sees("LOCAL", "DIRECTORY") or cursor.sees("DIRECTORY"):
        return None
    cursor.take("TABLE")
    table = cursor.name()
    partition = read_partition(cursor) if cursor.take("PARTITION") else {}
    if cursor.take("IF", "NOT", "EXISTS"):
        cursor.refuse("IF NOT EXISTS of INSERT is not supported")
    by_name = cursor.take("BY", "NAME")
    columns: tuple[str, ...] = ()
    if cursor.sees("(") and not _is_query(cursor):
        columns = read_names(cursor)
    if cursor.sees("REPLACE") and not overwrite:
        cursor.refuse("INSERT ... REPLACE is not supported")
    return Insert(table, prefix + cursor.until(), columns, by_name, overwrite, partition)


def _is_query(cursor: Cursor) -> bool:
    return any(cursor.sees("(", word) for word in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(", "MAP", "REDUCE"))


def _update(cursor: Cursor, prefix: str) -> Statement | None:
    table, alias = cursor.name(), read_alias(cursor, "SET")
    cursor.expect("SET")
    values = _assignments(cursor, ("WHERE",))
    return Update(table, alias, values, _prefixed(cursor, prefix))


def _delete(cursor: Cursor, prefix: str) -> Statement | None:
    return Delete(cursor.name(), read_alias(cursor, "WHERE"), _prefixed(cursor, prefix))


def _prefixed(cursor: Cursor, prefix: str) -> str | None:
    if prefix:
        cursor.refuse("WITH before UPDATE or DELETE is not supported; put the query into the condition")
    return cursor.until() if cursor.take("WHERE") else None


def _merge(cursor: Cursor, prefix: str) -> Statement | None:
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = cursor.name()
    if evolves:
        return _not_supported(cursor, table, "MERGE WITH SCHEMA EVOLUTION", "Add the columns with ALTER TABLE first.")
    alias = read_alias(cursor, "USING")
    cursor.expect("USING")
    if cursor.sees("("):
        source, source_alias = f"SELECT * FROM ({cursor.inside()})", read_alias(cursor, "ON")
    else:
        start = cursor.offset
        name = cursor.name()
        while not cursor.done and not cursor.sees("ON") and cursor.sees("("):
            cursor.inside()  # a table function
        end = cursor.tokens[cursor.at - 1].end
        source = f"SELECT * FROM {cursor.text[start:end]}"
        source_alias = read_alias(cursor, "ON") or name.parts[-1]
    cursor.expect("ON")
    condition = cursor.until(("WHEN",))
    clauses = []
    while cursor.take("WHEN"):
        clauses.append(_when(cursor))
    if not clauses:
        cursor.refuse("expected WHEN")
    return MergeInto(table, alias, prefix + source, source_alias, condition, tuple(clauses))


def _when(cursor: Cursor) -> MergeClause:
    kind = "matched"
    if cursor.take("NOT", "MATCHED"):
        kind = "not matched by source" if cursor.take("BY", "SOURCE") else "not matched"
        cursor.take("BY", "TARGET")
    else:
        cursor.expect("MATCHED")
    condition = cursor.until(("THEN",)) if cursor.take("AND") else None
    cursor.expect("THEN")
    if cursor.take("DELETE"):
        return MergeClause(kind, "delete", condition, None)
    if cursor.take("UPDATE"):
        cursor.expect("SET")
        star = cursor.take("*")
        return MergeClause(kind, "update", condition, None if star else _assignments(cursor, ("WHEN",)))
    cursor.expect("INSERT")
    if cursor.take("*"):
        return MergeClause(kind, "insert", condition, None)
    at = cursor.at
    columns = read_names(cursor)
    cursor.expect("VALUES")
    inner = Cursor(cursor.inside())
    values = read_items(inner)
    if len(values) != len(columns):
        cursor.at = at
        cursor.refuse(f"{len(columns)} columns have {len(values)} values")
    return MergeClause(kind, "insert", condition, dict(zip(columns, values, strict=True)))


def _assignments(cursor: Cursor, stop: tuple[str, ...]) -> dict[str, str]:
    """``column = expression, ...``; the column's last part names it."""
    values: dict[str, str] = {}
    while True:
        column = cursor.name().parts[-1]
        if column in values:
            cursor.refuse(f"the column {column} is set twice")
        cursor.expect("=")
        values[column] = cursor.until((",",), stop)
        if not cursor.take(","):
            return values


# ---- definitions


def _create(cursor: Cursor, prefix: str) -> Statement | None:
    replace = cursor.take("OR", "REPLACE")
    temporary = ""
    if cursor.take("GLOBAL"):
        temporary = "global"
    if cursor.take("TEMPORARY") or cursor.take("TEMP"):
        temporary = temporary or "session"
    cursor.take("EXTERNAL")
    if cursor.take("VIEW"):
        return _create_view(cursor, replace, temporary)
    if not temporary and cursor.take("INDEX"):
        return _create_index(cursor)
    if temporary or not cursor.take("TABLE"):
        return None
    return _create_table(cursor, replace)


def _create_table(cursor: Cursor, replace: bool) -> CreateTable:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    table = cursor.name()
    like = cursor.name() if cursor.take("LIKE") else None
    columns = cursor.inside() if cursor.sees("(") and not _is_query(cursor) else None
    provider: str | None = None
    properties: dict[str, str] = {}
    partitioned_by = location = comment = query = None
    clauses = []
    while not cursor.done and not cursor.sees(";"):
        if cursor.take("USING"):
            provider = str(cursor.name())
        elif cursor.take("TBLPROPERTIES") or cursor.take("OPTIONS"):
            properties |= read_properties(cursor)
        elif cursor.take("PARTITIONED", "BY"):
            partitioned_by = cursor.inside()
        elif cursor.take("LOCATION"):
            location = cursor.string()
        elif cursor.take("COMMENT"):
            comment = cursor.string()
        elif cursor.sees("AS") or cursor.sees("SELECT") or cursor.sees("WITH") or cursor.sees("("):
            cursor.take("AS")
            query = cursor.until()
        elif any(cursor.sees(word) for word in _FOREIGN):
            clauses.append(cursor.identifier().upper())
            cursor.until(("USING",), ("OPTIONS",), ("PARTITIONED",), ("LOCATION",), ("TBLPROPERTIES",), ("AS",))
        else:
            cursor.refuse("expected a clause of CREATE TABLE")
    return CreateTable(
        table,
        provider,
        columns,
        partitioned_by,
        properties,
        location,
        comment,
        query,
        like,
        replace,
        if_not_exists,
        tuple(clauses),
    )


def _create_view(cursor: Cursor, replace: bool, temporary: str) -> CreateView | None:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    table = cursor.name()
    if cursor.sees("USING"):
        return None
    columns: tuple[str, ...] = ()
    if cursor.sees("("):
        columns = tuple(Cursor(one).identifier() for one in read_items(Cursor(cursor.inside())))
    while not cursor.done and not cursor.sees("AS"):  # a comment and properties
        if cursor.sees("("):
            cursor.inside()
        else:
            cursor.at += 1
    cursor.expect("AS")
    return CreateView(table, cursor.until(), columns, temporary, replace, if_not_exists)


def _create_index(cursor: Cursor) -> CreateIndex:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    index = cursor.identifier()
    cursor.expect("ON")
    cursor.take("TABLE")
    table = cursor.name()
    using = cursor.identifier() if cursor.take("USING") else None
    columns = tuple(read_items(Cursor(cursor.inside())))
    options = read_properties(cursor) if cursor.take("OPTIONS") else {}
    return CreateIndex(table, index, using, columns, options, if_not_exists)


def _drop(cursor: Cursor, prefix: str) -> Statement | None:
    if cursor.take("INDEX"):
        if_exists = cursor.take("IF", "EXISTS")
        index = cursor.identifier()
        cursor.expect("ON")
        cursor.take("TABLE")
        return DropIndex(cursor.name(), index, if_exists)
    if not cursor.take("TABLE"):
        return None
    if_exists = cursor.take("IF", "EXISTS")
    return DropTable(cursor.name(), if_exists, cursor.take("PURGE"))


def _truncate(cursor: Cursor, prefix: str) -> Statement | None:
    cursor.expect("TABLE")
    return TruncateTable(cursor.name(), read_partition(cursor) if cursor.take("PARTITION") else {})


def _refresh(cursor: Cursor, prefix: str) -> Statement | None:
    if cursor.sees("FUNCTION") or (not cursor.done and cursor.tokens[cursor.at].kind == "string"):
        return None
    if cursor.take("TABLE"):
        return RefreshTable(cursor.name())
    return None


def _show(cursor: Cursor, prefix: str) -> Statement | None:
    if cursor.take("PARTITIONS"):
        return ShowPartitions(cursor.name(), read_partition(cursor) if cursor.take("PARTITION") else {})
    if cursor.take("CREATE", "TABLE"):
        table = cursor.name()
        cursor.take("AS", "SERDE")
        return ShowCreateTable(table)
    if cursor.take("TBLPROPERTIES"):
        table = cursor.name()
        return ShowProperties(table, read_keys(cursor)[0] if cursor.sees("(") else None)
    if cursor.take("INDEXES"):
        if not cursor.take("FROM"):
            cursor.expect("IN")
        return ShowIndexes(cursor.name())
    return None


def _describe(cursor: Cursor, prefix: str) -> Statement | None:
    if any(cursor.sees(word) for word in ("QUERY", "FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "SELECT", "WITH")):
        return None
    cursor.take("TABLE")
    extended = cursor.take("EXTENDED") or cursor.take("FORMATTED")
    table = cursor.name()
    return DescribeTable(table, extended) if cursor.done else None


def _alter(cursor: Cursor, prefix: str) -> Statement | None:
    if cursor.take("VIEW"):
        view = cursor.name()
        return CreateView(view, cursor.until(), replace=True, must_exist=True) if cursor.take("AS") else None
    if not cursor.take("TABLE"):
        return None
    table = cursor.name()
    if cursor.take("RENAME", "TO"):
        return RenameTable(table, cursor.name())
    if cursor.take("RENAME", "COLUMN"):
        column = str(cursor.name())
        cursor.expect("TO")
        return RenameColumn(table, column, cursor.identifier())
    if cursor.take("SET", "TBLPROPERTIES"):
        return SetProperties(table, read_properties(cursor))
    if cursor.take("UNSET", "TBLPROPERTIES"):
        cursor.take("IF", "EXISTS")
        return UnsetProperties(table, tuple(read_keys(cursor)))
    if cursor.take("ADD", "COLUMNS") or cursor.take("ADD", "COLUMN"):
        return AddColumns(table, _columns(cursor))
    if cursor.sees("ADD", "PARTITION") or cursor.sees("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        return _not_supported(cursor, table, "ALTER TABLE ... ADD PARTITION", "The first row of one creates it.")
    if cursor.take("RECOVER", "PARTITIONS"):
        return NotNeeded(table, "ALTER TABLE ... RECOVER PARTITIONS", _PARTITIONS)
    if cursor.take("DROP", "COLUMNS") or cursor.take("DROP", "COLUMN"):
        if_exists = cursor.take("IF", "EXISTS")
        return DropColumns(table, _dropped(cursor), if_exists)
    if cursor.sees("DROP", "PARTITION") or cursor.sees("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partition(cursor, table)
    if cursor.take("ALTER") or cursor.take("CHANGE"):
        cursor.take("COLUMN")
        return _alter_column(cursor, table)
    return None


def _drop_partition(cursor: Cursor, table: Name) -> DropPartition:
    cursor.expect("DROP")
    if_exists = cursor.take("IF", "EXISTS")
    partitions = []
    while cursor.take("PARTITION"):
        partitions.append(read_partition(cursor))
        cursor.take(",")
    cursor.take("PURGE")
    return DropPartition(table, tuple(partitions), if_exists)


def _alter_column(cursor: Cursor, table: Name) -> Statement:
    column = str(cursor.name())
    type_ = comment = nullable = None
    position: tuple[str, ...] = ()
    if not any(cursor.sees(*words) for words in (("TYPE",), ("COMMENT",), ("FIRST",), ("AFTER",), ("SET",), ("DROP",))):
        new = str(cursor.name())  # Hive's CHANGE COLUMN old new type
        if new.lower() != column.lower():
            cursor.refuse(f"CHANGE COLUMN cannot rename {column}; use RENAME COLUMN,")
        type_ = cursor.type(*_COLUMN_END)
    elif cursor.take("TYPE"):
        type_ = cursor.type(*_COLUMN_END)
    if cursor.take("SET", "NOT", "NULL"):
        nullable = False
    elif cursor.take("DROP", "NOT", "NULL"):
        nullable = True
    if cursor.take("COMMENT"):
        comment = cursor.string()
    position = _position(cursor)
    return AlterColumn(table, column, type_, comment, position, nullable)


def _columns(cursor: Cursor) -> tuple[Column, ...]:
    bare = not cursor.take("(")
    found = []
    while True:
        name = str(cursor.name())
        type_ = cursor.type(*_COLUMN_END, (",",))
        if cursor.sees("NOT", "NULL") or cursor.sees("DEFAULT"):
            cursor.refuse("a column that is added may be null and has no default,")
        comment = cursor.string() if cursor.take("COMMENT") else None
        found.append(Column(name, type_, comment, _position(cursor)))
        if not cursor.take(","):
            break
    if not bare:
        cursor.expect(")")
    return tuple(found)


def _position(cursor: Cursor) -> tuple[str, ...]:
    if cursor.take("FIRST"):
        return ("FIRST",)
    return ("AFTER", cursor.identifier()) if cursor.take("AFTER") else ()


def _dropped(cursor: Cursor) -> tuple[str, ...]:
    bare = not cursor.take("(")
    found = [str(cursor.name())]
    while cursor.take(","):
        found.append(str(cursor.name()))
    if not bare:
        cursor.expect(")")
    return tuple(found)


# ---- statements of Spark that Hudi tables do not take


def _not_supported(cursor: Cursor, table: Name, what: str, advice: str) -> NotSupported:
    if not cursor.done:
        cursor.until()
    return NotSupported(table, what, advice)


def _cache(cursor: Cursor, prefix: str) -> Statement | None:
    lazy = cursor.take("LAZY")
    if not cursor.take("TABLE"):
        return None
    table = cursor.name()
    if cursor.take("OPTIONS"):
        cursor.inside()
    if cursor.done or cursor.sees(";"):
        return NotSupported(table, "CACHE TABLE", _CACHED)
    cursor.take("AS")
    return CacheQuery(table, cursor.until(), lazy)


def _uncache(cursor: Cursor, prefix: str) -> Statement | None:
    cursor.expect("TABLE")
    cursor.take("IF", "EXISTS")
    return NotSupported(cursor.name(), "UNCACHE TABLE", _CACHED)


def _analyze(cursor: Cursor, prefix: str) -> Statement | None:
    if not cursor.take("TABLE"):
        return None
    table = cursor.name()
    cursor.until()
    return NotNeeded(table, "ANALYZE TABLE", "its files have the statistics that queries use")


def _repair(cursor: Cursor, prefix: str) -> Statement | None:
    cursor.take("REPAIR")
    cursor.expect("TABLE")
    table = cursor.name()
    if not cursor.done:
        cursor.until()
    return NotNeeded(table, "REPAIR TABLE", _PARTITIONS)


def _load(cursor: Cursor, prefix: str) -> Statement | None:
    cursor.until(("INTO",))
    cursor.expect("INTO")
    cursor.expect("TABLE")
    return _not_supported(cursor, cursor.name(), "LOAD DATA", "Use INSERT INTO ... SELECT.")


# ---- procedures, and parts


def _call(cursor: Cursor, prefix: str) -> Statement | None:
    procedure = cursor.name()
    inner = Cursor(cursor.inside())
    arguments: list[tuple[str | None, str]] = []
    while not inner.done:
        named = len(inner.tokens) > inner.at + 1 and inner.tokens[inner.at + 1].text == "=>"
        name = inner.identifier() if named else None
        inner.take("=>")
        arguments.append((name, inner.until((",",))))
        if not inner.take(","):
            break
    inner.finish()
    return Call(procedure, tuple(arguments))


_RULES: dict[tuple[str, ...], Callable[[Cursor, str], Statement | None]] = {
    ("INSERT",): _insert,
    ("UPDATE",): _update,
    ("DELETE", "FROM"): _delete,
    ("MERGE",): _merge,
    ("CREATE",): _create,
    ("DROP",): _drop,
    ("TRUNCATE",): _truncate,
    ("ALTER",): _alter,
    ("REFRESH",): _refresh,
    ("SHOW",): _show,
    ("DESCRIBE",): _describe,
    ("DESC",): _describe,
    ("CALL",): _call,
    ("CACHE",): _cache,
    ("UNCACHE",): _uncache,
    ("ANALYZE",): _analyze,
    ("MSCK",): _repair,
    ("REPAIR",): _repair,
    ("LOAD", "DATA"): _load,
}
