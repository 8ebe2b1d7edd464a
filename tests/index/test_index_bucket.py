"""Buckets of keys: against the tables of real Hudi, and what tables say about their buckets."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.index.buckets import (
    bucket_count,
    bucket_file_id,
    bucket_number,
    bucket_of_keys,
    load_bucket_counts,
    slices_by_bucket,
)
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.view.slices import FileSlice
from tests.index.stored_keys import stored_keys

NOBODY = Timeline(())
FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"


def test_keys_are_in_the_buckets_where_real_hudi_put_them(golden):
    files = stored_keys(golden("mor_v9_bucket"))
    assert sum(len(keys) for _, _, keys in files) > 150
    for partition, file_id, keys in files:
        numbers = bucket_of_keys(keys, BucketSettings("SIMPLE", 4, ("id",)), partition)
        assert set(numbers.tolist()) <= {bucket_number(file_id)}


def test_a_new_group_of_a_bucket_is_named_after_it_and_made_alike_by_every_attempt():
    file_id = bucket_file_id(42, "table", "instant", "partition")
    assert file_id.startswith("00000042-")
    assert bucket_number(file_id) == 42
    assert len(file_id) == 38
    assert bucket_file_id(42, "table", "instant", "partition") == file_id
    assert bucket_file_id(42, "table", "instant", "other")[8:] != file_id[8:]


@pytest.mark.parametrize("file_id", ["a1ba364b-fbde-3906-b865-53e4c35f3556-0", "0000٣003-0000", "123-0", ""])
def test_other_file_groups_are_no_buckets(file_id):
    assert bucket_number(file_id) is None


def test_file_groups_of_other_settings_are_refused():
    with pytest.raises(ConfigError, match=r"00000007-x-0, which is not one of 4 buckets.*num\.buckets"):
        slices_by_bucket([FileSlice("p", "00000007-x-0", None)], 4, "/table")
    with pytest.raises(CorruptTableError, match="two file groups for bucket 1: 00000001-x-0 and 00000001-y-0"):
        slices_by_bucket([FileSlice("p", f"00000001-{name}-0", None) for name in "xy"], 4, "/table")


def overrides(folder, files: dict[str, object], timeline: Timeline = NOBODY) -> tuple[tuple[str, int], ...]:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        Storage(folder).write_bytes(f"{FOLDER}/{name}.hashing_config", text.encode())
    found = load_bucket_counts(Storage(folder), timeline)
    return () if found is None else found.overrides


def counts(expressions: str, rule: str = "regex") -> dict[str, object]:
    return {"expressions": expressions, "defaultBucketNumber": 8, "rule": rule, "version": 1, "instant": "x"}


def test_partitions_may_have_their_own_number_of_buckets(tmp_path):
    assert overrides(tmp_path, {}) == ()
    found = overrides(tmp_path, {"00000000000000": counts(r"\d{4}-(01|12)-31,256;2024-\d{2},16")})
    settings = BucketSettings("SIMPLE", 8, ("id",), overrides=found)
    paths = ["2024-01-31", "dt=2024-05-01", "2023-05-01", ""]
    assert [bucket_count(settings, path) for path in paths] == [256, 16, 8, 8]
    keys = pa.array([f"k{number}" for number in range(500)])
    assert bucket_of_keys(keys, settings, "2024-01-31").max() > 200
    assert bucket_of_keys(keys, settings, "2023-05-01").max() == 7


def test_numbers_of_buckets_of_a_change_that_is_not_complete_do_not_count(tmp_path):
    pending = Instant("20260101000000000", "replacecommit", State.INFLIGHT)
    files = {"00000000000000": counts("a,2"), pending.requested: counts("a,4")}
    assert overrides(tmp_path, files, Timeline((pending,))) == (("a", 2),)
    done = Instant(pending.requested, "replacecommit", State.COMPLETED, "20260101000001000")
    assert overrides(tmp_path, {}, Timeline((done,))) == (("a", 4),)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (counts("a,2", rule="range"), UnsupportedFeatureError, "the rule 'range'"),
        (counts("(?<x>a)*+(?,2"), UnsupportedFeatureError, "pattern"),
        (counts("a;b"), CorruptTableError, "Expected a pattern of partition paths"),
        ("{", CorruptTableError, "Expected JSON"),
    ],
)
def test_numbers_of_buckets_that_make_no_sense(tmp_path, content, error, says):
    with pytest.raises(error, match=says):
        overrides(tmp_path, {"00000000000000": content})
