"""Ranges of consistent hashing: against the table of real Hudi, and which of several files counts."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.index.buckets import (
    FIRST_INSTANT,
    HASH_RANGE,
    HashingMetadata,
    HashingNode,
    encode_hashing,
    first_hashing,
    hashing_path,
    load_hashing,
    load_or_make_hashing,
    marker_path,
    node_of_keys,
    parse_hashing,
)
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline
from tests.index.stored_keys import stored_keys

SETTINGS = BucketSettings("CONSISTENT_HASHING", 4, ("id",))
NOBODY = Timeline(())
LATER = "20260101000000000"


def test_ranges_are_those_that_real_hudi_makes(golden):
    table = golden("mor_v9_consistent_bucket").table
    for partition in ("p0", "p1", "p2"):
        path = table / hashing_path(partition, FIRST_INSTANT)
        assert json.loads(encode_hashing(first_hashing(partition, 4))) == json.loads(path.read_text())
        assert load_hashing(Storage(table), NOBODY, partition) == first_hashing(partition, 4)


def test_keys_are_in_the_ranges_where_real_hudi_put_them(golden):
    files = stored_keys(golden("mor_v9_consistent_bucket"))
    assert sum(len(keys) for _, _, keys in files) > 100
    for partition, file_id, keys in files:
        hashing = first_hashing(partition, 4)
        numbers = set(node_of_keys(keys, SETTINGS, hashing).tolist())
        assert {hashing.nodes[number].file_id for number in numbers} <= {file_id}


@given(st.integers(1, 3000))
def test_ranges_cover_all_hashes(count):
    values = [node.value for node in first_hashing("p", count).nodes]
    assert values[-1] == HASH_RANGE
    assert len(values) == count
    assert values == sorted(values)


def test_hashes_beyond_the_last_range_belong_to_the_first():
    nodes = (HashingNode(5, "a"), HashingNode(9, "b"))
    keys = pa.array([f"k{number}" for number in range(50)])
    assert node_of_keys(keys, SETTINGS, HashingMetadata("p", LATER, 1, nodes)).tolist() == [0] * 50


@pytest.mark.parametrize("partition", ["", "p", "a/b"])
def test_ranges_are_made_once(tmp_path, partition):
    storage = Storage(tmp_path)
    assert load_hashing(storage, NOBODY, partition) is None
    made = load_or_make_hashing(storage, NOBODY, partition, 3)
    assert made == first_hashing(partition, 3)
    assert load_or_make_hashing(storage, NOBODY, partition, 7) == made


def save(storage: Storage, instant: str, count: int) -> HashingMetadata:
    nodes = tuple(HashingNode(node.value, f"{instant}{node.prefix[17:]}") for node in first_hashing("p", count).nodes)
    metadata = HashingMetadata("p", instant, 1, nodes)
    storage.write_bytes(hashing_path("p", instant), encode_hashing(metadata))
    return metadata


def test_ranges_of_a_clustering_count_once_it_is_complete(tmp_path):
    storage = Storage(tmp_path)
    first = load_or_make_hashing(storage, NOBODY, "p", 2)
    split = save(storage, LATER, 3)
    pending = Timeline((Instant(LATER, "clustering", State.INFLIGHT),))
    done = Timeline((Instant(LATER, "replacecommit", State.COMPLETED, "20260101000001000"),))
    assert load_hashing(storage, pending, "p") == first
    assert load_hashing(storage, NOBODY, "p") == first
    assert load_hashing(storage, done, "p") == split
    storage.write_bytes(marker_path("p", LATER), b"")
    assert load_hashing(storage, NOBODY, "p") == split


def test_ranges_that_began_a_partition_and_are_gone_are_not_made_anew(tmp_path):
    storage = Storage(tmp_path)
    save(storage, LATER, 3)
    with pytest.raises(CorruptTableError, match=f"none of which is complete.*{FIRST_INSTANT}"):
        load_or_make_hashing(storage, NOBODY, "p", 2)


@pytest.mark.parametrize(
    "change",
    [{"nodes": []}, {"nodes": None}, {"nodes": [{"value": 9, "fileIdPrefix": "a"}, {"value": 9, "fileIdPrefix": "b"}]}],
)
def test_ranges_that_make_no_sense(change):
    fields = json.loads(encode_hashing(first_hashing("p", 2)))
    with pytest.raises(CorruptTableError, match="Expected"):
        parse_hashing(json.dumps({**fields, **change}).encode(), "file")
