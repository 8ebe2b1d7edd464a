"""Transforms of a turn's rows: SQL, flattened structs, functions of the caller; one after the other.

Source: ``SqlQueryBasedTransformer``, ``SqlFileBasedTransformer``, ``FlatteningTransformer``, ``ChainedTransformer``,
``AWSDmsTransformer`` (1.2.0). There the SQL is Spark's, here it is duckdb's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.extras import import_extra

__all__ = [
    "Transform",
    "flattened",
    "of_function",
    "of_schema",
    "of_sql",
    "require_placeholder",
    "transformed",
    "with_operation",
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
