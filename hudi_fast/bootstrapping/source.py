"""The source folder of a bootstrap: its files by partition, and their common schema.

::

    folder ─► visible files ─► SourceFolder(partitions)
    footers of all files ─► columns by name, with widened types ─► columns of folder names
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.schema.assignment import is_assignable
from hudi_fast.schema.changes import schema_changes
from hudi_fast.schema.normalize import normalize_input_schema
from hudi_fast.schema.promotion import can_promote
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["SourceFolder", "SourcePartition", "folder_schema", "list_source", "named_fields"]

_HIDDEN = ("_", ".")
_ENDING = ".parquet"
_OTHER_FORMATS = (".orc", ".avro", ".csv", ".json")
_META_PREFIX = "_hoodie_"
_INT96 = "INT96"
_THREADS = 16


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A folder with files.

    Attributes:
        folder: relative to the source folder; ``""`` for the source folder itself.
        files: by path.
    """

    folder: str
    files: tuple[FileStat, ...]


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The source folder of a bootstrap.

    Attributes:
        storage: rooted at the folder.
        partitions: by path; at least one.
    """

    storage: Storage
    partitions: tuple[SourcePartition, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(file.size for one in self.partitions for file in one.files)


def list_source(storage: Storage) -> SourceFolder:
    """Find the files of a folder; ignores files and folders whose name begins with ``_`` or ``.``.

    Raises:
        ConfigError: no Parquet file, or the folder is a Hudi table.
        UnsupportedFeatureError: files of another format.
    """
    if storage.exists(".hoodie"):
        raise ConfigError(
            f"{storage.uri} is a Hudi table already; only folders of plain Parquet files are bootstrapped."
        )
    found: dict[str, list[FileStat]] = {}
    for entry in storage.list_dir("", recursive=True):
        if entry.is_dir or any(part.startswith(_HIDDEN) for part in entry.path.split("/")):
            continue
        if entry.name.endswith(_OTHER_FORMATS):
            raise UnsupportedFeatureError(
                f"{storage.uri} holds {entry.path}; only folders of Parquet files are bootstrapped. Move it away."
            )
        if entry.name.endswith(_ENDING):
            found.setdefault(entry.path.rpartition("/")[0], []).append(entry)
    if not found:
        raise ConfigError(f"There is no Parquet file (*{_ENDING}) below {storage.uri} to bootstrap a table from.")
    return SourceFolder(storage, tuple(SourcePartition(one, tuple(found[one])) for one in sorted(found)))


def named_fields(partitions: Iterable[SourcePartition]) -> tuple[str, ...] | None:
    """The names in ``name=value`` folders, outermost first; None when the names differ between folders."""
    names = {tuple(part.partition("=")[::2] for part in one.folder.split("/") if part) for one in partitions}
    fields = {tuple(name for name, _ in parts) for parts in names}
    valued = all(value for parts in names for _, value in parts)
    return fields.pop() if len(fields) == 1 and valued else None


def folder_schema(source: SourceFolder, from_folders: Sequence[str]) -> pa.Schema:
    """The union of the files' columns, with types widened to hold all values; all are nullable.

    Args:
        source: the folder.
        from_folders: columns from folder names; appended as text, unless files have them.

    Raises:
        SchemaMismatchError: a column has incompatible types in two files.
        InvalidDataError: the files belong to a Hudi table.
        UnsupportedFeatureError: a type that a table cannot have.
        CorruptTableError: a file cannot be read as Parquet.
    """
    files = [file.path for one in source.partitions for file in one.files]
    with ThreadPool(_THREADS) as pool:
        schemas = list(pool.map(lambda path: _stored_schema(source.storage, path), files))
    columns: dict[str, pa.DataType] = {}
    first: dict[str, str] = {}
    known: dict[pa.Schema, None] = {}
    for path, schema in zip(files, schemas, strict=True):
        if schema in known:
            continue
        known[schema] = None
        for field in schema:
            kind = columns.get(field.name, field.type)
            if _widens(kind, field.type):
                columns[field.name] = field.type
                first.setdefault(field.name, path)
            elif not _widens(field.type, kind):
                raise SchemaMismatchError(
                    f"The column {field.name!r} is {kind} in {first[field.name]} and {field.type} in {path} of "
                    f"{source.storage.uri}; neither type holds the other's values."
                )
    _warn_of_widened(source, known, pa.schema(columns))
    for name in from_folders:
        columns.setdefault(name, pa.string())
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


def _widens(narrow: pa.DataType, wide: pa.DataType) -> bool:
    return can_promote(narrow, wide) and is_assignable(wide, narrow)


def _warn_of_widened(source: SourceFolder, stored: Iterable[pa.Schema], common: pa.Schema) -> None:
    """Warn of columns whose common type changes values of some files: numbers become text, or are rounded."""
    told: set[str] = set()
    for schema in stored:
        own = pa.schema([common.field(name) for name in schema.names])
        for one in schema_changes(schema, own, refuses_missing=False):
            if one.warning and one.column not in told:
                told.add(one.column)
                warn(
                    f"The column {one.column!r} is {one.before} in some files of {source.storage.uri} and {one.after} "
                    f"in others; it becomes {one.after} in the table: {one.warning}."
                )


def _stored_schema(storage: Storage, path: str) -> pa.Schema:
    with open_base_file(storage, path, f"{storage.uri}/{path}") as reader:
        schema = reader.schema
        leaves = [kind for _, kind in reader.leaves]
    meta = [name for name in schema.names if name.startswith(_META_PREFIX)]
    if meta:
        raise InvalidDataError(
            f"{storage.uri}/{path} has the columns {meta} of a Hudi table; read the table and write its rows instead."
        )
    stored = normalize_input_schema(schema)
    if _INT96 not in leaves:
        return stored
    left = iter(leaves)
    return pa.schema([field.with_type(_zoned(field.type, left)) for field in stored])


def _zoned(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """The type with a time zone for INT96 values, which are instants although the schema does not say so."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_zoned(field.type, leaves)) for field in kind])
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_zoned(kind.key_type, leaves))
        return pa.map_(key, kind.item_field.with_type(_zoned(kind.item_type, leaves)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, leaves)))
    return pa.timestamp("us", "UTC") if next(leaves) == _INT96 else kind
