"""Decode data blocks of a log into rows of the table's schema.

::

    Avro block ──── AvroDecoder ──────┐
    HFile block ─── read_hfile, same ─┼─► table of the requested columns
    Parquet block ─ read, plan_file ──┘

A block is decoded with the schema in its own header: missing columns are null, narrower types are widened. If the
table's columns were renamed or dropped, that schema is first translated to the current names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.hfile.read import read_hfile
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.required_fields import null_array
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.schema.cast import stored_cast
from hudi_fast.schema.conform import plan_file
from hudi_fast.schema.history import SchemaHistory, renamed_avro, renamed_plan, renames_at
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json

__all__ = ["HFILE_KEY_COLUMN", "LogRowReader"]

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
