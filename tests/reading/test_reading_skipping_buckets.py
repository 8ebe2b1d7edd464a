"""Settings of bucket indexes in read options."""

from __future__ import annotations

import pytest

from hudi_fast.index.tagging import BucketSettings
from hudi_fast.reading.skipping.keys import bucket_settings

COMPLETE = {"hoodie.index.type": "bucket", "hoodie.bucket.index.num.buckets": "8"}


def test_a_fixed_number_of_buckets_is_known_from_options() -> None:
    assert bucket_settings(COMPLETE) == BucketSettings(count=8, hash_fields=())
    made = bucket_settings({**COMPLETE, "hoodie.bucket.index.hash.field": "a, b"})
    assert made is not None
    assert made.hash_fields == ("a", "b")


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.bucket.index.num.buckets": ""},
        {"hoodie.bucket.index.num.buckets": "many"},
        {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
    ],
)
def test_other_options_say_nothing_of_buckets(changes: dict[str, str]) -> None:
    assert bucket_settings({**COMPLETE, **changes}) is None
    assert bucket_settings({}) is None
