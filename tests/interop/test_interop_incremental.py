"""Incremental queries of tables that hudi_fast wrote: at every place in time the answers are Apache Hudi's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import mor_options
from tests.interop.sides import Sides, trip_options, trips
from tests.support.rows import assert_same_rows
from tests.support.tiers import is_long

pytestmark = pytest.mark.peer

QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
POLICY = "hoodie.read.timeline.holes.resolution.policy"
AS_VERSION = "hoodie.datasource.read.incr.table.version"
QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
CASES = [
    ("hudi_12", 9, "mor"),
    *(
        pytest.param(case, marks=pytest.mark.long)
        for case in (
            ("hudi_12", 9, "cow"),
            ("hudi_12", 8, "mor"),
            ("hudi_12", 6, "cow"),
            ("hudi_12", 6, "mor"),
            ("hudi_015", 6, "cow"),
            ("hudi_015", 6, "mor"),
        )
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    peer, version, kind = request.param
    made = mor_options(version) if kind == "mor" else trip_options(version)
    return Sides(request.getfixturevalue(peer), tmp_path / "trips", {**made, **QUIET}, plainly=True)


def city(rows: pa.Table, name: str) -> pa.Table:
    return rows.filter(pc.equal(rows["city"], name))


def live(sides: Sides) -> None:
    """Every kind of write, late rows among them, and the services that move rows."""
    table = sides.we_write(trips(range(60)), "bulk_insert") and sides.table
    sides.we_write(trips(range(30, 40), ts=5))
    late = [trips(range(6), ts=0, note="late"), trips(range(34, 36), ts=0, note="late too")]
    sides.we_write(pa.concat_tables(late))
    table.delete(trips(range(35, 38)).select(["id", "city"]), QUIET)
    if table.table_type == "MERGE_ON_READ":
        table.services.compact({**QUIET, "hoodie.compact.inline.max.delta.commits": 1})
    sides.we_write(trips(range(38, 46), ts=7, note="third"))
    sides.we_write(city(trips([1, 4, 7, 100, 103], ts=9), "city1"), "insert_overwrite")
    sides.we_write(trips(range(50, 66), ts=11, note="fourth"))
    table.services.cluster(QUIET)
    sides.we_write(trips(range(9), ts=12, note="fifth"))


def places(sides: Sides) -> list[str]:
    state = load_state(Storage(sides.path))
    completion = state.config.version >= 8
    return sorted(str(one.completion) if completion else one.requested for one in state.timeline.writes())


def assert_same_answer(sides: Sides, begin: str, end: str | None = None, **more: Any) -> int:
    asked = {QUERY: "incremental", BEGIN: begin, **more, **({} if end is None else {END: end})}
    wanted = sides.hudi.read(sides.path, asked)
    rows = sides.table.incremental(begin, end, options=more)
    try:
        assert_same_rows(rows, wanted, ignore=())
    except AssertionError as error:
        error.add_note(f"in the range ({begin}, {end}]")
        raise
    return rows.num_rows


@pytest.mark.smoke("hudi_12-9-mor")
def test_every_range_holds_the_rows_that_apache_hudi_answers(sides: Sides, request: pytest.FixtureRequest) -> None:
    live(sides)
    times = places(sides)
    ranges: list[tuple[str, str | None]] = [("000", None), ("000", times[4]), (times[0], None), (times[1], times[5])]
    if is_long(request.config):
        ranges += [("000", time) for time in times] + [(time, None) for time in times]
        ranges += [*pairwise(times), *zip(times, times[3:], strict=False)]
    assert max(assert_same_answer(sides, begin, end) for begin, end in dict.fromkeys(ranges)) > 40


@pytest.mark.long
def test_after_a_clean_and_an_archival_what_is_left_is_the_same(sides: Sides) -> None:
    live(sides)
    kept = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 2}
    sides.table.services.clean({**QUIET, **kept})
    sides.table.services.archive({**QUIET, **kept})
    for number in range(3):
        sides.we_write(trips([number, 60 + number], ts=20 + number))
    times = places(sides)
    for begin in times:
        assert_same_answer(sides, begin)
    assert_same_answer(sides, times[1], times[3])
    assert sides.table.incremental("earliest").num_rows == sides.table.to_arrow().num_rows


@pytest.mark.long
def test_a_table_of_completion_times_may_be_asked_by_requested_times(hudi_12: Any, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "trips", {**mor_options(9), **QUIET}, plainly=True)
    live(sides)
    times = sorted(one.requested for one in load_state(Storage(sides.path)).timeline.writes())
    for begin, end in ((times[0], None), (times[2], times[6]), (times[5], times[-1])):
        assert_same_answer(sides, begin, end, **{AS_VERSION: "6"})


@pytest.mark.long
def test_a_hollow_commit_is_refused_or_waited_for_as_by_apache_hudi(hudi_12: Any, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "trips", {**trip_options(6), **QUIET}, plainly=True)
    for ts in (1, 2, 3):
        sides.we_write(trips(range(ts, ts + 5), ts=ts))
    first, second, third = places(sides)
    hollow = str(int(second) + 1)
    assert second < hollow < third
    for name in (f"{hollow}.commit.requested", f"{hollow}.inflight"):
        (sides.path / ".hoodie" / name).write_bytes(b"")
    with pytest.raises(Exception, match="Found hollow commit"):
        sides.hudi.read(sides.path, {QUERY: "incremental", BEGIN: first})
    with pytest.raises(hf.ConfigError, match="Found hollow commit"):
        sides.table.incremental(first)
    assert assert_same_answer(sides, first, **{POLICY: "BLOCK"}) == 5
