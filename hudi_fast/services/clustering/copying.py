"""Copies the row groups of a group's base files into new files without decoding them.

::

    footers ─► may they be copied? ──no──► the reason
                    │ yes
                    ├─► row groups, in order ─► split into files of about equal size ─► copied
                    └─► whole files: filters joined, key ranges widened; parts of files: both computed from their keys

Files with many small row groups are slow to read, so small row groups are decoded and written as large ones, unless the
work requests copies.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.parquet.base_file import NAN_SAFE_BOUNDS, footer_pairs, open_base_file
from hudi_fast.formats.parquet.column_ranges import ranges_of_file
from hudi_fast.formats.parquet.copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet.encryption import writes_encrypted
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.formats.parquet.row_groups import ParquetFooter, RowGroup, read_footer
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.services.clustering.new_files import new_stat
from hudi_fast.services.clustering.rows import GroupInput, joined_filters
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import base_file_name
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.file_columns import CONSTANT_META, RECORD_KEY
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["copy_row_groups"]

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
