"""Change logs: the row changes of a new base file version (``HoodieCDCLogger``, Hudi 1.2.0).

::

    replaced stored rows, and their replacements ─► u ─┐
    deleted stored rows                          ─► d ─┼─► Avro records ─► CDC blocks ─► .<name>.cdc
    appended rows                                ─► i ─┘

A change log belongs to one base file and has its instant and write token, in every table version; it is announced by a
marker and named in the base file's write stat. The table's supplemental logging mode decides the content of an entry.
Memory holds one batch of rows and a part of a block.

Base files with a change log:

==============================================  ===========
new version of the base file                    change log
==============================================  ===========
no stored row before it (all rows inserted)     none
a delete operation leaves no row                none: readers take all rows of the version before
anything else, even if nothing changed          one
==============================================  ===========

Apache Hudi's readers infer the first two cases without a change log. They cannot infer an upsert or a compaction that
leaves no row: hudi_fast writes a change log there; Apache Hudi does not, and its CDC query then fails.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.avro.rows import AvroEncoder, block_content_head
from hudi_fast.formats.avro.schema import without_meta
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.formats.log.cdc_records import AFTER, BEFORE, DELETE, INSERT, OP, RECORD_KEY, TS_MS, UPDATE, cdc_columns
from hudi_fast.formats.log.cdc_records import cdc_schema as cdc_schema_of
from hudi_fast.formats.log.writer import LogFileWriter
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.view.file_names import log_file_name
from hudi_fast.writing import file_columns
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["ChangeLog", "change_log_of"]

_MAX_WAITING = 16 << 20
"""Bytes of encoded entries after which a block is written, if ``hoodie.logfile.data.block.max.size`` allows more."""


def change_log_of(
    plan: FilePlan, partition: str, file_id: str, token: TaskToken, stored: int, remaining: int, deletes: bool = False
) -> ChangeLog | None:
    """The change log of a new version of a base file; None if it has none.

    Args:
        plan: the write.
        partition: partition path.
        file_id: the file group.
        token: write token.
        stored: rows of the version before.
        remaining: a lower bound of the rows of the new version.
        deletes: whether all rows of the write are deletes.
    """
    inferred = stored == 0 or (deletes and not remaining)
    return None if plan.table.cdc is None or inferred else ChangeLog(plan, plan.table.cdc, partition, file_id, token)


class ChangeLog:
    """Writer of one change log; a context manager, and a :class:`hudi_fast.merging.base_merge.CdcObserver`.

    Rows are tables with the data columns of the plan's ``file_schema`` and, where the table has meta columns, the
    record key; other columns are ignored.

    Args:
        plan: the write.
        mode: supplemental logging mode.
        partition: partition path.
        file_id: the file group.
        token: write token.
    """

    def __init__(self, plan: FilePlan, mode: str, partition: str, file_id: str, token: TaskToken) -> None:
        self.sizes: dict[str, int] = {}
        """Bytes of each finished file, by path, for the write stat."""
        self._plan, self._mode = plan, mode
        self._columns = cdc_columns(mode)
        self._schema = cdc_schema_of(mode, plan.avro_schema)
        self._encoders: dict[str, AvroEncoder] = {}
        self._folder, self._file_id, self._token = f"{partition}/" if partition else "", file_id, token
        self._writer: LogFileWriter | None = None
        self._version = 0
        self._parts: list[npt.NDArray[np.uint8]] = []
        self._bytes, self._entries = 0, 0

    @property
    def wants_stored(self) -> bool:
        """Whether entries hold before images."""
        return BEFORE in self._columns

    def updated(self, stored: pa.Table | None, rows: pa.Table) -> None:
        """Record that row i of ``rows`` replaces row i of ``stored``."""
        self._log(UPDATE, rows, before=stored, after=rows)

    def deleted(self, stored: pa.Table) -> None:
        """Record deleted stored rows."""
        self._log(DELETE, stored, before=stored)

    def inserted(self, rows: pa.Table) -> None:
        """Record inserted rows."""
        self._log(INSERT, rows, after=rows)

    def close(self) -> None:
        """Write buffered entries and finish the file; a file without entries still has one block."""
        if self._entries or (self._writer is None and not self.sizes):
            self._flush()
        self._finish_file()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None and self._writer is not None:  # a rollback deletes remaining files
            with contextlib.suppress(OSError):
                self._writer.abort()

    # ---- entries

    def _log(self, op: str, keyed: pa.Table, before: pa.Table | None = None, after: pa.Table | None = None) -> None:
        if not keyed.num_rows:
            return
        columns: dict[str, pa.Array] = {}
        if RECORD_KEY in self._columns:
            columns[RECORD_KEY] = self._keys(keyed)
        for name, rows in ((BEFORE, before), (AFTER, after)):
            if rows is not None and name in self._columns:
                columns[name] = self._image(rows)
        batch = pa.RecordBatch.from_pydict(columns)
        if op not in self._encoders:
            constants = {OP: op, TS_MS: self._plan.instant}
            self._encoders[op] = AvroEncoder.compile(batch.schema, _with_defaults(self._schema, constants))
        self._put(*self._encoders[op].encode_records(batch))

    def _keys(self, rows: pa.Table) -> pa.Array:
        if self._plan.config.populate_meta_fields:
            return single_chunk(rows.column(file_columns.RECORD_KEY))
        return single_chunk(record_keys(self._plan.key_config, rows))

    def _image(self, rows: pa.Table) -> pa.StructArray:
        fields = [field.remove_metadata() for field in without_meta(self._plan.file_schema)]
        columns = [single_chunk(rows.column(field.name)) for field in fields]
        return pa.StructArray.from_arrays(columns, fields=fields)

    # ---- blocks

    def _put(self, data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> None:
        """Buffer encoded records, and write each full block."""
        limit = min(_MAX_WAITING, self._plan.files.log.max_block_size)
        start, count = 0, len(bounds) - 1
        while start < count:
            end = int(np.searchsorted(bounds, bounds[start] + limit - self._bytes, "right")) - 1
            end = min(max(end, start if self._entries else start + 1), count)  # a block holds at least one entry
            self._parts.append(data[bounds[start] : bounds[end]])
            self._bytes += int(bounds[end] - bounds[start])
            self._entries += end - start
            if end < count:
                self._flush()
            start = end

    def _flush(self) -> None:
        if self._writer is not None and self._writer.size > self._plan.files.log.max_file_size:
            self._finish_file()
        if self._writer is None:
            self._writer = self._open()
        headers = {HeaderKey.INSTANT_TIME: self._plan.instant, HeaderKey.SCHEMA: self._schema}
        self._writer.append(BlockType.CDC_DATA, headers, [block_content_head(self._entries), *self._parts])
        self._parts, self._bytes, self._entries = [], 0, 0

    def _open(self) -> LogFileWriter:
        """Open a new file; other attempts of the task have another write token."""
        self._version += 1
        name = log_file_name(self._file_id, self._plan.instant, self._version, str(self._token))
        path = f"{self._folder}{name}.cdc"
        # In every table version: all releases delete files with this marker when they roll the write back.
        create_marker(self._plan.storage, self._plan.instant, path, "CREATE")
        return LogFileWriter(self._plan.storage, path, is_ours=True)

    def _finish_file(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        self.sizes[writer.path] = writer.size


def _with_defaults(schema: str, constants: dict[str, str]) -> str:
    """The records' schema with defaults for fields without a column."""
    record: dict[str, Any] = stored_json(schema)
    fields: Sequence[dict[str, Any]] = record["fields"]
    filled = [each | {"default": constants[each["name"]]} if each["name"] in constants else each for each in fields]
    return json.dumps(record | {"fields": filled})
