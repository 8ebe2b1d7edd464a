"""Buckets of a routed write, against a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.spark.writing.buckets import Buckets, InsertPlace, insert_places
from hudi_fast.writing.profile import InsertFiles

SHARES = st.lists(st.floats(0, 1, exclude_max=True), max_size=50)
FILES = st.builds(
    InsertFiles,
    filled=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 1000)), max_size=4).map(tuple),
    new_files=st.integers(0, 5),
    rows=st.integers(1, 10_000),
).filter(lambda one: bool(one.filled or one.new_files))


def bucket(place: InsertPlace, share: float) -> int:
    if share < place.filled:
        return place.slots[min(int(share * len(place.slots) / place.filled), len(place.slots) - 1)]
    return place.first + min(int((share - place.filled) * (place.files / (1 - place.filled))), place.files - 1)


@given(st.dictionaries(st.text(max_size=3), FILES, min_size=1, max_size=4), SHARES)
def test_inserts_go_to_the_files_of_their_partition(files: dict[str, InsertFiles], shares: list[float]) -> None:
    places = insert_places(files, 10)
    taken: set[int] = set()
    for name, one in files.items():
        found = places[name].buckets(np.array(shares, dtype=np.float64)).tolist()
        assert found == [bucket(places[name], share) for share in shares]
        new = set(range(places[name].first, places[name].first + one.new_files))
        assert set(found) <= new | {number for number, _ in one.filled}
        assert not new & taken
        taken |= new
    assert taken == set(range(10, 10 + sum(one.new_files for one in files.values())))


def test_small_files_take_their_share() -> None:
    files = InsertFiles(filled=((3, 100), (7, 300)), new_files=2, rows=400)
    found = insert_places({"p": files}, 10)["p"].buckets(np.arange(8000) / 8000)
    assert dict(zip(*(each.tolist() for each in np.unique(found, return_counts=True)), strict=True)) == {
        3: 1000,
        7: 3000,
        10: 2000,
        11: 2000,
    }


def test_rows_of_a_partition_without_a_place_stay_together() -> None:
    buckets = Buckets([], [], 5, {"known": InsertPlace(0.0, (), 2, 1)}, uncounted=3)
    assert buckets.of_inserts("known", np.array([0.5])).tolist() == [2]
    for name in ("other", None):
        found = set(buckets.of_inserts(name, np.arange(10) / 10).tolist())
        assert len(found) == 1
        assert found <= set(range(3, 8))


def test_slices_have_owners_and_other_buckets_their_number() -> None:
    slices: Any = ["a", "b"]
    buckets = Buckets(slices, [4, 2], 5, {}, uncounted=2)
    assert buckets.tasks_of(np.array([0, 1, 2, 3, 7, -2])).tolist() == [4, 2, 2, 3, 2, 0]
