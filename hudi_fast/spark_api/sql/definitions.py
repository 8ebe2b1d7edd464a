"""Statements that define tables and views: ``CREATE``, ``ALTER``, ``DROP``, ``TRUNCATE``, ``SHOW PARTITIONS``.

::

    CREATE TABLE ─► columns and properties ─► an empty table at its path, or the rows of a query ─► entry in the catalog
    ALTER TABLE ──► HudiTable.alter ─► columns in the catalog

Source: ``CreateHoodieTableCommand``, ``HoodieCatalogTable``, ``AlterTableCommand``, ``DropHoodieTableCommand`` and
the entries of Hudi 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

import hudi_fast.schema.alter as changes
from hudi_fast.api import write
from hudi_fast.config.option_fields import WRITE
from hudi_fast.config.options import find_option
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, TableExistsError, TableNotFoundError, UnsupportedFeatureError
from hudi_fast.formats.logical_types import BLOB, HUDI_TYPE, vector_of_descriptor
from hudi_fast.spark.arrow import checked_arrow_types, spark_schema
from hudi_fast.spark.storage import session_path, storage_of
from hudi_fast.spark_api.sql.catalog import (
    Entry,
    change_table,
    create_entry,
    default_path,
    drop_entry,
    find_entry,
    full_name,
    is_taken,
    rename_entry,
)
from hudi_fast.spark_api.sql.changes import matching_partitions, write_settings
from hudi_fast.spark_api.sql.queries import Tables
from hudi_fast.spark_api.sql.reading import original_sql
from hudi_fast.sql_text.cursor import Cursor, Name
from hudi_fast.sql_text.statements import (
    AddColumns,
    AlterColumn,
    Column,
    CreateTable,
    DropColumns,
    DropPartition,
    DropTable,
    RenameColumn,
    RenameTable,
    SetProperties,
    ShowPartitions,
    Statement,
    TruncateTable,
    UnsetProperties,
)
from hudi_fast.table import HudiTable

__all__ = ["DEFINITIONS", "create_table", "entry_of_path", "long_keys"]

_SHORT = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "type": "hoodie.datasource.write.table.type",
    "orderingfields": "hoodie.datasource.write.precombine.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.write.record.merge.mode",
    "recordmergestrategyid": "hoodie.write.record.merge.strategy.id",
}
"""Short keys of ``CREATE TABLE`` and ``saveAsTable`` (``HoodieOptionConfig`` of Hudi 1.2.0)."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_DEFAULTS = {"hoodie.datasource.write.hive_style_partitioning": "true"}
_HUDI_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`\s*|(?P<bare>\w+)\s+)(?P<type>VECTOR\s*\([^)]*\)|BLOB\b)", re.IGNORECASE
)
"""The beginning of a column of one of Hudi's own types."""
_NAME, _DATABASE = "hoodie.table.name", "hoodie.database.name"
_PARTITIONS = "hoodie.datasource.write.partitionpath.field"
_OPERATION = "hoodie.datasource.write.operation"


def long_keys(options: Mapping[str, str]) -> dict[str, str]:
    """Options with long keys in place of SQL's short ones; a long key that is given wins."""
    found = {}
    for key, value in options.items():
        long = _SHORT.get(key.lower())
        if long is not None:
            found[long] = _TYPES.get(value.lower(), value) if key.lower() == "type" else value
    return found | {key: value for key, value in options.items() if key.lower() not in _SHORT}


def create_table(spark: Any, tables: Tables, statement: CreateTable) -> None:
    """``CREATE TABLE ... USING hudi``, with or without a query; also for the table at an existing path.

    Raises:
        TableExistsError: the name is taken, or a query would write to an existing table.
        ConfigError: the definition contradicts itself, or the table at the path.
        UnsupportedFeatureError: a clause that a Hudi table does not have.
    """
    name = _new_name(spark, statement.table)
    if is_taken(spark, name):
        if statement.if_not_exists:
            return
        raise TableExistsError(f"CREATE TABLE {statement.table}: there is a table or view of that name.")
    if statement.clauses or statement.replace:
        said = ", ".join(statement.clauses) or "OR REPLACE"
        raise UnsupportedFeatureError(f"CREATE TABLE {statement.table}: {said} is not supported for Hudi tables.")
    managed = statement.location is None
    path = default_path(spark, name) if statement.location is None else session_path(spark, statement.location)
    storage = storage_of(spark, path)
    if statement.like is not None:
        statement = _like(spark, statement)
    there = _config_at(storage)
    if there is not None and (managed or statement.query is not None):
        raise TableExistsError(
            f"CREATE TABLE {statement.table}: {path} holds a Hudi table. Name it as LOCATION, without a query, to use "
            "it, or delete it."
        )
    partitions, columns = _partitioning(statement)
    options = {**_DEFAULTS, **_write_keys(long_keys(statement.properties))}
    options |= {_NAME: options.get(_NAME, name[1]), _DATABASE: options.get(_DATABASE, name[0])}
    if partitions:
        options[_PARTITIONS] = ",".join(partitions)
    schema = None if columns is None else _ddl(spark, columns)
    if statement.query is not None:
        frame = original_sql(spark, tables.rewritten(statement.query))
        frame = frame.select(*(f"`{one}`" for one in _partitions_last(frame.columns, partitions)))
        write(frame, path, {_OPERATION: "bulk_insert", **options}, "errorifexists", dict(storage.options))
    elif there is None:
        if schema is None:
            raise ConfigError(f"CREATE TABLE {statement.table}: name the columns, or the LOCATION of a Hudi table.")
        named = _partitions_last(schema.names, partitions)
        HudiTable.create(path, checked_arrow_types(_picked(schema, named)), options, dict(storage.options))
    elif schema is not None:
        _check_same(statement, schema, HudiTable(storage))
    entry = entry_of_path(spark, name, path, statement.comment, statement.properties)
    shown = entry.schema if schema is None else _commented(entry.schema, _comments(schema))
    create_entry(spark, replace(entry, schema=shown, managed=managed))


def entry_of_path(
    spark: Any,
    name: tuple[str, str],
    path: str,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Entry:
    """The catalog's entry for the table at a path, as Apache Hudi makes it.

    Args:
        spark: the session.
        name: (database, table).
        path: base path.
        comment: of the table.
        properties: further ``hoodie.*`` properties.
    """
    table = HudiTable(storage_of(spark, path))
    config = table.config
    schema = spark_schema(_with_meta(table))
    partitions = tuple(one for one in config.partition_fields if one in schema.names) if config.is_partitioned else ()
    ordered = _picked(schema, _partitions_last(schema.names, partitions))
    said = {"type": "mor" if config.is_mor else "cow", "path": path}
    if config.record_key_fields:
        said["primaryKey"] = ",".join(config.record_key_fields)
    if config.ordering_fields:
        said |= dict.fromkeys(("orderingFields", "preCombineField"), ",".join(config.ordering_fields))
    kept = {key: value for key, value in (properties or {}).items() if key.lower() not in _SHORT}
    return Entry(name, path, {**kept, **said}, ordered, partitions, comment)


def _with_meta(table: HudiTable) -> Any:
    import pyarrow as pa

    meta = ["commit_time", "commit_seqno", "record_key", "partition_path", "file_name"]
    schema = table.schema
    columns = [pa.field(f"_hoodie_{name}", pa.string()) for name in meta if f"_hoodie_{name}" not in schema.names]
    return pa.schema([*columns, *schema])


def _new_name(spark: Any, name: Name) -> tuple[str, str]:
    found = full_name(spark, name.parts)
    if found is None:
        raise UnsupportedFeatureError(f"CREATE TABLE {name}: Hudi tables are entered in spark_catalog only.")
    return found[0], found[1].lower()


def _like(spark: Any, statement: CreateTable) -> CreateTable:
    assert statement.like is not None
    found = find_entry(spark, statement.like.parts)
    if isinstance(found, Entry):
        table = HudiTable(storage_of(spark, found.path))
        schema, partitions = spark_schema(table.schema), found.partition_columns
        given = {key: value for key, value in found.properties.items() if key not in ("path", "provider")}
    else:
        schema = spark.table(str(statement.like)).schema
        partitions, given = (), {}
    columns = ", ".join(
        f"`{one.name}` {one.metadata.get(HUDI_TYPE) or one.dataType.simpleString()}" for one in schema.fields
    )
    return replace(
        statement,
        columns=columns,
        partitioned_by=", ".join(f"`{name}`" for name in partitions) or None,
        properties={**given, **statement.properties},
    )


def _write_keys(options: Mapping[str, str]) -> dict[str, str]:
    """Options of writes among the properties; others, such as free text, stay in the catalog only."""
    found = {}
    for key, value in options.items():
        option = find_option(key)
        if option is not None and WRITE[0] in option.families:
            found[key] = value
        elif key.startswith("hoodie."):
            found[key] = value
    return found


def _partitioning(statement: CreateTable) -> tuple[list[str], str | None]:
    """Partition columns, and the definitions of all columns: partition columns may be defined in their own clause."""
    if statement.partitioned_by is None:
        return [], statement.columns
    cursor = Cursor(statement.partitioned_by)
    names, definitions = [], []
    while not cursor.done:
        start = cursor.offset
        names.append(cursor.identifier())
        if not cursor.done and not cursor.sees(","):
            cursor.until((",",))
            definitions.append(statement.partitioned_by[start : cursor.tokens[cursor.at - 1].end])
        if not cursor.done:
            cursor.expect(",")
    parts = [part for part in (statement.columns, *definitions) if part]
    return names, ", ".join(parts) if parts else None


def _partitions_last(names: Sequence[str], partitions: Sequence[str]) -> list[str]:
    by_lower = {name.lower(): name for name in names}
    missing = [name for name in partitions if name.lower() not in by_lower]
    if missing:
        raise ConfigError(f"PARTITIONED BY names columns that the table lacks: {missing}; it has {list(names)}.")
    last = [by_lower[name.lower()] for name in partitions]
    return [name for name in names if name not in last] + last


def _ddl(spark: Any, columns: str) -> Any:
    """Column definitions as a Spark schema, in which metadata names Hudi's own types: ``VECTOR(128)`` and ``BLOB``."""
    cursor, texts, own = Cursor(columns), [], {}
    while True:
        text = cursor.type((",",))
        found = _HUDI_COLUMN.match(text)
        if found is not None:
            name = found["quoted"].replace("``", "`") if found["quoted"] else found["bare"]
            own[name], plain = _own_type(found["type"], name)
            text = f"{text[: found.start('type')]}{plain}{text[found.end('type') :]}"
        texts.append(text)
        if not cursor.take(","):
            break
    schema = spark.createDataFrame([], ", ".join(texts)).schema
    for column in schema.fields:
        if column.name in own:
            column.metadata = {**column.metadata, HUDI_TYPE: own[column.name]}
    return schema


def _own_type(text: str, name: str) -> tuple[str, str]:
    """The descriptor of one of Hudi's own types, and Spark's type for it."""
    kind = BLOB if text.upper() == "BLOB" else vector_of_descriptor(text, name)
    (column,) = spark_schema(pa.schema([pa.field(name, kind)])).fields
    return column.metadata[HUDI_TYPE], column.dataType.simpleString()


def _picked(schema: Any, names: Sequence[str]) -> Any:
    return type(schema)([schema[name] for name in names])


def _check_same(statement: CreateTable, said: Any, table: HudiTable) -> None:
    stored = {one.name.lower(): one for one in spark_schema(table.schema).fields}
    wrong = [one.name for one in said.fields if not _is_same(stored.get(one.name.lower()), one)]
    wrong = [name for name in wrong if not name.startswith("_hoodie_")]
    if wrong:
        raise ConfigError(
            f"CREATE TABLE {statement.table}: the table at {table.path} has other columns; {wrong} differ. Leave the "
            "columns out to use the table's."
        )


def _is_same(stored: Any, said: Any) -> bool:
    own = said.metadata.get(HUDI_TYPE)
    if stored is None or stored.dataType != said.dataType:
        return False
    return own is None or own == stored.metadata.get(HUDI_TYPE)


def _config_at(storage: Any) -> TableConfig | None:
    try:
        return TableConfig.from_properties(load_properties(storage), storage.uri)
    except TableNotFoundError:
        return None


# ---- statements about a table of the catalog


def _drop(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, DropTable)
    drop_entry(spark, entry, statement.purge)
    storage = storage_of(spark, entry.path)
    if statement.purge and _config_at(storage) is not None:
        storage.delete_dir("")


def _truncate(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, TruncateTable)
    table = HudiTable(storage_of(spark, entry.path))
    if not statement.partition:
        table.truncate(options=write_settings(spark, entry))
        return
    paths = matching_partitions(spark, entry, table, statement.partition)
    if paths:
        table.truncate(paths, write_settings(spark, entry))
    else:
        raise ConfigError(f"TRUNCATE TABLE {entry}: there is no partition {_said(statement.partition)}.")


def _drop_partition(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, DropPartition)
    table = HudiTable(storage_of(spark, entry.path))
    paths: list[str] = []
    for partition in statement.partitions:
        found = matching_partitions(spark, entry, table, partition)
        if not found and not statement.if_exists:
            raise ConfigError(f"ALTER TABLE {entry} DROP PARTITION: there is no partition {_said(partition)}.")
        paths += found
    if paths:
        table.truncate(paths, write_settings(spark, entry))


def _show_partitions(spark: Any, entry: Entry, statement: Statement) -> Any:
    assert isinstance(statement, ShowPartitions)
    table = HudiTable(storage_of(spark, entry.path))
    if not table.config.is_partitioned:
        raise ConfigError(f"SHOW PARTITIONS {entry}: the table is not partitioned.")
    rows = [(path,) for path in matching_partitions(spark, entry, table, statement.partition)]
    return spark.createDataFrame(rows, "partition string")


def _said(partition: Mapping[str, str | None]) -> str:
    return ", ".join(name if value is None else f"{name}={value}" for name, value in partition.items())


def _rename(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, RenameTable)
    parts = statement.new_name.parts
    rename_entry(spark, entry, (parts[-2] if len(parts) > 1 else entry.name[0], parts[-1]))


def _set_properties(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, SetProperties)
    fixed = [key for key in statement.properties if key.lower() in _SHORT or key in (_NAME, "path")]
    if fixed:
        raise ConfigError(f"ALTER TABLE {entry} SET TBLPROPERTIES: {fixed} of a table cannot be changed.")
    change_table(spark, entry, properties=dict(statement.properties))


def _unset_properties(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, UnsetProperties)
    change_table(spark, entry, properties=dict.fromkeys(statement.keys))


def _add_columns(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, AddColumns)
    _alter(spark, entry, [_added(spark, one) for one in statement.columns])


def _added(spark: Any, column: Column) -> changes.AddColumn:
    after = column.position[1] if column.position[:1] == ("AFTER",) else None
    return changes.AddColumn(
        column.name, _arrow_type(spark, column.type), column.comment, after, column.position[:1] == ("FIRST",)
    )


def _drop_columns(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, DropColumns)
    names = HudiTable(storage_of(spark, entry.path)).schema.names
    wanted = [name for name in statement.columns if not statement.if_exists or name.split(".")[0] in names]
    _alter(spark, entry, [changes.DropColumn(name) for name in wanted])


def _rename_column(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, RenameColumn)
    _alter(spark, entry, [changes.RenameColumn(statement.column, statement.new_name)])


def _alter_column(spark: Any, entry: Entry, statement: Statement) -> None:
    assert isinstance(statement, AlterColumn)
    wanted: list[changes.Change] = []
    if statement.type is not None:
        wanted.append(changes.ChangeType(statement.column, _arrow_type(spark, statement.type)))
    if statement.comment is not None:
        wanted.append(changes.SetComment(statement.column, statement.comment))
    if statement.nullable is False:
        raise UnsupportedFeatureError(f"ALTER TABLE {entry}: a column cannot become NOT NULL.")
    if statement.nullable:
        wanted.append(changes.SetNullable(statement.column))
    if statement.position:
        first = statement.position[0] == "FIRST"
        wanted.append(changes.MoveColumn(statement.column, None if first else statement.position[1], first))
    _alter(spark, entry, wanted)


def _alter(spark: Any, entry: Entry, wanted: Sequence[changes.Change]) -> None:
    table = HudiTable(storage_of(spark, entry.path))
    if wanted:
        table.alter(*wanted)
        comments = _comments(entry.schema)
        for change in wanted:
            if isinstance(change, changes.AddColumn | changes.SetComment):
                comments[change.name] = change.comment
            elif isinstance(change, changes.RenameColumn):
                comments[change.to] = comments.pop(change.name, None)
        schema = spark_schema(_with_meta(HudiTable(storage_of(spark, entry.path))))
        change_table(spark, entry, schema=_commented(schema, comments))


def _comments(schema: Any) -> dict[str, str | None]:
    """Comments of top-level columns, which the catalog has."""
    return {one.name: one.metadata["comment"] for one in schema.fields if "comment" in one.metadata}


def _commented(schema: Any, comments: Mapping[str, str | None]) -> Any:
    """The schema with these comments."""
    lowered = {name.lower(): comment for name, comment in comments.items() if comment}
    fields = []
    for one in schema.fields:
        comment = lowered.get(one.name.lower())
        metadata = one.metadata if comment is None else {**one.metadata, "comment": comment}
        fields.append(type(one)(one.name, one.dataType, one.nullable, metadata))
    return type(schema)(fields)


def _arrow_type(spark: Any, text: str) -> Any:
    column = _ddl(spark, f"c {text}").fields[0]
    if HUDI_TYPE in column.metadata:
        raise UnsupportedFeatureError(
            f"ALTER TABLE cannot make a column {column.metadata[HUDI_TYPE]}. Write rows that have the column, with "
            f"{HUDI_TYPE} in its metadata: the write adds it."
        )
    return checked_arrow_types(StructType([column])).field(0).type


DEFINITIONS: Mapping[type, Callable[[Any, Entry, Any], Any]] = {
    DropTable: _drop,
    TruncateTable: _truncate,
    DropPartition: _drop_partition,
    ShowPartitions: _show_partitions,
    RenameTable: _rename,
    SetProperties: _set_properties,
    UnsetProperties: _unset_properties,
    AddColumns: _add_columns,
    DropColumns: _drop_columns,
    RenameColumn: _rename_column,
    AlterColumn: _alter_column,
}
"""By type of the statement: (session, table, statement) -> a DataFrame, or None without rows."""
