"""Rows that Python reads from files, with record key and partition path, for tasks that give each row its bucket.

::

    splits of files ─► Python: rows + key + path ─┬─────────────────────────────────────► function of packed_rows.py
                                                  └─► bytes by lane ─► shuffle ─► lane ─►
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import hash_keys
from hudi_fast.keys.key_generator import partition_paths, record_keys
from hudi_fast.schema.conform import conform
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.incoming.scan_tasks import ScanTasks, rows_in_tasks
from hudi_fast.spark.writing.key_lookup import Lanes
from hudi_fast.spark.writing.routing import addresses
from hudi_fast.spark.writing.sent_batches import ADDRESS, BYTES, binary_of, grouped, lots, sending_errors, unpacked
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["BatchRows", "KeyedScan"]

_PACKED = f"{ADDRESS} int, {BYTES} binary"

Numbers = npt.NDArray[np.int32]
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class BatchRows(Protocol):
    """Rows to which a function over Arrow batches can be applied, such as a DataFrame."""

    def mapInArrow(self, function: Any, schema: Any) -> Any:
        """A DataFrame of the results."""
        ...


@dataclass(frozen=True, slots=True)
class _Keys:
    """Adds keys and paths to rows; picklable.

    Attributes:
        plan: the write.
        rows: columns of the rows.
        key: name of the column of record keys.
        path: name of the column of partition paths.
    """

    plan: WritePlan
    rows: pa.Schema
    key: str
    path: str

    @property
    def schema(self) -> pa.Schema:
        """The rows with key and path."""
        return pa.schema([*self.rows, pa.field(self.key, pa.string()), pa.field(self.path, pa.string())])

    def added(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        config, count = self.plan.key_config, 0
        roots = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
        for batch in batches:
            names = set(batch.schema.names) & roots
            stored = pa.schema([one for one in self.plan.input_schema if one.name in names])
            rows = conform(pa.Table.from_batches([batch]).select(stored.names), stored)
            paths = partition_paths(config, rows) if stored.names else None
            path = pa.repeat("", batch.num_rows) if paths is None else single_chunk(paths).cast(pa.string())
            if config.record_key_fields:
                key = single_chunk(record_keys(config, rows)).cast(pa.string())
            else:  # only spreads the rows
                key = pa.array(np.arange(count, count + batch.num_rows)).cast(pa.string())
            count += batch.num_rows
            yield pa.RecordBatch.from_arrays([*batch.columns, key, path], schema=self.schema)

    def lanes_of(self, rows: pa.Table, lanes: Lanes) -> Numbers:
        assert lanes.ranges is not None
        keys = varlen_buffers(single_chunk(rows.column(self.key)))
        hashes = np.empty(rows.num_rows, dtype=np.uint64)
        hash_keys(keys.offsets, keys.data, hashes)
        paths = single_chunk(rows.column(self.path).dictionary_encode())
        known = [lanes.ranges.get(name, (zlib.crc32(name.encode()), 1)) for name in paths.dictionary.to_pylist()]
        codes = np.asarray(paths.indices)
        first = np.array([one for one, _ in known], dtype=np.uint64)[codes]
        count = np.array([one for _, one in known], dtype=np.uint64)[codes]
        found: Numbers = ((first + hashes % count) % np.uint64(lanes.tasks)).astype(np.int32)
        return found


@dataclass(frozen=True, slots=True)
class KeyedScan:
    """Rows of files with two more columns.

    Attributes:
        spark: the session.
        files: the rows.
        plan: the write.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        tasks: maximum number of tasks that read; 0 for Spark's own number.
    """

    spark: Any
    files: FileScan
    plan: WritePlan
    key: str
    path: str
    tasks: int = 0

    def mapInArrow(self, function: Function, schema: str) -> Any:
        """The results of a function over batches of the rows with key and path."""
        read, keys = self._tasks(), self._keys
        return read.numbers.mapInArrow(read.reading(lambda batches: function(keys.added(batches))), schema)

    def in_lanes(self, lanes: Lanes) -> BatchRows:
        """The rows in the lanes of their partition."""
        if lanes.ranges is None:
            return KeyedScan(self.spark, self.files, self.plan, self.key, self.path, lanes.tasks)
        keys, to_lane = self._keys, np.array(addresses(lanes.tasks), dtype=np.int32)

        def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in lots(keys.added(batches)):
                parts = list(grouped(rows, keys.lanes_of(rows, lanes), lanes.tasks))
                yield _message(to_lane[[lane for lane, _ in parts]].tolist(), [part for _, part in parts])

        def failed(data: pa.Buffer) -> pa.RecordBatch:
            return _message([int(to_lane[0])], [data])

        read = self._tasks()
        work = read.reading(sending_errors(self.spark, self.plan, pack, failed))
        sent = read.numbers.mapInArrow(work, _PACKED).repartition(lanes.tasks, ADDRESS).select(BYTES)
        return _SentRows(sent, keys.schema)

    @property
    def _keys(self) -> _Keys:
        return _Keys(self.plan, self.files.schema, self.key, self.path)

    def _tasks(self) -> ScanTasks:
        return rows_in_tasks(self.spark, self.files, self.tasks or len(self.files.tasks))


@dataclass(frozen=True, slots=True)
class _SentRows:
    """Rows that were sent as bytes.

    Attributes:
        sent: a DataFrame with one column of bytes.
        schema: of the rows.
    """

    sent: Any
    schema: pa.Schema

    def mapInArrow(self, function: Function, schema: str) -> Any:
        """The results of a function over batches of :attr:`schema`."""
        kind = self.schema
        return self.sent.mapInArrow(lambda batches: function(unpacked(batches, kind)), schema)


def _message(places: list[int], parts: list[pa.Buffer]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(places, pa.int32()), binary_of(parts)], names=[ADDRESS, BYTES])
