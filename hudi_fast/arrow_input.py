"""Conversion of user input to Arrow: tables, and streams of batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_fast.errors import InvalidDataError, SchemaMismatchError

__all__ = ["RowStream", "row_stream", "to_arrow_table"]

_BATCH_ROWS = 1 << 16
_READ_AHEAD = 4
"""Batches that a scan of a dataset reads ahead; by default it is 16, of several files at a time."""


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows that are read once, a batch at a time.

    Attributes:
        schema: of all batches.
        batches: the rows.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def row_stream(data: Any) -> RowStream | None:
    """The batches of a stream; None for rows that are in memory.

    Args:
        data: a ``pyarrow.RecordBatchReader``, dataset or scanner; a polars LazyFrame; an iterator of record batches or
            tables; or another object with ``__arrow_c_stream__`` that is no data frame.

    Raises:
        InvalidDataError: an iterator yields something else, or nothing.
        SchemaMismatchError: while the batches are read: a later one has other columns than the first.
    """
    home, name = type(data).__module__.partition(".")[0], type(data).__name__
    if isinstance(data, pa.Table | pa.RecordBatch | list) or home in ("pandas", "pyspark"):
        return None
    if home == "polars":
        return _lazy_frame(data) if name == "LazyFrame" and hasattr(data, "collect_batches") else None
    if isinstance(data, pa.RecordBatchReader):
        return _plain(data.schema, data)
    if type(data).__module__ == "pyarrow._dataset":
        scans = hasattr(data, "scanner")
        scanner = data.scanner(batch_readahead=_READ_AHEAD, fragment_readahead=1) if scans else data
        return row_stream(scanner.to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        return row_stream(_rows_of(data, pa.RecordBatchReader.from_stream))
    if isinstance(data, Iterator):
        return _batches_of(data)
    return None


def _lazy_frame(frame: Any) -> RowStream:
    parts = frame.collect_batches(chunk_size=_BATCH_ROWS, lazy=True)
    batches = (batch for part in parts for batch in pa.table(part).to_batches())
    return _plain(pa.table(frame.clear().collect()).schema, batches)


def _batches_of(data: Iterator[Any]) -> RowStream:
    first = next(data, None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        found = "nothing" if first is None else type(first).__name__
        raise InvalidDataError(f"An iterator of rows yields pyarrow record batches, at least one; got {found}.")
    schema = first.schema

    def batches() -> Iterator[pa.RecordBatch]:
        for number, one in enumerate(itertools.chain([first], data)):
            if not isinstance(one, pa.RecordBatch | pa.Table):
                raise InvalidDataError(
                    f"An iterator of rows yields pyarrow record batches; item {number} is {type(one).__name__}."
                )
            if not one.schema.equals(schema):
                raise SchemaMismatchError(
                    f"Batch {number} of the rows has other columns than the first one. Expected\n{schema}\nand got\n"
                    f"{one.schema}\nNo row was written. Cast the batches to one schema."
                )
            yield from [one] if isinstance(one, pa.RecordBatch) else one.to_batches()

    return _plain(schema, batches())


def _plain(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RowStream:
    """The stream with strings and binary values in buffers of their own: slices of views have the size of the whole."""
    plain = pa.schema([field.with_type(_PLAIN_TYPES.get(field.type, field.type)) for field in schema])
    if plain.equals(schema):
        return RowStream(schema, iter(batches))
    return RowStream(plain, (batch.cast(plain) for batch in batches))


_PLAIN_TYPES = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def to_arrow_table(data: Any) -> pa.Table:
    """Convert rows to an Arrow table.

    Args:
        data: a pyarrow table or record batch; a pandas DataFrame (named index levels become columns); a polars
            DataFrame; a non-empty list of dicts; a stream of :func:`row_stream`; or any object with
            ``__arrow_c_stream__`` or ``__arrow_c_array__``.

    Raises:
        InvalidDataError: ``data`` is of another type, or a column mixes types.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    home = type(data).__module__.partition(".")[0]
    if home == "pyspark":
        raise InvalidDataError(
            "This call takes local rows. Pass Spark rows to the calls that take a session: hudi_fast.write, "
            "hudi_fast.merge(..., spark=spark); or collect them into this process first (toArrow). "
            f"Got a PySpark {type(data).__name__}."
        )
    if home == "pandas" and hasattr(data, "columns"):
        return _converted(lambda: pa.Table.from_pandas(_with_index(data), preserve_index=False))
    stream = row_stream(data)
    if stream is not None:
        return pa.Table.from_batches(stream.batches, stream.schema)
    if home == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _rows_of(data, pa.table)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return _converted(lambda: pa.Table.from_pylist(data))
    raise InvalidDataError(f"Rows must be {_ACCEPTED}; got {type(data).__name__}.")


_ACCEPTED = (
    "a pyarrow Table, RecordBatchReader, Dataset or Scanner, a pandas or polars DataFrame, a polars LazyFrame, a "
    "duckdb relation, a list of dicts, an iterator of record batches, or an object with __arrow_c_stream__"
)


def _rows_of(data: Any, convert: Callable[[Any], Any]) -> Any:
    """An Arrow stream or array, converted.

    Raises:
        InvalidDataError: it is not of rows, such as that of one column.
    """
    try:
        return convert(data)
    except (pa.ArrowInvalid, TypeError) as error:
        raise InvalidDataError(f"Rows must be {_ACCEPTED}; got {type(data).__name__}: {error}") from error


def _with_index(frame: Any) -> Any:
    """Turn named index levels into columns; an existing column of the same name wins."""
    named = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _converted(convert: Callable[[], pa.Table]) -> pa.Table:
    try:
        return convert()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        why = "; ".join(map(str, error.args))
        raise InvalidDataError(
            f"The rows cannot be converted to Arrow columns: {why}. Give each column one type."
        ) from error
