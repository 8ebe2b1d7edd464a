"""Compactions that wait while the other side writes, that the other side carries out, and compactions of logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, trips
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

LOG_COMPACT = {
    "hoodie.log.compaction.enable": True,
    "hoodie.log.compaction.inline": True,
    "hoodie.log.compaction.blocks.threshold": 2,
}


@pytest.fixture
def sides(peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> MorSides:
    return MorSides(request.getfixturevalue(peer), tmp_path / "trips", mor_options(version), plainly=True)


def logged(sides: MorSides) -> Any:
    """A table of both sides with logs; its rows."""
    rows = trips(range(45))
    sides.we_write(rows, "bulk_insert")
    for ts, write in ((2, sides.hudi_writes), (3, sides.we_write)):
        new = trips(range(5 * ts, 30 + ts), ts=ts)
        write(new)
        rows = after_upsert(rows, new)
    return rows


@pytest.mark.smoke("hudi_12-9")
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_both_log_on_while_a_compaction_of_hudi_waits_and_either_carries_it_out(sides: MorSides) -> None:
    rows = logged(sides)
    sides.hudi_compacts("schedule")
    sides.agree(rows)
    for ts, write in ((4, sides.we_write), (5, sides.hudi_writes), (6, sides.we_write)):
        new = trips(range(4 * ts, 50 + ts), ts=ts, note=f"meanwhile {ts}")
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.agree_on_base_files()
    sides.hudi_compacts("execute")
    assert sides.operations().count("COMPACT") == 1
    sides.agree(rows)
    new = trips(range(20, 30), ts=7)
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.hudi_compacts("schedule")
    gone = trips(range(18, 24))
    sides.table.delete(gone, options=sides.options)
    rows = after_delete(rows, gone)
    sides.agree(rows)
    sides.we_compact()  # the plan that waits
    assert sides.operations().count("COMPACT") >= 2
    sides.agree(rows)
    new = trips(range(10, 40), ts=8)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


@pytest.mark.long
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_12", 6)])
def test_both_log_on_while_a_compaction_of_ours_waits_and_either_carries_it_out(sides: MorSides) -> None:
    rows = logged(sides)
    sides.we_plan_compaction()
    sides.agree(rows)
    for ts, write in ((4, sides.hudi_writes), (5, sides.we_write), (6, sides.hudi_writes)):
        new = trips(range(4 * ts, 50 + ts), ts=ts, note=f"meanwhile {ts}")
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.agree_on_base_files()
    sides.hudi_compacts("execute")
    assert sides.operations().count("COMPACT") == 1
    sides.agree(rows)
    new = trips(range(20, 30), ts=7)
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.we_plan_compaction()
    gone = trips(range(18, 24))
    sides.hudi_writes(gone, "delete")
    rows = after_delete(rows, gone)
    sides.we_compact()
    assert sides.operations().count("COMPACT") >= 2
    sides.agree(rows)


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.long)])
def test_logs_that_were_compacted_into_one_log_are_read_and_compacted_by_the_other_side(
    version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sides = MorSides(request.getfixturevalue("hudi_12"), tmp_path / "t", mor_options(version), plainly=True)
    rows = logged(sides)
    gone = trips(range(12, 16))
    sides.hudi_writes(gone, "delete")
    rows = after_delete(rows, gone)
    new = trips(range(14, 24), ts=4)
    sides.hudi_writes(new, more=LOG_COMPACT)
    rows = after_upsert(rows, new)
    assert "LOG_COMPACT" in sides.operations()
    sides.agree(rows)
    for ts in (5, 6):
        new = trips(range(ts, 20 + ts), ts=ts)
        sides.we_write(new)
        rows = after_upsert(rows, new)
    before = sides.agree(rows)
    sides.table.services.compact_logs(LOG_COMPACT)
    assert sides.operations().count("LOG_COMPACT") == 2
    after = sides.agree(rows)
    assert_same_rows(after, before)
    new = trips(range(30), ts=7)
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_compacts() if version == 9 else sides.we_compact()
    assert sides.merged_slices() == 0
    sides.agree(rows)
