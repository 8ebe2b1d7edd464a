"""Records of the metadata table on Spark: the same files, byte for byte, as threads of one process write."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError
from hudi_fast.merging.slice_merge import slice_merge
from hudi_fast.metadata_table.layout import group_file_id
from hudi_fast.metadata_table.records import RECORD_SCHEMA
from hudi_fast.metadata_table.stat_values import indexed_columns
from hudi_fast.metadata_table.updates.groups import GroupTarget, GroupWriter
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_table
from hudi_fast.metadata_table.updates.produce_functions import apply_function
from hudi_fast.metadata_table.updates.runner import run_in_threads
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.spark.services.metadata import write_records
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state, table_schema
from hudi_fast.writing.threads import ThreadBackend
from tests.metadata_table.stored_metadata import clock_of, metadata_at, records, state_of
from tests.support.golden import Golden

PARTITIONS = {"record_index": 5, "column_stats": 2, "bloom_filters": 3, "files": 1}


def table_of(path: Path, rows: pa.Table | None = None) -> ProducerContext:
    """A table of these rows, or of 3000 in four partitions."""
    if rows is None:
        ids, parts = [f"k{number:05}" for number in range(3000)], [f"p{number % 4}" for number in range(3000)]
        rows = pa.table({"id": ids, "part": parts, "ts": pa.array([1] * 3000, pa.int64())})
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    hf.write(rows, path, settings)
    state = load_state(Storage(path))
    schema = table_schema(state)
    assert schema is not None
    columns = tuple(indexed_columns(schema, "V2", True))
    return ProducerContext(state.storage, state.config, state.view, slice_merge(state), None, schema, columns)


def writer_of(context: ProducerContext, path: Path) -> GroupWriter:
    targets = {
        name: tuple(GroupTarget(group_file_id(name, group)) for group in range(groups))
        for name, groups in PARTITIONS.items()
    }
    path.mkdir()
    return GroupWriter(Storage(path), context.config, "00000000000000000", RECORD_SCHEMA, targets, building=True)


def files_below(path: Path) -> dict[str, int]:
    return {str(one.relative_to(path)): one.stat().st_size for one in sorted(path.rglob("*.hfile"))}


def test_tasks_write_what_threads_write(spark: Any, tmp_path: Path) -> None:
    context = table_of(tmp_path / "t")
    written = {}
    for name, runner in (("threads", run_in_threads), ("tasks", partial(write_records, spark))):
        writer = writer_of(context, tmp_path / name)
        sources = [one for partition in PARTITIONS for one in sources_of_table(context, partition, "0" * 17)]
        stats = runner(sources, writer)
        written[name] = sorted((stat.path, stat.num_writes, stat.file_size) for stat in stats)
    assert written["tasks"] == written["threads"]
    assert sum(rows for path, rows, _ in written["tasks"] if path.startswith("record_index")) == 3000
    assert files_below(tmp_path / "tasks") == files_below(tmp_path / "threads")


@pytest.mark.parametrize(
    ("parts", "text"),
    [(["p0", "p0"], "holds 1 rows more than distinct keys"), (["p0", "p1"], "would get 1 keys twice")],
)
def test_refusals_of_tasks_are_the_callers(spark: Any, tmp_path: Path, parts: list[str], text: str) -> None:
    rows = pa.table({"id": ["k", "k"], "part": parts, "ts": pa.array([1, 1], pa.int64())})
    context = table_of(tmp_path / "t", rows)
    sources = sources_of_table(context, "record_index", "0" * 17)
    with pytest.raises(InvalidDataError, match=text):
        write_records(spark, sources, writer_of(context, tmp_path / "out"))


def test_tasks_compact_what_threads_compact(spark: Any, golden: Callable[[str], Golden], tmp_path: Path) -> None:
    path = golden("mor_v9_record_index").table
    shutil.copytree(path, tmp_path / "copy")
    before = records(path)
    tracker = spark.sparkContext.statusTracker()
    jobs = len(tracker.getJobIdsForGroup(None))
    assert compact_metadata(metadata_at(path), clock_of(state_of(path)), SparkBackend(spark).map_groups)
    assert len(tracker.getJobIdsForGroup(None)) == jobs + 1
    assert compact_metadata(
        metadata_at(tmp_path / "copy"), clock_of(state_of(tmp_path / "copy")), ThreadBackend().map_groups
    )
    assert records(path) == records(tmp_path / "copy") == before
    table = metadata_at(path)
    assert all(not one.log_files for partition in table.partitions for one in table.groups(partition))


def test_little_work_stays_with_the_driver(spark: Any, tmp_path: Path) -> None:
    context = table_of(tmp_path / "t")
    writer = writer_of(context, tmp_path / "out")
    sources = sources_of_table(context, "files", "0" * 17)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    assert len(SparkBackend(spark, record_bytes=1 << 20).write_records(sources, writer)) == 1
    assert len(tracker.getJobIdsForGroup(None)) == before


def test_functions_of_expression_indexes_give_what_spark_gives(spark: Any) -> None:
    texts = ["  aBc ", "xxyx", "a€b𝄞c", "", None, "Straße"]
    days = [0, -400_000, 19_782, None, 1, 2]
    seconds = [0, -1, 1_709_251_199, None, 5, 6]
    calls: list[tuple[str, str, dict[str, str], Any]] = [
        ("lower", "t", {}, F.lower("t")),
        ("upper", "t", {}, F.upper("t")),
        ("length", "t", {}, F.length("t")),
        ("trim", "t", {}, F.trim("t")),
        ("rtrim", "t", {}, F.rtrim("t")),
        ("ltrim", "t", {}, F.ltrim("t")),
        ("year", "d", {}, F.year("d")),
        ("month", "d", {}, F.month("d")),
        ("day", "d", {}, F.dayofmonth("d")),
        ("date_add", "d", {"days": "3"}, F.date_add("d", 3)),
        ("from_unixtime", "s", {}, F.from_unixtime("s")),
        ("from_unixtime", "s", {"format": "dd.MM.yyyy"}, F.from_unixtime("s", "dd.MM.yyyy")),
    ]
    for at in (-7, -2, 0, 1, 3):
        calls += [
            ("substring", "t", {"pos": str(at), "len": str(count)}, F.substring("t", at, count)) for count in (0, 2, 9)
        ]
    columns = {"t": pa.array(texts), "d": pa.array(days, pa.int32()).cast(pa.date32()), "s": pa.array(seconds)}
    frame = spark.createDataFrame(list(zip(texts, days, seconds, strict=True)), "t string, n int, s bigint")
    frame = frame.withColumn("d", F.date_add(F.lit("1970-01-01").cast("date"), "n"))
    rows = frame.select(*[call[3].alias(f"c{number}") for number, call in enumerate(calls)]).collect()
    for number, (name, column, options, _) in enumerate(calls):
        found = apply_function(name, columns[column], options).to_pylist()
        assert found == [row[number] for row in rows], (name, options)
