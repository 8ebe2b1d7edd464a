"""Transforms of a turn's rows: SQL, flattened structs, functions of the caller; one after the other.

Source: ``SqlQueryBasedTransformer``, ``SqlFileBasedTransformer``, ``FlatteningTransformer``, ``ChainedTransformer``,
``AWSDmsTransformer`` (1.2.0). There the SQL is Spark's, here it is duckdb's.

Change events of Debezium become rows: the row before a delete, the row after any other change, and where it was.

::

    {"op": "u", "ts_ms": ..., "source": {"lsn": ...}, "before": {...}, "after": {"id": 1, ...}}
        ─► _change_operation_type, _upstream_event_processed_ts_ms, ..., _event_lsn, id, ...

The payload classes ``PostgresDebeziumAvroPayload`` and ``MySqlDebeziumAvroPayload`` merge such rows: the change with
the larger place in the database's log wins, and a ``d`` deletes.

Sources: ``PostgresDebeziumSource``, ``MysqlDebeziumSource``, ``DebeziumConstants`` (1.2.0). Unlike there, arrays stay
arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.extras import import_extra

__all__ = [
    "MYSQL",
    "POSTGRES",
    "Transform",
    "flattened",
    "of_changes",
    "of_function",
    "of_schema",
    "of_sql",
    "require_placeholder",
    "transformed",
    "with_operation",
    "with_payload",
    "without_untyped",
]

Transform = Callable[[pa.RecordBatchReader], pa.RecordBatchReader]

_PLACEHOLDER = "<SRC>"
_VIEW = "hudi_fast_source"


def transformed(rows: Any, transforms: Sequence[Callable[[Any], Any]]) -> Any:
    """The rows after all transforms, as the first one takes them and the last one gives them."""
    for each in transforms:
        rows = each(rows)
    return rows


def of_sql(text: str) -> Transform:
    """A query over the rows of the turn, which are held in memory: a query may read them several times.

    Args:
        text: a query of duckdb, in which ``<SRC>`` stands for the rows.

    Raises:
        ConfigError: the text is not one query, or does not name the rows; or duckdb is not installed.
    """
    require_placeholder(text)
    duckdb = import_extra("duckdb", "sql", "A SQL transformer")
    query = text.replace(_PLACEHOLDER, _VIEW)
    try:
        kinds = [one.type for one in duckdb.extract_statements(query)]
    except duckdb.Error as error:
        raise ConfigError(f"The SQL of a transformer cannot be parsed: {_shown(error)}") from error
    if kinds != [duckdb.StatementType.SELECT]:
        raise ConfigError(f"The SQL of a transformer is one query (SELECT or WITH); got {text!r}.")

    def transform(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        table = rows.read_all()
        connection = duckdb.connect()
        try:
            connection.register(_VIEW, table)
            found = connection.sql(query)
            made = (getattr(found, "to_arrow_reader", None) or found.fetch_record_batch)()  # the second: older duckdb
        except duckdb.Error as error:
            connection.close()
            raise _failed(error) from error
        return _kept_open(made, connection, duckdb.Error)

    return transform


def require_placeholder(text: str) -> str:
    """What stands for the rows of a turn in a query.

    Args:
        text: the query.

    Raises:
        ConfigError: the query does not name the rows.
    """
    if _PLACEHOLDER not in text:
        raise ConfigError(f"The SQL of a transformer reads from {_PLACEHOLDER}, the rows of the turn; got {text!r}.")
    return _PLACEHOLDER


def _failed(error: Exception) -> ConfigError:
    return ConfigError(f"The SQL of a transformer failed: {_shown(error)}")


def _shown(error: Exception) -> str:
    return str(error).replace(_VIEW, _PLACEHOLDER)


def _kept_open(reader: pa.RecordBatchReader, connection: Any, failure: type[Exception]) -> pa.RecordBatchReader:
    """The rows of a query; the connection is closed after them."""

    def batches() -> Iterator[pa.RecordBatch]:
        with connection:
            try:
                yield from reader
            except (failure, pa.ArrowException, OSError) as error:  # Arrow passes errors of a query on as OSError
                raise _failed(error) from error

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def of_function(function: Callable[[pa.RecordBatch], Any]) -> Transform:
    """A function of the caller, called for each batch of rows.

    Args:
        function: takes a ``pyarrow.RecordBatch``; returns a batch or table with the same columns for every batch, or
            None to drop it.

    Raises:
        ConfigError: it is not a function.
    """
    if not callable(function):
        raise ConfigError(f"transforms is a list of functions of a pyarrow.RecordBatch; got {function!r} in it.")
    name = getattr(function, "__name__", repr(function))

    def batches(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            made = function(batch)
            if isinstance(made, pa.RecordBatch):
                yield made
            elif isinstance(made, pa.Table):
                yield from made.to_batches()
            elif made is not None:
                raise ConfigError(
                    f"The transformer {name} returns a pyarrow.RecordBatch, a Table or None; got {type(made).__name__}."
                )

    def transform(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        made = batches(rows)
        first = next(made, None)
        if first is None:
            return pa.RecordBatchReader.from_batches(rows.schema, iter(()))
        return pa.RecordBatchReader.from_batches(first.schema, _alike(first, made, name))

    return transform


def _alike(first: pa.RecordBatch, others: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    yield first
    for batch in others:
        if not batch.schema.equals(first.schema):
            raise InvalidDataError(
                f"The transformer {name} returned batches with different columns: first\n{first.schema}\nthen\n"
                f"{batch.schema}"
            )
        yield batch


def of_schema(schema: pa.Schema) -> Transform:
    """The columns of a schema: others are dropped, missing ones are null, and types are widened to those of it.

    Args:
        schema: of the rows afterwards.
    """

    def transform(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        plan = plan_conform(rows.schema.remove_metadata(), schema)
        batches = (plan.apply(batch.replace_schema_metadata(None)) for batch in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    return transform


def with_operation(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows of AWS DMS with the column ``Op``, which its files of a full load lack."""
    if "Op" in rows.schema.names:
        return rows
    schema = rows.schema.append(pa.field("Op", pa.string()))
    batches = (batch.append_column("Op", pa.array([""] * batch.num_rows, pa.string())) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


def flattened(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows with a column for each field of a struct, at any depth: ``a.b`` becomes ``a_b``."""
    schema = pa.schema(list(_flat_fields(rows.schema, "")))
    names = [each.name for each in schema]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"Flattening makes two columns of one name: {', '.join(twice)}. Rename them by SQL instead.")
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays(list(_flat_columns(batch)), schema=schema) for batch in rows)
    )


def _flat_fields(fields: Any, prefix: str) -> Iterator[pa.Field]:
    for each in fields:
        name = prefix + each.name
        if pa.types.is_struct(each.type):
            yield from _flat_fields(each.type, f"{name}_")
        else:
            yield pa.field(name, each.type)


def _flat_columns(rows: pa.RecordBatch | pa.StructArray) -> Iterator[pa.Array]:
    columns = rows.flatten() if isinstance(rows, pa.StructArray) else rows.columns
    for column in columns:
        if pa.types.is_struct(column.type):
            yield from _flat_columns(column)
        else:
            yield column


_OPERATION = "_change_operation_type"
_DELETE = "d"
_COMMON = {
    _OPERATION: ("op", pa.string()),
    "_upstream_event_processed_ts_ms": ("ts_ms", pa.int64()),
    "db_shard_source_partition": ("source.name", pa.string()),
}
POSTGRES = _COMMON | {
    "db_schema_source_partition": ("source.schema", pa.string()),
    "_event_origin_ts_ms": ("source.ts_ms", pa.int64()),
    "_event_tx_id": ("source.txId", pa.int64()),
    "_event_lsn": ("source.lsn", pa.int64()),
    "_event_xmin": ("source.xmin", pa.int64()),
}
"""Columns of changes of PostgreSQL: the part of the event that each comes from, and its type."""
MYSQL = _COMMON | {
    "_event_origin_ts_ms": ("source.ts_ms", pa.int64()),
    "_event_bin_file": ("source.file", pa.string()),
    "_event_pos": ("source.pos", pa.int64()),
    "_event_row": ("source.row", pa.int32()),
}
"""Columns of changes of MySQL."""

_SEQUENCE = "_event_seq"
_ORDERING_KEY = "hoodie.datasource.write.precombine.field"
_TWO_COLUMNS = 9
_OF_MYSQL = "MySqlDebeziumAvroPayload"
_PAYLOAD_KEY = "hoodie.datasource.write.payload.class"
_MODEL = "org.apache.hudi.common.model.debezium."
Columns = Mapping[str, tuple[str, pa.DataType]]


def with_payload(options: Mapping[str, str], columns: Columns, version: int) -> dict[str, str]:
    """The options of a write, with the payload class of the database unless they name a class or a merge mode.

    Args:
        options: of the write.
        columns: :data:`POSTGRES` or :data:`MYSQL`.
        version: of the table. Version 9 orders changes of MySQL by two columns, and needs no ``_event_seq``.
    """
    given = dict(options)
    if not any(key in given for key in (_PAYLOAD_KEY, "hoodie.record.merge.mode", "hoodie.compaction.payload.class")):
        given[_PAYLOAD_KEY] = _MODEL + ("PostgresDebeziumAvroPayload" if columns is POSTGRES else _OF_MYSQL)
    by_two = given.get(_PAYLOAD_KEY, "").endswith(_OF_MYSQL) and version >= _TWO_COLUMNS
    if not by_two:
        given.setdefault(_ORDERING_KEY, "_event_lsn" if columns is POSTGRES else _SEQUENCE)
    elif given.get(_ORDERING_KEY) == _SEQUENCE:
        del given[_ORDERING_KEY]
    return given


def of_changes(columns: Columns) -> Transform:
    """Flatten the change events of a database.

    Args:
        columns: :data:`POSTGRES` or :data:`MYSQL`.
    """

    def transform(events: pa.RecordBatchReader) -> pa.RecordBatchReader:
        batches = (_rows(batch, columns) for batch in events)
        first = next(batches, None)
        if first is None:
            return pa.RecordBatchReader.from_batches(_rows(_none(events.schema), columns).schema, [])
        return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))

    return transform


def without_untyped(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows without columns of Arrow's null type, which JSON has for a column that is null in each row of a turn.

    Debezium sends all columns with each change, so the table gets such a column with its first value.
    """
    kept = [each.name for each in rows.schema if not pa.types.is_null(each.type)]
    if len(kept) == len(rows.schema):
        return rows
    schema = pa.schema([rows.schema.field(name) for name in kept])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(kept) for batch in rows))


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)


def _rows(events: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    if "payload" in events.schema.names and pa.types.is_struct(events.schema.field("payload").type):
        events = pa.RecordBatch.from_struct_array(events["payload"])  # of a converter that repeats the schema
    _require_events(events.schema)
    made = {name: _part(events, path, kind) for name, (path, kind) in columns.items()}
    if columns == MYSQL:  # in a task of Spark it is a copy
        made[_SEQUENCE] = _sequence(made["_event_bin_file"], made["_event_pos"])
    is_delete = pc.fill_null(pc.equal(made[_OPERATION], _DELETE), False)
    before, after = _fields(events, "before"), _fields(events, "after")
    for name in {**after, **before}:
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            made[name] = new if old is None else old
        else:
            kind = old.type if pa.types.is_null(new.type) else new.type  # inferred: all rows after are null there
            made[name] = pc.if_else(is_delete, old.cast(kind), new.cast(kind))
    return pa.RecordBatch.from_pydict(made)


def _require_events(schema: pa.Schema) -> None:
    rows = [name for name in ("before", "after") if name in schema.names]
    missing = [name for name in ("op", "source", *(() if rows else ("after",))) if name not in schema.names]
    if missing:
        raise InvalidDataError(
            f"Messages of the topic are not change events of Debezium: they lack {', '.join(missing)}; found the "
            f"fields {', '.join(schema.names)}. A converter that unwraps events gives plain rows: read them with "
            "JsonKafkaSource or AvroKafkaSource."
        )


def _fields(events: pa.RecordBatch, name: str) -> dict[str, pa.Array]:
    """The columns of the row before or after; null where there is none."""
    if name not in events.schema.names or not pa.types.is_struct(events[name].type):
        return {}
    rows = events[name]
    return {rows.type.field(at).name: column for at, column in enumerate(rows.flatten())}


def _part(events: pa.RecordBatch, path: str, kind: pa.DataType) -> pa.Array:
    """A part of an event, such as ``source.lsn``; null where a release of Debezium does not have it."""
    name, _, inner = path.partition(".")
    found = events[name] if name in events.schema.names else pa.nulls(events.num_rows)
    if inner:
        found = _fields(events, name).get(inner, pa.nulls(events.num_rows))
    return found.cast(kind)


def _sequence(file: pa.Array, position: pa.Array) -> pa.Array:
    """The place in MySQL's binary log as one text: ``000003.1547`` for the file ``mysql-bin.000003``."""
    if file.null_count or position.null_count:
        raise InvalidDataError("A change event of MySQL has no source.file or source.pos, its place in the binary log.")
    suffix = pc.replace_substring_regex(file, r"^.*\.", "")
    return pc.binary_join_element_wise(suffix, position.cast(pa.string()), ".")
