"""File ids of the record index against Python's UUIDs."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.hudi_texts import format_file_ids, measure_file_ids, parse_file_ids
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import TEXTS, buffers, values_of
from tests.naive import file_ids as naive

UUID = "1f2e3d4c-0000-4fff-8abc-ffffffffffff"
HALVES = st.integers(-(2**63), 2**63 - 1)
IDS = st.builds(naive.text, HALVES, HALVES, st.integers(-1, 999_999_999) | st.integers(-1, 12))
NEARLY = st.sampled_from(
    [
        UUID,
        UUID.upper(),
        UUID + "-",
        UUID + "-00",
        UUID + "-01",
        UUID + "-1000000000",
        UUID + "-1x",
        UUID[:-1],
        "",
        "x-0",
    ]
    + [UUID[:at] + "/" + UUID[at + 1 :] for at in (0, 8, 9, 13, 18, 23, 35)]
    + [UUID + "x0", UUID + "--1", UUID[:35] + "g-0", UUID[:8] + "a" + UUID[9:]]
)


def parsed(texts, before=b""):
    n = len(texts)
    high, low, index, good = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint8)
    parse_file_ids(*buffers([each.encode() for each in texts], before, b"-1"), high, low, index, good)
    return high, low, index, good


def formatted(high, low, index, as_text, texts):
    offsets, data = buffers([each.encode() for each in texts], b"zz")
    out_offsets = np.empty(len(texts) + 1, np.int32)
    out = np.empty(measure_file_ids(index, as_text, offsets, out_offsets), np.uint8)
    format_file_ids(high, low, index, as_text, offsets, data, out_offsets, out)
    return [each.decode() for each in values_of(out_offsets, out)]


@given(texts=st.lists(IDS | NEARLY | TEXTS, max_size=12), before=st.binary(max_size=5))
def test_file_ids_are_taken_apart_and_put_together(texts, before):
    expected = [naive.parse(each) for each in texts]
    high, low, index, good = parsed(texts, before)
    found = [(int(h), int(w), int(i)) if g else None for h, w, i, g in zip(high, low, index, good, strict=True)]
    assert found == expected
    as_text = (good == 0).astype(np.uint8)
    assert formatted(high, low, index, as_text, texts) == texts
    for numbers in (high, low, index):
        assert (numbers[good == 0] == -1).all()


@pytest.mark.parametrize("index", [0, 9, 10, 99, 100, 2**31 - 1])
def test_indexes_of_any_size_are_written(index):
    one = np.array([index], np.int32)
    found = formatted(np.array([-1]), np.array([5]), one, np.zeros(1, np.uint8), [""])
    assert found == [naive.text(-1, 5, index)]
