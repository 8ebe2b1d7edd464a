"""Conversion of user input to Arrow: tables, and streams of batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileType

from hudi_fast.config.option_names import ROW_FORMATS
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.column_limits import fitting_slices, in_fitting_chunks
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = ["RowStream", "is_from_spark", "read_rows", "row_stream", "to_arrow_table"]

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


def read_rows(
    path: str | os.PathLike[str], format: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> pa.RecordBatchReader:
    """A stream of the rows of a file, or of all files of a folder, for :func:`hudi_fast.write`.

    Types are those of the file. CSV and JSON have none: Arrow infers them from the first MiB. ``table_schema.cast``
    or a pyarrow reader of your own gives others.

    Args:
        path: a Parquet, CSV, JSON (one object a line), Arrow or ORC file, or a folder of such files; with a scheme,
            such as ``s3://``, in a store.
        format: one of :data:`~hudi_fast.config.option_names.ROW_FORMATS`; None: the ending of the name says it.
        storage_options: how to reach the file, see docs/object-stores.md.

    Raises:
        ConfigError: there is no such file, or its format is unknown.
        InvalidDataError: the file has another format, or its rows do not fit the columns.

    Example:
        >>> import hudi_fast as hf, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "trips.csv").write_text("id,fare\\n1,9.5\\n2,3.0\\n")
        >>> hf.write(hf.read_rows(folder / "trips.csv"), folder / "trips", key="id").inserts
        2
    """
    import pyarrow.dataset as ds

    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"read_rows takes the path of a file or folder; got {path!r}.")
    place, known = os.fspath(path), ", ".join(ROW_FORMATS)
    kind = os.path.splitext(place)[1].lstrip(".").lower() if format is None else format
    if kind not in ROW_FORMATS:
        raise ConfigError(f"{place}: expected a format= or an ending among {known}; found {kind!r}.")
    storage = Storage(place, storage_options)
    source, system = storage.fs_path(""), storage.fs
    if system.get_file_info(source).type is FileType.NotFound:
        raise ConfigError(f"The file {place} does not exist.")
    try:
        reader: pa.RecordBatchReader = ds.dataset(source, format=kind, filesystem=system).scanner().to_reader()
    except pa.ArrowInvalid as error:
        raise InvalidDataError(f"{place} cannot be read as {kind}: {str(error).splitlines()[0]}") from error
    return reader


def row_stream(data: Any) -> RowStream | None:
    """The batches of a stream; None for rows that are in memory.

    Args:
        data: a ``pyarrow.RecordBatchReader``, dataset or scanner; a polars LazyFrame; an iterator or list of record
            batches or tables; an iterator of dicts, which are read into memory; or another object with
            ``__arrow_c_stream__`` that is not a data frame.

    Raises:
        InvalidDataError: an iterator yields something else, or nothing.
        SchemaMismatchError: while the batches are read: a later one has other columns than the first.
        UnsupportedFeatureError: a polars column whose values Arrow cannot hold.
    """
    data = _native(data)
    if isinstance(data, list):
        return _batches_of(iter(data)) if data and isinstance(data[0], pa.RecordBatch | pa.Table) else None
    if isinstance(data, pa.Table | pa.RecordBatch | Mapping) or _home(data) in ("pandas", "pyspark"):
        return None
    if _home(data) == "polars":
        is_lazy = type(data).__name__ == "LazyFrame" and hasattr(data, "collect_batches")
        return _lazy_frame(data) if is_lazy else None
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


def _home(data: Any) -> str:
    """The package that defines the type of some data."""
    return type(data).__module__.partition(".")[0]


def _native(data: Any) -> Any:
    """The frame inside a wrapper, such as one of narwhals; other data unchanged."""
    return data.to_native() if hasattr(data, "to_native") else data


def _refuse_polars_types(frame: Any) -> None:
    """Refuse the columns of a polars frame or series whose values Arrow cannot hold, by name.

    For a column of Python objects polars exports the addresses of the objects in memory, as 8 bytes each.
    """
    columns = frame.collect_schema() if hasattr(frame, "collect_schema") else {frame.name: frame.dtype}
    refused = [(name, text) for name, kind in columns.items() if (text := _type_without_values(kind)) is not None]
    if refused:
        listed = ", ".join(f"{name!r} ({text})" for name, text in refused)
        raise UnsupportedFeatureError(
            f"Columns of the polars {type(frame).__name__} have types that Arrow cannot hold: {listed}. Replace "
            "them first: Python objects such as UUIDs by their texts, pl.Series([str(value) for value in series]); "
            "integers of 128 bits by a cast to Decimal or String."
        )


def _type_without_values(kind: Any) -> str | None:
    """The name of a polars type, or of a type inside it, whose values Arrow cannot hold; None if there is none."""
    name = str(kind.base_type().__name__)
    if name in ("Object", "Int128", "UInt128"):
        return name
    parts = [kind.inner] if hasattr(kind, "inner") else [field.dtype for field in getattr(kind, "fields", ())]
    return next((text for part in parts if (text := _type_without_values(part)) is not None), None)


def _lazy_frame(frame: Any) -> RowStream:
    _refuse_polars_types(frame)
    parts = frame.collect_batches(chunk_size=_BATCH_ROWS, lazy=True)
    batches = (batch for part in parts for batch in pa.table(part).to_batches())
    return _plain(pa.table(frame.clear().collect()).schema, batches)


def _batches_of(data: Iterator[Any]) -> RowStream:
    first = next(data, None)
    if _is_row(first):
        table = _table_of_rows([first, *data])
        return RowStream(table.schema, iter(table.to_batches()))
    if not isinstance(first, pa.RecordBatch | pa.Table):
        found = "nothing" if first is None else type(first).__name__
        raise InvalidDataError(
            f"An iterator of rows yields pyarrow record batches or dicts, at least one; got {found}."
        )
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
    """The stream in batches that can be converted to storable types.

    Strings and binary values get buffers of their own: slices of views have the size of the whole.
    """
    plain = pa.schema([field.with_type(_PLAIN_TYPES.get(field.type, field.type)) for field in schema])
    return RowStream(plain, _fitting(batches if plain.equals(schema) else (batch.cast(plain) for batch in batches)))


def _fitting(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first_row = 0
    for batch in batches:
        yield from fitting_slices(batch, first_row=first_row)
        first_row += batch.num_rows


_PLAIN_TYPES = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def to_arrow_table(data: Any) -> pa.Table:
    """Convert rows to an Arrow table, in chunks that can be converted to storable types.

    Args:
        data: a pyarrow table or record batch; a pandas DataFrame (named index levels become columns); a polars
            DataFrame; a dict of columns; a non-empty list of dicts, dataclass instances or pydantic models, whose
            columns are all keys in order of first appearance (null for a row without the key); a stream of
            :func:`row_stream`; or any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``.

    Raises:
        InvalidDataError: ``data`` is of another type, a column mixes types, or a value has 2 GiB or more.
        UnsupportedFeatureError: a polars column whose values Arrow cannot hold.
    """
    return in_fitting_chunks(_table_of(_native(data)))


def _table_of(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    home = _home(data)
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
    if home == "polars" and hasattr(data, "__arrow_c_stream__"):
        _refuse_polars_types(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _rows_of(data, pa.table)
    if isinstance(data, Mapping):
        _check_names(data)
        return _converted(lambda: pa.table(dict(data)))
    if isinstance(data, list) and data and _is_row(data[0]):
        return _table_of_rows(data)
    if isinstance(data, list) and not data:
        raise InvalidDataError("An empty list has no columns. Pass an empty table with them: schema.empty_table().")
    raise InvalidDataError(f"Rows must be {_ACCEPTED}; got {type(data).__name__}.")


_ACCEPTED = (
    "a pyarrow Table, RecordBatchReader, Dataset or Scanner, a pandas or polars DataFrame, a polars LazyFrame, a "
    "duckdb relation, a dict of columns, a list of dicts, dataclass instances or pydantic models, an iterator or list "
    "of record batches, or an object with __arrow_c_stream__"
)


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) or (is_dataclass(value) and not isinstance(value, type)) or _is_model(value)


def _is_model(value: Any) -> bool:
    """Whether a value is an instance of a pydantic model."""
    return hasattr(type(value), "model_fields") and hasattr(value, "model_dump")


def _table_of_rows(data: list[Any]) -> pa.Table:
    rows = [_as_dict(row, number) for number, row in enumerate(data)]
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    _check_names(names)
    return _converted(lambda: pa.table({name: [row.get(name) for row in rows] for name in names}))


def _as_dict(row: Any, number: int) -> dict[Any, Any]:
    if isinstance(row, dict):
        return row
    if not _is_row(row):
        raise InvalidDataError(f"Each row of a list of rows is a dict; row {number} is {type(row).__name__}.")
    return row.model_dump() if _is_model(row) else asdict(row)


def _check_names(names: Mapping[Any, Any]) -> None:
    unnamed = [name for name in names if not isinstance(name, str)]
    if unnamed or not names:
        found = f"{unnamed[0]!r}" if unnamed else "no key at all"
        raise InvalidDataError(f"The keys of the dicts name columns, so they are texts; got {found}.")


def _rows_of(data: Any, convert: Callable[[Any], Any]) -> Any:
    """An Arrow stream or array, converted.

    Raises:
        InvalidDataError: it does not hold rows, such as a stream of one column.
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


def is_from_spark(value: Any) -> bool:
    """Whether a value is PySpark's, without importing PySpark."""
    return any(base.__module__.partition(".")[0] == "pyspark" for base in type(value).__mro__)
