"""Sequence numbers against string formatting."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.hudi_texts import format_sequence_numbers
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import values_of
from tests.naive import seqno as naive

STARTS = st.one_of(
    st.integers(0, 2**62),
    st.builds(lambda digits, back: max(0, 10**digits - back), st.integers(0, 18), st.integers(0, 30)),
)


@given(prefix=st.binary(max_size=30), start=STARTS, count=st.integers(0, 60))
def test_texts_are_the_prefix_and_the_decimal_number(prefix, start, count):
    found = format_sequence_numbers(np.frombuffer(prefix, np.uint8), start, count)
    assert found[1].size == found[0][-1]
    assert values_of(*found) == naive.texts(prefix, start, count)


def test_the_last_number_of_64_bits():
    found = format_sequence_numbers(np.frombuffer(b"_", np.uint8), 2**63 - 2, 2)
    assert values_of(*found) == [b"_9223372036854775806", b"_9223372036854775807"]


@pytest.mark.parametrize(
    ("start", "count", "error"),
    [(-1, 1, ValueError), (0, -1, ValueError), (2**63 - 1, 2, OverflowError), (0, 2**31, OverflowError)],
)
def test_ranges_that_cannot_be_written_are_refused(start, count, error):
    with pytest.raises(error, match="sequence numbers"):
        format_sequence_numbers(np.frombuffer(b"p", np.uint8), start, count)
