"""The answer of a lookup."""

from __future__ import annotations

import numpy as np

from hudi_fast.writing.key_places import UNKNOWN_ROW, KeyPlaces


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
