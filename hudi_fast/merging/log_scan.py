"""Select the log blocks of a file slice that apply, and decode their rows.

Select the log blocks of a file slice that apply, and order them (``BaseHoodieLogRecordReader``, Hudi 1.2.0).

::

    log files in order ─► blocks in file order ─► drop corrupt, foreign and rolled-back blocks; group by instant
        ─► put log-compacted blocks at the position of the blocks that they contain ─► one list, in order of application

Only headers are read.

Decode data blocks of a log into rows of the table's schema.

::

    Avro block ──── AvroDecoder ──────┐
    HFile block ─── read_hfile, same ─┼─► table of the requested columns
    Parquet block ─ read, plan_file ──┘

A block is decoded with the schema in its own header: missing columns are null, narrower types are widened. If the
table's columns were renamed or dropped, that schema is first translated to the current names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.errors import CorruptTableError, FileGoneError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.column_limits import null_array
from hudi_fast.formats.hfile.reader import read_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content, scan_log_blocks
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.merging.rules import SliceMerge
from hudi_fast.schema.cast import stored_cast
from hudi_fast.schema.conform import plan_file
from hudi_fast.schema.history import SchemaHistory, renamed_avro, renamed_plan, renames_at
from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.instants import Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile
from hudi_fast.view.lost_files import require_content
from hudi_fast.view.slices import FileSlice

__all__ = [
    "HFILE_KEY_COLUMN",
    "LogRowReader",
    "blocks_in_order",
    "blocks_of_file",
    "filter_visible_blocks",
    "is_rolled_back",
    "log_blocks",
    "scanned",
    "slice_blocks",
    "visible_blocks",
]

_ROWS = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.DELETE})
_NOTHING = frozenset({BlockType.COMMAND, BlockType.CORRUPT})
_ROLLBACK = "0"
_SCANS = 8
"""Log files of a slice in an object store that are scanned at once; several slices are read at once, too."""
_BLOCKS_ARE_CHECKED_BEFORE = 8
"""Before this table version a log file may hold blocks of failed writes. Since then file names identify them."""


def visible_blocks(merge: SliceMerge, slice_: FileSlice) -> list[LogBlock]:
    """Data and delete blocks in order of application.

    Raises:
        CorruptTableError: a log file is missing or corrupt.
        UnsupportedFeatureError: a block has an unknown type.
    """
    return filter_visible_blocks(merge, slice_blocks(merge, slice_))


def slice_blocks(merge: SliceMerge, slice_: FileSlice) -> Iterator[LogBlock]:
    """All blocks of the slice's log files, in file order.

    Raises:
        CorruptTableError: a log file is missing or corrupt.
        UnsupportedFeatureError: a block has an unknown type.
    """
    return scanned(merge.storage, slice_.log_files, lambda log: log_blocks(merge.storage, log, merge.timeline))


def scanned(
    storage: Storage, logs: Sequence[LogFile], scan: Callable[[LogFile], Iterator[LogBlock]]
) -> Iterator[LogBlock]:
    """The blocks of log files, in the order of the files. An object store is asked for several files at once."""
    threads = 1 if storage.is_local else _SCANS
    return chain.from_iterable(in_threads(lambda log: list(scan(log)), logs, threads))


def filter_visible_blocks(merge: SliceMerge, blocks: Iterable[LogBlock]) -> list[LogBlock]:
    """The data and delete blocks of a slice that apply, in order of application.

    Raises:
        CorruptTableError: a block lacks a required header.
        UnsupportedFeatureError: a command block has an unknown type.
    """
    return blocks_in_order(blocks, lambda block: _is_visible(merge, block))


def blocks_of_file(merge: SliceMerge, path: str, slice_logs: Sequence[str] = ()) -> list[LogBlock]:
    """The data and delete blocks of one log file that apply in its slice.

    ``slice_logs`` are the paths of all log files of its slice, in order; empty if no file follows. Before table version
    8 a later file may hold a command block that rolls back blocks of this one; once their write is archived, only that
    block records the rollback.

    Raises:
        FileNotFoundError: a file is missing.
        CorruptTableError: a block lacks a required header.
        UnsupportedFeatureError: a block has an unknown type.
    """
    blocks = list(scan_log_blocks(merge.storage, path))
    checked = merge.table_version < _BLOCKS_ARE_CHECKED_BEFORE
    if checked and any(merge.timeline.find(block.instant) is None for block in blocks if block.kind in _ROWS):
        later = slice_logs[slice_logs.index(path) + 1 :] if slice_logs else ()
        others = (block for one in later for block in scan_log_blocks(merge.storage, one))
        blocks += [block for block in others if block.kind is BlockType.COMMAND]
    return filter_visible_blocks(merge, blocks)


def blocks_in_order(blocks: Iterable[LogBlock], is_visible: Callable[[LogBlock], bool]) -> list[LogBlock]:
    """The data and delete blocks for which ``is_visible`` is true, in order of application.

    Raises:
        CorruptTableError: a block lacks a required header.
        UnsupportedFeatureError: a command block has an unknown type.
    """
    by_instant: dict[str, list[LogBlock]] = {}
    for block in blocks:
        if block.kind is BlockType.COMMAND:
            by_instant.pop(_rolled_back(block), None)
        elif block.kind in _ROWS and is_visible(block):
            by_instant.setdefault(block.instant, []).append(block)
    return [block for instant in _in_order(by_instant) for block in by_instant[instant]]


def log_blocks(storage: Storage, log: LogFile, timeline: Timeline | None = None) -> Iterator[LogBlock]:
    """All blocks of a log file, in file order.

    Args:
        storage: storage of the table.
        log: the file.
        timeline: the active timeline, to find out whether a truncated or missing block belongs to a completed write;
            None to skip such blocks.

    Raises:
        FileGoneError: the file no longer exists.
        CorruptTableError: the file is corrupt, or has lost blocks of a completed write.
        UnsupportedFeatureError: a block has an unknown type.
    """
    held: set[str] = set()
    is_cut = False
    try:
        for block in scan_log_blocks(storage, log.path, log.size):
            if block.kind is BlockType.CORRUPT:
                is_cut = True
            elif HeaderKey.INSTANT_TIME in block.headers:
                held.add(block.instant)
            yield block
        if timeline is not None and (is_cut or not held):
            require_content(storage, timeline, log.path, log.instant, held)
    except FileNotFoundError as error:
        raise FileGoneError(
            f"Table {storage.uri}: a log file was cleaned after its folder was listed. Read again.",
            log.path,
        ) from error


def is_rolled_back(storage: Storage, log: LogFile, others: Iterable[LogFile]) -> bool:
    """Whether command blocks of the slice roll back all blocks of a log file.

    Before table version 8 files of failed writes are not deleted; once their writes are archived, only command blocks
    record the rollback.

    ``others`` are all log files of the slice.

    Raises:
        CorruptTableError: a file is missing or corrupt.
    """
    held = {block.instant for block in log_blocks(storage, log) if block.kind not in _NOTHING}
    blocks = (block for each in others for block in log_blocks(storage, each))
    return held <= {_rolled_back(block) for block in blocks if block.kind is BlockType.COMMAND}


def _rolled_back(block: LogBlock) -> str:
    """The instant whose blocks a command block rolls back."""
    kind = block.headers.get(HeaderKey.COMMAND_BLOCK_TYPE)
    target = block.headers.get(HeaderKey.TARGET_INSTANT_TIME)
    if kind != _ROLLBACK:
        raise UnsupportedFeatureError(
            f"A command block has type {kind!r}; only {_ROLLBACK!r} (rollback) is supported "
            f"[file {block.path}, byte {block.offset}]."
        )
    if target is None:
        raise CorruptTableError(
            "A rollback block does not name the instant that it rolls back.", block.path, block.offset
        )
    return target


def _is_visible(merge: SliceMerge, block: LogBlock) -> bool:
    instant = block.instant
    if merge.as_of is not None and instant > merge.as_of:
        return False
    return merge.table_version >= _BLOCKS_ARE_CHECKED_BEFORE or merge.timeline.is_completed_or_archived(instant)


def _in_order(by_instant: dict[str, list[LogBlock]]) -> list[str]:
    """The instants whose blocks apply. A log compaction takes the position of the newest instant that it contains.

    Iterates from newest to oldest, since a log compaction may contain the result of an older one. One that contains no
    remaining instant (Hudi skips it) keeps its own position.
    """
    holder: dict[str, str] = {}
    chosen: dict[str, None] = {}
    for instant in reversed(by_instant):
        held = by_instant[instant][0].headers.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        final = holder.get(instant, instant)
        if held is None:
            chosen.setdefault(final)
            continue
        parts = [part.strip() for part in held.split(",")]
        holder.update(dict.fromkeys(parts, final))
        if not any(part in by_instant for part in parts):
            chosen.setdefault(final)
    return list(reversed(chosen))


HFILE_KEY_COLUMN = "key"
"""HFile blocks leave this column empty in records: its value is the entry's key (``HoodieHFileDataBlock``, 1.2.0)."""


@dataclass(frozen=True)
class LogRowReader:
    """Reads data blocks of one slice; blocks with the same schema share a decoder.

    Attributes:
        schema: requested columns, all nullable.
        decoders: by the text of the writer's schema in current names; filled as blocks are read.
        history: the table's schema history; None for a table without one.
    """

    storage: Storage
    schema: pa.Schema
    decoders: dict[str, AvroDecoder]
    history: SchemaHistory | None = None

    def read(self, block: LogBlock) -> pa.Table:
        """The rows of a data block, in block order; columns may have several chunks.

        Raises:
            CorruptTableError, UnsupportedFeatureError: as :meth:`batches`.
        """
        return pa.Table.from_batches(self.batches(block), self.schema)

    def batches(self, block: LogBlock) -> Iterator[pa.RecordBatch]:
        """The rows of a data block, in block order, a batch at a time.

        Raises:
            CorruptTableError: the block is corrupt.
            UnsupportedFeatureError: it holds values of a type that hudi_fast does not read.
        """
        content = read_content(self.storage, block)
        if block.kind is BlockType.PARQUET_DATA:
            return iter(self._parquet_rows(block, content).to_batches())
        decoder = self._decoder(block)
        if block.kind is BlockType.HFILE_DATA:
            return iter(self._hfile_rows(block, content, decoder).to_batches())
        return decoder.decode_block(content, block.path, block.content_start)

    def columns_of(self, block: LogBlock) -> frozenset[str] | None:
        """The columns of a partial block; None for a block with all columns.

        Raises:
            CorruptTableError: its schema is invalid.
        """
        if block.headers.get(HeaderKey.IS_PARTIAL, "").lower() != "true":
            return None
        try:
            return frozenset(field["name"] for field in stored_json(self._schema_text(block))["fields"])
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptTableError(
                f"The schema of a partial log block is invalid ({error!r}).", block.path, block.offset
            ) from error

    def _decoder(self, block: LogBlock) -> AvroDecoder:
        text = self._schema_text(block)
        known = self.decoders.get(text)
        if known is None:
            known = AvroDecoder.compile(text, self.schema, f"{block.path}, byte {block.offset}", promote=stored_cast)
            self.decoders[text] = known
        return known

    def _schema_text(self, block: LogBlock) -> str:
        """The writer's schema in current names."""
        text = _schema_text(block)
        names = None if self.history is None else renames_at(self.history, block.instant)
        return text if names is None else renamed_avro(text, names, block.path)

    def _hfile_rows(self, block: LogBlock, content: pa.Buffer, decoder: AvroDecoder) -> pa.Table:
        keys, values = read_hfile(content, block.path, block.content_start)
        buffers = varlen_buffers(values)
        bounds = buffers.offsets.astype(np.int64)
        batch = decoder.decode_records(buffers.data, bounds[:-1], bounds[1:], block.path, block.content_start)
        table = pa.Table.from_batches([batch], self.schema)
        if HFILE_KEY_COLUMN in table.column_names and self.schema.field(HFILE_KEY_COLUMN).type == pa.string():
            stored = table.column(HFILE_KEY_COLUMN)
            whole = pc.if_else(pc.equal(stored, ""), keys.cast(pa.string()), stored)
            table = table.set_column(table.column_names.index(HFILE_KEY_COLUMN), HFILE_KEY_COLUMN, whole)
        return table

    def _parquet_rows(self, block: LogBlock, content: pa.Buffer) -> pa.Table:
        try:
            with pq.ParquetFile(pa.BufferReader(content)) as file:
                stored = file.schema_arrow.remove_metadata()
                changed = None if self.history is None else renames_at(self.history, block.instant)
                if changed is None:
                    names = [name for name in self.schema.names if name in stored.names]
                    rows = file.read(names, use_threads=False)
                else:
                    rows = renamed_plan(stored, changed).apply(file.read(use_threads=False))
                    names = [name for name in self.schema.names if name in rows.column_names]
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise CorruptTableError(
                f"A Parquet log block cannot be read ({error}).", block.path, block.content_start
            ) from error
        if not names:
            return pa.Table.from_arrays(
                [null_array(rows.num_rows, each.type) for each in self.schema], schema=self.schema
            )
        rows = rows.select(names).replace_schema_metadata(None)
        return plan_file(rows.schema, self.schema).apply(rows)


def _schema_text(block: LogBlock) -> str:
    text = block.headers.get(HeaderKey.SCHEMA)
    if text is None:
        raise CorruptTableError("A log data block has no schema in its header.", block.path, block.offset)
    return text
