"""The checker can fail: without the parts of the product that keep histories safe, it finds what was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.concurrency.campaign import Run, Tally, campaign, in_processes
from tests.concurrency.faults import MUTATIONS
from tests.concurrency.history import WriterPool
from tests.concurrency.worlds import Fault, Op, World, apart, world_of

BUSY = {"hoodie.write.num.retries.on.conflict.failures": "0"}


def contended(seed: int) -> World:
    """Two writers that add to one counter, over and over."""
    calm = world_of(seed, writers=2, steps=4)
    key = calm.first[0][0]
    options = {**calm.options, **BUSY, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    scripts = tuple(tuple(Op("increment", (key,)) for _ in script) for script in calm.scripts)
    return replace(calm, options=options, scripts=scripts)


def slept_through(seed: int) -> World:
    """Two machines; one writer sleeps while it has the lock, for longer than its lease."""
    world = apart(contended(seed))
    rule = {"hoodie.client.heartbeat.interval_in_ms": "60000"}
    asleep = Fault("stop", 0, "metadata_completed", seed % 3, ms=500)
    return replace(world, options={**world.options, **rule}, faults=(asleep,))


def cleaned_up(seed: int) -> World:
    """One writer writes and another cleans."""
    calm = contended(seed)
    scripts = (calm.scripts[0], (Op("clean"),) * 12)
    return replace(calm, scripts=scripts)


LOUD: dict[str, Callable[[int], World]] = {
    "lock admits two": contended,
    "conflicts are not looked for": contended,
    "metadata table is passed over": contended,
    "fence is gone": slept_through,
    "signs of life are passed over": cleaned_up,
}
"""What finds a mutation soonest."""


def until_found(worlds: Iterator[World], folder: Path, run: Run) -> Tally:
    return campaign(worlds, folder, run, lambda tally: bool(tally.wrong))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", LOUD)
def test_a_missing_safeguard_is_noticed(mutation: str, writers: WriterPool, scratch: Path) -> None:
    worlds = (LOUD[mutation](seed) for seed in range(700, 740))
    tally = until_found(worlds, scratch, in_processes(writers, (mutation,)))
    print(tally)
    assert tally.wrong, f"{tally.histories} histories without that, and nobody noticed"


@pytest.mark.slow
@pytest.mark.parametrize("world", sorted(set(LOUD.values()), key=lambda make: make.__name__))
def test_with_all_safeguards_nothing_is_lost(world: Callable[[int], World], writers: WriterPool, scratch: Path) -> None:
    tally = campaign(map(world, range(700, 702)), scratch, in_processes(writers))
    assert not tally.wrong, str(tally)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mutation", [name for name in LOUD if LOUD[name] is contended])
def test_random_histories_notice_it_too(mutation: str, writers: WriterPool, scratch: Path) -> None:
    worlds = (world_of(seed) for seed in range(800, 1100))
    tally = until_found(worlds, scratch, in_processes(writers, (mutation,)))
    print(tally)
    assert tally.wrong


def test_every_mutation_is_one_of_the_product() -> None:
    assert set(LOUD) <= set(MUTATIONS)
