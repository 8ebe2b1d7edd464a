"""Buckets of consistent hashing that split and merge: which ones, what becomes of their rows, and writers that die.

Modules: hudi_fast.services.clustering.cluster.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.errors import CommitError, ConfigError, UnsupportedFeatureError
from hudi_fast.index.buckets import (
    HASH_RANGE,
    HashingMetadata,
    first_hashing,
    hashing_path,
    load_hashing,
    marker_path,
)
from hudi_fast.services.clustering.bucket_resize import ResizeBounds, plan_partition, resize_buckets
from hudi_fast.services.clustering.cluster_plan import planned_group
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import ClusteringPlan, RequestedReplace, encode_requested_replace
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.settings import Settings
from tests.support.mor_tables import newest_commit
from tests.support.rows import assert_same_rows
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "16",
}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
SPLIT = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.merge.threshold": "0"}
MERGE = {"hoodie.bucket.index.merge.threshold": "1"}


def settings_of(version: str = "9", **changes: Any) -> dict[str, Any]:
    return {**options(table_version=version, **changes), **MOR, **BUCKETS}


def resize(path: Path, settings: dict[str, Any], more: dict[str, str]) -> Any:
    return hf.HudiTable.open(path).services.cluster({**settings, **more})


def hashing_of(path: Path, partition: str) -> HashingMetadata:
    found = load_hashing(Storage(path), load_state(Storage(path)).timeline, partition)
    assert found is not None
    return found


# ---- which buckets


def slices_of(hashing: HashingMetadata, sizes: list[int]) -> dict[str, FileSlice]:
    found = {}
    for node, size in zip(hashing.nodes, sizes, strict=True):
        if size:
            base = BaseFile(f"p/{node.file_id}_0-0-0_1.parquet", node.file_id, "0-0-0", "1", size)
            found[node.file_id] = FileSlice("p", node.file_id, base)
    return found


def planned(sizes: list[int], fewest: int = 1, limit: int = 100) -> list[tuple[int, int]]:
    """Old buckets and new buckets of each group that is rewritten."""
    hashing = first_hashing("p", len(sizes))
    found = plan_partition(hashing, slices_of(hashing, sizes), ResizeBounds(100, 20, fewest, limit))
    return [] if found is None else [(len(group.slices), len(group.nodes)) for group in found.groups]


@pytest.mark.parametrize(
    ("sizes", "limits", "groups"),
    [
        ([50, 50, 50, 50], {}, []),
        ([50, 101, 50, 300], {}, [(1, 2), (1, 2)]),
        ([500, 500, 500, 500], {"limit": 5}, [(1, 2)]),
        ([500, 500], {"limit": 2}, []),
        ([5, 6, 50, 7, 8], {}, [(2, 1), (2, 1)]),
        ([5, 6, 8, 7, 8], {}, [(3, 1), (2, 1)]),
        ([5, 5, 5, 5], {"fewest": 2}, [(3, 1)]),
        ([5, 5, 5, 5], {"fewest": 4}, []),
        ([5, 500, 5, 5], {"fewest": 4}, [(1, 2), (2, 1)]),
        ([0, 0, 50, 50], {}, []),
        ([0, 5, 50, 50], {}, [(1, 1)]),
    ],
)
def test_large_buckets_split_and_small_neighbours_merge(sizes, limits, groups):
    assert planned(sizes, **limits) == groups


@given(st.lists(st.sampled_from([0, 3, 9, 50, 120, 500]), min_size=1, max_size=20), st.integers(1, 30))
def test_ranges_still_cover_all_hashes_and_groups_that_stay_keep_theirs(sizes, bound):
    hashing = first_hashing("p", len(sizes))
    bounds = ResizeBounds(100, 20, min(bound, len(sizes)), max(bound, len(sizes)))
    found = plan_partition(hashing, slices_of(hashing, sizes), bounds)
    if found is None:
        return
    values = [node.value for node in found.nodes]
    assert values == sorted(set(values))
    assert values[-1] == HASH_RANGE
    assert bounds.fewest <= len(values) <= bounds.maximum
    rewritten = {one.file_id for group in found.groups for one in group.slices}
    made = {node for group in found.groups for node in group.nodes}
    assert all(node in hashing.nodes and node.file_id not in rewritten for node in set(found.nodes) - made)
    assert made <= set(found.nodes)


# ---- what becomes of rows


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_are_where_their_hash_says_after_buckets_split_and_merged(version, tmp_path):
    settings = settings_of(version)
    hf.write(plain_rows(range(60)), tmp_path, settings)
    hf.write(plain_rows(range(40, 80), ts=2, text="b"), tmp_path, settings)
    before = hf.HudiTable.open(tmp_path).to_arrow()
    result = resize(tmp_path, settings, SPLIT)
    assert (result.operation, result.rows, result.file_groups, result.files_written) == ("cluster", 80, 8, 16)
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), before, ignore=["_hoodie_file_name"])
    assert_tidy(tmp_path)
    hashing = hashing_of(tmp_path, "p0")
    assert (len(hashing.nodes), hashing.sequence, hashing.instant) == (8, 1, result.instant)
    groups = set(hf.HudiTable.open(tmp_path).files()["file_id"].to_pylist())
    assert {node.file_id for node in hashing.nodes} <= groups
    assert groups == {node.file_id for part in ("p0", "p1") for node in hashing_of(tmp_path, part).nodes}

    hf.write(plain_rows(range(100), ts=5, text="c"), tmp_path, settings)
    assert table_rows(tmp_path) == {f"k{n:05d}": (f"p{n % 2}", 5, f"c{n}") for n in range(100)}
    assert set(hf.HudiTable.open(tmp_path).files()["file_id"].to_pylist()) == groups
    merged = resize(tmp_path, settings, MERGE)
    assert merged.files_written == 2
    assert [len(hashing_of(tmp_path, part).nodes) for part in ("p0", "p1")] == [2, 2]
    assert len(table_rows(tmp_path)) == 100
    assert resize(tmp_path, settings, {}).instant == ""  # nothing is too large or too small


def test_the_commit_names_what_was_replaced(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(20)), tmp_path, settings)
    old = {node.file_id for node in hashing_of(tmp_path, "p0").nodes}
    resize(tmp_path, settings, SPLIT)
    instant, commit = newest_commit(tmp_path)
    assert (instant.action, commit.operation_type) == ("replacecommit", "CLUSTER")
    assert commit.partition_to_replace_file_ids is not None
    assert set(commit.partition_to_replace_file_ids["p0"]) == old
    assert (tmp_path / marker_path("p0", instant.requested)).read_bytes() == b""


@pytest.mark.slow
def test_the_record_index_follows_rows_into_new_groups(tmp_path):
    settings = settings_of() | {"hoodie.metadata.record.index.enable": "true"}
    hf.write(plain_rows(range(12)), tmp_path, settings)
    hf.write(plain_rows(range(8, 20), ts=2), tmp_path, settings)
    resize(tmp_path, settings, SPLIT)
    table = hf.HudiTable.open(tmp_path)
    for number in (3, 10, 19):
        found = table.to_arrow(filter=pc.field("id") == f"k{number:05d}")
        assert found["text"].to_pylist() == [f"a{number}"]
    assert "record_index" in table.explain(filter=pc.field("id") == "k00003")["index"].to_pylist()


def test_groups_in_a_pending_compaction_are_left_alone(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(20)), tmp_path, settings)
    assert hf.HudiTable.open(tmp_path).services.schedule_compact() is not None
    assert resize(tmp_path, settings, SPLIT).instant == ""
    assert hashing_of(tmp_path, "p0") == first_hashing("p0", 4)


@pytest.mark.slow
def test_a_resizing_that_fails_leaves_the_table_as_it_was(tmp_path):
    settings = settings_of(key="id,part")
    hf.write(plain_rows(range(20)), tmp_path, settings)
    before = hf.HudiTable.open(tmp_path).to_arrow()
    with pytest.raises(ConfigError, match=r"are outside its hash range.*hash\.field"):
        resize(tmp_path, settings, {**SPLIT, "hoodie.bucket.index.hash.field": "part"})
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), before, ignore=[])
    assert hashing_of(tmp_path, "p0") == first_hashing("p0", 4)
    hf.write(plain_rows(range(20), ts=2), tmp_path, settings)
    assert_tidy(tmp_path)


class FullStorage(Storage):
    """Has no room for what makes a replace commit visible."""

    def create_exclusive(self, path: str, data: bytes, *more: Any) -> None:
        if path.endswith(".replacecommit"):
            raise OSError(errno.ENOSPC, "no space left", path)
        super().create_exclusive(path, data, *more)


@pytest.mark.slow
def test_a_resizing_that_does_not_become_visible_leaves_no_ranges(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(20)), tmp_path, settings)
    with pytest.raises(CommitError):
        resize_buckets(session_of(FullStorage(tmp_path), {**settings, **SPLIT}))
    folder = (tmp_path / hashing_path("p0", "00000000000000")).parent
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == ["00000000000000.hashing_meta"]
    hf.write(plain_rows(range(5, 25), ts=2), tmp_path, settings)
    assert len(table_rows(tmp_path)) == 25
    assert_tidy(tmp_path)
    assert resize(tmp_path, settings, SPLIT).rows == 25


def test_ranges_that_a_dead_resizing_left_behind_do_not_count(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(20)), tmp_path, settings)
    left = tmp_path / hashing_path("p0", "20990101000000000")
    text = (tmp_path / hashing_path("p0", "00000000000000")).read_text()
    left.write_text(text.replace(first_hashing("p0", 4).nodes[0].prefix, str(uuid.uuid4())))
    hf.write(plain_rows(range(20), ts=2), tmp_path, settings)
    assert len(table_rows(tmp_path)) == 20


def test_other_tables_have_no_buckets_to_split(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path, {**options(), **MOR})
    with pytest.raises(UnsupportedFeatureError, match="not use consistent hashing"):
        resize_buckets(session_of(tmp_path))
    chosen = {"hoodie.clustering.plan.strategy.class": "SparkConsistentBucketClusteringPlanStrategy"}
    with pytest.raises(UnsupportedFeatureError, match="not use consistent hashing"):
        hf.HudiTable.open(tmp_path).services.cluster(chosen)


def test_buckets_are_not_planned_for(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(20)), tmp_path, settings)
    with pytest.raises(UnsupportedFeatureError, match="table of consistent hashing"):
        hf.HudiTable.open(tmp_path).services.schedule_cluster(settings)


# ---- plans of Apache Hudi


def plan_like_hudi(path: Path, settings: dict[str, Any], more: dict[str, str]) -> str:
    """Put a plan on the timeline as Apache Hudi makes them; its instant."""
    storage, state = Storage(path), load_state(Storage(path))
    groups = []
    for name in state.view.lister.partitions():
        hashing = hashing_of(path, name)
        slices = {one.file_id: one for one in latest_slices(state.view, name)}
        bounds = ResizeBounds.of(Settings.from_options({**settings, **more}).write)
        resized = plan_partition(hashing, slices, bounds)
        assert resized is not None
        for group in resized.groups:
            old = {node.value for node in hashing.nodes if node.file_id in {one.file_id for one in group.slices}}
            new = {node.value for node in group.nodes}
            nodes = [{"value": value, "fileIdPrefix": "", "tag": "DELETE"} for value in sorted(old - new)]
            nodes += [
                {
                    "value": node.value,
                    "fileIdPrefix": node.prefix,
                    "tag": "REPLACE" if node.value in old else "NORMAL",
                }
                for node in group.nodes
            ]
            noted = {
                "clustering.group.partition": name,
                "clustering.group.child.node": json.dumps(nodes),
                "clustering.group.sequence.no": str(hashing.sequence),
            }
            planned = planned_group(storage, group.slices, len(group.nodes), 1)
            groups.append(dataclasses.replace(planned, extra_metadata=noted))
    run = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    body = encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan(tuple(groups), run), {}))
    action = "clustering" if state.config.layout_version > 1 else "replacecommit"
    now = InstantClock(state.config.timezone, 1).next_time(state.timeline.newest_time)
    create_requested(storage, state.config, Instant(now, action, State.REQUESTED), body)
    return now


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(("more", "rewritten", "count"), [(SPLIT, 8, 8), (MERGE, 6, 2)])
def test_plans_of_hudi_are_carried_out(version, more, rewritten, count, tmp_path):
    settings = settings_of(version)
    hf.write(plain_rows(range(60)), tmp_path, settings)
    hf.write(plain_rows(range(40, 80), ts=2, text="b"), tmp_path, settings)
    before = hf.HudiTable.open(tmp_path).to_arrow()
    instant = plan_like_hudi(tmp_path, settings, more)
    allowed = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    with pytest.raises(hf.CommitConflictError, match="pending clustering is rewriting"):
        hf.write(plain_rows([3], ts=3), tmp_path, {**settings, **allowed})
    result = hf.HudiTable.open(tmp_path).services.cluster(settings, pending_only=True)
    assert (result.instants, result.file_groups) == ((instant,), rewritten)
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), before, ignore=["_hoodie_file_name"])
    for part in ("p0", "p1"):
        hashing = hashing_of(tmp_path, part)
        assert (len(hashing.nodes), hashing.sequence, hashing.instant) == (count, 1, instant)
    hf.write(plain_rows(range(100), ts=5, text="c"), tmp_path, settings)
    assert table_rows(tmp_path) == {f"k{n:05d}": (f"p{n % 2}", 5, f"c{n}") for n in range(100)}
    assert hf.HudiTable.open(tmp_path).services.validate().ok
    assert_tidy(tmp_path)


def test_plans_of_hudi_for_other_ranges_are_refused(tmp_path):
    settings = settings_of()
    hf.write(plain_rows(range(60)), tmp_path, settings)
    plan_like_hudi(tmp_path, settings, SPLIT)
    path = tmp_path / hashing_path("p0", "00000000000000")
    path.write_text(path.read_text().replace('"seqNo": 0', '"seqNo": 3'))
    with pytest.raises(hf.CommitConflictError, match="have changed since"):
        hf.HudiTable.open(tmp_path).services.cluster(settings)
    assert len(table_rows(tmp_path)) == 60
