"""Change events of Debezium become rows: the row before a delete, the row after any other change, and where it was.

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
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.streamer.transform import Transform

__all__ = ["MYSQL", "POSTGRES", "of_changes", "with_payload", "without_untyped"]

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
