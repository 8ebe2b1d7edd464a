"""The catalogue of mutants fits the product as it is now."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
LEAST = 60
LEAST_BY_AREA = {
    "merging": 12,
    "writing": 12,
    "timeline": 8,
    "services": 12,
    "metadata": 10,
    "reading": 8,
    "locking": 4,
    "spark": 6,
    "formats": 3,
}
BY_NAME = {one.name: one for one in MUTANTS}


@cache
def text_of(file: str) -> str:
    """The text of a file of the checkout."""
    return (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=list(BY_NAME))
def test_a_mutant_fits_its_file(mutant: Mutant) -> None:
    changed = mutant.applied(text_of(mutant.file))
    assert changed != text_of(mutant.file)
    compile(changed, mutant.file, "exec")


def test_names_are_unique_and_tell_the_area() -> None:
    assert len(BY_NAME) == len(MUTANTS)
    assert {one.area for one in MUTANTS} == set(LEAST_BY_AREA)


def test_there_are_enough_of_each_area() -> None:
    assert len(MUTANTS) >= LEAST
    counts = Counter(one.area for one in MUTANTS)
    assert {area: counts[area] for area in LEAST_BY_AREA if counts[area] < LEAST_BY_AREA[area]} == {}


def test_tests_to_ask_first_are_there() -> None:
    assert [one.name for one in MUTANTS if not one.near] == []
    assert [(one.name, path) for one in MUTANTS for path in one.near if not (ROOT / path).exists()] == []


def test_harm_is_one_sentence() -> None:
    assert [one.name for one in MUTANTS if not one.harm.endswith(".") or ". " in one.harm.replace("0. ", "")] == []


def test_text_that_is_not_there_is_an_error() -> None:
    mutant = Mutant("area-mistake", "file", "two", "one", "Harm.", ("tests",))
    for text in ("one", "two two"):
        with pytest.raises(ValueError, match="area-mistake"):
            mutant.applied(text)
