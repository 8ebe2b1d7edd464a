"""Offsets as text, and how a turn is shared out among partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.sources.kafka import offsets_of, position_of, shared_out

OFFSETS = st.dictionaries(st.integers(0, 200), st.integers(0, 2**62), min_size=1)


@given(OFFSETS, st.sampled_from(["trips", "a.b-c_d", "with,comma", "t:1"]))
def test_offsets_survive_their_text(offsets, topic):
    assert offsets_of(position_of(topic, offsets), topic) == offsets


def test_the_text_is_that_of_apache_hudi():
    assert position_of("trips", {10: 5, 2: 7, 0: 0}) == "trips,0:0,2:7,10:5"


@pytest.mark.parametrize("text", ["", "trips", "trips,", "trips,0", "trips,0:", "trips,a:1", "1790000000000"])
def test_another_text_is_refused(text):
    with pytest.raises(hf.ConfigError, match=r"is not one of a Kafka topic, such as 'trips,0:120,1:98'"):
        offsets_of(text, "trips")


def test_offsets_of_another_topic_are_refused():
    with pytest.raises(hf.ConfigError, match=r"of the topic 'old'; the stream reads 'new'.*ignore\.checkpoint"):
        offsets_of("old,0:1", "new")


@given(
    st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1),
    st.integers(1, 400),
)
def test_a_turn_takes_as_much_as_it_may_and_from_each_partition_alike(bounds, limit):
    first = {one: begin for one, (begin, _) in bounds.items()}
    last = {one: begin + more for one, (begin, more) in bounds.items()}
    ranges = shared_out(first, last, limit)
    taken = {one: end - begin for one, (begin, end) in ranges.items()}
    assert {one: begin for one, (begin, _) in ranges.items()} == first
    assert all(0 <= taken[one] <= last[one] - first[one] for one in taken)
    assert sum(taken.values()) == min(limit, sum(last.values()) - sum(first.values()))
    cut = [taken[one] for one in taken if taken[one] < last[one] - first[one]]
    assert not cut or max(taken.values()) - min(cut) <= 1


def test_a_partition_that_went_back_takes_nothing():
    assert shared_out({0: 9, 1: 0}, {0: 5, 1: 3}, 10) == {0: (9, 9), 1: (0, 3)}
