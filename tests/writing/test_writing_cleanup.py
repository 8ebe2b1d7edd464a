"""What other writers left on a table: undone, finished, waited for or respected by the next write.

Modules: hudi_fast.writing.transaction.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import (
    RollbackPlan,
    RollbackRequest,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_plan,
)
from hudi_fast.timeline.service_plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
    encode_requested_replace,
)
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.sessions import write_engine
from tests.support.small_tables import OPTIONS, assert_tidy, listing, options, plain_rows, table_rows

NOW = "20300101000000000"


@pytest.fixture(params=["6", "9"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    hf.write(plain_rows(range(10)), tmp_path / "t", options(table_version=request.param))
    return tmp_path / "t"


def state_of(path: Path) -> TableState:
    return load_state(Storage(path))


def begin_by_hand(path: Path, state: State, action: str = "commit", body: bytes = b"") -> None:
    at = state_of(path)
    create_requested(at.storage, at.config, Instant(NOW, action, State.REQUESTED), body)
    if state is State.INFLIGHT:
        to_inflight(at.storage, at.config, Instant(NOW, action, State.REQUESTED))


def leave_file(path: Path, partition: str = "p0") -> Path:
    """A data file of the write under way: a copy of another one."""
    (source,) = (path / partition).glob("*.parquet")
    left = path / partition / f"{source.name.partition('_')[0]}_9-9-9_{NOW}.parquet"
    shutil.copy(source, left)
    return left


def mark(path: Path, left: Path, by_server: bool) -> None:
    folder = path / ".hoodie/.temp" / NOW
    name = f"{left.relative_to(path)}.marker.MERGE"
    if by_server:
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        (folder / "MARKERS0").write_text("")
        (folder / "MARKERS7").write_text(f"{name}\n")
    else:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()


@pytest.mark.slow(but=("6-server", "6-none"))
@pytest.mark.parametrize("form", ["direct", "server", "none"])
def test_a_write_that_died_is_undone_from_markers_or_by_listing(form: str, table: Path) -> None:
    begin_by_hand(table, State.INFLIGHT)
    left = leave_file(table)
    if form != "none":
        mark(table, left, form == "server")
    assert len(table_rows(table)) == 10  # its file is not seen
    hf.write(plain_rows([3], ts=2), table, OPTIONS)
    assert not left.exists()
    assert_tidy(table)
    state = state_of(table)
    (rollback,) = state.timeline.of_action("rollback")
    assert rollback.state is State.COMPLETED
    folder = table / state.config.timeline_folder
    (requested,) = folder.glob(f"{rollback.requested}.rollback.requested")
    plan = decode_rollback_plan(requested.read_bytes())
    assert (plan.instant, plan.action) == (NOW, "commit")
    assert [each.files_to_be_deleted for each in plan.requests] == [(str(left),)]
    done = decode_rollback_metadata((folder / str(rollback.file_name)).read_bytes())
    assert [(each.partition_path, each.deleted) for each in done.partitions] == [("p0", (str(left),))]


@pytest.mark.slow("9")
def test_a_write_that_died_before_it_did_anything_is_undone(table: Path) -> None:
    begin_by_hand(table, State.REQUESTED)
    with pytest.raises(hf.ConfigError, match=f"must be earlier than the first incomplete .*{NOW}"):
        hf.HudiTable.open(table).to_arrow(as_of=NOW)
    hf.write(plain_rows([3], ts=2), table, OPTIONS)
    assert_tidy(table)
    assert hf.HudiTable.open(table).to_arrow(as_of="20310101000000").num_rows == 10


@pytest.mark.slow("6")
def test_several_dead_writes_are_undone(table: Path) -> None:
    begin_by_hand(table, State.INFLIGHT)
    begin_by_hand(table, State.REQUESTED, "replacecommit", encode_requested_replace(RequestedReplace()))
    hf.write(plain_rows([3], ts=2), table, OPTIONS)
    assert_tidy(table)
    assert len(state_of(table).timeline.of_action("rollback")) == 2


@pytest.mark.slow("9-file://-0", "9-file://-1", "9-file:-0", "9--1", "9--0")
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_a_rollback_that_died_is_finished_from_its_plan(state: State, scheme: str, table: Path) -> None:
    begin_by_hand(table, State.INFLIGHT)
    left = leave_file(table)
    plan = RollbackPlan(NOW, "commit", (RollbackRequest("p0", files_to_be_deleted=(f"{scheme}{left}",)),))
    at = state_of(table)
    rollback = Instant("20300101000000999", "rollback", State.REQUESTED)
    create_requested(at.storage, at.config, rollback, encode_rollback_plan(plan))
    if state is State.INFLIGHT:
        to_inflight(at.storage, at.config, rollback)
    hf.write(plain_rows([3], ts=2), table, OPTIONS)
    assert not left.exists()
    assert_tidy(table)
    assert [one.requested for one in state_of(table).timeline.of_action("rollback")] == [rollback.requested]


@pytest.mark.parametrize("victim", ["/etc/hostname", "{table}/../outside"])
def test_a_plan_that_names_files_outside_the_table_is_not_carried_out(victim: str, table: Path) -> None:
    outside = table.parent / "outside"
    outside.write_text("precious")
    begin_by_hand(table, State.INFLIGHT)
    request = RollbackRequest("p0", files_to_be_deleted=(victim.format(table=table),))
    at = state_of(table)
    rollback = Instant("20300101000000999", "rollback", State.REQUESTED)
    create_requested(at.storage, at.config, rollback, encode_rollback_plan(RollbackPlan(NOW, "commit", (request,))))
    with pytest.raises(hf.CorruptTableError, match="outside the table"):
        hf.write(plain_rows([3]), table, OPTIONS)
    assert outside.read_text() == "precious"


def test_a_marker_that_names_files_outside_the_table_is_not_followed(table: Path) -> None:
    outside = table.parent / "outside"
    outside.write_text("precious")
    begin_by_hand(table, State.INFLIGHT)
    folder = table / ".hoodie/.temp" / NOW
    folder.mkdir(parents=True)
    (folder / "MARKERS0").write_text("../outside.marker.CREATE\n")
    with pytest.raises(hf.CorruptTableError, match="outside the table"):
        hf.write(plain_rows([3]), table, OPTIONS)
    assert outside.read_text() == "precious"


@pytest.mark.slow("6")
def test_no_write_begins_while_the_table_is_being_restored(table: Path) -> None:
    begin_by_hand(table, State.REQUESTED, "restore")
    with pytest.raises(hf.CommitConflictError, match="pending restore"):
        hf.write(plain_rows([3]), table, OPTIONS)
    assert len(table_rows(table)) == 10


# ---- clustering


@pytest.fixture
def clustering(table: Path) -> tuple[Path, str]:
    """A planned clustering of the one file group of partition p0; gives the table and the group."""
    (row,) = (row for row in hf.HudiTable.open(table).files().to_pylist() if row["partition"] == "p0")
    group = ClusteringGroup((ClusteringSlice("p0", row["file_id"], str(table / "p0" / row["base_file"])),))
    body = encode_requested_replace(RequestedReplace("CLUSTER", ClusteringPlan((group,))))
    action = "clustering" if state_of(table).config.layout_version == 2 else "replacecommit"
    begin_by_hand(table, State.REQUESTED, action, body)
    return table, row["file_id"]


def pending(path: Path) -> list[str]:
    return [instant.requested for instant in state_of(path).timeline.pending()]


@pytest.mark.slow("6")
def test_a_planned_clustering_stays_and_its_files_are_still_read(clustering: tuple[Path, str]) -> None:
    table, _ = clustering
    assert len(table_rows(table)) == 10
    assert hf.write(plain_rows([1, 3], ts=2), table, OPTIONS).updates == 2  # in another partition
    assert pending(table) == [NOW]
    assert hf.HudiTable.open(table).to_arrow(as_of="2040-01-01").num_rows == 10


@pytest.mark.slow(but="9-delete")
@pytest.mark.parametrize("operation", ["upsert", "delete", "insert_overwrite", "insert_overwrite_table"])
def test_file_groups_that_are_to_be_clustered_are_left_alone(operation: str, clustering: tuple[Path, str]) -> None:
    table, group = clustering
    with pytest.raises(hf.CommitConflictError, match=f"{group}.*pending clustering|pending clustering.*{group}"):
        hf.HudiTable.open(table).write(plain_rows([0]), operation)
    assert pending(table) == [NOW]
    assert len(table_rows(table)) == 10


@pytest.mark.slow("6")
def test_partitions_that_are_to_be_clustered_are_not_deleted(clustering: tuple[Path, str]) -> None:
    table, _ = clustering
    with pytest.raises(hf.CommitConflictError, match="pending clustering"):
        hf.HudiTable.open(table).delete_partitions(["p0"])
    hf.HudiTable.open(table).delete_partitions(["p1"])
    assert len(table_rows(table)) == 5


@pytest.mark.slow("6")
def test_inserts_pass_a_small_file_over_that_is_to_be_clustered(clustering: tuple[Path, str]) -> None:
    table, group = clustering
    result = hf.write(plain_rows([20, 22]), table, OPTIONS)
    assert (result.inserts, result.updates) == (2, 0)
    files = hf.HudiTable.open(table).files().to_pylist()
    rows = {row["file_id"]: row["rows"] for row in files if row["partition"] == "p0"}
    assert rows[group] == 5
    assert sorted(rows.values()) == [2, 5]


@pytest.mark.slow("6")
def test_a_table_of_other_columns_than_the_rows_is_told_apart_from_a_stale_one(table: Path) -> None:
    """Rows are checked before anything that died is cleaned up."""
    begin_by_hand(table, State.INFLIGHT)
    with pytest.raises(hf.SchemaMismatchError):
        hf.write(plain_rows([1]).drop_columns(["text"]), table, OPTIONS)
    assert pending(table) == [NOW]
    assert hf.write(pa.concat_tables([plain_rows([1], ts=2)]), table, OPTIONS).updates == 1
    assert_tidy(table)


# ---- tasks that were tried again


class TwiceTriedEngine(LocalEngine):
    """The first attempt of a task wrote a file and was given up; the second one did it again."""

    lost = ""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        self.lost = f"p0/{'0' * 8}-0000-0000-0000-{'0' * 12}-0_0-0-7_{plan.instant}.parquet"
        create_marker(plan.storage, plan.instant, self.lost, "CREATE")
        plan.storage.write_bytes(self.lost, b"half a file")
        return super().execute(plan)


@pytest.mark.slow("6")
def test_files_of_lost_attempts_are_gone_when_the_write_is_visible(table: Path) -> None:
    engine = TwiceTriedEngine(plain_rows([2], ts=2))
    result = write_engine(engine, Storage(table), OPTIONS, "append")
    assert result.updates == 1
    assert engine.lost
    assert not (table / engine.lost).exists()
    assert_tidy(table)


@pytest.mark.slow("6")
def test_a_task_that_was_left_behind_must_not_write(table: Path) -> None:
    result = hf.write(plain_rows([2], ts=2), table, OPTIONS)
    with pytest.raises(hf.CommitError, match=f"The write {result.instant} .* has already ended"):
        create_marker(Storage(table), result.instant, "p0/x.parquet", "CREATE")
    assert_tidy(table)


class FailingEngine(LocalEngine):
    """Writes everything and then fails."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        super().execute(plan)
        raise ArithmeticError("the engine broke")


@pytest.mark.slow("9")
def test_a_write_whose_engine_fails_is_rolled_back_at_once(table: Path) -> None:
    before = {name for name in listing(table) if not name.startswith(".hoodie/")}
    with pytest.raises(ArithmeticError, match="the engine broke"):
        write_engine(FailingEngine(plain_rows([2, 50])), Storage(table), OPTIONS, "append")
    assert {name for name in listing(table) if not name.startswith(".hoodie/")} == before
    assert_tidy(table)
    assert [one.action for one in state_of(table).timeline.instants] == ["commit", "rollback"]


def test_a_first_write_whose_engine_fails_leaves_no_table(tmp_path: Path) -> None:
    for mode in ("append", "overwrite", "ignore", "errorifexists"):
        with pytest.raises(ArithmeticError):
            write_engine(FailingEngine(plain_rows([2])), Storage(tmp_path / "n"), options(), mode)
        assert list(tmp_path.iterdir()) == []
