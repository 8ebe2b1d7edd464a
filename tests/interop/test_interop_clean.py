"""Cleans of both sides of one table: the same files go, each goes on where the other ended, nobody misses a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import read_instant_body
from hudi_fast.timeline.plans import CleanMetadata, decode_clean_metadata
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import Sides, after_upsert, trip_options, trips

pytestmark = pytest.mark.peer

WRITERS = [
    ("hudi_12", 9),
    pytest.param(("hudi_12", 6), marks=pytest.mark.long),
    pytest.param(("hudi_015", 6), marks=pytest.mark.long),
]
VERSION = "hoodie.write.table.version"
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
POLICIES = {
    "commits": ({"hoodie.clean.commits.retained": "2"}, "clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 2"),
    "versions": (
        {"hoodie.clean.fileversions.retained": "1"},
        "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1",
    ),
}


@pytest.fixture(params=WRITERS, ids=lambda one: f"{one[0]}-v{one[1]}")
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    peer, version = request.param
    return Sides(request.getfixturevalue(peer), tmp_path / "trips", {**trip_options(version), **QUIET})


def hudi_cleans(sides: Sides, policy: str) -> CleanMetadata | None:
    """Hudi's procedure; what its clean recorded, None if there was none."""
    before = cleans_of(sides)
    as_it_is = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": sides.options[VERSION]}
    text = "" if sides.hudi.version.startswith("0.") else ",".join(f"{key}={one}" for key, one in as_it_is.items())
    options = f", options => '{text}'" if text else ""
    sides.hudi.sql(f"CALL run_clean(table => '{sides.in_catalog()}', {POLICIES[policy][1]}{options})")
    new = {time: found for time, found in cleans_of(sides).items() if time not in before}
    assert len(new) < 2
    return next(iter(new.values()), None)


def we_clean(sides: Sides, policy: str) -> CleanMetadata | None:
    done = sides.table.services.clean({**sides.options, **POLICIES[policy][0]})
    return cleans_of(sides)[done.instant] if done.instant else None


def cleans_of(sides: Sides) -> dict[str, CleanMetadata]:
    """Completed cleans, by instant."""
    state = load_state(Storage(sides.path))
    found = [one for one in state.timeline.of_action("clean") if one.is_completed]
    return {one.requested: decode_clean_metadata(read_instant_body(state.storage, state.config, one)) for one in found}


def deleted_by(clean: CleanMetadata | None) -> dict[str, set[str]]:
    parts = () if clean is None else clean.partitions
    return {one.partition_path: set(one.deleted) for one in parts if one.deleted}


def planned_by_us(sides: Sides, policy: str) -> dict[str, set[str]]:
    planned = sides.table.services.plan_clean({**sides.options, **POLICIES[policy][0]})
    files = {} if planned is None else planned.plan.files
    return {partition: {path.rpartition("/")[2] for path in paths} for partition, paths in files.items() if paths}


def metadata_is_fine(sides: Sides) -> None:
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{sides.in_catalog()}')")
    assert differing.num_rows == 0, differing.to_pylist()


@pytest.mark.smoke("hudi_12-v9")
def test_both_sides_give_up_the_same_files_turn_by_turn(sides: Sides) -> None:
    rows = trips(range(30))
    sides.we_write(rows)
    cleaned = 0
    for turn in range(1, 7):
        new = trips(range(turn, 20 + turn) if turn % 3 else range(0, 30, 3), ts=1 + turn, note=f"turn {turn}")
        (sides.we_write if turn % 2 else sides.hudi_writes)(new, more=QUIET)
        rows = after_upsert(rows, new)
        policy = "versions" if turn == 6 else "commits"
        ours = planned_by_us(sides, policy)
        done = hudi_cleans(sides, policy) if turn % 4 in (2, 3) else we_clean(sides, policy)
        assert deleted_by(done) == ours
        cleaned += sum(map(len, ours.values()))
        assert planned_by_us(sides, policy) == {}
    assert cleaned > 12
    assert hudi_cleans(sides, "versions") is None
    metadata_is_fine(sides)
    sides.agree(rows)


def test_hudi_carries_our_plan_out_and_a_partition_that_either_side_emptied_is_filled_again(
    hudi_12: Any, tmp_path: Path
) -> None:
    sides = Sides(hudi_12, tmp_path / "trips", {**trip_options(9), **QUIET})
    rows = trips(range(30))
    sides.we_write(rows)
    for turn in (1, 2):
        new = trips(range(0, 30, 2), ts=1 + turn, note=f"turn {turn}")
        sides.we_write(new)
        rows = after_upsert(rows, new)
    planned = sides.table.services.schedule_clean({**sides.options, "hoodie.clean.commits.retained": "1"})
    assert planned is not None
    done = hudi_cleans(sides, "commits")
    assert done is not None
    assert done.start_time == planned.instant
    assert deleted_by(done) == {
        name: {path.rpartition("/")[2] for path in paths} for name, paths in planned.plan.files.items() if paths
    }
    for city, clean in (("city1", we_clean), ("city2", hudi_cleans)):
        gone = {"hoodie.datasource.write.partitions.to.delete": city}
        sides.we_write(trips([]), "delete_partition", gone)
        rows = rows.filter([one != city for one in rows["city"].to_pylist()])
        for ts in (20, 21, 22):
            new = trips(range(0, 30, 3), ts=ts, note=city)
            sides.we_write(new)
            rows = after_upsert(rows, new)
        done = clean(sides, "commits")
        assert done is not None
        assert [one.partition_path for one in done.partitions if one.partition_deleted] == [city]
        assert not (sides.path / city).exists()
        metadata_is_fine(sides)
        sides.agree(rows)
    new = trips(range(30), ts=40, note="again")
    sides.hudi_writes(new, more=QUIET)
    metadata_is_fine(sides)
    sides.agree(new)
    assert planned_by_us(sides, "commits") == deleted_by(hudi_cleans(sides, "commits"))


def test_log_files_go_with_the_same_slices(hudi_12: Any, tmp_path: Path) -> None:
    options: Mapping[str, Any] = {**mor_options(9), **QUIET}
    sides = MorSides(hudi_12, tmp_path / "trips", options)
    rows = trips(range(12))
    sides.we_write(rows)
    for turn in range(1, 7):
        new = trips(range(turn, 12), ts=1 + turn, note=f"turn {turn}")
        (sides.we_write if turn % 2 else sides.hudi_writes)(new, more=QUIET)
        rows = after_upsert(rows, new)
        if turn in (2, 4):
            sides.we_compact() if turn == 2 else sides.hudi_compacts()
        if turn == 5:
            sides.we_plan_compaction()  # pending from here on
        for policy in ("commits", "versions") if turn > 3 else ("commits",):
            ours = planned_by_us(sides, policy)
            done = hudi_cleans(sides, policy) if turn % 2 else we_clean(sides, policy)
            assert deleted_by(done) == ours, (turn, policy)
    names = [name for one in cleans_of(sides).values() for some in deleted_by(one).values() for name in some]
    assert {name.startswith(".") for name in names} == {True, False}
    metadata_is_fine(sides)
    sides.agree(rows)
