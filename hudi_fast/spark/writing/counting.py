"""Count the rows of a DataFrame before they are written.

::

    partition columns of the rows ─► rows per partition ─► driver ─► :class:`~hudi_fast.writing.profile.WorkloadProfile`
                                     and number of tasks

Counting evaluates the DataFrame once more, for its partition columns only. The counts decide only sizes, so a source
that returns other rows the second time is still written correctly. Where Python reads the files of the DataFrame it
counts their rows, too: in threads of the driver, if this is a local session, else in tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.formats.varlen import single_chunk
from hudi_fast.keys.key_generator import partition_paths
from hudi_fast.schema.conform import conform
from hudi_fast.spark.arrow import estimated_bytes, is_local, parallelism, reads_files, session_conf
from hudi_fast.spark.incoming.file_scan import FileScan, Split
from hudi_fast.spark.writing.columns import partition_text
from hudi_fast.spark.writing.tasks import results_in_tasks
from hudi_fast.spark.writing.workload import TASKS_PER_CORE
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.writing.dml_rows import ACTION, INSERT, PATH
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["count_changes", "count_pieces", "count_rows"]

_PATH, _NEW, _TASK = "__hudi_fast_path", "__hudi_fast_new", "__hudi_fast_task"
_ROWS, _FILES = "__hudi_fast_rows", "__hudi_fast_files"

_COUNTED_BYTES = 1 << 30
"""Estimated bytes of files for one task that counts their rows: it reads the partition columns only."""


def count_rows(df: Any, plan: WritePlan, files: FileScan | None = None) -> tuple[dict[str, int], int]:
    """The number of rows by partition path, and of the tasks that compute them.

    Rows whose partition path is refused are not counted. The tasks are counted in this evaluation: Spark may use more
    tasks for all columns. Trailing tasks without rows are not counted.

    Args:
        df: the rows, with the columns that the plan uses.
        plan: the write.
        files: the same rows, which Python reads.
    """
    if files is not None:
        pieces = _pieces_of_files(df.sparkSession, files, plan)
        return _sum_of(pieces), _tasks_with_rows(pieces)
    made = partition_text(df, plan.key_config, plan.input_schema)
    path = F.lit("") if made is None else made
    counted = df.select(path.alias(_PATH), F.spark_partition_id().alias(_TASK))
    settings: dict[str, str] = {}
    if reads_files(df):  # little work for each file: fewer tasks, and no plan to adapt
        tasks = max(parallelism(df.sparkSession) * TASKS_PER_CORE, (estimated_bytes(df) or 0) // _COUNTED_BYTES)
        counted = counted.coalesce(tasks)
        settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(tasks)}
    with session_conf(df.sparkSession, settings):
        found = counted.groupBy(_PATH).agg(F.count(F.lit(1)), F.max(_TASK)).collect()
    rows = {row[0]: row[1] for row in found if row[0] is not None}
    return {"": 0} | rows if made is None else rows, 1 + max((row[2] for row in found), default=-1)


def count_pieces(
    df: Any, plan: WritePlan, before_full: int, files: FileScan | None = None
) -> tuple[dict[str, int], int, int]:
    """The number of rows by partition path, of the tasks that compute them, and of the files if each task writes its
    own rows.

    Args:
        df: the rows, with the columns that the plan uses.
        plan: the write.
        before_full: number of rows after which a file is full.
        files: the same rows, which Python reads.
    """
    if files is not None:
        found_here = _pieces_of_files(df.sparkSession, files, plan)
        full_files = sum(-(-rows // before_full) for piece in found_here for rows in piece.values())
        return _sum_of(found_here), _tasks_with_rows(found_here), full_files
    text = partition_text(df, plan.key_config, plan.input_schema)
    counted = df.select((F.lit("") if text is None else text).alias(_PATH), F.spark_partition_id().alias(_TASK))
    pieces = counted.groupBy(_PATH, _TASK).agg(F.count(F.lit(1)).alias(_ROWS))
    full = F.ceil(F.col(_ROWS) / F.lit(before_full)).alias(_FILES)
    pieces = pieces.select(_PATH, _TASK, _ROWS, full)
    settings: dict[str, str] = {}
    if reads_files(df):  # no plan to adapt
        tasks = parallelism(df.sparkSession) * TASKS_PER_CORE
        settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(tasks)}
    with session_conf(df.sparkSession, settings):
        found = pieces.groupBy(_PATH).agg(F.sum(_ROWS), F.sum(_FILES), F.max(_TASK)).collect()
    rows = {row[0]: row[1] for row in found if row[0] is not None}
    files_written = sum(row[2] for row in found if row[0] is not None)
    return {"": 0} | rows if text is None else rows, 1 + max((row[3] for row in found), default=-1), files_written


def count_changes(df: Any, plan: WritePlan) -> tuple[dict[str, int], dict[str, int]]:
    """The number of changed rows, and of new rows among them, by partition path.

    Args:
        df: changed rows (:mod:`hudi_fast.writing.dml_rows`).
        plan: the write.
    """
    made = partition_text(df, plan.key_config, plan.input_schema)
    path = F.coalesce(F.col(PATH), F.lit("") if made is None else made)
    new = (F.col(ACTION) == F.lit(INSERT)).cast("long")
    counted = df.select(path.alias(_PATH), new.alias(_NEW)).groupBy(_PATH).agg(F.count(F.lit(1)), F.sum(_NEW)).collect()
    found = [row for row in counted if row[0] is not None]
    return {row[0]: row[1] for row in found}, {row[0]: row[2] for row in found}


def _pieces_of_files(spark: Any, files: FileScan, plan: WritePlan) -> list[dict[str, int]]:
    """The number of rows by partition path, of each task of a scan."""
    config = plan.key_config
    roots = {name.split(".")[0] for name in config.partition_fields}
    read = files.of_columns([name for name in files.schema.names if name in roots])
    keyed = pa.schema([one for one in plan.input_schema if one.name in read.schema.names])

    def count(splits: Sequence[Split]) -> dict[str, int]:
        found: dict[str, int] = {}
        for batch in read.read(splits):
            if not len(keyed):
                found[""] = found.get("", 0) + batch.num_rows
                continue
            paths = single_chunk(partition_paths(config, conform(pa.Table.from_batches([batch]), keyed)))
            names = paths.dictionary.to_pylist()
            for name, rows in zip(names, np.bincount(np.asarray(paths.indices), minlength=len(names)), strict=True):
                found[name] = found.get(name, 0) + int(rows)
        return found

    if is_local(spark):
        with ThreadPool(parallelism(spark)) as pool:
            return list(pool.map(count, read.tasks))
    weights = [sum(split.end - split.start for split in task) for task in read.tasks]
    return results_in_tasks(spark, read.tasks, weights, count)


def _sum_of(pieces: Sequence[dict[str, int]]) -> dict[str, int]:
    """The number of rows of all tasks by partition path."""
    found: dict[str, int] = {}
    for piece in pieces:
        for name, rows in piece.items():
            found[name] = found.get(name, 0) + rows
    return found


def _tasks_with_rows(pieces: Sequence[dict[str, int]]) -> int:
    """The number of tasks, without those at the end that have no rows."""
    return 1 + max((number for number, piece in enumerate(pieces) if piece), default=-1)
