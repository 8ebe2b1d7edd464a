"""xxHash against its specification, against known hashes, and against the reference library."""

from __future__ import annotations

import numpy as np
import xxhash
from hudi_fast.kernels.hashes import xx_hash32, xx_hash64
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import buffers
from tests.naive import xx_hash as naive

SEED = 0xFFFFFFFFDABADABA


def hashes32(values, seed, before=b""):
    out = np.empty(len(values), np.uint32)
    xx_hash32(*buffers(values, before, b"\xff" * 3), seed, out)
    return out.tolist()


def hashes64(values, seed, before=b""):
    out = np.empty(len(values), np.uint64)
    xx_hash64(*buffers(values, before, b"\xff" * 3), seed, out)
    return out.tolist()


@given(values=st.lists(st.binary(max_size=150), max_size=10), seed=st.integers(0, 2**32 - 1), before=st.binary())
def test_32_bit_hashes_are_those_of_the_specification(values, seed, before):
    expected = [naive.xx_hash32(each, seed) for each in values]
    assert hashes32(values, seed, before) == expected
    assert expected == [xxhash.xxh32_intdigest(each, seed) for each in values]


@given(values=st.lists(st.binary(max_size=150), max_size=10), seed=st.integers(0, 2**64 - 1), before=st.binary())
def test_64_bit_hashes_are_those_of_the_specification(values, seed, before):
    expected = [naive.xx_hash64(each, seed) for each in values]
    assert hashes64(values, seed, before) == expected
    assert expected == [xxhash.xxh64_intdigest(each, seed) for each in values]


def test_every_length_up_to_three_stripes():
    values = [bytes(range(length)) for length in range(100)]
    assert hashes32(values, 0) == [xxhash.xxh32_intdigest(each, 0) for each in values]
    assert hashes64(values, SEED) == [xxhash.xxh64_intdigest(each, SEED) for each in values]


def test_hashes_that_hudi_stored():
    assert hashes64([b"d", b"p0"], SEED) == [0xE3F85C5252A26776, 0x67E28D314F022E5A]
