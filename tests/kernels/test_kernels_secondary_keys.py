"""Keys of secondary indexes against a twin that takes characters one by one."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.hudi_texts import measure_joined, measure_parts, write_joined, write_parts
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import buffers, values_of
from tests.naive import secondary_keys as naive

TEXTS = st.text(st.sampled_from("ab\\$\0é😀"), max_size=12)


def joined(values, keys, before=b""):
    texts = buffers([b"junk" if each is None else each.encode() for each in values], before, b"$")
    record_keys = buffers([each.encode() for each in keys], before, b"\\")
    valid = np.array([each is not None for each in values], np.uint8)
    offsets = np.empty(len(values) + 1, np.int32)
    out = np.empty(measure_joined(*texts, valid, *record_keys, offsets), np.uint8)
    write_joined(*texts, valid, *record_keys, offsets, out)
    return [each.decode() for each in values_of(offsets, out)]


def split(texts, before=b""):
    """Pairs, or the first row that has no separator."""
    n = len(texts)
    joined_keys = buffers([each.encode() for each in texts], before, b"x$y")
    separators, valid = np.empty(n, np.int32), np.empty(n, np.uint8)
    value_offsets, key_offsets = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    row = measure_parts(*joined_keys, separators, value_offsets, key_offsets, valid)
    if row >= 0:
        return row
    values, keys = np.empty(value_offsets[-1], np.uint8), np.empty(key_offsets[-1], np.uint8)
    write_parts(*joined_keys, separators, value_offsets, key_offsets, values, keys)
    pairs = zip(values_of(value_offsets, values), valid, values_of(key_offsets, keys), strict=True)
    return [(value.decode() if ok else None, key.decode()) for value, ok, key in pairs]


@given(rows=st.lists(st.tuples(st.none() | TEXTS, TEXTS), max_size=12), before=st.binary(max_size=5))
def test_values_and_keys_are_joined_and_come_back(rows, before):
    texts = joined([value for value, _ in rows], [key for _, key in rows], before)
    assert texts == [naive.joined(value, key) for value, key in rows]
    assert split(texts, before) == rows


@given(texts=st.lists(TEXTS, max_size=6))
def test_any_text_parts_at_its_first_bare_separator(texts):
    expected = [naive.split(each) for each in texts]
    assert split(texts) == (expected.index(None) if None in expected else expected)


def test_nothing_null_needs_no_flags():
    offsets = np.empty(2, np.int32)
    texts = buffers([b"a$"])
    assert measure_joined(*texts, np.empty(0, np.uint8), *buffers([b"k"]), offsets) == 5
