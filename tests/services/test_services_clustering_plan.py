"""Plans of clusterings: which file groups they take in, by which options, and that they are those of Apache Hudi."""

from __future__ import annotations

import dataclasses
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import update_properties
from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.services.clustering.cluster_plan import filter_partitions, group_slices, plan_clustering
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.service_plans import ClusteringPlan, decode_requested_replace
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.settings import Settings
from tests.support.mor_tables import mor_options
from tests.support.small_tables import listing, options, plain_rows, table_rows

PLAN = "hoodie.clustering.plan.strategy."
FILTER = "hoodie.clustering.plan.partition.filter.mode"
APPEND = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.metadata.enable": "false"}
"""Every write makes file groups of its own."""


def make(path: Path, writes: int = 2, partitions: int = 2, more: dict[str, Any] | None = None, **changes: Any) -> None:
    """A file group in each partition for every write."""
    settings = {**options(**changes), **APPEND, **(more or {})}
    for number in range(writes):
        rows = plain_rows(range(number * 10, number * 10 + 10), partitions=partitions)
        hf.write(rows, path, settings)


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


def groups_of(plan: ClusteringPlan) -> list[tuple[str, int, int]]:
    """Partition, number of slices and of outputs for each group."""
    return [(group.slices[0].partition_path, len(group.slices), group.output_groups) for group in plan.groups]


def touched(path: Path, more: dict[str, Any]) -> list[str]:
    """Partitions of a plan that is only thought out."""
    found = services(path).plan_cluster({**APPEND, **more})
    return [] if found is None else [name for name, _, _ in groups_of(found.plan)]


# ---- the plan as Apache Hudi has it


def test_plans_are_those_that_real_hudi_made_of_the_same_files(golden: Any) -> None:
    table = golden("cow_v9_clustered").table
    shutil.rmtree(table / ".hoodie" / "metadata")
    update_properties(Storage(table), {"hoodie.table.metadata.partitions": None})
    timeline = table / ".hoodie" / "timeline"
    made = sorted(timeline.glob("*.clustering.requested"), reverse=True)
    assert len(made) == 2
    for planned in made:
        now = planned.name.partition(".")[0]
        for file in list(timeline.iterdir()):
            if file.is_file() and file.name[:17] >= now and file != planned:
                file.unlink()
        body = planned.read_bytes()
        planned.unlink()
        theirs = decode_requested_replace(body).clustering
        assert theirs is not None
        ours = plan_clustering(load_state(Storage(table)), Settings.from_options({}), 0)
        assert ours is not None
        folder = theirs.groups[0].slices[0].base_path.partition("/p0/")[0]
        moved = tuple(
            dataclasses.replace(
                group,
                slices=tuple(
                    dataclasses.replace(one, base_path=one.base_path.replace(str(table), folder))
                    for one in group.slices
                ),
            )
            for group in ours.groups
        )
        assert moved == theirs.groups
        assert dataclasses.replace(ours, groups=moved) == dataclasses.replace(
            theirs, strategy_params={}, missing_partitions=()
        )


@pytest.mark.parametrize(("version", "action"), [("9", "clustering"), ("8", "clustering"), ("6", "replacecommit")])
def test_a_plan_waits_on_the_timeline_and_its_groups_are_taken(version: str, action: str, tmp_path: Path) -> None:
    make(tmp_path, table_version=version)
    rows = table_rows(tmp_path)
    planned = services(tmp_path).schedule_cluster({f"{PLAN}sort.columns": "part, text"})
    assert groups_of(planned.plan) == [("p0", 2, 1), ("p1", 2, 1)]
    assert planned.file_groups == 4
    state = load_state(Storage(tmp_path))
    pending = [(one.requested, one.action, one.state) for one in state.timeline.pending()]
    assert pending == [(planned.instant, action, State.REQUESTED)]
    assert len(state.view.pending_groups) == 4
    folder = tmp_path / state.config.timeline_folder
    body = decode_requested_replace((folder / f"{planned.instant}.{action}.requested").read_bytes())
    assert (body.operation_type, body.extra_metadata) == ("CLUSTER", {})
    assert body.clustering == planned.plan
    assert planned.plan.strategy_params == {f"{PLAN}sort.columns": "part,text"}
    assert planned.plan.groups[0].slices[0].base_path.startswith(f"{tmp_path}/p0/")
    assert services(tmp_path).schedule_cluster() is None
    assert table_rows(tmp_path) == rows


def test_a_plan_that_is_only_thought_out_writes_nothing(tmp_path: Path) -> None:
    make(tmp_path)
    files = listing(tmp_path)
    planned = services(tmp_path).plan_cluster()
    assert planned.instant == ""
    table = planned.to_arrow()
    assert table.column_names == ["group", "partition", "file_id", "base_file", "log_files", "outputs"]
    assert table.column("group").to_pylist() == [0, 0, 1, 1]
    assert listing(tmp_path) == files


def test_parameters_of_how_it_is_to_be_done_go_into_the_plan(tmp_path: Path) -> None:
    make(tmp_path)
    given = {
        f"{PLAN}sort.columns": "ts,text",
        f"{PLAN}target.file.max.bytes": "1000000",
        "hoodie.layout.optimize.strategy": "hilbert",
        "hoodie.layout.optimize.curve.build.method": "SAMPLE",
        "hoodie.layout.optimize.build.curve.sample.size": "50",
    }
    planned = services(tmp_path).plan_cluster(given)
    wanted = {**given, "hoodie.layout.optimize.strategy": "HILBERT"}
    assert planned.plan.strategy_params == wanted


# ---- when


@pytest.mark.slow(but="hoodie.clustering.async.enabled-hoodie.clustering.async.max.commits")
@pytest.mark.parametrize(
    ("mode", "limit"),
    [
        ("hoodie.clustering.inline", "hoodie.clustering.inline.max.commits"),
        ("hoodie.clustering.schedule.inline", "hoodie.clustering.async.max.commits"),
        ("hoodie.clustering.async.enabled", "hoodie.clustering.async.max.commits"),
    ],
)
def test_a_mode_waits_for_so_many_commits_since_the_last_clustering(mode: str, limit: str, tmp_path: Path) -> None:
    make(tmp_path, writes=2)
    given = {mode: "true", limit: "3"}
    assert services(tmp_path).schedule_cluster(given) is None
    make(tmp_path, writes=1)
    first = services(tmp_path).schedule_cluster(given)
    assert first is not None
    make(tmp_path, writes=2)
    assert services(tmp_path).plan_cluster(given) is None  # the last one is pending, and counts
    assert services(tmp_path).plan_cluster() is not None  # nobody asked to wait
    make(tmp_path, writes=1)
    assert services(tmp_path).plan_cluster(given) is not None


# ---- where


@pytest.mark.parametrize(
    ("mode", "given", "hour", "chosen", "missing"),
    [
        ("NONE", {}, 0, ["a", "b", "c", "d"], []),
        ("RECENT_DAYS", {}, 0, ["c", "d"], []),
        ("RECENT_DAYS", {"daybased.skipfromlatest.partitions": "1"}, 0, ["b", "c"], ["d"]),
        ("RECENT_DAYS", {"daybased.lookback.partitions": "0"}, 0, ["a", "b", "c", "d"], []),
        ("SELECTED_PARTITIONS", {"cluster.begin.partition": "b"}, 0, ["b", "c", "d"], []),
        ("SELECTED_PARTITIONS", {"cluster.begin.partition": "b", "cluster.end.partition": "c"}, 0, ["b", "c"], []),
        ("SELECTED_PARTITIONS", {"cluster.end.partition": "a"}, 0, ["a"], []),
        ("DAY_ROLLING", {}, 2, ["c"], []),
        ("DAY_ROLLING", {}, 5, [], []),
    ],
)
def test_filter_modes(mode: str, given: dict[str, str], hour: int, chosen: list[str], missing: list[str]) -> None:
    settings = ClusteringOptions.from_options({f"{PLAN}{key}": value for key, value in given.items()})
    found = filter_partitions(["d", "a", "c", "b"], settings, mode, hour)
    assert (list(found.chosen), list(found.missing)) == (chosen, missing)


def test_partitions_are_chosen_by_name_by_pattern_and_by_strategy(tmp_path: Path) -> None:
    make(tmp_path, partitions=5)
    assert touched(tmp_path, {}) == ["p0", "p1", "p2", "p3", "p4"]
    assert touched(tmp_path, {f"{PLAN}partition.selected": "p3,p0,nowhere"}) == ["p0", "p3"]
    assert touched(tmp_path, {f"{PLAN}partition.regex.pattern": "p[1-2]"}) == ["p1", "p2"]
    assert touched(tmp_path, {f"{PLAN}partition.regex.pattern": "p"}) == []
    assert touched(tmp_path, {FILTER: "recent_days"}) == ["p3", "p4"]
    for name in ("SparkRecentDaysClusteringPlanStrategy", "JavaRecentDaysClusteringPlanStrategy"):
        assert touched(tmp_path, {f"{PLAN}class": f"org.apache.hudi.client.{name}"}) == ["p3", "p4"]
    selected = {f"{PLAN}class": "SparkSelectedPartitionsClusteringPlanStrategy", f"{PLAN}cluster.begin.partition": "p4"}
    assert touched(tmp_path, selected) == ["p4"]
    with pytest.raises(hf.ConfigError, match="not a regular expression"):
        touched(tmp_path, {f"{PLAN}partition.regex.pattern": "("})


def test_after_a_clustering_the_partitions_written_since_and_those_left_out_are_next(tmp_path: Path) -> None:
    make(tmp_path, partitions=4)
    assert services(tmp_path).cluster({**APPEND, f"{PLAN}max.num.groups": "3"}).file_groups == 6
    assert touched(tmp_path, {}) == ["p3"]
    rows = plain_rows(range(100, 104), partitions=1)
    hf.write(rows, tmp_path, {**options(), **APPEND})
    assert touched(tmp_path, {}) == ["p0", "p3"]
    assert touched(tmp_path, {"hoodie.table.services.incremental.enabled": "false"}) == ["p0", "p1", "p2", "p3"]
    assert services(tmp_path).cluster(APPEND).file_groups == 4
    assert touched(tmp_path, {}) == []


def test_slices_that_another_service_plans_for_are_left_out_and_their_partition_is_next(tmp_path: Path) -> None:
    settings = mor_options({"hoodie.metadata.enable": "false"})
    hf.write(plain_rows(range(10)), tmp_path, settings)
    hf.write(plain_rows([0, 2], ts=2), tmp_path, settings)
    hf.write(plain_rows(range(20, 30)), tmp_path, {**settings, **APPEND})
    assert services(tmp_path).schedule_compact(settings) is not None
    planned = services(tmp_path).schedule_cluster(settings)
    assert groups_of(planned.plan) == [("p0", 1, 1), ("p1", 2, 1)]
    assert planned.plan.missing_partitions == ("p0",)
    assert services(tmp_path).schedule_compact(settings) is None


def test_log_files_are_part_of_a_plan(tmp_path: Path) -> None:
    settings = mor_options({"hoodie.metadata.enable": "false"})
    hf.write(plain_rows(range(10)), tmp_path, settings)
    hf.write(plain_rows([0, 2], ts=2), tmp_path, settings)
    first, second = services(tmp_path).schedule_cluster(settings).plan.groups
    assert [len(group.slices[0].log_paths) for group in (first, second)] == [1, 0]
    assert first.slices[0].log_paths[0].startswith(f"{tmp_path}/p0/.")
    assert (first.metrics["TOTAL_LOG_FILES"], second.metrics["TOTAL_LOG_FILES"]) == (1.0, 0.0)
    assert first.metrics["TOTAL_LOG_FILES_SIZE"] > 0
    assert services(tmp_path).schedule_compact(settings) is None  # it is taken


# ---- what goes together


def slice_of(name: str, size: int | None, instant: str = "20260101000000000") -> FileSlice:
    base = None if size is None else BaseFile(f"p/{name}_1-0-1_{instant}.parquet", name, "1-0-1", instant, size)
    return FileSlice("p", name, base, (), instant)


def names(groups: Any) -> list[tuple[list[str], int]]:
    return [([one.file_id for one in slices], outputs) for slices, outputs in groups.groups]


def chosen(**changes: Any) -> ClusteringOptions:
    return dataclasses.replace(ClusteringOptions(), **changes)


def test_a_group_is_closed_when_the_next_slice_would_be_too_much(tmp_path: Path) -> None:
    slices = [slice_of("a", 40), slice_of("b", 70), slice_of("c", None), slice_of("d", 30), slice_of("e", 5)]
    found = group_slices(slices, chosen(max_group_bytes=100, target_bytes=60), max_file_size=90)
    assert names(found) == [(["c"], 2), (["b"], 2), (["a", "d", "e"], 2)]
    assert not found.partial


def test_slices_go_by_size_or_by_age() -> None:
    slices = [slice_of("a", 10, "3"), slice_of("b", 30, "2"), slice_of("c", 20, "1"), slice_of("d", 10, "0")]
    by_size = group_slices(slices, chosen(), 100)
    assert names(by_size) == [(["b", "c", "a", "d"], 1)]
    by_age = group_slices(slices, chosen(slice_order=("instant_time",)), 100)
    assert names(by_age) == [(["d", "c", "b", "a"], 1)]
    both = group_slices(slices, chosen(slice_order=("SIZE", "INSTANT_TIME")), 100)
    assert names(both) == [(["b", "c", "d", "a"], 1)]


def test_single_slices_that_would_stay_single_files_are_left_alone_if_told_so() -> None:
    slices = [slice_of("a", 90), slice_of("b", 80)]
    limits = {"max_group_bytes": 100, "target_bytes": 85, "single_groups": False}
    assert names(group_slices(slices, chosen(**limits), 100)) == [(["a"], 2)]
    assert len(group_slices(slices, chosen(**limits, sort_columns=("x",)), 100).groups) == 2


def test_there_are_so_many_groups_and_no_more() -> None:
    slices = [slice_of(str(number), 60) for number in range(5)]
    found = group_slices(slices, chosen(max_group_bytes=100, max_groups=3), 100)
    assert (len(found.groups), found.partial) == (3, True)
    exact = group_slices(slices, chosen(max_group_bytes=100, max_groups=5), 100)
    assert (len(exact.groups), exact.partial) == (5, False)


def test_every_slice_is_in_one_group_and_none_is_too_large() -> None:
    chooser = random.Random(7)
    for _ in range(50):
        slices = [slice_of(f"s{number}", chooser.randint(1, 120)) for number in range(chooser.randint(1, 30))]
        found = group_slices(slices, chosen(max_group_bytes=100, target_bytes=30), 100)
        listed = [one.file_id for group, _ in found.groups for one in group]
        assert sorted(listed) == sorted(one.file_id for one in slices)
        for group, outputs in found.groups:
            total = sum(one.base_file.size for one in group if one.base_file is not None)
            assert total <= 100 or len(group) == 1
            assert (outputs - 1) * 30 < total <= outputs * 30


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    make(tmp_path)
    largest = max(size for name, size in listing(tmp_path).items() if name.endswith(".parquet"))
    assert services(tmp_path).plan_cluster({f"{PLAN}small.file.limit": "100"}) is None
    found = services(tmp_path).plan_cluster({f"{PLAN}small.file.limit": str(largest + 1)})
    assert found.file_groups == 4


# ---- strategies


def test_one_file_at_a_time(tmp_path: Path) -> None:
    make(tmp_path)
    given = {f"{PLAN}class": "SparkSingleFileSortPlanStrategy", f"{PLAN}target.file.max.bytes": "10"}
    planned = services(tmp_path).plan_cluster(given).plan
    assert groups_of(planned) == [("p0", 1, 1), ("p0", 1, 1), ("p1", 1, 1), ("p1", 1, 1)]


def test_files_that_are_copied_as_they_are_share_their_columns(tmp_path: Path) -> None:
    make(tmp_path, partitions=1)
    more = plain_rows(range(50, 60), partitions=1)
    more = more.append_column("extra", pa.array(range(10)))
    hf.write(more, tmp_path, {**options(), **APPEND})
    given = {f"{PLAN}class": "SparkStreamCopyClusteringPlanStrategy"}
    planned = services(tmp_path).plan_cluster(given).plan
    assert sorted(count for _, count, _ in groups_of(planned)) == [1, 2]
    assert planned.strategy_class.endswith(".run.strategy.SparkStreamCopyClusteringExecutionStrategy")
    given[f"{PLAN}binary.copy.schema.evolution.enable"] = "true"
    assert groups_of(services(tmp_path).plan_cluster(given).plan) == [("p0", 3, 1)]


def test_files_of_the_writes_after_an_instant(tmp_path: Path) -> None:
    make(tmp_path, writes=4)
    writes = [one.requested for one in load_state(Storage(tmp_path)).timeline.writes()]
    given = {f"{PLAN}class": "CommitBasedClusteringPlanStrategy"}
    with pytest.raises(hf.ConfigError, match=r"strategy\.earliest\.commit\.to\.cluster"):
        services(tmp_path).schedule_cluster(given)
    given[f"{PLAN}earliest.commit.to.cluster"] = writes[1]
    planned = services(tmp_path).schedule_cluster(given).plan
    assert groups_of(planned) == [("p0", 2, 1), ("p1", 2, 1)]
    files = {one.base_path.rpartition("_")[2] for group in planned.groups for one in group.slices}
    assert files == {f"{one}.parquet" for one in writes[2:]}
    assert planned.extra_metadata == {"clustering.commit.checkpoint": writes[-1]}


@pytest.mark.parametrize(
    ("key", "name"),
    [(f"{PLAN}class", "com.example.Plan"), ("hoodie.clustering.execution.strategy.class", "com.example.Run")],
)
def test_unknown_strategies_are_refused_by_name(key: str, name: str, tmp_path: Path) -> None:
    make(tmp_path)
    services(tmp_path).schedule_cluster()
    files = listing(tmp_path)
    for verb in (services(tmp_path).schedule_cluster, services(tmp_path).cluster):
        with pytest.raises(hf.UnsupportedFeatureError, match=name):
            verb({key: name})
    assert listing(tmp_path) == files


def test_buckets_stay_where_their_index_looks_for_them(tmp_path: Path) -> None:
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(20)), tmp_path, {**options(), **bucket})
    for given in ({}, bucket):
        with pytest.raises(hf.UnsupportedFeatureError, match="has a bucket index"):
            services(tmp_path).schedule_cluster(given)
