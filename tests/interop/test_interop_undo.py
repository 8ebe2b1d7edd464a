"""Savepoints, restores and rollbacks in turns with real Hudi: what one side saves or breaks, the other takes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast.timeline.instants import Instant
from hudi_fast.timeline.transition import revert_to_inflight
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import Sides, after_upsert, trip_options, trips
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rollback_tables import QUIET, state_of

pytestmark = pytest.mark.peer


@dataclass(frozen=True)
class Case:
    """Who the other side is, and the kind of table; ``stats``: whether its metadata table has ``column_stats``."""

    peer: str
    version: int
    mor: bool
    stats: bool = True

    def __str__(self) -> str:
        return f"{self.peer}-{'mor' if self.mor else 'cow'}-v{self.version}"


@pytest.fixture
def sides(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sides]:
    hudi = request.getfixturevalue(case.peer)
    more = {"hoodie.metadata.index.column.stats.enable": str(case.stats).lower(), **QUIET}
    if case.mor:
        yield MorSides(hudi, tmp_path / "trips", {**mor_options(case.version), **more})
    else:
        yield Sides(hudi, tmp_path / "trips", {**trip_options(case.version), **more})


@contextlib.contextmanager
def as_it_is(sides: Sides) -> Iterator[str]:
    """The table's name for Hudi's procedures, which must not upgrade it."""
    name = sides.in_catalog()
    if sides.hudi.version.startswith("0."):
        yield name
        return
    sides.hudi.sql("SET hoodie.write.auto.upgrade=false")
    try:
        yield name
    finally:
        sides.hudi.sql("RESET hoodie.write.auto.upgrade")


def call(sides: Sides, procedure: str, instant: str) -> None:
    argument = "commit_time" if procedure == "create_savepoint" else "instant_time"
    with as_it_is(sides) as name:
        told = sides.hudi.sql(f"CALL {procedure}(table => '{name}', {argument} => '{instant}')")
    assert told.column(0).to_pylist() == [True]


def writes_of(sides: Sides) -> list[Instant]:
    return list(state_of(sides.path).timeline.writes())


def start(sides: Sides) -> tuple[pa.Table, str]:
    """Rows that either side wrote a part of, and the newest commit."""
    rows = trips(range(30))
    sides.we_write(rows)
    new = trips(range(5, 25, 2), ts=2, note="by Hudi")
    sides.hudi_writes(new)
    return after_upsert(rows, new), writes_of(sides)[-1].requested


def go_on(sides: Sides, rows: pa.Table, ts: int) -> pa.Table:
    """Each side writes, new keys and old ones; both read the same, and the metadata table tells the truth."""
    for turn, write in enumerate((sides.we_write, sides.hudi_writes)):
        new = trips(range(3 * turn, 40 + turn, 3), ts=ts + turn, note=f"after {turn}")
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_metadata_true(sides.path)
    if not sides.hudi.version.startswith("0."):
        with as_it_is(sides) as name:
            assert sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{name}')").num_rows == 0
    return rows


def write_on(sides: Sides) -> None:
    """What is to be taken back: a write of each side, a compaction between them where there are logs."""
    sides.hudi_writes(trips(range(0, 36, 2), ts=5, note="gone"))
    if isinstance(sides, MorSides):
        sides.we_compact({"hoodie.metadata.index.column.stats.enable": "true"})
    sides.we_write(trips(range(1, 40, 3), ts=6, note="gone too"))


WE_SAVE = [
    pytest.param(Case("hudi_12", 9, False), marks=pytest.mark.long),
    pytest.param(Case("hudi_015", 6, True), marks=pytest.mark.long),
]


@pytest.mark.parametrize("case", WE_SAVE, ids=str)
def test_hudi_restores_to_a_savepoint_of_ours(sides: Sides) -> None:
    rows, saved = start(sides)
    assert sides.table.services.savepoint(user="us").instant == saved
    write_on(sides)
    call(sides, "rollback_to_savepoint", saved)
    assert writes_of(sides)[-1].requested == saved
    sides.agree(rows)
    go_on(sides, rows, 10)


HUDI_SAVES = [pytest.param(Case("hudi_12", 8, True), marks=pytest.mark.long), Case("hudi_12", 6, True)]


@pytest.mark.parametrize("case", HUDI_SAVES, ids=str)
def test_we_restore_to_a_savepoint_of_hudi(sides: Sides) -> None:
    rows, saved = start(sides)
    call(sides, "create_savepoint", saved)
    write_on(sides)
    result = sides.table.services.restore(saved)
    assert len(result.rolled_back) == (3 if isinstance(sides, MorSides) else 2)
    assert writes_of(sides)[-1].requested == saved
    sides.agree(rows)
    assert_metadata_true(sides.path)
    go_on(sides, rows, 10)
    call(sides, "rollback_to_savepoint", saved)
    sides.agree(rows)


def make_inflight(sides: Sides) -> str:
    """Take the newest completed instant's last file away, as if its writer had died just before."""
    state = state_of(sides.path)
    newest = state.timeline.writes()[-1]
    revert_to_inflight(state.storage, state.config, newest)
    return newest.requested


# Rolling back drops column_stats in 0.15, and what it builds later lacks base files that are not its own.
@pytest.mark.smoke("hudi_12-mor-v9")
@pytest.mark.parametrize("case", [Case("hudi_12", 9, True), Case("hudi_015", 6, True, stats=False)], ids=str)
def test_either_side_rolls_back_what_the_other_wrote(sides: Sides) -> None:
    rows, _ = start(sides)
    sides.we_write(trips(range(0, 36, 2), ts=20, note="unwanted"))
    # Early on: Hudi refuses once it has compacted its metadata table, which it does before it looks.
    call(sides, "rollback_to_instant", writes_of(sides)[-1].requested)
    sides.agree(rows)
    sides.hudi_writes(trips(range(20, 45), ts=5, note="dead"))
    dead = make_inflight(sides)
    assert sides.table.services.rollback().rolled_back == (dead,)
    sides.agree(rows)
    sides.hudi_writes(trips(range(0, 36, 2), ts=6, note="unwanted"))
    newest = writes_of(sides)[-1].requested
    assert sides.table.services.rollback(newest).rolled_back == (newest,)
    sides.agree(rows)
    go_on(sides, rows, 10)
