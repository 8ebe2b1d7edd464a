"""All orders of the calls of two writers, and of a writer and each service; and orders in which planted bugs show."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.simulation.bugs import planted
from tests.simulation.histories import Op, Setting
from tests.simulation.installed import LOCAL
from tests.simulation.scopes import explore

A = (Op("upsert", ("k0",), 7),)
B = (Op("upsert", ("k2",), 8),)
"""Of the same file group."""

MOST = 20_000
"""Orders to try; the test prints whether there are more."""

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
SERVICES = {COW: ("clean", "cluster", "archive", "savepoint"), MOR: ("clean", "compact", "cluster", "archive")}


def setting(kind: str, version: str = "9") -> Setting:
    return Setting(LOCAL, kind, version, metadata=False, retries=0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), [(COW, B), (MOR, B), (MOR, (Op("clean"),))], ids=["cow", "mor", "clean"])
def test_some_orders_of_two_lose_nothing(kind: str, other: tuple[Op, ...]) -> None:
    found = explore(setting(kind), {"A": A, "B": other}, most=15)
    print(found)
    assert not found.wrong, found.wrong[0]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", [COW, MOR])
def test_all_orders_of_two_writers_lose_nothing(kind: str, version: str) -> None:
    found = explore(setting(kind, version), {"A": A, "B": B}, MOST)
    print(found)
    assert not found.wrong, found.wrong[0]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("kind", "service"), [(kind, name) for kind in SERVICES for name in SERVICES[kind]])
def test_all_orders_of_a_writer_and_a_service_lose_nothing(kind: str, service: str) -> None:
    found = explore(setting(kind), {"A": A, "B": (Op(service),)}, MOST)
    print(found)
    assert not found.wrong, found.wrong[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "kind", "other", "retries"),
    [
        ("no lock", COW, B, 1),
        ("conflicts are looked for in the table of the beginning", COW, B, 0),
    ],
    ids=["lock", "conflicts"],
)
def test_orders_in_which_a_bug_shows_are_found(bug: str, kind: str, other: tuple[Op, ...], retries: int) -> None:
    table = replace(setting(kind), retries=retries)
    found = explore(table, {"A": A, "B": other}, most=200, mutation=partial(planted, bug), until_wrong=True)
    print(found)
    assert found.wrong
