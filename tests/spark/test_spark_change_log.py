"""Whatever moves the rows, the change logs are those of the local engine."""

import json

import pytest

import hudi_fast as hf
from hudi_fast.formats.avro.schema import META_FIELDS
from tests.spark.spark_writes import Step, assert_same_writes, batch
from tests.support.change_logs import logged, stats_by_instant

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
    "hoodie.metadata.enable": "false",
    "hoodie.table.cdc.enabled": "true",
}
MOR = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}


def logs(path):
    """For each commit, oldest first, what its change logs say, but for the instant."""
    return [
        sorted(json.dumps({**entry, "ts_ms": None}, sort_keys=True, default=str) for entry in logged(path, instant))
        for instant in stats_by_instant(path)
    ]


def image(text):
    """The row of an image, without meta columns, which some images have."""
    row = json.loads(text or "null")
    return row and {name: row[name] for name in row if name not in META_FIELDS}


def changes(path):
    """For each commit, oldest first, what a change query says of it."""
    answer = hf.HudiTable.open(path).cdc("earliest").to_pylist()
    found = {}
    for row in answer:
        text = json.dumps([row["op"], image(row["before"]), image(row["after"])], sort_keys=True)
        found.setdefault(row["ts_ms"], []).append(text)
    return [sorted(found[instant]) for instant in sorted(found)]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "plan", ["routed", *(pytest.param(one, marks=pytest.mark.long) for one in ("fused", "driver", "broadcast"))]
)
def test_every_plan_logs_the_same_changes(spark, tmp_path, plan):
    steps = [
        Step("upsert", batch(range(40))),
        Step("upsert", batch([*range(30, 50), 3], ts=[*[200] * 20, 50], deletes=[31, 35], seed=1)),
        Step("delete", batch(range(0, 40, 9))),
    ]
    remote = assert_same_writes(spark, tmp_path, plan, OPTIONS, steps)
    expected = changes(tmp_path / "local")
    assert changes(remote) == expected
    assert [len(entries) for entries in expected] == [40, 20, 5]
    assert any(logs(remote))


def test_a_compaction_by_tasks_logs_the_same_changes(spark, tmp_path):
    steps = [
        Step("upsert", batch(range(20))),
        Step("upsert", batch(range(5, 15), ts=200, deletes=[7, 11], seed=1)),
    ]
    remote = assert_same_writes(spark, tmp_path, "fused", {**OPTIONS, **MOR}, steps)
    hf.HudiTable.open(remote).services.compact(DUE, spark=spark)
    hf.HudiTable.open(tmp_path / "local").services.compact(DUE)
    expected = logs(tmp_path / "local")
    assert logs(remote) == expected
    assert [len(entries) for entries in expected] == [0, 0, 10]
