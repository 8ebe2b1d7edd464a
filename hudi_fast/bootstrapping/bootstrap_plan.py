"""Plans a bootstrap from the folder and the options; nothing is written.

::

    options ─┬─► defaults from folder names: partition columns, hive style ─► WriteOptions
             └─► mode of each partition ─┬─ METADATA_ONLY ─► SourceFile each, with the id of its file group
    folder ────► columns ────────────────┴─ FULL_RECORD ───► files whose rows are written as by a bulk insert

A skeleton must be in the partition where later writes look up its rows: the partition path is compared with the path
that the key generator computes from the values in the folder's name.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_fast.bootstrapping.source import SourceFolder, SourcePartition, folder_schema, list_source, named_fields
from hudi_fast.config.bootstrap_options import FULL_RECORD, HFILE_INDEX, METADATA_ONLY, BootstrapOptions
from hudi_fast.config.new_table import NewTable, new_table_properties
from hudi_fast.config.option_conflicts import new_table_from_options
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, decode, encode, hive_part, join, path_fault
from hudi_fast.storage.base import Storage
from hudi_fast.view.base_files import folder_values
from hudi_fast.view.bootstrap_index import SourceFile

__all__ = ["BootstrapPlan", "CopiedFile", "bootstrap_plan"]

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
