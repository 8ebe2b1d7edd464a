"""Key tables against dicts."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels import key_table
from hudi_fast.kernels.key_table import (
    KeyTable,
    build_filter,
    count_distinct,
    first_equal,
    hash_keys,
    pick_winners,
    pick_winners_grouped,
    probe_key_table,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers
from tests.naive import key_table as naive
from tests.support.equal_hashes import equal_hashes, hashes_of

RANKS = st.one_of(st.integers(0, 2), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.slow("False")
@pytest.mark.parametrize("filtered", [False, True])
@given(build=st.lists(KEYS, max_size=150), others=st.lists(KEYS, max_size=30), before=st.binary(max_size=5))
def test_probing_finds_the_first_row_of_each_key(filtered, build, others, before):
    table = KeyTable.build(*buffers(build, before, b"after"), mostly_absent=filtered)
    keys = others + build[::-1]
    assert table.probe(*buffers(keys, b"", before)).tolist() == naive.probe(build, keys)


@given(keys=st.lists(KEYS, max_size=150), before=st.binary(max_size=5))
def test_equal_keys_have_the_number_of_the_first_of_them(keys, before):
    assert first_equal(*buffers(keys, before)).tolist() == naive.probe(keys, keys)


@given(rows=st.lists(st.tuples(KEYS, RANKS), max_size=150), before=st.binary(max_size=5))
def test_the_greatest_rank_wins_and_the_later_row_among_equals(rows, before):
    keys, rank = [key for key, _ in rows], [value for _, value in rows]
    found = pick_winners(*buffers(keys, before), np.array(rank, np.int64))
    assert found.tolist() == naive.winners(keys, rank)
    assert count_distinct(*buffers(keys, before)) == len(set(keys))


@given(rows=st.lists(st.tuples(KEYS, st.integers(-2, 2), RANKS), max_size=150))
def test_a_key_of_another_group_is_another_identity(rows):
    keys, groups, rank = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    found = pick_winners_grouped(*buffers(keys), np.array(groups, np.int32), np.array(rank, np.int64))
    assert found.tolist() == naive.winners(list(zip(keys, groups, strict=True)), rank)


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("rows", [95, 96, 1_000, 1_535, 1_536])
def test_a_table_of_many_keys_is_denser_and_as_exact(monkeypatch, rows, filtered):
    monkeypatch.setattr(key_table, "_MANY_KEYS", 64)
    build = [b"%d" % number for number in range(rows)]
    table = KeyTable.build(*buffers(build), mostly_absent=filtered)
    assert 4 * rows <= 3 * len(table.slots)
    keys = [b"%d" % number for number in range(-rows, 2 * rows, 3)]
    assert table.probe(*buffers(keys)).tolist() == naive.probe(build, keys)


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 1_000, 70_000])
def test_a_filter_sets_a_bit_for_each_key_and_at_most_a_tenth_of_all(rows):
    words = KeyTable.build(*buffers([b"key-%d" % number for number in range(rows)]), mostly_absent=True).bit_words
    bits = int(np.bitwise_count(words).sum())
    assert rows * 0.9 <= bits <= rows
    assert bits <= words.size * 64 / 10


def test_equal_hash_tags_do_not_make_keys_equal():
    build = [b"left", b"right", b"left-longer"]
    offsets, data = buffers(build)
    hashes = np.empty(3, np.uint64)
    hash_keys(offsets, data, hashes)
    absent = b"absent"
    code = np.empty(1, np.uint64)
    hash_keys(*buffers([absent]), code)
    # A table in which all three rows lie, one after the other, where the absent key is looked for, with its tag.
    slots = np.zeros(8, np.uint64)
    place = int(code[0]) % 8
    for row in range(3):
        slots[(place + row) % 8] = (code[0] & np.uint64(0xFFFFFFFF00000000)) | np.uint64(row + 1)
    out = np.empty(1, np.int32)
    for bit_words in (np.empty(0, np.uint64), build_filter(slots)):
        probe_key_table(slots, offsets, data, bit_words, *buffers([absent]), out)
        assert out.tolist() == [-1]


@given(keys=st.lists(KEYS, max_size=60), before=st.binary(min_size=1, max_size=9))
def test_hashes_depend_on_the_bytes_alone(keys, before):
    plain, moved = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    hash_keys(*buffers(keys), plain)
    hash_keys(*buffers(keys, before, b"after"), moved)
    assert plain.tolist() == moved.tolist()
    assert len(set(plain.tolist())) == len(set(keys))


@pytest.mark.parametrize("form", ["k{:08d}", "{}", "2024-01-01T00:00:00.{:06d}", "{:036d}"])
def test_hashes_of_counting_keys_spread_over_all_bits(form):
    keys = [form.format(number).encode() for number in range(20000)]
    hashes = np.empty(len(keys), np.uint64)
    hash_keys(*buffers(keys), hashes)
    assert len(np.unique(hashes)) == len(keys)
    for shift in range(0, 64, 8):
        share = np.bincount((hashes >> np.uint64(shift) & np.uint64(255)).astype(np.int64), minlength=256)
        assert share.min() > 35
        assert share.max() < 130


def test_ranks_of_another_length_are_refused():
    with pytest.raises(ValueError, match="2 keys need as many ranks"):
        pick_winners(*buffers([b"a", b"b"]), np.zeros(1, np.int64))


def test_more_rows_than_a_block_with_every_key_twice():
    keys = [f"key-{number % 5000}".encode() for number in range(10000)]
    offsets, data = buffers(keys)
    table = KeyTable.build(offsets, data)
    assert table.probe(offsets, data).tolist() == [row % 5000 for row in range(10000)]
    assert pick_winners(offsets, data, np.zeros(10000, np.int64)).tolist() == list(range(5000, 10000))


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("group", range(3))
def test_keys_with_equal_hashes_stay_apart(group, filtered):
    texts = equal_hashes()[group]
    assert len(set(hashes_of(texts).tolist())) == 1  # a new hash needs other keys
    keys = [text.encode() for text in texts]
    for count in range(len(keys) + 1):  # the absent keys have the hash of stored ones, too
        for build in (keys[:count], keys[:count][::-1]):
            table = KeyTable.build(*buffers(build), mostly_absent=filtered)
            assert table.probe(*buffers(keys)).tolist() == naive.probe(build, keys)


@pytest.mark.parametrize("group", range(3))
def test_rows_of_keys_with_equal_hashes_win_for_themselves(group):
    keys = [text.encode() for text in equal_hashes()[group]] * 3
    rank = list(range(len(keys)))
    assert count_distinct(*buffers(keys)) == len(set(keys))
    assert first_equal(*buffers(keys)).tolist() == naive.probe(keys, keys)
    assert pick_winners(*buffers(keys), np.array(rank, np.int64)).tolist() == naive.winners(keys, rank)
    seeded = [text.encode() for text in equal_hashes(seed=1)[group]] * 3  # the hash of group 0 has the seed 1
    groups = [0] * len(seeded)
    found = pick_winners_grouped(*buffers(seeded), np.array(groups, np.int32), np.array(rank, np.int64))
    assert found.tolist() == naive.winners(seeded, rank)
