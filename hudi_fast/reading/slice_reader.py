"""Read one file slice into record batches in the table's schema: a pure function of the slice's files.

::

    base file alone ──── batches, conformed ────────────────────────┐
    with log files ───── merged_slice: log merged into the base ────┼─► columns from the path ─► filter ─► batches
    unmerged, optional ─ base file's rows, then those of the log ───┘

An incremental query whose log files hold partial rows reads the whole slice (:func:`_whole_slice`).

Callers that read base files themselves request only the rows from the log, and the numbers of the base rows that these
replace (:func:`log_rows_of_slice`, :func:`hidden_rows`). Only one of the two functions reads keys of the base file.

Old files lack columns and hold narrower types; each batch is converted to the requested schema right after reading. A
filter skips row groups by their statistics; log rows that replace rows of a skipped row group are still read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.expressions.arrow_filters import RowFilter
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import HeaderKey, LogBlock
from hudi_fast.merging.base_merge import plan_stored
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import folded_log_rows, log_rows, merged_rows, resolve_slice
from hudi_fast.merging.rules import SliceMerge, merge_schema
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.prune import known_partition_values, matching_row_groups, typed_partition_values
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import RenamedBase, open_base
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = ["HiddenRows", "SliceScan", "has_partial_rows", "hidden_rows", "log_rows_of_slice", "read_slice"]

Rows = npt.NDArray[np.int64]

_LITTLE_GROUP = 64 << 10
"""Bytes before compression up to which a file's only row group is read: asking for its bounds opens the file again."""


@dataclass(frozen=True)
class SliceScan:
    """Settings for reading every slice.

    Attributes:
        schema: columns to read, including filter columns, in result order.
        output: columns to return, part of ``schema``.
        filter: condition of the rows; None for all.
        batch_rows: maximum rows of a batch.
        merge: how log files merge; None where they are ignored (copy-on-write tables, read-optimized queries).
        merge_columns: columns that merging reads from the log: ``schema``, and the columns that :func:`merge_schema`
            adds.
        unmerged: whether rows of the log are returned in addition to those of the base file.
        base_rows: whether to return base rows that the log does not change; else only rows from the log.
        from_path: partition columns that are read from the path although files store them.
        values_from_path: whether the path must have values for all columns of ``from_path``.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    output: pa.Schema
    filter: RowFilter | None
    batch_rows: int = 16384
    merge: SliceMerge | None = None
    merge_columns: pa.Schema | None = None
    unmerged: bool = False
    base_rows: bool = True
    from_path: frozenset[str] = frozenset()
    values_from_path: bool = False


def read_slice(scan: SliceScan, slice_: FileSlice) -> Iterator[pa.RecordBatch]:
    """The slice's rows, in batches.

    Raises:
        CorruptTableError: a file of the slice cannot be read.
        InvalidDataError: the filter cannot be computed for a row.
    """
    blocks = visible_blocks(scan.merge, slice_) if scan.merge is not None and slice_.log_files else []
    if (
        scan.merge is not None
        and scan.merge.commit_times is not None
        and not scan.unmerged
        and has_partial_rows(blocks)
    ):
        merge, slice_ = _whole_slice(scan.merge, slice_)
        scan, blocks = replace(scan, merge=merge), visible_blocks(merge, slice_)
    base = slice_.base_file
    with nullcontext() if base is None else open_base(scan.storage, base) as reader:
        if blocks:
            yield from _read_with_log(scan, slice_, blocks, reader)
        elif reader is not None and scan.base_rows:
            yield from _read_base(scan, slice_, reader)


class HiddenRows(NamedTuple):
    """Rows in the files of a slice that the merged slice does not contain.

    Attributes:
        stored: int64[h], ascending: rows of the base file that the log replaces or deletes.
        logged: int64[l], ascending: numbers of log entries that lose against stored rows.
    """

    stored: Rows
    logged: Rows


def hidden_rows(scan: SliceScan, slice_: FileSlice) -> HiddenRows:
    """The rows of a slice's base file and log that its merged rows do not contain.

    Reads only the columns that merging needs.

    Raises:
        CorruptTableError: one of the slice's files cannot be read.
    """
    none = np.zeros(0, dtype=np.int64)
    blocks = visible_blocks(scan.merge, slice_) if scan.merge is not None and slice_.log_files else []
    if not blocks or slice_.base_file is None or scan.unmerged:
        return HiddenRows(none, none)
    assert scan.merge is not None
    assert scan.merge_columns is not None
    with open_base(scan.storage, slice_.base_file) as reader:
        fill = _columns_from_path(scan, slice_.partition, [n for n in scan.schema.names if reader.has(n)])
        columns = merge_schema(scan.merge, pa.schema([]), scan.merge_columns)
        columns = pa.schema([field for field in columns if field.name not in fill])
        resolved = resolve_slice(scan.merge, blocks, columns, reader, slice_.base_file.instant)
    changes = resolved.changes
    remaining = ~resolved.entries.deletes
    remaining[changes.sources] = False
    remaining[resolved.appended] = False
    return HiddenRows(np.union1d(changes.replaced, changes.dropped), np.flatnonzero(remaining))


def log_rows_of_slice(scan: SliceScan, slice_: FileSlice) -> Iterator[tuple[pa.RecordBatch, Rows | None]]:
    """The rows that the log adds to a slice or changes in it; unchanged rows of the base file are left out.

    ``scan`` has no filter.
    Each batch comes with the numbers of its entries; entries in ``hidden_rows(...).logged`` are not rows of the slice.
    A batch without numbers has been merged with the base file: all its rows are rows of the slice.

    Raises:
        CorruptTableError: one of the slice's files cannot be read.
    """
    blocks = visible_blocks(scan.merge, slice_) if scan.merge is not None and slice_.log_files else []
    if scan.merge is None or scan.unmerged or not _loses_or_wins(scan.merge, blocks):
        yield from ((batch, None) for batch in read_slice(replace(scan, base_rows=False), slice_))
        return
    assert scan.merge_columns is not None
    stored = []
    if scan.config.drop_partition_columns and slice_.base_file is not None:
        with open_base(scan.storage, slice_.base_file) as reader:
            stored = [name for name in scan.schema.names if reader.has(name)]
    fill = _columns_from_path(scan, slice_.partition, stored)
    wanted, columns = _columns_of_log(scan, fill)
    for batch, numbers in folded_log_rows(scan.merge, blocks, wanted, columns, scan.batch_rows):
        for finished in _finish(scan, batch, fill):
            yield finished, numbers


def _read_base(scan: SliceScan, slice_: FileSlice, reader: BaseFileReader) -> Iterator[pa.RecordBatch]:
    columns = [name for name in scan.schema.names if reader.has(name)]
    fill = _columns_from_path(scan, slice_.partition, columns)
    groups = _matching_groups(scan, reader, fill)
    if groups is not None and not groups:
        return
    columns = [name for name in columns if name not in fill]
    wanted = pa.schema([field for field in scan.schema if field.name not in fill])
    conforming = plan_stored(reader, columns, wanted)
    for batch in reader.batches(columns, scan.batch_rows, groups):
        yield from _finish(scan, conforming.apply(batch), fill)


def _read_with_log(
    scan: SliceScan, slice_: FileSlice, blocks: list[LogBlock], reader: BaseFileReader | None
) -> Iterator[pa.RecordBatch]:
    assert scan.merge is not None
    assert scan.merge_columns is not None
    stored = [] if reader is None else [name for name in scan.schema.names if reader.has(name)]
    fill = _columns_from_path(scan, slice_.partition, stored)
    wanted, columns = _columns_of_log(scan, fill)
    if scan.unmerged:
        if reader is not None and scan.base_rows:
            yield from _read_base(scan, slice_, reader)
        rows = log_rows(scan.merge, blocks, wanted, columns, scan.batch_rows)
    else:
        if not scan.base_rows and _log_decides(scan.merge, blocks):
            reader = None
        ruled_out = set() if reader is None else _ruled_out(scan, reader, fill)
        rows = merged_rows(scan.merge, slice_, blocks, wanted, columns, reader, scan.batch_rows, ruled_out)
    for batch in rows:
        yield from _finish(scan, batch, fill)


def _columns_of_log(scan: SliceScan, fill: Collection[str]) -> tuple[pa.Schema, pa.Schema]:
    """The columns of log rows to return, and the columns to read; without the columns ``fill``, read from paths."""
    assert scan.merge_columns is not None
    wanted = pa.schema([field.with_nullable(True) for field in scan.schema if field.name not in fill])
    others = pa.schema([field for field in scan.merge_columns if field.name not in fill])
    columns = scan.merge_columns if scan.from_path else others  # merging may need what the log stores
    return wanted if len(wanted) else pa.schema([others.field(0)]), columns  # a table without columns has no rows


def _log_decides(merge: SliceMerge, blocks: list[LogBlock]) -> bool:
    """Whether the rows from the log do not depend on the base file."""
    return not merge.rules.compares and _loses_or_wins(merge, blocks)


def _loses_or_wins(merge: SliceMerge, blocks: list[LogBlock]) -> bool:
    """Whether each row of the log is either a row of the slice, unchanged, or not a row of it."""
    return not (merge.rules.blends or has_partial_rows(blocks))


def _ruled_out(scan: SliceScan, reader: BaseFileReader, fill: Mapping[str, pa.Scalar]) -> set[int]:
    """Row groups whose stored rows are not needed."""
    groups = _matching_groups(scan, reader, fill) if scan.base_rows else []
    return set() if groups is None else set(range(reader.num_row_groups)) - set(groups)


def _matching_groups(scan: SliceScan, reader: BaseFileReader, fill: Mapping[str, pa.Scalar]) -> list[int] | None:
    """Row groups of the base file that may match; None for all."""
    filter_ = scan.filter
    if filter_ is None or reader.metadata is None:  # only Parquet has statistics of row groups
        return None
    if reader.num_row_groups == 1 and reader.stored_bytes <= _LITTLE_GROUP:
        return None
    stored = filter_.columns - fill.keys()
    if isinstance(reader, RenamedBase) and not stored <= reader.as_stored:
        return None
    condition = _condition_of_groups(filter_, stored, scan.schema, reader)
    return None if condition is None else matching_row_groups(*reader.location, condition, fill)


def _condition_of_groups(
    filter_: RowFilter, columns: Set[str], schema: pa.Schema, reader: BaseFileReader
) -> pc.Expression | None:
    """The condition for the statistics of these columns in a file's row groups; None if they must not be used.

    They must not be used if a column was widened after the file was written. Statistics ignore NaN: if a column may
    hold NaN, they are used only if NaN fails the filter, or if row groups with NaN have no bounds in the file.
    """
    stored = reader.schema
    names = [name for name in schema.names if name in columns and name in stored.names]
    if any(stored.field(name).type != schema.field(name).type for name in names):
        return None
    if not filter_.may_pass_nan or not any(_may_hold_nan(stored.field(name).type) for name in names):
        return filter_.expression
    return filter_.on_safe_bounds if reader.has_nan_safe_bounds else None


def _may_hold_nan(kind: pa.DataType) -> bool:
    parts = (kind.field(at).type for at in range(kind.num_fields))
    return bool(pa.types.is_floating(kind)) or any(_may_hold_nan(one) for one in parts)


def _finish(scan: SliceScan, batch: pa.RecordBatch, fill: dict[str, pa.Scalar]) -> Iterator[pa.RecordBatch]:
    if not len(scan.schema):
        batch = batch.select([])
    elif batch.schema is not scan.schema and not batch.schema.equals(scan.schema):
        arrays = [
            pa.repeat(fill[field.name], batch.num_rows) if field.name in fill else batch.column(field.name)
            for field in scan.schema
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=scan.schema)
    if scan.filter is not None:
        batch = _filtered(batch, scan.filter.expression, scan.storage.uri)
    if batch.num_rows:
        yield batch.select(scan.output.names)


def _filtered(batch: pa.RecordBatch, condition: pc.Expression, uri: str) -> pa.RecordBatch:
    try:
        return batch.filter(condition)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InvalidDataError(f"The filter {condition} cannot be computed for a row of {uri}: {reason}.") from error


def _columns_from_path(scan: SliceScan, partition: str, stored: list[str]) -> dict[str, pa.Scalar]:
    """The values of the columns of ``scan.schema`` that are read from a path.

    These are the columns of ``scan.from_path`` with a value in the path, and partition columns that files do not store.
    """
    known = known_partition_values(scan.config, scan.schema, partition) if scan.from_path else {}
    fill = {name: value for name, value in known.items() if name in scan.from_path}
    if not (scan.config.drop_partition_columns or scan.values_from_path):
        return fill
    stored = [] if scan.values_from_path else stored
    missing = [n for n in scan.config.partition_fields if n in scan.schema.names and n not in stored]
    known = typed_partition_values(scan.config, scan.schema, partition)
    unknown = [name for name in missing if name not in known and not partition.endswith("__HIVE_DEFAULT_PARTITION__")]
    if unknown:
        raise UnsupportedFeatureError(
            f"The columns {unknown} of {scan.storage.uri} are to be read from partition paths "
            "(hoodie.datasource.write.drop.partition.columns, or "
            "hoodie.datasource.read.extract.partition.values.from.path of the read), and the path "
            f"{partition!r} of key generator {scan.config.key_generator} does not give their values."
        )
    return fill | {name: known.get(name, pa.scalar(None, scan.schema.field(name).type)) for name in missing}


# ---- complete the file slice of an incremental query that has partial rows
#
# A partial update logs some columns; earlier commits, which may be outside the query's range, wrote the others. The
# rows at the end of the range are computed from all files of the slice, and the query keeps the rows that the range
# wrote. This lists the files of the partition; no other incremental query does.


def has_partial_rows(blocks: Sequence[LogBlock]) -> bool:
    """Whether rows of these blocks lack columns."""
    return any(block.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true" for block in blocks)


def _whole_slice(merge: SliceMerge, part: FileSlice) -> tuple[SliceMerge, FileSlice]:
    """The merge settings and the complete slice, which includes files from before the range.

    ``part`` has only the files of the slice that are in the query's range.

    Raises:
        ConfigError: earlier files are missing.
    """
    view = open_state(merge.storage, merge.as_of).view
    found = next((one for one in latest_slices(view, part.partition) if one.file_id == part.file_id), None)
    if found is None or not {log.path for log in part.log_files} <= {log.path for log in found.log_files}:
        raise ConfigError(
            f"Commits in the range updated only some columns of rows of {merge.storage.uri}, and a clean has deleted "
            f"the files of file group {part.file_id} with the other columns. Begin later, use a change query, or "
            "write whole rows in updates (hoodie.spark.sql.merge.into.partial.updates=false)."
        )
    return replace(merge, commit_times=None), found
