"""The steps that :mod:`benchmarks.scale.planning` measures.

A step prepares what a caller has before the call and returns the call; each call begins with opening the table. What
the call returns is printed beside the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf
from benchmarks.scale.tables import OPTIONS, TableSize, partition_name, rows_of
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.scan import plan_scan
from hudi_fast.services.clean_plan import schedule_clean
from hudi_fast.services.clustering.cluster_plan import schedule_clustering
from hudi_fast.services.compact_plan import plan_compaction
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import (
    CommitMetadata,
    WriteStat,
    decode_commit_metadata,
    encode_commit_metadata,
)
from hudi_fast.view.table_state import commits_newest_first
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["QUERIES", "SERVICES", "SPARK", "WRITES"]

Call = Callable[[], object]
Step = Callable[[str, TableSize], Call]

ROWS, TOUCHED = 1000, 10
ONE_POSITION = (pc.field("value") >= 0) & (pc.field("value") < 1000)


# ---- queries


def open_table(path: str, size: TableSize) -> Call:
    return lambda: f"{len(open_state(Storage(path)).timeline.instants)} instants"


def no_filter(path: str, size: TableSize) -> Call:
    return _planned(path, None)


def one_partition(path: str, size: TableSize) -> Call:
    return _planned(path, pc.field("part") == partition_name(size.partitions // 2))


def ten_partitions(path: str, size: TableSize) -> Call:
    return _planned(path, pc.field("part").isin(_touched(size)))


def data_filter(path: str, size: TableSize) -> Call:
    """Matches one file group of each partition."""
    return _planned(path, ONE_POSITION)


def data_filter_without_match(path: str, size: TableSize) -> Call:
    return _planned(path, pc.field("value") < 0)


def both_filters(path: str, size: TableSize) -> Call:
    return _planned(path, ONE_POSITION & pc.field("part").isin(_touched(size)))


def lazy_scan(path: str, size: TableSize) -> Call:
    """A lazy scan, and the plan of a query that pushes a partition filter into it."""
    filter_ = pc.field("part") == partition_name(0)

    def call() -> str:
        scan = hf.HudiTable.open(path).scan()
        return f"{len(scan._plan(None, filter_).slices)} slices"

    return call


def _planned(path: str, filter_: pc.Expression | None) -> Call:
    def call() -> str:
        plan = plan_scan(open_state(Storage(path)), filter=filter_)
        return f"{len(plan.slices)} slices"

    return call


# ---- writes


def draft(path: str, size: TableSize) -> Call:
    """The draft of an upsert: everything before rows are read."""

    def call() -> str:
        session = _session(path, size.options())
        return draft_plan(session.state, session.settings.write, _rows(size).schema).operation

    return call


def upsert(path: str, size: TableSize) -> Call:
    """A whole upsert of 1000 new rows into ten partitions."""
    rows = _rows(size)

    def call() -> str:
        done = hf.write(rows, path, {**size.options(), "hoodie.parquet.small.file.limit": "0"})
        return f"{done.inserts} inserts, {done.files_written} files"

    return call


def overwrite(path: str, size: TableSize) -> Call:
    """An upsert that changes one row of each file group of ten partitions, so that a clean has something to delete."""
    rows = pa.concat_tables(
        [rows_of(position, 1, name) for name in _touched(size) for position in range(size.per_partition)]
    )

    def call() -> str:
        done = hf.write(rows, path, size.options())
        return f"{done.updates} updates, {done.files_written} files"

    return call


def bodies(path: str, size: TableSize) -> Call:
    """Encode and decode the metadata of a commit with 10 000 write stats."""
    stats: dict[str, list[WriteStat]] = {}
    for _, commit in commits_newest_first(open_state(Storage(path))):
        for name, found in commit.partition_to_write_stats.items():
            stats[name] = found
    some = list(stats.items())[: -(-10_000 // size.per_partition)]
    commit = CommitMetadata(dict(some), {"schema": "{}"}, "UPSERT")

    def call() -> str:
        body = encode_commit_metadata(commit, 2)
        return f"{sum(1 for _ in decode_commit_metadata(body).write_stats())} stats, {len(body) >> 10} KiB"

    return call


# ---- services


def clean_by_commits(path: str, size: TableSize) -> Call:
    return _clean(path, {**OPTIONS, "hoodie.clean.commits.retained": "1"})


def clean_by_versions(path: str, size: TableSize) -> Call:
    return _clean(
        path,
        {
            **OPTIONS,
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        },
    )


def _clean(path: str, options: Mapping[str, Any]) -> Call:
    def call() -> str:
        planned = schedule_clean(_session(path, options), if_due=False, dry_run=True)
        return "nothing to delete" if planned is None else f"{sum(map(len, planned.plan.files.values()))} files"

    return call


def cluster(path: str, size: TableSize) -> Call:
    def call() -> str:
        options = {**OPTIONS, "hoodie.clustering.plan.strategy.max.num.groups": str(size.groups)}
        planned = schedule_clustering(_session(path, options), dry_run=True)
        return "no group" if planned is None else f"{len(planned.plan.groups)} groups, {planned.file_groups} slices"

    return call


def compact(path: str, size: TableSize) -> Call:
    def call() -> str:
        state = open_state(Storage(path))
        plan = plan_compaction(state, _later(state.timeline.newest_time), Settings.from_options(OPTIONS))
        return f"{len(plan.operations)} slices"

    return call


# ---- Spark


def spark_no_filter(path: str, size: TableSize) -> Call:
    return _spark(path, None, None)


def spark_one_partition(path: str, size: TableSize) -> Call:
    return _spark(path, f"part = '{partition_name(0)}'", None)


def spark_where_one_partition(path: str, size: TableSize) -> Call:
    return _spark(path, None, f"part = '{partition_name(0)}'")


def spark_where_no_file(path: str, size: TableSize) -> Call:
    return _spark(path, None, "value < 0")


def _spark(path: str, filter_: str | None, where: str | None) -> Call:
    """From ``hf.read`` to the tasks of a query: files are listed, filtered and divided among them."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def call() -> str:
        frame = hf.read(spark, path, filter=filter_)
        if where is not None:
            frame = frame.where(where)
        return f"{frame.select('id')._jdf.queryExecution().toRdd().getNumPartitions()} tasks"

    return call


# ---- shared


def _session(path: str, options: Mapping[str, Any]) -> TableSession:
    return open_session(Storage(path), Settings.from_options(options))


def _touched(size: TableSize) -> list[str]:
    return [partition_name(number) for number in range(0, size.partitions, max(1, size.partitions // TOUCHED))][
        :TOUCHED
    ]


def _rows(size: TableSize) -> pa.Table:
    names = _touched(size)
    each = ROWS // len(names)
    return pa.concat_tables(
        [rows_of(9999, each, name, first=int(time.time()) + number * each) for number, name in enumerate(names)]
    )


def _later(newest: str | None) -> str:
    return str(int(newest or "0") + 1_000_000)


QUERIES: dict[str, Step] = {
    "open the table": open_table,
    "scan, no filter": no_filter,
    "scan, one partition": one_partition,
    "scan, ten partitions": ten_partitions,
    "scan, data filter, one file of each partition": data_filter,
    "scan, data filter, no match": data_filter_without_match,
    "scan, both filters": both_filters,
    "lazy scan, then one partition": lazy_scan,
}
WRITES: dict[str, Step] = {
    "draft of an upsert": draft,
    "upsert of 1000 new rows into 10 partitions": upsert,
    "upsert into every file of 10 partitions": overwrite,
    "commit of 10 000 write stats, encoded and decoded": bodies,
}
SERVICES: dict[str, Step] = {
    "plan a clean, by commits": clean_by_commits,
    "plan a clean, by versions": clean_by_versions,
    "plan a clustering": cluster,
    "plan a compaction": compact,
}
SPARK: dict[str, Step] = {
    "hf.read, filter: one partition": spark_one_partition,
    "hf.read, where: one partition": spark_where_one_partition,
    "hf.read, where: no file": spark_where_no_file,
    "hf.read, no filter": spark_no_filter,
}
