"""A stream changes hands between Apache Hudi's sink and ours; its source reads our commits as ours does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.spark_api.streaming.sink import stream_reader, stream_writer
from tests.peer.client import RealHudi

COLUMNS = "id string, part string, ts long, number long"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.compact.inline.max.delta.commits": "2",
}


def put_batch(folder: Path, batch: int) -> None:
    numbers = list(range(10 * batch, 10 * batch + 10))
    rows = {
        "id": [f"k{number}" for number in numbers],
        "part": [f"p{number % 2}" for number in numbers],
        "ts": [batch] * 10,
        "number": numbers,
    }
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(rows), folder / f"{batch}.parquet")
    os.utime(folder / f"{batch}.parquet", (1_700_000_000 + batch,) * 2)


def numbers_in(path: Path) -> list[int]:
    return sorted(hf.HudiTable.open(path).to_arrow(columns=["number"])["number"].to_pylist())


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_a_stream_changes_hands_and_no_batch_is_lost_or_doubled(
    hudi_12: RealHudi, spark: Any, tmp_path: Path, kind: str
) -> None:
    source, table = tmp_path / "in", tmp_path / "t"
    settings = {**OPTIONS, "hoodie.datasource.write.table.type": kind}

    def we_stream(checkpoint: str) -> None:
        files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1").parquet(str(source))
        where = str(tmp_path / checkpoint)
        stream_writer(files, table, settings, trigger={"availableNow": True}, checkpoint=where).awaitTermination()

    put_batch(source, 0)
    hudi_12.stream_in(source, COLUMNS, table, settings, tmp_path / "hudi-1")
    assert numbers_in(table) == list(range(10))
    put_batch(source, 1)
    we_stream("ours-1")  # from the first file on: what Hudi committed is known
    assert numbers_in(table) == list(range(20))
    put_batch(source, 2)
    hudi_12.stream_in(source, COLUMNS, table, settings, tmp_path / "hudi-2")
    assert numbers_in(table) == list(range(30))
    put_batch(source, 3)
    we_stream("ours-1")
    assert numbers_in(table) == list(range(40))
    assert sorted(hudi_12.read(table)["number"].to_pylist()) == list(range(40))


@pytest.mark.long
def test_both_sources_read_the_same_rows_and_keep_the_same_offsets(
    hudi_12: RealHudi, spark: Any, tmp_path: Path
) -> None:
    source, table = tmp_path / "in", tmp_path / "t"
    found: list[int] = []
    hf.register_data_source(spark)

    def we_read() -> list[int]:
        found.clear()
        writer = stream_reader(spark, table).writeStream
        writer = writer.foreachBatch(lambda rows, _: found.extend(one.number for one in rows.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "ours")).trigger(availableNow=True)
        writer.start().awaitTermination()
        return sorted(found)

    for batch in range(2):
        put_batch(source, batch)
        hf.sink(table, OPTIONS)(spark.read.schema(COLUMNS).parquet(str(source / f"{batch}.parquet")), batch)
        theirs = sorted(hudi_12.stream_out(table, tmp_path / "hudi")["number"].to_pylist())
        assert theirs == list(range(10 * batch + 10))  # its files are those of all batches so far
        assert we_read() == list(range(10 * batch, 10 * batch + 10))
    ends = [(tmp_path / side / "offsets" / "1").read_text().splitlines()[-1] for side in ("ours", "hudi")]
    assert json.loads(ends[0]) == json.loads(ends[1])


@pytest.mark.smoke
def test_our_stream_goes_on_from_the_checkpoint_of_apache_hudis_source(
    hudi_12: RealHudi, spark: Any, tmp_path: Path
) -> None:
    source, table, log = tmp_path / "in", tmp_path / "t", tmp_path / "log"

    def put(batch: int) -> list[int]:
        put_batch(source, batch)
        hf.sink(table, OPTIONS)(spark.read.schema(COLUMNS).parquet(str(source / f"{batch}.parquet")), batch)
        return list(range(10 * batch, 10 * batch + 10))

    def we_read() -> list[int]:
        found: list[int] = []
        hf.stream_changes(
            spark,
            table,
            lambda rows, _: found.extend(one.number for one in rows.collect()),
            checkpoint=log,
            trigger={"availableNow": True},
        ).awaitTermination()
        return sorted(found)

    first, second = put(0), put(1)
    assert sorted(hudi_12.stream_out(table, log)["number"].to_pylist()) == [*first, *second]
    third = put(2)
    assert we_read() == third
    assert we_read() == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_reads_what_complete_and_update_batches_left(
    hudi_12: RealHudi, spark: Any, tmp_path: Path, kind: str
) -> None:
    source = tmp_path / "in"
    settings = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    del settings["hoodie.datasource.write.operation"]
    for batch in range(2):
        put_batch(source, batch)
    for mode in ("complete", "update"):
        files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1").parquet(str(source))
        newest = files.groupBy("part").agg({"number": "max", "ts": "max"})
        newest = newest.selectExpr("part as id", "part", "`max(ts)` as ts", "`max(number)` as number")
        where = str(tmp_path / f"log-{mode}")
        query = stream_writer(
            newest,
            tmp_path / mode,
            settings,
            output_mode=mode,
            trigger={"availableNow": True},
            checkpoint=where,
        )
        query.awaitTermination()
        assert sorted(hudi_12.read(tmp_path / mode)["number"].to_pylist()) == [18, 19]
        assert numbers_in(tmp_path / mode) == [18, 19]
        hudi_12.write(pa.table({"id": ["p0"], "part": ["p0"], "ts": [9], "number": [90]}), tmp_path / mode, settings)
        assert numbers_in(tmp_path / mode) == [19, 90]
