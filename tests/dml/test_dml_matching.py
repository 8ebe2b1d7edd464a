"""Pairs of table rows and source rows that a merge condition holds for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.compute import field

from hudi_fast.dml import local
from hudi_fast.dml.local import Pairs, beside, match_rows
from hudi_fast.dml.statement import MergeSpec

KEYS = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=12)


def numbers(values: list[int | None]) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64()), "n": pa.array(range(len(values)), pa.int64())})


def as_list(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.target.tolist(), pairs.source.tolist(), strict=True))


@given(KEYS, KEYS)
def test_equal_columns_pair_rows_in_the_order_of_the_table(left: list[int | None], right: list[int | None]) -> None:
    expected = [
        (one, other)
        for one, key in enumerate(left)
        for other, match in enumerate(right)
        if key is not None and key == match
    ]
    assert as_list(match_rows(numbers(left), numbers(right), MergeSpec(pairs=(("k", "k"),)), None)) == expected


def test_a_condition_narrows_equal_columns() -> None:
    spec = MergeSpec(pairs=(("k", "k"),), aliases=("t", "s"))
    pairs = match_rows(numbers([1, 2, 1]), numbers([1, 1]), spec, field("t.n") + field("s.n") == 2)
    assert as_list(pairs) == [(2, 0)]


@pytest.mark.parametrize("step", [1, 5, 1 << 20])
def test_without_equal_columns_every_pair_is_tried(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_CROSSED", step)
    left, right = numbers([1, 5, 3]), numbers([2, 4])
    pairs = match_rows(left, right, MergeSpec(), field("target.k") > field("source.k"))
    assert as_list(pairs) == [(1, 0), (1, 1), (2, 0)]


def test_the_columns_of_a_pair_have_the_names_of_their_side() -> None:
    pairs = Pairs(np.array([1]), np.array([0]))
    shown = beside(numbers([7, 8]), numbers([9]), pairs, MergeSpec(aliases=("t", "s")))
    assert shown.to_pylist() == [{"t.k": 8, "t.n": 1, "s.k": 9, "s.n": 0}]
