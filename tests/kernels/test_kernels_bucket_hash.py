"""Bucket hashes against their slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.hashes import ANY_COLON, COMMA_AND_COLON, joined_hashes, list_hashes
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import buffers
from tests.naive import bucket_hash as naive

VALUES = st.one_of(
    st.sampled_from(["__null__", "__empty__", "", "a", "x,y", "10:30", "p,q:r", ",", ":", "é😀"]),
    st.text(st.sampled_from("ab,:é日😀_"), max_size=12),
)
COMPOSED = st.lists(st.tuples(st.sampled_from(["f", "g", "id"]), VALUES), min_size=1, max_size=4).map(
    lambda parts: ",".join(f"{name}:{value}" for name, value in parts)
)
KEYS = st.lists(st.one_of(VALUES, COMPOSED), max_size=12)
FIELDS = st.lists(st.sampled_from(["f", "g", "id", "other"]), min_size=1, max_size=3, unique=True)
TWINS = {COMMA_AND_COLON: naive.hashed_values, ANY_COLON: naive.hashed_values_of_old}


@pytest.mark.parametrize("rule", TWINS)
@given(keys=KEYS, fields=FIELDS, before=st.binary(max_size=9))
def test_hashes_are_those_of_the_twin(rule, keys, fields, before):
    values = [TWINS[rule](key, fields) for key in keys]
    given_keys = buffers([key.encode() for key in keys], before, b",:")
    assert list_hashes(*given_keys, fields, rule).tolist() == [naive.list_hash(one) for one in values]
    assert joined_hashes(*given_keys, fields, rule).tolist() == [naive.joined_hash(one) for one in values]


def test_keys_of_one_field_count_whole_even_with_a_colon():
    keys = buffers([b"10:30", b"a,b", b"plain"])
    assert list_hashes(*keys, ["id"]).tolist() == [naive.list_hash([text]) for text in ("10:30", "a,b", "plain")]


def test_the_order_of_the_key_decides_not_that_of_the_fields():
    keys = buffers([b"f:1,g:2"])
    assert list_hashes(*keys, ["g", "f"]).tolist() == [naive.list_hash(["1", "2"])]


def test_no_keys_have_no_hashes():
    assert list_hashes(np.zeros(1, np.int32), np.zeros(0, np.uint8), ["f"]).tolist() == []
    assert joined_hashes(np.zeros(1, np.int32), np.zeros(0, np.uint8), ["f"]).tolist() == []
