"""Entries of an HFile's data block, read and laid out, against a walk in Python."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hudi_fast.kernels.hfile import copy_entries, measure_entries, write_entries
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers, values_of
from tests.naive import hfile as naive
from tests.support.examples import examples


def entries_of(raw):
    """The entries, or the position where the block is malformed."""
    data, sizes = np.frombuffer(raw, np.uint8), np.empty(2, np.int64)
    count = measure_entries(data, sizes)
    if count < 0:
        return -1 - count
    offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    parts = np.empty(sizes[0], np.uint8), np.empty(sizes[1], np.uint8)
    copy_entries(data, offsets[0], parts[0], offsets[1], parts[1])
    return list(zip(*(values_of(o, p) for o, p in zip(offsets, parts, strict=True)), strict=True))


@given(entries=st.lists(st.tuples(KEYS, KEYS), max_size=20))
def test_keys_and_values_are_copied_out(entries):
    raw = b"".join(naive.entry(key, value) for key, value in entries)
    assert entries_of(raw) == naive.block_entries(raw) == entries


def test_a_column_family_and_qualifier_are_passed_over():
    key = struct.pack(">h", 3) + b"abc" + b"\x02cfqualifier" + bytes(8) + b"\x04"
    raw = struct.pack(">ii", len(key), 2) + key + b"vv\0" + naive.entry(b"d", b"")
    assert entries_of(raw) == [(b"abc", b"vv"), (b"d", b"")]


@given(entries=st.lists(st.tuples(KEYS, KEYS, st.booleans()), max_size=20))
def test_keys_may_end_after_their_content(entries):
    """As those that development builds of Hudi 1.1 wrote."""
    raw = b""
    for key, value, bare in entries:
        alone = struct.pack(">iih", 2 + len(key), len(value), len(key)) + key + value + b"\0"
        raw += alone if bare else naive.entry(key, value)
    assert entries_of(raw) == naive.block_entries(raw) == [(key, value) for key, value, _ in entries]


@pytest.mark.parametrize(
    ("at", "number"),
    [(0, -1), (0, 14), (0, 10**9), (4, -1), (4, 10**9), (4, 2**31 - 1), (8, 0x7FFF0000), (8, -1), (12, 0x63FF7FFF)],
)
def test_lengths_that_do_not_fit_are_refused(at, number):
    good, bad = naive.entry(b"first", b"value"), bytearray(naive.entry(b"abc", b"value"))
    bad[at : at + 4] = struct.pack(">i", number)
    assert entries_of(good + bytes(bad) + good) == len(good)


@pytest.mark.parametrize(("back", "value"), [(1, 1), (7, 12)])
def test_deletes_and_other_versions_are_refused(back, value):
    bad = bytearray(naive.entry(b"abc", b"value"))
    bad[-back] = value
    assert entries_of(bytes(bad)) == 0


@settings(max_examples=examples(200))
@given(entries=st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=5), data=st.data())
def test_damaged_blocks_are_refused_or_readable(entries, data):
    raw = bytearray(b"".join(naive.entry(key, value) for key, value in entries))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    found = entries_of(raw)
    if isinstance(found, list):
        assert found == naive.block_entries(raw)
    else:
        assert 0 <= found < len(raw)


@given(entries=st.lists(st.tuples(KEYS, KEYS), max_size=20), size=st.integers(0, 300), before=st.integers(0, 40))
def test_entries_are_laid_out_until_one_does_not_fit(entries, size, before):
    keys, values = buffers([key for key, _ in entries], b"ab"), buffers([value for _, value in entries], b"cde")
    row = 0
    while row < len(entries):
        expected = b""
        following = row
        while following < len(entries) and before + len(expected + naive.entry(*entries[following])) <= size:
            expected += naive.entry(*entries[following])
            following += 1
        out, filled = np.zeros(size, np.uint8), np.array([min(before, size)])
        assert write_entries(*keys, *values, row, out, filled) == following
        assert out[min(before, size) : filled[0]].tobytes() == expected
        row = max(following, row + 1)


def test_a_key_may_have_32767_bytes():
    keys, values = buffers([b"k" * 32767]), buffers([b"v" * 70_000])
    out, filled = np.zeros(200_000, np.uint8), np.zeros(1, np.int64)
    assert write_entries(*keys, *values, 0, out, filled) == 1
    assert entries_of(out[: filled[0]].tobytes()) == [(b"k" * 32767, b"v" * 70_000)]
