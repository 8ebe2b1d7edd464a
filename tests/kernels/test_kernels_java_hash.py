"""Hash codes against Java's definitions, and against codes that a JVM printed."""

from __future__ import annotations

import numpy as np
from hudi_fast.kernels.hashes import list_hash_combine, string_hash_codes
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import TEXTS, buffers
from tests.naive import java_hash as naive


def codes_of(texts, before=b""):
    out = np.empty(len(texts), np.int32)
    string_hash_codes(*buffers([text.encode() for text in texts], before, b"\xe2"), out)
    return out.tolist()


@given(texts=st.lists(TEXTS, max_size=20), before=st.binary(max_size=7))
def test_string_hash_codes_are_java_s(texts, before):
    assert codes_of(texts, before) == [naive.string_hash(text) for text in texts]


def test_known_hash_codes_of_java():
    assert codes_of(["", "a", "hello", "Hello World", "polygenelubricants"]) == [0, 97, 99162322, -862545276, -(2**31)]


@given(rows=st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=3), max_size=10))
def test_list_hash_codes_are_java_s(rows):
    codes = np.ones(len(rows), np.int32)
    for column in range(3):
        list_hash_combine(codes, np.array([row[column] for row in rows], np.int32))
    assert codes.tolist() == [naive.list_hash(row) for row in rows]


def test_text_cut_inside_a_character_is_not_read_past_its_end():
    whole, cut = np.empty(1, np.int32), np.empty(1, np.int32)
    string_hash_codes(*buffers([b"ab\xf0\x9f"], b"", b"\x98\x80"), whole)
    string_hash_codes(*buffers([b"ab\xf0\x9f"]), cut)
    assert whole[0] == cut[0]
