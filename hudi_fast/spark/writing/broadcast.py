"""The broadcast plan: sends few rows to every task; each task writes the table partitions that it owns.

Instead of a shuffle the driver groups the rows by partition and assigns partitions to tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.merging.row_buffer import CollectedRows
from hudi_fast.schema.conform import conform
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.routing import pack_bins
from hudi_fast.spark.writing.tasks import Answer, run_tasks, task_token, write_partition
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["run_broadcast"]


def run_broadcast(spark: Any, plan: WritePlan, rows: pa.Table) -> list[Answer]:
    """Assign the partitions of ``rows`` to tasks that write them; returns the tasks' results."""
    named = pa.schema([field for field in plan.input_schema if field.name in rows.column_names])
    paths = partition_paths(plan.key_config, conform(rows.select(named.names), named))
    names, codes = paths.dictionary.to_pylist(), np.asarray(paths.indices, dtype=np.int32)
    weights = {name: int(count) for name, count in zip(names, np.bincount(codes, minlength=len(names)), strict=True)}
    tasks = max(1, min(len(names), parallelism(spark)))
    bins = pack_bins(weights, tasks)
    owners = np.array([bins[name] for name in names], dtype=np.int32)[codes] if names else codes
    parts = [_ipc(rows.filter(pa.array(owners == number))) for number in range(tasks)]
    shared = spark.sparkContext.broadcast(parts) if getattr(spark, "_sc", None) is not None else None
    numbers = spark.range(tasks, numPartitions=tasks)
    work = _work(plan, parts if shared is None else shared)
    try:
        return run_tasks(numbers, plan, work)
    finally:
        if shared is not None:
            shared.destroy()


def _work(plan: WritePlan, parts: Any) -> Any:
    """``parts``: the bytes of each task's rows, or a broadcast variable of them."""

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        token = task_token()
        stats: list[WriteStat] = []
        seen: set[str] = set()
        sequence = 0
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            table = pa.ipc.open_stream(getattr(parts, "value", parts)[number]).read_all()
            for name, rows in _grouped(plan, table):
                written, sequence = write_partition(plan, name, CollectedRows(rows), token, sequence)
                stats += written
                seen.add(name)
        return Answer(stats, frozenset(seen))

    return work


def _grouped(plan: WritePlan, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    named = pa.schema([field for field in plan.input_schema if field.name in table.column_names])
    paths = partition_paths(plan.key_config, conform(table.select(named.names), named))
    codes = np.asarray(paths.indices)
    for number, name in enumerate(paths.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == number)
        if len(rows):
            yield name, table.take(pa.array(rows))


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
