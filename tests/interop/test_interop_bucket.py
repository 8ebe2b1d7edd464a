"""Bucket indexes in turns with Apache Hudi: both put a key into the same file group, and no key is there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.errors import CorruptTableError
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, trip_options, trips
from tests.peer.client import PeerError
from tests.support.metadata_checks import assert_metadata_true

pytestmark = pytest.mark.peer

_STRATEGIES = "org.apache.hudi.client.clustering"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4, "hoodie.metadata.enable": False}
CONSISTENT = {
    **BUCKETS,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": 2,
    "hoodie.bucket.index.max.num.buckets": 8,
}
RESIZED_BY_HUDI = {
    "hoodie.clustering.inline": True,
    "hoodie.clustering.inline.max.commits": 1,
    "hoodie.clustering.plan.strategy.class": f"{_STRATEGIES}.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": (
        f"{_STRATEGIES}.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.clustering.updates.strategy": (
        f"{_STRATEGIES}.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
    ),
    "hoodie.parquet.max.file.size": 1000,
}
KEYS = {"hoodie.datasource.write.keygenerator.type": "COMPLEX", "hoodie.datasource.write.recordkey.field": "id,seats"}


def table_of(request: pytest.FixtureRequest, peer: str, folder: Path, options: dict[str, Any]) -> MorSides:
    return MorSides(request.getfixturevalue(peer), folder / "trips", options, plainly=True)


def file_groups(sides: MorSides) -> list[tuple[str, str]]:
    files = sides.table.files().select(["partition", "file_id"]).to_pydict()
    return sorted(zip(*files.values(), strict=True))


def take_turns(sides: MorSides, first: Any, second: Any) -> pa.Table:
    """Writes of both sides, each meeting rows of the other; the rows at the end. ``first`` makes the table."""
    rows = trips(range(40))
    first(rows)
    sides.agree(rows)
    groups = file_groups(sides)
    for ts, write in ((3, second), (4, first), (5, second)):
        new = trips(range(ts * 8, 40 + ts * 4), ts=ts, note=f"write {ts}")
        rows = after_upsert(rows, new)
        write(new)
        assert file_groups(sides) == groups  # no bucket was made twice
    sides.agree(rows)
    gone = trips(range(0, 60, 7))
    second(gone, "delete")
    rows = after_delete(rows, gone)
    sides.agree(rows)
    return rows


@pytest.mark.parametrize(
    ("peer", "version", "kind", "ours_first"),
    [
        pytest.param("hudi_12", 9, "MOR", True, marks=pytest.mark.long),
        pytest.param("hudi_12", 9, "COW", False, marks=pytest.mark.long),
        ("hudi_015", 6, "MOR", False),
    ],
)
def test_simple_buckets_in_turns(peer, version, kind, ours_first, request, tmp_path) -> None:
    made = mor_options(version) if kind == "MOR" else trip_options(version)
    sides = table_of(request, peer, tmp_path, {**made, **BUCKETS})
    turns = [sides.we_write, sides.hudi_writes]
    rows = take_turns(sides, *(turns if ours_first else reversed(turns)))
    if kind == "MOR" and ours_first:
        sides.hudi_compacts()
        assert sides.merged_slices() == 0
        sides.agree(rows)


@pytest.mark.smoke("we first")
@pytest.mark.parametrize(
    "ours_first", [True, pytest.param(False, marks=pytest.mark.long)], ids=["we first", "Hudi first"]
)
def test_consistent_hashing_in_turns(ours_first, request, tmp_path) -> None:
    sides = table_of(request, "hudi_12", tmp_path, {**mor_options(9), **CONSISTENT})
    turns = [sides.we_write, sides.hudi_writes]
    rows = take_turns(sides, *(turns if ours_first else reversed(turns)))
    sides.we_compact()
    assert sides.merged_slices() == 0
    new = trips(range(20, 70), ts=9)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def test_buckets_that_we_split_and_merged_are_written_on_by_hudi(hudi_12, tmp_path) -> None:
    options = {**mor_options(9), **CONSISTENT, "hoodie.metadata.enable": True}
    sides = MorSides(hudi_12, tmp_path / "trips", options)
    rows = trips(range(40))
    sides.hudi_writes(rows)  # whose metadata table is kept up
    for ts, more in ((2, {"hoodie.parquet.max.file.size": 100}), (3, {"hoodie.bucket.index.merge.threshold": 1})):
        resized = sides.table.services.cluster({**sides.options, **more})
        assert resized.file_groups > 0
        groups = file_groups(sides)
        new = trips(range(ts, 50 * ts, ts), ts=ts)
        rows = after_upsert(rows, new)
        sides.hudi_writes(new)
        sides.agree(rows)
        assert set(groups) <= set(file_groups(sides))
    assert_metadata_true(sides.path)


def test_buckets_that_hudi_split_are_written_on_by_us(hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**mor_options(9), **CONSISTENT}, plainly=True)
    rows = trips(range(60))
    sides.hudi_writes(rows)
    new = trips(range(40, 90), ts=2)
    rows = after_upsert(rows, new)
    sides.hudi_writes(new, more=RESIZED_BY_HUDI)
    groups = file_groups(sides)
    assert len(groups) > 12  # of 4 in each of 3 partitions
    new = trips(range(0, 120, 2), ts=3)
    rows = after_upsert(rows, new)
    sides.we_write(new)
    assert set(groups) <= set(file_groups(sides))  # ranges without rows so far may get some now
    new = trips(range(0, 150, 5), ts=4)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


@pytest.mark.long
def test_buckets_that_hudi_planned_to_split_are_split_by_us(hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**mor_options(9), **CONSISTENT}, plainly=True)
    rows = trips(range(60))
    sides.we_write(rows)
    new = trips(range(40, 90), ts=2)
    rows = after_upsert(rows, new)
    planned = {"hoodie.clustering.inline": False, "hoodie.clustering.schedule.inline": True}
    sides.hudi_writes(new, more={**RESIZED_BY_HUDI, **planned, "hoodie.clustering.async.max.commits": 1})
    before = file_groups(sides)
    assert sides.operations().count("CLUSTER") == 0
    done = sides.table.services.cluster(sides.options, pending_only=True)
    assert done.file_groups > 0
    groups = file_groups(sides)
    assert len(groups) > len(before)
    for ts, write in ((3, sides.hudi_writes), (4, sides.we_write)):
        new = trips(range(0, 30 * ts, 2), ts=ts)
        rows = after_upsert(rows, new)
        write(new)
        assert set(groups) <= set(file_groups(sides))
    sides.agree(rows)


@pytest.mark.parametrize("hashed", ["id,seats", pytest.param("seats", marks=pytest.mark.long)])
def test_keys_of_several_fields_are_hashed_alike(hashed, hudi_12, tmp_path) -> None:
    options = {**mor_options(9), **BUCKETS, **KEYS, "hoodie.bucket.index.hash.field": hashed}
    sides = MorSides(hudi_12, tmp_path / "trips", options, key=("id",), plainly=True)
    rows = trips(range(40))
    sides.hudi_writes(rows)
    groups = file_groups(sides)
    new = trips(range(20, 55), ts=4)
    rows = after_upsert(rows, new)
    sides.we_write(new)
    sides.agree(rows)
    assert set(groups) <= set(file_groups(sides))
    new = trips(range(50, 60), ts=5)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def with_colons(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "id", pc.replace_substring(rows["id"], "-", ":"))


def test_keys_with_a_colon_are_hashed_as_the_release_did_that_made_the_table(hudi_015, tmp_path) -> None:
    sides = MorSides(hudi_015, tmp_path / "trips", {**mor_options(6), **BUCKETS}, plainly=True)
    rows = with_colons(trips(range(40)))
    sides.hudi_writes(rows)
    groups = file_groups(sides)
    new = with_colons(trips(range(20, 60), ts=4))
    rows = after_upsert(rows, new)
    sides.we_write(new)
    sides.agree(rows)
    assert file_groups(sides) == groups
    new = with_colons(trips(range(50, 70), ts=5))
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def test_rows_that_hudi_inserted_in_bulk_twice_are_told(hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**trip_options(9), **BUCKETS}, plainly=True)
    sides.hudi_writes(trips(range(20)), "bulk_insert")
    sides.hudi_writes(trips(range(20, 40)), "bulk_insert")
    with pytest.raises(CorruptTableError, match="two file groups for bucket"):
        sides.we_write(trips([1], ts=2))
    assert hf.HudiTable.open(sides.path).to_arrow().num_rows == 40


@pytest.mark.parametrize("operation", ["insert_overwrite", pytest.param("delete_partition", marks=pytest.mark.long)])
def test_partitions_of_ranges_that_we_replaced_are_written_on_by_hudi(operation, hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**mor_options(9), **CONSISTENT}, plainly=True)
    rows = trips(range(40))
    sides.hudi_writes(rows)
    new = trips(range(0, 30, 3), ts=2, note="instead")  # of one city
    sides.we_write(new, operation)
    rows = rows.filter(pc.not_equal(rows["city"], "city0"))
    if operation == "insert_overwrite":
        rows = pa.concat_tables([rows, new])
    sides.agree(rows)
    for ts, write in ((3, sides.hudi_writes), (4, sides.we_write)):
        new = trips(range(ts, 50, 2), ts=ts)
        rows = after_upsert(rows, new)
        write(new)
    sides.agree(rows)


SIZED = {"hoodie.bucket.index.partition.expressions": "city[01],6;x,1"}


@pytest.mark.parametrize("kind", [pytest.param("COW", marks=pytest.mark.long), "MOR"])
def test_bucket_counts_by_partition_that_we_stored_are_followed_by_hudi(kind, hudi_12, tmp_path) -> None:
    made = mor_options(9) if kind == "MOR" else trip_options(9)
    sides = MorSides(hudi_12, tmp_path / "trips", {**made, **BUCKETS}, plainly=True)
    rows = trips(range(60))
    sides.we_write(rows, more=SIZED)
    numbers = {city: {int(one[:8]) for part, one in file_groups(sides) if part == city} for city in ("city0", "city2")}
    assert (max(numbers["city0"]), max(numbers["city2"])) == (5, 3)
    groups = file_groups(sides)
    for ts, write in ((3, by_hudi), (4, MorSides.we_write)):
        new = trips(range(ts, 60, 2), ts=ts)
        rows = after_upsert(rows, new)
        write(sides, new)
        assert file_groups(sides) == groups
    sides.agree(rows)


def test_bucket_counts_that_hudi_changed_are_followed_by_us(hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**trip_options(9), **BUCKETS}, plainly=True)
    rows = trips(range(60))
    sides.hudi_writes(rows)
    name = sides.in_catalog()
    arguments = f"table => '{name}', overwrite => 'city[01],6;x,1', bucket_number => 4, dry_run => false"
    hudi_12.sql(f"CALL partition_bucket_index_manager({arguments})")
    groups = file_groups(sides)
    numbers = {city: {int(one[:8]) for part, one in groups if part == city} for city in ("city0", "city2")}
    assert (max(numbers["city0"]), max(numbers["city2"])) == (5, 3)
    for ts, write in ((3, MorSides.we_write), (4, by_hudi)):
        new = trips(range(ts, 60, 2), ts=ts)
        rows = after_upsert(rows, new)
        write(sides, new)
        assert file_groups(sides) == groups
    sides.agree(rows)


def by_hudi(sides: MorSides, rows: pa.Table) -> None:
    """A write of Hudi, whose tasks may stumble over each other when they read the counts for the first time."""
    try:
        sides.hudi_writes(rows)
    except PeerError as error:
        if "ConcurrentModificationException" not in str(error):
            raise
        sides.hudi_writes(rows)


@pytest.mark.parametrize(
    ("version", "kind"),
    [(9, "MOR"), pytest.param(9, "COW", marks=pytest.mark.long), pytest.param(6, "MOR", marks=pytest.mark.long)],
)
def test_simple_buckets_that_we_sorted_are_written_on_by_hudi(version, kind, hudi_12, tmp_path) -> None:
    made = mor_options(version) if kind == "MOR" else trip_options(version)
    sides = MorSides(hudi_12, tmp_path / "trips", {**made, **BUCKETS}, plainly=True)
    rows = trips(range(40))
    sides.hudi_writes(rows)
    new = trips(range(30, 50), ts=2)
    sides.we_write(new)
    rows = after_upsert(rows, new)
    before = file_groups(sides)
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "seats,id", "hoodie.metadata.enable": "false"}
    assert sides.table.services.cluster(sort).file_groups == len(before)
    sides.agree(rows)
    groups = file_groups(sides)
    assert [(city, name[:8]) for city, name in groups] == [(city, name[:8]) for city, name in before]
    assert not set(groups) & set(before)
    for ts, write in ((4, sides.hudi_writes), (5, sides.we_write)):
        new = trips(range(ts, 10 * ts), ts=ts, note=f"of {ts}")
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)  # a key in a second file group would be there twice
    assert file_groups(sides) == groups


@pytest.mark.long
def test_a_clustering_of_simple_buckets_that_hudi_planned_keeps_them(hudi_12, tmp_path) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", {**mor_options(9), **BUCKETS}, plainly=True)
    rows = trips(range(40))
    sides.hudi_writes(rows)
    before = file_groups(sides)
    text = "hoodie.metadata.enable=false,hoodie.write.auto.upgrade=false"
    hudi_12.sql(f"CALL run_clustering(path => '{sides.path}', op => 'schedule', options => '{text}', order => 'id')")
    done = sides.table.services.cluster({"hoodie.metadata.enable": "false"}, pending_only=True)
    assert done.file_groups == len(before)
    assert [(city, name[:8]) for city, name in file_groups(sides)] == [(city, name[:8]) for city, name in before]
    new = trips(range(20, 60), ts=3)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))
