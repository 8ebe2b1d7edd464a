"""The row groups of a group's base files, copied into new ones without decoding them.

::

    footers ─► may they be copied? ──no──► why not
                    │ yes
                    ├─► row groups, in order ─► cut into files of about equal size ─► copied
                    └─► of whole files: filters joined, ranges of keys widened; of parts of files: from their keys

A file of many small row groups would be slow to read for good, so small ones are not copied but decoded, which makes
large ones of them, unless the work asks for copies.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.formats.column_ranges import ranges_of_file
from hudi_fast.formats.leaf_columns import leaf_columns
from hudi_fast.formats.parquet_base import BaseFileFooter, BaseFileReader, footer_pairs, open_base_file
from hudi_fast.formats.parquet_copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet_row_groups import ParquetFooter, RowGroup, read_footer
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.services.clustering.new_files import new_stat
from hudi_fast.services.clustering.rows import GroupInput, joined_filters
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import base_file_name
from hudi_fast.writing.file_columns import CONSTANT_META, RECORD_KEY
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.plan import TaskToken

__all__ = ["copy_row_groups"]

_FILE_NAME = CONSTANT_META[1]
_FEW_GROUPS = 16
_FEWEST_BYTES = 1 << 20
"""Bytes of a row group, on average, from which on a file may have more than a few of them."""


@dataclass(frozen=True)
class _Source:
    """An old base file, and what its footer says of row groups and of keys."""

    reader: BaseFileReader
    footer: ParquetFooter
    keys: BaseFileFooter


@dataclass(frozen=True, slots=True)
class _Piece:
    """A row group of one of the sources: their numbers."""

    source: int
    group: int


def copy_row_groups(source: GroupInput, token: TaskToken) -> list[WriteStat] | str:
    """Copy the row groups of a group's base files into new file groups.

    Args:
        source: the group.
        token: who writes.

    Returns:
        One stat for each new file group; if row groups cannot be copied, why not, and nothing is written.

    Raises:
        CorruptTableError: a file cannot be read.
    """
    if source.work.ordering.columns:
        return "rows are sorted"
    if source.is_merged:
        return "there are log files to merge"
    storage = source.work.plan.storage
    with ExitStack() as stack:
        sources = []
        for one in source.slices:
            assert one.base_file is not None
            reader = stack.enter_context(open_base_file(storage, one.base_file.path))
            sources.append(_Source(reader, read_footer(storage, one.base_file.path), reader.footer()))
        obstacle = _obstacle(source, sources)
        return obstacle or [
            _write(source, sources, pieces, token) for pieces in _files(source, [one.footer for one in sources])
        ]


def _obstacle(source: GroupInput, sources: Sequence[_Source]) -> str:
    """Why row groups cannot be copied; empty if they can."""
    schema = source.work.plan.file_schema
    leaves = list(leaf_columns(schema))
    for one in sources:
        if one.reader.schema != schema:
            return "a file has another schema than the table"
        if any([chunk.column for chunk in group.chunks] != leaves for group in one.footer.groups):
            return "a file lays its nested columns out differently"
    obstacle = join_obstacle([one.footer for one in sources])
    if obstacle:
        return obstacle
    sizes = [group.size for one in sources for group in one.footer.groups]
    if max(sizes, default=0) > source.work.target_bytes:
        return "row groups are larger than files are to be"
    are_many = len(sizes) > _FEW_GROUPS * source.output_groups
    if are_many and sum(sizes) < _FEWEST_BYTES * len(sizes) and not source.work.copies:
        return "row groups are small"
    return ""


def _files(source: GroupInput, footers: Sequence[ParquetFooter]) -> list[list[_Piece]]:
    """The row groups of each new file: about equally many bytes, at most as many as a file may have."""
    sizes = {
        _Piece(number, at): group.size
        for number, footer in enumerate(footers)
        for at, group in enumerate(footer.groups)
    }
    share = sum(sizes.values()) / source.output_groups
    files: list[list[_Piece]] = []
    filled, done = 0, 0
    for piece, size in sizes.items():
        # The next share begins where the row group's larger part is beyond the end of this one.
        is_next = len(files) < source.output_groups and done + size / 2 > share * len(files)
        if is_next or filled + size > source.work.target_bytes:
            files.append([])
            filled = 0
        files[-1].append(piece)
        filled += size
        done += size
    return files


def _write(source: GroupInput, sources: Sequence[_Source], pieces: Sequence[_Piece], token: TaskToken) -> WriteStat:
    """Make one new file."""
    plan, started = source.work.plan, time.monotonic()
    file_id = f"{uuid.uuid4()}-0"
    name = base_file_name(file_id, str(token), plan.instant)
    path = f"{source.partition}/{name}" if source.partition else name
    constants = {_FILE_NAME: name} if plan.config.populate_meta_fields else {}
    create_marker(plan.storage, plan.instant, path, "CREATE")
    file = JoinedFile(plan.storage, path, [one.footer for one in sources], constants)
    try:
        for number in dict.fromkeys(piece.source for piece in pieces):
            footer = sources[number].footer
            with plan.storage.open_input(footer.path) as opened:
                for group in _groups_of(footer, number, pieces):
                    file.copy(opened, footer, group)
        size = file.close(_keys(source, sources, pieces))
    except BaseException:
        file.abort()
        raise
    stat = new_stat(source, file_id, path, file.rows, size, started)
    ranges = None
    if plan.stats_columns:
        with open_base_file(plan.storage, path) as made:
            ranges = ranges_of_file(made, plan.stats_columns)
    return replace(stat, column_ranges=ranges, copied_row_groups=len(pieces))


def _groups_of(footer: ParquetFooter, number: int, pieces: Sequence[_Piece]) -> list[RowGroup]:
    return [footer.groups[piece.group] for piece in pieces if piece.source == number]


def _keys(source: GroupInput, sources: Sequence[_Source], pieces: Sequence[_Piece]) -> dict[bytes, bytes]:
    """The key-value pairs of a new file's footer.

    Of files that go into it whole all is known; of others the keys of what goes into it are read.
    """
    plan = source.work.plan
    footer = KeyFooter(None, False, False)
    if plan.config.populate_meta_fields:
        groups = {number: _groups_of(one.footer, number, pieces) for number, one in enumerate(sources)}
        whole = [one for number, one in enumerate(sources) if len(groups[number]) == len(one.footer.groups) > 0]
        footers = [(one.footer.path, one.keys) for one in whole]
        known = joined_filters(plan, footers) if plan.bloom.enabled else None
        footer = KeyFooter.for_new_file(plan) if known is None else KeyFooter(known, True, True)
        for number, one in enumerate(sources):
            is_known = one in whole and (known is not None or not plan.bloom.enabled)
            if is_known and one.keys.min_key is not None and one.keys.max_key is not None:
                footer.carry(pa.chunked_array([[one.keys.min_key, one.keys.max_key]], pa.string()))
            elif is_known:
                footer.carry(_record_keys(one, groups[number]))
            elif groups[number]:
                footer.add(single_chunk(_record_keys(one, groups[number])))
    return footer_pairs(plan.avro_schema, footer.finish())


def _record_keys(source: _Source, groups: Sequence[RowGroup]) -> pa.ChunkedArray:
    return source.reader.read([RECORD_KEY], [group.number for group in groups]).column(0)
