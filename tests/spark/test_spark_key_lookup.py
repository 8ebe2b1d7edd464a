"""Tagging by lookup in the partition: shares of tasks, repeated keys, files that cannot be read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.spark.arrow import session_conf
from hudi_fast.spark.writing import routed
from hudi_fast.spark.writing.key_lookup import by_lanes, lanes_of_partitions
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.spark.spark_writes import PARTS, batch, frame

PARTITIONED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
}
UNPARTITIONED = {**PARTITIONED, "hoodie.datasource.write.partitionpath.field": ""}
ROUTED = {"hudi_fast.plan": "routed"}
LOOKUPS = ["packed", "numbers"]


@pytest.fixture
def lookup(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How rows go on from a lookup: as bytes, or in the JVM beside the number that Python returns."""
    monkeypatch.setattr(routed, "packs_rows", lambda _: request.param == "packed")


def completed(path: Path) -> list[str]:
    return [one.requested for one in load_state(Storage(path)).timeline.completed() if one.action == "commit"]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 10_000), min_size=1, max_size=30), st.integers(1, 40))
def test_every_partition_has_lanes_in_proportion_to_its_rows(rows: dict[str, int], tasks: int) -> None:
    lanes = lanes_of_partitions(rows, [], tasks)
    assert lanes is not None
    assert lanes.ranges is not None
    assert set(lanes.ranges) == set(rows)
    total = sum(rows.values())
    for name, (first, count) in lanes.ranges.items():
        assert 0 <= first < tasks
        assert 1 <= count <= tasks
        assert abs(count - tasks * rows[name] / total) <= 1


def test_slices_that_many_lanes_would_read_are_joined_instead(tmp_path: Path) -> None:
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    view = load_state(Storage(tmp_path / "t")).view
    slices = [one for name in ("p0", "p1") for one in latest_slices(view, name)]
    assert lanes_of_partitions({"p0": 1000, "p1": 1000}, slices, 32) is not None  # 16 lanes each
    assert lanes_of_partitions({"p0": 1000, "p1": 1000}, slices, 40) is None
    assert lanes_of_partitions({"new": 1000}, [], 400) is not None


@pytest.mark.parametrize(
    ("rows", "tasks", "inputs", "shuffled"),
    [
        ({"p0": 1000}, 2, 8, False),
        ({"p0": 1000, "p1": 50}, 2, 2, False),
        ({"p0": 1000, "p1": 1000}, 2, 8, True),  # each lane would read both partitions instead of one
        ({"p0": 1000}, 2, 1, True),  # one task would look all keys up
        ({"p0": 1000}, 2, 3, True),  # one of two tasks would compute two thirds of the rows
        ({"p0": 1000}, 2, 0, True),
        ({"p0": 1000}, 16, 64, False),
    ],
)
def test_rows_are_shuffled_to_lanes_if_that_spares_reads_or_shares_work(tmp_path, rows, tasks, inputs, shuffled):
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    view = load_state(Storage(tmp_path / "t")).view
    slices = [one for name in rows for one in latest_slices(view, name)]
    lanes = lanes_of_partitions(rows, slices, tasks, inputs)
    assert lanes is not None
    assert (lanes.ranges is not None) == shuffled


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    ("lookup", "operation"),
    [
        ("packed", "upsert"),
        ("numbers", "delete"),
        pytest.param("packed", "delete", marks=pytest.mark.long),
        pytest.param("numbers", "upsert", marks=pytest.mark.long),
    ],
    indirect=["lookup"],
)
def test_rows_of_a_large_partition_are_looked_up_in_the_tasks_that_compute_them(
    spark, tmp_path, monkeypatch, operation
):
    settings = PARTITIONED | ROUTED | {"hoodie.datasource.write.operation": operation}
    hf.write(batch([*range(0, 200, PARTS), 1, 2, 3]), tmp_path / "t", PARTITIONED)
    used = []

    def seen(rows, key, path, lanes):
        used.append(lanes)
        return by_lanes(rows, key, path, lanes)

    monkeypatch.setattr(routed, "by_lanes", seen)
    changed = [*range(100, 300, PARTS), 2, 3, 7]
    rows = batch([*changed, *changed], ts=[*[200] * len(changed), *[300] * len(changed)])
    hf.write(frame(spark, rows, tasks=4), tmp_path / "t", settings)
    assert [one.ranges for one in used] == [None]
    expected = {**dict.fromkeys([*range(0, 200, PARTS), 1, 2, 3], 100), **dict.fromkeys(changed, 300)}
    if operation == "delete":
        expected = {number: ts for number, ts in expected.items() if number not in changed}
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in found) == sorted(
        (f"k{number:04d}", ts) for number, ts in expected.items()
    )


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    ("lookup", "tasks"),
    [("packed", "4"), ("numbers", "4"), *(pytest.param(one, "100", marks=pytest.mark.long) for one in LOOKUPS)],
    indirect=["lookup"],
)
def test_rows_of_one_key_find_the_same_slice(spark, tmp_path, tasks):
    """With many tasks keys are joined with stored keys, with few they are looked up."""
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    rows = batch([*range(20, 60), *range(20, 60)], ts=[*[200] * 40, *[300] * 40])
    settings = PARTITIONED | ROUTED | {"hoodie.upsert.shuffle.parallelism": tasks}
    result = hf.write(frame(spark, rows), tmp_path / "t", settings)
    assert (result.updates, result.inserts) == (20, 20)
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "ts"]).to_pylist()
    assert sorted(row["id"] for row in found) == [f"k{number:04d}" for number in range(60)]
    assert {row["ts"] for row in found if row["id"] >= "k0020"} == {300}


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    ("lookup", "settings"),
    [
        ("packed", PARTITIONED),
        ("numbers", UNPARTITIONED),
        pytest.param("packed", UNPARTITIONED, marks=pytest.mark.long),
        pytest.param("numbers", PARTITIONED, marks=pytest.mark.long),
    ],
    indirect=["lookup"],
)
def test_a_key_in_several_file_groups_is_changed_in_each(spark, tmp_path, settings):
    """An insert does not look keys up, so it may store them again."""
    inserts = settings | {"hoodie.datasource.write.operation": "insert", "hoodie.parquet.small.file.limit": "0"}
    for start in (0, 10, 20):
        hf.write(batch(range(start, start + 20)), tmp_path / "t", inserts)
    rows = batch([*range(5, 35), *range(5, 35)], ts=[*[200] * 30, *[300] * 30], deletes=[15, 16])
    hf.write(frame(spark, rows), tmp_path / "t", settings | ROUTED)
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "ts"]).to_pylist()
    stored = Counter(number for start in (0, 10, 20) for number in range(start, start + 20) if number not in (15, 16))
    assert Counter(row["id"] for row in found) == {f"k{number:04d}": count for number, count in stored.items()}
    assert {row["ts"] for row in found if "k0005" <= row["id"] < "k0035"} == {300}


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize(
    ("lookup", "kind"),
    [
        ("packed", "MERGE_ON_READ"),
        ("numbers", "COPY_ON_WRITE"),
        pytest.param("packed", "COPY_ON_WRITE", marks=pytest.mark.long),
        pytest.param("numbers", "MERGE_ON_READ", marks=pytest.mark.long),
    ],
    indirect=["lookup"],
)
def test_a_key_in_several_rows_of_a_file_is_changed_in_each(spark, tmp_path, kind):
    settings = PARTITIONED | {"hoodie.datasource.write.table.type": kind}
    inserts = settings | {"hoodie.datasource.write.operation": "insert"}
    hf.write(batch([*range(40), *range(0, 40, 3), *range(0, 40, 6)]), tmp_path / "t", inserts)
    rows = batch([*range(20, 60), *range(20, 60)], ts=[*[200] * 40, *[300] * 40], deletes=[24, 25])
    hf.write(frame(spark, rows), tmp_path / "t", settings | ROUTED)
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "ts"]).to_pylist()
    stored = Counter([*range(60), *range(0, 40, 3), *range(0, 40, 6)])
    assert Counter(row["id"] for row in found) == {
        f"k{number:04d}": count for number, count in stored.items() if number not in (24, 25)
    }
    assert {row["ts"] for row in found if row["id"] >= "k0020"} == {300}


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize("lookup", LOOKUPS, indirect=True)
def test_text_may_reach_python_with_large_offsets(spark, tmp_path):
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    with session_conf(spark, {"spark.sql.execution.arrow.useLargeVarTypes": "true"}):
        result = hf.write(frame(spark, batch(range(20, 60), ts=200)), tmp_path / "t", PARTITIONED | ROUTED)
    assert (result.updates, result.inserts) == (20, 20)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["id"]).num_rows == 60


@pytest.mark.usefixtures("lookup")
@pytest.mark.parametrize("lookup", ["packed", pytest.param("numbers", marks=pytest.mark.long)], indirect=True)
def test_a_base_file_that_cannot_be_read_is_named(spark, tmp_path):
    hf.write(batch(range(40)), tmp_path / "t", PARTITIONED)
    damaged = next((tmp_path / "t/p1").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    before = completed(tmp_path / "t")
    with pytest.raises(hf.CorruptTableError, match=damaged.name):
        hf.write(frame(spark, batch(range(30, 50), ts=200)), tmp_path / "t", PARTITIONED | ROUTED)
    assert completed(tmp_path / "t") == before
