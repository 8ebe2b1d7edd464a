"""Delta commits that failed are taken back, and pending compactions are logged beside."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import encode_workload_profile
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_plan,
)
from hudi_fast.timeline.service_plans import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.markers import create_marker, make_marker_folder
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.mor_tables import VERSIONS, blocks_of, log_files, mor_options, newest_commit, stats_of
from tests.support.sessions import rolled_back, write_engine
from tests.support.small_tables import assert_tidy, plain_rows, rows_of, table_rows

LATER = "20300101000000000"


def state_of(path: Path) -> TableState:
    return load_state(Storage(path))


def make(path: Path, version: str) -> dict[str, str]:
    """Ten rows in two partitions; one of p1 is in a log file as well."""
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(10)), path, settings)
    hf.write(plain_rows([1], ts=2), path, settings)
    return settings


class FailingEngine(LocalEngine):
    """Writes everything and then fails."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        super().execute(plan)
        raise ArithmeticError("the engine broke")


def fail(path: Path, settings: dict[str, str], rows: pa.Table) -> None:
    with pytest.raises(ArithmeticError):
        write_engine(FailingEngine(rows), Storage(path), settings, "append")


def rollback_of(path: Path) -> tuple[RollbackPlan, RollbackMetadata]:
    state = state_of(path)
    (rollback,) = state.timeline.of_action("rollback")
    folder = path / state.config.timeline_folder
    plan = decode_rollback_plan((folder / f"{rollback.requested}.rollback.requested").read_bytes())
    return plan, decode_rollback_metadata((folder / str(rollback.file_name)).read_bytes())


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["8", "9"])
def test_log_files_of_a_failed_write_are_deleted(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    before, logs = table_rows(tmp_path), log_files(tmp_path)
    fail(tmp_path, settings, plain_rows([1, 2, 3], ts=9, text="x"))
    assert log_files(tmp_path) == logs
    assert table_rows(tmp_path) == before
    plan, done = rollback_of(tmp_path)
    assert [len(request.files_to_be_deleted) for request in plan.requests] == [1, 1]
    assert {request.file_id for request in plan.requests} == {""}
    assert all(not request.log_blocks_to_be_deleted for request in plan.requests)
    assert [(one.partition_path, len(one.deleted), one.rollback_log_files) for one in done.partitions] == [
        ("p0", 1, {}),
        ("p1", 1, {}),
    ]
    assert_tidy(tmp_path)


def test_before_version_8_a_command_block_takes_a_failed_write_back(tmp_path: Path) -> None:
    settings = make(tmp_path, "6")
    before, logs = table_rows(tmp_path), log_files(tmp_path)
    fail(tmp_path, settings, plain_rows([1, 3], ts=9, text="x"))
    assert table_rows(tmp_path) == before
    kept, failed, answer = log_files(tmp_path)
    assert [kept] == logs
    assert (answer.instant, answer.version, answer.write_token) == (kept.instant, 3, "1-0-1")
    plan, done = rollback_of(tmp_path)
    absolute = str(tmp_path / failed.path)
    assert plan.requests == (
        RollbackRequest("p1", kept.file_id, kept.instant, log_blocks_to_be_deleted={absolute: failed.size}),
    )
    (partition,) = done.partitions
    assert partition.rollback_log_files == {str(tmp_path / answer.path): 105}
    assert partition.log_files_from_failed_commit == {absolute: failed.size}
    assert (partition.deleted, partition.failed) == ((), ())
    command = blocks_of(tmp_path)[-1]
    assert command.kind is BlockType.COMMAND
    assert command.headers == {
        HeaderKey.INSTANT_TIME: done.start_time,
        HeaderKey.TARGET_INSTANT_TIME: plan.instant,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    result = hf.write(plain_rows([3], ts=4, text="y"), tmp_path, settings)
    assert (log_files(tmp_path)[-1].version, result.updates) == (4, 1)
    assert table_rows(tmp_path) == {**before, "k00003": ("p1", 4, "y3")}
    assert_tidy(tmp_path)


def test_before_version_8_files_of_new_groups_are_deleted_all_the_same(tmp_path: Path) -> None:
    settings = make(tmp_path, "6")
    files = {path.name for path in tmp_path.rglob("*.parquet")}
    fail(tmp_path, settings, plain_rows([1, 51, 50], ts=9))
    assert {path.name for path in tmp_path.rglob("*.parquet")} == files
    _, done = rollback_of(tmp_path)
    assert {one.partition_path: (len(one.deleted), len(one.rollback_log_files)) for one in done.partitions} == {
        "p0": (1, 0),
        "p1": (1, 1),
    }
    assert_tidy(tmp_path)


def dead_write(path: Path, version: str, marked: bool) -> Path:
    """A delta commit that died with a log file of rows, as Apache Hudi would leave it."""
    state = state_of(path)
    (slice_,) = latest_slices(state.view, "p1")
    instant = Instant(LATER, "deltacommit", State.REQUESTED)
    create_requested(state.storage, state.config, instant)
    profile = encode_workload_profile({}, {"p1": {slice_.file_id: (slice_.base_instant, 1)}}, "UPSERT", 1)
    to_inflight(state.storage, state.config, instant, profile)
    (last,) = slice_.log_files
    base = last.instant if version == "6" else LATER
    left = f"p1/.{slice_.file_id}_{base}.log.{2 if version == '6' else 1}_7-7-7"
    if marked:
        make_marker_folder(state.storage, LATER)
        create_marker(state.storage, LATER, left, "APPEND" if version == "6" else "CREATE")
    content = (path / last.path).read_bytes().replace(stats_of(path)[0].path.encode(), b"")
    written = newest_commit(path)[0].requested
    (path / left).write_bytes(content.replace(written.encode(), LATER.encode()))
    return path / left


@pytest.mark.slow(but="9-False")
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_delta_commit_that_died_is_undone_from_markers_or_by_listing(
    marked: bool, version: str, tmp_path: Path
) -> None:
    settings = make(tmp_path, version)
    before = table_rows(tmp_path)
    left = dead_write(tmp_path, version, marked)
    assert table_rows(tmp_path) == before
    hf.write(plain_rows([5], ts=2, text="z"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00005": ("p1", 2, "z5")}
    assert left.exists() == (version == "6")
    commands = [block for block in blocks_of(tmp_path) if block.kind is BlockType.COMMAND]
    targets = {block.headers[HeaderKey.TARGET_INSTANT_TIME] for block in commands}
    assert targets == ({LATER} if version == "6" else set())
    assert_tidy(tmp_path)


@pytest.mark.slow(but="0-file://")
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_rollback_of_apache_hudi_that_died_is_finished(state: State, scheme: str, tmp_path: Path) -> None:
    settings = make(tmp_path, "6")
    before = table_rows(tmp_path)
    left = dead_write(tmp_path, "6", True)
    at = state_of(tmp_path)
    (slice_,) = latest_slices(at.view, "p1")
    blocks = {f"{scheme}{left}": left.stat().st_size}
    request = RollbackRequest("p1", slice_.file_id, slice_.base_instant, log_blocks_to_be_deleted=blocks)
    plan = RollbackPlan(LATER, "deltacommit", (request,))
    rollback = Instant("20300101000000999", "rollback", State.REQUESTED)
    create_requested(at.storage, at.config, rollback, encode_rollback_plan(plan))
    if state is State.INFLIGHT:
        to_inflight(at.storage, at.config, rollback)
    hf.write(plain_rows([5], ts=2, text="z"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00005": ("p1", 2, "z5")}
    (partition,) = rollback_of(tmp_path)[1].partitions
    assert partition.log_files_from_failed_commit == blocks
    (command,) = partition.rollback_log_files
    assert command.endswith(f"{slice_.file_id}_{slice_.base_instant}.log.3_1-0-1")
    assert_tidy(tmp_path)


def test_a_rollback_plan_that_leads_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    settings = make(tmp_path / "t", "6")
    dead_write(tmp_path / "t", "6", True)
    at = state_of(tmp_path / "t")
    request = RollbackRequest("../p1", "x", "1", log_blocks_to_be_deleted={"/p1/.x_1.log.1_0-0-0": 1})
    rollback = Instant("20300101000000999", "rollback", State.REQUESTED)
    plan = RollbackPlan(LATER, "deltacommit", (request,))
    create_requested(at.storage, at.config, rollback, encode_rollback_plan(plan))
    with pytest.raises(hf.CorruptTableError, match="leaves the table's base path"):
        hf.write(plain_rows([5]), tmp_path / "t", settings)
    assert not (tmp_path / "p1").exists()


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_update_of_a_table_without_partitions_is_rolled_back(tmp_path: Path, version: str) -> None:
    settings = mor_options(table_version=version, partition=None)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    before = table_rows(tmp_path)
    update = hf.write(plain_rows([1], ts=2, text="z"), tmp_path, settings)
    assert table_rows(tmp_path) != before
    hf.HudiTable.open(tmp_path).services.rollback(update.instant)
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)


class TwiceTriedEngine(LocalEngine):
    """The first attempt of each task wrote its log files and was given up; the second one did it again."""

    first = ""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        self.first = super().execute(plan).stats[0].path
        return super().execute(plan)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_of_lost_attempts_are_gone_when_the_write_is_visible(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    engine = TwiceTriedEngine(plain_rows([1], ts=5, text="t"))
    result = write_engine(engine, Storage(tmp_path), settings, "append")
    assert result.updates == 1
    (stat,) = stats_of(tmp_path)
    assert stat.path != engine.first
    assert not (tmp_path / engine.first).exists()
    assert [log.path for log in log_files(tmp_path)][-1] == stat.path
    assert table_rows(tmp_path)["k00001"] == ("p1", 5, "t1")
    assert_tidy(tmp_path)


# ---- pending compactions


def plan_compaction(path: Path, state: State) -> str:
    """A compaction of p1's slice that nobody has carried out; its instant."""
    at = state_of(path)
    (slice_,) = latest_slices(at.view, "p1")
    names = tuple(log.name for log in slice_.log_files)
    assert slice_.base_file is not None
    operation = CompactionOperation("p1", slice_.file_id, slice_.base_instant, slice_.base_file.name, names)
    time = InstantClock(at.config.timezone, 1).next_time(at.timeline.newest_time)
    instant = Instant(time, "compaction", State.REQUESTED)
    create_requested(at.storage, at.config, instant, encode_compaction_plan(CompactionPlan((operation,))))
    if state is State.INFLIGHT:
        to_inflight(at.storage, at.config, instant)
    return time


@pytest.mark.slow(but="9-1")
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("version", VERSIONS)
def test_writes_log_beside_a_pending_compaction(version: str, state: State, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    before = table_rows(tmp_path)
    old = log_files(tmp_path)
    time = plan_compaction(tmp_path, state)
    instants = []
    for ts in (3, 4):
        instants.append(hf.write(plain_rows([1, 3], ts=ts, text="c"), tmp_path, settings).instant)
    new = [log for log in log_files(tmp_path) if log not in old]
    if version == "6":
        assert [(log.instant, log.version) for log in new] == [(time, 1), (time, 2)]
        assert [(stat.prev_commit, stat.base_file) for stat in stats_of(tmp_path)] == [(time, "")]
        assert stats_of(tmp_path)[0].log_files == (new[0].name, new[1].name)
    else:
        assert [(log.instant, log.version) for log in new] == [(instant, 1) for instant in instants]
        base = {log.headers.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) for log in blocks_of(tmp_path)}
        assert len(base) == 1  # positions are those of the base file that is there
    assert table_rows(tmp_path) == {**before, "k00001": ("p1", 4, "c1"), "k00003": ("p1", 4, "c3")}
    assert [one.requested for one in state_of(tmp_path).timeline.pending_compactions] == [time]


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_group_that_is_to_be_compacted_takes_no_inserts(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(10)), tmp_path, settings)
    plan_compaction(tmp_path, State.REQUESTED)
    hf.write(plain_rows([11, 12]), tmp_path, settings)
    previous = {stat.partition_path: stat.prev_commit for stat in stats_of(tmp_path)}
    assert (previous["p0"] == "null", previous["p1"] == "null") == (False, True)
    assert len(table_rows(tmp_path)) == 12


def test_partitions_that_another_writer_compacts_are_not_deleted(tmp_path: Path) -> None:
    make(tmp_path, "9")
    time = plan_compaction(tmp_path, State.REQUESTED)
    runs_no_compactions = {"hoodie.compact.inline": "false"}
    with pytest.raises(hf.CommitConflictError, match=f"compaction {time}"):
        hf.HudiTable.open(tmp_path).delete_partitions(["p1"], options=runs_no_compactions)
    hf.HudiTable.open(tmp_path).delete_partitions(["p0"], options=runs_no_compactions)
    assert sorted(table_rows(tmp_path)) == [f"k{number:05d}" for number in (1, 3, 5, 7, 9)]


def test_a_writer_that_runs_compactions_does_so_before_it_deletes_their_partitions(tmp_path: Path) -> None:
    make(tmp_path, "9")
    plan_compaction(tmp_path, State.REQUESTED)
    hf.HudiTable.open(tmp_path).delete_partitions(["p1"])
    assert not state_of(tmp_path).timeline.pending()
    assert sorted(table_rows(tmp_path)) == [f"k{number:05d}" for number in (0, 2, 4, 6, 8)]


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_that_is_rolled_back_is_requested_again(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    before = table_rows(tmp_path)
    time = plan_compaction(tmp_path, State.INFLIGHT)
    at = state_of(tmp_path)
    make_marker_folder(at.storage, time)
    left = f"p1/{latest_slices(at.view, 'p1')[0].file_id}_0-0-0_{time}.parquet"
    create_marker(at.storage, time, left, "CREATE")
    (tmp_path / left).write_bytes(b"half a file")
    (failed,) = at.timeline.pending_compactions
    rolled_back(tmp_path, failed)
    after = state_of(tmp_path)
    assert [(one.requested, one.state) for one in after.timeline.pending()] == [(time, State.REQUESTED)]
    assert not (tmp_path / left).exists()
    assert table_rows(tmp_path) == before


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_of_others_stay_when_a_compaction_that_left_no_markers_is_rolled_back(
    version: str, tmp_path: Path
) -> None:
    """Before version 8 these log files are named after the compaction."""
    settings = make(tmp_path, version)
    time = plan_compaction(tmp_path, State.INFLIGHT)
    hf.write(plain_rows([1, 3], ts=3, text="c"), tmp_path, settings)
    hf.write(plain_rows([3, 5], ts=4, text="d"), tmp_path, settings)
    before, logs = table_rows(tmp_path), log_files(tmp_path)
    assert {log.instant == time for log in logs[1:]} == {version == "6"}
    at = state_of(tmp_path)
    left = tmp_path / f"p1/{latest_slices(at.view, 'p1')[0].file_id}_0-0-0_{time}.parquet"
    left.write_bytes(b"half a file")
    (failed,) = at.timeline.pending_compactions
    rolled_back(tmp_path, failed)
    assert not left.exists()
    assert log_files(tmp_path) == logs
    assert table_rows(tmp_path) == before
    change = plain_rows([5, 7], ts=5, text="e")
    assert hf.write(change, tmp_path, settings).updates == 2
    rows = {**before, **rows_of(change)}
    assert table_rows(tmp_path) == rows
    hf.HudiTable.open(tmp_path).services.run_pending(settings)
    assert table_rows(tmp_path) == rows
    assert_tidy(tmp_path)
