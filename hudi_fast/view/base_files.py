"""Open base files of the data table, with current names of their columns.

Open base files of the data table. All code opens them through this module.

The returned reader has all columns of a row: a skeleton of a bootstrapped table is opened together with its source file
(:mod:`hudi_fast.formats.parquet.stitched_base`). The extension of a file gives its format, so that a table may have
files of several formats (``hoodie.table.multiple.base.file.formats.enable``).

Its reader has the columns under their current names, without dropped ones, and in their current types; the footer is as
stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.formats.parquet.stitched_base import StitchedBaseFile
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, decode
from hudi_fast.schema.conform import ConformPlan
from hudi_fast.schema.history import Renames, renamed_plan
from hudi_fast.storage.base import Storage
from hudi_fast.values import cached_property
from hudi_fast.view.bootstrap_index import SourceFile, find_source
from hudi_fast.view.file_names import BaseFile

__all__ = ["RenamedBase", "folder_values", "open_base", "open_file", "open_source"]


class RenamedBase(BaseFileReader):
    """An open base file that is older than an ALTER."""

    def __init__(self, stored: BaseFileReader, names: Renames) -> None:
        self.path = stored.path
        self._stored = stored
        self._plan = renamed_plan(stored.schema, names)
        self._positions = {name: at for at, name in enumerate(self._plan.target.names)}

    @property
    def schema(self) -> pa.Schema:
        """Its columns under their current names."""
        return self._plan.target

    @property
    def num_rows(self) -> int:
        """Its rows."""
        return self._stored.num_rows

    @property
    def num_row_groups(self) -> int:
        """Its row groups."""
        return self._stored.num_row_groups

    @property
    def metadata(self) -> pq.FileMetaData | None:
        """The footer of a Parquet file, with stored names."""
        return self._stored.metadata

    @property
    def location(self) -> tuple[Storage, str]:
        """The file as stored, with former column names."""
        return self._stored.location

    @cached_property
    def only_renamed(self) -> frozenset[str]:
        """Columns whose values are used as stored, under any name."""
        columns = zip(self.schema.names, self._plan.columns, strict=True)
        return frozenset(name for name, column in columns if column.convert is None)

    @cached_property
    def as_stored(self) -> frozenset[str]:
        """Columns with the file's own name and type."""
        stored = self._stored.schema.names
        places = {name: self._plan.columns[at].position for name, at in self._positions.items()}
        return frozenset(name for name in self.only_renamed if stored[places[name]] == name)

    @property
    def stored_bytes(self) -> int:
        """Approximate bytes of all stored rows before compression."""
        return self._stored.stored_bytes

    @property
    def has_labels(self) -> bool:
        """Whether timestamps are numbers beside a label."""
        return self._stored.has_labels

    def footer(self) -> BaseFileFooter:
        """Hudi's footer keys."""
        return self._stored.footer()

    @property
    def has_nan_safe_bounds(self) -> bool:
        """Whether bounds in the footer cover NaN values too."""
        return self._stored.has_nan_safe_bounds

    def text_bounds(self, column: str) -> list[tuple[bytes, bytes] | None]:
        """Bounds of a text column that is stored under its current name; unknown for others."""
        return self._stored.text_bounds(column) if column in self.as_stored else super().text_bounds(column)

    def row_group_rows(self) -> list[int]:
        """Number of rows of each row group."""
        return self._stored.row_group_rows()

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of all rows, or of the rows in some row groups."""
        plan = self._part(columns)
        return plan.apply(self._stored.read(plan.source.names, row_groups))

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        plan = self._part(columns)
        for batch in self._stored.batches(plan.source.names, batch_rows, row_groups):
            yield plan.apply(batch)

    def close(self) -> None:
        """Close the file."""
        self._stored.close()

    def _part(self, names: Sequence[str]) -> ConformPlan:
        """The plan for some columns; its source has them in that order, as stored."""
        plan = self._plan
        chosen = [plan.columns[self._positions[name]] for name in names]
        source = pa.schema([plan.source.field(column.position) for column in chosen])
        target = pa.schema([plan.target.field(self._positions[name]) for name in names])
        return ConformPlan(source, target, tuple(replace(one, position=at) for at, one in enumerate(chosen)))


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
        from hudi_fast.formats.lance.base_file import open_lance_file

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
