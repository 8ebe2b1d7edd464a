"""Plan a bootstrap, and read the source folder that it names.

Plans a bootstrap from the folder and the options; nothing is written.

::

    options ─┬─► defaults from folder names: partition columns, hive style ─► WriteOptions
             └─► mode of each partition ─┬─ METADATA_ONLY ─► SourceFile each, with the id of its file group
    folder ────► columns ────────────────┴─ FULL_RECORD ───► files whose rows are written as by a bulk insert

A skeleton must be in the partition where later writes look up its rows: the partition path is compared with the path
that the key generator computes from the values in the folder's name.

The source folder of a bootstrap: its files by partition, and their common schema.

::

    folder ─► visible files ─► SourceFolder(partitions)
    footers of all files ─► columns by name, with widened types ─► columns of folder names
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.config.bootstrap_options import FULL_RECORD, HFILE_INDEX, METADATA_ONLY, BootstrapOptions
from hudi_fast.config.new_table import NewTable, new_table_properties
from hudi_fast.config.option_conflicts import new_table_from_options
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, decode, encode, hive_part, join, path_fault
from hudi_fast.schema.assignment import is_assignable
from hudi_fast.schema.cast import can_promote
from hudi_fast.schema.evolution import schema_changes
from hudi_fast.schema.normalize import normalize_input_schema
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import folder_values
from hudi_fast.view.bootstrap_index import SourceFile

__all__ = [
    "BootstrapPlan",
    "CopiedFile",
    "SourceFolder",
    "SourcePartition",
    "bootstrap_plan",
    "folder_schema",
    "list_source",
    "named_fields",
]

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
    warned: set[str] = set()
    for schema in stored:
        own = pa.schema([common.field(name) for name in schema.names])
        for one in schema_changes(schema, own, refuses_missing=False):
            if one.warning and one.column not in warned:
                warned.add(one.column)
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


_W = "hoodie.datasource.write."
_OPERATION = f"{_W}operation"
_KEY_GENERATOR = (f"{_W}keygenerator.class", f"{_W}keygenerator.type", "hoodie.table.keygenerator.type")
_HIVE_STYLE = f"{_W}hive_style_partitioning"
_PARTITION_FIELDS = f"{_W}partitionpath.field"
_STATISTICS = ("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable")
_IN_PATHS = frozenset({"SIMPLE", "COMPLEX"})
"""Key generators whose partition paths are the values of the partition columns."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file whose rows are copied.

    Attributes:
        path: relative to the folder.
        size: bytes.
        values: column values from the folder names, as text.
    """

    path: str
    size: int
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class BootstrapPlan:
    """A planned bootstrap.

    Attributes:
        source: the folder.
        write: write options and keys; its operation is ``bulk_insert``.
        properties: of the new table.
        schema: data columns of the table.
        skeletons: files that get a skeleton.
        copied: files whose rows are copied.
    """

    source: SourceFolder
    write: WriteOptions
    properties: Mapping[str, str]
    schema: pa.Schema
    skeletons: tuple[SourceFile, ...]
    copied: tuple[CopiedFile, ...]


def bootstrap_plan(source: Storage, options: Mapping[str, Any], path: str) -> BootstrapPlan:
    """Plan a bootstrap.

    Args:
        source: rooted at the folder of Parquet files.
        options: ``hoodie.*`` keys of the table and of the bootstrap.
        path: base path of the table.

    Raises:
        ConfigError: wrong options, a folder without Parquet files, or partition paths that differ from the paths of the
            table's key generator.
        SchemaMismatchError: the files' columns are incompatible.
        InvalidDataError: columns of the key, the partition path or the ordering are missing.
        UnsupportedFeatureError: another format, a type that a table cannot have, an unsupported option.
    """
    how = BootstrapOptions.from_options({**options, _OPERATION: "bulk_insert"})
    if how.base_path is not None and Storage(how.base_path, source.options).uri != source.uri:
        raise ConfigError(f"hoodie.bootstrap.base.path={how.base_path!r} differs from the source folder, {source.uri}.")
    here = source.stat("")
    if here is not None and not here.is_dir:
        raise ConfigError(f"{source.uri} is a file; give the folder that contains it.")
    folder = list_source(source)
    write = WriteOptions.from_options(_completed(options, how, folder))
    spec = replace(new_table_from_options(write, path), drop_partition_columns=False)
    _check_options(write, spec)
    modes = {one.folder: how.mode_of(one.folder) for one in folder.partitions}
    known = {one.folder: folder_values(one.folder, spec.partition_fields) for one in folder.partitions}
    from_folders = [name for name in spec.partition_fields if all(name in values for values in known.values())]
    schema = folder_schema(folder, from_folders)
    _check_columns(schema, spec, source)
    kept = [one for one in folder.partitions if modes[one.folder] == METADATA_ONLY]
    return BootstrapPlan(
        folder,
        write,
        _properties(spec, source),
        schema,
        tuple(found for one in kept for found in _skeletons(folder, one, spec, how)),
        tuple(
            CopiedFile(file.path, file.size, known[one.folder])
            for one in folder.partitions
            if modes[one.folder] == FULL_RECORD
            for file in one.files
        ),
    )


def _completed(options: Mapping[str, Any], how: BootstrapOptions, folder: SourceFolder) -> dict[str, Any]:
    """Complete the options: partition columns and hive style from the folder names."""
    given = {**options, _OPERATION: "bulk_insert"}
    if not any(key in given for key in _KEY_GENERATOR):
        chosen = {f"{_W}keygenerator.class": how.keygen_class, f"{_W}keygenerator.type": how.keygen_type}
        given |= {key: value for key, value in chosen.items() if value is not None}
    names = named_fields(folder.partitions)
    stated = WriteOptions.from_options(given)
    if names and stated.keys.partition_path_fields is None and stated.keys.generator is None:
        given[_PARTITION_FIELDS] = ",".join(names)
    if names and _HIVE_STYLE not in given:
        given[_HIVE_STYLE] = True
    for key in _STATISTICS:  # Apache Hudi refuses a bootstrap with them; the next write builds enabled indexes
        given.setdefault(key, False)
    return given


def _check_options(write: WriteOptions, spec: NewTable) -> None:
    if not write.table.populate_meta_fields:
        raise ConfigError("A bootstrap stores meta columns; leave hoodie.populate.meta.fields=false out.")
    if "BUCKET" in write.index.type:
        raise UnsupportedFeatureError(
            "A bootstrap with hoodie.index.type=BUCKET is not supported: files of a folder are not buckets."
        )
    if spec.base_file_format != "PARQUET" or spec.has_several_formats:
        raise UnsupportedFeatureError(
            f"A bootstrap of a table with base files in {spec.base_file_format} is not supported; write the rows of "
            "the folder into the table instead."
        )
    if spec.cdc_enabled:
        raise UnsupportedFeatureError("A bootstrap of a table with hoodie.table.cdc.enabled is not supported.")


def _check_columns(schema: pa.Schema, spec: NewTable, source: Storage) -> None:
    for role, names in (
        ("record key", spec.record_key_fields),
        ("partition path", spec.partition_fields),
        ("ordering", spec.ordering_fields),
    ):
        missing = [name for name in names if name.split(".")[0] not in schema.names]
        if missing:
            raise InvalidDataError(
                f"The {role} field(s) {missing} are neither columns of the files below {source.uri} nor given by the "
                f"names of all its folders; there are {schema.names}."
            )


def _properties(spec: NewTable, source: Storage) -> dict[str, str]:
    """Table properties of a bootstrapped table; they also locate its data for Hudi."""
    by_type = spec.version >= 8
    index = {"hoodie.bootstrap.index.type": "HFILE"} if by_type else {"hoodie.bootstrap.index.class": HFILE_INDEX}
    return {**new_table_properties(spec), "hoodie.bootstrap.base.path": source.uri, **index}


def _skeletons(
    folder: SourceFolder, one: SourcePartition, spec: NewTable, how: BootstrapOptions
) -> Iterator[SourceFile]:
    partition = join(map(decode, one.folder.split("/"))) if how.decodes_paths else one.folder
    _check_place(folder, one, spec, partition)
    for file in one.files:
        uri = folder.storage.absolute(file.path)
        yield SourceFile(partition, str(uuid.uuid4()), one.folder, uri, file.size, file.modified_ms)


def _check_place(folder: SourceFolder, one: SourcePartition, spec: NewTable, partition: str) -> None:
    where = f"The folder {one.folder!r} of {folder.storage.uri}"
    fault = path_fault(partition)
    if fault is not None:
        raise InvalidDataError(f"{where} cannot be a partition of a table: its path {fault}.")
    depth = len(partition.split("/")) if partition else 0
    if (
        depth != len(spec.partition_fields)
        and not spec.slash_separated_dates
        and spec.key_generator
        in (
            *_IN_PATHS,
            "NON_PARTITION",
            None,
        )
    ):
        raise ConfigError(
            f"{where} has {depth} level(s), and the table has the partition fields {list(spec.partition_fields)}. Name "
            f"one for each level ({_PARTITION_FIELDS}), or copy the rows: hoodie.bootstrap.mode.selector="
            "FullRecordBootstrapModeSelector."
        )
    values = folder_values(one.folder, spec.partition_fields)
    if spec.key_generator not in _IN_PATHS or spec.slash_separated_dates:
        return
    unknown = [name for name in spec.partition_fields if name not in values]
    if unknown:
        raise ConfigError(
            f"{where} does not say what the partition field(s) {unknown} are in its rows. Name the columns of its path "
            f"({_PARTITION_FIELDS}), or copy the rows: hoodie.bootstrap.mode.selector="
            "FullRecordBootstrapModeSelector."
        )
    parts = [_part(spec, name, values[name]) for name in spec.partition_fields]
    if join(parts) != partition:
        raise ConfigError(
            f"{where} would be the partition {partition!r}, and later writes would put its rows into "
            f"{join(parts)!r}. Set {_HIVE_STYLE} and {_W}partitionpath.urlencode as the folder's names are, or copy "
            "the rows: hoodie.bootstrap.mode.selector=FullRecordBootstrapModeSelector."
        )


def _part(spec: NewTable, name: str, value: str | None) -> str:
    text = DEFAULT_PARTITION if value is None else encode(value) if spec.url_encode else value
    return hive_part(name, text) if spec.hive_style else text
