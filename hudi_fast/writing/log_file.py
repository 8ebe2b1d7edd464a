"""Changes to a file slice become log files.

Names, announces and writes the new log files of one file group (``HoodieAppendHandle``, Hudi 1.2.0).

Every write creates its own files and never appends to existing ones. A marker claims a version, so attempts of one task
never write to one file; the commit deletes the files of losing attempts. Markers belong to one write: where file names
are the same for several writes, the write that creates the file owns it, and the others delete their markers, because a
commit deletes all files that its markers name and its write stats do not.

====================  =========================================  ================================================
table version         file name                                  version, write token
====================  =========================================  ================================================
6                     the instant that the slice begins at       the next free one; the attempt's own
8 and later           the instant of the write                   1 and up; the writer's own
====================  =========================================  ================================================

Encodes rows and deleted keys as the content of log blocks.

::

    tables, some rows at a time ── Avro records, a Parquet file or an HFile ─► data blocks of a bounded size
    keys, partition paths, ordering values ─► the entries of a delete block, in types that a delete block can hold

Changes to a file slice of a MERGE_ON_READ table become log blocks (``HoodieAppendHandle``, Hudi 1.2.0).

::

    rows that change a stored one ─► with meta columns, some rows at a time  ─► data blocks
    rows that delete it           ─► key, partition path, ordering value     ─► one delete block, the last

Rows are not compared with stored rows; readers of the slice do that. Memory holds one block. Blocks follow the order of
the base file's rows, so their headers can list row positions.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.file_options import LogOptions
from hudi_fast.formats.avro.rows import AvroEncoder, block_content_head
from hudi_fast.formats.avro.schema import OPERATION_FIELD
from hudi_fast.formats.hfile.blocks import Codec
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogFileWriter
from hudi_fast.formats.log.delete_block import DeleteRecords, delete_block_of, encode_positions
from hudi_fast.formats.parquet.base_file import ParquetSettings, ParquetStream
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, merge_ranges, ranges_of_rows
from hudi_fast.formats.varlen import gather_array, single_chunk
from hudi_fast.merging.rules import DELETE_OPERATIONS
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, log_file_name
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.markers import create_marker, delete_marker
from hudi_fast.writing.output_file import RECORD_KEY, Rows, new_meta_columns
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, Incoming, WritePlan

__all__ = ["BlockCounts", "DataBlock", "LogOutput", "LogTarget", "append_log", "data_blocks", "delete_records"]

_MAX_VERSIONS_TRIED = 1000
_TOKEN_DIGITS = 9
"""Last digits of an instant that fit into an integer of Java."""


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Target of log blocks.

    Attributes:
        storage: the table's storage.
        layout_version: of the timeline; decides file names.
        instant: the write.
        slice: the slice that gets the blocks.
        token: write token of the writer.
        max_file_size: bytes; a file that reaches this size gets no more blocks.
        measured: whether blocks have column ranges.
        captured: whether the table has change data capture: write stats then name all files below the log, from which
            CDC readers compute its changes. (Apache Hudi names only log files since a pending compaction, and CDC
            queries fail once the compaction is complete.)
    """

    storage: Storage
    layout_version: int
    instant: str
    slice: FileSlice
    token: str
    max_file_size: int
    measured: bool = False
    captured: bool = False


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Counts of a block: rows with new keys, rows with known keys, deleted keys; and its column ranges."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    ranges: ColumnRanges = field(default_factory=dict)


class LogOutput:
    """Writes the log files that one write adds to one slice; a context manager. :attr:`stats` holds the write stats.

    Args:
        target: of the blocks.
    """

    def __init__(self, target: LogTarget) -> None:
        self.stats: list[WriteStat] = []
        self._target = target
        self._version, self._token = _first_version(target)
        self._writer: LogFileWriter | None = None
        self._counts = BlockCounts()

    def append(
        self, kind: BlockType, headers: Mapping[HeaderKey, str], content: Sequence[Any], counts: BlockCounts
    ) -> None:
        """Write a block, in a new file if the last one is full."""
        if self._writer is not None and self._writer.size > self._target.max_file_size:
            self.close()
        if self._writer is None:
            self._writer = self._open()
        self._writer.append(kind, headers, content)
        have = self._counts
        self._counts = BlockCounts(
            have.inserts + counts.inserts,
            have.updates + counts.updates,
            have.deletes + counts.deletes,
            merge_ranges([have.ranges, counts.ranges]),
        )

    def close(self) -> None:
        """Finish the open file, if any, and add its write stat."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        self.stats.append(self._stat(writer))
        self._counts = BlockCounts()
        self._version += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            self.close()
        elif self._writer is not None:  # the write fails; a rollback deletes remaining files
            with contextlib.suppress(OSError):
                self._writer.abort()

    def _open(self) -> LogFileWriter:
        """The first free version."""
        target, one = self._target, self._target.slice
        old = target.layout_version < 2
        folder = f"{one.partition}/" if one.partition else ""
        for _ in range(_MAX_VERSIONS_TRIED):
            name = log_file_name(one.file_id, one.base_instant if old else target.instant, self._version, self._token)
            if not old or not target.storage.exists(folder + name):  # from version 8 on, names are of this write only
                with contextlib.suppress(FileExistsError):
                    return _new_file(target, folder + name)
            self._version += 1
        raise FileExistsError(f"{folder}{name} and {_MAX_VERSIONS_TRIED - 1} versions before it exist")

    def _stat(self, writer: LogFileWriter) -> WriteStat:
        target, one, counts = self._target, self._target.slice, self._counts
        old = target.layout_version < 2
        base = one.base_file if target.captured or (old and _begins_at_base(one)) else None
        before = [log.name for log in reversed(_logs_before(target))]
        written = [stat.path.rpartition("/")[2] for stat in self.stats]
        return WriteStat(
            file_id=one.file_id,
            path=writer.path,
            prev_commit=one.base_instant if old or target.captured else target.instant,
            partition_path=one.partition,
            num_writes=counts.inserts + counts.updates,
            num_inserts=counts.inserts,
            num_update_writes=counts.updates,
            num_deletes=counts.deletes,
            total_write_bytes=writer.size,
            file_size=writer.size,
            base_file=base.name if base is not None else "",
            log_files=(*before, *written, writer.path.rpartition("/")[2]),
            log_version=self._version,
            log_offset=0,
            column_ranges=counts.ranges if target.measured else None,
        )


def _new_file(target: LogTarget, path: str) -> LogFileWriter:
    """Raises FileExistsError when another attempt of this task, or another write, has claimed the name.

    From table version 8 on the name has the instant, so the marker claims it; before, other writes may use it.
    """
    storage, is_ours = target.storage, target.layout_version > 1
    kind = "CREATE" if is_ours else "APPEND"
    create_marker(storage, target.instant, path, kind)
    try:
        return LogFileWriter(storage, path, is_ours)
    except FileExistsError:
        if kind == "APPEND":
            delete_marker(storage, target.instant, path, kind)
        raise


def _first_version(target: LogTarget) -> tuple[int, str]:
    if target.layout_version > 1:
        return 1, target.token
    mine = _own_logs(target.slice)
    return (mine[-1].version + 1 if mine else 1), _token_of_attempt(target)


def _token_of_attempt(target: LogTarget) -> str:
    """A write token that no other attempt uses.

    Names of version 6 have no instant, and the name of a deleted file must not be used again for other content. Spark
    tasks use the number of their attempt; a process, which counts no attempts, uses the instant.
    """
    task, stage, attempt = target.token.split("-")
    own = attempt if int(attempt) else str(int(target.instant[-_TOKEN_DIGITS:]))
    return f"{task}-{stage}-{own}"


def _begins_at_base(one: FileSlice) -> bool:
    """Whether the slice begins at its base file and not at a pending compaction."""
    return one.base_file is not None and one.base_file.instant == one.base_instant


def _logs_before(target: LogTarget) -> list[LogFile]:
    """The other log files that a write stat names, in the order in which they apply."""
    if target.captured:
        return [*target.slice.change_logs, *target.slice.log_files]
    return _own_logs(target.slice) if target.layout_version < 2 else []


def _own_logs(one: FileSlice) -> list[LogFile]:
    """Log files named after the slice's own instant, without log files from before a pending compaction."""
    return [log for log in one.log_files if log.instant == one.base_instant]


_CODECS = {"gz": Codec.GZ, "none": Codec.NONE}


@dataclass(frozen=True, slots=True)
class DataBlock:
    """An encoded data block.

    Attributes:
        kind: block type.
        content: consecutive buffers.
        rows: number of rows.
        ranges: of the requested columns.
    """

    kind: BlockType
    content: Sequence[Any]
    rows: int
    ranges: ColumnRanges = field(default_factory=dict)


def data_blocks(
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    avro_schema: str,
    log: LogOptions,
    parquet: ParquetSettings,
    stats_columns: Collection[str] = (),
) -> Iterator[DataBlock]:
    """Encode all rows of ``tables`` as blocks of bounded size, in order.

    Args:
        tables: rows in ``schema``; memory holds two of these tables and a block at a time.
        schema: their columns, in storable types.
        avro_schema: Avro JSON of ``schema``.
        log: format and size of blocks.
        parquet: encoding of Parquet blocks.
        stats_columns: columns whose ranges are returned.

    Raises:
        InvalidDataError: a null in a non-nullable column.
    """
    if log.block_format == "parquet":
        for held in _bounded_parts(tables, log.max_block_size):
            yield _parquet_block(held, schema, avro_schema, parquet, stats_columns)
    elif log.block_format == "hfile":
        encoder = AvroEncoder.compile(schema, avro_schema)
        for held in _bounded_parts(tables, log.max_block_size):
            yield _hfile_block(held, encoder, avro_schema, _CODECS[log.hfile_codec], stats_columns)
    else:
        yield from _avro_blocks(tables, AvroEncoder.compile(schema, avro_schema), log.max_block_size, stats_columns)


def delete_records(
    keys: pa.Array, partitions: pa.Array, ordering: Sequence[pa.Array], is_default: npt.NDArray[np.bool_]
) -> DeleteRecords:
    """Entries of a delete block.

    A null means no ordering value. With several ordering columns a null is written as the lowest value of its type,
    because Apache Hudi 1.2.0 cannot read a null there.

    Args:
        keys: n record keys.
        partitions: n partition paths.
        ordering: columns of n ordering values, in the types of the table's columns.
        is_default: bool[n], entries without an ordering value: they win over all earlier rows.
    """
    default = np.array(is_default, dtype=np.bool_)
    if len(ordering) == 1:
        default |= ordering[0].is_null().to_numpy(zero_copy_only=False)
    if not ordering or default.all():
        return DeleteRecords(keys, partitions, (), np.ones(len(keys), dtype=np.bool_))
    values = [one.cast(pa.binary()) if pa.types.is_fixed_size_binary(one.type) else one for one in ordering]
    if len(values) > 1:
        values = [_without_nulls(one) for one in values]
    return DeleteRecords(keys, partitions, tuple(values), default)


# ---- data


def _avro_blocks(
    tables: Iterable[pa.Table], encoder: AvroEncoder, limit: int, stats_columns: Collection[str]
) -> Iterator[DataBlock]:
    parts: list[npt.NDArray[np.uint8]] = []
    ranges: list[ColumnRanges] = []
    size, rows = 0, 0
    for table in tables:
        for batch in table.to_batches():
            data, offsets = encoder.encode_records(batch)
            start, count = 0, len(offsets) - 1
            while start < count:
                end = int(np.searchsorted(offsets, offsets[start] + limit - size, "right")) - 1
                end = min(max(end, start if rows else start + 1), count)  # a block holds at least one row
                if end > start:
                    parts.append(data[offsets[start] : offsets[end]])
                    ranges.append(ranges_of_rows(batch.slice(start, end - start), stats_columns))
                    size, rows = size + int(offsets[end] - offsets[start]), rows + end - start
                if end < count:
                    yield _avro_block(parts, rows, ranges)
                    parts, ranges, size, rows = [], [], 0, 0
                start = end
    if rows:
        yield _avro_block(parts, rows, ranges)


def _avro_block(parts: Sequence[Any], rows: int, ranges: Sequence[ColumnRanges]) -> DataBlock:
    return DataBlock(BlockType.AVRO_DATA, [block_content_head(rows), *parts], rows, merge_ranges(ranges))


def _bounded_parts(tables: Iterable[pa.Table], limit: int) -> Iterator[Sequence[pa.Table]]:
    """Split rows into blocks; block sizes are measured before encoding."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if held and size + table.nbytes > limit:
            yield held
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if size:
        yield held


def _parquet_block(
    tables: Sequence[pa.Table],
    schema: pa.Schema,
    avro_schema: str,
    settings: ParquetSettings,
    stats_columns: Collection[str],
) -> DataBlock:
    sink = pa.BufferOutputStream()
    stream = ParquetStream(sink, schema, settings)
    stream.write(pa.concat_tables(tables))
    stream.close({b"parquet.avro.schema": avro_schema.encode(), b"writer.model.name": b"avro"})
    ranges = merge_ranges(ranges_of_rows(table, stats_columns) for table in tables)
    return DataBlock(BlockType.PARQUET_DATA, [sink.getvalue()], sum(table.num_rows for table in tables), ranges)


def _hfile_block(
    tables: Sequence[pa.Table], encoder: AvroEncoder, avro_schema: str, codec: Codec, stats_columns: Collection[str]
) -> DataBlock:
    """A block with the rows, sorted by record key. The key of an entry is the row's number, as in Hudi's blocks.

    Hudi would use a column ``key``, which only the metadata table has (HFileUtils, 1.2.0).
    """
    rows = pa.concat_tables(tables).combine_chunks()
    rows = rows.take(pc.sort_indices(rows, [(RECORD_KEY, "ascending")]))
    count = rows.num_rows
    width = math.ceil(math.log(count)) + 1
    keys = pc.utf8_lpad(pc.cast(pa.array(np.arange(count)), pa.string()), width, " ")
    values = pa.chunked_array([encoder.encode_values(batch) for batch in rows.to_batches()], pa.binary())
    content = encode_hfile(keys, single_chunk(values), avro_schema, codec)
    return DataBlock(BlockType.HFILE_DATA, content, count, ranges_of_rows(rows, stats_columns))


# ---- deletes


def _without_nulls(column: pa.Array) -> pa.Array:
    kind = column.type
    if not column.null_count:
        return column
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        lowest: Any = b"" if pa.types.is_binary(kind) else ""
    elif pa.types.is_boolean(kind):
        lowest = False
    elif pa.types.is_temporal(kind):
        number = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pc.fill_null(column.view(number), np.iinfo(number.to_pandas_dtype()).min).view(kind)
    else:  # compared with numbers a null counts as 0
        lowest = Decimal(0) if pa.types.is_decimal(kind) else 0
    return pc.fill_null(column, pa.scalar(lowest, kind))


Flags = npt.NDArray[np.bool_]

_META_BYTES = 150
"""Approximate size of a row's meta columns."""

_MANY_DELETE_VALUES = 9
"""Readers of tables before this version support only one ordering value per delete entry."""


def append_log(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Log the changes of one file group; one stat per log file.

    Args:
        plan: the write.
        work: rows of an existing slice, none to insert.
        incoming: rows of the write.
    """
    if work.slice is None or len(work.inserts):
        raise ValueError("a log takes changes to an existing slice alone")
    dropped, buried = _deletes(plan, work, incoming)
    kept = ~dropped
    target = LogTarget(
        plan.storage,
        plan.config.layout_version,
        plan.instant,
        work.slice,
        str(work.token),
        plan.files.log.max_file_size,
        bool(plan.files.stats_columns),
        plan.table.cdc is not None,
    )
    with LogOutput(target) as output:
        rows, sources, buried = work.base_rows[kept], work.incoming_rows[kept], buried[kept]
        start = 0
        tables = _log_rows(plan, work, incoming, sources)
        blocks = data_blocks(
            tables, _schema(plan), _avro_schema(plan), plan.files.log, plan.files.parquet, plan.files.stats_columns
        )
        for block in blocks:
            part = slice(start, start + block.rows)
            deletes = int(buried[part].sum())
            counts = BlockCounts(updates=block.rows - deletes, deletes=deletes, ranges=block.ranges)
            output.append(block.kind, _headers(plan, work.slice, rows[part]), block.content, counts)
            start += block.rows
            del block  # before the next one is collected
        if dropped.any():
            content = delete_block_of(plan.config.version, _delete_entries(work, incoming, dropped))
            headers = _headers(plan, work.slice, work.base_rows[dropped])
            output.append(BlockType.DELETE, headers, [content], BlockCounts(deletes=int(dropped.sum())))
    known = bool((work.base_rows >= 0).all())
    return [replace(stat, inserts_last=known) for stat in output.stats]


def _deletes(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> tuple[Flags, Flags]:
    """Split deletes into entries of the delete block and marked data rows.

    Rows are marked in tables whose readers do not support the entry, and in tables that store the operation of a row
    (``hoodie.allow.operation.metadata.field``, ``HoodieAppendHandle``, Hudi 1.2.0).
    """
    none = np.zeros(len(work.incoming_rows), dtype=np.bool_)
    marked = none if incoming.deletes is None else incoming.deletes[work.incoming_rows]
    dropped = marked if work.moved is None else marked | work.moved
    if len(incoming.ordering) >= 2 and plan.config.version < _MANY_DELETE_VALUES:
        return none if work.moved is None else work.moved, marked
    if not plan.table.stores_operations or OPERATION_FIELD not in incoming.rows.column_names or not marked.any():
        return dropped, none
    operations = gather_array(single_chunk(incoming.rows.column(OPERATION_FIELD)), work.incoming_rows)
    buried = marked & np.asarray(pc.is_in(operations, DELETE_OPERATIONS))
    return dropped & ~buried, buried


def _log_rows(plan: WritePlan, work: FileGroupWork, incoming: Incoming, sources: Rows) -> Iterator[pa.Table]:
    """Incoming rows with new meta columns; ``_hoodie_file_name`` holds the file id in a log."""
    first = work.first_sequence
    for part in incoming.parts(sources, _rows_at_once(plan, incoming)):
        keys = gather_array(incoming.key_array(), part)
        meta = new_meta_columns(plan, keys, work.partition, work.file_id, work.token.task, first)
        data = incoming.take(part)
        columns = [_plain(one) for one in meta] + [data.column(field.name) for field in list(_schema(plan))[5:]]
        yield pa.Table.from_arrays(columns, schema=_schema(plan))
        first += len(part)


def _schema(plan: WritePlan) -> pa.Schema:
    return plan.file_schema if plan.partial is None else plan.partial.file_schema


def _avro_schema(plan: WritePlan) -> str:
    return plan.avro_schema if plan.partial is None else plan.partial.avro_schema


def _rows_at_once(plan: WritePlan, incoming: Incoming) -> int:
    """Rows of a small part of a block; Parquet blocks end at such a boundary."""
    return int(min(max(plan.files.log.max_block_size / 16 / (incoming.row_bytes + _META_BYTES), 1), PART_ROWS))


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _delete_entries(work: FileGroupWork, incoming: Incoming, dropped: Flags) -> DeleteRecords:
    sources = work.incoming_rows[dropped]
    keys = gather_array(incoming.key_array(), sources)
    partitions = pa.repeat(pa.scalar(work.partition, pa.string()), len(sources))
    ordering = [gather_array(column, sources) for column in incoming.ordering]
    # A moved row is deleted at any ordering value: lookup has already compared it.
    default = np.zeros(len(sources), dtype=np.bool_) if work.moved is None else work.moved[dropped]
    return delete_records(keys, partitions, ordering, default)


def _headers(plan: WritePlan, slice_: FileSlice, base_rows: Rows) -> dict[HeaderKey, str]:
    headers = {HeaderKey.INSTANT_TIME: plan.instant, HeaderKey.SCHEMA: _avro_schema(plan)}
    if plan.partial is not None:
        headers[HeaderKey.IS_PARTIAL] = "true"
    if plan.files.log.record_positions and slice_.base_file is not None and (base_rows >= 0).all():
        headers[HeaderKey.RECORD_POSITIONS] = encode_positions(base_rows)
        headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = slice_.base_file.instant
    return headers
