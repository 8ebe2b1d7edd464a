"""Searches in sorted keys of HFiles against searches that look at every key."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.hfile import (
    find_keys,
    find_prefixes,
    first_unordered,
    key_heads,
    mark_rare_keys,
    route_keys,
)
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers
from tests.naive import hfile_search as naive

# Many keys share a long beginning and differ late, or not at all in their first bytes.
ALIKE = st.builds(lambda a, b: a + b, st.sampled_from([b"", b"common-beginning-", b"common"]), st.binary(max_size=12))
FEW_LETTERS = st.lists(st.sampled_from([b"a", b"\0", b"\xff"]), max_size=12).map(b"".join)
SORTED = st.lists(st.one_of(KEYS, ALIKE, FEW_LETTERS), max_size=60).map(sorted)
TEXTS = st.lists(st.sampled_from("aé日ﬀ\ue000😀𐍈"), max_size=6).map(lambda letters: "".join(letters).encode())


def asked_among(draw, keys):
    """Keys that are there, keys near them, and others."""
    others = draw(st.lists(st.one_of(KEYS, ALIKE, FEW_LETTERS), max_size=10))
    there = draw(st.lists(st.sampled_from(keys), max_size=10)) if keys else []
    cut = draw(st.integers(0, 6))
    return [*others, *there, *(key[:cut] for key in there), *(key + b"\0" for key in there)]


def found_ranges(kernel, keys, asked, rows, *more):
    rows = np.asarray(rows, np.int64)
    first, end = np.full(len(rows), -9, np.int64), np.full(len(rows), -9, np.int64)
    kernel(*buffers(keys, b"front"), *more, *buffers(asked, b"x", b"y"), rows, first, end)
    return [list(range(a, b)) for a, b in zip(first.tolist(), end.tolist(), strict=True)]


@given(keys=SORTED, data=st.data())
def test_keys_are_found_in_a_block(keys, data):
    asked = asked_among(data.draw, keys)
    rows = data.draw(st.permutations(range(len(asked))))
    heads = np.empty(len(keys), np.uint64)
    shared = key_heads(*buffers(keys, b"front"), heads)
    found = found_ranges(find_keys, keys, asked, rows, heads, shared)
    assert found == [naive.find(keys, asked[row], False) for row in rows]


def test_many_keys_with_the_same_eight_bytes_are_told_apart():
    keys = sorted(b"a" * 8 + b"%05d" % (number // 3) for number in range(600))
    keys = [b"a", *keys, b"b"]
    heads = np.empty(len(keys), np.uint64)
    shared = key_heads(*buffers(keys), heads)
    assert len(set(heads.tolist())) == 3
    asked = [*keys, *(key + b"x" for key in keys), b"", b"c"]
    found = found_ranges(find_keys, keys, asked, range(len(asked)), heads, shared)
    assert found == [naive.find(keys, key, False) for key in asked]


@given(keys=SORTED.filter(len))
def test_heads_compare_as_the_keys_do(keys):
    heads = np.empty(len(keys), np.uint64)
    shared = key_heads(*buffers(keys), heads)
    assert all(key[:shared] == keys[0][:shared] for key in keys)
    padded = [key[shared : shared + 8].ljust(8, b"\0") for key in keys]
    assert heads.tolist() == [int.from_bytes(head, "big") for head in padded]


@given(keys=SORTED, data=st.data())
def test_prefixes_are_found_in_a_block(keys, data):
    asked = asked_among(data.draw, keys)
    rows = list(range(len(asked)))
    found = found_ranges(find_prefixes, keys, asked, rows)
    assert found == [naive.find(keys, prefix, True) for prefix in asked]


def routed(index, asked, has_last, prefix, java=False):
    first, last = np.empty(len(asked), np.int32), np.empty(len(asked), np.int32)
    route_keys(*buffers(index, b"x"), has_last, prefix, java, *buffers(asked, b"xy"), first, last)
    return [set(range(a, b + 1)) for a, b in zip(first.tolist(), last.tolist(), strict=True)]


@pytest.mark.parametrize("java", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("has_last", [False, True])
@given(data=st.data())
def test_no_block_with_a_match_is_passed_over(java, prefix, has_last, data):
    texts = (
        st.sets(TEXTS, min_size=1, max_size=30) if java else st.sets(st.one_of(KEYS, ALIKE), min_size=1, max_size=30)
    )
    keys = sorted(data.draw(texts), key=naive.java_key if java else None)
    size = data.draw(st.integers(1, 7))
    blocks = [keys[i : i + size] for i in range(0, len(keys), size)]
    has_last = has_last and not java  # the last key of such a file is not its largest
    index = [block[0] for block in blocks] + ([keys[-1]] if has_last else [])
    asked = asked_among(data.draw, keys) if not java else [*keys, *data.draw(st.lists(TEXTS)), keys[0][:2]]
    for wanted, found in zip(asked, routed(index, asked, has_last, prefix, java), strict=True):
        needed = naive.needed_blocks(blocks, wanted, prefix)
        assert needed <= found <= set(range(len(blocks)))
        assert len(found) <= (len(needed) + 1 if prefix else 1)


def test_index_keys_may_be_shorter_than_the_first_keys():
    asked = [b"bb", b"c", b"cc", b"dd", b"b", b"az"]
    assert routed([b"a", b"c"], asked, False, False) == [{0}, {1}, {1}, {1}, {0}, {0}]


def test_keys_outside_the_file_need_no_block():
    assert routed([b"b", b"d", b"f"], [b"a", b"f", b"f\0", b"g"], True, False) == [set(), {1}, set(), set()]
    assert routed([b"b", b"d", b"f"], [b"a", b"f", b"ff", b""], True, True) == [set(), {1}, set(), {0, 1}]


@given(keys=st.one_of(SORTED, st.lists(st.one_of(KEYS, ALIKE), max_size=8)), strict=st.booleans())
@example(keys=[b"same-key", b"same-key"], strict=True)
@example(keys=[b"\x7f" * 8, b"\x80" * 8, b"\x80"], strict=True)
def test_the_first_key_out_of_order_is_named(keys, strict):
    assert first_unordered(*buffers(keys, b"zz"), strict) == naive.unordered(keys, strict)


@given(keys=st.lists(st.one_of(KEYS, TEXTS), max_size=10))
def test_keys_that_java_may_sort_elsewhere_are_marked(keys):
    out = np.empty(len(keys), np.bool_)
    assert mark_rare_keys(*buffers(keys, b"\xff"), out) == sum(map(naive.rare, keys))
    assert out.tolist() == [naive.rare(key) for key in keys]


@given(keys=st.lists(TEXTS, min_size=2, max_size=12))
def test_keys_that_are_not_marked_have_one_place_in_both_orders(keys):
    for key in keys:
        if not naive.rare(key):
            below = [other < key for other in keys]
            assert below == [naive.java_key(other) < naive.java_key(key) for other in keys]
