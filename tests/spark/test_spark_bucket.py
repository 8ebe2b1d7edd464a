"""The bucket index on Spark: every plan leaves the table that the local engine leaves, with the same file groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.index.buckets import bucket_of_keys, first_hashing
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.spark.writing.unrouted_plans import lanes_of_buckets
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame
from tests.support.rows import assert_same_rows

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "5",
    "hoodie.compact.inline": "false",
}
PARTITIONED = {**TABLE, "hoodie.datasource.write.partitionpath.field": "part"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
CONSISTENT = {**MOR, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
CHANGES = batch([*range(60, 130), *range(5), 70], ts=[*[200] * 70, *[50] * 5, 300], deletes=[3, 75, 120], seed=1)
STEPS = [
    Step("bulk_insert", batch(range(80))),
    Step("upsert", CHANGES),
    Step("insert", batch(range(130, 150))),
    Step("delete", batch([*range(40, 50), 5000])),
]
OVERWRITES = [Step("insert_overwrite", batch([400, 404, 401], ts=7)), Step("upsert", batch([400, 401, 2], ts=8))]


def groups(path) -> set[tuple[str, str]]:
    files = hf.HudiTable.open(path).files()
    return set(zip(files["partition"].to_pylist(), [name[:8] for name in files["file_id"].to_pylist()], strict=True))


@pytest.mark.smoke("cow")
@pytest.mark.parametrize(
    ("plan", "ran", "options", "steps"),
    [
        ("routed", "bucketed", PARTITIONED, [*STEPS, *OVERWRITES]),
        ("fused", "fused", {**PARTITIONED, **MOR}, STEPS),
        pytest.param("routed", "bucketed", {**TABLE, **MOR}, STEPS, marks=pytest.mark.long),
        ("routed", "bucketed", {**PARTITIONED, **CONSISTENT}, STEPS),
    ],
    ids=["cow", "mor by partition", "mor without partitions", "consistent"],
)
def test_every_operation_in_turn(spark, tmp_path, plan, ran, options, steps):
    given = 0 if len(steps) > len(STEPS) else 1  # one case makes its table by Spark
    written = assert_same_writes(spark, tmp_path, plan, options, steps, ran, given=given)
    assert groups(written) == groups(tmp_path / "local")


def test_large_input_goes_by_bucket_until_there_are_table_partitions_for_all_tasks(spark, tmp_path):
    options = {**PARTITIONED, "hoodie.datasource.write.operation": "bulk_insert", "hudi_fast.driver.max.bytes": "1"}
    ran = [hf.write(frame(spark, batch(range(start, start + 8))), tmp_path, options).plan for start in (0, 8)]
    assert ran == ["bucketed", "fused"]
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 16


def test_ranges_are_split_and_merged_by_tasks_and_get_new_groups_when_they_are_overwritten(spark, tmp_path):
    options = {**PARTITIONED, **CONSISTENT, "hoodie.bucket.index.max.num.buckets": "20"}
    rows = batch(range(80))
    hf.write(frame(spark, rows), tmp_path, options)
    table = hf.HudiTable.open(tmp_path)
    before, there = groups(tmp_path), table.to_arrow()
    small = {**options, "hoodie.parquet.max.file.size": "100"}
    tracker = spark.sparkContext.statusTracker()
    last = max(tracker.getJobIdsForGroup(None), default=-1)
    done = table.services.cluster(small, spark=spark)
    assert done.rows == 80
    assert max(tracker.getJobIdsForGroup(None), default=-1) > last
    assert len(groups(tmp_path)) > len(before)
    assert not groups(tmp_path) & before
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), there, ignore=["_hoodie_file_name"])
    split = groups(tmp_path)
    new = batch([1, 2, 3, 4], ts=9)
    part = new["part"].to_pylist()
    hf.write(frame(spark, new), tmp_path, {**options, "hoodie.datasource.write.operation": "insert_overwrite"})
    assert not {one for one in groups(tmp_path) if one[0] in part} & split
    hf.write(frame(spark, batch([2, 90], ts=10)), tmp_path, options)
    found = hf.HudiTable.open(tmp_path).to_arrow()["id"].to_pylist()
    assert sorted(found) == ["k0001", "k0002", "k0003", "k0004", "k0090"]  # each partition got one of the new rows


def test_a_bucket_has_one_lane_and_lanes_share_the_buckets():
    settings = BucketSettings("SIMPLE", 16, ("id",))
    keys, paths = pa.array([f"k{n}" for n in range(4000)]), pa.array([f"p{n % 3}" for n in range(4000)])
    lanes = lanes_of_buckets(settings, {}, paths, keys, 4)
    assert np.bincount(lanes, minlength=4).min() > 700
    assert lanes_of_buckets(settings, {}, paths[::-1], keys[::-1], 4)[::-1].tolist() == lanes.tolist()
    refused = lanes_of_buckets(settings, {}, pa.array([None, "p0"]), pa.array(["k", None]), 4)
    assert refused[0] == 0


def test_lanes_follow_the_number_of_buckets_of_a_partition():
    """A bucket is in one lane, also in a partition with a number of buckets of its own."""
    settings = BucketSettings("SIMPLE", 16, ("id",), overrides=((r"p1", 3),))
    keys = pa.array([f"k{n}" for n in range(300)])
    lanes = lanes_of_buckets(settings, {}, pa.array(["p1"] * 300), keys, 64)
    buckets = bucket_of_keys(keys, settings, "p1")
    assert sorted(set(buckets.tolist())) == [0, 1, 2]
    assert len({*zip(buckets.tolist(), lanes.tolist(), strict=True)}) == 3


def test_lanes_follow_the_ranges_that_a_partition_has():
    settings = BucketSettings("CONSISTENT_HASHING", 4, ("id",))
    keys = pa.array([f"k{n}" for n in range(300)])
    paths = pa.array(["p"] * 300)
    begun = lanes_of_buckets(settings, {}, paths, keys, 4)
    assert begun.tolist() == lanes_of_buckets(settings, {"p": first_hashing("p", 4)}, paths, keys, 4).tolist()
    assert len(set(lanes_of_buckets(settings, {"p": first_hashing("p", 1)}, paths, keys, 4).tolist())) == 1
