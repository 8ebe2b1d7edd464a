"""Every plan makes the files of one process: full ones, and a last one that the next write fills.

Modules: hudi_fast.spark.writing.routed, hudi_fast.spark.writing.unrouted_plans, hudi_fast.writing.assign.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.spark.writing.unrouted_plans import BulkFiles
from tests.spark.spark_writes import frame
from tests.support.rows import assert_same_rows

FULL = 3_000
"""Rows of a file of the maximum size."""

ROW_BYTES = 180
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.copyonwrite.record.size.estimate": str(ROW_BYTES),
    "hoodie.parquet.max.file.size": str(FULL * ROW_BYTES),
    "hoodie.parquet.small.file.limit": str(FULL * ROW_BYTES * 2 // 3),
    "hudi_fast.driver.max.bytes": "1000",
}
SORTS = {
    "none": {},
    "partition sort": {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"},
    "global sort": {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
    "repartition": {"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION"},
    "repartition and sort": {"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION_AND_SORT"},
    "sort columns": {"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "ts,id"},
    "combine": {"hoodie.combine.before.insert": "true"},
}


def rows_of(start: int, count: int, parts: int = 1) -> pa.Table:
    """Rows of about 160 bytes in a file."""
    numbers = np.arange(start, start + count)
    noise = np.random.default_rng(start).bytes(count * 140).hex()
    return pa.table(
        {
            "id": [f"k{number:07d}" for number in numbers],
            "part": [f"p{number % parts}" for number in numbers],
            "ts": pa.array(numbers % 1000, pa.int64()),
            "noise": [noise[280 * at : 280 * at + 280] for at in range(count)],
        }
    )


def counts(path: Path) -> dict[str, list[int]]:
    """Rows of each base file by partition, the fullest file first."""
    found: dict[str, list[int]] = {}
    for row in hf.HudiTable.open(path).files().to_pylist():
        found.setdefault(row["partition"], []).append(row["rows"])
    return {name: sorted(each, reverse=True) for name, each in sorted(found.items())}


def assert_like(found: dict[str, list[int]], expected: dict[str, list[int]]) -> None:
    """The same files, but for the chance of a hash."""
    assert found.keys() == expected.keys()
    for name, each in found.items():
        assert each == pytest.approx(expected[name], abs=4 * math.sqrt(FULL)), (found, expected)


def assert_few(path: Path) -> None:
    """At most a tenth more files than the rows fill, and one per partition."""
    found = counts(path)
    asked = sum(math.ceil(sum(each) / FULL) for each in found.values())
    assert sum(map(len, found.values())) <= asked * 1.1 + len(found), found


def written(data: Any, path: Path, settings: dict[str, str], *more: Any) -> dict[str, list[int]]:
    """The files after one write, or after several."""
    for each in (data, *more):
        hf.write(each, path, settings)
    return counts(path)


@pytest.mark.long("insert-routed", "insert-fused", "insert_overwrite-routed", "insert_overwrite-broadcast")
@pytest.mark.parametrize("plan", ["broadcast", "fused", "routed"])
@pytest.mark.parametrize("operation", ["insert", "upsert", "insert_overwrite"])
def test_every_plan_makes_the_files_of_one_process(
    spark: Any, tmp_path: Path, operation: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**TABLE, "hoodie.datasource.write.operation": operation, "hudi_fast.plan": plan}
    if plan == "broadcast":
        settings["hudi_fast.driver.max.bytes"] = str(1 << 30)
    first, second = rows_of(0, 15_000, parts=2), rows_of(15_000, 5_000, parts=2)
    here = written(first, tmp_path / "here", settings)
    assert here == {"p0": [FULL, FULL, 1500], "p1": [FULL, FULL, 1500]}
    assert_like(written(frame(spark, first), tmp_path / "there", settings), here)
    here = written(second, tmp_path / "here", settings)
    assert_like(written(frame(spark, second), tmp_path / "there", settings), here)
    columns = first.column_names
    assert_same_rows(
        hf.HudiTable.open(tmp_path / "there").to_arrow(columns),
        hf.HudiTable.open(tmp_path / "here").to_arrow(columns),
        key=["id"],
    )


def test_an_upsert_of_stored_rows_plans_the_files_of_the_new_ones(spark: Any, tmp_path: Path) -> None:
    settings = {**TABLE, "hudi_fast.plan": "routed"}
    first, second = rows_of(0, 2 * FULL), rows_of(500, 2 * FULL)
    here = written(first, tmp_path / "here", settings, second)
    assert here == {"p0": [FULL, FULL, 500]}
    assert_like(written(frame(spark, first), tmp_path / "there", settings, frame(spark, second)), here)


def test_five_inserts_write_as_many_bytes_as_one_process(spark: Any, tmp_path: Path) -> None:
    settings = {**TABLE, "hoodie.datasource.write.operation": "insert", "hudi_fast.plan": "routed"}
    size = {"here": 0, "there": 0}
    for number in range(5):
        rows = rows_of(number * 7_000, 7_000)
        size["here"] += hf.write(rows, tmp_path / "here", settings).bytes_written
        size["there"] += hf.write(frame(spark, rows), tmp_path / "there", settings).bytes_written
    assert size["there"] == pytest.approx(size["here"], rel=0.1)  # keys in another order compress less
    assert len(counts(tmp_path / "there")["p0"]) == len(counts(tmp_path / "here")["p0"])


@pytest.mark.long(
    "few-combine",
    "few-repartition",
    "few-partition sort",
    "few-sort columns",
    "few-repartition and sort",
)
@pytest.mark.parametrize("sort", list(SORTS))
@pytest.mark.parametrize("tasks", ["few", "counted"])
def test_a_bulk_insert_makes_few_files_whatever_the_tasks_of_its_input(
    spark: Any, tmp_path: Path, tasks: str, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**TABLE, **SORTS[sort], "hoodie.datasource.write.operation": "bulk_insert"}
    if tasks == "counted":  # as with more cores
        monkeypatch.setattr("hudi_fast.spark.writing.engine.few_tasks", lambda df: 0)
    rows = rows_of(0, 12_000, parts=20)
    hf.write(frame(spark, rows, tasks=13), tmp_path / "parts", settings)
    assert_few(tmp_path / "parts")
    one = {**settings, "hoodie.datasource.write.partitionpath.field": ""}
    hf.write(frame(spark, rows, tasks=13), tmp_path / "one", one)
    assert_few(tmp_path / "one")
    for name in ("parts", "one"):
        found = hf.HudiTable.open(tmp_path / name).to_arrow(rows.column_names)
        assert_same_rows(found, rows, key=["id"])


def test_a_bulk_insert_of_rows_that_lie_as_asked_moves_none(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_fast.spark.writing.engine.few_tasks", lambda df: 0)
    settings = {**TABLE, "hoodie.datasource.write.operation": "bulk_insert"}
    rows = rows_of(0, 12_000, parts=6)
    placed = frame(spark, rows).repartition(6, "part")
    assert hf.write(placed, tmp_path / "placed", settings).plan == "direct"
    assert hf.write(frame(spark, rows, tasks=9), tmp_path / "mixed", settings).plan == "routed"
    assert [len(each) for each in counts(tmp_path / "placed").values()] == [1] * 6
    given = {**settings, "hoodie.bulkinsert.shuffle.parallelism": "5"}
    result = hf.write(frame(spark, rows, tasks=9), tmp_path / "given", given)
    assert (result.plan, result.files_written) == ("direct", 30)  # as Apache Hudi does


def test_the_size_of_a_row_is_measured_in_every_plan(spark: Any, tmp_path: Path) -> None:
    """Apache Hudi takes 1024 bytes for the rows of a first write."""
    rows = pa.table({"id": pa.array(range(20_000)), "part": ["p"] * 20_000, "ts": pa.array(range(20_000))})
    settings = {key: value for key, value in TABLE.items() if "estimate" not in key}
    settings["hoodie.parquet.max.file.size"] = str(1 << 20)
    for plan in ("local", "driver", "broadcast", "fused", "routed"):
        chosen = {**settings, "hudi_fast.plan": plan} if plan != "local" else settings
        if plan in ("driver", "broadcast"):
            chosen["hudi_fast.driver.max.bytes"] = str(1 << 30)
        data = rows if plan == "local" else frame(spark, rows)
        assert written(data, tmp_path / plan, chosen) == {"p": [20_000]}, plan


@given(
    partitions=st.lists(st.integers(1, 50_000), min_size=1, max_size=30),
    full=st.integers(1_000, 20_000),
    wanted=st.integers(1, 100),
)
def test_ranges_of_an_order_make_few_files(partitions: list[int], full: int, wanted: int) -> None:
    asked = sum(-(-count // full) for count in partitions)
    files = BulkFiles(asked, len(partitions), -(-sum(partitions) // full))
    tasks = files.range_tasks(wanted)
    bounds = {sum(partitions) * number // tasks for number in range(1, tasks)} | {0, *np.cumsum(partitions).tolist()}
    pieces = np.diff(sorted(bounds))
    assert sum(-(-pieces // math.ceil(full * 1.1))) <= files.limit
