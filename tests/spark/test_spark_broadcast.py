"""Few rows, whose file groups the driver chooses and tasks write: the table is that of the local engine.

Modules: hudi_fast.spark.writing.broadcast.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.compute import field

import hudi_fast as hf
from tests.spark.programs import run_program
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame
from tests.spark.test_spark_keys import MOVING
from tests.spark.test_spark_plans import PARTITIONED, SMALL_FILES, TABLE
from tests.support.rows import assert_same_rows

INDEXES: dict[str, dict[str, str]] = {
    "bloom": {"hoodie.index.type": "BLOOM"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "moving": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
    "records": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    "moving_records": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
    },
    "records_of_partitions": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
STEPS = [
    Step("upsert", batch(range(200))),
    Step("upsert", MOVING),
    Step("upsert", batch([*range(0, 150, 5), *range(300, 330)], ts=1000, deletes=[5, 305], shift=2)),
    Step("delete", batch(range(0, 90, 2), shift=3)),
    Step("insert", batch(range(400, 420))),
]
_SOONER = {("bloom", "COPY_ON_WRITE"), ("moving", "MERGE_ON_READ"), ("records", "COPY_ON_WRITE")}
"""``make test-long`` tries the others."""


@pytest.fixture
def by_file_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file group is a unit of its own, and tasks make every lookup, however small the files are."""
    monkeypatch.setattr("hudi_fast.spark.writing.broadcast.PARTITION_BYTES", 0)
    monkeypatch.setattr("hudi_fast.spark.writing.broadcast.LOOKUP_BYTES", 0)
    monkeypatch.setattr("hudi_fast.writing.lookup.is_little", lambda *_: False)


@pytest.mark.usefixtures("by_file_group")
@pytest.mark.parametrize(
    ("index", "kind"),
    [
        pytest.param(index, kind, marks=() if (index, kind) in _SOONER else pytest.mark.long)
        for index, kind in itertools.product(INDEXES, TYPES)
    ],
)
def test_rows_by_file_group(spark: Any, tmp_path: Path, index: str, kind: str) -> None:
    options = {**PARTITIONED, **SMALL_FILES, **INDEXES[index], "hoodie.datasource.write.table.type": kind}
    assert_same_writes(spark, tmp_path, "broadcast", options, STEPS, given=1)


@pytest.mark.usefixtures("by_file_group")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind == TYPES[1] else ()) for kind in TYPES]
)
def test_a_table_without_partitions(spark: Any, tmp_path: Path, kind: str) -> None:
    options = {**TABLE, **SMALL_FILES, "hoodie.datasource.write.table.type": kind}
    assert_same_writes(spark, tmp_path, "broadcast", options, STEPS, given=1)


@pytest.mark.usefixtures("by_file_group")
@pytest.mark.parametrize(
    ("kind", "index"),
    [
        (TYPES[0], "bloom"),
        (TYPES[1], "moving"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in zip(TYPES, ("records", "simple"), strict=True)),
    ],
)
def test_statements(spark: Any, tmp_path: Path, kind: str, index: str) -> None:
    """A merge that inserts, an update that moves rows to another partition, a delete by condition."""
    options = {**PARTITIONED, **SMALL_FILES, **INDEXES[index], "hoodie.datasource.write.table.type": kind}
    source = batch([*range(150, 260, 3), *range(10)], ts=900, seed=2)
    for name, session in (("local", None), ("spark", spark)):
        path, forced = tmp_path / name, {} if session is None else {"hudi_fast.plan": "broadcast"}
        hf.write(batch(range(200)), path, options)
        given = {**options, **forced}
        rows = source if session is None else frame(spark, source)
        merge = hf.merge(session, path, rows, given).on("id")
        results = [
            merge.when_matched_update({"v": "source.v"}).when_not_matched_insert().execute(),
            hf.update(session, path, "number < 20" if session else field("number") < 20, {"part": "'p1'"}, given),
            hf.delete(session, path, "number >= 240" if session else field("number") >= 240, given),
        ]
        if session is not None:
            assert [one.plan for one in results] == 3 * ["broadcast"], [one.reason for one in results]
    found, expected = (hf.HudiTable.open(tmp_path / name).to_arrow() for name in ("spark", "local"))
    assert_same_rows(found, expected)


@pytest.mark.usefixtures("by_file_group")
def test_a_part_of_a_row_needs_a_stored_row(spark: Any, tmp_path: Path) -> None:
    hf.write(batch(range(50)), tmp_path / "t", {**PARTITIONED, **SMALL_FILES})
    part = pa.table({"id": ["k0001", "k9999"], "part": ["p1", "p3"], "ts": pa.array([500, 500], pa.int64())})
    options = {"hudi_fast.partial.update": "true", "hudi_fast.plan": "broadcast"}
    before = hf.HudiTable.open(tmp_path / "t").to_arrow()
    with pytest.raises(hf.InvalidDataError, match="does not hold, for example 'k9999'"):
        hf.write(frame(spark, part), tmp_path / "t", options)
    assert_same_rows(hf.HudiTable.open(tmp_path / "t").to_arrow(), before, ignore=())


def test_the_driver_of_a_cluster_leaves_large_files_to_tasks(java: str, tmp_path: Path) -> None:
    """The program prints, for each table: the plan, the tasks that wrote, and the base files that the driver opened."""
    lines = run_program("few_rows_on_cluster", tmp_path, seconds=600)
    found = {name: (plan, int(tasks), int(read)) for name, plan, tasks, read in map(str.split, lines)}
    assert found == {
        "unpartitioned": ("broadcast", 4, 0),
        "records": ("broadcast", 4, 0),
        "little": ("driver", 1, 2),
    }
