"""What a slice's log comes to: both sides decide alike between rows and deletes, whatever the table's rule."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_upsert, trips
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

ORDERING = "hoodie.datasource.write.precombine.field"
PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
BY_COMMIT_TIME = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
KEYS = 40
MANY_REQUESTS = 100
"""Of about twenty tables."""

RULES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "v9_event_time": ("hudi_12", 9, {}),
    "v9_commit_time": ("hudi_12", 9, BY_COMMIT_TIME),
    "v9_two_fields": ("hudi_12", 9, {ORDERING: "ts,seats"}),
    "v9_partial": ("hudi_12", 9, {PAYLOAD: MODEL + "PartialUpdateAvroPayload"}),
    "v9_non_defaults": ("hudi_12", 9, {PAYLOAD: MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"}),
    "v9_delete_marker": ("hudi_12", 9, {PAYLOAD: MODEL + "AWSDmsAvroPayload"}),
    "v9_global_index": ("hudi_12", 9, {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "v8_event_time": ("hudi_12", 8, {}),
    "v6_event_time": ("hudi_12", 6, {}),
    "v6_latest": ("hudi_12", 6, {PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}),
    "0.15_event_time": ("hudi_015", 6, {}),
    "0.15_latest": ("hudi_015", 6, {PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}),
}

BY_DEFAULT = {"v9_event_time", "v9_commit_time", "v9_partial", "v6_latest", "0.15_event_time"}
"""The others in the tier ``long``."""


@pytest.fixture(scope="module", autouse=True)
def new_process(hudi_12: RealHudi) -> None:
    """After dozens of tables in one JVM Hudi 1.2.0 fails here: its SQL runs out of memory over a row of this module.

    It keeps projections of rows, by their schemas, for as long as it lives. A process of a few tables is kept, since
    another one takes longer to start than this module's tests take.
    """
    if hudi_12.requests > MANY_REQUESTS:
        hudi_12.close()


@pytest.mark.long("0.15_event_time")
@pytest.mark.parametrize(
    "rule", [one if one in BY_DEFAULT else pytest.param(one, marks=pytest.mark.long) for one in RULES]
)
def test_any_rows_and_deletes_of_either_side_come_to_the_same(
    rule: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    peer, version, more = RULES[rule]
    dice = random.Random(rule)
    options = {**mor_options(version), **more}
    sides = MorSides(request.getfixturevalue(peer), tmp_path / "t", options, plainly=True)
    # To releases before 1.0 a delete wins however late it is, and so does a row after it; we go by 1.2.0. There, keys
    # that are deleted have rows in order only.
    in_order = range(28, KEYS + 4) if rule == "0.15_event_time" else range(0)
    # Whose table it is says how logs are merged by release 0.15 and by those who read after it.
    first = sides.hudi_writes if rule == "0.15_latest" else sides.we_write
    first(any_rows(dice, range(KEYS), 0, in_order, deletes=False), "bulk_insert")
    for turn, letter in enumerate("whhwwh", 1):
        write = sides.we_write if letter == "w" else sides.hudi_writes
        if turn in (3, 5):  # one of each side
            gone = sorted(dice.sample(in_order or range(KEYS + 4), 8))
            write(any_rows(dice, gone, turn, in_order, deletes=False), "delete")
        else:
            new = any_rows(dice, sorted(dice.sample(range(KEYS + 4), 24)), turn, in_order, deletes=True)
            write(moved(dice, new) if rule == "v9_global_index" else new)
    before = sides.agree()
    assert sides.merged_slices() >= 3
    assert pc.count_distinct(before["id"]).as_py() == before.num_rows
    sides.we_compact()
    assert_same_rows(sides.agree(), before, ignore=["_hoodie_file_name"])


def any_rows(dice: random.Random, ids: Iterable[int], turn: int, in_order: range, deletes: bool) -> pa.Table:
    """Rows with any ordering values, nulls, and here and there a flag, or a mark, that makes a row a delete.

    Keys that are named ``in_order`` have higher ordering values each turn, and if there are any, only they have flags.
    """
    ids = list(ids)
    rows = trips(ids, note=f"{dice.randrange(1000)}")
    columns = {
        "ts": pa.array([10 + turn if i in in_order else dice.randrange(1, 9) for i in ids], pa.int64()),
        "seats": pa.array([dice.randrange(4) for _ in ids], pa.int32()),
        "fare": pa.array([dice.choice([None, 1.5, 2.5]) for _ in ids], pa.float64()),
    }
    marks = [dice.choice("IIIUUD") if deletes else "I" for _ in ids]  # mean something to AWS's payload class only
    rows = rows.append_column("Op", pa.array(marks))
    for name, values in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, values)
    may_go = [deletes and (i in in_order or not in_order) for i in ids]
    return rows.append_column(
        "_hoodie_is_deleted", pa.array([may and dice.random() < 0.2 for may in may_go], pa.bool_())
    )


def moved(dice: random.Random, rows: pa.Table) -> pa.Table:
    """The rows, some of them in another partition than before."""
    cities = [dice.choice([city, city, "city0", "city1"]) for city in rows["city"].to_pylist()]
    return rows.set_column(rows.column_names.index("city"), "city", pa.array(cities))


@pytest.mark.smoke
def test_hudi_merges_our_logs_by_the_positions_that_they_name(hudi_12: RealHudi, tmp_path: Path) -> None:
    """A log that names positions of base rows is merged by them alone, without looking at keys."""
    options = mor_options(9, hoodie__index__type="BLOOM")
    sides = MorSides(hudi_12, tmp_path / "t", options, plainly=True)
    rows = trips(range(60))
    sides.we_write(rows, "bulk_insert")
    for ts, write in ((2, sides.we_write), (3, sides.hudi_writes), (4, sides.we_write)):
        new = trips(range(3 * ts, 60, ts), ts=ts)
        write(new)
        rows = after_upsert(rows, new)
    gone = trips(range(0, 60, 8))
    sides.we_write(gone.select(["id", "city"]), "delete")
    sides.agree()
    by_position = {"hoodie.merge.use.record.positions": True}
    theirs = sides.hudi.read(sides.path, by_position)
    assert_same_rows(theirs, sides.table.to_arrow(), ignore=())
    assert theirs.num_rows == 60 - gone.num_rows


def test_statements_of_sql_become_logs_that_we_merge(hudi_12: RealHudi, tmp_path: Path) -> None:
    """MERGE INTO without inserts logs the assigned columns alone; UPDATE logs whole rows; DELETE logs keys."""
    sides = MorSides(hudi_12, tmp_path / "t", mor_options(9), plainly=True)
    sides.we_write(trips(range(40)), "bulk_insert")
    name = sides.in_catalog()
    settings = ("hoodie.metadata.enable", "hoodie.compact.inline")
    for key in settings:
        hudi_12.sql(f"SET {key}=false")
    try:
        changes = trips(range(5, 20), ts=5, note="merged")
        merge = f"MERGE INTO {name} t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
        hudi_12.sql(merge + "ts = s.ts, fare = s.fare + 100, note = null", rows={"changes": changes})
        found = sides.agree()
        assert pc.sum(pc.greater_equal(found["fare"], 100)).as_py() == 14  # one of the fifteen has none
        assert pc.sum(pc.is_null(found["started"])).as_py() == 0
        sides.we_write(trips(range(10, 15), ts=6, note="whole"))
        late = trips(range(12, 25), ts=4, note="late")
        hudi_12.sql(merge + "ts = s.ts, seats = -1", rows={"changes": late})
        hudi_12.sql(f"UPDATE {name} SET seats = 7, ts = 8 WHERE id = 'trip-00030'")
        hudi_12.sql(f"DELETE FROM {name} WHERE id IN ('trip-00031', 'trip-00006')")
    finally:
        for key in settings:
            hudi_12.sql(f"RESET {key}")
    before = sides.agree()
    assert before.num_rows == 38
    assert sides.merged_slices() == 3
    sides.we_compact()
    assert_same_rows(sides.agree(), before, ignore=["_hoodie_file_name"])


def test_hudi_merges_partial_updates_of_ours(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = MorSides(hudi_12, tmp_path / "t", mor_options(9), plainly=True)
    sides.we_write(trips(range(40)), "bulk_insert")
    some = trips(range(5, 20), ts=5).select(["id", "city", "ts", "fare"])
    result = sides.we_write(some, more={"hudi_fast.partial.update": True})
    assert (result.inserts, result.updates) == (0, 15)
    found = sides.agree()
    assert found.schema.names[5:] == trips(range(1)).column_names
    assert pc.sum(pc.equal(found["ts"], 5)).as_py() == 15
    assert pc.sum(pc.is_null(found["started"])).as_py() == 0
    sides.hudi_writes(trips(range(10, 13), ts=6, note="whole"))
    late = trips(range(8, 16), ts=4, note="late").select(["id", "city", "ts", "note"])
    sides.we_write(late, more={"hudi_fast.partial.update": True})
    before = sides.agree()
    sides.hudi_compacts()
    assert_same_rows(sides.agree(), before, ignore=["_hoodie_file_name"])
