"""A program: every plan against the local engine, reading and a streamer, on whatever PySpark runs it.

Arguments: a scratch folder; ``connect`` for a session of Spark Connect; ``more`` for other pairs of a plan and what it
does. Fails, or prints the module of the session's class and the release of Spark.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame
from tests.spark.stream_engine import streamed_rows
from tests.spark.stream_files import assert_changes, assert_streams
from tests.support.rows import assert_same_rows

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
TIMES = {
    "hoodie.datasource.write.recordkey.field": "number,v",
    "hoodie.datasource.write.partitionpath.field": "part:SIMPLE,at:TIMESTAMP",
    "hoodie.datasource.write.keygenerator.type": "CUSTOM",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd HH",
    "hoodie.keygen.timebased.timezone": "UTC",
}
GLOBAL = {"hoodie.index.type": "GLOBAL_BLOOM"}
UNPARTITIONED = {"hoodie.datasource.write.partitionpath.field": ""}
CHANGES = batch([*range(80, 140), *range(80, 90), 5], ts=[*[200] * 60, *[300] * 10, 1], deletes=[81, 95, 130])
MOVES = batch(range(60, 120), ts=400, deletes=[70], shift=1)


class Complaints(logging.Handler):
    """Log records of listeners that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def recorded_tags(spark: SparkSession) -> list[str]:
    """Each tag that the session gets from now on."""
    tags: list[str] = []
    add = spark.addTag
    spark.addTag = lambda tag: tags.append(tag) or add(tag)  # type: ignore[method-assign]
    return tags


def main(folder: Path, connect: bool, more_pairs: bool) -> None:
    """Writes, reads, and a refusal."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.python.daemon.module": "hudi_fast.spark.daemon",
    }
    if connect:
        spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    else:
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    complaints, tags = Complaints(), recorded_tags(spark) if connect else []
    logging.getLogger("hudi_fast.monitoring").addHandler(complaints)
    first, changes = Step("upsert", batch(range(100))), Step("upsert", CHANGES)
    # Each plan changes rows. The shared session tries the other pairs.
    runs = [
        ("driver", {}, [first, changes]),
        ("broadcast", {}, [first, changes]),
        ("fused", TIMES, [first, changes]),
        ("routed", GLOBAL, [first, Step("upsert", MOVES)]),
    ]
    if more_pairs:
        runs = [
            ("fused", {}, [first, Step("insert_overwrite", batch([0, 4], ts=7))]),
            ("routed", {}, [first, changes]),
            ("routed", UNPARTITIONED, [first, Step("delete", batch(range(90, 105)))]),
        ]
    for number, (plan, more, steps) in enumerate(runs):
        given = 0 if plan == "driver" else 1  # one table is Spark's from its first write
        path = assert_same_writes(spark, folder / str(number), plan, {**TABLE, **more}, steps, given=given)
        if more:  # what Spark reads does not depend on the plan of the write
            assert_same_rows(collect(hf.read(spark, path)), hf.HudiTable.open(path).to_arrow(), ignore=())
    if not more_pairs:
        rest(spark, folder)
        assert streamed_rows(spark, folder / "streamer") == [5, 5, 4]
    assert complaints.lines == []
    if connect:
        assert [tag for tag in tags if tag.startswith("hudi_fast:_execute_")]
        assert not spark.getTags()
    print(type(spark).__module__, spark.version)
    spark.stop()


def rest(spark: SparkSession, folder: Path) -> None:
    """Sorted rows, columns that are in paths alone, a refusal, streams."""
    sorts = {**TABLE, "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
    bulk = Step("bulk_insert", batch(range(100)))
    assert_same_writes(spark, folder / "sorted", "fused", sorts, [bulk], ran="direct")
    hf.write(batch(range(3)), folder / "t", {**TABLE, "hoodie.datasource.write.drop.partition.columns": "true"})
    assert_same_rows(collect(hf.read(spark, folder / "t")), hf.HudiTable.open(folder / "t").to_arrow(), ignore=())
    bad = frame(spark, batch(range(20))).withColumn("id", F.lit(None).cast("string"))
    refused = False
    try:
        hf.write(bad, folder / "bad", {**TABLE, "hudi_fast.plan": "fused"})
    except hf.InvalidDataError:
        refused = True
    assert refused
    assert not (folder / "bad").exists()
    assert_streams(spark, folder / "stream")
    assert_changes(spark, folder / "stream")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "connect" in sys.argv, "more" in sys.argv)
