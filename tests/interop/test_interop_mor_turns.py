"""hudi_fast and Apache Hudi log to one MERGE_ON_READ table in turns, compact it, and read the same rows every time."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, data_columns, trips
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

BY_INDEX = "hoodie.index.type"


@pytest.fixture
def sides(peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> MorSides:
    return MorSides(request.getfixturevalue(peer), tmp_path / "trips", mor_options(version), plainly=True)


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_log_files_of_ours_are_merged_and_compacted_by_hudi_and_logged_on(sides: MorSides, peer: str) -> None:
    sides.plainly = peer != "hudi_12"
    seen: list[tuple[str, pa.Table]] = []
    rows = trips(range(60))
    seen.append((sides.we_write(rows, "bulk_insert").instant, rows))
    new = trips(range(30, 75), ts=5, note="second")
    late = trips(range(6), ts=0, note="too late")  # ordering: goes to the log and loses against what is stored
    rows = after_upsert(rows, new)
    seen.append((sides.we_write(pa.concat_tables([new, late])).instant, rows))
    assert sides.merged_slices() == 3
    gone = trips(range(25, 35)).select(["id", "city"])
    rows = after_delete(rows, gone)
    seen.append((sides.table.delete(gone, options=sides.options).instant, rows))
    sides.agree(rows)
    sides.agree_on_base_files()
    for instant, then in seen:
        assert_same_rows(data_columns(sides.table.to_arrow(as_of=instant)), then, key=["id"])
    theirs = sides.hudi.read(sides.path, {"as.of.instant": seen[1][0]})
    assert_same_rows(data_columns(theirs), seen[1][1], key=["id"])

    new = trips(range(20, 50), ts=7, note="by Hudi")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    before = len(sides.log_files())
    new = trips(range(10, 45), ts=8, note="by us")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    assert len(sides.log_files()) > before
    sides.agree(rows)

    sides.hudi_compacts()
    assert sides.merged_slices() == 0
    assert_same_rows(sides.agree(rows), sides.agree_on_base_files(), ignore=())
    for ts, write in ((10, sides.we_write), (11, sides.hudi_writes)):
        new = trips(range(ts, 30 + ts), ts=ts, note=f"after Hudi's compaction {ts}")
        rows = after_upsert(rows, new)
        write(new)
    assert sides.merged_slices() == 3
    gone = trips(range(0, 40, 7))
    sides.hudi_writes(gone, "delete")
    rows = after_delete(rows, gone)
    sides.agree(rows)


@pytest.mark.smoke("hudi_12-9")
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_log_files_of_hudi_are_merged_and_compacted_by_us_and_logged_on(sides: MorSides) -> None:
    rows = trips(range(60))
    sides.hudi_writes(rows, "bulk_insert")
    new = trips(range(30, 75), ts=5, note="second")
    late = trips(range(6), ts=0, note="too late")
    rows = after_upsert(rows, new)
    sides.hudi_writes(pa.concat_tables([new, late]))
    gone = trips(range(25, 35))
    rows = after_delete(rows, gone)
    sides.hudi_writes(gone, "delete")
    sides.agree(rows)
    new = trips(range(20, 50), ts=7, note="by us")
    rows = after_upsert(rows, new)
    sides.we_write(new, more={BY_INDEX: "BLOOM"})
    new = trips(range(10, 45), ts=8, note="by Hudi")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    before = sides.agree(rows)

    sides.we_compact()
    assert sides.merged_slices() == 0
    # A compaction moves rows, and keeps who wrote them.
    assert_same_rows(sides.agree(rows), before, ignore=["_hoodie_file_name"])
    assert_same_rows(sides.table.to_arrow(), sides.agree_on_base_files(), ignore=())
    for ts, write in ((10, sides.hudi_writes), (11, sides.we_write)):
        new = trips(range(ts, 30 + ts), ts=ts, note=f"after our compaction {ts}")
        rows = after_upsert(rows, new)
        write(new)
    assert sides.merged_slices() == 3
    sides.agree(rows)
    sides.hudi_compacts()
    sides.agree(rows)


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_base_files_are_replaced_under_logs_by_either_side(sides: MorSides) -> None:
    """Small files are filled, partitions overwritten and removed, rows moved between partitions."""
    sides.options = {**sides.options, "hoodie.parquet.small.file.limit": 104_857_600}
    rows = trips(range(40))
    sides.we_write(rows)
    for ts, write in ((2, sides.hudi_writes), (3, sides.we_write)):
        new = trips(range(30, 50 + ts), ts=ts)  # inserts rewrite the small base files, once they have no logs
        rows = after_upsert(rows, new)
        write(new)
        new = trips(range(5, 15), ts=ts)  # only updates: to logs
        rows = after_upsert(rows, new)
        write(new)
    sides.agree(rows)
    fresh = trips(range(201, 230, 3), ts=5)  # all of city0
    rows = pa.concat_tables([rows.filter(pc.not_equal(rows["city"], "city0")), fresh])
    sides.we_write(fresh, "insert_overwrite")
    new = trips(range(201, 220, 3), ts=6, note="onto what was overwritten")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    sides.agree(rows)
    moved = after_upsert(trips(range(42, 48), ts=20), trips(range(5, 12), ts=20, cities=2, note="moved"))
    rows = after_upsert(rows, moved)
    sides.we_write(moved, more={BY_INDEX: "GLOBAL_BLOOM"})
    sides.agree(rows)
    moved = trips(range(7, 18), ts=21, cities=3, note="moved back")
    rows = after_upsert(rows, moved)
    sides.hudi_writes(moved, more={BY_INDEX: "GLOBAL_BLOOM"})
    sides.agree(rows)
    rows = rows.filter(pc.not_equal(rows["city"], "city1"))
    sides.table.delete_partitions(["city1"], options=sides.options)
    sides.agree(rows)


@pytest.mark.long
@pytest.mark.parametrize("version", [9, 6])
def test_hudi_merges_what_we_log_and_compact_on_spark(
    version: int, spark: Any, hudi_12: RealHudi, tmp_path: Path
) -> None:
    sides = MorSides(hudi_12, tmp_path / "trips", mor_options(version), plainly=True)
    rows = trips(range(60))
    sides.hudi_writes(rows, "bulk_insert")
    plans = ["driver", "broadcast", "fused", "routed"]
    for ts, plan in enumerate(plans, 2):
        new = trips(range(5 * ts, 40 + 4 * ts), ts=ts, note=f"by plan {plan}")
        source = tmp_path / f"{plan}.parquet"
        pq.write_table(new, source)
        hf.write(spark.read.parquet(str(source)), sides.path, {**sides.options, "hudi_fast.plan": plan})
        rows = after_upsert(rows, new)
    assert sides.merged_slices() == 3
    before = sides.agree(rows)
    assert hf.read(spark, sides.path).where("ts > 1").count() == pc.sum(pc.greater(rows["ts"], 1)).as_py()
    sides.table.services.compact(spark=spark)
    assert_same_rows(sides.agree(rows), before, ignore=["_hoodie_file_name"])
    sides.hudi_writes(trips(range(10), ts=9))
    sides.agree(after_upsert(rows, trips(range(10), ts=9)))


@pytest.mark.parametrize("index", ["SIMPLE", pytest.param("BLOOM", marks=pytest.mark.long)])
def test_a_key_that_a_compaction_left_to_the_log_is_found_where_hudi_inserts_it_again(
    index: str, hudi_12: RealHudi, tmp_path: Path
) -> None:
    """Deleted, and written again while the compaction was pending: the new base file lacks it, the log has it."""
    sides = MorSides(hudi_12, tmp_path / "ours", {**mor_options(9), BY_INDEX: index}, plainly=True)
    rows = trips(range(6))
    sides.hudi_writes(rows)
    sides.hudi_writes(trips([3], ts=5), "delete")
    sides.hudi_compacts("schedule")
    sides.hudi_writes(trips([3], ts=7, note="again"))
    sides.hudi_compacts("execute")
    twin = dataclasses.replace(sides, path=tmp_path / "Hudi")
    shutil.copytree(sides.path, twin.path)
    new = trips([3], ts=8, note="once more")
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))
    twin.hudi_writes(new)
    assert twin.hudi.read(twin.path).num_rows == 7


@pytest.mark.parametrize(
    ("index", "peer", "version"),
    [
        ("SIMPLE", "hudi_12", 9),
        *(
            pytest.param(index, "hudi_12", 9, marks=pytest.mark.long)
            for index in ("BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET")
        ),
        *(
            pytest.param(index, "hudi_12", 9, marks=pytest.mark.long)
            for index in ("RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX")
        ),
        pytest.param("BLOOM", "hudi_12", 8, marks=pytest.mark.long),
        pytest.param("SIMPLE", "hudi_015", 6, marks=pytest.mark.long),
    ],
)
def test_hudi_reads_one_row_of_a_key_that_we_deleted_before_a_compaction_and_wrote_while_it_waited(
    index: str, peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """By every index. Once we have compacted again, Hudi finds the key in the base file."""
    more = {BY_INDEX: index, "hoodie.bucket.index.num.buckets": 1}
    sides = MorSides(request.getfixturevalue(peer), tmp_path / "trips", {**mor_options(version), **more})
    rows = trips(range(12))
    sides.we_write(rows)
    for round_ in range(2):
        gone = trips([3, 6]).select(["id", "city"])
        rows = after_delete(rows, gone)
        sides.table.delete(gone, options=sides.options)
        sides.we_plan_compaction()
        for step in ("while it waits", "when it ran", "again"):
            new = trips([3, 6], ts=10 + round_, note=step)
            rows = after_upsert(rows, new)
            sides.we_write(new)
            if step == "while it waits":
                assert sides.table.services.run_pending(sides.options)
            if step != "when it ran":  # the same files, with one log more each time
                sides.agree(rows)
        sides.we_compact()
        assert_same_rows(sides.agree(rows), sides.agree_on_base_files(), ignore=())
    new = trips([3], ts=20, note="by Hudi")
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))
