import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record
from hudi_fast.timeline.commit_metadata import (
    CommitMetadata,
    RuntimeStats,
    WriteStat,
    decode_commit_metadata,
    encode_commit_metadata,
    encode_workload_profile,
)
from hudi_fast.timeline.instants import State, load_timeline, read_instant_body, with_state
from tests.timeline.stored_timelines import NAMES, unzip_timeline


def commits(name, folder):
    stored = unzip_timeline(name, folder)
    for instant in load_timeline(stored.storage, stored.config).writes():
        yield stored, instant, read_instant_body(stored.storage, stored.config, instant)


def said(value):
    """Without members that say nothing, and without one that only 0.x knows."""
    if isinstance(value, dict):
        return {k: said(v) for k, v in value.items() if v not in (None, 0, [], {}) and k != "recordsStats"}
    return [said(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", NAMES)
def test_bodies_of_apache_hudi_are_written_back_alike(name, tmp_path):
    for stored, instant, body in commits(name, tmp_path):
        meta = decode_commit_metadata(body, instant.file_name)
        assert meta.operation_type != "UNKNOWN"
        assert meta.extra_metadata["schema"].startswith('{"type":"record"')
        replace = instant.action == "replacecommit"
        assert (meta.partition_to_replace_file_ids is not None) == replace
        again = encode_commit_metadata(meta, stored.config.layout_version, replace)
        if stored.config.layout_version == 2:
            assert read_single_record(again) == read_single_record(body)
        else:
            assert said(json.loads(again)) == said(json.loads(body))
        for layout in (1, 2):
            assert decode_commit_metadata(encode_commit_metadata(meta, layout, replace)) == meta


def test_a_compaction_says_what_it_merged(tmp_path):
    metas = [
        decode_commit_metadata(body) for _, i, body in commits("mor_v6_compacted", tmp_path) if i.action == "commit"
    ]
    last = metas[-1]
    assert (last.operation_type, last.compacted) == ("COMPACT", True)
    stat = last.partition_to_write_stats["p0"][0]
    assert stat.path == "p0/ed30e076-7fa2-47fa-bc03-cd27f34b8c79-0_0-477-933_20261121054620691.parquet"
    assert stat.prev_base_file == "ed30e076-7fa2-47fa-bc03-cd27f34b8c79-0_2-424-811_20261121054616526.parquet"
    assert (stat.num_writes, stat.num_update_writes, stat.total_log_records) == (20, 11, 18)
    assert (stat.total_log_files_compacted, stat.total_log_size_compacted) == (2, 2400)
    assert stat.runtime_stats == RuntimeStats(total_scan_time=39, total_create_time=0, total_upsert_time=134)
    assert sum(1 for _ in last.write_stats()) == 3


def test_a_log_file_names_its_slice(tmp_path):
    deltas = [
        decode_commit_metadata(body) for _, i, body in commits("mor_v6_compacted", tmp_path) if "delta" in i.action
    ]
    stat = deltas[-1].partition_to_write_stats["p0"][0]
    assert stat.log_files == (".ed30e076-7fa2-47fa-bc03-cd27f34b8c79-0_20261121054620691.log.1_0-509-995",)
    assert stat.base_file == "ed30e076-7fa2-47fa-bc03-cd27f34b8c79-0_0-477-933_20261121054620691.parquet"
    assert (stat.log_version, stat.log_offset, stat.num_deletes) == (1, 0, 2)


def test_inflight_bodies_are_workload_profiles(tmp_path):
    stored = unzip_timeline("cow_v8_mixed", tmp_path)
    instant = load_timeline(stored.storage, stored.config).writes()[1]
    body = read_instant_body(stored.storage, stored.config, with_state(instant, State.INFLIGHT))
    theirs = decode_commit_metadata(body)
    inserts, updates = {}, {}
    for partition, stats in theirs.partition_to_write_stats.items():
        inserts[partition] = stats[0].num_inserts
        updates[partition] = {one.file_id: (one.prev_commit, one.num_update_writes) for one in stats[1:]}
    assert any(updates.values())
    for layout in (1, 2):
        ours = encode_workload_profile(inserts, updates, theirs.operation_type, layout)
        assert decode_commit_metadata(ours) == theirs


def test_an_empty_file_is_an_empty_commit():
    assert decode_commit_metadata(b"") == CommitMetadata({}, {}, "UNKNOWN")


def test_members_of_other_releases_are_ignored_and_missing_ones_take_defaults():
    body = b'{"partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": 3, "new": 1}]}, "compacted": null}'
    stat = WriteStat(file_id="f", num_writes=3, partition_path="p")
    assert decode_commit_metadata(body) == CommitMetadata({"p": [stat]})


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff\xfe", b'{"partitionToWriteStats": 3}', b"Obj\x01junk"])
def test_damaged_bodies_are_named(data):
    with pytest.raises(CorruptTableError, match=r"x\.commit"):
        decode_commit_metadata(data, "x.commit")


def test_a_layout_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="expected 1 or 2"):
        encode_commit_metadata(CommitMetadata(), 6)


text = st.text(max_size=8)
count = st.integers(0, 2**62)
maybe = st.none() | count
STATS = st.builds(
    WriteStat,
    file_id=text,
    path=text,
    prev_commit=st.text(min_size=1, max_size=5),
    num_writes=count,
    num_inserts=count,
    num_deletes=count,
    total_write_bytes=count,
    file_size=count,
    partition_path=text,
    prev_base_file=st.none() | text,
    min_event_time=maybe,
    max_event_time=maybe,
    runtime_stats=st.none() | st.builds(RuntimeStats, count, count, count),
    cdc_stats=st.none() | st.dictionaries(text, count, max_size=2),
    total_log_blocks=count,
)
LOG_STATS = st.builds(
    WriteStat,
    file_id=text,
    base_file=text,
    log_files=st.lists(text, max_size=3).map(tuple),
    log_version=st.integers(0, 2**31 - 1),
    log_offset=count,
)
METAS = st.builds(
    CommitMetadata,
    st.dictionaries(text, st.lists(STATS | LOG_STATS, max_size=3), max_size=3),
    st.dictionaries(text, text, max_size=3),
    st.sampled_from(["UPSERT", "INSERT_OVERWRITE"]),
    st.booleans(),
    st.dictionaries(text, st.lists(text, max_size=2), max_size=2),
)


@given(METAS, st.sampled_from([1, 2]))
def test_metadata_survives_both_encodings(meta, layout):
    assert decode_commit_metadata(encode_commit_metadata(meta, layout, replace=True)) == meta
    assert pickle.loads(pickle.dumps(meta)) == meta


def test_equal_metadata_gives_equal_bytes():
    meta = CommitMetadata({"p": [WriteStat("f", "p/f", partition_path="p")]}, {"schema": "{}"}, "UPSERT")
    assert encode_commit_metadata(meta, 2) == encode_commit_metadata(meta, 2)
