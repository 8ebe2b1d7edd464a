"""Tiers of tests: which of them ``make check``, ``make test``, ``make test-full`` and ``make test-long`` run.

The tier of a test follows from what it needs, which its fixtures tell, and from its own marks. The first line that
applies decides::

    marked long                                                    long
    marked smoke                                                   test
    marked slow, or needs a JVM, real Hudi, a server, a cluster    full
    any other                                                      check

Each tier includes those before it. A run with more tiers tries more examples of property tests (:data:`PROFILES`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Literal

import pytest

__all__ = [
    "COLLECTED",
    "MISNAMED",
    "NEEDS",
    "PROFILES",
    "RUNS",
    "TIERS",
    "Tier",
    "is_long",
    "marks_of",
    "needs_of",
    "summary",
    "tier_of",
    "unknown_cases",
]

Tier = Literal["check", "test", "full", "long"]

TIERS: tuple[Tier, ...] = ("check", "test", "full", "long")

NEEDS = {
    "java": "jvm",
    "spark": "spark",
    "hudi_12": "peer",
    "hudi_015": "peer",
    "azure": "server",
    "dynamodb": "server",
    "glue_url": "server",
    "hdfs": "server",
    "kafka": "server",
    "postgres": "server",
    "mariadb": "server",
    "schema_registry": "server",
    "hive_metastore": "server",
    "moto": "server",
    "s3_server": "server",
    "secured_hdfs": "server",
    "zookeeper": "server",
}
"""What a test needs that has one of these fixtures. A test without such a fixture says so by a mark of that name."""

RUNS: dict[str, tuple[Tier, ...]] = {
    "check": ("check",),
    "smoke": ("test",),
    "test": ("check", "test"),
    "rest": ("full",),
    "full": ("check", "test", "full"),
    "long": TIERS,
}
"""Values of ``--tier``, and the tiers that they run. ``smoke`` and ``rest`` add to a run of the tiers below them."""

COLLECTED = pytest.StashKey[dict[str, tuple[Tier, frozenset[str]]]]()
"""In the stash of pytest's configuration: tier and needs of each test, of those too that a run leaves out."""

OF_CASES = {"smoke", "slow", "long"}
"""Marks that may be for some cases of a parametrised test."""

MISNAMED = pytest.StashKey[list[str]]()
"""In the same stash: what :func:`unknown_cases` finds."""

PROFILES = {"check": "dev", "smoke": "dev", "test": "dev", "rest": "ci", "full": "ci", "long": "nightly"}
"""The profile of Hypothesis for each run; see :mod:`tests.support.examples`."""


def marks_of(item: pytest.Item) -> set[str]:
    """Names of the marks of a test.

    On a parametrised test, those of :data:`OF_CASES` may name the cases that they are for, or that they leave out:
    ``@pytest.mark.smoke("cow-9")``, ``@pytest.mark.slow(but="cow-9")``.
    """
    case = getattr(getattr(item, "callspec", None), "id", None)
    return {mark.name for mark in item.iter_markers() if mark.name not in OF_CASES or _is_for(mark, case)}


def _is_for(mark: pytest.Mark, case: str | None) -> bool:
    return case in mark.args if mark.args else case not in _but(mark)


def _but(mark: pytest.Mark) -> tuple[str, ...]:
    but = mark.kwargs.get("but", ())
    return (but,) if isinstance(but, str) else tuple(but)


def unknown_cases(items: Iterable[pytest.Item]) -> list[str]:
    """Tests whose marks name cases that they do not have."""
    named: dict[str, set[str]] = {}
    cases: dict[str, set[str]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        cases.setdefault(test, set()).add(case.removesuffix("]"))
        for mark in item.iter_markers():
            if mark.name in OF_CASES:
                named.setdefault(test, set()).update(mark.args, _but(mark))
    return sorted(f"{test}[{case}]" for test, found in named.items() for case in found - cases[test])


def is_long(config: pytest.Config) -> bool:
    """Whether tests that can be long are long: in the run ``long``."""
    return bool(config.getoption("--tier") == "long")


def needs_of(fixtures: Collection[str], marks: Collection[str]) -> frozenset[str]:
    """What a test needs: ``jvm``, ``spark``, ``peer``, ``server``, ``cluster``; empty for a test of one process."""
    known = {*NEEDS.values(), "cluster"}
    return frozenset({NEEDS[name] for name in fixtures if name in NEEDS} | (known & {*marks}))


def tier_of(needs: Collection[str], marks: Collection[str]) -> Tier:
    """The tier of a test that needs this and has these marks."""
    if "long" in marks:
        return "long"
    if "smoke" in marks:
        return "test"
    return "full" if needs or "slow" in marks else "check"


def summary(seconds: Iterable[tuple[Tier, float]]) -> list[str]:
    """A line for each tier: number of tests, and the seconds that they took in all processes."""
    numbers: Counter[Tier] = Counter()
    sums: defaultdict[Tier, float] = defaultdict(float)
    for tier, taken in seconds:
        numbers[tier] += 1
        sums[tier] += taken
    return [f"{tier:>6} {numbers[tier]:>6} tests {sums[tier]:>8.0f} s" for tier in TIERS if numbers[tier]]
