"""How cleans run: when they are due, where they look, what they do about files that cannot be deleted.

Modules: hudi_fast.services.clean_plan, hudi_fast.services.clean.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.services.clean import clean_after_write, clean_before_write
from hudi_fast.services.retention import CleanResult
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import CleanMetadata, CleanPartition, encode_clean_metadata
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.listing import PARTITION_MARKERS, StorageLister
from hudi_fast.view.slices import latest_slices, past_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.services.clean_tables import COMMITS, VERSIONS, clean_metadata, data_files, services, write_times, writes
from tests.support.golden import Golden
from tests.support.instrumented_storage import RecordingStorage
from tests.support.metadata_checks import assert_metadata_true
from tests.support.sessions import session_of, write_engine
from tests.support.small_tables import plain_rows, table_rows

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
HISTORY = ".hoodie/timeline/history"
SEVERAL_WRITERS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


class StuckStorage(RecordingStorage):
    """Cannot delete files whose path holds ``stuck``."""

    stuck = ""

    def delete_file(self, path: str, durable: bool = False) -> bool:
        if self.stuck and self.stuck in path:
            raise PermissionError(f"{path} cannot be deleted")
        return super().delete_file(path, durable)


def after_write(storage: Storage, options: dict[str, Any]) -> CleanResult | None:
    return clean_after_write(session_of(storage, options))


def bodies_read(storage: RecordingStorage) -> list[str]:
    return [
        call.path for call in storage.calls if call.name in ("read_bytes", "open_input") and "timeline" in call.path
    ]


# ---- when


def test_a_write_that_has_nothing_to_clean_asks_storage_nothing(tmp_path: Path) -> None:
    settings = {**writes(), "hoodie.clean.automatic": "true"}
    write_times(tmp_path, 3, {**settings, "hoodie.clean.automatic": "false"})
    storage = RecordingStorage(tmp_path)
    session = session_of(storage, {**settings, COMMITS: "3"})
    assert len(session.timeline.writes()) == 3  # a write has the state
    storage.calls.clear()
    assert clean_after_write(session) is None
    assert storage.calls == []
    assert after_write(Storage(tmp_path), {**settings, COMMITS: "1"}) is not None
    assert after_write(Storage(tmp_path), {**settings, COMMITS: "1"}) is None


def test_a_write_cleans_by_default_once_ten_commits_are_there(tmp_path: Path) -> None:
    settings = writes(metadata=False)
    del settings["hoodie.clean.automatic"]
    write_times(tmp_path, 11, settings, keys=range(1))
    assert not list(tmp_path.glob(".hoodie/timeline/*.clean"))
    write_times(tmp_path, 1, settings, first=12, keys=range(1))
    assert len(list(tmp_path.glob(".hoodie/timeline/*.clean"))) == 1
    assert len(data_files(tmp_path)["p0"]) == 11


@pytest.mark.slow("policy1")
@pytest.mark.parametrize("policy", [{COMMITS: "1"}, {VERSIONS: "1"}])
def test_the_trigger_counts_commits_since_the_last_clean(policy: dict[str, str], tmp_path: Path) -> None:
    settings = {**writes(metadata=False), **policy, "hoodie.clean.max.commits": "3"}
    write_times(tmp_path, 2, settings)
    assert services(tmp_path).clean(settings).instant == ""
    write_times(tmp_path, 1, settings, first=3)
    assert services(tmp_path).clean(settings).files_deleted > 0
    write_times(tmp_path, 2, settings, first=4)
    assert services(tmp_path).schedule_clean(settings) is None
    assert services(tmp_path).schedule_clean({**writes(metadata=False), **policy}) is not None


def test_a_clean_of_somebody_else_is_left_alone_after_a_write(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1", "hoodie.clean.automatic": "true"}
    write_times(tmp_path, 3, writes())
    storage = Storage(tmp_path)
    with machine_lock(storage, 0, service_lock_path("clean")):
        assert after_write(storage, settings) is None
    planned = services(tmp_path).schedule_clean(settings)
    assert planned is not None
    to_inflight(storage, load_state(storage).config, Instant(planned.instant, "clean", State.REQUESTED))
    storage.write_bytes(heartbeat_path(planned.instant), b"")  # as Apache Hudi leaves it
    with pytest.raises(hf.ServiceTakenError, match="heartbeat"):
        services(tmp_path).clean(settings)
    storage.delete_file(heartbeat_path(planned.instant))
    assert services(tmp_path).clean(settings).instants == (planned.instant,)


def test_a_write_may_ask_for_a_clean_or_a_rollback_before_it(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}

    def before(policy: str) -> CleanResult | None:
        return clean_before_write(session_of(tmp_path / "t", {**settings, "hoodie.prewrite.cleaner.policy": policy}))

    assert before("CLEAN") is None  # there is no table yet
    write_times(tmp_path / "t", 3, settings)
    assert before("NONE") is None
    done = before("clean")
    assert done is not None
    assert done.files_deleted == 2
    storage = Storage(tmp_path / "t")
    dead = create_requested(
        storage, load_state(storage).config, Instant("20300101000000000", "commit", State.REQUESTED)
    )
    assert before("ROLLBACK_FAILED_WRITES") is None
    assert load_state(storage).timeline.find(dead.requested, "commit") is None


def test_hours_are_those_of_the_clock(golden: Callable[[str], Golden]) -> None:
    table = golden("cow_v9_archived")
    hours = {"hoodie.clean.hours.retained": "1", "hoodie.clean.automatic": "false"}
    assert services(table.table).clean(hours).instant == ""  # nothing was written in the last hour
    opened = hf.HudiTable.open(table.table)
    old, rows = opened.history()["instant"].to_pylist(), opened.to_arrow()
    data = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    new = hf.write(data, table.table, {**table.expected["options"], **QUIET}).instant
    done = services(table.table).clean(hours)
    assert done.earliest_retained == new
    assert done.files_deleted > 0
    assert max(old) < new
    assert len(opened.to_arrow()) == len(rows)
    assert_metadata_true(table.table)


def test_retaining_more_than_before_brings_nothing_back_and_says_so(tmp_path: Path) -> None:
    settings = writes()
    times = write_times(tmp_path, 5, settings)
    assert services(tmp_path).clean({**settings, COMMITS: "1"}).earliest_retained == times[-1]
    times += write_times(tmp_path, 1, settings, first=6)
    assert services(tmp_path).clean({**settings, COMMITS: "4"}).instant == ""
    with pytest.raises(hf.ConfigError, match="Cleaner cleaned up"):
        hf.HudiTable.open(tmp_path).to_arrow(as_of=times[-3])


# ---- where


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_table_without_partitions_is_one_partition_that_stays(version: str, tmp_path: Path) -> None:
    settings = {**writes(version, partition=None), COMMITS: "1"}
    rows = plain_rows(range(3)).drop_columns(["part"])
    for _ in range(3):
        hf.write(rows, tmp_path, settings)
    everything = {**settings, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    hf.write(rows.slice(0, 1), tmp_path, everything)
    hf.write(rows.slice(0, 1), tmp_path, settings)
    done = services(tmp_path).clean(settings)
    assert (done.files_deleted, done.partitions_deleted) == (3, ())
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 1
    assert_metadata_true(tmp_path)


def test_only_partitions_written_since_the_last_clean_are_listed(tmp_path: Path) -> None:
    settings = {**writes(metadata=False), COMMITS: "1"}
    write_times(tmp_path, 3, settings)
    assert services(tmp_path).clean(settings).files_deleted == 2  # nothing was archived: the timeline tells all
    hf.write(plain_rows([1], ts=4), tmp_path, settings)
    assert services(tmp_path).clean(settings).files_deleted == 2
    for ts in (5, 6):
        hf.write(plain_rows([1], ts=ts), tmp_path, settings)
    storage = RecordingStorage(tmp_path)
    planned = services(storage).schedule_clean(settings)
    assert planned is not None
    assert list(planned.plan.files) == ["p1"]
    assert {call.path for call in storage.calls if call.name == "list_dir"} == {
        ".hoodie/timeline",
        ".hoodie/.schema",
        "p1",
    }
    whole = services(tmp_path).schedule_clean({**settings, "hoodie.cleaner.incremental.mode": "false"})
    assert whole == planned


def test_commits_that_only_add_file_groups_lead_nowhere(tmp_path: Path) -> None:
    settings = {**writes(metadata=False), COMMITS: "1", "hoodie.parquet.small.file.limit": "0"}
    for number in range(4):
        hf.write(plain_rows([number]), tmp_path, {**settings, "hoodie.datasource.write.operation": "insert"})
    storage = RecordingStorage(tmp_path)
    assert services(storage).schedule_clean(settings) is None
    assert {call.path for call in storage.calls if call.name == "list_dir"} <= {
        ".hoodie/timeline",
        ".hoodie/.schema",
        HISTORY,
    }


def test_an_empty_clean_moves_on_where_the_next_one_begins(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1", "hoodie.parquet.small.file.limit": "0"}
    empty = {**settings, "hoodie.write.empty.clean.interval.hours": "1"}
    insert = {**settings, "hoodie.datasource.write.operation": "insert"}
    times = [hf.write(plain_rows([number]), tmp_path, insert).instant for number in range(4)]
    done = services(tmp_path).clean(empty)
    assert (done.files_deleted, done.earliest_retained) == (0, times[-1])
    assert services(tmp_path).clean(empty).instant == ""  # nothing to move on to
    hf.write(plain_rows([9]), tmp_path, insert)
    once_a_day = {**settings, "hoodie.write.empty.clean.interval.hours": "24"}
    assert services(tmp_path).clean(once_a_day).instant == ""
    assert_metadata_true(tmp_path)


@pytest.mark.slow("only0")
@pytest.mark.parametrize(
    "only", [{"hoodie.clean.partition.filter.regex": "p1"}, {"hoodie.clean.partition.filter.selected": "p1, p7"}]
)
def test_partitions_that_are_filtered_out_are_not_forgotten(only: dict[str, str], tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    times = write_times(tmp_path, 4, settings)
    some = services(tmp_path).clean({**settings, **only, "hoodie.clean.incremental.enabled": "false"})
    assert some.files_deleted == 2
    assert data_files(tmp_path) == {"p0": times, "p1": times[2:]}
    assert services(tmp_path).clean(settings).files_deleted == 2
    assert data_files(tmp_path) == {"p0": times[2:], "p1": times[2:]}
    with pytest.raises(hf.ConfigError, match="incremental"):
        services(tmp_path).schedule_clean({**settings, **only})


def test_archived_history_means_that_all_partitions_are_listed(tmp_path: Path) -> None:
    settings = {**writes(metadata=False), COMMITS: "1"}
    times = write_times(tmp_path, 4, settings)
    (tmp_path / HISTORY).mkdir(exist_ok=True)
    (tmp_path / HISTORY / "_version_").write_text("1")
    (tmp_path / HISTORY / "manifest_1").write_text('{"files": []}')
    for file in tmp_path.glob(f".hoodie/timeline/{times[0]}*"):
        file.unlink()
    storage = RecordingStorage(tmp_path)
    planned = services(storage).schedule_clean(settings)
    assert planned is not None
    assert planned.files == 4
    assert {"", "p0", "p1"} <= {call.path for call in storage.calls if call.name == "list_dir"}


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["9", "6"])
def test_a_write_that_is_pending_keeps_what_it_may_read(version: str, tmp_path: Path) -> None:
    settings = {**writes(version, metadata=False), COMMITS: "1", "hoodie.clean.failed.writes.policy": "NEVER"}
    times = write_times(tmp_path, 5, settings)
    storage = Storage(tmp_path)
    dead = Instant(str(int(times[3]) - 1), "commit", State.REQUESTED)
    create_requested(storage, load_state(storage).config, dead)
    done = services(tmp_path).clean(settings)
    assert (done.earliest_retained, done.files_deleted) == (times[2], 2)
    assert data_files(tmp_path)["p0"] == times[1:]
    # Cleans of a table with several writers roll back those that have given no sign of life.
    lazy = {**settings, "hoodie.clean.failed.writes.policy": "LAZY"}
    assert services(tmp_path).clean(lazy).files_deleted == 4
    assert load_state(storage).timeline.find(dead.requested, "commit") is None
    assert data_files(tmp_path)["p0"] == times[3:]


class LateEngine(LocalEngine):
    """Something else happens before it writes its first file.

    Args:
        rows: to write.
        first: what happens.
    """

    def __init__(self, rows: pa.Table, first: Callable[[], object]) -> None:
        super().__init__(rows)
        self._first = first

    def execute(self, plan: WritePlan) -> WriteOutcome:
        self._first()
        return super().execute(plan)


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["9", "6"])
def test_the_folder_of_an_empty_partition_stays_while_a_write_is_pending(version: str, tmp_path: Path) -> None:
    settings = {**writes(version), **SEVERAL_WRITERS}
    write_times(tmp_path, 2, settings)
    gone = {**settings, "hoodie.datasource.write.operation": "delete_partition"}
    hf.write(plain_rows([]), tmp_path, {**gone, "hoodie.datasource.write.partitions.to.delete": "p1"})
    hf.write(plain_rows([0], ts=9), tmp_path, settings)
    cleans: list[CleanResult] = []
    cleaning = services(tmp_path)
    engine = LateEngine(
        plain_rows([1, 3], ts=10, text="again"), lambda: cleans.append(cleaning.clean({**settings, COMMITS: "1"}))
    )
    write_engine(engine, Storage(tmp_path), settings)
    (done,) = cleans
    assert done.files_deleted > 0
    assert done.partitions_deleted == ()
    assert [table_rows(tmp_path)[key] for key in ("k00001", "k00003")] == [("p1", 10, "again1"), ("p1", 10, "again3")]
    assert_metadata_true(tmp_path)


def test_partitions_below_an_empty_one_stay(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    rows = plain_rows(range(2))
    outer, inner = (rows.set_column(1, "part", pa.array([name] * 2)) for name in ("a", "a/b"))
    hf.write(outer, tmp_path, settings)
    hf.write(inner, tmp_path, {**settings, "hoodie.datasource.write.operation": "insert"})
    gone = {**settings, "hoodie.datasource.write.operation": "delete_partition"}
    hf.write(rows.slice(0, 0), tmp_path, {**gone, "hoodie.datasource.write.partitions.to.delete": "a"})
    hf.write(inner, tmp_path, settings)
    done = services(tmp_path).clean(settings)
    assert (done.files_deleted, done.partitions_deleted) == (1, ())
    assert list((tmp_path / "a").glob("*.parquet")) == []
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 2
    assert_metadata_true(tmp_path)


# ---- files that cannot be deleted


@pytest.mark.slow(but="9-False")
@pytest.mark.parametrize(("version", "metadata"), [("9", True), ("9", False), ("6", True)])
def test_what_cannot_be_deleted_is_recorded_and_tried_again(version: str, metadata: bool, tmp_path: Path) -> None:
    settings = {**writes(version, metadata), COMMITS: "1"}
    times = write_times(tmp_path, 3, settings)
    storage = StuckStorage(tmp_path)
    storage.stuck = f"_{times[0]}.parquet"
    for file in tmp_path.glob(f"p0/*_{times[0]}.parquet"):
        file.unlink()  # a file that is missing is no failure
    done = services(storage).clean(settings)
    assert (done.files_deleted, done.files_failed) == (int(metadata), 1)  # folders do not list what is missing
    stuck = clean_metadata(tmp_path, done.instant).partitions[-1].failed
    assert [name.endswith(storage.stuck) for name in stuck] == [True]
    assert bool(assert_metadata_true(tmp_path)) == metadata  # it is still listed, as it is still there
    hf.write(plain_rows([0], ts=9), tmp_path, settings)  # the other partition
    again = services(storage).clean(settings)
    assert (again.files_deleted, again.files_failed) == (2, 1)
    hf.write(plain_rows([0], ts=10), tmp_path, settings)
    last = services(tmp_path).clean(settings)
    assert (last.files_deleted, last.files_failed) == (2, 0)
    assert not list(tmp_path.glob(f"p?/*_{times[0]}.parquet"))
    assert bool(assert_metadata_true(tmp_path)) == metadata


def test_what_apache_hudi_could_not_delete_is_found_behind_its_later_cleans(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    times = write_times(tmp_path, 3, settings)
    storage = StuckStorage(tmp_path)
    storage.stuck = f"_{times[0]}.parquet"
    done = services(storage).clean(settings)
    assert done.files_failed == 2
    path = next(tmp_path.glob(f".hoodie/timeline/{done.instant}_*.clean"))
    recorded = clean_metadata(tmp_path, done.instant)
    path.write_bytes(encode_clean_metadata(replace(recorded, extra_metadata={})))
    later = Instant("20300101000000000", "clean", State.REQUESTED)  # it takes nothing over
    config = load_state(storage).config
    create_requested(storage, config, later)
    part = CleanPartition("p0", "KEEP_LATEST_COMMITS")
    body = encode_clean_metadata(CleanMetadata(later.requested, times[2], times[2], partitions=(part,)))
    complete(storage, config, to_inflight(storage, config, later), body, lambda: "20300101000000001")
    again = services(tmp_path).clean({**settings, "hoodie.metadata.enable": "false"})
    assert again.files_deleted == 2
    assert not list(tmp_path.glob(f"p?/*_{times[0]}.parquet"))


def test_a_plan_that_was_cut_off_is_taken_off_the_timeline(tmp_path: Path) -> None:
    settings = {**writes(), COMMITS: "1"}
    write_times(tmp_path, 3, settings)
    storage = Storage(tmp_path)
    cut = create_requested(storage, load_state(storage).config, Instant("20300101000000000", "clean", State.REQUESTED))
    done = services(tmp_path).clean(settings)
    assert done.files_deleted == 2
    assert cut.requested not in done.instants
    assert load_state(storage).timeline.find(cut.requested, "clean") is None


# ---- tables of Apache Hudi


@pytest.mark.parametrize("name", ["cow_v9_cdc", "mor_v9_cdc"])
def test_change_logs_go_with_their_slices(name: str, golden: Callable[[str], Golden]) -> None:
    table = golden(name)
    before = [path.name for path in table.table.rglob(".*.cdc")]
    rows = rows_of_any(table.table)
    done = services(table.table).clean({VERSIONS: "1"})
    after = [path.name for path in table.table.rglob(".*.cdc")]
    assert done.files_deleted > 0
    assert len(after) < len(before)
    assert rows_of_any(table.table) == rows
    state, folders = open_state(Storage(table.table)), StorageLister(Storage(table.table))
    assert metadata_of(state) is not None
    for partition in folders.partitions():
        listed = {one.name for one in folders.files(partition)} - set(PARTITION_MARKERS)
        listed = {name for name in listed if not name.endswith(".crc")}
        assert {one.name for one in state.view.lister.files(partition)} == listed


@pytest.mark.parametrize(
    "name", ["cow_v9_clustered", "cow_v9_overwrites", "cow_v9_archived", "h015_cow_archived", "mor_v6_compacted"]
)
def test_tables_of_apache_hudi_are_cleaned_without_a_row_lost(name: str, golden: Callable[[str], Golden]) -> None:
    table = golden(name)
    rows = rows_of_any(table.table)
    done = services(table.table).clean({COMMITS: "1"})
    versions = services(table.table).clean({VERSIONS: "1"})
    assert done.files_deleted + versions.files_deleted > 0
    assert done.files_failed + versions.files_failed == 0
    assert rows_of_any(table.table) == rows
    state = load_state(Storage(table.table))
    for partition in state.view.lister.partitions():
        slices = {(one.file_id, one.base_instant) for one in latest_slices(state.view, partition)}
        left = past_slices(state.view, partition)
        assert {(file_id, one.begins) for file_id, some in left.items() for one in some} == slices
    assert_metadata_true(table.table)


def rows_of_any(path: Path) -> list[dict[str, Any]]:
    rows = hf.HudiTable.open(path).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (str(row["_hoodie_record_key"]), str(row["_hoodie_partition_path"])))


@pytest.mark.slow(but="9-mor-requested")
@pytest.mark.parametrize("left", ["requested", "inflight"])
@pytest.mark.parametrize("mor", [False, True], ids=["cow", "mor"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_whose_inflight_file_was_lost_is_executed_again_beside_what_the_metadata_table_kept(
    version: str, mor: bool, left: str, tmp_path: Path
) -> None:
    """A loss of power may take the newest files of either timeline."""
    settings = {**writes(version, mor=mor), COMMITS: "1"}
    write_times(tmp_path, 4, settings)
    if mor:
        services(tmp_path).compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
        write_times(tmp_path, 2, settings, first=5)
    rows = table_rows(tmp_path)
    done = services(tmp_path).clean(settings)
    assert done.files_deleted
    kept = {f"{done.instant}.clean.requested", f"{done.instant}.deltacommit.requested"}
    kept |= {f"{done.instant}.deltacommit.inflight"} if left == "inflight" else set()
    for file in tmp_path.glob(f".hoodie/**/{done.instant}*clean*"):
        file.name in kept or file.unlink()
    for file in tmp_path.glob(f".hoodie/metadata/**/{done.instant}*deltacommit*"):
        file.name in kept or file.unlink()
    again = services(tmp_path).clean(settings)
    assert again.instant == done.instant
    assert table_rows(tmp_path) == rows
    assert_metadata_true(tmp_path)
    write_times(tmp_path, 1, settings, first=9)


def test_the_bodies_are_those_of_apache_hudi_field_by_field(tmp_path: Path, golden: Callable[[str], Golden]) -> None:
    settings = {**writes(), COMMITS: "2"}
    write_times(tmp_path / "t", 5, settings)
    done = services(tmp_path / "t").clean(settings)
    theirs, ours = golden("cow_v9_archived").table / ".hoodie/timeline", tmp_path / "t/.hoodie/timeline"
    for kind in ("*.clean.requested", "*.clean.inflight", "*_*.clean"):
        made, other = (sorted(folder.glob(kind))[-1].read_bytes() for folder in (ours, theirs))
        if kind == "*.clean.inflight":
            assert made == other == b""
            continue
        mine, his = (next(iter(fastavro.reader(io.BytesIO(body)))) for body in (made, other))
        assert shape_of({**mine, "extraMetadata": {}}) == shape_of(his)
    assert mine["startCleanTime"] == done.instant
    assert mine["totalFilesDeleted"] == done.files_deleted == 4
    for part in mine["partitionMetadata"].values():
        assert part["deletePathPatterns"] == part["successDeleteFiles"]


def shape_of(value: Any) -> Any:
    """A record with values replaced by their types; lists and maps by what they hold."""
    if isinstance(value, dict):
        return {
            ("p" if key.startswith("p") and key[1:].isdigit() else key): shape_of(one) for key, one in value.items()
        }
    if isinstance(value, list):
        return [shape_of(one) for one in value[:1]]
    return value if isinstance(value, bool) or value in ("COMPLETED", "commit", 2) else type(value).__name__
