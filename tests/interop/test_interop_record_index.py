"""The record index in turns: each side finds the other's keys by it, and none of them twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import commits_newest_first, load_state
from tests.interop.sides import Sides, after_delete, after_upsert, data_columns, trip_options, trips
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

HIVE = "hoodie.datasource.write.hive_style_partitioning"
MOVES = "hoodie.record.index.update.partition.path"


FEW_GROUPS = {
    "hoodie.metadata.record.index.min.filegroup.count": 2,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
}
"""By default there are ten, each of which takes a task of every write; the turns with release 1 have that many."""


def options_of(
    version: int, table_type: str, partitioned: bool = False, groups: dict[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    kept = "record" if partitioned else "global.record"
    index = {
        "hoodie.index.type": "RECORD_LEVEL_INDEX" if partitioned else "GLOBAL_RECORD_LEVEL_INDEX",
        f"hoodie.metadata.{kept}.level.index.enable": True,
    }
    if version == 6:  # as release 0.15 calls it
        index = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": True}
    return {
        **trip_options(version, hoodie__datasource__write__table__type=table_type, **more),
        **index,
        **(groups or {}),
        "hoodie.compact.inline": False,
    }


def counts_of(path: Path) -> tuple[int, int]:
    """Inserts and updates of the last commit."""
    _, commit = next(commits_newest_first(load_state(Storage(path))))
    stats = list(commit.write_stats())
    return sum(one.num_inserts for one in stats), sum(one.num_update_writes for one in stats)


def of_days(ids: Sequence[int], ts: int = 1) -> pa.Table:
    """Rows whose partition paths have letters that names of files need for themselves."""
    rows = trips(ids, ts)
    days = pc.replace_substring(rows["city"], "city", "2024-01-0")
    return rows.set_column(rows.column_names.index("city"), "city", pc.binary_join_element_wise(days, "x", "_"))


def take_turns(sides: Sides, trips: Callable[..., pa.Table] = trips) -> None:
    """Upserts of old and new keys by both sides, deletes, and keys that come back."""
    rows = trips(range(40))
    sides.hudi_writes(rows)
    for ts, write in ((2, sides.we_write), (3, sides.hudi_writes)):
        new = trips(range(8 * ts, 40 + 10 * ts), ts)
        write(new)
        inserts = 20 if ts == 2 else 10
        assert counts_of(sides.path) == (inserts, new.num_rows - inserts)
        rows = after_upsert(rows, new)
    gone = trips([1, 20, 45, 60], 5)
    sides.we_write(gone, "delete")
    rows = sides.agree(after_delete(rows, gone)).select(rows.column_names)
    back = trips([1, 45, 60, 61, 100], 6)
    sides.hudi_writes(back)
    assert counts_of(sides.path) == (4, 1)
    rows = after_upsert(rows, back)
    again = trips([1, 20, 46, 60, 100], 8)
    sides.we_write(again)
    assert counts_of(sides.path) == (1, 4)
    sides.agree(after_upsert(rows, again))


@pytest.mark.smoke("MERGE_ON_READ")
@pytest.mark.parametrize("table_type", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_turns_with_release_1(hudi_12: RealHudi, tmp_path: Path, table_type: str) -> None:
    take_turns(Sides(hudi_12, tmp_path / "t", options_of(9, table_type)))


def test_turns_with_an_index_by_partition(hudi_12: RealHudi, tmp_path: Path) -> None:
    options = {**options_of(9, "COPY_ON_WRITE", partitioned=True), HIVE: True}
    take_turns(Sides(hudi_12, tmp_path / "t", options), of_days)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.long)])
def test_turns_with_release_0_15(hudi_015: RealHudi, tmp_path: Path, table_type: str) -> None:
    take_turns(Sides(hudi_015, tmp_path / "t", options_of(6, table_type, groups=FEW_GROUPS)))


@pytest.mark.parametrize("moves", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_key_whose_partition_changes(hudi_12: RealHudi, tmp_path: Path, moves: bool) -> None:
    sides = Sides(hudi_12, tmp_path / "t", {**options_of(9, "COPY_ON_WRITE", groups=FEW_GROUPS), MOVES: moves})
    rows = trips(range(12))
    sides.we_write(rows)
    for ts, write in ((2, sides.hudi_writes), (3, sides.we_write)):
        new = trips(range(ts, 12), ts, cities=ts + 3)
        write(new)
        rows = after_upsert(rows, new)
    ours, theirs = sides.table.to_arrow(), hudi_12.read(sides.path)
    # Of a row that stays, Spark takes the partition column from the path, and the file has what came in.
    assert_same_rows(ours, theirs, ignore=() if moves else ("city",))
    assert_same_rows(data_columns(ours), rows, key=sides.key)
    assert (ours["_hoodie_partition_path"].to_pylist() == ours["city"].to_pylist()) == moves
