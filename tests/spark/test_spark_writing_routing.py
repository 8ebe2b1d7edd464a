"""Addresses of shuffle partitions and bins of equal weight, without a JVM."""

from __future__ import annotations

import struct

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.spark.writing.routing import addresses, pack_bins, slice_bytes
from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.slices import FileSlice


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


def test_a_slice_weighs_its_files() -> None:
    base = BaseFile("p/f_0_100.parquet", "f", "0", "100", 10)
    log = LogFile("p/.f_100.log.1_0", "f", "100", 1, "0", False, 5)
    assert slice_bytes(FileSlice("p", "f", base, (log, log), "100")) == 20
    assert slice_bytes(FileSlice("p", "f", None, (log,), "100")) == 5
