"""Rows that are looked up and sent on as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.spark.arrow import arrow_schema
from hudi_fast.spark.writing.key_lookup import places_of_keys
from hudi_fast.spark.writing.packed_rows import KeyLookup, packed_rows, sent_schema
from hudi_fast.spark.writing.sent_batches import unpacking_as
from hudi_fast.spark.writing.tasks import Answer
from hudi_fast.spark.writing.workload import Buckets, InsertPlace
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.file_group import BUCKET, STORED_ROW
from tests.spark.spark_writes import PARTS, batch, frame

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
}


def received(spark: Any, path: Path, rows: pa.Table, key: str, only_stored: bool) -> list[pa.RecordBatch]:
    """What the tasks of a write get; new keys of p0 have two files, those of other partitions no place."""
    view = load_state(Storage(path)).view
    slices = [one for name in ("p0", "p1") for one in latest_slices(view, name)]
    plan = draft_plan(load_state(Storage(path)), WriteOptions.from_options(OPTIONS), rows.schema)
    buckets = Buckets(slices, [2, 0], 3, {"p0": InsertPlace(0.0, (), 2, 2, 3, 0.5)}, uncounted=4)
    df = frame(spark, rows).withColumn("path", F.col("part"))
    added = ["path"]
    if key != "id":
        df, added = df.withColumn(key, F.nullif(F.col("id"), F.lit(""))), [key, "path"]
    find = partial(places_of_keys, plan, slices)
    schema = sent_schema(arrow_schema(df.drop(*added)))
    lookup = KeyLookup(key, "path", added, find, only_stored)
    sent = packed_rows(df.sparkSession, df, schema, plan, buckets, lookup)
    assert sent.rdd.getNumPartitions() == 3
    got: list[pa.RecordBatch] = []

    def keep(batches: Iterator[pa.RecordBatch]) -> Answer:
        got.extend(batches)
        return Answer()

    values = pa.array([row[0] for row in sent.collect()], pa.binary())
    unpacking_as(schema, keep)(iter([pa.RecordBatch.from_arrays([values], ["bytes"])]))
    return got


@pytest.mark.parametrize("key", ["id", "key"])
@pytest.mark.parametrize("only_stored", [False, True])
def test_a_batch_has_the_rows_of_one_bucket(spark, tmp_path, only_stored, key):
    hf.write(batch(range(40)), tmp_path / "t", OPTIONS)
    rows = batch([*range(20, 60), *range(50, 60)], ts=200)
    ids = pa.array(["" if one == "k0021" else one for one in rows["id"].to_pylist()])
    rows = rows.set_column(rows.column_names.index("id"), "id", ids)
    got = received(spark, tmp_path / "t", rows, key, only_stored)
    placed = [row for one in got for row in one.to_pylist()]
    bucket_of: dict[str, set[int]] = {}
    for row in placed:
        bucket_of.setdefault(row["id"], set()).add(row[BUCKET])
        stored = row["number"] < 40 and row["part"] in ("p0", "p1") and row["id"]
        if stored:
            assert row[BUCKET] == ("p0", "p1").index(row["part"])
            assert row[STORED_ROW] == row["number"] // PARTS
        else:
            assert row[STORED_ROW] is None
            assert row[BUCKET] in ((2, 3) if row["part"] == "p0" else (4, 5, 6))
    assert all(len(numbers) == 1 for numbers in bucket_of.values())  # rows of one key stay together
    assert all(len(set(one.column(BUCKET).to_pylist())) == 1 for one in got)
    sent = [{name: row[name] for name in rows.column_names} for row in placed]
    kept = [
        row
        for row in rows.to_pylist()
        if not only_stored or (row["number"] < 40 and row["part"] in ("p0", "p1")) or not row["id"]
    ]
    order = itemgetter("id", "v")
    assert sorted(sent, key=order) == sorted(kept, key=order)
