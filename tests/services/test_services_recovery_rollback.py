"""Instants that are rolled back by name: what goes, what is refused, what the metadata table says afterwards.

Modules: hudi_fast.services.undoing, hudi_fast.services.rollback, hudi_fast.services.running.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.avro.container import read_single_record
from hudi_fast.index.buckets import HashingMetadata, load_hashing
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, read_instant_body
from hudi_fast.timeline.plans import (
    CleanPlan,
    decode_rollback_metadata,
    encode_clean_plan,
    encode_rollback_plan,
)
from hudi_fast.timeline.service_plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
    encode_requested_replace,
)
from hudi_fast.timeline.transition import create_requested, revert_to_inflight, to_inflight
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.markers import create_marker, make_marker_folder
from hudi_fast.writing.rollback_plan import plan_rollback
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.golden import Golden
from tests.support.instrumented_storage import RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import VERSIONS, log_files
from tests.support.rollback_tables import COW, KINDS, MOR, instants_of, services, services_on, settings_of, state_of
from tests.support.sessions import write_engine
from tests.support.small_tables import assert_tidy, listing, plain_rows, table_rows

LATER = "20990101000000000"


def make(path: Path, kind: str, version: str, indexes: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Eight rows, two of them changed; the settings and the two commits."""
    settings = settings_of(kind, version, indexes)
    first = hf.write(plain_rows(range(8)), path, settings).instant
    return settings, [first, hf.write(plain_rows([2, 3], ts=2, text="b"), path, settings).instant]


# ---- the newest commit


@pytest.mark.slow(but="MERGE_ON_READ-9")
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_the_newest_commit_is_undone_with_all_that_its_indexes_say(kind: str, version: str, tmp_path: Path) -> None:
    settings, _ = make(tmp_path, kind, version, indexes=True)
    before, indexes = table_rows(tmp_path), assert_metadata_true(tmp_path)
    assert "record_index" in indexes
    newest = hf.write(plain_rows([1, 3, 20, 21], ts=3, text="c"), tmp_path, settings).instant
    planned = services(tmp_path).plan_rollback(newest)
    assert planned.rebuilt == ()
    result = services(tmp_path).rollback(newest, plan=planned)
    assert result.rolled_back == (newest,)
    assert result.files_deleted + result.log_files_answered == planned.to_arrow().num_rows
    assert (result.log_files_answered > 0) == (kind == MOR and version == "6")
    assert [one.requested for one in instants_of(tmp_path, "rollback")] == [result.instant]
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    assert assert_metadata_true(tmp_path) == indexes
    written = hf.write(plain_rows([1, 20], ts=4, text="d"), tmp_path, settings)
    assert (written.updates, written.inserts) == (1, 1)
    assert table_rows(tmp_path) == {**before, "k00001": ("p1", 4, "d1"), "k00020": ("p0", 4, "d20")}
    assert assert_metadata_true(tmp_path) == indexes


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_commits_are_undone_one_after_the_other_down_to_an_empty_table(kind: str, version: str, tmp_path: Path) -> None:
    settings, commits = make(tmp_path, kind, version, indexes=True)
    overwrite = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    rows = [{}, table_rows(tmp_path)]
    commits.append(hf.write(plain_rows([30, 31], ts=5), tmp_path, overwrite).instant)
    services(tmp_path).rollback(commits.pop())
    assert table_rows(tmp_path) == rows.pop()
    services(tmp_path).rollback(commits.pop())
    assert table_rows(tmp_path) == {f"k{one:05d}": (f"p{one % 2}", 1, f"a{one}") for one in range(8)}
    services(tmp_path).rollback(commits.pop())
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 0
    assert_tidy(tmp_path)
    hf.write(plain_rows([1, 2], ts=6), tmp_path, settings)
    assert sorted(table_rows(tmp_path)) == ["k00001", "k00002"]
    assert "record_index" in assert_metadata_true(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_is_undone_and_the_log_files_count_again(version: str, tmp_path: Path) -> None:
    settings, _ = make(tmp_path, MOR, version, indexes=True)
    before = table_rows(tmp_path)
    compaction = services(tmp_path).compact(settings).instant
    result = services(tmp_path).rollback(compaction)
    assert result.rolled_back == (compaction,)
    assert state_of(tmp_path).timeline.find(compaction) is None
    assert table_rows(tmp_path) == before
    assert_metadata_true(tmp_path)
    assert services(tmp_path).compact(settings).file_groups == 2
    assert table_rows(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (COW, "6"), (MOR, "8")])
def test_a_clustering_is_undone_and_the_file_groups_that_it_ended_count_again(
    kind: str, version: str, tmp_path: Path
) -> None:
    settings, _ = make(tmp_path, kind, version, indexes=True)
    before, indexes = table_rows(tmp_path), assert_metadata_true(tmp_path)
    options = {**settings, "hoodie.clustering.plan.strategy.sort.columns": "id"}
    clustering = services(tmp_path).cluster(options).instant
    assert clustering
    services(tmp_path).rollback(clustering)
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    assert assert_metadata_true(tmp_path) == indexes
    hf.write(plain_rows([3], ts=4, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00003": ("p1", 4, "d3")}
    assert services(tmp_path).cluster(options).instant


@pytest.mark.slow("restore")
@pytest.mark.parametrize("verb", ["rollback", "restore"])
def test_buckets_that_were_split_are_as_before(verb: str, tmp_path: Path) -> None:
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.max.num.buckets": "16",
    }
    settings = {**settings_of(MOR, "9", indexes=False), **buckets}
    hf.write(plain_rows(range(40)), tmp_path, settings)
    saved = services(tmp_path).savepoint().instant
    before, ranges = table_rows(tmp_path), _ranges(tmp_path)
    split = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.merge.threshold": "0"}
    clustering = services(tmp_path).cluster({**settings, **split}).instant
    assert _ranges(tmp_path) != ranges
    getattr(services(tmp_path), verb)(clustering if verb == "rollback" else saved)
    assert (_ranges(tmp_path), table_rows(tmp_path)) == (ranges, before)
    assert_tidy(tmp_path)
    hf.write(plain_rows([3, 50], ts=4, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00003": ("p1", 4, "d3"), "k00050": ("p0", 4, "d50")}


def _ranges(path: Path) -> list[HashingMetadata | None]:
    state = state_of(path)
    return [load_hashing(state.storage, state.timeline, partition) for partition in ("p0", "p1")]


class FailingEngine(LocalEngine):
    """Writes everything and then fails."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        super().execute(plan)
        raise ArithmeticError("the engine broke")


def fail(path: Path, settings: dict[str, Any], rows: pa.Table) -> None:
    with pytest.raises(ArithmeticError):
        write_engine(FailingEngine(rows), Storage(path), settings, "append")


@pytest.mark.slow
def test_before_version_8_log_files_that_failed_writes_left_on_a_compaction_go_with_it(tmp_path: Path) -> None:
    settings, _ = make(tmp_path, MOR, "6", indexes=True)
    before = table_rows(tmp_path)
    compaction = services(tmp_path).compact(settings).instant
    fail(tmp_path, settings, plain_rows([3], ts=9))
    assert compaction in {log.instant for log in log_files(tmp_path)}
    services(tmp_path).rollback(compaction)
    assert compaction not in {log.instant for log in log_files(tmp_path)}
    assert table_rows(tmp_path) == before
    assert_metadata_true(tmp_path)
    hf.write(plain_rows([3], ts=4, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00003": ("p1", 4, "d3")}


# ---- what the metadata table cannot take back


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (MOR, "9"), (MOR, "6")])
def test_an_index_that_was_built_since_is_built_anew(kind: str, version: str, tmp_path: Path) -> None:
    settings = {**settings_of(kind, version), "hoodie.metadata.global.record.level.index.enable": "false"}
    hf.write(plain_rows(range(8)), tmp_path, settings)
    before = table_rows(tmp_path)
    newest = hf.write(plain_rows([1, 3, 20], ts=2, text="b"), tmp_path, settings).instant
    services(tmp_path).index("record_index")
    indexes = assert_metadata_true(tmp_path)
    planned = services(tmp_path).plan_rollback(newest)
    assert planned.rebuilt == ("record_index",)
    services(tmp_path).rollback(newest, plan=planned)
    assert table_rows(tmp_path) == before
    assert assert_metadata_true(tmp_path) == indexes


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_a_metadata_table_that_was_compacted_since_is_built_anew(kind: str, version: str, tmp_path: Path) -> None:
    settings = {**settings_of(kind, version), "hoodie.metadata.compact.max.delta.commits": "1"}
    hf.write(plain_rows(range(8)), tmp_path, settings)
    before = table_rows(tmp_path)
    newest = hf.write(plain_rows([1, 3, 20], ts=2, text="b"), tmp_path, settings).instant
    indexes = assert_metadata_true(tmp_path)
    assert services(tmp_path).plan_rollback(newest).rebuilt == indexes
    services(tmp_path).rollback(newest)
    assert table_rows(tmp_path) == before
    assert assert_metadata_true(tmp_path) == indexes


def test_without_a_metadata_table_wanted_it_is_gone_and_not_built(tmp_path: Path) -> None:
    settings = {**settings_of(COW, "9"), "hoodie.metadata.compact.max.delta.commits": "1"}
    hf.write(plain_rows(range(8)), tmp_path, settings)
    newest = hf.write(plain_rows([1]), tmp_path, settings).instant
    services(tmp_path).rollback(newest, {"hoodie.metadata.enable": "false"})
    assert assert_metadata_true(tmp_path) == ()
    assert len(table_rows(tmp_path)) == 8


# ---- failed writes


def dead_write(path: Path, marked: bool = True) -> str:
    """A write that died with a file of rows in p0."""
    state = state_of(path)
    action = "deltacommit" if state.config.is_mor else "commit"
    instant = Instant(LATER, action, State.REQUESTED)
    create_requested(state.storage, state.config, instant)
    to_inflight(state.storage, state.config, instant)
    source = sorted(path.glob("p0/*.parquet"))[0]
    left = f"p0/{source.name.partition('_')[0]}_9-9-9_{LATER}.parquet"
    if marked:
        make_marker_folder(state.storage, LATER)
        create_marker(state.storage, LATER, left, "CREATE")
    (path / left).write_bytes(source.read_bytes())
    return left


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_a_write_that_died_is_undone(kind: str, version: str, named: bool, tmp_path: Path) -> None:
    make(tmp_path, kind, version)
    before = table_rows(tmp_path)
    left = dead_write(tmp_path)
    planned = services(tmp_path).plan_rollback(LATER if named else None)
    (file,) = planned.to_arrow().to_pylist()
    assert (file["partition"], file["file"], file["what"]) == ("p0", left.rpartition("/")[2], "delete")
    assert file["bytes"] == (tmp_path / left).stat().st_size
    result = services(tmp_path).rollback(LATER if named else None, plan=planned)
    assert (result.rolled_back, result.files_deleted, result.files_failed) == ((LATER,), 1, 0)
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    assert services(tmp_path).rollback().rolled_back == ()


@pytest.mark.slow
def test_a_rollback_of_a_completed_commit_that_died_is_finished_by_whoever_comes_next(tmp_path: Path) -> None:
    for state_then, finish in ((State.REQUESTED, "write"), (State.INFLIGHT, "rollback"), (State.INFLIGHT, "named")):
        path = tmp_path / f"{state_then.name}-{finish}"
        settings, commits = make(path, COW, "9", indexes=True)
        at = state_of(path)
        instant = at.timeline.find(commits[1])
        assert instant is not None
        planned = services(path).plan_rollback(commits[1])
        files = tuple(str(path / one.partition / one.file) for one in planned.files)
        plan = plan_rollback(at.storage, at.config, instant)
        assert sorted(name for one in plan.requests for name in one.files_to_be_deleted) == sorted(files)
        rollback = Instant(LATER, "rollback", State.REQUESTED)
        create_requested(at.storage, at.config, rollback, encode_rollback_plan(plan))
        if state_then is State.INFLIGHT:
            to_inflight(at.storage, at.config, rollback)
            revert_to_inflight(at.storage, at.config, instant)
        if finish == "write":
            hf.write(plain_rows([5], ts=1, text="a"), path, settings)
        else:
            result = services(path).rollback(commits[1] if finish == "named" else None)
            assert result.rolled_back == (commits[1],)
        assert table_rows(path) == {f"k{one:05d}": (f"p{one % 2}", 1, f"a{one}") for one in range(8)}
        assert_tidy(path)
        assert_metadata_true(path)


# ---- planned services


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_was_begun_waits_again_and_one_that_was_not_goes(version: str, tmp_path: Path) -> None:
    settings, _ = make(tmp_path, MOR, version)
    before = table_rows(tmp_path)
    planned = services(tmp_path).schedule_compact()
    assert planned is not None
    at = state_of(tmp_path)
    to_inflight(at.storage, at.config, at.timeline.pending_compactions[0])
    assert services(tmp_path).rollback(planned.instant).rolled_back == (planned.instant,)
    assert [one.state for one in state_of(tmp_path).timeline.pending_compactions] == [State.REQUESTED]
    assert services(tmp_path).rollback(planned.instant).rolled_back == (planned.instant,)
    assert state_of(tmp_path).timeline.pending() == ()
    hf.write(plain_rows([3], ts=4, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00003": ("p1", 4, "d3")}


def test_before_version_8_a_compaction_that_was_logged_on_top_of_stays(tmp_path: Path) -> None:
    settings, _ = make(tmp_path, MOR, "6")
    planned = services(tmp_path).schedule_compact()
    assert planned is not None
    hf.write(plain_rows([3], ts=4, text="d"), tmp_path, settings)
    before = listing(tmp_path)
    with pytest.raises(hf.ConfigError, match=r"have logged to slices that begin at it .*Execute it"):
        services(tmp_path).rollback(planned.instant)
    assert listing(tmp_path) == before
    services(tmp_path).compact(pending_only=True)
    assert table_rows(tmp_path)["k00003"] == ("p1", 4, "d3")


def plan_clustering(path: Path, begun: bool) -> str:
    at = state_of(path)
    (base,) = sorted(path.glob("p0/*.parquet"))[-1:]
    part = ClusteringSlice("p0", base.name.partition("_")[0], str(base))
    body = encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan((ClusteringGroup((part,)),))))
    action = "clustering" if at.config.layout_version > 1 else "replacecommit"
    instant = Instant(LATER, action, State.REQUESTED)
    create_requested(at.storage, at.config, instant, body)
    if begun:
        to_inflight(at.storage, at.config, instant)
    return LATER


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_clustering_goes_with_its_plan(version: str, begun: bool, tmp_path: Path) -> None:
    settings, _ = make(tmp_path, COW, version)
    instant = plan_clustering(tmp_path, begun)
    assert services(tmp_path).rollback(instant).rolled_back == (instant,)
    assert state_of(tmp_path).timeline.pending() == ()
    hf.write(plain_rows([0], ts=4, text="d"), tmp_path, settings)
    assert table_rows(tmp_path)["k00000"] == ("p0", 4, "d0")


@pytest.mark.parametrize("version", ["9", "6"])
def test_an_indexing_goes_with_what_it_has_built(version: str, tmp_path: Path) -> None:
    settings = {**settings_of(COW, version), "hoodie.metadata.global.record.level.index.enable": "false"}
    hf.write(plain_rows(range(8)), tmp_path, settings)
    planned = services(tmp_path).schedule_index("record_index")
    assert planned is not None
    assert services(tmp_path).rollback(planned.instant).rolled_back == (planned.instant,)
    assert state_of(tmp_path).timeline.pending() == ()
    assert "record_index" not in assert_metadata_true(tmp_path)


def test_a_clean_can_be_called_off_until_it_has_begun(tmp_path: Path) -> None:
    make(tmp_path, COW, "9")
    at = state_of(tmp_path)
    clean = Instant(LATER, "clean", State.REQUESTED)
    create_requested(at.storage, at.config, clean, encode_clean_plan(CleanPlan("KEEP_LATEST_COMMITS")))
    assert services(tmp_path).rollback(LATER).rolled_back == (LATER,)
    create_requested(at.storage, at.config, clean, encode_clean_plan(CleanPlan("KEEP_LATEST_COMMITS")))
    to_inflight(at.storage, at.config, clean)
    with pytest.raises(hf.ConfigError, match="begun to delete files"):
        services(tmp_path).rollback(LATER)


# ---- refused


def refused(path: Path, instant: str, because: str) -> None:
    before = listing(path)
    for verb in ("plan_rollback", "rollback"):
        with pytest.raises(hf.ConfigError, match=because):
            getattr(services(path), verb)(instant)
    assert listing(path) == before


def test_what_something_rests_on_is_not_undone(tmp_path: Path) -> None:
    settings, commits = make(tmp_path, MOR, "9")
    refused(tmp_path, "20200101000000000", "not on the active timeline, which begins at")
    refused(tmp_path, commits[0], f"1 complete after it .deltacommit {commits[1]}.*newest first")
    services(tmp_path).savepoint(commits[1])
    refused(tmp_path, commits[1], "it is savepointed.*delete_savepoint")
    services(tmp_path).delete_savepoint(commits[1])
    planned = services(tmp_path).schedule_compact()
    assert planned is not None
    refused(tmp_path, commits[1], f"the pending compaction {planned.instant} was planned with its files")
    services(tmp_path).compact(settings)
    refused(tmp_path, commits[1], f"1 complete after it .commit {planned.instant}")


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_commit_whose_predecessor_was_cleaned_is_not_undone(carried_out: bool, tmp_path: Path) -> None:
    settings, commits = make(tmp_path, COW, "9")
    keep_one = {**settings, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
    keep_one["hoodie.clean.fileversions.retained"] = "1"
    if carried_out:
        assert services(tmp_path).clean(keep_one).files_deleted == 2
        refused(tmp_path, commits[1], "deleted what there was before it .*parquet")
    else:
        planned = services(tmp_path).schedule_clean(keep_one)
        assert planned is not None
        refused(tmp_path, commits[1], "is going to delete what there was before it .*parquet")
        services(tmp_path).rollback(planned.instant)
        services(tmp_path).rollback(commits[1])


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_the_last_commit_that_was_not_archived_is_not_undone(version: str, tmp_path: Path) -> None:
    """What is archived is known for complete by being older than the timeline's first write."""
    settings, commits = make(tmp_path, COW, version)
    soon = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.commits.archival.batch": 1}
    for ts in range(3, 8):
        commits.append(hf.write(plain_rows([ts], ts=ts), tmp_path, settings).instant)
    assert services(tmp_path).archive({**settings, **soon}).instants
    services(tmp_path).rollback(commits[-1])
    before = table_rows(tmp_path)
    refused(tmp_path, commits[-2], "the last one on the active timeline, and older ones are archived")
    assert table_rows(tmp_path) == before
    assert len(before) == 8


def test_instants_of_other_actions_are_not_undone(tmp_path: Path) -> None:
    _, commits = make(tmp_path, COW, "9")
    rollback = services(tmp_path).rollback(commits[1]).instant
    refused(tmp_path, rollback, "it is a rollback")
    at = state_of(tmp_path)
    create_requested(at.storage, at.config, Instant(LATER, "restore", State.REQUESTED))
    with pytest.raises(hf.CommitConflictError, match="pending restore"):
        services(tmp_path).rollback(commits[0])


def test_a_plan_that_no_longer_fits_is_not_carried_out(tmp_path: Path) -> None:
    settings, commits = make(tmp_path, COW, "9")
    planned = services(tmp_path).plan_rollback(commits[1])
    hf.write(plain_rows([0], ts=4), tmp_path, settings)
    with pytest.raises(hf.ConfigError, match="complete after it"):
        services(tmp_path).rollback(plan=planned)
    failed = services(tmp_path).plan_rollback()
    assert failed.instants == ()
    dead_write(tmp_path)
    before = listing(tmp_path)
    with pytest.raises(hf.CommitConflictError, match=f"no longer fits .*{LATER}"):
        services(tmp_path).rollback(plan=failed)
    assert listing(tmp_path) == before


# ---- how much it costs


def calls_of(path: Path, instant: str | None) -> int:
    recorder = RecordingStorage(path)
    assert services_on(recorder).rollback(instant).rolled_back
    return len(recorder.calls)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [(COW, "9"), (MOR, "6")])
def test_the_cost_is_that_of_the_write_and_not_of_the_table(kind: str, version: str, tmp_path: Path) -> None:
    found = []
    for partitions in (3, 60):
        path = tmp_path / str(partitions)
        settings = {**settings_of(kind, version, indexes=False), "hoodie.metadata.enable": "true"}
        settings |= {"hoodie.metadata.index.column.stats.enable": "false"}
        hf.write(plain_rows(range(partitions), partitions=partitions), path, settings)
        newest = hf.write(plain_rows([0, 1], ts=2, partitions=partitions), path, settings).instant
        completed = calls_of(path, newest)
        dead_write(path)
        by_markers = calls_of(path, None)
        at = state_of(path)
        create_requested(at.storage, at.config, Instant(LATER, "commit", State.REQUESTED))
        found.append((completed, by_markers, calls_of(path, LATER)))
    assert found[0] == found[1]


# ---- as Apache Hudi writes it


def form_of(record: Any) -> Any:
    """The members of a record and their types, without what is in them."""
    if isinstance(record, dict):
        named = all(isinstance(name, str) and name.isidentifier() for name in record)
        members = {name if named else "*": form_of(value) for name, value in record.items()}
        return members or {}
    if isinstance(record, list):
        return [form_of(record[0])] if record else []
    return type(record).__name__


def test_bodies_are_those_of_apache_hudi(golden: Callable[[str], Golden]) -> None:
    path = golden("cow_v9_savepoint_rollback").table
    at = state_of(path)
    (theirs,) = at.timeline.of_action("rollback")
    newest = at.timeline.writes()[-1]
    result = services(path).rollback(newest.requested)
    ours = state_of(path).timeline.find(result.instant, "rollback")
    assert ours is not None
    for inner in ("", ".hoodie/metadata"):
        storage = Storage(path / inner)
        for kind in (State.REQUESTED, State.COMPLETED):
            one, other = (_body(storage, each.requested, kind) for each in (theirs, ours))
            assert form_of(one) == form_of(other)
            assert json.dumps(one).count("parquet") == json.dumps(other).count("parquet")
    done = decode_rollback_metadata(read_instant_body(at.storage, at.config, ours))
    assert (done.instant, done.action, done.start_time) == (newest.requested, "commit", result.instant)


def _body(storage: Storage, instant: str, kind: State) -> Any:
    names = [entry.name for entry in storage.list_dir(".hoodie/timeline") if entry.name.startswith(instant)]
    ending = ".rollback.requested" if kind is State.REQUESTED else ".rollback"
    (name,) = [one for one in names if one.endswith(ending)]
    return read_single_record(storage.read_bytes(f".hoodie/timeline/{name}"))


GOLDENS = ["cow_v6_mixed", "cow_v9_clustered", "cow_v9_overwrites", "h015_mor", "mor_v6_compacted", "mor_v9_compacted"]


@pytest.mark.slow("mor_v6_compacted", "mor_v9_compacted")
@pytest.mark.parametrize("name", GOLDENS)
def test_tables_of_apache_hudi_go_back_commit_by_commit(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    writes = [one.requested for one in state_of(path).timeline.writes()]
    for before, newest in list(itertools.pairwise(writes))[:-4:-1]:
        rows = _rows(path, as_of=before)
        services(path).rollback(newest)
        assert _rows(path) == rows
        assert_metadata_true(path)


def _rows(path: Path, as_of: str | None = None) -> list[str]:
    return sorted(map(repr, hf.HudiTable.open(path).to_arrow(as_of=as_of).to_pylist()))
