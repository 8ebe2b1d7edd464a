"""Clusterings carried out: rows stay, file groups become others, writers go on or are told, what died is done again.

Modules: hudi_fast.writing.pending_clusterings.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.services.clustering.cluster import cluster_after_write, run_clustering
from hudi_fast.services.clustering.cluster_plan import ScheduledClustering
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.transition import to_inflight
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import create_marker, make_marker_folder
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend
from tests.support.mor_tables import VERSIONS, mor_options, newest_commit
from tests.support.rows import assert_same_rows
from tests.support.sessions import PartlyBackend, session_of
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, rows_of, table_rows

PLAN = "hoodie.clustering.plan.strategy."
ALLOW = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}
SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
PREFER_WRITER = {
    "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction."
    "PreferWriterConflictResolutionStrategy"
}
GIVE_WAY = {**ALLOW, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}


def make(path: Path, version: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Thirty rows in two partitions, in three file groups each."""
    settings = {**options(table_version=version), **(more or {})}
    for number in range(3):
        rows = plain_rows(range(number * 10, number * 10 + 10), ts=number + 1)
        hf.write(rows, path, {**settings, "hoodie.datasource.write.operation": "bulk_insert"})
    return settings


def make_mor(path: Path, version: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """The same with log files on top: updates of 5 to 14, and 20 and 21 deleted."""
    settings = mor_options(more, table_version=version)
    make(path, version, settings)
    hf.write(plain_rows(range(5, 15), ts=5, text="b"), path, settings)
    hf.write(plain_rows([20, 21], ts=6), path, {**settings, "hoodie.datasource.write.operation": "delete"})
    return settings


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


def file_groups(path: Path) -> list[tuple[str, str]]:
    state = load_state(Storage(path))
    return [(name, one.file_id) for name in state.view.lister.partitions() for one in latest_slices(state.view, name)]


def pending(path: Path) -> list[tuple[str, State]]:
    return [(one.requested, one.state) for one in load_state(Storage(path)).timeline.pending()]


# ---- rows and file groups


MOST_VERSIONS = ["6", "9", pytest.param("8", marks=pytest.mark.long)]  # 8 has the timeline of 9
CHOSEN = {
    ("6", "COPY_ON_WRITE", "alone"),
    ("6", "MERGE_ON_READ", "shared"),
    ("8", "MERGE_ON_READ", "alone"),
    ("9", "COPY_ON_WRITE", "shared"),
    ("9", "MERGE_ON_READ", "alone"),
}


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_stay_as_they_are_and_file_groups_become_others(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    table, before = hf.HudiTable.open(tmp_path), file_groups(tmp_path)
    rows = table.to_arrow()
    result = services(tmp_path).cluster()
    assert_same_rows(table.to_arrow(), rows, ignore=["_hoodie_file_name"])  # commit times and sequence numbers too
    after = file_groups(tmp_path)
    assert (len(before), len(after)) == (6, 2)
    assert set(before).isdisjoint(after)
    assert (result.operation, result.file_groups, result.rows, result.files_written) == ("cluster", 6, 30, 2)
    assert (result.instants, result.bytes_written > 0) == ((result.instant,), True)
    instant, commit = newest_commit(tmp_path)
    assert (instant.requested, instant.action) == (result.instant, "replacecommit")
    assert (commit.operation_type, commit.compacted) == ("CLUSTER", False)
    replaced = commit.partition_to_replace_file_ids or {}
    assert sorted((name, one) for name, ids in replaced.items() for one in ids) == sorted(before)
    assert {stat.prev_commit for stat in commit.write_stats()} == {"null"}
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_writes_go_on_in_the_new_file_groups(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {"hoodie.index.type": "BLOOM"})
    services(tmp_path).cluster()
    rows, groups = table_rows(tmp_path), file_groups(tmp_path)
    change = plain_rows([3, 7, 60], ts=9, text="c")
    result = hf.write(change, tmp_path, settings)
    assert (result.inserts, result.updates) == (1, 2)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    assert file_groups(tmp_path) == groups  # small files are filled
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_log_files_are_merged(version: str, tmp_path: Path) -> None:
    settings = make_mor(tmp_path, version)
    rows = hf.HudiTable.open(tmp_path).to_arrow()
    result = services(tmp_path).cluster(settings)
    assert (result.file_groups, result.rows) == (6, 28)
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), rows, ignore=["_hoodie_file_name"])
    optimized = hf.HudiTable.open(tmp_path).to_arrow(query_type="read_optimized")
    assert_same_rows(optimized, rows, ignore=["_hoodie_file_name"])
    hf.write(plain_rows([1, 2], ts=9, text="c"), tmp_path, settings)
    assert table_rows(tmp_path) == {**rows_of(rows), **rows_of(plain_rows([1, 2], ts=9, text="c"))}
    assert services(tmp_path).compact(settings).updates == 2
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_rows_are_sorted_if_that_is_asked_for(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    hf.write(plain_rows(range(30, 40), ts=0), tmp_path, settings)
    planned = services(tmp_path).schedule_cluster({f"{PLAN}sort.columns": "ts,id"})
    services(tmp_path).cluster(plan=planned)
    for name, file_id in file_groups(tmp_path):
        rows = [row for row in hf.HudiTable.open(tmp_path).to_arrow().to_pylist() if row["part"] == name]
        assert all(row["_hoodie_file_name"].startswith(file_id) for row in rows)
        found = [(row["ts"], row["id"]) for row in rows]
        assert found == sorted(found)
        assert len({ts for ts, _ in found}) == 4


def test_without_file_groups_nothing_is_planned_and_nothing_written(tmp_path: Path) -> None:
    make(tmp_path, "9")
    services(tmp_path).cluster()
    files = listing(tmp_path)
    result = services(tmp_path).cluster()
    assert (result.instant, result.instants, result.file_groups) == ("", (), 0)
    assert listing(tmp_path) == files


# ---- what waits


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_what_waits_is_carried_out_first_and_then_what_came_since(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    planned = services(tmp_path).schedule_cluster()
    rows = table_rows(tmp_path)
    new = plain_rows(range(50, 60), ts=9)
    hf.write(new, tmp_path, {**settings, "hoodie.datasource.write.operation": "insert"})
    rows |= rows_of(new)
    assert len(file_groups(tmp_path)) == 8  # inserts keep away from what is planned
    assert services(tmp_path).cluster(pending_only=True).instants == (planned.instant,)
    assert services(tmp_path).cluster(pending_only=True).instants == ()
    assert table_rows(tmp_path) == rows
    result = services(tmp_path).cluster()
    assert (result.file_groups, len(file_groups(tmp_path))) == (4, 2)
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_plan_is_carried_out_once(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    planned = services(tmp_path).schedule_cluster()
    services(tmp_path).cluster(plan=planned)
    rows = table_rows(tmp_path)
    with pytest.raises(hf.CommitConflictError, match="it was completed"):
        services(tmp_path).cluster(plan=planned)
    with pytest.raises(hf.CommitConflictError, match="removed from the timeline"):
        services(tmp_path).cluster(plan=ScheduledClustering("20990101000000000", planned.plan))
    assert table_rows(tmp_path) == rows


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_clustering_that_died_is_rolled_back_and_done_with_the_same_plan(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    planned = services(tmp_path).schedule_cluster({f"{PLAN}sort.columns": "text"})
    rows = table_rows(tmp_path)
    storage = Storage(tmp_path)
    state = load_state(storage)
    instant = state.timeline.find(planned.instant)
    assert instant is not None
    to_inflight(storage, state.config, instant)
    make_marker_folder(storage, planned.instant)
    left = f"p0/0000aaaa-0000-4000-8000-000000000000-0_0-0-0_{planned.instant}.parquet"
    create_marker(storage, planned.instant, left, "CREATE")
    (tmp_path / left).write_bytes(b"cut off")
    assert table_rows(tmp_path) == rows
    result = services(tmp_path).cluster(pending_only=True)
    assert (result.instants, result.file_groups) == ((planned.instant,), 6)
    assert not (tmp_path / left).exists()
    assert table_rows(tmp_path) == rows
    actions = [one.action for one in load_state(storage).timeline.instants]
    assert actions.count("rollback") == 1
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_clustering_of_another_program_that_shows_signs_of_life_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_cluster()
    storage = Storage(tmp_path)
    state = load_state(storage)
    to_inflight(storage, state.config, state.timeline.pending()[0])
    storage.write_bytes(f".hoodie/.heartbeat/{planned.instant}", b"")
    with pytest.raises(hf.CommitConflictError, match="is run by another process"):
        services(tmp_path).cluster()
    assert pending(tmp_path) == [(planned.instant, State.INFLIGHT)]
    long_ago = time.time() - 600
    os.utime(tmp_path / ".hoodie" / ".heartbeat" / planned.instant, (long_ago, long_ago))
    assert services(tmp_path).cluster().instants == (planned.instant,)


def test_a_plan_whose_file_is_gone_is_refused_by_name(tmp_path: Path) -> None:
    make(tmp_path, "9", {"hoodie.metadata.enable": "true"})
    planned = services(tmp_path).schedule_cluster()
    gone = planned.plan.groups[0].slices[0]
    Path(gone.base_path).unlink()
    with pytest.raises(hf.CorruptTableError, match=gone.file_id):
        services(tmp_path).cluster()
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]


def test_plans_that_cannot_be_carried_out_are_refused_by_name(tmp_path: Path) -> None:
    make(tmp_path, "9")
    run = "hoodie.clustering.execution.strategy.class"
    bucket = "SparkConsistentBucketClusteringExecutionStrategy"
    planned = services(tmp_path).schedule_cluster({run: f"org.apache.hudi.client.clustering.run.strategy.{bucket}"})
    with pytest.raises(hf.CorruptTableError, match="does not say which buckets become which"):
        services(tmp_path).cluster()
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SparkSingleFileSortExecutionStrategy", "SparkBinaryCopyClusteringExecutionStrategy"])
def test_execution_strategies(name: str, tmp_path: Path) -> None:
    make(tmp_path, "9")
    rows = hf.HudiTable.open(tmp_path).to_arrow()
    given = {"hoodie.clustering.execution.strategy.class": name}
    if "Single" in name:
        given |= {f"{PLAN}class": "SparkSingleFileSortPlanStrategy", f"{PLAN}sort.columns": "text"}
    result = services(tmp_path).cluster(given)
    assert (result.file_groups, result.rows) == (6, 30)
    assert result.files_written == (6 if "Single" in name else 2)
    assert_same_rows(hf.HudiTable.open(tmp_path).to_arrow(), rows, ignore=["_hoodie_file_name"])
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


# ---- writers


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_changes_of_planned_rows_are_refused_unless_allowed(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    planned = services(tmp_path).schedule_cluster()
    files, rows = listing(tmp_path), table_rows(tmp_path)
    change = plain_rows([3], ts=9, text="c")
    with pytest.raises(hf.CommitConflictError, match="pending clustering is rewriting"):
        hf.write(change, tmp_path, settings)
    assert set(files) <= set(listing(tmp_path))
    hf.write(change, tmp_path, {**settings, **ALLOW})
    rows |= rows_of(change)
    assert table_rows(tmp_path) == rows
    with pytest.raises(hf.CommitConflictError, match="no longer fits the table"):
        services(tmp_path).cluster(plan=planned)
    assert pending(tmp_path) == []
    assert table_rows(tmp_path) == rows
    result = services(tmp_path).cluster()
    assert result.file_groups == 6
    assert table_rows(tmp_path) == rows
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind", "more"),
    [
        pytest.param(
            *(version, kind, SHARED if how == "shared" else {}),
            id=f"{version}-{kind}-{how}",
            marks=() if (version, kind, how) in CHOSEN else pytest.mark.long,
        )
        for version in VERSIONS
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
        for how in ("alone", "shared")
    ],
)
def test_writes_to_other_file_groups_go_on_beside_a_plan(
    version: str, kind: str, more: dict[str, str], tmp_path: Path
) -> None:
    settings = {**options(table_version=version), "hoodie.datasource.write.table.type": kind, **more}
    hf.write(plain_rows(range(10)), tmp_path, settings)
    hf.write(plain_rows([0, 1], ts=2, text="b"), tmp_path, settings)
    only = {"hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS", f"{PLAN}partition.selected": "p0"}
    assert services(tmp_path).schedule_cluster(only) is not None
    rows = table_rows(tmp_path)
    changes = [plain_rows([1, 3], ts=3, text="c"), plain_rows([11], ts=3), plain_rows([12], ts=3)]
    for change in changes:  # updates and inserts beside it, and an insert into its partition
        hf.write(change, tmp_path, settings)
        rows |= rows_of(change)
    before = listing(tmp_path)
    with pytest.raises(hf.CommitConflictError, match="pending clustering"):
        hf.write(plain_rows([0, 1], ts=4), tmp_path, settings)
    assert {name for name in listing(tmp_path) if name.endswith((".parquet", ".log"))} <= set(before)
    services(tmp_path).cluster()
    assert table_rows(tmp_path) == rows
    assert services(tmp_path).validate().ok


@pytest.mark.slow
def test_a_plan_that_is_not_true_any_more_goes_with_a_warning_and_another_one_is_made(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    planned = services(tmp_path).schedule_cluster()
    hf.write(plain_rows([3], ts=9, text="c"), tmp_path, {**settings, **ALLOW})
    rows = table_rows(tmp_path)
    with pytest.warns(hf.HudiWarning, match=f"clustering {planned.instant} .* is rolled back"):
        result = services(tmp_path).cluster()
    assert planned.instant not in result.instants
    assert result.file_groups == 6
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_a_change_while_the_clustering_runs_makes_it_fail_and_nothing_is_lost(version: str, tmp_path: Path) -> None:
    settings = make_mor(tmp_path, version)
    planned = services(tmp_path).schedule_cluster(settings)
    rows = table_rows(tmp_path)
    change = plain_rows([3], ts=9, text="c")

    def meanwhile(*given: Any) -> Any:
        stats = ThreadBackend(1).map_units(*given)
        hf.write(change, tmp_path, {**settings, **GIVE_WAY})  # it leaves alone a clustering that is running
        return stats

    with pytest.raises(hf.CommitConflictError, match="no longer fits the table") as caught:
        run_clustering(session_of(tmp_path, settings, PartlyBackend(meanwhile)), planned)
    assert not getattr(caught.value, "__notes__", [])
    rows |= rows_of(change)
    assert table_rows(tmp_path) == rows
    assert pending(tmp_path) == []
    assert services(tmp_path).cluster(settings).file_groups == 6
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", MOST_VERSIONS)
def test_inserts_go_on_while_the_clustering_runs(version: str, tmp_path: Path) -> None:
    settings = make_mor(tmp_path, version)
    rows = table_rows(tmp_path)
    new = plain_rows(range(70, 80), ts=9)

    def meanwhile(*given: Any) -> Any:
        hf.write(new, tmp_path, settings)
        return ThreadBackend(1).map_units(*given)

    planned = services(tmp_path).schedule_cluster(settings)
    run_clustering(session_of(tmp_path, settings, PartlyBackend(meanwhile)), planned)
    assert table_rows(tmp_path) == {**rows, **rows_of(new)}
    assert len(file_groups(tmp_path)) == 4
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_clustering_gives_way_to_a_write_that_changes_its_rows(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {"hoodie.metadata.enable": "true"})
    planned = services(tmp_path).schedule_cluster()
    hf.write(plain_rows([60], ts=9), tmp_path, {**settings, **GIVE_WAY})
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]  # it touched none of them
    change = plain_rows([3], ts=9, text="c")
    hf.write(change, tmp_path, {**settings, **GIVE_WAY})
    assert pending(tmp_path) == []
    assert rows_of(change).items() <= table_rows(tmp_path).items()
    assert services(tmp_path).cluster().file_groups == 7
    assert services(tmp_path).validate().ok
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "kind"), [("9", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ"), ("6", "COPY_ON_WRITE")])
def test_writers_with_a_lock_conflict_with_a_plan_unless_they_roll_it_back_or_come_first(
    version: str, kind: str, tmp_path: Path
) -> None:
    made = make(tmp_path, version, {"hoodie.datasource.write.table.type": kind})
    planned = services(tmp_path).schedule_cluster()
    change, shared = plain_rows([3], ts=9, text="c"), {**made, **ALLOW, **SHARED}
    with pytest.raises(hf.CommitConflictError, match=r"planned before it began and is pending.*roll back that plan"):
        hf.write(change, tmp_path, shared)
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]
    hf.write(change, tmp_path, {**shared, **PREFER_WRITER})
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]
    hf.write(change, tmp_path, {**shared, **GIVE_WAY})
    assert pending(tmp_path) == []
    assert rows_of(change).items() <= table_rows(tmp_path).items()
    assert services(tmp_path).cluster().file_groups == 6


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["insert_overwrite", "delete_partition"])
def test_planned_file_groups_cannot_be_ended_by_others(operation: str, tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    services(tmp_path).schedule_cluster()
    rows = table_rows(tmp_path)
    given = {"hoodie.datasource.write.operation": operation}
    with pytest.raises(hf.CommitConflictError, match="pending clustering or compaction"):
        hf.write(plain_rows([2], ts=9), tmp_path, {**settings, **ALLOW, **given})
    assert table_rows(tmp_path) == rows


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_old_clusterings_go_if_they_are_told_to_expire(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    expiring = {**settings, "hoodie.clustering.enable.expirations": "true"}
    planned = services(tmp_path).schedule_cluster()
    hf.write(plain_rows([60], ts=9), tmp_path, expiring)
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]  # it is young
    expiring["hoodie.clustering.expiration.threshold.mins"] = "0"
    with machine_lock(Storage(tmp_path), 1.0, service_lock_path("clustering")):
        hf.write(plain_rows([61], ts=9), tmp_path, expiring)
    assert pending(tmp_path) == [(planned.instant, State.REQUESTED)]  # somebody clusters
    hf.write(plain_rows([3], ts=9, text="c"), tmp_path, expiring)
    assert pending(tmp_path) == []
    assert_tidy(tmp_path)


# ---- after a write


def after_write(path: Path, settings: dict[str, Any], more: dict[str, Any]) -> Any:
    return cluster_after_write(session_of(path, {**settings, **more}))


@pytest.mark.slow
def test_inline_clustering_comes_after_so_many_writes(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    assert after_write(tmp_path, settings, {}) == []
    inline = {"hoodie.clustering.inline": "true"}
    assert after_write(tmp_path, settings, inline) == []
    inline["hoodie.clustering.inline.max.commits"] = "3"
    (done,) = after_write(tmp_path, settings, inline)
    assert done.file_groups == 6
    assert after_write(tmp_path, settings, inline) == []
    waiting = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    assert after_write(tmp_path, settings, waiting) == []
    assert pending(tmp_path) == []
    hf.write(
        plain_rows(range(50, 54), ts=9), tmp_path, {**settings, **waiting, "hoodie.clustering.schedule.inline": "false"}
    )
    assert after_write(tmp_path, settings, waiting) == []
    assert [state for _, state in pending(tmp_path)] == [State.REQUESTED]
    assert after_write(tmp_path, settings, waiting) == []
    assert len(pending(tmp_path)) == 1
    assert len(after_write(tmp_path, settings, inline)) == 1  # what waits goes first, due or not
    assert pending(tmp_path) == []


def test_clustering_and_only_planning_it_after_a_write_are_not_both_possible() -> None:
    both = {"hoodie.clustering.inline": "true", "hoodie.clustering.schedule.inline": "true"}
    with pytest.raises(hf.ConfigError, match="not both"):
        Settings.from_options(both)


# ---- indexes


@pytest.mark.slow
@pytest.mark.parametrize(("version", "kind"), [("9", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ"), ("6", "MERGE_ON_READ")])
def test_indexes_know_where_the_rows_are(version: str, kind: str, tmp_path: Path) -> None:
    index = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    }
    settings = (make_mor if kind == "MERGE_ON_READ" else make)(tmp_path, version, index)
    rows, groups = table_rows(tmp_path), set(file_groups(tmp_path))
    services(tmp_path).cluster({**settings, f"{PLAN}sort.columns": "text"})
    assert services(tmp_path).validate().differences.to_pylist() == []
    assert groups.isdisjoint(file_groups(tmp_path))
    change = plain_rows([3, 7, 99], ts=9, text="c")
    result = hf.write(change, tmp_path, settings)
    assert (result.inserts, result.updates) == (1, 2)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    assert services(tmp_path).validate().differences.to_pylist() == []
    state = load_state(Storage(tmp_path))
    assert {"record_index", "column_stats", "bloom_filters"} <= set(state.config.metadata_partitions)
