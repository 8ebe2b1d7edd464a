"""Open base files of the data table. All code opens them through this module.

The returned reader has all columns of a row: a skeleton of a bootstrapped table is opened together with its source file
(:mod:`hudi_fast.formats.parquet.stitched_base`). The extension of a file gives its format, so that a table may have
files of several formats (``hoodie.table.multiple.base.file.formats.enable``).
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.formats.parquet.stitched_base import StitchedBaseFile
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, decode
from hudi_fast.storage.base import Storage
from hudi_fast.view.bootstrap_index import SourceFile, find_source
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.renamed_base import RenamedBase

__all__ = ["folder_values", "open_base", "open_file", "open_source"]


def open_base(storage: Storage, base: BaseFile) -> BaseFileReader:
    """Open a base file of a file group; its columns have their current names.

    Raises:
        CorruptTableError: the file is missing, truncated, or not of the format that its extension names.
        UnsupportedFeatureError: as :func:`open_file`.
    """
    stored = _open_as_stored(storage, base)
    return stored if base.names is None else RenamedBase(stored, base.names)


def _open_as_stored(storage: Storage, base: BaseFile) -> BaseFileReader:
    skeleton = open_file(storage, base.path, base.size)
    if not base.is_skeleton:
        return skeleton
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    found = base.source or find_source(storage, config, base.path.rpartition("/")[0], base.file_id)
    if found is None:  # an instant may have that time without a bootstrap
        return skeleton
    values = folder_values(found.source_partition, config.partition_fields)
    return StitchedBaseFile(skeleton, lambda: open_source(storage, found), values)


def open_file(storage: Storage, path: str, size: int | None = None) -> BaseFileReader:
    """Open a base file with its stored columns, without the source file of a skeleton.

    Args:
        storage: storage of the file.
        path: its path there; the extension names its format.
        size: its bytes, if known; saves a request to an object store.

    Raises:
        CorruptTableError: the file is missing, truncated, or not of that format.
        ConfigError: the package that reads Lance is not installed.
        UnsupportedFeatureError: the file uses a feature of its format that hudi_fast does not support.
    """
    extension = path.rpartition(".")[2]
    # Few tables need the other readers, and loading them slows the first read of a process.
    if extension == "orc":
        from hudi_fast.formats.orc.read import open_orc_file

        return open_orc_file(storage, path, size)
    if extension == "hfile":
        from hudi_fast.formats.hfile.base_file import open_hfile

        return open_hfile(storage, path, size)
    if extension == "lance":
        from hudi_fast.formats.lance.read import open_lance_file

        return open_lance_file(storage, path, size)
    return open_base_file(storage, path, size=size)


def open_source(storage: Storage, source: SourceFile) -> ParquetReader:
    """Open the source file of a skeleton.

    The options of ``storage`` apply to a file on the same kind of storage.

    Raises:
        CorruptTableError: the file is missing, has changed since the bootstrap, or is not Parquet.
    """
    folder, _, name = source.uri.rpartition("/")
    if name.endswith(".orc"):
        raise UnsupportedFeatureError(
            f"{storage.uri} was bootstrapped from ORC files ({source.uri}), which is not read."
        )
    place = Storage(folder or "/", storage.options if "://" in folder else None)
    found = place.stat(name)
    if found is None or (source.size and found.size != source.size):
        what = "is missing" if found is None else f"has {found.size} bytes, expected {source.size}"
        raise CorruptTableError(
            f"{storage.uri} was bootstrapped from {source.uri}, which {what}. Restore it. If its folder was moved, set "
            "hoodie.bootstrap.base.path in hoodie.properties.",
            f"{source.partition}/{source.file_id}",
        )
    return open_base_file(place, name, source.uri)


def folder_values(folder: str, fields: Sequence[str]) -> dict[str, str | None]:
    """Values of partition columns from the path of a source folder: ``name=value`` parts, or one part per column.

    ``folder`` is relative to the bootstrapped folder; ``fields`` are the table's partition columns.

    Returns:
        By column; None for null. Columns that are not in the path are left out.
    """
    parts = folder.split("/") if folder else []
    named = {name: decode(text) for name, equals, text in (part.partition("=") for part in parts) if equals}
    if len(named) < len(parts):
        named = dict(zip(fields, parts, strict=True)) if len(parts) == len(fields) and not named else {}
    return {name: None if named[name] == DEFAULT_PARTITION else named[name] for name in fields if name in named}
