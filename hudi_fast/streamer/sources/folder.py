"""Files of a folder, in the order of their modification times: Parquet, JSON lines, CSV, Avro and ORC.

::

    list the folder ─► files newer than the position ─► the first ones, up to the limit ─► one stream of rows
                                                                   └─► position: time of the newest of them, in ms

The columns are those of all files of a turn together. Files that were modified less than ``settle_seconds`` ago wait
for the next turn: another one may appear with the same time, or it may still be growing. Empty files are passed over,
and so are files and folders whose names begin with a dot or an underscore.

Sources: ``DFSPathSelector`` and the classes ``*DFSSource`` (1.2.0). There the columns are those of the first file, and
a file that appears with the time of the position is never read.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from hudi_fast.errors import (
    ConfigError,
    HudiError,
    InvalidDataError,
    SchemaMismatchError,
    SourceError,
    UnsupportedFeatureError,
)
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.schema.conform import plan_conform
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.streamer.messages import Rejected, Take, json_rows, readable
from hudi_fast.streamer.settings import PREFIX, truth
from hudi_fast.streamer.sources.source import Fetched
from hudi_fast.values import dataclass

__all__ = ["FOLDER_FORMATS", "FolderSource", "common_schema", "is_hidden"]

FOLDER_FORMATS = ("parquet", "json", "csv", "avro", "orc")
"""Formats of files in a folder."""

_HIDDEN = (".", "_")
_CSV = f"{PREFIX}csv."
_START = str(-(2**63))
"""Position of Apache Hudi before all files."""


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A source of files.

    Attributes:
        storage: rooted at the folder.
        format: one of :data:`FOLDER_FORMATS`.
        schema: of the rows; None for that of the files.
        csv: options of Spark's CSV reader: ``sep``, ``header``, ``inferSchema``, ``quote``, ``nullValue``.
        settle_seconds: age at which a file counts as complete.
        takes: takes JSON objects that cannot be read; None: they are errors.
    """

    storage: Storage
    format: str
    schema: pa.Schema | None = None
    csv: Mapping[str, str] = field(default_factory=dict)
    settle_seconds: float = 1.0
    takes: Take | None = None

    def __post_init__(self) -> None:
        if self.format not in FOLDER_FORMATS:
            raise ConfigError(f"Expected files of {', '.join(FOLDER_FORMATS)}; found {self.format!r}.")
        unknown = sorted(set(self.csv) - set(_CSV_OPTIONS))
        if unknown:
            raise UnsupportedFeatureError(
                f"Options of the CSV reader that are not supported: {', '.join(unknown)}. Supported: "
                f"{', '.join(_CSV_OPTIONS)}."
            )
        for name, fits, expected in _CSV_VALUES:
            value = self.csv.get(name)
            if value is not None and not fits(value):
                raise ConfigError(f"{_CSV}{name} is {expected}; got {value!r}.")
        for name in _CSV_FLAGS:
            self.csv_flag(name)

    def csv_flag(self, name: str) -> bool:
        """The truth value of an option of the CSV reader; false if it is not given.

        Raises:
            ConfigError: it is neither true nor false.
        """
        return truth(f"{_CSV}{name}", self.csv.get(name, "false"))

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is in bytes of files.

        Raises:
            ConfigError: the position is not a number of milliseconds, or the folder does not exist.
            InvalidDataError: a file does not have the format; or its columns do not fit those of the other files. The
                message names it.
            SourceError: a file cannot be read.
        """
        after = _milliseconds(position)
        waiting = self._waiting(after)
        chosen = _chosen(waiting, limit)
        if not chosen:
            return Fetched(None, position)
        lag = {self.storage.uri: len(waiting) - len(chosen)}
        return Fetched(self.rows([one.path for one in chosen]), str(chosen[-1].modified_ms), lag)

    def committed(self, position: str | None) -> None:
        """Nothing to do: the files stay."""

    def close(self) -> None:
        """Nothing to do."""

    def _waiting(self, after: int) -> list[FileStat]:
        """The complete files after a time, oldest first; waits once for the youngest to be complete."""
        files, least = self._files(after)
        if least < self.settle_seconds:
            time.sleep(self.settle_seconds - least)
            files, _ = self._files(after)
        return sorted(files, key=lambda one: (one.modified_ms, one.path))

    def _files(self, after: int) -> tuple[list[FileStat], float]:
        """The complete files after a time, and the age of the youngest file."""
        now = time.time()  # before the folder is listed, and once: files of one time are complete together
        listed = self.storage.list_dir("", recursive=True)
        if not listed and self.storage.has_folders:  # an object store has no empty folders
            folder = self.storage.stat("")
            if folder is None or not folder.is_dir:
                raise ConfigError(f"The folder {self.storage.uri} of the stream does not exist.")
        found = [one for one in listed if one.size and one.modified_ms > after and not is_hidden(one.path)]
        ages = [max(0.0, now - one.modified_ms / 1000) for one in found]
        complete = [one for one, age in zip(found, ages, strict=True) if age >= self.settle_seconds]
        return complete, min(ages, default=self.settle_seconds)

    def rows(self, paths: Sequence[str]) -> Any:
        """The rows of files, which have the columns of all of them.

        Args:
            paths: of files in the folder, one at least.

        Raises:
            InvalidDataError: as :meth:`fetch`.
            SourceError: as :meth:`fetch`.
        """
        opened = [self._opened(path) for path in paths]
        schema = self.schema or common_schema(self.storage, [(one.path, one.schema) for one in opened])
        return pa.RecordBatchReader.from_batches(schema, _conformed(self.storage, opened, schema))

    def rows_as(self, paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of files, with columns that the caller knows.

        Args:
            paths: of files in the folder.
            schema: of the rows.

        Raises:
            InvalidDataError: as :meth:`fetch`.
            SourceError: as :meth:`fetch`.
        """
        return _conformed(self.storage, [self._opened(path) for path in paths], schema)

    def schema_of(self, path: str) -> pa.Schema:
        """The columns of a file. JSON, CSV and Avro are read for it.

        Raises:
            InvalidDataError: as :meth:`fetch`.
            SourceError: as :meth:`fetch`.
        """
        return self._opened(path).schema

    def _opened(self, path: str) -> _Opened:
        try:
            return _Opened(path, *_READERS[self.format](self, path))
        except HudiError:
            raise
        except OSError as error:
            raise SourceError(f"{self.storage.absolute(path)} cannot be read as {self.format}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file whose columns are known; its rows are read when they are wanted."""

    path: str
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]


def is_hidden(path: str) -> bool:
    """Whether a file or a folder that it is in is hidden, such as ``_temporary`` of a job that still writes."""
    return any(part.startswith(_HIDDEN) for part in path.split("/"))


def _milliseconds(position: str | None) -> int:
    try:
        return int(_START if position is None else position)
    except ValueError as error:
        raise ConfigError(
            f"The position {position!r} is not a modification time in milliseconds, which a stream of a folder "
            "continues from. Give --ignore-checkpoint to read all files, or --checkpoint with such a time."
        ) from error


def _chosen(files: Sequence[FileStat], limit: int | None) -> list[FileStat]:
    """The first files up to the limit, one at least; never a part of those with one modification time."""
    chosen, size = list[FileStat](), 0
    for one in files:
        same = bool(chosen) and one.modified_ms == chosen[-1].modified_ms
        if limit is not None and chosen and size + one.size >= limit and not same:
            break
        chosen.append(one)
        size += one.size
    return chosen


def common_schema(storage: Storage, files: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of all files; a column of several types has the widest.

    Args:
        storage: rooted at the folder.
        files: path and columns of each, one at least.

    Raises:
        InvalidDataError: they do not fit together.
    """
    try:
        schema = pa.unify_schemas([one.remove_metadata() for _, one in files], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        names = ", ".join(path for path, _ in files[:3]) + (" ..." if len(files) > 3 else "")
        raise InvalidDataError(
            f"The columns of the files of {storage.uri} ({names}) do not fit together: {str(error).rstrip('.')}. "
            "Give a schema: hoodie.streamer.schemaprovider.source.schema.file."
        ) from error
    return pa.schema([each.with_nullable(True) for each in schema])


def _conformed(storage: Storage, opened: Sequence[_Opened], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for one in opened:
        try:
            plan = plan_conform(one.schema.remove_metadata(), schema)
            for batch in one.batches():
                yield plan.apply(batch.replace_schema_metadata(None))
        except (InvalidDataError, SchemaMismatchError) as error:
            raise InvalidDataError(f"{storage.absolute(one.path)}: {error}") from error
        except (pa.ArrowException, OSError) as error:
            text = str(error).splitlines()[0]
            raise SourceError(f"{storage.absolute(one.path)} cannot be read: {text}") from error


# ---- formats: the columns of a file, and its rows


_Reader = Callable[[FolderSource, str], tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]]


def _arrow_file(source: FolderSource, path: str) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    import pyarrow.dataset as ds

    storage = source.storage
    try:
        dataset = ds.dataset(storage.fs_path(path), filesystem=storage.fs, format=source.format)
    except pa.ArrowInvalid as error:
        text = str(error).splitlines()[0]
        raise InvalidDataError(f"{storage.absolute(path)} cannot be read as {source.format}: {text}") from error
    return dataset.schema, lambda: dataset.to_batches()


def _json_file(source: FolderSource, path: str) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    storage = source.storage
    lines = [line for line in storage.read_bytes(path).splitlines() if line.strip()]

    def decode(part: Sequence[tuple[int, bytes]]) -> pa.Table:
        where = f"{storage.absolute(path)}, object"
        return json_rows([line for _, line in part], source.schema, lambda at: f"{where} {part[at][0]}")

    numbered, bad, place = list(enumerate(lines, 1)), list[tuple[tuple[int, bytes], str]](), storage.absolute(path)
    rows = decode(numbered) if source.takes is None else readable(numbered, decode, bad, place)
    if source.takes is not None and bad:
        source.takes([Rejected(f"{place}, object {number}", reason, line) for (number, line), reason in bad])
    return rows.schema, lambda: iter(rows.to_batches())


def _csv_file(source: FolderSource, path: str) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    import pyarrow.csv as pa_csv

    given, storage, schema = source.csv, source.storage, source.schema
    encoding, has_header = given.get("encoding", "utf8"), source.csv_flag("header")
    parsing = pa_csv.ParseOptions(
        delimiter=given.get("sep", given.get("delimiter", ",")),
        quote_char=given.get("quote", '"'),
        escape_char=given.get("escape", False),
        newlines_in_values=True,
    )
    try:
        reading = pa_csv.ReadOptions(encoding=encoding, autogenerate_column_names=not has_header)
        with storage.open_input(path) as stream:
            names = pa_csv.open_csv(stream, reading, parsing).schema.names
        if not has_header:
            names = schema.names if schema is not None else [f"_c{at}" for at in range(len(names))]
            reading = pa_csv.ReadOptions(encoding=encoding, column_names=names)
        types = {} if source.csv_flag("inferSchema") else {name: pa.string() for name in names}
        converting = pa_csv.ConvertOptions(
            column_types=types if schema is None else schema,
            null_values=[given.get("nullValue", "")],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with storage.open_input(path) as stream:
            rows = pa_csv.read_csv(stream, reading, parsing, converting)
    except (pa.ArrowException, UnicodeError) as error:
        text = str(error).splitlines()[0]
        raise InvalidDataError(f"{storage.absolute(path)} cannot be read as CSV: {text}") from error
    return rows.schema, lambda: iter(rows.to_batches())


def _avro_file(source: FolderSource, path: str) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    import io
    import json

    import fastavro

    storage = source.storage
    data = io.BytesIO(storage.read_bytes(path))
    try:
        blocks = fastavro.block_reader(data)
        schema = avro_to_arrow(json.dumps(blocks.writer_schema), storage.absolute(path))
        plain, read = fastavro.parse_schema(_plain(blocks.writer_schema)), fastavro.schemaless_reader
        found = [read(block.bytes_, plain) for block in blocks for _ in range(block.num_records)]
        rows = pa.Table.from_pylist(found, schema)
    except HudiError:
        raise
    except Exception as error:  # fastavro does not wrap struct, key and index errors
        raise InvalidDataError(f"{storage.absolute(path)} cannot be read as Avro: {error!r}") from error
    return schema, lambda: iter(rows.to_batches())


def _plain(schema: Any) -> Any:
    """An Avro schema as JSON whose times and UUIDs are numbers and texts: Python's own have a smaller range."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    drops = schema.get("logicalType") != "decimal"
    return {key: _plain(value) for key, value in schema.items() if key != "logicalType" or not drops}


def _is_encoding(text: str) -> bool:
    try:
        return bool(codecs.lookup(text))
    except LookupError:
        return False


def _is_character(text: str) -> bool:
    return len(text) == 1


_CSV_VALUES: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    *((name, _is_character, "one character") for name in ("sep", "delimiter", "quote", "escape")),
    ("encoding", _is_encoding, "the name of an encoding, such as utf8 or iso-8859-1"),
)
_CSV_FLAGS = ("header", "inferSchema")
_CSV_OPTIONS = ("sep", "delimiter", "header", "inferSchema", "quote", "escape", "nullValue", "encoding")
_READERS: dict[str, _Reader] = {
    "parquet": _arrow_file,
    "orc": _arrow_file,
    "json": _json_file,
    "csv": _csv_file,
    "avro": _avro_file,
}
