"""Files of numbered rows as the source of a stream: one file is one batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

import hudi_fast as hf
from tests.support.small_tables import options, table_rows

__all__ = ["COLUMNS", "assert_changes", "assert_streams", "numbered", "put_file", "stream_of", "to_the_end"]

COLUMNS = "id string, part string, ts long, number long"


def numbered(numbers: Any, ts: int) -> pa.Table:
    """A row for each number: ``id``, ``part``, ``ts``, ``number``."""
    each = list(numbers)
    return pa.table(
        {
            "id": pa.array([f"k{number:06d}" for number in each], pa.string()),
            "part": pa.array([f"p{number % 2}" for number in each], pa.string()),
            "ts": pa.array([ts] * len(each), pa.int64()),
            "number": pa.array(each, pa.int64()),
        }
    )


def patiently(run: Callable[[], Any]) -> Any:
    """What ``run`` returns. Spark gives a process of Python ten seconds to start, and a busy machine takes more."""
    for left in (2, 1, 0):
        try:
            return run()
        except Exception as error:  # Py4J, Spark and Spark Connect have classes of their own
            if left == 0 or "failed to connect back" not in str(error):
                raise
    raise AssertionError


def to_the_end(writer: Any, *target: str) -> Any:
    """Run a query over all that there is."""

    def run() -> Any:
        query = writer.trigger(availableNow=True).start(*target)
        query.awaitTermination()
        return query

    return patiently(run)


def put_file(folder: Path, batch: int, rows: pa.Table) -> None:
    """Add a file; files are taken in the order of their times, which follow the numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{batch:05d}"
    pq.write_table(rows, hidden)
    os.utime(hidden, (1_700_000_000 + batch,) * 2)
    hidden.rename(folder / f"{batch:05d}.parquet")


def stream_of(spark: Any, folder: Path) -> Any:
    """The files as a streaming DataFrame, one in a batch."""
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1").parquet(str(folder))


def assert_streams(spark: Any, folder: Path) -> None:
    """The sink writes every batch once in this session, and goes on where it stopped."""
    table, kind = folder / "t", {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    for batch in range(2):
        put_file(folder / "in", batch, numbered(range(5 * batch, 5 * batch + 10), batch))
        sink = hf.sink(table, {**options(), **kind})
        writer = stream_of(spark, folder / "in").writeStream.foreachBatch(sink).trigger(availableNow=True)
        patiently(writer.option("checkpointLocation", str(folder / "checkpoint")).start).awaitTermination()
    assert sorted(one[-1] for one in table_rows(table).values()) == list(range(15))
    assert hf.HudiTable.open(table).history()["operation"].to_pylist() == ["UPSERT"] * 2


def assert_changes(spark: Any, folder: Path) -> None:
    """The commits that :func:`assert_streams` left are copied, one a batch; a batch that failed comes again."""
    sink = hf.sink(folder / "copy", options())

    def copy(rows: Any, batch: int) -> None:
        sink(rows.select("id", "part", "ts", "number"), batch)

    def fail(rows: Any, batch: int) -> None:
        if batch:
            raise RuntimeError("told to fail")
        copy(rows, batch)

    for each, said in ((fail, "told to fail"), (copy, "")):
        start = partial(
            hf.stream_changes,
            spark,
            folder / "t",
            each,
            {"hudi_fast.stream.max.commits": "1"},
            checkpoint=folder / "checkpoint of changes",
            trigger={"availableNow": True},
        )
        query = patiently(start)
        failure = ""
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            failure = str(error)
        assert (said in failure) if said else not failure, failure
    assert table_rows(folder / "copy") == table_rows(folder / "t")
    assert len(hf.HudiTable.open(folder / "copy").history()) == 2
