"""The fold of log entries: who wins, which rows survive, and in which order they count."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.fold_entries import (
    COMMIT_TIME,
    DELETE,
    KEY_ONLY,
    KEY_ONLY_LOSES,
    NO_KIND,
    OTHER_KIND_LOSES,
    first_flagged,
    fold_entries,
    several_survivors,
)
from hypothesis import given
from hypothesis import strategies as st

ROW = 0


def fold(entries, rules=0):
    """Winner of key 0 and its surviving entries, best first; an entry is (flags, rank) or (flags, rank, kind)."""
    count = len(entries)
    flags = np.array([entry[0] for entry in entries], np.uint8)
    rank = np.array([entry[1] for entry in entries], np.int64)
    kinds = np.array([entry[2] if len(entry) > 2 else 0 for entry in entries], np.uint8)
    winner, since, place = fold_entries(np.zeros(count, np.int32), rank, flags, kinds, rules)
    won = int(winner[0])
    alive = [] if flags[won] & DELETE else [i for i in range(since[0], count) if not flags[i] & DELETE]
    return won, sorted(alive, key=lambda i: place[i])


def test_winners_go_to_the_front_and_losers_to_the_back():
    assert fold([(ROW, 5), (ROW, 7), (ROW, 6), (ROW, 7), (ROW, 1)]) == (3, [3, 1, 0, 2, 4])


def test_a_delete_that_wins_ends_the_list_and_one_that_loses_does_nothing():
    assert fold([(ROW, 5), (DELETE, 4), (ROW, 6)]) == (2, [2, 0])
    assert fold([(ROW, 5), (DELETE, 5), (ROW, 4)]) == (1, [])
    assert fold([(ROW, 5), (DELETE, 5), (ROW, 4), (ROW, 6), (ROW, 5)]) == (3, [3, 4])


def test_commit_time_deletes_win_and_yield_to_every_row_but_not_to_bare_deletes():
    assert fold([(ROW, 5), (DELETE | COMMIT_TIME, 0), (ROW, -9)]) == (2, [2])
    assert fold([(DELETE | COMMIT_TIME | KEY_ONLY, 0), (DELETE | KEY_ONLY, 7), (ROW, 1)]) == (2, [2])
    assert fold([(DELETE | COMMIT_TIME | KEY_ONLY, 0), (DELETE, 7), (ROW, 1)]) == (1, [])


def test_ordering_values_of_unlike_kinds():
    assert fold([(ROW, 5, 0), (DELETE | KEY_ONLY, 1, 1)]) == (1, [])
    assert fold([(ROW, 5, 0), (DELETE, 1, 1)]) == (0, [0])
    assert fold([(ROW, 5, 0), (ROW, 1, 1)]) == (0, [0, 1])
    assert fold([(ROW, 5, 0), (ROW, 1, 1)], OTHER_KIND_LOSES) == (1, [1, 0])
    assert fold([(ROW, 5, 0), (DELETE | KEY_ONLY, 0, NO_KIND), (ROW, 1, 0)]) == (2, [2])


def test_bare_deletes_may_yield_to_every_row():
    assert fold([(DELETE | KEY_ONLY, 5), (ROW, 1)]) == (0, [])
    assert fold([(DELETE | KEY_ONLY, 5), (ROW, 1)], KEY_ONLY_LOSES) == (1, [1])


def test_keys_are_folded_each_for_itself():
    keys = np.array([0, 1, 0, 3, 1], np.int32)
    rank, nothing = np.array([2, 1, 1, 0, 1], np.int64), np.zeros(5, np.uint8)
    winner, since, place = fold_entries(keys, rank, nothing, nothing, 0)
    assert winner.tolist() == [0, 4, -1, 3, -1]
    assert since[[0, 1, 3]].tolist() == [0, 1, 3]
    assert place.tolist() == [0, 0, 1, 0, -1]


def test_no_entries():
    nothing = np.zeros(0, np.uint8)
    winner, _, _ = fold_entries(np.zeros(0, np.int32), np.zeros(0, np.int64), nothing, nothing, 0)
    assert winner.tolist() == []


def test_wrong_input_is_refused():
    keys, rank, flags = np.array([0, 5], np.int32), np.zeros(2, np.int64), np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match=r"key numbers must be in 0\.\.1"):
        fold_entries(keys, rank, flags, flags, 0)
    with pytest.raises(ValueError, match="2 keys, 1 ranks"):
        fold_entries(keys, rank[:1], flags, flags, 0)


ENTRIES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([ROW, ROW, ROW, DELETE, DELETE | COMMIT_TIME, DELETE | KEY_ONLY]),
        st.integers(0, 2),
        st.sampled_from([0, 0, 1, NO_KIND]),
    ),
    max_size=25,
)


@given(ENTRIES, st.integers(0, 3))
def test_the_survivors_of_keys_with_several_are_grouped_best_first(entries, rules):
    keys = np.array([min(entry[0], len(entries) - 1) for entry in entries], np.int32)
    flags, rank, kinds = (
        np.array([entry[at] for entry in entries], kind) for at, kind in ((1, np.uint8), (2, np.int64), (3, np.uint8))
    )
    folded = fold_entries(keys, rank, flags, kinds, rules)
    expected = []
    for key in range(4):
        here = [(entries[i][1:], i) for i in range(len(entries)) if keys[i] == key]
        alive = [here[at][1] for at in fold([entry for entry, _ in here], rules)[1]] if here else []
        if len(alive) > 1:
            expected.append(alive)
    found, starts = several_survivors(keys, (flags & DELETE).astype(bool), *folded)
    assert [part.tolist() for part in np.split(found, starts[1:])] == (expected or [[]])
    assert len(starts) == len(expected)


def test_the_first_flag_of_each_group():
    flags = np.array([False, True, True, False, False, True], np.bool_)
    assert first_flagged(flags, np.array([0, 3, 5], np.int32)).tolist() == [1, 3, 5]
    assert first_flagged(flags[:0], np.zeros(0, np.int32)).tolist() == []
