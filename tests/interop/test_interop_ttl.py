"""Partition TTL beside real Hudi: the same partitions, and each side reads what the other has deleted.

Hudi 1.2.0 fails if nothing has expired, and computes the retention in 32 bits; the numbers of days here are small.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.sides import Sides, trip_options, trips
from tests.peer.client import RealHudi
from tests.support.old_tables import DAYS, write_days_ago

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
KEPT = "hoodie.partition.ttl.management.strategy.type"


def old_table(hudi: RealHudi, path: Path, mor: bool) -> Sides:
    """city0 is 20 days old, city1 too but changed 10 days ago, city2 new."""
    sides = Sides(hudi, path, {**trip_options(9), **(MOR if mor else {})})
    write_days_ago(trips([0, 1]), path, sides.options, 20)
    write_days_ago(trips([1, 4], ts=2), path, {**sides.options, "hoodie.datasource.write.operation": "bulk_insert"}, 10)
    sides.we_write(trips([2, 5]))
    sides.we_write(trips([1], ts=3)) if mor else None  # a log file, which starts no file slice
    return sides


@pytest.mark.parametrize(
    ("policy", "mor"),
    [
        pytest.param("KEEP_BY_TIME", False, marks=pytest.mark.long),
        ("KEEP_BY_TIME", True),
        ("KEEP_BY_CREATION_TIME", False),
        pytest.param("KEEP_BY_CREATION_TIME", True, marks=pytest.mark.long),
    ],
)
def test_both_sides_delete_the_same_partitions(hudi_12: RealHudi, policy: str, mor: bool, tmp_path: Path) -> None:
    sides = old_table(hudi_12, tmp_path / "t", mor)
    ours = sides.table.services.plan_expire_partitions({DAYS: "15", KEPT: policy}).partitions
    name = sides.in_catalog()
    answer = hudi_12.sql(f"CALL run_ttl(table => '{name}', ttl_policy => '{policy}', retain_days => 15)")
    assert sorted(answer["deleted_partitions"].to_pylist()) == sorted(ours)
    assert sorted(ours) == (["city0"] if policy == "KEEP_BY_TIME" else ["city0", "city1"])
    left = set(sides.agree()["_hoodie_partition_path"].to_pylist())
    assert left == {"city0", "city1", "city2"} - set(ours)


@pytest.mark.smoke("False")
@pytest.mark.parametrize("mor", [False, True])
def test_hudi_reads_and_writes_on_after_our_deletion(hudi_12: RealHudi, mor: bool, tmp_path: Path) -> None:
    sides = old_table(hudi_12, tmp_path / "t", mor)
    assert sides.table.services.expire_partitions({DAYS: "5"}).partitions == ("city0", "city1")
    sides.agree(trips([2, 5]))
    sides.hudi_writes(trips([3, 2], ts=9))
    assert set(sides.agree()["_hoodie_partition_path"].to_pylist()) == {"city0", "city2"}
    assert sides.table.services.validate().differences.num_rows == 0
