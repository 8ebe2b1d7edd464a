"""``df.write.format("hudi_fast")`` and ``writeStream``: tasks spool rows, the driver writes them in one commit.

::

    task:    Arrow batches ─► <table>/../.<table>.spool-<id>/<attempt>.arrow ─► Spooled
    driver:  files, mapped into memory ─► local engine ─► commit; a stream's batch once ─► delete the spool

A Python data source has no Spark session at commit time, and its tasks cannot be assigned file groups; threads of one
process write all rows. Larger inputs (``hudi_fast.spool.max.bytes``) are refused: ``hudi_fast.write`` and
``hudi_fast.sink`` write with Spark's tasks. Spool files of failed writers are deleted after a day.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from hudi_fast.config.options import written_options
from hudi_fast.config.stream_options import SinkOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.inline import check_inline, write_with_services
from hudi_fast.sessions import open_session
from hudi_fast.spark.arrow import checked_arrow_types
from hudi_fast.spark_api.streaming.exactly_once import (
    Batch,
    is_written,
    noting,
    unless_written,
    with_output_mode,
    write_exactly_once,
)
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.values import dataclass
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.settings import Settings

__all__ = ["Spooled", "TableStreamWriter", "TableWriter"]

_FORGOTTEN_SECONDS = 24 * 3600
_SPOOL = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Spooled(WriterCommitMessage):  # type: ignore[misc]
    """Spooled rows of a task.

    Attributes:
        name: of the spool file.
        bytes: in memory.
    """

    name: str
    bytes: int


class _Spool:
    """The spool folder of a write, and the commit of its rows.

    Args:
        storage: the table's.
        options: of the write.
        schema: ``StructType`` of the rows.
        mode: save mode.
        streams: whether the rows are batches of a stream.
    """

    def __init__(
        self, storage: Storage, options: Mapping[str, Any], schema: Any, mode: str, streams: bool = False
    ) -> None:
        self._storage = storage
        settings = Settings.for_write(options)
        self._settings = settings.for_committed_batches() if streams else settings
        self._sink = SinkOptions.of(written_options(options))
        self._schema = checked_arrow_types(schema)
        self._mode = mode
        check_inline(self._settings)
        storage.check_writable()
        parent, _, name = storage.fs_path("").rpartition("/")
        if not storage.has_folders and not parent:
            raise UnsupportedFeatureError(
                f'format("hudi_fast") spools rows in a folder next to the table, and {storage.uri} has no parent '
                "folder: use hudi_fast.write(df, path, options)."
            )
        self._prefix = f".{name}.spool-"
        self._neighbours = self._storage.rooted_at(parent)
        self._folder = f"{self._prefix}{uuid.uuid4().hex}"

    def put_aside(self, batches: Iterator[pa.RecordBatch]) -> Spooled:
        """Write the rows of a task to a spool file; called by the task."""
        name, size = f"{self._folder}/{uuid.uuid4().hex}.arrow", 0
        try:
            with self._neighbours.open_output(name) as target:
                with pa.ipc.new_file(target, self._schema) as file:
                    for batch in batches:
                        size += batch.nbytes
                        if size > self._sink.spool_max_bytes:
                            self._refuse(size)
                        file.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        except BaseException:
            self._delete(name)
            raise
        return Spooled(name, size)

    def write(self, messages: Sequence[Any], batch: int | None) -> WriteResult | None:
        """Write all spooled rows in one commit; called by the driver. None for a batch that the table holds."""
        parts = [one for one in messages if isinstance(one, Spooled)]
        if sum(one.bytes for one in parts) > self._sink.spool_max_bytes:
            self._refuse(sum(one.bytes for one in parts))
        try:
            return self._write(LocalEngine(self._rows(parts)), batch)
        finally:
            self.discard(parts)

    def discard(self, messages: Sequence[Any]) -> None:
        """Delete this spool, and spools of failed writers; tasks of a stream use one folder for all batches."""
        for one in messages:
            if isinstance(one, Spooled):
                self._delete(one.name)
        with contextlib.suppress(OSError):
            self._neighbours.delete_dir(self._folder)
        for entry in self._neighbours.list_dir(""):
            if entry.is_dir and _SPOOL.fullmatch(entry.name.removeprefix(self._prefix)):
                with contextlib.suppress(OSError):
                    if time.time() - self._last_use(entry) / 1000 > _FORGOTTEN_SECONDS:
                        self._neighbours.delete_dir(entry.path)

    def _last_use(self, folder: FileStat) -> int:
        """Modification time in milliseconds; object stores have times of files only."""
        inside = [] if folder.modified_ms else self._neighbours.list_dir(folder.path)
        return max((one.modified_ms for one in inside), default=folder.modified_ms)

    def _delete(self, name: str) -> None:
        folder = name.rpartition("/")[0]
        with contextlib.suppress(OSError):
            self._neighbours.delete_file(name)
            if not self._neighbours.list_dir(folder):
                self._neighbours.delete_dir(folder)

    def _rows(self, parts: Sequence[Spooled]) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        for one in parts:
            local = self._neighbours.is_local
            path = self._neighbours.fs_path(one.name)
            reader = pa.ipc.open_file(pa.memory_map(path) if local else self._neighbours.open_input(one.name))
            batches += [reader.get_batch(number) for number in range(reader.num_record_batches)]
        return pa.Table.from_batches(batches, self._schema)

    def _write(self, engine: LocalEngine, batch: int | None) -> WriteResult | None:
        which = None if batch is None else Batch(self._sink.identifier, batch)
        if which is None:
            session = open_session(self._storage, self._settings)
            return write_with_services(session, lambda: run_write(session, engine, self._mode))
        if is_written(self._storage, which):
            return None
        noted = open_session(self._storage, noting(self._settings, which), guard=unless_written(which))
        return write_with_services(noted, lambda: write_exactly_once(noted, engine, self._mode, which))

    def _refuse(self, size: int) -> None:
        raise UnsupportedFeatureError(
            f'format("hudi_fast") was given {size:,} bytes of rows for {self._storage.uri}, more than '
            f"{self._sink.spool_max_bytes:,} (hudi_fast.spool.max.bytes), which the driver would have to write. Use "
            "hudi_fast.write(df, path, options), or hudi_fast.sink for a stream: they write with Spark's tasks."
        )


class TableWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a DataFrame."""

    def __init__(self, storage: Storage, options: Mapping[str, Any], schema: Any, overwrite: bool) -> None:
        self._spool = _Spool(storage, options, schema, "overwrite" if overwrite else "append")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Spooled:
        """Put the rows of a task aside."""
        return self._spool.put_aside(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit all spooled rows."""
        self._spool.write(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete them."""
        self._spool.discard(messages)


if hasattr(ds, "DataSourceStreamArrowWriter"):

    class TableStreamWriter(ds.DataSourceStreamArrowWriter):  # type: ignore[misc]
        """Writes batches of a stream, each once; PySpark 4.1 and later."""

        def __init__(self, storage: Storage, options: Mapping[str, Any], schema: Any, overwrite: bool) -> None:
            written = with_output_mode(options, "complete" if overwrite else "append")
            self._spool = _Spool(storage, written, schema, "append", streams=True)

        def write(self, iterator: Iterator[pa.RecordBatch]) -> Spooled:
            """Put the rows of a task aside."""
            return self._spool.put_aside(iterator)

        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
            """Commit all spooled rows, unless the table holds the batch."""
            self._spool.write(messages, batchId)

        def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
            """Delete them."""
            self._spool.discard(messages)
