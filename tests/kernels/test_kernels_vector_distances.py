"""Distances against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.vector_distances import COSINE, DOT_PRODUCT, L2, distances
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.vector_distances import distance

METRICS = {"cosine": COSINE, "l2": L2, "dot_product": DOT_PRODUCT}
NUMBERS = st.one_of(st.just(0.0), st.floats(-1e6, 1e6, width=32))


@pytest.mark.parametrize("metric", METRICS)
@given(data=st.data(), size=st.integers(1, 9), count=st.integers(0, 5))
def test_distances_are_those_of_the_twin(metric, data, size, count):
    query = data.draw(st.lists(NUMBERS, min_size=size, max_size=size))
    vectors = data.draw(st.lists(st.lists(NUMBERS, min_size=size, max_size=size), min_size=count, max_size=count))
    found = np.empty(count)
    distances(np.array(vectors, np.float64).reshape(-1), np.array(query), METRICS[metric], found)
    expected = [distance(metric, vector, query) for vector in vectors]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
