"""Kernels beside what one would call without them: same answers here, times with ``--benchmark-enable``.

``RIVALS`` names, per kernel, the calls that compute the same thing.
"""

from __future__ import annotations

import functools

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_fast.kernels.bloom import bloom_add, bloom_probe
from hudi_fast.kernels.gather import gather_varlen, take_two_fixed, take_two_varlen
from hudi_fast.kernels.hashes import string_hash_codes
from hudi_fast.kernels.hudi_texts import format_sequence_numbers
from hudi_fast.kernels.key_table import KeyTable, hash_keys, pick_winners
from hudi_fast.kernels.sorting import group_rows, radix_order

from tests.naive import curves as naive_curves
from tests.naive import java_hash as naive_java

ROWS = 20_000
BITS, HASHES = 862_656, 30  # 1e-9 at ROWS entries


@functools.cache
def keys(salt):
    """ROWS keys of 36 bytes."""
    return pa.array([f"{salt:04x}{number * 2654435761 % 2**32:032x}" for number in range(ROWS)])


def buffers(array):
    _, offsets, data = array.buffers()
    return np.frombuffer(offsets, np.int32)[: len(array) + 1], np.frombuffer(data, np.uint8)


@functools.cache
def permutation():
    return np.random.default_rng(7).permutation(ROWS)


@functools.cache
def ranks():
    return np.random.default_rng(8).integers(0, 1000, 2 * ROWS)


@functools.cache
def selectors():
    rows = np.arange(ROWS, dtype=np.int32)
    return np.where(rows % 10 == 0, ~rows, rows).astype(np.int32)


@functools.cache
def bloom_bits():
    bits = np.zeros((BITS + 7) // 8, np.uint8)
    bloom_add(*buffers(keys(1)), bits, BITS, HASHES)
    return bits


@functools.cache
def key_table():
    return KeyTable.build(*buffers(keys(1)))


def probe_bloom(salt):
    out = np.empty(ROWS, np.uint8)
    bloom_probe(*buffers(keys(salt)), bloom_bits(), BITS, HASHES, out)
    return int(out.sum())


@functools.cache
def mmh3_bits():
    bits = bytearray((BITS + 7) // 8)
    for key in keys(1).to_pylist():
        for position in mmh3_positions(key):
            bits[position >> 3] |= 1 << (position & 7)
    return bits


def mmh3_positions(key):
    seed = 0
    for _ in range(HASHES):
        seed = mmh3.hash(key, seed, signed=False)
        yield seed % BITS


def mmh3_loop(salt):
    bits = mmh3_bits()
    return sum(
        all(bits[position >> 3] >> (position & 7) & 1 for position in mmh3_positions(key))
        for key in keys(salt).to_pylist()
    )


def probe_keys():
    return key_table().probe(*buffers(pc.take(keys(1), pa.array(permutation())))).tolist()


def index_in():
    return pc.index_in(pc.take(keys(1), pa.array(permutation())), keys(1)).to_pylist()


def python_dict():
    known = {key: row for row, key in enumerate(keys(1).to_pylist())}
    return [known.get(key, -1) for key in pc.take(keys(1), pa.array(permutation())).to_pylist()]


def is_in():
    return pc.is_in(keys(2), keys(1)).to_numpy(zero_copy_only=False).tolist()


def contains():
    return (key_table().probe(*buffers(keys(2))) >= 0).tolist()


@functools.cache
def doubled():
    return pa.concat_arrays([keys(1), keys(1)])


def winners():
    return pick_winners(*buffers(doubled()), ranks()).tolist()


def dict_of_winners():
    best, rank = {}, ranks().tolist()
    for row, key in enumerate(doubled().to_pylist()):
        if key not in best or rank[row] >= rank[best[key]]:
            best[key] = row
    return sorted(best.values())


def gathered():
    offsets, data = gather_varlen(*buffers(keys(1)), permutation())
    return pa.StringArray.from_buffers(ROWS, pa.py_buffer(offsets), pa.py_buffer(data))


def interleaved():
    offsets, data = take_two_varlen(*buffers(keys(1)), *buffers(keys(2)), selectors())
    return pa.StringArray.from_buffers(ROWS, pa.py_buffer(offsets), pa.py_buffer(data))


def take_of_both():
    chosen = np.where(selectors() >= 0, selectors(), ROWS + ~selectors())
    return pc.take(pa.concat_arrays([keys(1), keys(2)]), pa.array(chosen))


def interleaved_numbers():
    return take_two_fixed(permutation(), ranks(), selectors()).tolist()


def where():
    chosen = selectors()
    return np.where(chosen >= 0, permutation()[np.maximum(chosen, 0)], ranks()[np.maximum(~chosen, 0)]).tolist()


def java_codes():
    out = np.empty(ROWS, np.int32)
    string_hash_codes(*buffers(keys(1)), out)
    return out.tolist()


def distinct_hashes():
    out = np.empty(ROWS, np.uint64)
    hash_keys(*buffers(keys(1)), out)
    return len(np.unique(out))


@functools.cache
def codes():
    return (permutation() % 20).astype(np.int32)


def sequence_numbers():
    offsets, data = format_sequence_numbers(np.frombuffer(b"20240101120000000_1_", np.uint8), 0, ROWS)
    return pa.StringArray.from_buffers(ROWS, pa.py_buffer(offsets), pa.py_buffer(data))


def joined_text():
    numbers = pc.cast(pa.array(np.arange(ROWS)), pa.string())
    return pc.binary_join_element_wise(pa.scalar("20240101120000000_1_"), numbers, pa.scalar(""))


@functools.cache
def words():
    """Two words for each of ROWS rows, in planes."""
    return np.random.default_rng(9).integers(0, 2**63, 2 * ROWS).astype(np.uint64)


def sorted_texts():
    rows = naive_curves.byte_rows(words(), 2)
    return sorted(range(ROWS), key=lambda row: rows[row].tobytes())


RIVALS = {
    "bloom_probe_hits": [functools.partial(probe_bloom, 1), functools.partial(mmh3_loop, 1)],
    "bloom_probe_misses": [functools.partial(probe_bloom, 2), functools.partial(mmh3_loop, 2)],
    "key_table_probe": [probe_keys, index_in, python_dict],
    "key_table_contains": [contains, is_in],
    "hash_keys": [distinct_hashes, lambda: len({mmh3.hash64(key)[0] for key in keys(1).to_pylist()})],
    "pick_winners": [winners, dict_of_winners],
    "gather_varlen": [gathered, lambda: pc.take(keys(1), pa.array(permutation()))],
    "take_two_varlen": [interleaved, take_of_both],
    "take_two_fixed": [interleaved_numbers, where],
    "group_rows": [lambda: group_rows(codes(), 20)[0].tolist(), lambda: np.argsort(codes(), kind="stable").tolist()],
    "radix_order": [
        lambda: radix_order(words(), 2).tolist(),
        lambda: np.lexsort(words().reshape(2, -1)[::-1]).tolist(),
        sorted_texts,
    ],
    "string_hash_codes": [java_codes, lambda: [naive_java.string_hash(key) for key in keys(1).to_pylist()]],
    "format_sequence_numbers": [sequence_numbers, joined_text],
}


CASES = [(name, place) for name, calls in RIVALS.items() for place in range(len(calls))]


@pytest.mark.slow("bloom_probe_hits-0", "bloom_probe_hits-1", "string_hash_codes-1")
@pytest.mark.parametrize(("kernel", "place"), CASES)
def test_kernel_and_rivals_agree(benchmark, kernel, place):
    benchmark.group = kernel
    ours = RIVALS[kernel][0]()
    assert benchmark(RIVALS[kernel][place]) == ours
