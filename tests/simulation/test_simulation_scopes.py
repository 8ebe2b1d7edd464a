"""All orders of the calls of two writers, and of a writer and each service; and orders in which planted bugs show."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.simulation.bugs import planted
from tests.simulation.pairs import PAIRS, SAME_GROUP, WRITE, Pair
from tests.simulation.scopes import GRAINS, explore, interrupted_once

SCRIPTS = {"A": (WRITE,), "B": (SAME_GROUP,)}
COMPLETE = ("cow 9: two writers of a file group", "cow 9: a writer and a reader")
"""Pairs whose orders are few."""


def assert_nothing_lost(pair: Pair, seconds: float = float("inf")) -> bool:
    """Whether all orders were tried."""
    found = pair.explored("timeline", seconds)
    print(found)
    assert not found.wrong, found.wrong[0]
    assert found.orders
    return found.is_complete


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLETE)
def test_all_orders_of_a_small_pair_lose_nothing(name: str) -> None:
    assert assert_nothing_lost(PAIRS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow 9: a writer and savepoint", "cow 9: a writer and archive"])
def test_runs_that_end_in_known_states_hide_no_end(name: str) -> None:
    pair = PAIRS[name]
    all_, some = (explore(pair.setting, pair.scripts, grain="timeline", remembers=each) for each in (False, True))
    print(all_, some, sep="\n")
    assert all_.is_complete
    assert some.is_complete
    assert some.ends >= all_.ends  # times differ where one waits for the other: some ends are there twice
    assert 0 < some.met
    assert some.calls < all_.calls


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mor 9: two writers of a file group", "mor 9: a writer and compact"])
def test_some_orders_of_every_call_lose_nothing(name: str) -> None:
    found = explore(PAIRS[name].setting, PAIRS[name].scripts, limit=15)
    print(found)
    assert not found.wrong, found.wrong[0]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in COMPLETE])
def test_all_orders_of_a_pair_lose_nothing(name: str) -> None:
    assert_nothing_lost(PAIRS[name], seconds=1800)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow 9: two writers of a file group", "mor 9: a writer and compact"])
def test_either_may_interrupt_the_other(name: str) -> None:
    found = interrupted_once(PAIRS[name].setting, PAIRS[name].scripts, every=9)
    assert not found.wrong, found.wrong[0]


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PAIRS)
def test_either_may_interrupt_the_other_anywhere(name: str) -> None:
    found = interrupted_once(PAIRS[name].setting, PAIRS[name].scripts)
    print(found)
    assert not found.wrong, found.wrong[0]


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["no lock", "conflicts are looked for in the table of the beginning"])
def test_a_bug_that_needs_one_interruption_is_found(bug: str) -> None:
    table = replace(PAIRS["cow 9: two writers of a file group"].setting, retries=0)
    found = interrupted_once(table, SCRIPTS, partial(planted, bug), every=3)
    print(found)
    assert found.wrong


@pytest.mark.slow
@pytest.mark.parametrize("grain", GRAINS)
def test_orders_in_which_a_bug_shows_are_found(grain: str) -> None:
    bug = "conflicts are looked for in the table of the beginning"
    table = replace(PAIRS["cow 9: two writers of a file group"].setting, retries=0)
    found = explore(table, SCRIPTS, limit=200, mutation=partial(planted, bug), until_wrong=True, grain=grain)
    print(found)
    assert found.wrong


@pytest.mark.slow
def test_a_lock_that_nobody_asks_for_at_the_end_is_found() -> None:
    pair = PAIRS["cow 9, S3: two writers, one outlives its lease"]
    bug = partial(planted, "nobody asks whether the lock was held to the end")
    found = explore(
        pair.setting, pair.scripts, 60, mutation=bug, until_wrong=True, grain="timeline", faults=pair.faults
    )
    print(found)
    assert found.wrong
