"""Rows that Python reads from files, sent to the tasks of their table partitions as bytes.

::

    splits of files ─► Python: rows ─► partition path of each ─► an Arrow batch per partition ─► shuffle ─► task

Spark moves and sorts a few values instead of rows; the rows never enter the JVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.formats.varlen import single_chunk
from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.schema.conform import conform
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.incoming.scan_tasks import rows_in_tasks
from hudi_fast.spark.writing.routing import addresses
from hudi_fast.spark.writing.sent_batches import ADDRESS, BYTES, binary_of, grouped, lots, sending_errors
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["FEWEST_ROWS", "packed_partitions"]

_ORDER = "__hudi_fast_order"
_PACKED = f"{ADDRESS} int, {_ORDER} long, {BYTES} binary"

FEWEST_ROWS = 256
"""A batch of fewer rows, on the average, costs more than its rows would cost in the JVM."""


def packed_partitions(spark: Any, files: FileScan, plan: WritePlan, owners: Mapping[str, int], tasks: int) -> Any:
    """The rows of files, by table partition.

    Args:
        spark: the session.
        files: the rows.
        plan: the write.
        owners: the task of known partitions; the task of others follows from a hash of their path.
        tasks: number of tasks.

    Returns:
        A DataFrame with one column: Arrow bytes of rows of one partition. Each of its partitions is a task, and has the
        rows of a table partition one after the other.
    """
    numbers = {name: number for number, name in enumerate(owners)}
    known = dict(owners)
    to_task = np.array(addresses(tasks), dtype=np.int32)

    def place(path: str) -> tuple[int, int]:
        """The address of a partition, and its place among the partitions of a task."""
        if path in known:
            return int(to_task[known[path]]), numbers[path]
        hashed = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little") >> 1
        return int(to_task[hashed % tasks]), max(hashed, len(numbers))

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in lots(batches):
            names, parts = _by_partition(plan, rows)
            yield _message([place(name) for name in names], parts)

    def failed(data: pa.Buffer) -> pa.RecordBatch:
        return _message([(int(to_task[0]), -1)], [data])

    rows = rows_in_tasks(spark, files, len(files.tasks))
    work = rows.reading(sending_errors(spark, plan, pack, failed))
    sent = rows.numbers.mapInArrow(work, _PACKED).repartition(tasks, ADDRESS)
    return sent.sortWithinPartitions(_ORDER).select(BYTES)


def _by_partition(plan: WritePlan, rows: pa.Table) -> tuple[list[str], list[pa.Buffer]]:
    """Partition paths, and the rows of each as bytes."""
    roots = {name.split(".")[0] for name in plan.key_config.partition_fields}
    keyed = pa.schema([one for one in plan.input_schema if one.name in roots and one.name in rows.column_names])
    paths = single_chunk(partition_paths(plan.key_config, conform(rows.select(keyed.names), keyed)))
    names = paths.dictionary.to_pylist()
    parts = list(grouped(rows, np.asarray(paths.indices, dtype=np.int32), len(names)))
    return [names[number] for number, _ in parts], [part for _, part in parts]


def _message(places: list[tuple[int, int]], parts: list[pa.Buffer]) -> pa.RecordBatch:
    columns = [
        pa.array([address for address, _ in places], pa.int32()),
        pa.array([order for _, order in places], pa.int64()),
        binary_of(parts),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[ADDRESS, _ORDER, BYTES])
