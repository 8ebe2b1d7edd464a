"""Addresses of shuffle partitions and bins of equal weight, without a JVM."""

from __future__ import annotations

import struct

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.spark.writing.columns import addresses, pack_bins


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_each_partition_has_an_integer_that_spark_hashes_into_it(partitions: int) -> None:
    found = addresses(partitions)
    hashes = [mmh3.hash(struct.pack("<i", one), 42, signed=True) % partitions for one in found]
    assert hashes == list(range(partitions))


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 100), max_size=20), st.integers(1, 5))
def test_bins_have_about_equal_weight(weights: dict[str, int], bins: int) -> None:
    chosen = pack_bins(weights, bins)
    assert set(chosen) == set(weights)
    assert pack_bins(dict(reversed(weights.items())), bins) == chosen
    sums = [sum(max(weights[name], 1) for name in weights if chosen[name] == number) for number in range(bins)]
    assert max(sums) - min(sums) <= max([1, *weights.values()])
