"""The answer of a lookup."""

from __future__ import annotations

import numpy as np

from hudi_fast.index.tagging import SliceMatches
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.located import UNKNOWN_ROW, KeyPlaces, places_of_matches, slice_numbers


def test_places_are_joined_and_chosen():
    some = KeyPlaces(np.array([0, 2]), np.array([5, 6]), np.array([10, -1]))
    both = KeyPlaces.joined([some, KeyPlaces.in_slices(np.array([1]), np.array([7]))])
    assert both.rows.tolist() == [0, 2, 1]
    assert both.slices.tolist() == [5, 6, 7]
    assert both.stored.tolist() == [10, -1, UNKNOWN_ROW]
    assert both.take(np.array([False, True, True])).slices.tolist() == [6, 7]
    assert both.take(slice(0, 1)).rows.tolist() == [0]


def test_no_places_have_integers():
    none = KeyPlaces.joined([])
    assert [len(none.rows), none.slices.dtype, none.stored.dtype] == [0, np.dtype(np.int64), np.dtype(np.int64)]


def test_a_key_that_a_base_file_has_several_times_has_one_place_without_a_row_number() -> None:
    slices = [FileSlice("p", name, None, (), "100") for name in "ab"]
    matches = [
        SliceMatches(slices[0], np.array([0, 2, 3, 5, 8]), np.array([7, 4, 7, 9, 7])),
        SliceMatches(slices[1], np.array([1, 6, 7]), np.array([9, 4, 4])),
    ]
    found = places_of_matches(matches, slice_numbers(slices))
    assert found.rows.tolist() == [4, 4, 7, 9, 9]
    assert found.slices.tolist() == [0, 1, 0, 0, 1]
    assert found.stored.tolist() == [2, UNKNOWN_ROW, UNKNOWN_ROW, 5, 1]
