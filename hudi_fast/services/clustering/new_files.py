"""Write the new files of a clustering: from rows, or from copied row groups.

Writes the rows of a clustering into new file groups, one file after another.

The planned number of files get equal numbers of rows; the last one takes the rest. A file that reaches its size is
followed by another with the same prefix. Rows keep commit time, sequence number, key and partition path.

Copies the row groups of a group's base files into new files without decoding them.

::

    footers ─► may they be copied? ──no──► the reason
                    │ yes
                    ├─► row groups, in order ─► split into files of about equal size ─► copied
                    └─► whole files: filters joined, key ranges widened; parts of files: both computed from their keys

Files with many small row groups are slow to read, so small row groups are decoded and written as large ones, unless the
work requests copies.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.parquet.base_file import NAN_SAFE_BOUNDS, footer_pairs, open_base_file
from hudi_fast.formats.parquet.column_ranges import ranges_of_file
from hudi_fast.formats.parquet.copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet.encryption import writes_encrypted
from hudi_fast.formats.parquet.footer import ParquetFooter, RowGroup, read_footer
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.services.clustering.ordering import new_bucket_prefix
from hudi_fast.services.clustering.rows import GroupInput, joined_filters
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import base_file_name
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.output_file import CONSTANT_META, RECORD_KEY, CarriedColumns, KeyFooter, OutputFile
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, FilePlan, TaskToken

__all__ = ["NewFiles", "copy_row_groups", "new_stat"]

_NO_ROWS = np.zeros(0, dtype=np.int64)
_FEWEST_ROWS = 100
_LOOKS = 16
"""How often the size of a growing file is checked."""


def new_stat(source: GroupInput, file_id: str, path: str, rows: int, size: int, started: float) -> WriteStat:
    """The write statistics of a new file group of a clustering.

    Args:
        source: the group of its rows.
        file_id: of the new file group.
        path: its base file.
        rows: number of rows.
        size: bytes of the file.
        started: :func:`time.monotonic` at its start.
    """
    return WriteStat(
        file_id=file_id,
        path=path,
        prev_commit="null",
        partition_path=source.partition,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size=size,
        runtime_stats=RuntimeStats(total_create_time=int((time.monotonic() - started) * 1000)),
    )


class NewFiles:
    """Writes rows into new files; a context manager that deletes unfinished files after an error.

    Args:
        source: the group that is rewritten.
        token: the task that writes.
        rows: the expected number; 0 if unknown.
        known_keys: a filter that holds all keys; None to build filters from the keys of each file.
    """

    def __init__(self, source: GroupInput, token: TaskToken, rows: int, known_keys: BloomFilter | None = None) -> None:
        self._source, self._token, self._known_keys = source, token, known_keys
        sizing = source.work.plan.files.sizing
        self._max_rows = math.inf if source.work.keeps_buckets else sizing.max_file_rows
        self._share = math.ceil(rows / source.output_groups) if rows else math.inf
        self._stats: list[WriteStat] = []
        self._begun = 0  # shares
        self._suffix = 0
        self._prefix = ""
        self._left = 0.0  # rows until the next share begins
        self._file: _NewFile | None = None

    def write(self, rows: pa.Table) -> None:
        """Append rows of the carried columns."""
        target, limit = self._source.work.target_bytes, self._max_rows
        at_once = _rows_at_once(rows, target)
        at = 0
        while at < rows.num_rows:
            if not self._left:
                self._begin_share()
            if self._file is None:
                file_id = f"{self._prefix}-{self._suffix}"
                self._file = _NewFile(self._source, file_id, self._token, self._known_keys)
                self._suffix += 1
            part = rows.slice(at, int(min(at_once, self._left, limit - self._file.output.rows)))
            self._file.write(part)
            at += part.num_rows
            self._left -= part.num_rows
            if self._file.output.rows == limit or self._file.output.is_full(target):
                self._finish_file()

    def finish(self) -> list[WriteStat]:
        """Close the last file; returns the write statistics."""
        self._finish_file()
        return self._stats

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.output.__exit__(kind, error, trace)

    def _begin_share(self) -> None:
        self._finish_file()
        self._begun += 1
        self._left = self._share if self._begun < self._source.output_groups else math.inf
        keeps, slices = self._source.work.keeps_buckets, self._source.slices
        self._prefix = new_bucket_prefix(slices[0].file_id) if keeps else str(uuid.uuid4())
        self._suffix = 0

    def _finish_file(self) -> None:
        if self._file is not None:
            self._stats.append(self._file.finish())
            self._file = None


class _NewFile:
    def __init__(self, source: GroupInput, file_id: str, token: TaskToken, known_keys: BloomFilter | None) -> None:
        self._source, self._file_id, self._started = source, file_id, time.monotonic()
        plan = source.work.plan
        self._stores_keys, self._knows = plan.config.populate_meta_fields, known_keys is not None
        footer = KeyFooter.for_new_file(plan) if known_keys is None else KeyFooter(known_keys, True, True)
        work = FileGroupWork(source.partition, file_id, None, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
        self.output = OutputFile(plan, work, file_id, "CREATE", footer)
        self._carried = CarriedColumns.of(plan, source.partition, self.output.name)

    def write(self, rows: pa.Table) -> None:
        self.output.write(self._carried.complete(rows))
        if self._stores_keys and self._knows:
            self.output.footer.carry(rows.column(RECORD_KEY))
        elif self._stores_keys:
            self.output.footer.add(single_chunk(rows.column(RECORD_KEY)))

    def finish(self) -> WriteStat:
        size, output = self.output.close(), self.output
        stat = new_stat(self._source, self._file_id, output.path, output.rows, size, self._started)
        return replace(stat, column_ranges=output.ranges)


def _rows_at_once(rows: pa.Table, target: int) -> int:
    """Rows between two checks of the file's size."""
    bytes_per_row = max(1.0, rows.nbytes / max(1, rows.num_rows))
    return int(min(max(target / _LOOKS / bytes_per_row, _FEWEST_ROWS), PART_ROWS))


_FILE_NAME = CONSTANT_META[1]
_SMALL = "row groups are small"
_FEW_GROUPS = 16
_FEWEST_BYTES = 1 << 20
"""A file may have many row groups if they have at least this many bytes on average."""


@dataclass(frozen=True)
class _Source:
    """An old base file with its footer."""

    path: str
    schema: pa.Schema
    footer: ParquetFooter
    keys: BaseFileFooter
    has_nan_safe_bounds: bool


_Pieces: TypeAlias = dict[int, list[RowGroup]]
"""The row groups of a new file, by the number of their source."""


def copy_row_groups(source: GroupInput, token: TaskToken) -> list[WriteStat] | str:
    """Copy the row groups of a group's base files into new file groups.

    Args:
        source: the group.
        token: the task that writes.

    Returns:
        One stat for each new file group; if row groups cannot be copied, the reason, and nothing is written.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    if source.work.ordering.columns:
        return "rows are sorted"
    if source.work.keeps_buckets:
        return "each bucket stays one file"
    if source.work.plan.files.other is not None:
        return "new files are not Parquet"
    if any(one.base_file is not None and not one.base_file.name.endswith(".parquet") for one in source.slices):
        return "a file is not Parquet"
    if writes_encrypted(source.work.plan.storage):
        return "files are encrypted"
    if any(one.base_file is not None and one.base_file.names is not None for one in source.slices):
        return "columns were altered since a file was written"
    if source.is_merged:
        return "there are log files to merge"
    if any(one.base_file is not None and one.base_file.is_skeleton for one in source.slices):
        return "a file is a skeleton file"
    files = len(source.slices)
    sizes = sum(one.base_file.size for one in source.slices if one.base_file is not None)
    if _are_small(source, files, sizes):  # a file has at least one row group
        return _SMALL
    sources = [_source_of(source.work.plan.storage, one) for one in source.slices]
    obstacle = _obstacle(source, sources)
    return obstacle or [_write(source, sources, pieces, token) for pieces in _files(source, sources)]


def _source_of(storage: Storage, slice_: FileSlice) -> _Source:
    assert slice_.base_file is not None
    path = slice_.base_file.path
    with open_base_file(storage, path) as reader:
        return _Source(path, reader.schema, read_footer(storage, path), reader.footer(), reader.has_nan_safe_bounds)


def _obstacle(source: GroupInput, sources: Sequence[_Source]) -> str:
    """Why row groups cannot be copied; empty if they can."""
    schema = source.work.plan.file_schema
    leaves = list(leaf_columns(schema))
    for one in sources:
        if one.schema != schema:
            return "a file has another schema than the table"
        if any([chunk.column for chunk in group.chunks] != leaves for group in one.footer.groups):
            return "a file has another layout of nested columns"
    obstacle = join_obstacle([one.footer for one in sources])
    if obstacle:
        return obstacle
    groups = [group for one in sources for group in one.footer.groups]
    sizes = [group.size for group in groups]
    if max(sizes, default=0) > source.work.target_bytes:
        return "row groups are larger than the target file size"
    if any(group.rows > source.work.plan.files.sizing.max_file_rows for group in groups):
        return "row groups have more rows than a file may have"
    return _SMALL if _are_small(source, len(sizes), sum(sizes)) else ""


def _are_small(source: GroupInput, groups: int, size: int) -> bool:
    """Whether this number of row groups, with this total size, is too small to be copied."""
    are_many = groups > _FEW_GROUPS * source.output_groups
    return are_many and size < _FEWEST_BYTES * groups and not source.work.copies


def _files(source: GroupInput, sources: Sequence[_Source]) -> list[_Pieces]:
    """The row groups of each new file: about equal bytes, up to the target file size and the maximum of rows."""
    groups = [(number, group) for number, one in enumerate(sources) for group in one.footer.groups]
    share = sum(group.size for _, group in groups) / source.output_groups
    files: list[_Pieces] = []
    filled, rows, done = 0, 0, 0
    max_rows = source.work.plan.files.sizing.max_file_rows
    for number, group in groups:
        # The next file begins at the row group whose larger part is beyond this file's share.
        is_next = len(files) < source.output_groups and done + group.size / 2 > share * len(files)
        is_full = filled + group.size > source.work.target_bytes or rows + group.rows > max_rows
        if is_next or is_full:
            files.append({})
            filled, rows = 0, 0
        files[-1].setdefault(number, []).append(group)
        filled += group.size
        rows += group.rows
        done += group.size
    return files


def _write(source: GroupInput, sources: Sequence[_Source], pieces: _Pieces, token: TaskToken) -> WriteStat:
    """Make one new file."""
    plan, started = source.work.plan, time.monotonic()
    file_id = f"{uuid.uuid4()}-0"
    name = base_file_name(file_id, str(token), plan.instant)
    path = f"{source.partition}/{name}" if source.partition else name
    constants = {_FILE_NAME: name} if plan.config.populate_meta_fields else {}
    create_marker(plan.storage, plan.instant, path, "CREATE")
    with JoinedFile(plan.storage, path, [one.footer for one in sources], constants) as file:
        for number, groups in pieces.items():
            with plan.storage.open_input(sources[number].path) as opened:
                for group in groups:
                    file.copy(opened, sources[number].footer, group)
        pairs = [NAN_SAFE_BOUNDS] if all(sources[number].has_nan_safe_bounds for number in pieces) else []
        size = file.close({**_keys(plan, sources, pieces), **dict(pairs)})
    stat = new_stat(source, file_id, path, file.rows, size, started)
    ranges = None
    if plan.files.stats_columns:
        with open_base_file(plan.storage, path) as made:
            ranges = ranges_of_file(made, plan.files.stats_columns)
    return replace(stat, column_ranges=ranges, copied_row_groups=file.row_groups)


def _keys(plan: FilePlan, sources: Sequence[_Source], pieces: _Pieces) -> dict[bytes, bytes]:
    """The key-value pairs of a new file's footer.

    Footers describe source files that are copied whole; for parts of files the copied keys are read.
    """
    if not plan.config.populate_meta_fields:
        return footer_pairs(plan.avro_schema, BaseFileFooter())
    whole = {number for number, groups in pieces.items() if len(groups) == len(sources[number].footer.groups)}
    known = joined_filters(plan, ((sources[number].path, sources[number].keys) for number in sorted(whole)))
    footer = KeyFooter.for_new_file(plan) if known is None else KeyFooter(known, True, True)
    for number, groups in pieces.items():
        one = sources[number]
        low, high = one.keys.min_key, one.keys.max_key
        if number not in whole or (known is None and plan.files.bloom.enabled):
            footer.add(single_chunk(_record_keys(plan, one, groups)))
        elif low is None or high is None:
            footer.carry(_record_keys(plan, one, groups))
        else:
            footer.carry(pa.chunked_array([[low, high]], pa.string()))
    return footer_pairs(plan.avro_schema, footer.finish())


def _record_keys(plan: FilePlan, source: _Source, groups: Sequence[RowGroup]) -> pa.ChunkedArray:
    with open_base_file(plan.storage, source.path) as reader:
        return reader.read([RECORD_KEY], [group.number for group in groups]).column(0)
