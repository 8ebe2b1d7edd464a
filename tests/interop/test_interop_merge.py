"""Which of two rows with one key stays: both sides decide alike, whatever the table's rule."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.sides import Sides, after_delete, after_upsert, trip_options, trips
from tests.peer.client import RealHudi

ORDERING = "hoodie.datasource.write.precombine.field"
PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."


def seated(ids: range, ts: int, seats: int) -> pa.Table:
    rows = trips(ids, ts)
    return rows.set_column(rows.schema.get_field_index("seats"), "seats", pa.array([seats] * len(rows), pa.int32()))


def test_a_second_ordering_field_decides_between_equals(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(9), ORDERING: "ts,seats"}, plainly=True)
    rows = seated(range(20), 1, 5)
    sides.we_write(rows)
    for write, higher in ((sides.we_write, 6), (sides.hudi_writes, 7)):
        new = seated(range(higher), 1, higher)
        beaten = seated(range(10, 15), 1, 4)
        older = seated(range(15, 18), 0, 99)
        write(pa.concat_tables([new, beaten, older]))
        rows = after_upsert(rows, new)
        sides.agree(rows)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, id="by_mode"),
        pytest.param({ORDERING: ""}, id="without_ordering", marks=pytest.mark.long),
        pytest.param({PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}, id="by_payload", marks=pytest.mark.long),
    ],
)
def test_the_later_write_wins_under_commit_time_ordering(
    more: dict[str, str], hudi_12: RealHudi, tmp_path: Path
) -> None:
    options = {key: value for key, value in {**trip_options(9), **more}.items() if value}
    sides = Sides(hudi_12, tmp_path / "t", options, plainly=True)
    rows = trips(range(20), ts=9)
    sides.we_write(rows)
    for ts, write in ((5, sides.we_write), (4, sides.hudi_writes), (3, sides.we_write)):
        new = trips(range(ts, 15 + ts), ts)
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)


@pytest.mark.smoke("hudi_12-9", "hudi_015-6")
@pytest.mark.parametrize(
    ("peer", "version"), [("hudi_12", 9), pytest.param("hudi_12", 6, marks=pytest.mark.long), ("hudi_015", 6)]
)
def test_rows_that_say_they_are_deleted_go(
    peer: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sides = Sides(request.getfixturevalue(peer), tmp_path / "t", trip_options(version), plainly=True)
    rows = flagged(range(20), 1, set())
    sides.we_write(rows)
    for ts, write in ((2, sides.we_write), (3, sides.hudi_writes)):
        gone = {ts, ts + 1, 50}  # 50 was never there
        new = flagged(range(ts, 15), ts, gone)
        late = flagged(range(15, 18), 0, {15})  # a deletion that comes too late, and two rows that do
        write(pa.concat_tables([new, late]))
        rows = after_delete(after_upsert(rows, new), new.filter(new["_hoodie_is_deleted"]))
        sides.agree(rows)


def flagged(ids: range, ts: int, gone: set[int]) -> pa.Table:
    flags = pa.array([i in gone for i in ids], pa.bool_())
    return trips(ids, ts).append_column("_hoodie_is_deleted", flags)


def test_the_last_of_equal_rows_of_a_batch_is_the_same_for_both(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Rows of one batch with one key: the highest ordering value stays."""
    batch = pa.concat_tables([trips(range(10), ts) for ts in (2, 5, 1, 4)])
    expected = trips(range(10), 5)
    ours = Sides(hudi_12, tmp_path / "ours", trip_options(9), plainly=True)
    ours.we_write(batch)
    ours.agree(expected)
    theirs = Sides(hudi_12, tmp_path / "theirs", trip_options(9), plainly=True)
    theirs.hudi_writes(batch)
    theirs.agree(expected)
    higher = trips(range(5), 6)
    ours.hudi_writes(pa.concat_tables([higher, trips(range(5), 5)]))
    ours.agree(after_upsert(expected, higher))
    assert pc.count_distinct(ours.table.to_arrow()["_hoodie_record_key"]).as_py() == 10
