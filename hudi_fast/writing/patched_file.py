"""Writes the next version of a base file from bytes of the old one where they stay the same.

::

    changes ─► kept_parts ─► KeptParts, or None: an OutputFile encodes all of it

    row groups without changes ─────────────── bytes of the old file ─┐
    row groups with updates   ─ kept columns ─ bytes of the old file ─┤
                              └ other columns ─ encoded in memory ────┼─► PatchedFile: row groups in their order,
    other row groups, new rows ──────────────── encoded in memory ────┘                one footer

An updated row keeps its record key and the columns that follow from it, which are often half of the bytes, and in a DML
statement all columns that it does not set. These are neither decoded nor encoded, unless rows of the row group are
deleted. The file name, a column of every row, is written anew (:mod:`hudi_fast.formats.parquet.copy`).

Small row groups are encoded again with their neighbours, so that a file does not fall into ever smaller ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import OPERATION_FIELD
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader
from hudi_fast.formats.logical_types import stored_schema
from hudi_fast.formats.parquet.base_file import (
    NAN_SAFE_BOUNDS,
    ROW_GROUP_MEMORY,
    ParquetSettings,
    RowGroupWriter,
    footer_pairs,
    open_base_file,
)
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, ranges_of_file
from hudi_fast.formats.parquet.copy import JoinedFile, SourceChunk, join_obstacle
from hudi_fast.formats.parquet.encryption import writes_encrypted
from hudi_fast.formats.parquet.footer import ParquetFooter, RowGroup, parse_footer, read_footer
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.merging.base_merge import BaseRowUpdates
from hudi_fast.merging.rules import kept_columns
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import BaseFile, base_file_name
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.output_file import FILE_NAME, KeyFooter, OutputFile, dictionary_of, writer_schema
from hudi_fast.writing.write_plan import FileGroupWork, FilePlan

__all__ = ["EncodedRun", "Kept", "KeptParts", "NextVersion", "PatchedFile", "kept_parts", "next_version"]

_PATCH_BYTES = 64 << 20
"""Nothing is copied if other row groups and new rows, which are held in memory, have more encoded bytes."""

_LEAST_SHARE = 8
"""Bytes are copied if they are at least this share, as a divisor, of the file's bytes."""

_LEAST_GROUP, _LARGEST_GROUP = 512 << 10, 2 * ROW_GROUP_MEMORY
"""Columns of a row group are copied if its size before compression is between these bounds, in bytes. A smaller row
group is encoded faster than it is joined. A larger one would take too much memory while its other columns are encoded.
"""

_SMALL_SHARE = 16
"""A row group below this share, as a divisor, of a full one is encoded again."""

_CACHED_FOOTERS = 16
_TAIL = 8
"""Bytes after a footer: its length, and the magic."""

_CODECS = {"NONE": ("UNCOMPRESSED",), "LZ4": ("LZ4", "LZ4_RAW"), "LZ4_RAW": ("LZ4", "LZ4_RAW")}
"""Codecs whose names in footers differ from their names in the settings."""


class Kept(IntEnum):
    """The copied part of a row group."""

    NOTHING = 0
    COLUMNS = 1
    ALL = 2


class EncodedRun(NamedTuple):
    """Consecutive row groups of the old file whose rows are written next.

    Attributes:
        groups: their numbers.
        copied: columns that are copied, so that the written rows lack them.
    """

    groups: range
    copied: frozenset[str] = frozenset()

    def left(self, schema: pa.Schema) -> pa.Schema:
        """A schema without the copied columns."""
        return pa.schema([field for field in schema if field.name not in self.copied])


@dataclass(frozen=True)
class KeptParts:
    """The parts of a file that its next version copies.

    Attributes:
        base: the old file.
        footer: its footer.
        keys: Hudi's keys in its footer.
        has_nan_safe_bounds: whether its bounds cover all values.
        kept: the copied part of each row group of the old file.
        columns: copied columns of row groups that are copied in part.
    """

    base: BaseFile
    footer: ParquetFooter
    keys: BaseFileFooter
    has_nan_safe_bounds: bool
    kept: tuple[Kept, ...]
    columns: frozenset[str]


def kept_parts(
    plan: FilePlan,
    base: BaseFile,
    reader: BaseFileReader,
    keys: BaseFileFooter,
    changes: BaseRowUpdates,
    appended: int,
    unset: frozenset[str] | None,
) -> KeptParts | None:
    """The parts that the next version of a base file can copy; None if encoding all of it is better, or needed.

    Args:
        plan: the write.
        base: the old file.
        reader: it, open.
        keys: Hudi's keys in its footer.
        changes: its changed rows.
        appended: number of rows that are appended: the last row group is encoded with them unless it is full.
        unset: columns whose values updated rows keep, besides keys; None if the written rows must have all columns.
    """
    if reader.metadata is None or plan.files.other is not None:
        return None
    if base.names is not None or len(reader.parts) > 1 or not reader.num_rows or writes_encrypted(plan.storage):
        return None
    stored = plan.config.populate_meta_fields
    columns: frozenset[str] = frozenset()
    if stored and unset is not None:
        columns = unset | kept_columns(plan.config, plan.file_schema)
    kept = _kept(plan.files.parquet, reader.metadata, changes, appended, columns)
    file_schema = stored_schema(plan.file_schema)
    if kept is None or reader.schema != file_schema:
        return None
    lacks_filter = plan.files.bloom.enabled and keys.bloom_filter is None
    if stored and (lacks_filter or keys.min_key is None or keys.max_key is None):
        return None
    footer = read_footer(plan.storage, base.path, base.size)
    leaves = list(leaf_columns(file_schema))
    if len(footer.groups) != len(kept) or [chunk.column for chunk in footer.groups[0].chunks] != leaves:
        return None
    if join_obstacle([footer, _footer_of_nothing(writer_schema(plan), plan.files.parquet)]):
        return None
    return KeptParts(base, footer, keys, reader.has_nan_safe_bounds, kept, columns)


class NextVersion(NamedTuple):
    """The writer of a base file's next version.

    Attributes:
        file: the writer.
        encoded: the rows of the old file that are written next, in order; while it is iterated, the writer copies the
            others.
        copied: number of row groups that are copied as a whole.
    """

    file: OutputFile | PatchedFile
    encoded: Iterable[EncodedRun]
    copied: int


def next_version(
    plan: FilePlan,
    work: FileGroupWork,
    base: BaseFile,
    reader: BaseFileReader,
    changes: BaseRowUpdates,
    appended: int,
    unset: frozenset[str] | None,
) -> NextVersion:
    """Open the writer of a base file's next version: a :class:`PatchedFile` if parts of the old one can be copied.

    Args:
        plan: the write.
        work: the file group.
        base: the old file.
        reader: it, open.
        changes: its changed rows.
        appended: number of rows that are appended after the rows of the old file.
        unset: columns whose values updated rows keep, besides keys; None if the written rows must have all columns.

    Raises:
        CorruptTableError: the old file's bloom filter is corrupt.
        UnsupportedFeatureError: the old file has the column ``_hoodie_operation``, and the new one would not.
    """
    if reader.has(OPERATION_FIELD) and OPERATION_FIELD not in plan.file_schema.names:
        raise UnsupportedFeatureError(
            f"Rows of {base.path} in {plan.storage.uri} have the column {OPERATION_FIELD}, which a new version of the "
            "file would lose. Set hoodie.allow.operation.metadata.field=true."
        )
    keys = reader.footer()
    footer = KeyFooter.for_rewritten_file(plan, keys, base.path)
    kept = kept_parts(plan, base, reader, keys, changes, appended, unset)
    if kept is None:
        every = [EncodedRun(range(reader.num_row_groups))]
        return NextVersion(OutputFile(plan, work, work.file_id, "MERGE", footer), every, 0)
    patched = PatchedFile(plan, work, footer, kept)
    return NextVersion(patched, patched.encoded_runs(), kept.kept.count(Kept.ALL))


class PatchedFile:
    """Writer of a base file with bytes of its predecessor; used like an :class:`OutputFile`.

    Args:
        plan: the write.
        work: the file group.
        footer: collects the key metadata of the footer.
        kept: the parts to copy.
    """

    def __init__(self, plan: FilePlan, work: FileGroupWork, footer: KeyFooter, kept: KeptParts) -> None:
        self.name = base_file_name(work.file_id, str(work.token), plan.instant)
        self.path = f"{work.partition}/{self.name}" if work.partition else self.name
        self.rows = 0
        self.footer = footer
        self.ranges: ColumnRanges | None = None
        self._plan, self._kept = plan, kept
        self._schema = writer_schema(plan)
        self._patch: _Patch | None = None
        self._dictionaries: dict[tuple[str, ...], list[str]] = {}  # by the columns of the rows
        create_marker(plan.storage, plan.instant, self.path, "MERGE")
        if plan.config.populate_meta_fields:
            footer.carry(pa.chunked_array([[kept.keys.min_key, kept.keys.max_key]], pa.string()))
        constants = {FILE_NAME: self.name} if plan.config.populate_meta_fields else {}
        self._old = plan.storage.open_input(kept.base.path, kept.base.size)
        sources = [kept.footer, _footer_of_nothing(self._schema, plan.files.parquet)]
        self._joined = JoinedFile(plan.storage, self.path, sources, constants)

    def write(self, table: pa.Table) -> None:
        """Append rows in the writer's schema, without the columns that the current run copies."""
        if self._patch is None:
            names = tuple(table.column_names)
            if names not in self._dictionaries:
                self._dictionaries[names] = dictionary_of(table)
            is_one_group = len(names) < len(self._schema)
            self._patch = _Patch(table.schema, self._plan.files.parquet, self._dictionaries[names], is_one_group)
        self._patch.write(table)
        self.rows += table.num_rows

    def encoded_runs(self) -> Iterator[EncodedRun]:
        """The runs to write, in order; the row groups between them are copied."""
        for kept, run in groupby(enumerate(self._kept.kept), key=lambda one: one[1]):
            numbers = [number for number, _ in run]
            if kept is Kept.NOTHING:  # the rows that follow the last row group join it
                yield EncodedRun(range(numbers[0], numbers[-1] + 1))
                continue
            self._copy_patch()
            for number in numbers:
                group = self._kept.footer.groups[number]
                if kept is Kept.ALL:
                    self._joined.copy(self._old, self._kept.footer, group)
                    self.rows += group.rows
                else:
                    yield EncodedRun(range(number, number + 1), self._kept.columns)
                    self._copy_with_columns(group)

    def close(self) -> int:
        """Finish the file; returns its length in bytes and sets :attr:`ranges`."""
        plan = self._plan
        self._copy_patch()
        pairs = [NAN_SAFE_BOUNDS] if self._kept.has_nan_safe_bounds else []
        size = self._joined.close({**footer_pairs(plan.avro_schema, self.footer.finish()), **dict(pairs)})
        self._old.close()
        if plan.files.stats_columns:
            with open_base_file(plan.storage, self.path, size=size) as made:
                self.ranges = ranges_of_file(made, plan.files.stats_columns)
        return size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            return
        if self._patch is not None:
            self._patch.abandon()
        try:
            self._old.close()
        finally:
            self._joined.abort()

    def _copy_patch(self) -> None:
        """Append the row groups of the rows that were written."""
        if self._patch is None:
            return
        content, footer = self._patch.end()
        self._patch = None
        with pa.BufferReader(content) as source:
            for group in footer.groups:
                self._joined.copy(source, footer, group)

    def _copy_with_columns(self, old: RowGroup) -> None:
        """Append a row group: some columns from the old file, the others from the rows that were written."""
        assert self._patch is not None
        content, footer = self._patch.end()
        self._patch = None
        (made,) = footer.groups
        assert made.rows == old.rows, (made.rows, old.rows)
        encoded = {chunk.column: chunk for chunk in made.chunks}
        with pa.BufferReader(content) as source:
            chunks = [
                SourceChunk(source, footer.path, encoded[chunk.column])
                if chunk.column in encoded
                else SourceChunk(self._old, self._kept.footer.path, chunk)
                for chunk in old.chunks
            ]
            self._joined.append(made, chunks)


# ---- internals


class _Patch:
    """Encodes rows in memory as a Parquet file of their own.

    Args:
        schema: of the rows.
        settings: encoding.
        dictionary: columns to dictionary-encode.
        is_one_group: whether all rows become one row group.
    """

    def __init__(
        self, schema: pa.Schema, settings: ParquetSettings, dictionary: Sequence[str], is_one_group: bool
    ) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = RowGroupWriter(self._sink, schema, settings, dictionary, sys.maxsize if is_one_group else None)

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._writer.write(table)

    def end(self) -> tuple[pa.Buffer, ParquetFooter]:
        """The file, and its footer."""
        self._writer.end({})
        content = self._sink.getvalue()
        return content, _footer_of(content)

    def abandon(self) -> None:
        """Discard the rows."""
        self._writer.abandon()


def _kept(
    settings: ParquetSettings,
    metadata: pq.FileMetaData,
    changes: BaseRowUpdates,
    appended: int,
    columns: frozenset[str],
) -> tuple[Kept, ...] | None:
    """The copied part of each row group; None if that is too little."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ends = np.cumsum([0, *(group.num_rows for group in groups)])
    replaced, dropped = (np.diff(np.searchsorted(rows, ends)) for rows in (changes.replaced, changes.dropped))
    kept = tuple(
        Kept.NOTHING
        if group.num_rows == 0 or group.total_byte_size < least or gone or not _has_codec(group, settings)
        else Kept.ALL
        if not updated
        else Kept.COLUMNS
        if columns and _LEAST_GROUP <= group.total_byte_size <= _LARGEST_GROUP
        else Kept.NOTHING
        for group, least, updated, gone in zip(
            groups, _least_bytes(settings, groups, appended), replaced, dropped, strict=True
        )
    )
    copied = sum(_copied_bytes(group, part, columns) for group, part in zip(groups, kept, strict=True))
    size = sum(_copied_bytes(group, Kept.ALL, columns) for group in groups)
    again = [group for group, part in zip(groups, kept, strict=True) if part is Kept.NOTHING]
    encoded = sum(_copied_bytes(group, Kept.ALL, columns) for group in again)
    patch = encoded + appended * size / max(1, metadata.num_rows)
    return kept if copied and copied * _LEAST_SHARE >= size and patch <= _PATCH_BYTES else None


def _least_bytes(settings: ParquetSettings, groups: Sequence[pq.RowGroupMetaData], appended: int) -> list[float]:
    """Minimum size of a copied row group, in bytes before compression: more for the last one, if rows follow it."""
    if len(groups) == 1:
        return [settings.row_group_bytes / 2 if appended else 0]
    full = min(settings.row_group_bytes, max(group.total_byte_size for group in groups))
    return [full / _SMALL_SHARE] * (len(groups) - 1) + [full / (2 if appended else _SMALL_SHARE)]


def _copied_bytes(group: pq.RowGroupMetaData, kept: Kept, columns: frozenset[str]) -> int:
    """Stored bytes of a row group that are copied."""
    if kept is Kept.NOTHING:
        return 0
    chunks = (group.column(number) for number in range(group.num_columns))
    copied = (one for one in chunks if kept is Kept.ALL or one.path_in_schema.partition(".")[0] in columns)
    return sum(one.total_compressed_size for one in copied)


def _has_codec(group: pq.RowGroupMetaData, settings: ParquetSettings) -> bool:
    """Whether a row group has the codec of the write; the last column is one of the user's."""
    name = settings.codec.upper()
    found: str = group.column(group.num_columns - 1).compression
    return found in _CODECS.get(name, (name,))


@lru_cache(_CACHED_FOOTERS)
def _footer_of_nothing(schema: pa.Schema, settings: ParquetSettings) -> ParquetFooter:
    """The footer of a file without rows."""
    sink = pa.BufferOutputStream()
    RowGroupWriter(sink, schema, settings, []).end({})
    return _footer_of(sink.getvalue())


def _footer_of(content: pa.Buffer) -> ParquetFooter:
    """The footer of a Parquet file in memory."""
    end = content.size - _TAIL
    length = int.from_bytes(content[end : end + 4].to_pybytes(), "little")
    return parse_footer(content[end - length : end].to_pybytes(), end - length, "memory")
