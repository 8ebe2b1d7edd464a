"""Whole lives of tables: every write and every service, by real Hudi and by us, each after another one of the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.interop.life_tables import Case
from tests.interop.mor_sides import MorSides
from tests.interop.service_sides import Life

pytestmark = pytest.mark.peer

WRITES = ("upsert", "insert", "delete", "insert_overwrite", "delete_partition")
SERVICES = ("clean", "archive", "cluster", "restore", "rollback", "failed_write", "pending_clustering")
OF_LOGS = ("compact", "compact_logs", "pending_compaction")
LIVES = (
    Case("hudi_12", 9, False),
    Case("hudi_12", 9, True, indexed=True),
    Case("hudi_12", 8, True),
    Case("hudi_12", 6, True),
    Case("hudi_015", 6, False),
    Case("hudi_015", 6, True),
)
BY_DEFAULT = (1, 5)
"""The others live in the tier ``long``."""

SEED = 100

Turn = tuple[str, str]


def turns_of(case: Case, number: int) -> list[Turn]:
    """What is done and by whom: each once, two of ours and one of Hudi's, which takes the longer."""
    names = [*WRITES, *SERVICES, *(OF_LOGS if case.mor else ())]
    random.Random(SEED * 100 + number).shuffle(names)
    return [(name, "hudi" if (position + number) % 3 == 0 else "us") for position, name in enumerate(names)]


def live(life: Life, turns: Sequence[Turn]) -> None:
    """Do the turns; after each of them everything that must be true is."""
    for first in ("us", "hudi", "us"):
        life.insert(first)
    life.remember()
    for number, (name, by) in enumerate(turns, 1):
        life.told.append(f"{name} by {by}")
        getattr(life, name)(by)
        life.look(hudi=number % 5 == 0)
        life.remember()
        if number % 7 == 0:
            life.validate()
            life.travel()
    life.look(hudi=True)
    life.travel()
    life.validate()
    life.hudi_validates()


def test_each_side_does_everything_right_after_the_other() -> None:
    after: set[Turn] = set()
    for number, case in enumerate(LIVES):
        turns = turns_of(case, number)
        after |= {this for last, this in pairwise(turns) if last[1] != this[1]}
    assert after == {(name, by) for name in (*WRITES, *SERVICES, *OF_LOGS) for by in ("us", "hudi")}


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n in BY_DEFAULT else pytest.mark.long, id=str(case)) for n, case in enumerate(LIVES)],
)
def test_a_whole_life(number: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    case = LIVES[number]
    sides = MorSides(request.getfixturevalue(case.peer), tmp_path / "trips", case.options())
    life = Life(sides, random.Random(number))
    with life.as_it_is():
        live(life, turns_of(case, number))


THROUGH_VERSIONS = (
    ("upsert", "us"),
    (8, "hudi"),
    ("delete", "us"),
    ("archive", "hudi"),
    (9, "us"),
    ("pending_compaction", "hudi"),
    ("upsert", "us"),
    (8, "hudi"),
    ("cluster", "us"),
    ("upsert", "hudi"),
    (6, "us"),
    ("insert_overwrite", "hudi"),
    ("clean", "us"),
    (9, "hudi"),
    ("compact", "us"),
)


@pytest.mark.long
def test_a_life_through_table_versions(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    case = Case("hudi_12", 6, True)
    life = Life(MorSides(request.getfixturevalue(case.peer), tmp_path / "trips", case.options()), random.Random(7))
    with life.as_it_is():
        for first in ("us", "hudi", "us"):
            life.insert(first)
        life.remember()
        for what, by in THROUGH_VERSIONS:
            life.told.append(f"{what} by {by}")
            if isinstance(what, int):
                life.upgrade(by, what)
            else:
                getattr(life, what)(by)
            life.look(hudi=isinstance(what, int))
            life.remember()
        life.travel()
        life.validate()
        life.hudi_validates()
