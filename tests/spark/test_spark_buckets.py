"""Buckets of a routed write, against a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.spark.writing.workload import Buckets, InsertPlace, insert_places
from hudi_fast.writing.profile import InsertFiles

SHARES = st.lists(st.floats(0, 1, exclude_max=True), max_size=50)


def insert_files(filled: list[tuple[int, int]], inserts: int, full: int) -> InsertFiles:
    """Small files, and new files of at most ``full`` rows, as they are assigned."""
    new = [min(full, inserts - start) for start in range(0, inserts, full)]
    return InsertFiles(tuple(filled), tuple(new))


FILES = st.builds(
    insert_files,
    filled=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 1000)), max_size=4, unique_by=lambda one: one[0]),
    inserts=st.integers(0, 10_000),
    full=st.integers(1500, 4000),
).filter(lambda one: bool(one.filled or one.new))


def bucket(files: InsertFiles, new: list[int], share: float) -> set[int]:
    """The buckets that may take a row: the file of its place among all inserts, or the next one at a bound."""
    sizes = [*files.filled, *zip(new, files.new, strict=True)]
    total, start, found = sum(count for _, count in sizes), 0, set()
    filled = sum(count for _, count in files.filled)
    for number, count in sizes:
        slack = filled / 128 + 1 if number < FIRST_NEW and len(files.filled) > 1 else 1e-6 * total
        if start - slack <= share * total <= start + count + slack:
            found.add(number)
        start += count
    return found


FIRST_NEW = 10


@given(st.dictionaries(st.text(max_size=3), FILES, min_size=1, max_size=4), SHARES)
def test_inserts_go_to_the_files_of_their_partition(files: dict[str, InsertFiles], shares: list[float]) -> None:
    places = insert_places(files, FIRST_NEW)
    taken: list[int] = []
    for name, one in files.items():
        place = places[name]
        new = [*range(place.first, place.first + one.new_files - 1), *[place.last][: one.new_files]]
        for share, found in zip(shares, place.buckets(np.array(shares, dtype=np.float64)).tolist(), strict=True):
            assert found in bucket(one, new, share)
        taken += new
    assert sorted(taken) == list(range(FIRST_NEW, FIRST_NEW + sum(one.new_files for one in files.values())))


def test_small_files_take_their_share() -> None:
    files = InsertFiles(filled=((3, 100), (7, 300)), new=(300, 100))
    found = insert_places({"p": files}, 10)["p"].buckets(np.arange(8000) / 8000)
    assert dict(zip(*(each.tolist() for each in np.unique(found, return_counts=True)), strict=True)) == {
        3: 1000,
        7: 3000,
        10: 3000,
        11: 1000,
    }


def test_new_files_are_filled_to_the_maximum_and_the_last_one_is_filled_next_time() -> None:
    files = InsertFiles((), (12_000, 12_000, 6_000))
    found = insert_places({"p": files}, 0)["p"].buckets(np.arange(30_000) / 30_000)
    assert np.bincount(found).tolist() == [12_000, 12_000, 6_000]


def test_the_largest_of_the_last_files_comes_first() -> None:
    files = {"a": InsertFiles((), (10, 1)), "b": InsertFiles((), (10, 10, 9)), "c": InsertFiles((), (5,))}
    places = insert_places(files, 0)
    assert [(one.first, one.last) for one in places.values()] == [(0, 5), (1, 3), (3, 4)]


def test_rows_of_a_partition_without_a_place_stay_together() -> None:
    buckets = Buckets([], [], 5, {"known": InsertPlace(0.0, (), 2, 1, 2)}, uncounted=3)
    assert buckets.of_inserts("known", np.array([0.5])).tolist() == [2]
    for name in ("other", None):
        found = set(buckets.of_inserts(name, np.arange(10) / 10).tolist())
        assert len(found) == 1
        assert found <= set(range(3, 8))


def test_slices_have_owners_and_other_buckets_their_number() -> None:
    slices: Any = ["a", "b"]
    buckets = Buckets(slices, [4, 2], 5, {}, uncounted=2)
    assert buckets.tasks_of(np.array([0, 1, 2, 3, 7, -2])).tolist() == [4, 2, 2, 3, 2, 0]
