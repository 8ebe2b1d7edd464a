"""The merged rows of a file slice with log files.

::

    log files ─► visible blocks ─► entries, one per key ─► changes to the base file ─┬─► base file, changed, streamed
                                                                                    └─► rows of the log alone

Memory holds the keys and ordering values of the log records, and one batch of the base file. The log records have the
requested columns and the columns that merging needs; up to 128 MiB they are in memory, beyond that in a mapped local
file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import LogBlock
from hudi_fast.merging.base_merge import entry_replacement, merged_batches
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.read_entries import read_entries
from hudi_fast.merging.resolve import resolve_slice
from hudi_fast.merging.slice_merge import SliceMerge, kept_columns
from hudi_fast.view.slices import FileSlice

__all__ = ["folded_log_rows", "log_rows", "merged_rows"]

Rows = npt.NDArray[np.int64]


def merged_rows(
    merge: SliceMerge,
    slice_: FileSlice,
    blocks: list[LogBlock],
    wanted: pa.Schema,
    columns: pa.Schema,
    reader: BaseFileReader | None,
    batch_rows: int,
    ruled_out: Collection[int] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice in a snapshot query, at most ``batch_rows`` at a time.

    ``blocks`` are visible log blocks, ``columns`` is :func:`hudi_fast.merging.slice_merge.merge_schema` of ``wanted``,
    ``reader`` the slice's open base file or None. Row groups in ``ruled_out`` return only replaced rows.

    Raises:
        CorruptTableError: a file of the slice is corrupt.
    """
    base_instant = None if slice_.base_file is None else slice_.base_file.instant
    resolved = resolve_slice(merge, blocks, columns, reader, base_instant)
    # A user function receives whole rows.
    schema = wanted if merge.rules.merger is None else columns
    if reader is not None:
        kept = () if merge.config is None or merge.rules.merger is not None else kept_columns(merge.config, schema)
        make = entry_replacement(merge.rules, resolved.entries, resolved.changes, schema)
        for table in merged_batches(
            reader, schema, resolved.changes, make, batch_rows=batch_rows, replaced_only=ruled_out, kept=kept
        ):
            yield from table.select(wanted.names).to_batches()
    yield from _taken(resolved.entries, wanted, resolved.entries.row[resolved.appended], batch_rows)


def folded_log_rows(
    merge: SliceMerge, blocks: list[LogBlock], wanted: pa.Schema, columns: pa.Schema, batch_rows: int
) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """The newest row of each key in the log, and its entry number (:class:`ResolvedSlice`).

    The base file is not read, so some of the rows may lose against stored rows. Use it only where a merged row has no
    values of stored rows. ``columns`` is :func:`hudi_fast.merging.slice_merge.merge_schema` of ``wanted``.
    """
    resolved = resolve_slice(merge, blocks, columns, None)
    start = 0
    for batch in _taken(resolved.entries, wanted, resolved.entries.row[resolved.appended], batch_rows):
        yield batch, resolved.appended[start : start + batch.num_rows]
        start += batch.num_rows


def log_rows(
    merge: SliceMerge, blocks: list[LogBlock], wanted: pa.Schema, columns: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """All rows of the log as written, without deletes, for a query that does not merge.

    ``columns`` is :func:`hudi_fast.merging.slice_merge.merge_schema` of ``wanted``.
    """
    entries = read_entries(merge, blocks, columns)
    yield from _taken(entries, wanted, entries.row[~entries.deletes], batch_rows)


def _taken(entries: LogEntries, wanted: pa.Schema, rows: Rows, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), batch_rows):
        yield from entries.take(rows[first : first + batch_rows], wanted.names).to_batches()
