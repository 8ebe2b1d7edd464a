"""Random histories of several writers: nothing is lost, and the checker would notice if it were."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.concurrency.campaign import CLOCKS, CRASHES, PAUSES, Tally, campaign, in_processes, in_threads
from tests.concurrency.history import WriterPool
from tests.concurrency.worlds import World, apart, with_late_rows, world_of

SMALL = {"writers": 2, "steps": 3}
RANDOM = secrets.randbelow(2**31)
"""One seed of each session is new; a failure names it."""


def worlds(start: int, count: int, kinds: tuple[str, ...] = (), **size: int) -> Iterator[World]:
    yield from (world_of(seed, kinds, **size) for seed in range(start, start + count))
    yield world_of(RANDOM, kinds, **size)


def assert_nothing_lost(tally: Tally) -> None:
    print(tally)
    assert not tally.wrong, str(tally)


@pytest.mark.smoke
@pytest.mark.slow
def test_processes_lose_nothing(writers: WriterPool, scratch: Path) -> None:
    assert_nothing_lost(campaign(worlds(100, 8, **SMALL), scratch, in_processes(writers)))


@pytest.mark.slow
def test_threads_lose_nothing(scratch: Path) -> None:
    assert_nothing_lost(campaign(worlds(200, 3, **SMALL), scratch, in_threads))


@pytest.mark.slow
def test_writers_that_die_or_fail_lose_nothing(writers: WriterPool, scratch: Path) -> None:
    tally = campaign(worlds(300, 10, CRASHES, **SMALL), scratch, in_processes(writers))
    assert_nothing_lost(tally)
    assert tally.killed


@pytest.mark.slow
def test_writers_on_many_machines_that_sleep_lose_nothing(writers: WriterPool, scratch: Path) -> None:
    assert_nothing_lost(campaign(map(apart, worlds(400, 3, PAUSES, **SMALL)), scratch, in_processes(writers)))


@pytest.mark.slow
def test_clocks_that_are_off_lose_nothing(writers: WriterPool, scratch: Path) -> None:
    assert_nothing_lost(campaign(worlds(500, 3, CLOCKS, **SMALL), scratch, in_processes(writers)))


@pytest.mark.slow
def test_rows_that_come_late_lose_against_stored_ones(writers: WriterPool, scratch: Path) -> None:
    assert_nothing_lost(campaign(map(with_late_rows, worlds(600, 4, **SMALL)), scratch, in_processes(writers)))


@pytest.mark.slow
def test_restores_beside_writers_lose_nothing_but_what_they_undo(writers: WriterPool, scratch: Path) -> None:
    tried = (world_of(seed, restoring=True, writers=2, steps=5) for seed in (*range(700, 703), RANDOM))
    assert_nothing_lost(campaign(tried, scratch, in_processes(writers)))


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kinds", [(), CRASHES], ids=["calm", "crashes"])
def test_larger_worlds_with_late_rows_and_restores_lose_nothing(
    writers: WriterPool, scratch: Path, kinds: tuple[str, ...]
) -> None:
    tried = (world_of(seed, kinds, restoring=seed % 2 == 0) for seed in (*range(15_000, 15_150), RANDOM))
    late = (with_late_rows(world) if world.seed % 3 else world for world in tried)
    assert_nothing_lost(campaign(late, scratch, in_processes(writers)))


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kinds", [(), CRASHES, PAUSES, CLOCKS], ids=["calm", "crashes", "pauses", "clocks"])
@pytest.mark.parametrize("machines", ["one", "many"])
def test_larger_worlds_lose_nothing(writers: WriterPool, scratch: Path, kinds: tuple[str, ...], machines: str) -> None:
    tried = worlds(10_000, 150, kinds)
    assert_nothing_lost(campaign(tried if machines == "one" else map(apart, tried), scratch, in_processes(writers)))
