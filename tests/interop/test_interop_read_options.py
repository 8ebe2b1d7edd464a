"""Options of reads: with each the rows are those of Apache Hudi, or the difference is one that is meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import mor_options
from tests.interop.sides import Sides, trip_options, trips
from tests.interop.test_interop_incremental import BEGIN, END, POLICY, QUERY, QUIET, places
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

AS_OF = "as.of.instant"
MERGE = "hoodie.datasource.merge.type"
READ = "hoodie.datasource.read."
FILTERS = READ + "incr.filters"
FALLBACK = READ + "incr.fallback.fulltablescan.enable"
SCHEMA_OF_END = READ + "schema.use.end.instanttime"
NOW = {**QUIET, "hoodie.compact.inline.max.delta.commits": 1}
CASES = [
    ("hudi_12", 9, "mor"),
    *(
        pytest.param(case, marks=pytest.mark.long)
        for case in (
            ("hudi_12", 9, "cow"),
            ("hudi_12", 6, "mor"),
            ("hudi_12", 6, "cow"),
            ("hudi_015", 6, "mor"),
            ("hudi_015", 6, "cow"),
        )
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    """60 rows, updates, deletes, a compaction if there are logs, and updates after it."""
    peer, version, kind = request.param
    made = mor_options(version) if kind == "mor" else trip_options(version)
    both = Sides(request.getfixturevalue(peer), tmp_path / "trips", {**made, **QUIET}, plainly=True)
    both.we_write(trips(range(60)), "bulk_insert")
    both.we_write(trips(range(30, 40), ts=5))
    both.table.delete(trips(range(35, 38)).select(["id", "city"]), QUIET)
    both.we_write(trips(range(50, 66), ts=6, note="third"))
    if is_mor(both):
        both.table.services.compact(NOW)
    both.we_write(trips(range(38, 46), ts=7, note="fourth"))
    return both


def is_mor(sides: Sides) -> bool:
    return sides.table.table_type == "MERGE_ON_READ"


def is_015(sides: Sides) -> bool:
    return sides.hudi.version.startswith("0.")


def requested(sides: Sides) -> list[str]:
    return sorted(one.requested for one in load_state(Storage(sides.path)).timeline.writes())


def widened(numbers: range, ts: int, note: str) -> pa.Table:
    return trips(numbers, ts=ts, note=note).append_column("extra", pa.array(numbers, pa.int64()))


def assert_same(sides: Sides, asked: Mapping[str, Any]) -> pa.Table:
    """Both sides answer the same rows, meta columns too; what hudi_fast answered."""
    ours = hf.read(sides.path, asked)
    try:
        assert_same_rows(ours, sides.hudi.read(sides.path, asked), ignore=())
    except AssertionError as error:
        error.add_note(f"with {dict(asked)}")
        raise
    return ours


def test_kinds_of_snapshots(sides: Sides) -> None:
    assert_same(sides, {QUERY: "read_optimized"})
    for time in requested(sides):
        assert_same(sides, {QUERY: "read_optimized", AS_OF: time})
    if not is_mor(sides):
        return
    unmerged = assert_same(sides, {MERGE: "skip_merge"})
    assert unmerged.num_rows > hf.read(sides.path).num_rows
    if not is_015(sides):  # it takes deletes from the logs' own rows
        assert_same(sides, {MERGE: "skip_merge", AS_OF: requested(sides)[3]})
    sides.table.services.schedule_compact(NOW)
    sides.we_write(trips(range(50, 66), ts=9, note="fifth"))
    for asked in ({QUERY: "read_optimized"}, {MERGE: "skip_merge"}, {}):
        assert_same(sides, asked)


def test_ranges_of_commits(sides: Sides) -> None:
    times = places(sides)
    since = {QUERY: "incremental", BEGIN: times[0]}
    rows = assert_same(sides, since)
    assert rows.num_rows == 29
    for more in (
        {READ + "incr.skip_compact": "true"},
        {READ + "incr.skip_cluster": "true"},
        {READ + "incr.path.glob": "/city1/*"},
        {POLICY: "USE_TRANSITION_TIME"},
        {BEGIN: times[-1]},
        {BEGIN: "20990101000000000"},
        {BEGIN: "2024-01-01"},
        {BEGIN: times[1][:14]},
        {MERGE: "skip_merge"},
    ):
        assert_same(sides, {**since, **more})


def test_conditions_of_an_incremental_query(sides: Sides) -> None:
    """Release 1.2.0, and 0.15.0 for tables with logs, ignore the conditions."""
    since = {QUERY: "incremental", BEGIN: places(sides)[0]}
    asked = {**since, FILTERS: "fare > 60,seats = 1"}
    if is_015(sides) and not is_mor(sides):
        assert assert_same(sides, asked).num_rows == 4
    else:
        assert sides.hudi.read(sides.path, asked).num_rows == 29
        found = hf.read(sides.path, asked)
        assert found.num_rows == 4
        assert_same_rows(found, sides.hudi.read(sides.path, since, where="fare > 60 and seats = 1"), ignore=())


def test_columns_of_a_range_before_the_newest_column(sides: Sides) -> None:
    """Only release 0.15.0, for tables without logs, answers in the schema of the end of the range."""
    sides.we_write(widened(range(3, 9), 8, "wide"))
    times = places(sides)
    until = {QUERY: "incremental", BEGIN: times[0], END: times[-2]}
    assert "extra" in assert_same(sides, until).column_names
    narrow = hf.read(sides.path, {**until, SCHEMA_OF_END: "true"})
    theirs = sides.hudi.read(sides.path, {**until, SCHEMA_OF_END: "true"})
    assert "extra" not in narrow.column_names
    if is_mor(sides) or not is_015(sides):
        theirs = theirs.drop_columns("extra")
    assert_same_rows(narrow, theirs, ignore=())
    assert_same(sides, {**until, END: times[-1], SCHEMA_OF_END: "true"})


def test_ranges_whose_files_were_moved_or_cleaned(sides: Sides) -> None:
    sides.we_write(widened(range(50, 66), 9, "fifth"))
    if is_mor(sides):
        sides.table.services.compact(NOW)
    sides.table.services.cluster(QUIET)
    sides.we_write(widened(range(12), 12, "sixth"))
    times = places(sides)
    since = {QUERY: "incremental", BEGIN: times[0]}
    for name in ("incr.skip_cluster", "incr.skip_compact"):
        for chosen in ("true", "false"):
            assert_same(sides, {**since, READ + name: chosen})
    sides.table.services.clean({**QUIET, "hoodie.clean.commits.retained": 1})
    early = {**since, END: times[2]}
    with pytest.raises(hf.ConfigError, match="cleaned or rolled back"):
        hf.read(sides.path, early)
    assert_same(sides, {**early, FALLBACK: "true"})
    if not (is_015(sides) and is_mor(sides)):  # it reads base files alone then
        assert_same(sides, {**since, FALLBACK: "true"})


def test_a_range_and_a_time_exclude_each_other(sides: Sides) -> None:
    """Apache Hudi's answer depends on the kind of table: the range, or the range before that time."""
    both = {QUERY: "incremental", BEGIN: places(sides)[0], AS_OF: requested(sides)[2]}
    with pytest.raises(hf.ConfigError, match=r"as\.of\.instant does not apply"):
        hf.read(sides.path, both)
