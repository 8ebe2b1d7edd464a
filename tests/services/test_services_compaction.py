"""Compaction of tables of our own: rows stay, log files go into base files, writers go on, what died is done again.

Modules: hudi_fast.services.compact, hudi_fast.services.merge_slices.
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import update_properties
from hudi_fast.services.compact_plan import ScheduledCompaction
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.timeline.transition import to_inflight
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import create_marker, make_marker_folder
from tests.support.mor_tables import VERSIONS, log_files, mor_options, newest_commit, stats_of
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, rows_of, table_rows


def make(path: Path, version: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Twenty rows in two partitions, of which k00005 to k00014 were logged; k00000 and k00001 were deleted."""
    settings = mor_options(more, table_version=version)
    hf.write(plain_rows(range(20)), path, settings)
    hf.write(plain_rows(range(5, 15), ts=2, text="b"), path, settings)
    hf.write(plain_rows([0, 1], ts=3), path, {**settings, "hoodie.datasource.write.operation": "delete"})
    return settings


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


def slices(path: Path) -> list[Any]:
    state = load_state(Storage(path))
    return [one for name in state.view.lister.partitions() for one in latest_slices(state.view, name)]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_stay_and_log_files_go_into_base_files(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    table = hf.HudiTable.open(tmp_path)
    by_key = [("_hoodie_record_key", "ascending")]
    before = table.to_arrow().sort_by(by_key)
    result = services(tmp_path).compact()
    after = table.to_arrow().sort_by(by_key)
    name = "_hoodie_file_name"
    assert after.drop_columns([name]).equals(before.drop_columns([name]))  # commit times and sequence numbers too
    assert all(result.instant in each for each in after.column(name).to_pylist())
    assert table.to_arrow(query_type="read_optimized").sort_by(by_key).equals(after)
    assert [one.log_files for one in slices(tmp_path)] == [(), ()]
    assert (result.operation, result.file_groups, result.log_files) == ("compact", 2, 4)
    assert (result.rows, result.inserts, result.updates, result.deletes) == (18, 0, 10, 2)
    assert (result.files_written, result.instants) == (2, (result.instant,))
    instant, commit = newest_commit(tmp_path)
    assert (instant.requested, instant.action) == (result.instant, "commit")
    assert (commit.operation_type, commit.compacted) == ("COMPACT", True)
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_writes_find_the_keys_of_compacted_files(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {"hoodie.index.type": "BLOOM"})
    services(tmp_path).compact(settings)
    rows = table_rows(tmp_path)
    change = plain_rows([3, 7, 50], ts=5, text="c")
    result = hf.write(change, tmp_path, settings)
    assert (result.inserts, result.updates) == (1, 2)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_bloom_filters_hold_the_keys_that_came_from_the_log_alone(version: str, tmp_path: Path) -> None:
    """With a bucket index new keys are logged, too."""
    more = {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.bucket.index.num.buckets": "1"}
    settings = mor_options(more, table_version=version, index="BUCKET")
    for ids in ([0, 8, 1, 9], [4]):
        hf.write(plain_rows(ids), tmp_path, settings)
    assert services(tmp_path).compact(settings).inserts == 1
    table, filter_ = hf.HudiTable.open(tmp_path), pc.field("id") == "k00004"
    assert table.to_arrow(filter=filter_)["text"].to_pylist() == ["a4"]
    skipped = {step["index"]: (step["before"], step["after"]) for step in table.explain(filter_).to_pylist()}
    assert skipped["bloom_filters"] == (2, 1)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_file_groups_of_a_pending_clustering_are_left_out(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    only = {"hoodie.clustering.plan.strategy.partition.selected": "p0"}
    clustering = services(tmp_path).schedule_cluster({**settings, **only})
    before = table_rows(tmp_path)
    planned = services(tmp_path).schedule_compact(settings)
    assert [one.partition_path for one in planned.plan.operations] == ["p1"]
    assert planned.plan.missing_partitions == ("p0",)
    assert services(tmp_path).schedule_compact(settings) is None
    assert services(tmp_path).compact(settings, plan=planned).file_groups == 1
    assert services(tmp_path).cluster(settings, plan=clustering).instant == clustering.instant
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_without_log_files_nothing_is_planned_and_nothing_written(tmp_path: Path) -> None:
    make(tmp_path, "9")
    services(tmp_path).compact()
    files = listing(tmp_path)
    assert services(tmp_path).schedule_compact() is None
    result = services(tmp_path).compact()
    assert (result.instant, result.instants, result.files_written) == ("", (), 0)
    assert listing(tmp_path) == files


def test_copy_on_write_tables_are_refused(tmp_path: Path) -> None:
    hf.write(plain_rows(range(3)), tmp_path, options())
    for call in (services(tmp_path).compact, services(tmp_path).schedule_compact, services(tmp_path).compact_logs):
        with pytest.raises(hf.ConfigError, match="MERGE_ON_READ and not COPY_ON_WRITE"):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_writers_go_on_while_a_compaction_waits(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    planned = services(tmp_path).schedule_compact()
    rows = table_rows(tmp_path)
    change = plain_rows([2, 7, 60], ts=5, text="c")
    hf.write(change, tmp_path, settings)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    assert services(tmp_path).schedule_compact() is None  # its groups are taken
    result = services(tmp_path).compact(plan=planned)
    assert (result.instant, result.log_files) == (planned.instant, 4)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    left = [log for one in slices(tmp_path) for log in one.log_files]
    assert len(left) == 2
    second = services(tmp_path).compact()
    assert (second.log_files, second.updates) == (2, 2)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_what_waits_is_carried_out_first_and_then_what_came_since(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact()
    hf.write(plain_rows([7], ts=5, text="c"), tmp_path, settings)
    result = services(tmp_path).compact(pending_only=True)
    assert result.instants == (planned.instant,)
    assert services(tmp_path).compact(pending_only=True).instants == ()
    planned = services(tmp_path).schedule_compact()
    hf.write(plain_rows([7, 8], ts=6, text="d"), tmp_path, settings)
    result = services(tmp_path).compact()
    assert len(result.instants) == 2
    assert result.instants[0] == planned.instant
    assert [one.log_files for one in slices(tmp_path)] == [(), ()]


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_slice_that_no_row_is_left_of_becomes_an_empty_base_file(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows([1, 3]), tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})
    result = services(tmp_path).compact(settings)
    assert (result.rows, result.deletes) == (0, 2)
    (stat,) = stats_of(tmp_path)
    assert pq.read_metadata(tmp_path / stat.path).num_rows == 0
    assert sorted(table_rows(tmp_path)) == ["k00000", "k00002"]
    hf.write(plain_rows([1, 5], ts=9, text="n"), tmp_path, settings)
    assert sorted(table_rows(tmp_path)) == ["k00000", "k00001", "k00002", "k00005"]
    assert_tidy(tmp_path)


@pytest.mark.slow(but="6")
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_came_after_the_base_file_are_in_the_compacted_one(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    wider = plain_rows([1], ts=2).append_column("more", pa.array([5], pa.int32()))
    hf.write(wider, tmp_path, settings)
    rows = table_rows(tmp_path)
    services(tmp_path).compact(settings)
    (stat,) = stats_of(tmp_path)
    stored = pq.read_table(tmp_path / stat.path, partitioning=None)
    assert stored.column("more").to_pylist() == [5, None]
    assert table_rows(tmp_path) == rows


@pytest.mark.slow
def test_a_table_without_meta_columns(tmp_path: Path) -> None:
    make(tmp_path, "9", {"hoodie.populate.meta.fields": "false"})
    rows = table_rows(tmp_path)
    services(tmp_path).compact()
    assert [one.log_files for one in slices(tmp_path)] == [(), ()]
    assert table_rows(tmp_path) == rows


def both_texts(older: pa.Table, newer: pa.Table) -> pa.Table:
    texts = zip(older.column("text").to_pylist(), newer.column("text").to_pylist(), strict=True)
    joined = pa.chunked_array([[f"{old}+{new}" for old, new in texts]])
    return newer.set_column(newer.schema.get_field_index("text"), "text", joined)


def test_a_merger_of_the_user_merges(tmp_path: Path) -> None:
    settings = mor_options()
    hf.write(plain_rows(range(4)), tmp_path, settings)
    own = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "a-java-class-of-the-user"}
    update_properties(Storage(tmp_path), own)
    hf.write(plain_rows([1], ts=2, text="b"), tmp_path, {**settings, "hudi_fast.merger": both_texts})
    table = hf.HudiTable.open(tmp_path, merger=both_texts)
    assert rows_of(table.to_arrow())["k00001"] == ("p1", 2, "a1+b1")
    with pytest.raises(hf.UnsupportedFeatureError, match="merger"):
        hf.HudiTable.open(tmp_path).services.schedule_compact()
    assert table.services.compact().updates == 1
    assert rows_of(table.to_arrow(query_type="read_optimized"))["k00001"] == ("p1", 2, "a1+b1")


@pytest.mark.slow(but="6")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_slice_of_logs_alone_gets_its_first_base_file(version: str, tmp_path: Path) -> None:
    # No metadata table: base files are taken away behind its back.
    settings = {**mor_options(table_version=version), "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows([1, 3], ts=2, text="b"), tmp_path, settings)
    hf.write(plain_rows([3]), tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})
    for base in (tmp_path / "p1").glob("*.parquet"):
        base.unlink()
    rows = table_rows(tmp_path)
    assert sorted(rows) == ["k00000", "k00001", "k00002"]
    result = services(tmp_path).compact()
    assert (result.rows, result.inserts, result.updates, result.deletes) == (1, 1, 0, 0)
    (stat,) = stats_of(tmp_path)
    assert (stat.prev_commit, stat.prev_base_file) == ("null", None)
    assert table_rows(tmp_path) == rows
    hf.write(plain_rows([1], ts=5, text="c"), tmp_path, settings)
    assert table_rows(tmp_path)["k00001"] == ("p1", 5, "c1")


# ---- what may go wrong


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_fails_waits_again(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    rows = table_rows(tmp_path)
    planned = services(tmp_path).schedule_compact()
    lost = tmp_path / log_files(tmp_path)[-1].path
    shutil.move(lost, tmp_path / "aside")
    with pytest.raises(hf.CorruptTableError, match="a file of it is missing"):
        services(tmp_path).compact(plan=planned)
    pending = load_state(Storage(tmp_path)).timeline.pending()
    assert [(one.requested, one.action, one.state) for one in pending] == [
        (planned.instant, "compaction", State.REQUESTED)
    ]
    assert [name for name in listing(tmp_path) if f"_{planned.instant}.parquet" in name] == []
    shutil.move(tmp_path / "aside", lost)
    assert services(tmp_path).compact().instants == (planned.instant,)
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_whose_process_died_is_rolled_back_and_done_again(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    planned = services(tmp_path).schedule_compact()
    storage = Storage(tmp_path)
    state = load_state(storage)
    to_inflight(storage, state.config, state.timeline.pending_compactions[0])
    make_marker_folder(storage, planned.instant)
    one = planned.plan.operations[0]
    path = f"{one.partition_path}/{one.file_id}_7-0-0_{planned.instant}.parquet"
    create_marker(storage, planned.instant, path, "MERGE")
    storage.write_bytes(path, b"half a file")
    rows = table_rows(tmp_path)
    change = plain_rows([7], ts=5, text="c")
    hf.write(change, tmp_path, settings)  # writers leave it alone
    assert storage.exists(path)
    result = services(tmp_path).compact(pending_only=True)
    assert result.instants == (planned.instant,)
    assert not storage.exists(path)
    assert table_rows(tmp_path) == {**rows, **rows_of(change)}
    rollbacks = load_state(storage).timeline.of_action("rollback")
    assert [one.state for one in rollbacks] == [State.COMPLETED]
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_compaction_that_another_program_is_carrying_out_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact()
    storage = Storage(tmp_path)
    state = load_state(storage)
    to_inflight(storage, state.config, state.timeline.pending_compactions[0])
    storage.write_bytes(f".hoodie/.heartbeat/{planned.instant}", b"")
    with pytest.raises(hf.CommitConflictError, match="heartbeat"):
        services(tmp_path).compact()
    long_ago = time.time() - 300
    os.utime(tmp_path / ".hoodie" / ".heartbeat" / planned.instant, (long_ago, long_ago))
    assert services(tmp_path).compact().instants == (planned.instant,)


@pytest.mark.slow
def test_two_at_once_compact_once(tmp_path: Path) -> None:
    make(tmp_path, "9")
    services(tmp_path).schedule_compact()
    rows = table_rows(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: services(tmp_path).compact(), range(4)))
    assert sum(len(result.instants) for result in results) == 1
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_writes_and_compactions_at_once_lose_nothing(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")

    def write(number: int) -> dict[str, Any]:
        rows = plain_rows([number, 100 + number], ts=10 + number, text="n")
        hf.write(rows, tmp_path, settings)
        return rows_of(rows)

    rows = table_rows(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        compactions = [pool.submit(services(tmp_path).compact) for _ in range(3)]
        for written in pool.map(write, range(2, 8)):
            rows |= written
        for done in compactions:
            done.result()
    assert table_rows(tmp_path) == rows
    services(tmp_path).compact()
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_plan_that_is_no_longer_pending_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "9")
    planned = services(tmp_path).schedule_compact()
    services(tmp_path).compact(plan=planned)
    with pytest.raises(hf.CommitConflictError, match="completed"):
        services(tmp_path).compact(plan=planned)
    with pytest.raises(hf.CommitConflictError, match="removed from the timeline"):
        services(tmp_path).compact(plan=ScheduledCompaction("20200101000000000", planned.plan))


@pytest.mark.slow("schedule_compact")
@pytest.mark.parametrize("call", ["compact", "schedule_compact"])
def test_an_unknown_strategy_is_refused_before_anything_is_written(call: str, tmp_path: Path) -> None:
    make(tmp_path, "9")
    files = listing(tmp_path)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"com\.example\.Mine"):
        getattr(services(tmp_path), call)({"hoodie.compaction.strategy": "com.example.Mine"})
    assert listing(tmp_path) == files


def test_a_trigger_is_asked_only_when_one_is_given(tmp_path: Path) -> None:
    make(tmp_path, "9")  # three delta commits
    assert services(tmp_path).schedule_compact({"hoodie.compact.inline.max.delta.commits": "4"}) is None
    assert services(tmp_path).compact({"hoodie.compact.inline.max.delta.commits": "4"}).instants == ()
    assert services(tmp_path).schedule_compact({"hoodie.compact.inline.max.delta.commits": "3"}) is not None


@pytest.mark.slow
def test_partitions_that_a_plan_left_out_are_in_the_next_one(tmp_path: Path) -> None:
    make(tmp_path, "9")
    only = {
        "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
        "hoodie.compaction.partition.path.regex": "p1",
    }
    first = services(tmp_path).schedule_compact(only)
    assert [one.partition_path for one in first.plan.operations] == ["p1"]
    assert first.plan.missing_partitions == ("p0",)
    second = services(tmp_path).schedule_compact()
    assert [one.partition_path for one in second.plan.operations] == ["p0"]
    assert services(tmp_path).compact().instants == (first.instant, second.instant)
