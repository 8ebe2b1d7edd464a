"""Either side archives, the other reads the history, writes on and archives further: data and metadata tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import WRITE_ACTIONS
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import Sides, after_upsert, data_columns, trip_options, trips
from tests.support.rows import assert_same_rows

KEEP = {
    "hoodie.clean.automatic": True,
    "hoodie.clean.commits.retained": 2,
    "hoodie.cleaner.commits.retained": 2,
    "hoodie.keep.min.commits": 3,
    "hoodie.keep.max.commits": 4,
    "hoodie.timeline.compaction.batch.size": 3,
    "hoodie.metadata.compact.max.delta.commits": 3,
}
EVERYTHING = "limit => 1000, start_ts => '20000101000000', end_ts => '21000101000000'"


class Turns:
    """Writes of both sides to one table, all kept count of."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.turn = 0
        self.rows = trips(range(12))
        self.times: set[str] = set()

    def write(self, by_us: int = 0, by_hudi: int = 0) -> None:
        for turn in range(by_us + by_hudi):
            self.turn += 1
            new = trips(range(self.turn, self.turn + 12), ts=self.turn + 1, note=f"turn {self.turn}")
            if self.turn == 1:
                new = self.rows
            (self.sides.we_write if turn < by_us else self.sides.hudi_writes)(new, more=KEEP)
            self.rows = after_upsert(self.rows, new)
            self.times |= set(active(self.sides.path))

    def check(self) -> list[str]:
        """Both sides read the rows; each write is on one timeline; the archived ones."""
        self.sides.agree(self.rows)
        archived = writes_of(self.sides.path)
        assert archived == sorted(set(archived))
        assert not set(archived) & set(active(self.sides.path))
        assert set(archived) | set(active(self.sides.path)) == self.times
        return archived


def archive_of(path: Path) -> ArchivedTimeline:
    state = load_state(Storage(path))
    return ArchivedTimeline(state.storage, state.config)


def writes_of(path: Path) -> list[str]:
    return [one.requested for one in archive_of(path).instants(actions=WRITE_ACTIONS)]


def active(path: Path) -> list[str]:
    return [one.requested for one in load_state(Storage(path)).timeline.writes()]


def told_by_hudi(sides: Sides) -> list[str]:
    """Archived commits by Hudi's own procedure."""
    told = sides.hudi.sql(f"CALL show_archived_commits(table => '{sides.in_catalog()}', {EVERYTHING})")
    return sorted(set(told["commit_time"].to_pylist()))


def check_metadata_table(path: Path, recwarn: pytest.WarningsRecorder) -> list[str]:
    """It is trusted; its own archived delta commits."""
    state = open_state(Storage(path))
    table = metadata_of(state)
    assert table is not None, [str(one.message) for one in recwarn]
    assert {one.requested for one in state.timeline.writes()} <= {one.requested for one in table.timeline.writes()}
    return [one.requested for one in ArchivedTimeline(table.storage, table.config).instants()]


def incremental(sides: Sides, begin: str) -> pa.Table:
    """Hudi's rows of commits after a time; files that a clean has deleted are looked up in what is left."""
    return sides.hudi.read(
        sides.path,
        {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
            "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true",
        },
    )


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_hudi_reads_our_archive_and_archives_on_top_of_it(
    peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version))
    turns = Turns(sides)
    turns.write(by_us=9)
    ours = turns.check()
    assert len(ours) >= 5
    assert told_by_hudi(sides) == ours
    assert check_metadata_table(sides.path, recwarn)
    third = archive_of(sides.path).instants(ours[2], ours[2], WRITE_ACTIONS)[0]
    found = incremental(sides, ours[2] if version < 8 else str(third.completion))
    newest = sides.table.to_arrow()
    later = newest.filter(pa.compute.greater(newest["_hoodie_commit_time"], ours[2]))
    assert_same_rows(found, later, ignore=())
    at = active(sides.path)[-2]
    assert_same_rows(sides.table.to_arrow(as_of=at), sides.hudi.read(sides.path, {"as.of.instant": at}), ignore=())
    turns.write(by_hudi=3)
    both = turns.check()
    assert both[: len(ours)] == ours
    assert len(both) > len(ours)
    turns.write(by_us=3)
    assert len(turns.check()) > len(both)
    assert sides.table.services.validate().ok
    assert told_by_hudi(sides) == writes_of(sides.path)


@pytest.mark.long
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 8), ("hudi_12", 6)])
def test_we_read_hudi_s_archive_and_archive_on_top_of_it(
    peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version))
    turns = Turns(sides)
    turns.write(by_hudi=7)
    theirs = turns.check()
    assert len(theirs) >= 3
    assert told_by_hudi(sides) == theirs
    for row in archive_of(sides.path).read():
        if row.action in WRITE_ACTIONS:
            assert all(row.requested in stat.path for stat in decode_commit_metadata(row.metadata or b"").write_stats())
    turns.write(by_us=5)
    both = turns.check()
    assert both[: len(theirs)] == theirs
    assert len(both) > len(theirs)
    assert told_by_hudi(sides) == both
    check_metadata_table(sides.path, recwarn)
    turns.write(by_hudi=1, by_us=1)
    turns.check()
    assert sides.table.services.validate().ok


@pytest.mark.long
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9)])
def test_both_archive_a_table_with_logs_and_compactions(
    peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    options: dict[str, Any] = {
        **mor_options(version),
        "hoodie.compact.inline": True,
        "hoodie.compact.inline.max.delta.commits": 2,
    }
    sides = MorSides(request.getfixturevalue(peer), tmp_path / "trips", options)
    turns = Turns(sides)
    turns.write(by_us=8)
    ours = turns.check()
    assert ours
    assert told_by_hudi(sides) == ours
    turns.write(by_hudi=4)
    both = turns.check()
    assert len(both) > len(ours)
    actions = {one.action for one in archive_of(sides.path).instants()}
    assert {"commit", "deltacommit"} <= actions
    turns.write(by_us=3)
    assert len(turns.check()) > len(both)
    check_metadata_table(sides.path, recwarn)
    assert data_columns(sides.table.to_arrow()).num_rows == turns.rows.num_rows
