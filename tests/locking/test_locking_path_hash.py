"""Names of locks by base path: those that Apache Hudi's class gave, and xxHash64 by another implementation."""

from __future__ import annotations

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.locking.provider import path_hash


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://bucket/tbl", "B6AF6DDB324B13C8"),
        ("s3a://bucket/tbl", "B6AF6DDB324B13C8"),
        ("S3A://bucket/tbl", "B6AF6DDB324B13C8"),
        ("file:///tmp/t1", "A4BC303FC92D7A81"),
    ],
)
def test_names_are_those_of_hudi(path, name):
    assert path_hash(path) == name


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=100))
def test_the_hash_is_xx_hash_64_with_hudis_seed(path):
    normal = "s3://" + path[6:] if path[:6].lower() == "s3a://" else path
    assert path_hash(path) == f"{xxhash.xxh64_intdigest(normal.encode(), seed=0xFFFFFFFFDABADABA):016X}"


def test_paths_that_differ_have_locks_of_their_own():
    assert len({path_hash(path) for path in ("/t", "/t/", "file:/t", "file:///t", "x/s3a://t", "x/s3://t")}) == 6
