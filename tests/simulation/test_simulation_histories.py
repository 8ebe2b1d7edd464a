"""Histories in the simulated world: nothing that was acknowledged is lost, whatever happens.

Numbers are fixed; ``make soak`` tries others by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest

from tests.simulation import remembered
from tests.simulation.bugs import BUGS, planted
from tests.simulation.histories import FAMILIES, Fault, Op, Plan, Setting, plan_of, run, told
from tests.simulation.installed import LOCAL, S3
from tests.simulation.serial import LATER, Step, explained, explained_around_loss

NUMBERS = 7


def assert_nothing_lost(plan: Plan) -> None:
    history = run(plan)
    assert not history.wrong, "\n".join(told(history))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_lost(family: str) -> None:
    for number in range(NUMBERS):
        assert_nothing_lost(plan_of(family, number))


SAME_GROUP = {"A": (Op("upsert", ("k0",), 7),), "B": (Op("upsert", ("k2",), 8),)}
THREE = {**SAME_GROUP, "C": (Op("upsert", ("d0",), 9),)}
BESIDE_A_CLEAN = {"A": (Op("upsert", ("k0",), 7),), "B": (Op("clean"),)}


def two(number: int, place: str, scripts: Mapping[str, tuple[Op, ...]], *faults: Fault) -> Plan:
    """Two at work on one file group."""
    setting = Setting(place, "COPY_ON_WRITE", "9", metadata=False, retries=0)
    return Plan(number, setting, scripts, faults, switches=0.5)


def asleep(at: int, among: str) -> Fault:
    """A sleeps for longer than its lease."""
    return Fault("pause", "A", at, among, 4000.0)


@pytest.mark.slow
def test_a_writer_that_sleeps_past_its_lease_before_it_completes_loses_nothing() -> None:
    for number in range(30):
        assert_nothing_lost(two(number, S3, SAME_GROUP, asleep(0, "completing")))


@pytest.mark.slow
def test_a_writer_that_sleeps_past_its_lease_before_it_looks_at_it_loses_nothing() -> None:
    for plan in sleepers():
        assert_nothing_lost(plan)


def sleepers() -> Iterator[Plan]:
    for at in (46, 45, 47, 44, 48):
        for number in (6, 8, 10, 11):
            yield two(number, S3, SAME_GROUP, asleep(at, "any"))


PLANTED: dict[str, Callable[[], Iterator[Plan]]] = {
    "no lock": lambda: (two(number, LOCAL, SAME_GROUP) for number in range(60)),
    "conflicts are looked for in the table of the beginning": lambda: (
        two(number, LOCAL, SAME_GROUP) for number in range(60)
    ),
    "heartbeats are not looked at": lambda: (two(number, LOCAL, BESIDE_A_CLEAN) for number in range(60)),
    "nobody asks whether the lock was held to the end": lambda: (
        two(number, S3, SAME_GROUP, asleep(0, "completing")) for number in range(30)
    ),
    "files are created and replaced without a condition": lambda: (two(number, S3, THREE) for number in range(130)),
}
"""Histories in which a planted bug shows."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert any(run(plan, mutation=partial(planted, bug)).wrong for plan in PLANTED[bug]())


@pytest.mark.slow
def test_without_the_bugs_the_same_histories_lose_nothing() -> None:
    for plan in (*PLANTED["no lock"](), *PLANTED["heartbeats are not looked at"]()):
        if plan.number < 8:
            assert_nothing_lost(plan)


@pytest.mark.slow
@pytest.mark.parametrize("service", ["compact", "compact_logs"])
def test_a_plan_survives_a_loss_of_power_with_the_log_file_of_a_write_under_way(service: str) -> None:
    """Before version 8 the name of a log file does not tell whose it is, so that a plan may name it."""
    table = Setting(LOCAL, "MERGE_ON_READ", "6", metadata=False)
    scripts = {"A": (Op("upsert", ("k2", "k3"), 7),), "S": (Op(service),)}
    for number in (19, 22, 29):
        power = Fault("power", "S", 3 + number % 6, "timeline")
        assert_nothing_lost(Plan(number, table, scripts, (power,), switches=0.1))


FOUND = (("leases", 31009732), ("power", 31005909))
"""A compaction planned by a machine whose clock is a day behind; a clean whose inflight file a loss of power took."""


@pytest.mark.slow
@pytest.mark.parametrize(("family", "number"), FOUND)
def test_histories_that_went_wrong_once_lose_nothing(family: str, number: int) -> None:
    assert_nothing_lost(plan_of(family, number))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_compaction_planned_by_a_machine_whose_clock_is_behind_loses_no_log_file(version: str) -> None:
    """Its requested time is before that of a write which has not seen the plan."""
    table = Setting(S3, "MERGE_ON_READ", version, metadata=False, shared=True)
    scripts = {"A": (Op("increment", ("k3",), 7),), "S": (Op("compact"),)}
    behind = Fault("jump", "S", 0, "timeline", -86400.0)
    for number in range(30, 38):
        assert_nothing_lost(Plan(number, table, scripts, (behind,), switches=0.05))


@pytest.mark.parametrize("outcome", ["unknown", "done"])
def test_a_loss_of_power_may_take_what_a_reader_saw_but_not_what_was_acknowledged(outcome: str) -> None:
    steps = [
        Step("A", Op("upsert", ("k0",), 7), 0, 30, outcome),
        Step("R", Op("read"), 10, 20, "done", {"k0": 7}),
        Step(LATER, Op("read"), 40, 41, "done", {"k0": 3}),
    ]
    assert explained({"k0": 3}, steps)
    assert bool(explained_around_loss({"k0": 3}, steps)) is (outcome == "done")
    steps[1].rows = {"k0": 5}
    assert explained_around_loss({"k0": 3}, steps)


@pytest.mark.slow
def test_kept_answers_are_those_that_the_product_would_give() -> None:
    with remembered.checked():
        for family in ("calm", "lost answers"):
            for number in range(3):
                assert_nothing_lost(plan_of(family, number))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_lost_in_many_histories(family: str) -> None:
    for number in range(1000, 1500):
        assert_nothing_lost(plan_of(family, number))
