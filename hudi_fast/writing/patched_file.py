"""Writes the next version of a base file whose changes are in few row groups: the others are copied as bytes.

::

    changes ─► kept_row_groups ─► KeptRowGroups, or None: an OutputFile encodes all of them

    row groups of the old file, as bytes ─┐
    changed and new rows ── write ────────┴─► PatchedFile: row groups in their order, one footer

Changed rows are encoded in memory first, as row groups of a Parquet file of their own, and then copied like those of
the old file. The file name, a column of every row, is written anew (:mod:`hudi_fast.formats.parquet.copy`).

Small row groups are encoded again with their neighbours, so that a file does not fall into ever smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.formats.parquet.base_file import (
    NAN_SAFE_BOUNDS,
    BaseFileFooter,
    BaseFileReader,
    ParquetSettings,
    RowGroupWriter,
    footer_pairs,
    open_base_file,
)
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, ranges_of_file
from hudi_fast.formats.parquet.copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.formats.parquet.row_groups import ParquetFooter, RowGroup, parse_footer, read_footer
from hudi_fast.merging.matched_rows import BaseRowUpdates
from hudi_fast.view.file_names import BaseFile, base_file_name
from hudi_fast.writing.file_columns import FILE_NAME, writer_schema
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.output_file import OutputFile, dictionary_of
from hudi_fast.writing.plan import FileGroupWork, FilePlan

__all__ = ["KeptRowGroups", "NextVersion", "PatchedFile", "kept_row_groups", "next_version"]

_PATCH_BYTES = 64 << 20
"""Encoded bytes of changed row groups and new rows, which are in memory, up to which others are copied."""

_LEAST_SHARE = 8
"""Row groups are copied if they have at least this share, as a divisor, of the file's bytes."""

_SMALL_SHARE = 16
"""A row group below this share, as a divisor, of a full one is encoded again."""

_TAIL = 8
"""Bytes after a footer: its length, and the magic."""

_CODECS = {"NONE": ("UNCOMPRESSED",), "LZ4": ("LZ4", "LZ4_RAW"), "LZ4_RAW": ("LZ4", "LZ4_RAW")}
"""Names of codecs in footers that differ from those of the settings."""


@dataclass(frozen=True)
class KeptRowGroups:
    """Row groups that the next version of a file copies.

    Attributes:
        base: the old file.
        footer: its footer.
        keys: Hudi's keys in its footer.
        has_nan_safe_bounds: whether its bounds cover all values.
        copied: for each row group of the old file, whether it is copied.
    """

    base: BaseFile
    footer: ParquetFooter
    keys: BaseFileFooter
    has_nan_safe_bounds: bool
    copied: tuple[bool, ...]


def kept_row_groups(
    plan: FilePlan,
    base: BaseFile,
    reader: BaseFileReader,
    keys: BaseFileFooter,
    changes: BaseRowUpdates,
    appended: int,
) -> KeptRowGroups | None:
    """The row groups that the next version of a base file can copy; None if encoding all of them is better, or needed.

    Args:
        plan: the write.
        base: the old file.
        reader: it, open.
        keys: Hudi's keys in its footer.
        changes: its changed rows.
        appended: number of rows that are appended: the last row group is encoded with them unless it is full.
    """
    if base.names is not None or len(reader.parts) > 1 or reader.num_row_groups < 2:
        return None
    copied = _unchanged(plan.files.parquet, reader, changes, appended)
    if copied is None or reader.schema != plan.file_schema:
        return None
    stored = plan.config.populate_meta_fields
    lacks_filter = plan.files.bloom.enabled and keys.bloom_filter is None
    if stored and (lacks_filter or keys.min_key is None or keys.max_key is None):
        return None
    footer = read_footer(plan.storage, base.path, base.size)
    leaves = list(leaf_columns(plan.file_schema))
    if len(footer.groups) != len(copied) or [chunk.column for chunk in footer.groups[0].chunks] != leaves:
        return None
    if join_obstacle([footer, _footer_of_nothing(plan)]):
        return None
    return KeptRowGroups(base, footer, keys, reader.has_nan_safe_bounds, copied)


class NextVersion(NamedTuple):
    """The writer of a base file's next version.

    Attributes:
        file: the writer.
        encoded: consecutive row groups of the old file whose rows are written next, in order; while it is iterated,
            the writer copies the others.
        copied: number of copied row groups.
    """

    file: OutputFile | PatchedFile
    encoded: Iterable[range]
    copied: int


def next_version(
    plan: FilePlan,
    work: FileGroupWork,
    base: BaseFile,
    reader: BaseFileReader,
    changes: BaseRowUpdates,
    appended: int,
) -> NextVersion:
    """Open the writer of a base file's next version: a :class:`PatchedFile` if row groups can be copied.

    Args:
        plan: the write.
        work: the file group.
        base: the old file.
        reader: it, open.
        changes: its changed rows.
        appended: number of rows that are appended after those of the old file.

    Raises:
        CorruptTableError: the old file's bloom filter is corrupt.
    """
    keys = reader.footer()
    footer = KeyFooter.for_rewritten_file(plan, keys, base.path)
    kept = kept_row_groups(plan, base, reader, keys, changes, appended)
    if kept is None:
        every = [range(reader.num_row_groups)]
        return NextVersion(OutputFile(plan, work, work.file_id, "MERGE", footer), every, 0)
    patched = PatchedFile(plan, work, footer, kept)
    return NextVersion(patched, patched.encoded_runs(), sum(kept.copied))


class PatchedFile:
    """Writer of a base file with row groups of its predecessor; used like an :class:`OutputFile`.

    Args:
        plan: the write.
        work: the file group.
        footer: collects the key metadata of the footer.
        kept: what is copied.
    """

    def __init__(self, plan: FilePlan, work: FileGroupWork, footer: KeyFooter, kept: KeptRowGroups) -> None:
        self.name = base_file_name(work.file_id, str(work.token), plan.instant)
        self.path = f"{work.partition}/{self.name}" if work.partition else self.name
        self.rows = 0
        self.footer = footer
        self.ranges: ColumnRanges | None = None
        self._plan, self._kept = plan, kept
        self._sink = pa.BufferOutputStream()
        self._patch: RowGroupWriter | None = None
        self._order: list[RowGroup | None] = []  # None: the next row group of the patch
        create_marker(plan.storage, plan.instant, self.path, "MERGE")
        if plan.config.populate_meta_fields:
            footer.carry(pa.chunked_array([[kept.keys.min_key, kept.keys.max_key]], pa.string()))

    def write(self, table: pa.Table) -> None:
        """Append rows in the writer's schema."""
        if self._patch is None:
            self._patch = self._open(table)
        self._patch.write(table)
        self.rows += table.num_rows

    def encoded_runs(self) -> Iterator[range]:
        """Consecutive row groups of the old file whose rows are to be written next; others are appended as they are."""
        for copied, numbers in groupby(range(len(self._kept.copied)), key=self._kept.copied.__getitem__):
            run = list(numbers)
            if not copied:
                yield range(run[0], run[-1] + 1)
                continue
            self._end_row_group()
            groups = [self._kept.footer.groups[number] for number in run]
            self._order += groups
            self.rows += sum(group.rows for group in groups)

    def close(self) -> int:
        """Finish the file; returns its length in bytes and sets :attr:`ranges`."""
        plan = self._plan
        constants = {FILE_NAME: self.name} if plan.config.populate_meta_fields else {}
        if self._patch is None:
            self._patch = self._open(writer_schema(plan).empty_table())
        self._end_row_group()
        self._patch.end({})
        content = self._sink.getvalue()
        patch = _footer_of(content)
        with JoinedFile(plan.storage, self.path, [self._kept.footer, patch], constants) as joined:
            self._copy_all(joined, content, patch)
            pairs = [NAN_SAFE_BOUNDS] if self._kept.has_nan_safe_bounds else []
            size = joined.close({**footer_pairs(plan.avro_schema, self.footer.finish()), **dict(pairs)})
        if plan.files.stats_columns:
            with open_base_file(plan.storage, self.path, size=size) as made:
                self.ranges = ranges_of_file(made, plan.files.stats_columns)
        return size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None and self._patch is not None:
            self._patch.abandon()

    def _open(self, sample: pa.Table) -> RowGroupWriter:
        plan = self._plan
        return RowGroupWriter(self._sink, writer_schema(plan), plan.files.parquet, dictionary_of(sample))

    def _end_row_group(self) -> None:
        """Encode the rows that wait, and note where the new row groups belong."""
        if self._patch is not None:
            self._patch.flush()
            known = sum(group is None for group in self._order)
            self._order += [None] * (self._patch.row_groups - known)

    def _copy_all(self, joined: JoinedFile, content: pa.Buffer, patch: ParquetFooter) -> None:
        kept, changed = self._kept, iter(patch.groups)
        with self._plan.storage.open_input(kept.base.path, kept.base.size) as old, pa.BufferReader(content) as new:
            for group in self._order:
                if group is None:
                    joined.copy(new, patch, next(changed))
                else:
                    joined.copy(old, kept.footer, group)


# ---- internals


def _unchanged(
    settings: ParquetSettings, reader: BaseFileReader, changes: BaseRowUpdates, appended: int
) -> tuple[bool, ...] | None:
    """For each row group whether it should be copied; None if too few should be."""
    metadata = reader.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ends = np.cumsum([0, *(group.num_rows for group in groups)])
    found = np.diff(np.searchsorted(changes.replaced, ends)) + np.diff(np.searchsorted(changes.dropped, ends))
    if found.all():
        return None
    full = min(settings.row_group_bytes, max(group.total_byte_size for group in groups))
    least = [full / _SMALL_SHARE] * (len(groups) - 1) + [full / (2 if appended else _SMALL_SHARE)]
    copied = tuple(
        not changed and group.num_rows > 0 and group.total_byte_size >= enough and _has_codec(group, settings)
        for changed, group, enough in zip(found, groups, least, strict=True)
    )
    sizes = np.array([sum(group.column(i).total_compressed_size for i in range(group.num_columns)) for group in groups])
    kept = int(sizes[np.array(copied)].sum())
    left = int(sizes.sum()) - kept
    patch = left + appended * float(sizes.sum()) / max(1, metadata.num_rows)
    return copied if kept and kept * _LEAST_SHARE >= kept + left and patch <= _PATCH_BYTES else None


def _has_codec(group: pq.RowGroupMetaData, settings: ParquetSettings) -> bool:
    """Whether a row group has the codec of the write; the last column is one of the user's."""
    name = settings.codec.upper()
    found: str = group.column(group.num_columns - 1).compression
    return found in _CODECS.get(name, (name,))


def _footer_of_nothing(plan: FilePlan) -> ParquetFooter:
    """The footer of a file without rows, as this write would make it."""
    sink = pa.BufferOutputStream()
    RowGroupWriter(sink, writer_schema(plan), plan.files.parquet, []).end({})
    return _footer_of(sink.getvalue())


def _footer_of(content: pa.Buffer) -> ParquetFooter:
    """The footer of a Parquet file in memory."""
    end = content.size - _TAIL
    length = int.from_bytes(content[end : end + 4].to_pybytes(), "little")
    return parse_footer(content[end - length : end].to_pybytes(), end - length, "memory")
