"""Bloom kernels against the one-key-at-a-time twin."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.bloom import LONG_WORDS, bloom_add, bloom_probe, bloom_probe_rows
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers
from tests.naive import bloom as naive


def naive_bits(keys, bit_count, hash_count):
    bits = np.zeros((bit_count + 7) // 8, np.uint8)
    for key in keys:
        for position in naive.bit_positions(key, bit_count, hash_count):
            bits[position // 8] |= 1 << position % 8
    return bits


@given(
    keys=st.one_of(st.lists(KEYS, max_size=40), st.lists(KEYS, min_size=100, max_size=300)),
    bit_count=st.one_of(st.integers(1, 5000), st.sampled_from([1, 2, 8, 1024, 4096])),
    hash_count=st.integers(1, 12),
    before=st.binary(max_size=7),
)
def test_adding_sets_the_bits_of_the_twin(keys, bit_count, hash_count, before):
    bits = np.zeros((bit_count + 7) // 8, np.uint8)
    bloom_add(*buffers(keys, before, b"after"), bits, bit_count, hash_count)
    assert bits.tolist() == naive_bits(keys, bit_count, hash_count).tolist()


@given(
    rows=st.lists(st.lists(KEYS, max_size=15), min_size=1, max_size=3),
    probes=st.lists(KEYS, max_size=40),
    bit_count=st.integers(1, 600),
    hash_count=st.integers(1, 8),
    before=st.binary(max_size=7),
)
def test_probing_answers_as_the_twin(rows, probes, bit_count, hash_count, before):
    filters = [naive_bits(keys, bit_count, hash_count) for keys in rows]
    probes = probes + rows[0]
    expected = [
        [all(bits[p // 8] >> p % 8 & 1 for p in naive.bit_positions(key, bit_count, hash_count)) for key in probes]
        for bits in filters
    ]
    out = np.full(len(probes), 9, np.uint8)
    offsets, data = buffers(probes, before)
    bloom_probe_rows(offsets, data, np.concatenate(filters), len(rows), bit_count, hash_count, out)
    assert out.tolist() == [int(any(answers)) for answers in zip(*expected, strict=True)]
    bloom_probe(offsets, data, filters[0], bit_count, hash_count, out)
    assert out.tolist() == [int(answer) for answer in expected[0]]


@pytest.mark.slow(but=("2587966", "3"))
@pytest.mark.parametrize("bit_count", [2**31 - 1, 2**30 + 1, 2**30, 2587966, 3])
def test_bits_of_large_filters_are_java_remainders(bit_count):
    keys = [f"key-{n}".encode() for n in range(300)]
    bits = np.zeros((bit_count + 7) // 8, np.uint8)
    bloom_add(*buffers(keys), bits, bit_count, 3)
    expected = {position for key in keys for position in naive.bit_positions(key, bit_count, 3)}
    found = {int(at) * 8 + bit for at in np.flatnonzero(bits) for bit in range(8) if bits[at] >> bit & 1}
    assert found == expected


@pytest.mark.parametrize("length", [10007, 4 * LONG_WORDS + 7], ids=["in many lanes", "in few lanes"])
def test_long_keys_do_not_disturb_their_neighbours(length):
    keys = [b"a", b"x" * length, b"\xff\xfe\xfd", *(b"b" * size for size in range(40))]
    bits, out = np.zeros(1000, np.uint8), np.empty(len(keys), np.uint8)
    bloom_add(*buffers(keys), bits, 8000, 5)
    assert bits.tolist() == naive_bits(keys, 8000, 5).tolist()
    bloom_probe(*buffers(keys), bits, 8000, 5, out)
    assert out.all()


def test_no_keys_set_no_bits():
    bits = np.zeros(4, np.uint8)
    bloom_add(*buffers([]), bits, 32, 3)
    bloom_probe(*buffers([]), bits, 32, 3, np.empty(0, np.uint8))
    assert not bits.any()
