"""Grouping against lists."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.sorting import group_rows
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import grouping as naive


@given(groups=st.integers(1, 12), data=st.data())
def test_rows_of_a_group_stay_in_row_order(groups, data):
    codes = data.draw(st.lists(st.integers(0, groups - 1), max_size=80))
    order, bounds = group_rows(np.array(codes, np.int32), groups)
    found = [order[bounds[group] : bounds[group + 1]].tolist() for group in range(groups)]
    assert found == naive.group_rows(codes, groups)
    assert bounds[-1] == len(codes)


def test_no_rows_and_no_groups():
    order, bounds = group_rows(np.empty(0, np.int32), 0)
    assert (order.size, bounds.tolist()) == (0, [0])


@pytest.mark.parametrize("bad", [-1, 2])
def test_a_code_outside_the_groups_is_refused(bad):
    with pytest.raises(ValueError, match=f"row 1 has group {bad}; there are 2 groups"):
        group_rows(np.array([0, bad], np.int32), 2)
